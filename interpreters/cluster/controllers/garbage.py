"""The garbage collector: dependents of owners that are gone, or are being deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnop.interpreters.cluster.api.delete import Options, deleted
from fnop.interpreters.cluster.apply.managed import Writer, tracked
from fnop.interpreters.cluster.controllers.turns import CONTROLLER, Turn
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.storage.commit import (
    FOREGROUND,
    ORPHAN,
    is_released,
    removed,
    stored,
)
from fnop.interpreters.cluster.storage.store import Cluster, StoredEvent, Task, lookup
from fnop.interpreters.cluster.values.objects import Key, Object, Resource

__all__ = ["Round", "acted", "kind_of", "rewritten", "without"]

Round = tuple[Cluster, tuple[StoredEvent, ...]]
Reference = dict[str, Any]


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """One turn of the garbage collector."""
    obj = lookup(cluster, task.resource, task.key)
    if obj is None:
        return Turn(cluster)
    return Turn(*PARTS[task.controller](cluster, task, obj, now))


def kind_of(cluster: Cluster, resource: Resource, obj: Object) -> Kind:
    found = cluster.registry.by_kind.get((resource[0], obj["kind"]))
    assert found is not None, f"{resource} is stored but not known"
    return found


def rewritten(
    cluster: Cluster,
    resource: Resource,
    key: Key,
    obj: Object,
    changes: dict[str, Any],
    now: float,
) -> Round:
    """Store an object with changed metadata (None removes); release it at the end."""
    kind = kind_of(cluster, resource, obj)
    metadata = {**obj["metadata"], **changes}
    metadata = {name: value for name, value in metadata.items() if value or value == 0}
    new = {**obj, "metadata": metadata}
    if is_released(new):
        return removed(cluster, kind, key)
    new = tracked(cluster.registry, kind, obj, new, Writer(CONTROLLER, now))
    return stored(cluster, kind, key, new, obj, now)


def without(names: list[str], name: str) -> list[str]:
    return [other for other in names if other != name]


# --------------------------------------------------------- garbage collection


def _collect(cluster: Cluster, task: Task, obj: Object, now: float) -> Round:
    """attemptToDeleteItem: delete an object whose owners are all gone."""
    metadata = obj["metadata"]
    references = metadata.get("ownerReferences", ())
    if not references or "deletionTimestamp" in metadata:
        return cluster, ()
    solid, dangling, waiting = _classify_owners(cluster, task, references)
    if solid:
        if not dangling and not waiting:
            return cluster, ()
        # One owner remains: only the references to the others are removed.
        changes = {"ownerReferences": solid}
        return rewritten(cluster, task.resource, task.key, obj, changes, now)
    kind = kind_of(cluster, task.resource, obj)
    events: tuple[StoredEvent, ...] = ()
    if waiting and _is_in_circle(cluster, obj):
        # Each would wait for the other, so this one does not block its owners.
        free = [{**r, "blockOwnerDeletion": False} for r in references]
        changes = {"ownerReferences": free}
        cluster, events = rewritten(cluster, task.resource, task.key, obj, changes, now)
    options = Options(policy=_policy(cluster, obj, waiting))
    cluster, _, more = deleted(cluster, kind, task.key, options, now)
    return cluster, events + more


def _is_in_circle(cluster: Cluster, obj: Object) -> bool:
    """unblockOwnerReferencesLocked: whether a dependent waits for its own owner."""
    dependents = (lookup(cluster, *each) for each in _dependents(cluster, obj))
    return any(each is not None and _is_waiting(each) for each in dependents)


def _policy(cluster: Cluster, obj: Object, waiting: list[Reference]) -> str | None:
    if waiting and cluster.owned.get(obj["metadata"]["uid"]):
        # Its owner waits in the foreground, so it waits for its own dependents, too.
        return "Foreground"
    finalizers = obj["metadata"].get("finalizers", ())
    if ORPHAN in finalizers or FOREGROUND in finalizers:
        return None
    return "Background"


def _classify_owners(
    cluster: Cluster, task: Task, references: list[Reference]
) -> tuple[list[Reference], list[Reference], list[Reference]]:
    """The owners that exist, that are gone, and that wait for their dependents."""
    solid: list[Reference] = []
    dangling: list[Reference] = []
    waiting: list[Reference] = []
    for reference in references:
        owner, known = _owner(cluster, task.key, reference)
        if owner is None:
            # An owner of an unknown kind may exist, so it is treated as existing.
            (dangling if known else solid).append(reference)
        else:
            (waiting if _is_waiting(owner) else solid).append(reference)
    return solid, dangling, waiting


def _is_waiting(owner: Object) -> bool:
    metadata = owner["metadata"]
    return "deletionTimestamp" in metadata and FOREGROUND in metadata.get(
        "finalizers", ()
    )


def _owner(
    cluster: Cluster, dependent: Key, reference: Reference
) -> tuple[Object | None, bool]:
    """The owner that a reference means, and whether its kind is known at all.

    The uid decides: another object under the same name is not an owner.
    """
    group = reference["apiVersion"].rpartition("/")[0]
    kind = cluster.registry.by_kind.get((group, reference["kind"]))
    if kind is None:
        return None, False
    if kind.namespaced and not dependent[0]:
        # A cluster-scoped object cannot be owned from within a namespace.
        return None, False
    key = (dependent[0] if kind.namespaced else "", reference["name"])
    owner = lookup(cluster, kind.resource, key)
    if owner is None or owner["metadata"]["uid"] != reference["uid"]:
        return None, True
    return owner, True


def _dependents(cluster: Cluster, obj: Object) -> list[tuple[Resource, Key]]:
    return sorted(cluster.owned.get(obj["metadata"]["uid"], ()))


def _delete_foreground(cluster: Cluster, task: Task, obj: Object, now: float) -> Round:
    """processDeletingDependentsItem: delete the dependents first, then the owner."""
    if not _is_waiting(obj):
        return cluster, ()
    events: list[StoredEvent] = []
    for resource, key in _dependents(cluster, obj):
        dependent = lookup(cluster, resource, key)
        if dependent is not None:
            mine = Task("garbage", resource, key)
            cluster, more = _collect(cluster, mine, dependent, now)
            events += more
    uid = obj["metadata"]["uid"]
    left = _dependents(cluster, obj)
    if any(_blocks(lookup(cluster, *dependent), uid) for dependent in left):
        return cluster, tuple(events)
    finalizers = without(obj["metadata"]["finalizers"], FOREGROUND)
    changes = {"finalizers": finalizers}
    cluster, more = rewritten(cluster, task.resource, task.key, obj, changes, now)
    return cluster, (*events, *more)


def _blocks(dependent: Object | None, uid: str) -> bool:
    """Whether a dependent blocks its owner: by blockOwnerDeletion only."""
    references = dependent["metadata"].get("ownerReferences", ()) if dependent else ()
    return any(r["uid"] == uid and r.get("blockOwnerDeletion") for r in references)


def _orphan(cluster: Cluster, task: Task, obj: Object, now: float) -> Round:
    """orphanDependents: they lose the reference, then the owner is deleted."""
    if ORPHAN not in obj["metadata"].get("finalizers", ()):
        return cluster, ()
    uid = obj["metadata"]["uid"]
    events: list[StoredEvent] = []
    for resource, key in _dependents(cluster, obj):
        dependent = lookup(cluster, resource, key)
        assert dependent is not None
        references = dependent["metadata"]["ownerReferences"]
        kept = [other for other in references if other["uid"] != uid]
        changes = {"ownerReferences": kept}
        cluster, more = rewritten(cluster, resource, key, dependent, changes, now)
        events += more
    changes = {"finalizers": without(obj["metadata"]["finalizers"], ORPHAN)}
    cluster, more = rewritten(cluster, task.resource, task.key, obj, changes, now)
    return cluster, (*events, *more)


PARTS: dict[str, Callable[[Cluster, Task, Object, float], Round]] = {
    "garbage": _collect,
    "foreground": _delete_foreground,
    "orphan": _orphan,
}
