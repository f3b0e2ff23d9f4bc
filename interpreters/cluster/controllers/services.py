"""Endpoints of services; disruptions that budgets allow."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.controllers.deployment_state import resolved
from fnop.interpreters.cluster.controllers.turns import (
    Desk,
    Turn,
    condition,
    controller_of,
    is_going,
    is_ready,
    key_of,
    moment,
    owner_reference,
    phase,
)
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup
from fnop.interpreters.cluster.values.objects import Object, same, timestamp

__all__ = ["budgeting", "listing", "slicing"]

ENDPOINTS = ("", "endpoints")
SLICES = ("discovery.k8s.io", "endpointslices")


def _selected_pods(desk: Desk, service: Object) -> list[Object]:
    selector = {"matchLabels": service["spec"]["selector"]}
    return [
        pod
        for pod in desk.selected(("", "pods"), key_of(service)[0], selector)
        if (pod.get("status") or {}).get("podIP")
        and phase(pod) not in ("Succeeded", "Failed")
    ]


def _target(pod: Object) -> dict[str, Any]:
    metadata = pod["metadata"]
    return {
        "kind": "Pod",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _ports(service: Object, pod: Object | None) -> list[dict[str, Any]]:
    """The ports of a service, as numbers of its pods' ports."""
    found = []
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort", port["port"])
        if isinstance(target, str):
            target = _named_port(pod, target)
        if target is None:
            continue
        each = {"port": target, "protocol": port.get("protocol", "TCP")}
        if port.get("name"):
            each = {"name": port["name"], **each}
        found.append(each)
    return found


def _named_port(pod: Object | None, name: str) -> int | None:
    for container in pod["spec"].get("containers") or () if pod else ():
        for port in container.get("ports") or ():
            if port.get("name") == name:
                number: int = port["containerPort"]
                return number
    return None


def listing(cluster: Cluster, task: Task, now: float) -> Turn:
    """The Endpoints of one service (`pkg/controller/endpoint`)."""
    service = lookup(cluster, task.resource, task.key)
    present = lookup(cluster, ENDPOINTS, task.key)
    desk = Desk(cluster, now)
    if service is None:
        if present is not None:
            desk.delete(present)
        return desk.turn()
    if not service["spec"].get("selector") or is_going(service):
        return desk.turn()
    subsets = _subsets(service, _selected_pods(desk, service))
    labels = dict(service["metadata"].get("labels", {}))
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    if present is None:
        metadata: dict[str, Any] = {"name": task.key[1], "namespace": task.key[0]}
        if labels:
            metadata["labels"] = labels
        body: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
        desk.create({**body, "subsets": subsets} if subsets else body)
    elif not same(present.get("subsets") or [], subsets):
        desk.patch(present, {"subsets": subsets or None})
    return desk.turn()


def _subsets(service: Object, pods: list[Object]) -> list[dict[str, Any]]:
    """RepackSubsets, for pods that all have the same ports."""
    if not pods:
        return []
    patient = service["spec"].get("publishNotReadyAddresses")
    subset: dict[str, Any] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["status"]["podIP"])):
        ready = patient or is_ready(pod)
        address = {"ip": pod["status"]["podIP"], "targetRef": _target(pod)}
        if pod["spec"].get("nodeName"):
            address["nodeName"] = pod["spec"]["nodeName"]
        name = "addresses" if ready else "notReadyAddresses"
        subset.setdefault(name, []).append(address)
    ports = _ports(service, pods[0])
    return [{**subset, "ports": ports} if ports else subset]


def slicing(cluster: Cluster, task: Task, now: float) -> Turn:
    """Write one slice for one service: there are never thousands of pods here."""
    service = lookup(cluster, task.resource, task.key)
    if service is None or not service["spec"].get("selector") or is_going(service):
        return Turn(cluster)
    desk = Desk(cluster, now)
    pods = _selected_pods(desk, service)
    endpoints = [_endpoint(service, pod) for pod in pods]
    ports = [
        {"name": "", **each} for each in _ports(service, pods[0] if pods else None)
    ]
    mine = [*desk.controlled(SLICES, service)]
    if not mine:
        labels = {
            **service["metadata"].get("labels", {}),
            "kubernetes.io/service-name": task.key[1],
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        desk.create(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "generateName": f"{task.key[1]}-",
                    "namespace": task.key[0],
                    "labels": labels,
                    "ownerReferences": [owner_reference(service)],
                },
                "addressType": "IPv4",
                "endpoints": endpoints,
                "ports": ports,
            }
        )
    elif not same(mine[0].get("endpoints") or [], endpoints):
        desk.patch(mine[0], {"endpoints": endpoints, "ports": ports})
    return desk.turn()


