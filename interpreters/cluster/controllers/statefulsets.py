"""StatefulSets: pods with names and claims of their own, in order.

`pkg/controller/statefulset/stateful_set_control.go` in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fnop.interpreters.cluster.controllers.deployments import hash_of
from fnop.interpreters.cluster.controllers.replicasets import available_at, pod_of
from fnop.interpreters.cluster.controllers.turns import (
    Desk,
    Turn,
    is_going,
    is_ready,
    key_of,
    owned,
    owner_reference,
    phase,
)
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup
from fnop.interpreters.cluster.values.objects import Object, same

__all__ = ["acted"]

REVISIONS = ("apps", "controllerrevisions")
CLAIMS = ("", "persistentvolumeclaims")
REVISION = "controller-revision-hash"


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """One turn of one stateful set."""
    found = lookup(cluster, task.resource, task.key)
    if found is None:
        return Turn(cluster)
    desk = Desk(cluster, now)
    pods = owned(desk, ("", "pods"), found)
    if not is_going(found):
        _Set(desk, found, pods).turn()
    return desk.turn()


def _ordinal(owner: Object, pod: Object) -> int:
    """The number at the end of a pod's name; -1 for other pods."""
    base, _, number = pod["metadata"]["name"].rpartition("-")
    if base != owner["metadata"]["name"] or not number.isdecimal():
        return -1
    return int(number)


