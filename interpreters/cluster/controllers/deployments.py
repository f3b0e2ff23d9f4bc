"""Deployments: a replica set per template, one taking over from the other.

`pkg/controller/deployment` in Kubernetes, function by function.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import orjson

from fnop.interpreters.cluster.controllers.turns import (
    Desk,
    Turn,
    condition,
    is_going,
    key_of,
    moment,
    owned,
    owner_reference,
    phase,
)
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup
from fnop.interpreters.cluster.values.objects import (
    Object,
    same,
    timestamp,
    without_nulls,
)

__all__ = ["acted", "hash_of", "resolved"]

SETS = ("apps", "replicasets")
HASH = "pod-template-hash"
BASE = "deployment.kubernetes.io/"
REVISION, HISTORY = f"{BASE}revision", f"{BASE}revision-history"
DESIRED, MAXIMUM = f"{BASE}desired-replicas", f"{BASE}max-replicas"
# annotationsToSkip: annotations that describe only the deployment.
OWN = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
}
LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def hash_of(value: Any, variant: int, collisions: int = 0) -> str:
    """Ten letters for a template; equal templates in a cluster get equal letters.

    `variant` is the cluster's.
    """
    parts = [value, collisions, *([variant] if variant else ())]
    raw = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    digest = blake2b(raw, digest_size=10).digest()
    return "".join(LETTERS[byte % len(LETTERS)] for byte in digest)


def resolved(value: Any, total: int, *, up: bool) -> int:
    """A number or a share of the replicas (`GetScaledValueFromIntOrPercent`).

    >>> resolved("25%", 5, up=True), resolved("25%", 5, up=False)
    (2, 1)
    """
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        share = int(value[:-1]) * total
        return -(-share // 100) if up else share // 100
    return value if isinstance(value, int) else 0


class Rollout:
    """One deployment, and the numbers of its strategy."""

    def __init__(self, desk: Desk, deployment: Object) -> None:
        spec = deployment["spec"]
        self.desk, self.deployment, self.spec = desk, deployment, spec
        self.replicas: int = spec.get("replicas", 1)
        strategy = spec.get("strategy") or {}
        self.rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        rules = strategy.get("rollingUpdate") or {}
        surge = resolved(rules.get("maxSurge", "25%"), self.replicas, up=True)
        lost = resolved(rules.get("maxUnavailable", "25%"), self.replicas, up=False)
        if surge == 0 and lost == 0:
            lost = 1  # ResolveFenceposts: something must move
        self.surge = surge if self.rolling else 0
        self.lost = min(lost, self.replicas) if self.rolling else 0
        self.sets: list[Object] = []
        self._template: dict[str, Any] | None = None
        self._current: Object | None = None
        self.note: tuple[str, str] | None = None

    # ------------------------------------------------------------ what is there

    def refresh(self) -> None:
        """Read the replica sets again."""
        self.sets = sorted(self.desk.controlled(SETS, self.deployment), key=_age)
        self._current = self._found()

    def current(self) -> Object | None:
        """FindNewReplicaSet: the oldest set of this very template."""
        return self._current

    def _found(self) -> Object | None:
        if not self.sets:
            return None
        if self._template is None:  # the spec is the same for the whole turn
            template = _without_hash(self.spec.get("template") or {})
            self._template = without_nulls(template)
        for each in self.sets:
            template = _without_hash(each["spec"].get("template") or {})
            if same(template, self._template) or same(
                without_nulls(template), self._template
            ):
                return each
        return None

    def others(self) -> list[Object]:
        """The sets of other templates, the oldest first."""
        new = self.current()
        return [each for each in self.sets if each is not new]

    # ----------------------------------------------------------------- one turn

    def turn(self) -> None:
        """syncDeployment."""
        owned(self.desk, SETS, self.deployment)
        self.refresh()
        if is_going(self.deployment):
            self.report()
            return
        self.check_paused()
        if self.spec.get("paused") or self.is_scaling():
            self.adopt_revision()
            self.scale()
            if self.spec.get("paused"):
                self.clean_up()
        elif self.rolling:
            self.roll()
        else:
            self.recreate()
        self.report()

    def check_paused(self) -> None:
        """checkPausedConditions: a pause does not count as a lack of progress."""
        if self.spec.get("progressDeadlineSeconds") is None:
            return
        now = condition(self.deployment, "Progressing") or {}
        if now.get("reason") == "ProgressDeadlineExceeded":
            return
        was = now.get("reason") == "DeploymentPaused"
        if self.spec.get("paused") and not was:
            self.note = ("DeploymentPaused", "Deployment is paused")
        elif not self.spec.get("paused") and was:
            self.note = ("DeploymentResumed", "Deployment is resumed")

    def is_scaling(self) -> bool:
        """isScalingEvent: the sets know another number of replicas."""
        return any(
            _count(each) > 0
            and _number(each, DESIRED) is not None
            and _number(each, DESIRED) != self.replicas
            for each in self.sets
        )

    def adopt_revision(self) -> Object | None:
        """Give the current set the highest revision, and the deployment, too."""
        new = self.current()
        if new is None:
            return None
        revision = max((_revision(each) for each in self.others()), default=0) + 1
        notes = self.annotations(new, max(revision, _revision(new)))
        changes: dict[str, Any] = {}
        if notes != new["metadata"].get("annotations"):
            changes["metadata"] = {"annotations": notes}
        seconds = self.spec.get("minReadySeconds", 0)
        if new["spec"].get("minReadySeconds", 0) != seconds:
            changes["spec"] = {"minReadySeconds": seconds}
        if changes:
            new = self.desk.patch(new, changes) or new
            self.refresh()
        self.mark(str(_revision(new)))
        return self.current()

    def annotations(self, rs: Object, revision: int) -> dict[str, Any]:
        """SetNewReplicaSetAnnotations."""
        given = self.deployment["metadata"].get("annotations", {})
        present = dict(rs["metadata"].get("annotations", {}))
        notes = {**present, **{k: v for k, v in given.items() if k not in OWN}}
        old = present.get(REVISION)
        notes[REVISION] = str(revision)
        if old is not None and old != str(revision):
            past = [*filter(None, present.get(HISTORY, "").split(",")), old]
            notes[HISTORY] = ",".join(past)
        return notes

    def sizes(self) -> dict[str, str]:
        """SetReplicasAnnotations."""
        return {
            DESIRED: str(self.replicas),
            MAXIMUM: str(self.replicas + self.surge),
        }

    def mark(self, revision: str) -> None:
        """Write the revision of the current set to the deployment."""
        present = self.desk.get(("apps", "deployments"), key_of(self.deployment))
        if present is None:
            return
        annotations = present["metadata"].get("annotations", {})
        if annotations.get(REVISION) != revision:
            metadata = {
                **present["metadata"],
                "annotations": {**annotations, REVISION: revision},
            }
            # Written with the status: elsewhere annotations count as a new generation.
            self.desk.store({**present, "metadata": metadata}, present, "status")

    def newest(self) -> Object | None:
        """getNewReplicaSet: the current set, created if it does not exist."""
        found = self.adopt_revision()
        if found is not None:
            if condition(self.deployment, "Progressing") is None:
                name = found["metadata"]["name"]
                self.note = ("FoundNewReplicaSet", f'Found new replica set "{name}"')
            return found
        revision = max((_revision(each) for each in self.sets), default=0) + 1
        made = self.desk.create(self.fresh(revision))
        if made is None:
            return None
        name = made["metadata"]["name"]
        self.note = ("NewReplicaSetCreated", f'Created new replica set "{name}"')
        self.refresh()
        self.mark(str(revision))
        return self.current()

    def fresh(self, revision: int) -> Object:
        """A new replica set for the template."""
        template = self.spec.get("template") or {}
        status = self.deployment.get("status") or {}
        collisions = status.get("collisionCount", 0)
        letters = hash_of(template, self.desk.cluster.variant, collisions)
        given = template.get("metadata") or {}
        labels = {**(given.get("labels") or {}), HASH: letters}
        selector = self.spec.get("selector") or {}
        wanted = {**(selector.get("matchLabels") or {}), HASH: letters}
        metadata = self.deployment["metadata"]
        given_notes = metadata.get("annotations", {})
        spec: dict[str, Any] = {
            "replicas": self.new_size(None),
            "selector": {**selector, "matchLabels": wanted},
            "template": {**template, "metadata": {**given, "labels": labels}},
        }
        if self.spec.get("minReadySeconds"):
            spec["minReadySeconds"] = self.spec["minReadySeconds"]
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{metadata['name']}-{letters}",
                "namespace": metadata["namespace"],
                "labels": labels,
                "annotations": {
                    **{k: v for k, v in given_notes.items() if k not in OWN},
                    REVISION: str(revision),
                    **self.sizes(),
                },
                "ownerReferences": [owner_reference(self.deployment)],
            },
            "spec": spec,
        }

    def new_size(self, new: Object | None) -> int:
        """NewRSNewReplicas: never exceed the desired number by more than the surge."""
        if not self.rolling:
            return self.replicas
        size = 0 if new is None else _count(new)
        # Kubernetes adds up the desired numbers of the sets. If a slow replica set has
        # not removed its pods yet, there may be too many pods for a while. Here such
        # pods count.
        there = sum(
            max(_count(each), _status_number(each, "replicas")) for each in self.sets
        )
        room = self.replicas + self.surge - there
        if room <= 0:
            return size
        return size + min(room, self.replicas - size)

    def resize(self, rs: Object, size: int, *, shared: bool = False) -> bool:
        """scaleReplicaSet; return whether the number differs.

        A set that keeps its number also keeps its annotations, except when sets share.
        """
        if _count(rs) == size and not shared:
            return False
        changes: dict[str, Any] = {}
        if _count(rs) != size:
            changes["spec"] = {"replicas": size}
        notes = rs["metadata"].get("annotations", {})
        if not self.sizes().items() <= notes.items():
            changes["metadata"] = {"annotations": self.sizes()}
        if changes:
            self.desk.patch(rs, changes)
            self.refresh()
        return "spec" in changes

    # --------------------------------------------------------------- strategies

    def roll(self) -> None:
        """rolloutRolling."""
        new = self.newest()
        if new is None:
            return
        size = _count(new)
        if size > self.replicas:
            self.resize(new, self.replicas)
            return
        if size < self.replicas and self.resize(new, self.new_size(new)):
            return
        if self.shrink():
            return
        if self.is_complete():
            self.clean_up()

    def shrink(self) -> bool:
        """reconcileOldReplicaSets: remove as many pods as may be unavailable."""
        new = self.current()
        old = [each for each in self.others() if _count(each)]
        if new is None or not old:
            return False
        total = sum(map(_count, self.sets))
        least = self.replicas - self.lost
        starting = _count(new) - _available_replicas(new)
        spare = total - least - starting
        if spare <= 0:
            return False
        done = self.drop_unhealthy(old, spare)
        # A set that has just been scaled down still reports pods that are about to be
        # deleted. Kubernetes trusts the report, and may briefly have fewer pods than
        # allowed. Its replica sets nearly always act first, so such pods do not count
        # here.
        spare = (
            sum(min(_available_replicas(each), _count(each)) for each in self.sets)
            - least
        )
        for each in self.others():
            if spare <= 0:
                break
            less = min(_count(each), spare)
            if less > 0:
                spare -= less
                done = self.resize(each, _count(each) - less) or done
        return done

    def drop_unhealthy(self, old: list[Object], spare: int) -> bool:
        """cleanupUnhealthyReplicas: unavailable pods can be removed freely."""
        done = False
        for each in old:
            less = min(spare, _count(each) - _available_replicas(each))
            if less > 0:
                spare -= less
                done = self.resize(each, _count(each) - less) or done
        return done

    def recreate(self) -> None:
        """rolloutRecreate: first delete all old pods, then create the new ones."""
        # Without the current set, which must not be created yet.
        self.adopt_revision()
        old = [each for each in self.others() if _count(each)]
        if old:
            for each in old:
                self.resize(each, 0)
            return
        if self.old_pods_run():
            return
        new = self.newest()
        if new is not None:
            self.resize(new, self.replicas)
        if self.is_complete():
            self.clean_up()

    def old_pods_run(self) -> bool:
        """oldPodsRunning: this includes pods that are being deleted."""
        others = [each["metadata"]["uid"] for each in self.others()]

        namespace = key_of(self.deployment)[0]
        keys = self.desk.dependents(("", "pods"), namespace, *others)
        pods = (self.desk.get(("", "pods"), key) for key in keys)
        return any(phase(pod) not in ("Succeeded", "Failed") for pod in pods if pod)

    def scale(self) -> None:
        """The number of replicas changed: divide it among the sets in proportion."""
        active = [each for each in self.sets if _count(each)]
        new = self.current()
        if len(active) <= 1:
            latest = new or (self.sets[-1] if self.sets else None)
            only = active[0] if active else latest
            if only is not None:
                self.resize(only, self.replicas)
            return
        if new is not None and _is_saturated(new, self.replicas):
            for each in self.others():
                self.resize(each, 0)
        elif self.rolling:
            self.share(active)

    def share(self, active: list[Object]) -> None:
        total = sum(map(_count, active))
        room = (self.replicas + self.surge if self.replicas else 0) - total
        # ReplicaSetsBySizeNewer for growth, BySizeOlder for shrinking: the biggest
        # first.
        order = sorted(active, key=_age, reverse=room > 0)
        order.sort(key=_count, reverse=True)
        left, sizes = room, {}
        for each in order:
            part = _proportion(each, room, left, self.replicas + self.surge, total)
            sizes[key_of(each)] = _count(each) + part
            left -= part
        if order:
            first = key_of(order[0])
            sizes[first] = max(0, sizes[first] + left)
        for each in order:
            self.resize(each, sizes[key_of(each)], shared=True)

    def clean_up(self) -> None:
        """cleanupDeployment: keep only a limited number of old sets."""
        limit = self.spec.get("revisionHistoryLimit")
        if limit is None:
            return
        idle = [
            each
            for each in self.others()
            if not is_going(each)
            and not _count(each)
            and not (each.get("status") or {}).get("replicas")
            and (each.get("status") or {}).get("observedGeneration", 0)
            >= each["metadata"]["generation"]
        ]
        idle.sort(key=_revision)
        for each in idle[: max(0, len(self.others()) - limit)]:
            self.desk.delete(each)

    # ------------------------------------------------------------------- status

    def counts(self) -> dict[str, int]:
        """calculateStatus, the numbers."""
        new = self.current()
        replicas = sum(_status_number(each, "replicas") for each in self.sets)
        available = sum(map(_available_replicas, self.sets))
        asked = sum(map(_count, self.sets))
        return {
            "replicas": replicas,
            "updatedReplicas": 0 if new is None else _status_number(new, "replicas"),
            "readyReplicas": sum(
                _status_number(each, "readyReplicas") for each in self.sets
            ),
            "availableReplicas": available,
            "unavailableReplicas": max(0, asked - available),
        }

    def is_complete(self) -> bool:
        """DeploymentComplete, with the present numbers."""
        counts = self.counts()
        wanted = ("updatedReplicas", "replicas", "availableReplicas")
        return all(counts[name] == self.replicas for name in wanted)

    def report(self) -> None:
        """Write the status."""
        present = self.desk.get(("apps", "deployments"), key_of(self.deployment))
        if present is None:
            return
        self.refresh()
        old = present.get("status") or {}
        counts = self.counts()
        conditions = list(old.get("conditions") or [])
        if not is_going(self.deployment):
            # Conditions of this turn come before those that follow from the numbers.
            conditions = self.noted(conditions)
            conditions = self.availability(conditions, counts)
            conditions = self.progress(conditions, counts, old)
        status: dict[str, Any] = {
            "observedGeneration": self.deployment["metadata"]["generation"],
            **{name: number for name, number in counts.items() if number},
        }
        if "collisionCount" in old:
            status["collisionCount"] = old["collisionCount"]
        if conditions:
            status["conditions"] = conditions
        self.desk.status(present, status)

    def noted(self, conditions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add what this turn has done, in the condition Progressing."""
        if self.note is None or self.spec.get("progressDeadlineSeconds") is None:
            return conditions
        status = "Unknown" if self.note[0].startswith("Deployment") else "True"
        return self.said(conditions, "Progressing", status, *self.note)

    def availability(
        self, conditions: list[dict[str, Any]], counts: dict[str, int]
    ) -> list[dict[str, Any]]:
        good = counts["availableReplicas"] >= self.replicas - self.lost
        reason = "MinimumReplicasAvailable" if good else "MinimumReplicasUnavailable"
        has = "has" if good else "does not have"
        text = f"Deployment {has} minimum availability."
        return self.said(conditions, "Available", str(good), reason, text)

    def said(
        self,
        conditions: list[dict[str, Any]],
        type: str,
        status: str,
        reason: str,
        message: str,
    ) -> list[dict[str, Any]]:
        """SetDeploymentCondition: the same status and reason are not a change."""
        now = timestamp(self.desk.now)
        before = next((each for each in conditions if each["type"] == type), None)
        since = now
        if before is not None:
            if before["status"] == status and before["reason"] == reason:
                return conditions
            if before["status"] == status:
                since = before["lastTransitionTime"]
        new = {
            "type": type,
            "status": status,
            "lastUpdateTime": now,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
        return [*(each for each in conditions if each is not before), new]

    def progress(
        self,
        conditions: list[dict[str, Any]],
        counts: dict[str, int],
        old: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """syncRolloutStatus: whether it is complete, in progress, or too late."""
        deadline = self.spec.get("progressDeadlineSeconds")
        if deadline is None:
            return [each for each in conditions if each["type"] != "Progressing"]
        if self.spec.get("paused"):
            return conditions
        now = next((c for c in conditions if c["type"] == "Progressing"), None)
        done = now is not None and now["reason"] == "NewReplicaSetAvailable"
        if counts["replicas"] == counts["updatedReplicas"] and done:
            return conditions
        new = self.current()
        name = (
            f'ReplicaSet "{new["metadata"]["name"]}"'
            if new is not None
            else f'Deployment "{self.deployment["metadata"]["name"]}"'
        )
        if self.is_complete():
            text = f"{name} has successfully progressed."
            return self.said(
                conditions, "Progressing", "True", "NewReplicaSetAvailable", text
            )
        if _is_progressing(counts, old):
            text = f"{name} is progressing."
            since = now
            rest = [each for each in conditions if each["type"] != "Progressing"]
            fresh = self.said(rest, "Progressing", "True", "ReplicaSetUpdated", text)
            if since is not None and since["status"] == "True":
                kept = {**fresh[-1], "lastTransitionTime": since["lastTransitionTime"]}
                fresh = [*rest, kept]
            return self.timed(fresh, deadline)
        if now is not None and self.is_late(now, deadline):
            text = f"{name} has timed out progressing."
            return self.said(
                conditions, "Progressing", "False", "ProgressDeadlineExceeded", text
            )
        return self.timed(conditions, deadline)

    def timed(
        self, conditions: list[dict[str, Any]], deadline: int
    ) -> list[dict[str, Any]]:
        """Look again when the deadline has passed."""
        for each in conditions:
            if each["type"] == "Progressing" and each["status"] == "True":
                self.desk.remind(moment(each["lastUpdateTime"]) + deadline)
        return conditions

    def is_late(self, now: dict[str, Any], deadline: int) -> bool:
        """DeploymentTimedOut."""
        if now["reason"] == "ProgressDeadlineExceeded":
            return True
        if now["status"] != "True":
            return False
        return moment(now["lastUpdateTime"]) + deadline <= self.desk.now


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """One turn of one deployment."""
    found = lookup(cluster, task.resource, task.key)
    if found is None:
        return Turn(cluster)
    desk = Desk(cluster, now)
    Rollout(desk, found).turn()
    return desk.turn()


def _is_progressing(counts: dict[str, int], old: dict[str, Any]) -> bool:
    """DeploymentProgressing."""
    before = old.get("replicas", 0) - old.get("updatedReplicas", 0)
    return bool(
        counts["updatedReplicas"] > old.get("updatedReplicas", 0)
        or counts["replicas"] - counts["updatedReplicas"] < before
        or counts["readyReplicas"] > old.get("readyReplicas", 0)
        or counts["availableReplicas"] > old.get("availableReplicas", 0)
    )


def _without_hash(template: dict[str, Any]) -> dict[str, Any]:
    """A template without its hash.

    Templates are compared without nulls, which Go treats as absent: a server writes
    `creationTimestamp: null` into templates.
    """
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _age(rs: Object) -> tuple[str, str]:
    return rs["metadata"]["creationTimestamp"], rs["metadata"]["name"]


def _count(rs: Object) -> int:
    found: int = rs["spec"].get("replicas", 1)
    return found


def _status_number(rs: Object, name: str) -> int:
    found: int = (rs.get("status") or {}).get(name, 0)
    return found


def _available_replicas(rs: Object) -> int:
    return _status_number(rs, "availableReplicas")


def _number(rs: Object, name: str) -> int | None:
    text = rs["metadata"].get("annotations", {}).get(name, "")
    return int(text) if text.isdecimal() else None


def _revision(rs: Object) -> int:
    return _number(rs, REVISION) or 0


def _is_saturated(rs: Object, replicas: int) -> bool:
    """IsSaturated: the set has all replicas that the deployment wants."""
    return (
        _count(rs) == replicas
        and _number(rs, DESIRED) == replicas
        and _available_replicas(rs) == replicas
    )


def _proportion(rs: Object, room: int, left: int, most: int, total: int) -> int:
    """GetProportion: a set's part of the replicas to add or to remove."""
    size = _count(rs)
    if not size or not room or not left:
        return 0
    before = _number(rs, MAXIMUM) or total
    part = round(size * most / before) - size if before else 0
    return min(part, left) if room > 0 else max(part, left)
