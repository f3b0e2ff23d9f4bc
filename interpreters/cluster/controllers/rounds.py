"""`tick`: a turn for every controller that has been reminded, at its own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf

from pyrsistent import pvector

from fnop.effects.structs import replace
from fnop.interpreters.cluster.controllers import (
    accounts,
    daemonsets,
    definitions,
    deployments,
    garbage,
    jobs,
    kubelet,
    namespaces,
    replicasets,
    services,
    statefulsets,
)
from fnop.interpreters.cluster.controllers.paces import Off, On, Pace, Slow, Stuck
from fnop.interpreters.cluster.controllers.turns import Turn
from fnop.interpreters.cluster.storage.store import (
    Cluster,
    StoredEvent,
    Task,
    shelf,
    without,
)
from fnop.interpreters.cluster.storage.waking import PRIMARY

__all__ = ["due", "paced", "tick"]

Actor = Callable[[Cluster, Task, float], Turn]

ACTORS: dict[str, Actor] = {
    "garbage": garbage.acted,
    "foreground": garbage.acted,
    "orphan": garbage.acted,
    "namespace": namespaces.acted,
    "crd": definitions.acted,
    "serviceaccount": accounts.serving,
    "root-ca": accounts.publishing,
    "clusterrole-aggregation": accounts.aggregating,
    "replicaset": replicasets.acted,
    "deployment": deployments.acted,
    "statefulset": statefulsets.acted,
    "daemonset": daemonsets.acted,
    "job": jobs.acted,
    "endpoints": services.listing,
    "endpointslice": services.slicing,
    "disruption": services.budgeting,
    "kubelet": kubelet.acted,
}
# The controllers whose reminders have other names than their own.
PART_OF = {"foreground": "garbage", "orphan": "garbage", "crd": "definition"}
NAMES = tuple(sorted({PART_OF.get(name, name) for name in ACTORS}))


def tick(cluster: Cluster, now: float) -> tuple[Cluster, tuple[StoredEvent, ...]]:
    """Run one round of the built-in controllers over the changes since the last round.

    The next round takes the reminders that this one makes. Call it until it returns no
    events, so that dependents of dependents are deleted, too.
    """
    if not cluster.agenda and cluster.control.next > now:
        return cluster, ()
    cluster, tasks = _taken(cluster, now)
    events: list[StoredEvent] = []
    for task in tasks:
        actor = ACTORS.get(task.controller)
        if actor is None:
            continue
        cluster, more, again = actor(cluster, task, now)
        events += more
        if again is not None or task in cluster.control.later:
            cluster = _set_reminder(cluster, task, again)
    if not events and cluster.agenda:
        # A round without a visible result does not count.
        return tick(cluster, now)
    return cluster, tuple(events)


def due(cluster: Cluster) -> float | None:
    """The time at which controllers next have work; None if nothing is planned."""
    if cluster.agenda:
        return -inf
    return None if cluster.control.next == inf else cluster.control.next


def paced(cluster: Cluster, paces: Mapping[str, Pace]) -> Cluster:
    """The same cluster with some controllers on, off, stuck or slow.

    Controllers that `paces` does not name keep their pace. Raises ValueError for
    unknown names.

    >>> from fnop.interpreters.cluster.api.server import empty_cluster
    >>> cluster = paced(empty_cluster(), {"deployment": Stuck(), "kubelet": Slow(5)})
    """
    unknown = sorted(set(paces) - set(NAMES))
    if unknown:
        raise ValueError(
            f"there is no controller {', '.join(unknown)}; choose from: "
            f"{', '.join(NAMES)}"
        )
    control = cluster.control
    woken: list[Task] = []
    for name, pace in paces.items():
        before = control.paces.get(name, On())
        if isinstance(before, Off) and not isinstance(pace, Off):
            woken += _tasks_at_start(cluster, name)
        if isinstance(before, Stuck) and not isinstance(pace, Stuck):
            woken += [task for task in control.parked if _name(task) == name]
            rest = [task for task in control.parked if _name(task) != name]
            control = replace(control, parked=pvector(rest))
        control = replace(control, paces=control.paces.set(name, pace))
    agenda = cluster.agenda.extend(woken)
    return replace(cluster, control=control, agenda=agenda)


def _name(task: Task) -> str:
    return PART_OF.get(task.controller, task.controller)


def _tasks_at_start(cluster: Cluster, name: str) -> Iterable[Task]:
    """The reminders of a controller at its start: one per object."""
    if name == "garbage":
        for resource, objects in sorted(cluster.shelves.items()):
            for key, obj in sorted(objects.items()):
                metadata = obj["metadata"]
                if "ownerReferences" in metadata or "deletionTimestamp" in metadata:
                    for part in ("garbage", "foreground", "orphan"):
                        yield Task(part, resource, key)
    elif name in ("namespace", "definition"):
        task = "namespace" if name == "namespace" else "crd"
        resource = (
            ("", "namespaces")
            if name == "namespace"
            else ("apiextensions.k8s.io", "customresourcedefinitions")
        )
        yield from (
            Task(task, resource, key) for key in sorted(shelf(cluster, resource))
        )
    else:
        resource = PRIMARY[name]
        yield from (
            Task(name, resource, key) for key in sorted(shelf(cluster, resource))
        )


def _taken(cluster: Cluster, now: float) -> tuple[Cluster, list[Task]]:
    """The reminders of this round; the others are parked, postponed or dropped."""
    control = cluster.control
    later, parked = control.later, control.parked
    timed = [task for task, at in later.items() if at <= now]
    timed.sort(key=lambda task: (later[task], task))
    fresh = dict.fromkeys(cluster.agenda)
    tasks: dict[Task, None] = {}
    for task in (*timed, *fresh):
        match control.paces.get(_name(task)):
            case Off():
                later = without(later, task)
            case Stuck():
                later = without(later, task)
                if task not in parked:
                    parked = parked.append(task)
            case Slow(seconds) if task in fresh and task not in tasks:
                later = later.set(task, min(later.get(task, inf), now + seconds))
            case _:
                tasks[task] = None
                later = without(later, task)
    control = replace(
        control, later=later, parked=parked, next=min(later.values(), default=inf)
    )
    return replace(cluster, agenda=pvector(), control=control), list(tasks)


def _set_reminder(cluster: Cluster, task: Task, at: float | None) -> Cluster:
    """Replace the reminder of a controller after its turn by the one it requested."""
    control = cluster.control
    if at is None:
        later = without(control.later, task)
        soonest = min(later.values(), default=inf)
    else:
        later = control.later.set(task, at)
        soonest = min(at, control.next)
    return replace(cluster, control=replace(control, later=later, next=soonest))
