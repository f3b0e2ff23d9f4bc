"""The state of a simulated cluster, and the only ways to change it.

Everything is persistent: a `Cluster` is a value, keeping one is a snapshot, and two
values that grew from one share their common parts. Stored objects are plain dicts that
are never changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from hashlib import blake2b
from math import inf
from typing import Any, NamedTuple, TypeVar

import orjson
from immutables import Map
from msgspec import Struct, field
from pyrsistent import PVector, pvector

from fnop.effects.structs import replace
from fnop.interpreters.cluster.kinds.kinds import Registry
from fnop.interpreters.cluster.storage.logs import PodLogs
from fnop.interpreters.cluster.storage.selections import Selections, reselected
from fnop.interpreters.cluster.values.objects import Key, Object, Resource

__all__ = [
    "Cluster",
    "Control",
    "StoredEvent",
    "Task",
    "events_after",
    "fresh_uid",
    "lookup",
    "name_suffix",
    "put",
    "reindexed",
    "remembered",
    "remove",
    "shelf",
    "size_of",
    "without",
    "written",
]


# The number of events kept for watches to resume from, and their bytes of JSON: at
# least half of it, at most all of it. Older versions answer 410, as after an etcd
# compaction.
HISTORY = 10_000
HISTORY_BYTES = 64 * 1024 * 1024


class StoredEvent(Struct, frozen=True):
    """One change of one object, as watches show it.

    `previous` is the object before the change. A watch with a selector needs it to
    distinguish an object that left the selection from one that was never in it. `size`
    is the size of the stored object as JSON, in bytes.
    """

    type: str
    resource: Resource
    namespace: str | None
    object: Object
    version: int
    previous: Object | None = None
    size: int = 0


class Task(NamedTuple):
    """A reminder for a built-in controller to look at one object."""

    controller: str
    resource: Resource
    key: Key


class Control(Struct, frozen=True):
    """The paces of the built-in controllers, and their reminders for later.

    `paces` says which of them do not work normally. `later` are reminders with their
    time; `next` is the earliest of these times. `parked` are the reminders of
    controllers that are stuck.
    """

    paces: Map[str, Any] = Map()
    later: Map[Task, float] = Map()
    parked: PVector[Task] = pvector()
    next: float = inf


IDLE = Control()


class History(NamedTuple):
    """The last events in two halves; when `recent` is full it becomes `earlier`."""

    floor: int  # events up to this version are forgotten
    earlier: PVector[StoredEvent]
    recent: PVector[StoredEvent]
    recent_bytes: int = 0  # size of the objects in `recent`, before and after


class Cluster(Struct, frozen=True):
    """A Kubernetes cluster as a value. Change it with `answer` and `tick`."""

    seed: str
    version: int
    registry: Registry
    # One map per resource. There are few resources, so it is a dict, copied at each
    # write.
    shelves: Mapping[Resource, Map[Key, Object]]
    history: History
    # Owner uid -> the objects that name it in their ownerReferences.
    owned: Map[str, Map[tuple[Resource, Key], None]] = field(default_factory=Map)
    # The reminders that the built-in controllers have yet to take, oldest first.
    agenda: PVector[Task] = field(default_factory=pvector)
    # Whether requests with a user need permission.
    rbac: bool = False
    # Paces and timed reminders of the built-in controllers.
    control: Control = IDLE
    # The size of all objects as JSON, in bytes.
    size: int = 0
    # Objects as they were written, if reading has filled in more since.
    raw: Map[tuple[Resource, Key], Object] = field(default_factory=Map)
    # Two clusters that differ in it generate other addresses, ports, hashes and nodes.
    # So tests can find out which of these a real cluster is free to choose.
    variant: int = 0
    # The index by which controllers find objects by labels.
    selections: Selections = field(default_factory=Map)
    # Objects that came from another server (`restored`). They may have nulls, legacy
    # fields, and none of the defaults that this server fills in.
    found: Map[tuple[Resource, Key], None] = field(default_factory=Map)
    # The version of the server.
    release: str = "1.36.0"
    # The logs of containers, by the uids of their pods.
    logs: Map[str, PodLogs] = field(default_factory=Map)

    def __repr__(self) -> str:
        count = sum(map(len, self.shelves.values()))
        return f"<Cluster at version {self.version} with {count} objects>"


EMPTY_SHELF: Map[Key, Object] = Map()
NO_EVENTS: PVector[StoredEvent] = pvector()


def bare(seed: str, version: int, registry: Registry) -> Cluster:
    """A cluster without a single object."""
    return Cluster(seed, version, registry, {}, History(version, NO_EVENTS, NO_EVENTS))


K = TypeVar("K")
V = TypeVar("V")


def without(entries: Map[K, V], key: K) -> Map[K, V]:
    """A map without a key, which it may lack.

    >>> without(Map({"a": 1}), "a"), without(Map({"a": 1}), "b")
    (immutables.Map({}), immutables.Map({'a': 1}))
    """
    return entries.delete(key) if key in entries else entries


def shelf(cluster: Cluster, resource: Resource) -> Map[Key, Object]:
    """All stored objects of one resource."""
    return cluster.shelves.get(resource, EMPTY_SHELF)


def lookup(cluster: Cluster, resource: Resource, key: Key) -> Object | None:
    """One stored object, or None."""
    objects = cluster.shelves.get(resource)
    return None if objects is None else objects.get(key)


def put(
    cluster: Cluster, resource: Resource, key: Key, obj: Object, old: Object | None
) -> tuple[Cluster, StoredEvent]:
    """Store `obj` under the next version, which it gets as resourceVersion."""
    version = cluster.version + 1
    # etcd has one revision counter for all keys; it is the resourceVersion.
    stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
    size, was = size_of(stored), 0 if old is None else size_of(old)
    event = StoredEvent(
        "ADDED" if old is None else "MODIFIED",
        resource,
        key[0] or None,
        stored,
        version,
        old,
        size,
    )
    shelves = cluster.shelves
    return (
        Cluster(
            cluster.seed,
            version,
            cluster.registry,
            {**shelves, resource: shelves.get(resource, EMPTY_SHELF).set(key, stored)},
            _record_event(cluster.history, event, size + was),
            reindexed(cluster.owned, resource, key, old, stored),
            cluster.agenda,
            cluster.rbac,
            cluster.control,
            cluster.size + size - was,
            without(cluster.raw, (resource, key)),
            cluster.variant,
            reselected(cluster.selections, resource, key, old, stored),
            cluster.found,
            cluster.release,
            cluster.logs,
        ),
        event,
    )


def remove(
    cluster: Cluster, resource: Resource, key: Key
) -> tuple[Cluster, StoredEvent]:
    """Remove the object; its DELETED event shows it at a version of its own."""
    version, shelves = cluster.version + 1, cluster.shelves
    old = shelves[resource][key]
    # A deletion is also a revision: the event carries it as resourceVersion.
    last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(version)}}
    event = StoredEvent("DELETED", resource, key[0] or None, last, version, old)
    was = size_of(old)
    return (
        replace(
            cluster,
            version=version,
            shelves={**shelves, resource: shelves[resource].delete(key)},
            history=_record_event(cluster.history, event, 2 * was),
            owned=reindexed(cluster.owned, resource, key, old, None),
            selections=reselected(cluster.selections, resource, key, old, None),
            size=cluster.size - was,
            raw=without(cluster.raw, (resource, key)),
            found=without(cluster.found, (resource, key)),
            # Only pods have logs.
            logs=without(cluster.logs, old["metadata"].get("uid", "")),
        ),
        event,
    )


def remembered(
    cluster: Cluster, resource: Resource, key: Key, raw: Object, read: Object
) -> Cluster:
    """The cluster with an object's raw form, if reading has changed it."""
    if raw is read:
        return cluster
    return replace(cluster, raw=cluster.raw.set((resource, key), raw))


