"""The built-in controllers: garbage collection, namespaces, CRD clean-up.

Each works off its reminders on the cluster's agenda, which the writes have put
there: a round costs nothing when nothing is to be done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyrsistent import pvector

from fnop.interpreters.cluster.commit import (
    FOREGROUND,
    NAMESPACES,
    ORPHAN,
    is_released,
    removed,
    stored,
)
from fnop.interpreters.cluster.crds import CLEANUP, terminating
from fnop.interpreters.cluster.delete import Options, deleted
from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.store import (
    Cluster,
    Key,
    Object,
    Resource,
    StoredEvent,
    Task,
    lookup,
    shelf,
    timestamp,
)

__all__ = ["tick"]

Round = tuple[Cluster, tuple[StoredEvent, ...]]
Reference = dict[str, Any]


def tick(cluster: Cluster, now: float) -> Round:
    """One round of the built-in controllers over what changed since the last.

    What a round itself causes is left to the next: call until it answers no
    events, and dependents of dependents are gone too.
    """
    if not cluster.agenda:
        return cluster, ()
    tasks = dict.fromkeys(cluster.agenda)
    cluster = replace(cluster, agenda=pvector())
    events: tuple[StoredEvent, ...] = ()
    for task in tasks:
        cluster, more = _performed(cluster, task, now)
        events += more
    if not events and cluster.agenda:
        # A round without a visible result is no round.
        return tick(cluster, now)
    return cluster, events


def _performed(cluster: Cluster, task: Task, now: float) -> Round:
    obj = lookup(cluster, task.resource, task.key)
    if obj is None:
        return cluster, ()
    return CONTROLLERS[task.controller](cluster, task, obj, now)


def _kind(cluster: Cluster, resource: Resource, obj: Object) -> Kind:
    found = cluster.registry.by_kind.get((resource[0], obj["kind"]))
    assert found is not None, f"{resource} is stored but not known"
    return found


def _rewritten(
    cluster: Cluster,
    resource: Resource,
    key: Key,
    obj: Object,
    changes: dict[str, Any],
    now: float,
) -> Round:
    """Store an object with changed metadata (None removes); release it at the end."""
    kind = _kind(cluster, resource, obj)
    metadata = {**obj["metadata"], **changes}
    metadata = {name: value for name, value in metadata.items() if value or value == 0}
    new = {**obj, "metadata": metadata}
    if is_released(new):
        return removed(cluster, kind, key)
    return stored(cluster, kind, key, new, obj, now)


def _without(names: list[str], name: str) -> list[str]:
    return [other for other in names if other != name]


# --------------------------------------------------------- garbage collection


def _collect(cluster: Cluster, task: Task, obj: Object, now: float) -> Round:
    """attemptToDeleteItem: an object whose owners are all gone goes too."""
    metadata = obj["metadata"]
    references = metadata.get("ownerReferences", ())
    if not references or "deletionTimestamp" in metadata:
        return cluster, ()
    solid, dangling, waiting = _classified(cluster, task, references)
    if solid:
        if not dangling and not waiting:
            return cluster, ()
        # One owner remains: only the references to the others go.
        changes = {"ownerReferences": solid}
        return _rewritten(cluster, task.resource, task.key, obj, changes, now)
    kind = _kind(cluster, task.resource, obj)
    options = Options(policy=_policy(cluster, obj, waiting))
    cluster, _, events = deleted(cluster, kind, task.key, options, now)
    return cluster, events


def _policy(cluster: Cluster, obj: Object, waiting: list[Reference]) -> str | None:
    if waiting and cluster.owned.get(obj["metadata"]["uid"]):
        # Its owner waits in the foreground: so does it for its own dependents.
        return "Foreground"
    finalizers = obj["metadata"].get("finalizers", ())
    if ORPHAN in finalizers or FOREGROUND in finalizers:
        return None
    return "Background"


def _classified(
    cluster: Cluster, task: Task, references: list[Reference]
) -> tuple[list[Reference], list[Reference], list[Reference]]:
    """Owners that live, that are gone, and that wait for their dependents to go."""
    solid: list[Reference] = []
    dangling: list[Reference] = []
    waiting: list[Reference] = []
    for reference in references:
        owner, known = _owner(cluster, task.key, reference)
        if owner is None:
            # An owner of an unknown kind may live: better safe than sorry.
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

    The uid decides: another object under the same name is no owner.
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


def _foreground(cluster: Cluster, task: Task, obj: Object, now: float) -> Round:
    """processDeletingDependentsItem: the dependents first, then the owner."""
    if not _is_waiting(obj):
        return cluster, ()
    events: tuple[StoredEvent, ...] = ()
    for resource, key in _dependents(cluster, obj):
        cluster, more = _performed(cluster, Task("garbage", resource, key), now)
        events += more
    uid = obj["metadata"]["uid"]
    left = _dependents(cluster, obj)
    if any(_blocks(lookup(cluster, *dependent), uid) for dependent in left):
        return cluster, events
    finalizers = _without(obj["metadata"]["finalizers"], FOREGROUND)
    changes = {"finalizers": finalizers}
    cluster, more = _rewritten(cluster, task.resource, task.key, obj, changes, now)
    return cluster, events + more


def _blocks(dependent: Object | None, uid: str) -> bool:
    """Only dependents with blockOwnerDeletion hold their owner."""
    references = dependent["metadata"].get("ownerReferences", ()) if dependent else ()
    return any(r["uid"] == uid and r.get("blockOwnerDeletion") for r in references)


def _orphan(cluster: Cluster, task: Task, obj: Object, now: float) -> Round:
    """orphanDependents: they lose the reference, then the owner goes."""
    if ORPHAN not in obj["metadata"].get("finalizers", ()):
        return cluster, ()
    uid = obj["metadata"]["uid"]
    events: tuple[StoredEvent, ...] = ()
    for resource, key in _dependents(cluster, obj):
        dependent = lookup(cluster, resource, key)
        assert dependent is not None
        references = dependent["metadata"]["ownerReferences"]
        kept = [other for other in references if other["uid"] != uid]
        changes = {"ownerReferences": kept}
        cluster, more = _rewritten(cluster, resource, key, dependent, changes, now)
        events += more
    changes = {"finalizers": _without(obj["metadata"]["finalizers"], ORPHAN)}
    cluster, more = _rewritten(cluster, task.resource, task.key, obj, changes, now)
    return cluster, events + more


# -------------------------------------------------------- namespaces and CRDs


def _emptied(cluster: Cluster, kind: Kind, keys: list[Key], now: float) -> Round:
    """Delete objects, as far as their finalizers let go of them."""
    events: tuple[StoredEvent, ...] = ()
    for key in keys:
        obj = lookup(cluster, kind.resource, key)
        if obj is not None and "deletionTimestamp" not in obj["metadata"]:
            options = Options(policy="Background")
            cluster, _, more = deleted(cluster, kind, key, options, now)
            events += more
    return cluster, events


def _end_namespace(cluster: Cluster, task: Task, obj: Object, now: float) -> Round:
    """Everything in it is deleted; once it is empty, it goes itself."""
    if "deletionTimestamp" not in obj["metadata"]:
        return cluster, ()
    name = task.key[1]
    events: tuple[StoredEvent, ...] = ()
    left = False
    for resource in sorted(cluster.shelves):
        keys = sorted(key for key in shelf(cluster, resource) if key[0] == name)
        if keys:
            kind = _kind(cluster, resource, shelf(cluster, resource)[keys[0]])
            cluster, more = _emptied(cluster, kind, keys, now)
            events += more
            left = left or any(key in shelf(cluster, resource) for key in keys)
    if left:
        return cluster, events
    kind = _kind(cluster, NAMESPACES, obj)
    spec = {k: v for k, v in (obj.get("spec") or {}).items() if k != "finalizers"}
    if obj["metadata"].get("finalizers"):
        if spec == obj.get("spec"):
            return cluster, events
        cluster, more = stored(cluster, kind, task.key, {**obj, "spec": spec}, obj, now)
        return cluster, events + more
    cluster, more = removed(cluster, kind, task.key)
    return cluster, events + more


def _end_crd(cluster: Cluster, task: Task, obj: Object, now: float) -> Round:
    """The instances go with their definition; then its finalizer."""
    if CLEANUP not in obj["metadata"].get("finalizers", ()):
        return cluster, ()
    events: tuple[StoredEvent, ...] = ()
    if (ending := terminating(obj, timestamp(now))) is not obj:
        kind = _kind(cluster, task.resource, obj)
        cluster, events = stored(cluster, kind, task.key, ending, obj, now)
        obj = events[0].object
    resource = (obj["spec"]["group"], obj["spec"]["names"]["plural"])
    keys = sorted(shelf(cluster, resource))
    if keys:
        kind = _kind(cluster, resource, shelf(cluster, resource)[keys[0]])
        cluster, more = _emptied(cluster, kind, keys, now)
        events += more
        if shelf(cluster, resource):
            return cluster, events
    changes = {"finalizers": _without(obj["metadata"]["finalizers"], CLEANUP)}
    cluster, more = _rewritten(cluster, task.resource, task.key, obj, changes, now)
    return cluster, events + more


CONTROLLERS: dict[str, Callable[[Cluster, Task, Object, float], Round]] = {
    "garbage": _collect,
    "foreground": _foreground,
    "orphan": _orphan,
    "namespace": _end_namespace,
    "crd": _end_crd,
}
