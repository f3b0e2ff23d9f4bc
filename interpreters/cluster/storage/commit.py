"""Store a change, and make its direct consequences.

Consequences that a controller makes later are put on the agenda.
"""

from __future__ import annotations

from fnop.effects.structs import replace
from fnop.interpreters.cluster.kinds.crds import (
    APPROVAL,
    CRDS,
    establishing,
    registry_with,
)
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.storage.store import (
    Cluster,
    StoredEvent,
    Task,
    lookup,
    put,
    remove,
    shelf,
    size_of,
    written,
)
from fnop.interpreters.cluster.storage.waking import WAKES
from fnop.interpreters.cluster.values.objects import (
    Key,
    Object,
    Resource,
    same,
    timestamp,
)

__all__ = ["FOREGROUND", "NAMESPACES", "ORPHAN", "is_released", "removed", "stored"]

NAMESPACES: Resource = ("", "namespaces")
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


def stored(
    cluster: Cluster, kind: Kind, key: Key, obj: Object, old: Object | None, now: float
) -> tuple[Cluster, tuple[StoredEvent, ...]]:
    """Store an object; the first event is its own."""
    cluster, event = put(cluster, kind.resource, key, obj, old)
    events: tuple[StoredEvent, ...] = (event,)
    if kind.resource == CRDS:
        cluster, events = _register_crd(cluster, key, event, now)
    tasks = _tasks_after_write(kind.resource, key, event.object, old)
    wake = WAKES.get(kind.resource)
    if wake is not None:
        tasks += wake(cluster, key, event.object, old)
    return (scheduled(cluster, tasks) if tasks else cluster), events


def _register_crd(
    cluster: Cluster, key: Key, event: StoredEvent, now: float
) -> tuple[Cluster, tuple[StoredEvent, ...]]:
    """Establish a CRD and register its kinds, as the controllers would, but at once."""
    crd, old = event.object, event.previous
    if old is not None and same(_registered_parts(crd), _registered_parts(old)):
        return cluster, (event,)
    cluster, crd, more = _store_conditions(cluster, key, crd, timestamp(now))
    registry = registry_with(cluster.registry, crd, old)
    cluster = replace(cluster, registry=registry)
    return _refill_objects(cluster, crd, old), (event, *more)


def _store_conditions(
    cluster: Cluster, key: Key, crd: Object, moment: str
) -> tuple[Cluster, Object, list[StoredEvent]]:
    """Store the conditions of a CRD, given the others of its group."""
    group = crd["spec"]["group"]
    others = [
        other
        for name, other in shelf(cluster, CRDS).items()
        if name != key and other["spec"]["group"] == group
    ]
    events = []
    for state in establishing(crd, moment, others):
        cluster, event = put(cluster, CRDS, key, state, crd)
        events.append(event)
        crd = event.object
    return cluster, crd, events


def _refill_objects(cluster: Cluster, crd: Object, old: Object | None) -> Cluster:
    """Prune and default stored objects by the new schema of their kind.

    They keep their versions, and watches do not see the change.
    """
    if old is None or same(crd["spec"]["versions"], old["spec"]["versions"]):
        return cluster
    resource = (crd["spec"]["group"], crd["spec"]["names"]["plural"])
    kind = next(
        (
            kind
            for kind in cluster.registry.by_path.values()
            if kind.resource == resource and kind.storage
        ),
        None,
    )
    objects = shelf(cluster, resource)
    if kind is None or kind.schema is None or not objects:
        return cluster
    changed, size, raw = objects.mutate(), cluster.size, cluster.raw
    for key, obj in objects.items():
        before = written(cluster, resource, key, obj)
        filled = kind.schema.filled(before)
        if filled is not obj:
            changed[key] = filled
            size += size_of(filled) - size_of(obj)
        if filled is not before:
            raw = raw.set((resource, key), before)
    shelves = {**cluster.shelves, resource: changed.finish()}
    return replace(cluster, shelves=shelves, size=size, raw=raw)


def _establish_waiting_crds(
    cluster: Cluster, gone: Object
) -> tuple[Cluster, tuple[StoredEvent, ...]]:
    """Establish the CRDs that waited for the names of a deleted one."""
    metadata, group = gone["metadata"], gone["spec"]["group"]
    moment = metadata.get("deletionTimestamp", metadata["creationTimestamp"])
    events: list[StoredEvent] = []
    for key, crd in sorted(shelf(cluster, CRDS).items()):
        conditions = (crd.get("status") or {}).get("conditions") or ()
        waits = any(
            one["type"] == "NamesAccepted" and one["status"] == "False"
            for one in conditions
        )
        if crd["spec"]["group"] == group and waits:
            cluster, new, more = _store_conditions(cluster, key, crd, moment)
            registry = registry_with(cluster.registry, new, crd)
            cluster = replace(cluster, registry=registry)
            events += more
    return cluster, tuple(events)