def written(cluster: Cluster, resource: Resource, key: Key, read: Object) -> Object:
    """The raw form of a stored object: writes are compared with it.

    >>> written(bare("", 0, Registry({}, {})), ("", "pods"), ("", "a"), {"kind": "Pod"})
    {'kind': 'Pod'}
    """
    raw = cluster.raw.get((resource, key))
    return read if raw is None else {**raw, "metadata": read["metadata"]}


def size_of(obj: Object) -> int:
    """The size of an object as JSON, in bytes."""
    return len(orjson.dumps(obj))


def _record_event(history: History, event: StoredEvent, size: int) -> History:
    floor, earlier, recent, held = history
    if len(recent) < HISTORY // 2 and held + size <= HISTORY_BYTES // 2:
        return History(floor, earlier, recent.append(event), held + size)
    forgotten = earlier[-1].version if earlier else floor
    return History(forgotten, recent, pvector([event]), size)


def events_after(cluster: Cluster, version: int) -> list[StoredEvent] | None:
    """The events later than `version`, or None if they are forgotten."""
    floor, earlier, recent, _ = cluster.history
    if version < floor:
        return None
    return [
        event
        for half in (earlier, recent)
        for event in half[bisect_right(half, version, key=_version) :]
    ]


def _version(event: StoredEvent) -> int:
    return event.version


def _owners(obj: Object | None) -> frozenset[str]:
    references = obj["metadata"].get("ownerReferences") if obj else None
    return frozenset(r["uid"] for r in references) if references else frozenset()


def reindexed(
    owned: Map[str, Map[tuple[Resource, Key], None]],
    resource: Resource,
    key: Key,
    old: Object | None,
    new: Object | None,
) -> Map[str, Map[tuple[Resource, Key], None]]:
    """The objects by the uids of their owners, after one of them was written."""
    if not owned and not (new and "ownerReferences" in new["metadata"]):
        return owned
    before, after = _owners(old), _owners(new)
    if before == after:
        return owned
    for uid in after - before:
        owned = owned.set(uid, owned.get(uid, Map()).set((resource, key), None))
    for uid in before - after:
        rest = owned[uid].delete((resource, key))
        owned = owned.set(uid, rest) if rest else owned.delete(uid)
    return owned


def fresh_uid(cluster: Cluster) -> str:
    """A uid for the next created object: shaped like a random one, but derived.

    The version counter never repeats, so neither does the uid.
    """
    digest = blake2b(f"{cluster.seed}/{cluster.version}".encode(), digest_size=16)
    text = digest.hexdigest()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand


def name_suffix(cluster: Cluster, attempt: int) -> str:
    """Five letters for `generateName`, derived like the uid."""
    source = f"{cluster.seed}/{cluster.version}/{attempt}".encode()
    digest = blake2b(source, digest_size=5, person=b"name").digest()
    return "".join(SUFFIX_LETTERS[byte % len(SUFFIX_LETTERS)] for byte in digest)