class _Set:
    def __init__(self, desk: Desk, owner: Object, pods: list[Object]) -> None:
        self.desk, self.owner, self.spec = desk, owner, owner["spec"]
        self.replicas: int = self.spec.get("replicas", 1)
        first = (self.spec.get("ordinals") or {}).get("start", 0)
        self.wanted = range(first, first + self.replicas)
        known = {_ordinal(owner, pod): pod for pod in pods}
        known.pop(-1, None)
        self.pods: dict[int, Object] = known
        self.monotonic = self.spec.get("podManagementPolicy") != "Parallel"
        self.seconds: int = self.spec.get("minReadySeconds", 0)

    def turn(self) -> None:
        current, update, revisions = self.revisions()
        self.manage(current, update)
        self.report(current, update)
        self.truncate(revisions, current, update)

    # ---------------------------------------------------------------- revisions

    def revisions(self) -> tuple[Object, Object, list[Object]]:
        """getStatefulSetRevisions: the current revision, the update, and all."""
        found = [*self.desk.controlled(REVISIONS, self.owner)]
        found.sort(key=lambda each: each["revision"])
        data = {"spec": {"template": {**self.spec["template"], "$patch": "replace"}}}
        equal = [each for each in found if same(each.get("data"), data)]
        number = found[-1]["revision"] + 1 if found else 1
        if equal and equal[-1] is found[-1]:
            update = found[-1]
        elif equal:
            # An earlier template becomes the newest again.
            update = self.desk.patch(equal[-1], {"revision": number}) or equal[-1]
        else:
            update = self.fresh(data, number)
            found.append(update)
        name = (self.owner.get("status") or {}).get("currentRevision")
        current = next((e for e in found if e["metadata"]["name"] == name), update)
        return current, update, found

    def fresh(self, data: dict[str, Any], number: int) -> Object:
        letters = hash_of(data, self.desk.cluster.variant)
        metadata = self.owner["metadata"]
        given = self.spec["template"].get("metadata") or {}
        labels = {
            **(given.get("labels") or {}),
            "controller.kubernetes.io/hash": letters,
        }
        body = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{metadata['name']}-{letters}",
                "namespace": metadata["namespace"],
                "labels": labels,
                "ownerReferences": [owner_reference(self.owner)],
            },
            "data": data,
            "revision": number,
        }
        return self.desk.create(body) or body

    def truncate(self, found: list[Object], current: Object, update: Object) -> None:
        """truncateHistory: keep live revisions, and a limited number of others."""
        live = {current["metadata"]["name"], update["metadata"]["name"]}
        live |= {_revision(pod) for pod in self.pods.values()}
        idle = [each for each in found if each["metadata"]["name"] not in live]
        limit = self.spec.get("revisionHistoryLimit", 10)
        for each in idle[: max(0, len(idle) - limit)]:
            self.desk.delete(each)

    # --------------------------------------------------------------------- pods

    def manage(self, current: Object, update: Object) -> None:
        """updateStatefulSet: create missing pods, delete surplus ones, renew others."""
        for number in self.wanted:
            if not self.settle(number, current, update):
                return
        extra = sorted((n for n in self.pods if n not in self.wanted), reverse=True)
        for number in extra:
            pod = self.pods[number]
            if not is_going(pod):
                self.desk.delete(pod)
            if self.monotonic:
                return
        self.renew(update)

    def settle(self, number: int, current: Object, update: Object) -> bool:
        """Bring one pod to its desired state; return whether to go on to the next."""
        pod = self.pods.get(number)
        if pod is not None and phase(pod) in ("Failed", "Succeeded"):
            if not is_going(pod):
                self.desk.delete(pod)
            pod = self.desk.get(("", "pods"), key_of(pod))
        if pod is None:
            made = self.create(number, current, update)
            if made is not None:
                self.pods[number] = made
            else:
                self.pods.pop(number, None)
            return not self.monotonic
        if not self.monotonic:
            return True
        return not is_going(pod) and self.is_available(pod)

    def is_available(self, pod: Object) -> bool:
        at = available_at(pod, self.seconds)
        if phase(pod) != "Running" or at is None:
            return False
        if at > self.desk.now:
            self.desk.remind(at)
            return False
        return True

    def create(self, number: int, current: Object, update: Object) -> Object | None:
        """newVersionedStatefulSetPod, and the claims that it mounts."""
        revision = self.revision_for(number, current, update)
        template = dict(revision["data"]["spec"]["template"])
        template.pop("$patch", None)
        owner = self.owner["metadata"]
        name = f"{owner['name']}-{number}"
        labels = {
            **((template.get("metadata") or {}).get("labels") or {}),
            "apps.kubernetes.io/pod-index": str(number),
            REVISION: revision["metadata"]["name"],
            "statefulset.kubernetes.io/pod-name": name,
        }
        pod = pod_of(self.owner, template, name=name, labels=labels)
        del pod["metadata"]["generateName"]
        spec = {**pod["spec"], "hostname": name}
        if self.spec.get("serviceName"):
            spec["subdomain"] = self.spec["serviceName"]
        if self.spec.get("volumeClaimTemplates"):
            spec["volumes"] = self.volumes(spec.get("volumes") or (), name)
        return self.desk.create({**pod, "spec": spec})

    def revision_for(self, number: int, current: Object, update: Object) -> Object:
        """The revision from which a missing pod is created."""
        if not self.is_rolling():
            return current if self.pods else update
        # Pods below the partition are still created from the old revision.
        return current if number < self.first_renewed else update

    def volumes(self, given: Iterable[Object], pod: str) -> list[Object]:
        """The volumes of a pod: its claims, and the given ones with other names."""
        mine = [self.claim(each, pod) for each in self.spec["volumeClaimTemplates"]]
        names = {each["name"] for each in mine}
        return [*mine, *(each for each in given if each.get("name") not in names)]

    def claim(self, template: Object, pod: str) -> dict[str, Any]:
        """Create a claim of a pod once; it outlives the pod."""
        namespace = self.owner["metadata"]["namespace"]
        volume = template["metadata"]["name"]
        name = f"{volume}-{pod}"
        if self.desk.get(CLAIMS, (namespace, name)) is None:
            selector = (self.spec.get("selector") or {}).get("matchLabels") or {}
            labels = {**(template["metadata"].get("labels") or {}), **selector}
            metadata = {"name": name, "namespace": namespace, "labels": labels}
            if notes := template["metadata"].get("annotations"):
                metadata["annotations"] = notes
            body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            self.desk.create({**body, "metadata": metadata, "spec": template["spec"]})
        return {"name": volume, "persistentVolumeClaim": {"claimName": name}}

    @property
    def first_renewed(self) -> int:
        """The partition: the lowest number whose pod gets the update revision."""
        rules = (self.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
        partition: int = rules.get("partition", 0)
        return self.wanted.start + partition

    def is_rolling(self) -> bool:
        strategy = self.spec.get("updateStrategy") or {}
        return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")

    def renew(self, update: Object) -> None:
        """Replace outdated pods one at a time, from the highest downwards.

        Pods below the partition are not replaced.
        """
        if not self.is_rolling():
            return
        least = self.first_renewed
        for number in sorted(self.pods, reverse=True):
            pod = self.pods[number]
            if number < least or number not in self.wanted:
                continue
            if _revision(pod) != update["metadata"]["name"] and not is_going(pod):
                self.desk.delete(pod)
                return
            if is_going(pod) or not self.is_available(pod):
                return

    # ------------------------------------------------------------------- status

    def report(self, current: Object, update: Object) -> None:
        """updateStatefulSetStatus, with the present pods."""
        present = self.desk.get(("apps", "statefulsets"), key_of(self.owner))
        if present is None:
            return
        pods = [
            pod
            for pod in map(self.now, self.pods.values())
            if pod is not None and phase(pod) not in ("Failed", "Succeeded")
        ]
        old, new = current["metadata"]["name"], update["metadata"]["name"]
        live = [pod for pod in pods if not is_going(pod)]
        times = [available_at(pod, self.seconds) for pod in pods]
        numbers = {
            "currentReplicas": sum(_revision(pod) == old for pod in live),
            "updatedReplicas": sum(_revision(pod) == new for pod in live),
            "readyReplicas": sum(map(is_ready, pods)),
        }
        if old != new and self.is_rolling() and _is_done(numbers, self.replicas, pods):
            # completeRollingUpdate: the update revision becomes the current one.
            old = new
            numbers["currentReplicas"] = numbers["updatedReplicas"]
        status: dict[str, Any] = {
            "observedGeneration": self.owner["metadata"]["generation"],
            "replicas": len(pods),
            **{name: number for name, number in numbers.items() if number},
            "currentRevision": old,
            "updateRevision": new,
            "collisionCount": 0,
            "availableReplicas": sum(
                at is not None and at <= self.desk.now for at in times
            ),
        }
        self.desk.status(present, status)

    def now(self, pod: Object) -> Object | None:
        return self.desk.get(("", "pods"), key_of(pod))


def _is_done(numbers: dict[str, int], replicas: int, pods: list[Object]) -> bool:
    updated, ready = numbers["updatedReplicas"], numbers["readyReplicas"]
    return updated == ready == replicas == len(pods)


def _revision(pod: Object) -> str:
    found: str = pod["metadata"].get("labels", {}).get(REVISION, "")
    return found
