"""DaemonSets: one pod per node, renewed a few at a time."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.controllers.deployment_state import resolved
from fnop.interpreters.cluster.controllers.deployments import hash_of
from fnop.interpreters.cluster.controllers.replicasets import (
    available_at,
    is_active,
    pod_of,
)
from fnop.interpreters.cluster.controllers.turns import (
    Desk,
    Turn,
    is_going,
    is_ready,
    key_of,
    owned,
)
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup, shelf
from fnop.interpreters.cluster.values.objects import Object

__all__ = ["acted"]

REVISION = "controller-revision-hash"
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """One turn of one daemon set."""
    found = lookup(cluster, task.resource, task.key)
    if found is None or is_going(found):
        return Turn(cluster)
    desk = Desk(cluster, now)
    pods = owned(desk, ("", "pods"), found)
    nodes = _nodes(cluster, found)
    letters = hash_of(found["spec"].get("template"), cluster.variant)
    _manage(desk, found, pods, nodes, letters)
    _report(desk, found, pods, nodes, letters)
    return desk.turn()


def _nodes(cluster: Cluster, owner: Object) -> list[str]:
    """The nodes that its node selector matches."""
    spec = owner["spec"].get("template", {}).get("spec") or {}
    wanted = (spec.get("nodeSelector") or {}).items()
    return [
        name
        for (_, name), node in sorted(shelf(cluster, ("", "nodes")).items())
        if wanted <= node["metadata"].get("labels", {}).items()
    ]


def _node_of(pod: Object) -> str:
    """The node on which a pod runs, or for which it is meant."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        found: str = spec["nodeName"]
        return found
    try:
        terms = spec["affinity"]["nodeAffinity"][AFFINITY]["nodeSelectorTerms"]
        return str(terms[0]["matchFields"][0]["values"][0])
    except (KeyError, IndexError, TypeError):
        return ""


def _manage(
    desk: Desk, owner: Object, pods: list[Object], nodes: list[str], letters: str
) -> None:
    on: dict[str, list[Object]] = {}
    for pod in pods:
        on.setdefault(_node_of(pod), []).append(pod)
    for node, there in on.items():
        useless = there if node not in nodes else there[1:]
        for pod in useless:
            if not is_going(pod):
                desk.delete(pod)
    for node in nodes:
        there = on.get(node, [])
        ended = [pod for pod in there if not is_active(pod) and not is_going(pod)]
        for pod in ended:
            desk.delete(pod)
        if not there:
            desk.create(_pod(owner, node, letters))
    _renew(desk, owner, [on[node][0] for node in nodes if node in on], letters)


def _pod(owner: Object, node: str, letters: str) -> Object:
    template = owner["spec"].get("template") or {}
    labels = {**((template.get("metadata") or {}).get("labels") or {})}
    labels[REVISION] = letters
    pod = pod_of(owner, template, labels=labels)
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {
        **(pod["spec"].get("affinity") or {}),
        "nodeAffinity": {AFFINITY: terms},
    }
    return {**pod, "spec": {**pod["spec"], "affinity": affinity}}


def _revision(pod: Object) -> Any:
    return pod["metadata"].get("labels", {}).get(REVISION)


def _renew(desk: Desk, owner: Object, pods: list[Object], letters: str) -> None:
    """rollingUpdate: delete as many old pods at a time as may be unavailable."""
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    rules = strategy.get("rollingUpdate") or {}
    most = max(1, resolved(rules.get("maxUnavailable", 1), len(pods), up=True))
    missing = sum(not is_ready(pod) or is_going(pod) for pod in pods)
    for pod in pods:
        if _revision(pod) == letters or is_going(pod):
            continue
        if not is_ready(pod):
            desk.delete(pod)
        elif missing < most:
            missing += 1
            desk.delete(pod)


def _report(
    desk: Desk, owner: Object, pods: list[Object], nodes: list[str], letters: str
) -> None:
    present = desk.get(("apps", "daemonsets"), key_of(owner))
    if present is None:
        return
    seconds = owner["spec"].get("minReadySeconds", 0)
    first = {_node_of(pod): pod for pod in reversed(pods) if not is_going(pod)}
    there = [first[node] for node in nodes if node in first]
    times = [available_at(pod, seconds) for pod in there]
    ready = [at for at in times if at is not None]
    available = sum(at <= desk.now for at in ready)
    status: dict[str, Any] = {
        "currentNumberScheduled": len(there),
        "numberMisscheduled": sum(name not in nodes for name in first),
        "desiredNumberScheduled": len(nodes),
        "numberReady": len(ready),
        "observedGeneration": owner["metadata"]["generation"],
    }
    updated = sum(_revision(pod) == letters for pod in there)
    more = {
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": len(nodes) - available,
    }
    status |= {name: number for name, number in more.items() if number}
    desk.status(present, status)
    waits = [at for at in ready if at > desk.now]
    if waits:
        desk.remind(min(waits))
