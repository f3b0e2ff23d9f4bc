"""ReplicaSets: they keep a number of pods (`pkg/controller/replicaset`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fnop.interpreters.cluster.controllers.turns import (
    Desk,
    Turn,
    condition,
    is_going,
    is_ready,
    moment,
    owned,
    owner_reference,
    phase,
)
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup
from fnop.interpreters.cluster.values.objects import Object

__all__ = ["acted", "available_at", "deletion_order", "is_active", "pod_of"]

BURST = 500
# Since 1.33 a set also reports which of its pods are leaving: not simulated here.
PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_active(pod: Object) -> bool:
    """Whether a pod counts: it has not ended and is not being deleted."""
    return phase(pod) not in ("Succeeded", "Failed") and not is_going(pod)


def available_at(pod: Object, seconds: int) -> float | None:
    """The time since which a ready pod is available; None if it is not ready."""
    found = condition(pod, "Ready")
    if found is None or found["status"] != "True":
        return None
    return moment(found.get("lastTransitionTime")) + seconds


def pod_of(owner: Object, template: dict[str, Any], **more: Any) -> Object:
    """A pod from a template (`GetPodFromTemplate`)."""
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [owner_reference(owner)],
    }
    for name in ("labels", "annotations", "finalizers"):
        if given.get(name):
            metadata[name] = given[name]
    metadata |= more
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }


def deletion_order(pods: list[Object]) -> list[Object]:
    """The pods in the order of their deletion (`ActivePodsWithRanks`)."""
    nodes = Counter(pod["spec"].get("nodeName") for pod in pods)

    def rank(pod: Object) -> tuple[Any, ...]:
        metadata = pod["metadata"]
        cost = metadata.get("annotations", {}).get(
            "controller.kubernetes.io/pod-deletion-cost", "0"
        )
        ready = condition(pod, "Ready") or {}
        restarts = [
            each.get("restartCount", 0)
            for each in (pod.get("status") or {}).get("containerStatuses") or ()
        ]
        return (
            bool(pod["spec"].get("nodeName")),
            PHASES.get(phase(pod), 1),
            is_ready(pod),
            int(cost) if cost.lstrip("-").isdecimal() else 0,
            -nodes[pod["spec"].get("nodeName")],
            -moment(ready.get("lastTransitionTime")),
            -max(restarts, default=0),
            -moment(metadata.get("creationTimestamp")),
            metadata["name"],
        )

    return sorted(pods, key=rank)


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """One turn of one replica set."""
    found = lookup(cluster, task.resource, task.key)
    if found is None:
        return Turn(cluster)
    desk = Desk(cluster, now)
    pods = [pod for pod in owned(desk, ("", "pods"), found) if is_active(pod)]
    failed = ""
    if not is_going(found):
        failed = _manage(desk, found, pods)
    _report(desk, found, pods, failed)
    return desk.turn()


def _manage(desk: Desk, owner: Object, pods: list[Object]) -> str:
    """Create or delete pods; return the error if no more could be created.

    The status reports the pods before that: their changes wake the controller again.
    """
    wanted = owner["spec"].get("replicas", 1)
    for _ in range(min(wanted - len(pods), BURST)):
        if desk.create(pod_of(owner, owner["spec"].get("template") or {})) is None:
            return "FailedCreate"
    surplus = len(pods) - wanted
    if surplus > 0:
        for pod in deletion_order(pods)[: min(surplus, BURST)]:
            desk.delete(pod)
    return ""


def _report(desk: Desk, owner: Object, pods: list[Object], failed: str) -> None:
    labels = owner["spec"].get("template", {}).get("metadata", {}).get("labels", {})
    seconds = owner["spec"].get("minReadySeconds", 0)
    times = [available_at(pod, seconds) for pod in pods]
    counts = {
        "fullyLabeledReplicas": sum(
            labels.items() <= pod["metadata"].get("labels", {}).items() for pod in pods
        ),
        "readyReplicas": sum(at is not None for at in times),
        "availableReplicas": sum(at is not None and at <= desk.now for at in times),
    }
    present = desk.get(("apps", "replicasets"), _key(owner))
    if present is None:
        return
    status: dict[str, Any] = {
        "replicas": len(pods),
        **{name: count for name, count in counts.items() if count},
        "observedGeneration": owner["metadata"].get("generation", 1),
    }
    desk.status(present, status)
    waits = [at for at in times if at is not None and at > desk.now]
    if waits:
        desk.remind(min(waits))


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