def _endpoint(service: Object, pod: Object) -> dict[str, Any]:
    serving = is_ready(pod)
    patient = bool(service["spec"].get("publishNotReadyAddresses"))
    found: dict[str, Any] = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": patient or (serving and not is_going(pod)),
            "serving": serving,
            "terminating": is_going(pod),
        },
        "targetRef": _target(pod),
    }
    if pod["spec"].get("nodeName"):
        found["nodeName"] = pod["spec"]["nodeName"]
    return found


# ---------------------------------------------------------------------- budgets

# DeletionTimeout: an evicted pod that still exists then will not be deleted.
EVICTION_SECONDS = 120


def budgeting(cluster: Cluster, task: Task, now: float) -> Turn:
    """The status of one budget (`pkg/controller/disruption`)."""
    budget = lookup(cluster, task.resource, task.key)
    if budget is None or is_going(budget):
        return Turn(cluster)
    desk = Desk(cluster, now)
    spec = budget.get("spec") or {}
    pods = [
        pod
        for pod in desk.selected(("", "pods"), task.key[0], spec.get("selector"))
        if phase(pod) not in ("Succeeded", "Failed")
    ]
    expected, desired = _expected_pods(desk, spec, pods)
    healthy = sum(is_ready(pod) and not is_going(pod) for pod in pods)
    allowed = max(0, healthy - desired) if expected else 0
    old = budget.get("status") or {}
    status: dict[str, Any] = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "observedGeneration": budget["metadata"].get("generation", 1),
        "conditions": [_allowance(budget, allowed, timestamp(now))],
    }
    disrupted = {
        name: at
        for name, at in (old.get("disruptedPods") or {}).items()
        if moment(at) + EVICTION_SECONDS > now
        and any(p["metadata"]["name"] == name and not is_going(p) for p in pods)
    }
    if disrupted:
        status["disruptedPods"] = disrupted
        desk.remind(min(map(moment, disrupted.values())) + EVICTION_SECONDS)
    desk.status(budget, status)
    return desk.turn()


def _expected_pods(
    desk: Desk, spec: dict[str, Any], pods: list[Object]
) -> tuple[int, int]:
    """getExpectedPodCount: the expected number of pods, and the minimum."""
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if isinstance(least, int) and most is None:
        return len(pods), least
    expected = _scales(desk, pods)
    if most is not None:
        return expected, max(0, expected - resolved(most, expected, up=True))
    return expected, resolved(least, expected, up=True)


def _scales(desk: Desk, pods: list[Object]) -> int:
    """getExpectedScale: the sum of the replicas that the pods' controllers want."""
    found: dict[str, int] = {}
    for pod in pods:
        reference = controller_of(pod)
        group = reference["apiVersion"].rpartition("/")[0] if reference else ""
        kind = (
            desk.cluster.registry.by_kind.get((group, reference["kind"]))
            if reference
            else None
        )
        if reference is None or kind is None:
            continue
        key = (pod["metadata"]["namespace"], reference["name"])
        owner = desk.get(kind.resource, key)
        if owner is not None and kind.scale is not None:
            found[reference["uid"]] = (owner.get("spec") or {}).get("replicas", 1)
    return sum(found.values())


def _allowance(budget: Object, allowed: int, now: str) -> dict[str, Any]:
    status = "True" if allowed else "False"
    old = condition(budget, "DisruptionAllowed")
    since = old["lastTransitionTime"] if old and old["status"] == status else now
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": budget["metadata"].get("generation", 1),
        "lastTransitionTime": since,
    }