def is_released(obj: Object) -> bool:
    """Whether nothing holds a deleted object any longer."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        # A pod that waits for its graceful end still exists.
        and not metadata.get("deletionGracePeriodSeconds")
        # A namespace has finalizers of its own in its spec.
        and not (
            obj["kind"] == "Namespace" and (obj.get("spec") or {}).get("finalizers")
        )
    )


def _registered_parts(crd: Object) -> tuple[Object, bool, str | None]:
    """The parts of a CRD on which its kinds and its conditions depend."""
    metadata = crd["metadata"]
    approval = (metadata.get("annotations") or {}).get(APPROVAL)
    return crd["spec"], "deletionTimestamp" in metadata, approval


def removed(
    cluster: Cluster, kind: Kind, key: Key
) -> tuple[Cluster, tuple[StoredEvent, ...]]:
    """Remove an object.

    The DELETED event shows it as it was last stored (its last finalizer still
    in place), at a resourceVersion of the deletion's own.
    """
    cluster, event = remove(cluster, kind.resource, key)
    more: tuple[StoredEvent, ...] = ()
    if kind.resource == CRDS:
        spec = event.object["spec"]
        registry = cluster.registry.without(spec["group"], spec["names"]["plural"])
        cluster = replace(cluster, registry=registry)
        cluster, more = _establish_waiting_crds(cluster, event.object)
    tasks = _tasks_after_removal(cluster, kind, key, event.object)
    wake = WAKES.get(kind.resource)
    if wake is not None:
        tasks += wake(cluster, key, event.object, event.object)
    return (scheduled(cluster, tasks) if tasks else cluster), (event, *more)


def scheduled(cluster: Cluster, tasks: list[Task]) -> Cluster:
    """Put reminders on the controllers' agenda."""
    return replace(cluster, agenda=cluster.agenda.extend(tasks))


def _tasks_after_write(
    resource: Resource, key: Key, new: Object, old: Object | None
) -> list[Task]:
    metadata = new["metadata"]
    tasks = []
    owners = metadata.get("ownerReferences")
    if owners and (old is None or old["metadata"].get("ownerReferences") != owners):
        tasks.append(Task("garbage", resource, key))
    if "deletionTimestamp" in metadata:
        finalizers = metadata.get("finalizers", ())
        if FOREGROUND in finalizers:
            tasks.append(Task("foreground", resource, key))
        if ORPHAN in finalizers:
            tasks.append(Task("orphan", resource, key))
        if resource == NAMESPACES:
            tasks.append(Task("namespace", resource, key))
        if resource == CRDS:
            tasks.append(Task("crd", resource, key))
    return tasks


def _tasks_after_removal(
    cluster: Cluster, kind: Kind, key: Key, gone: Object
) -> list[Task]:
    metadata = gone["metadata"]
    dependents = cluster.owned.get(metadata["uid"], ())
    tasks = [Task("garbage", *dependent) for dependent in sorted(dependents)]
    for reference in metadata.get("ownerReferences", ()):
        tasks.extend(_waiting_owner(cluster, reference, key))
    if key[0] and _is_deleted(cluster, NAMESPACES, ("", key[0])):
        tasks.append(Task("namespace", NAMESPACES, ("", key[0])))
    crd = ("", f"{kind.plural}.{kind.group}")
    if kind.custom and _is_deleted(cluster, CRDS, crd):
        tasks.append(Task("crd", CRDS, crd))
    return tasks


def _waiting_owner(
    cluster: Cluster, reference: dict[str, str], dependent: Key
) -> list[Task]:
    """A reminder for an owner in foreground deletion that waits for this dependent."""
    group = reference["apiVersion"].rpartition("/")[0]
    kind = cluster.registry.by_kind.get((group, reference["kind"]))
    if kind is None:
        return []
    key = (dependent[0] if kind.namespaced else "", reference["name"])
    owner = lookup(cluster, kind.resource, key)
    if owner is None or FOREGROUND not in owner["metadata"].get("finalizers", ()):
        return []
    return [Task("foreground", kind.resource, key)]


def _is_deleted(cluster: Cluster, resource: Resource, key: Key) -> bool:
    obj = lookup(cluster, resource, key)
    return obj is not None and "deletionTimestamp" in obj["metadata"]
