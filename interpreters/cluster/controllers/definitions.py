"""The finalizer of a CustomResourceDefinition: its instances are deleted first."""

from __future__ import annotations

from fnop.interpreters.cluster.controllers.garbage import kind_of, rewritten, without
from fnop.interpreters.cluster.controllers.namespaces import emptied
from fnop.interpreters.cluster.controllers.turns import Turn
from fnop.interpreters.cluster.kinds.crds import CLEANUP, terminating
from fnop.interpreters.cluster.storage.commit import stored
from fnop.interpreters.cluster.storage.store import (
    Cluster,
    StoredEvent,
    Task,
    lookup,
    shelf,
)
from fnop.interpreters.cluster.values.objects import timestamp

__all__ = ["acted"]


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """Delete the instances of a definition, then remove its finalizer."""
    obj = lookup(cluster, task.resource, task.key)
    if obj is None or CLEANUP not in obj["metadata"].get("finalizers", ()):
        return Turn(cluster)
    events: tuple[StoredEvent, ...] = ()
    if (ending := terminating(obj, timestamp(now))) is not obj:
        kind = kind_of(cluster, task.resource, obj)
        cluster, events = stored(cluster, kind, task.key, ending, obj, now)
        obj = events[0].object
    resource = (obj["spec"]["group"], obj["spec"]["names"]["plural"])
    keys = sorted(shelf(cluster, resource))
    if keys:
        kind = kind_of(cluster, resource, shelf(cluster, resource)[keys[0]])
        cluster, more = emptied(cluster, kind, keys, now)
        events += more
        if shelf(cluster, resource):
            return Turn(cluster, events)
    changes = {"finalizers": without(obj["metadata"]["finalizers"], CLEANUP)}
    cluster, more = rewritten(cluster, task.resource, task.key, obj, changes, now)
    return Turn(cluster, events + more)
