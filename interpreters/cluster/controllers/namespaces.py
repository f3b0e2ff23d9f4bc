"""The finalizer of a namespace: its content is deleted first."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fnop.interpreters.cluster.api.delete import Options, deleted
from fnop.interpreters.cluster.controllers.garbage import Round, kind_of
from fnop.interpreters.cluster.controllers.turns import (
    Turn,
    with_condition,
)
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.storage.commit import (
    NAMESPACES,
    is_released,
    removed,
    stored,
)
from fnop.interpreters.cluster.storage.store import (
    Cluster,
    StoredEvent,
    Task,
    lookup,
    shelf,
)
from fnop.interpreters.cluster.values.objects import Key, Object, same, timestamp

__all__ = ["acted", "emptied"]


def emptied(cluster: Cluster, kind: Kind, keys: list[Key], now: float) -> Round:
    """Delete objects; those with finalizers stay, marked."""
    events: list[StoredEvent] = []
    for key in keys:
        obj = lookup(cluster, kind.resource, key)
        if obj is not None and "deletionTimestamp" not in obj["metadata"]:
            options = Options(policy="Background")
            cluster, _, more = deleted(cluster, kind, key, options, now)
            events += more
    return cluster, tuple(events)


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """Delete the content of a namespace; remove its finalizer once it is empty."""
    obj = lookup(cluster, task.resource, task.key)
    if obj is None or "deletionTimestamp" not in obj["metadata"]:
        return Turn(cluster)
    if "kubernetes" not in (obj.get("spec") or {}).get("finalizers", ()):
        return Turn(cluster)
    cluster, events = _delete_content(cluster, task.key[1], now)
    left = _remaining_objects(cluster, task.key[1])
    kind = kind_of(cluster, NAMESPACES, obj)
    ending = {**obj, "status": _status(obj, left, timestamp(now))}
    if left:
        if not same(obj, ending):
            cluster, more = stored(cluster, kind, task.key, ending, obj, now)
            events += more
        return Turn(cluster, events)
    # Other finalizers, set through /finalize, still hold the namespace.
    others = [name for name in obj["spec"]["finalizers"] if name != "kubernetes"]
    spec = {k: v for k, v in obj["spec"].items() if k != "finalizers"}
    free = {**ending, "spec": {**spec, "finalizers": others} if others else spec}
    cluster, more = stored(cluster, kind, task.key, free, obj, now)
    events += more
    if is_released(free):
        cluster, more = removed(cluster, kind, task.key)
        events += more
    return Turn(cluster, events)


def _delete_content(cluster: Cluster, name: str, now: float) -> Round:
    """Delete the content of a namespace."""
    events: tuple[StoredEvent, ...] = ()
    for resource in sorted(cluster.shelves):
        keys = sorted(key for key in shelf(cluster, resource) if key[0] == name)
        if keys:
            kind = kind_of(cluster, resource, shelf(cluster, resource)[keys[0]])
            cluster, more = emptied(cluster, kind, keys, now)
            events += more
    return cluster, events


def _remaining_objects(cluster: Cluster, name: str) -> list[tuple[str, Object]]:
    """The remaining objects, with the name of their resource for messages."""
    return [
        (f"{resource[1]}.{resource[0]}", obj)
        for resource in sorted(cluster.shelves)
        for key, obj in sorted(shelf(cluster, resource).items())
        if key[0] == name
    ]


def _status(
    namespace: Object, left: list[tuple[str, Object]], now: str
) -> dict[str, Any]:
    """The conditions that say why a namespace is not empty yet.

    `pkg/controller/namespace/deletion/status_condition_utils.go` in Kubernetes.
    """
    status = namespace.get("status") or {}
    conditions = status.get("conditions") or []
    for type, reason, message in _findings(left):
        bad = reason in ("SomeResourcesRemain", "SomeFinalizersRemain")
        new = {
            "type": type,
            "status": "True" if bad else "False",
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for old in conditions:
            if old["type"] == type and old["status"] == new["status"]:
                new["lastTransitionTime"] = old["lastTransitionTime"]
                # updateConditions: a condition that stays true may change its words.
        conditions = with_condition(conditions, new)
    return {**status, "phase": "Terminating", "conditions": conditions}


# The conditions of a namespace without any content: type, reason and message.
EMPTY = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        "NamespaceContentRemaining",
        "ContentRemoved",
        "All content successfully removed",
    ),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
)


def _findings(left: list[tuple[str, Object]]) -> list[tuple[str, str, str]]:
    """The conditions of a namespace that still has these objects."""
    counts = Counter(resource for resource, _ in left)
    holders = Counter(
        name for _, obj in left for name in obj["metadata"].get("finalizers", ())
    )
    *found, remaining, finalizing = EMPTY
    if counts:
        texts = (f"{name} has {n} resource instances" for name, n in _sorted(counts))
        text = f"Some resources are remaining: {', '.join(texts)}"
        remaining = (remaining[0], "SomeResourcesRemain", text)
    if holders:
        texts = (f"{name} in {n} resource instances" for name, n in _sorted(holders))
        text = (
            "Some content in the namespace has finalizers remaining: "
            f"{', '.join(texts)}"
        )
        finalizing = (finalizing[0], "SomeFinalizersRemain", text)
    return [*found, remaining, finalizing]


def _sorted(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items())
