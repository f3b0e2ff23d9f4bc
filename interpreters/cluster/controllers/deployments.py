"""Deployments: a replica set per template, one taking over from the other.

`pkg/controller/deployment` in Kubernetes, function by function.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import orjson

from fnop.interpreters.cluster.controllers.deployment_state import (
    BASE,
    HASH,
    REVISION,
    SETS,
    Deployment,
    age,
    available_replicas,
    count,
    number,
    revision_of,
    status_number,
)
from fnop.interpreters.cluster.controllers.deployment_status import Report
from fnop.interpreters.cluster.controllers.turns import (
    Desk,
    Turn,
    condition,
    is_going,
    key_of,
    owned,
    owner_reference,
    phase,
)
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup
from fnop.interpreters.cluster.values.objects import Object

__all__ = ["acted", "hash_of"]

HISTORY = f"{BASE}revision-history"
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


class Rollout(Deployment):
    """One turn of a deployment: one replica set takes over from the others."""

    def __init__(self, desk: Desk, deployment: Object) -> None:
        super().__init__(desk, deployment)
        self.note: tuple[str, str] | None = None

    # ----------------------------------------------------------------- one turn

    def turn(self) -> None:
        """syncDeployment."""
        owned(self.desk, SETS, self.deployment)
        self.refresh()
        if is_going(self.deployment):
            Report(self, self.note).write()
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
        Report(self, self.note).write()

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
            count(each) > 0
            and number(each, DESIRED) is not None
            and number(each, DESIRED) != self.replicas
            for each in self.sets
        )

    def adopt_revision(self) -> Object | None:
        """Give the current set the highest revision, and the deployment, too."""
        new = self.current()
        if new is None:
            return None
        revision = max((revision_of(each) for each in self.others()), default=0) + 1
        notes = self.annotations(new, max(revision, revision_of(new)))
        changes: dict[str, Any] = {}
        if notes != new["metadata"].get("annotations"):
            changes["metadata"] = {"annotations": notes}
        seconds = self.spec.get("minReadySeconds", 0)
        if new["spec"].get("minReadySeconds", 0) != seconds:
            changes["spec"] = {"minReadySeconds": seconds}
        if changes:
            new = self.desk.patch(new, changes) or new
            self.refresh()
        self.mark(str(revision_of(new)))
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
        revision = max((revision_of(each) for each in self.sets), default=0) + 1
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
        size = 0 if new is None else count(new)
        # Kubernetes adds up the desired numbers of the sets. If a slow replica set has
        # not removed its pods yet, there may be too many pods for a while. Here such
        # pods count.
        there = sum(
            max(count(each), status_number(each, "replicas")) for each in self.sets
        )
        room = self.replicas + self.surge - there
        if room <= 0:
            return size
        return size + min(room, self.replicas - size)

    def resize(self, rs: Object, size: int, *, shared: bool = False) -> bool:
        """scaleReplicaSet; return whether the number differs.

        A set that keeps its number also keeps its annotations, except when sets share.
        """
        if count(rs) == size and not shared:
            return False
        changes: dict[str, Any] = {}
        if count(rs) != size:
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
        size = count(new)
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
        old = [each for each in self.others() if count(each)]
        if new is None or not old:
            return False
        total = sum(map(count, self.sets))
        least = self.replicas - self.lost
        starting = count(new) - available_replicas(new)
        spare = total - least - starting
        if spare <= 0:
            return False
        done = self.drop_unhealthy(old, spare)
        # A set that has just been scaled down still reports pods that are about to be
        # deleted. Kubernetes trusts the report, and may briefly have fewer pods than
        # allowed. Its replica sets nearly always act first, so such pods do not count
        # here.
        spare = (
            sum(min(available_replicas(each), count(each)) for each in self.sets)
            - least
        )
        for each in self.others():
            if spare <= 0:
                break
            less = min(count(each), spare)
            if less > 0:
                spare -= less
                done = self.resize(each, count(each) - less) or done
        return done

    def drop_unhealthy(self, old: list[Object], spare: int) -> bool:
        """cleanupUnhealthyReplicas: unavailable pods can be removed freely."""
        done = False
        for each in old:
            less = min(spare, count(each) - available_replicas(each))
            if less > 0:
                spare -= less
                done = self.resize(each, count(each) - less) or done
        return done

    def recreate(self) -> None:
        """rolloutRecreate: first delete all old pods, then create the new ones."""
        # Without the current set, which must not be created yet.
        self.adopt_revision()
        old = [each for each in self.others() if count(each)]
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
        active = [each for each in self.sets if count(each)]
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
        total = sum(map(count, active))
        room = (self.replicas + self.surge if self.replicas else 0) - total
        # ReplicaSetsBySizeNewer for growth, BySizeOlder for shrinking: the biggest
        # first.
        order = sorted(active, key=age, reverse=room > 0)
        order.sort(key=count, reverse=True)
        left, sizes = room, {}
        for each in order:
            part = _proportion(each, room, left, self.replicas + self.surge, total)
            sizes[key_of(each)] = count(each) + part
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
            and not count(each)
            and not (each.get("status") or {}).get("replicas")
            and (each.get("status") or {}).get("observedGeneration", 0)
            >= each["metadata"]["generation"]
        ]
        idle.sort(key=revision_of)
        for each in idle[: max(0, len(self.others()) - limit)]:
            self.desk.delete(each)


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """One turn of one deployment."""
    found = lookup(cluster, task.resource, task.key)
    if found is None:
        return Turn(cluster)
    desk = Desk(cluster, now)
    Rollout(desk, found).turn()
    return desk.turn()


def _is_saturated(rs: Object, replicas: int) -> bool:
    """IsSaturated: the set has all replicas that the deployment wants."""
    return (
        count(rs) == replicas
        and number(rs, DESIRED) == replicas
        and available_replicas(rs) == replicas
    )


def _proportion(rs: Object, room: int, left: int, most: int, total: int) -> int:
    """GetProportion: a set's part of the replicas to add or to remove."""
    size = count(rs)
    if not size or not room or not left:
        return 0
    before = number(rs, MAXIMUM) or total
    part = round(size * most / before) - size if before else 0
    return min(part, left) if room > 0 else max(part, left)
