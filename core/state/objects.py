"""The records of all objects, and the queue of objects to reconcile.

`Objects` is the value between two steps. `OpenObjects` collects the changes of one
step, and is closed into the next value.

A *tombstone* marks an object that a live answer has shown to be gone: the watch may be
late and still show it. To *leave_tombstone* sets the mark; to *drop_tombstone* removes
it. The mark is removed once nothing older than the deletion can arrive. It is also
removed if a later version casts doubt on the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from immutables import Map
from msgspec import Struct

from fnop.core.children.marks import is_unowned_child_of, unowned_bond
from fnop.core.state.family import Family
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body, Key
from fnop.core.values.workqueue import EMPTY, WorkQueue
from fnop.effects.structs import replace

__all__ = ["Objects", "OpenObjects", "Tombstone"]


class Tombstone(Struct, frozen=True):
    """The mark of an object that a live answer, given in that step, showed as gone.

    `version` is the object's last known version.
    """

    uid: str
    version: str
    step: int


class Objects(Struct, frozen=True):
    """The records of objects, the queue of objects to reconcile, and the indices.

    `family` records which objects own which others.
    """

    records: Map[Key, ObjectRecord] = Map()
    queue: WorkQueue = EMPTY
    # Objects that are gone by a live answer, before the watch has shown it.
    tombstones: Map[Key, Tombstone] = Map()
    # The indices that the author's functions compute from all objects, by handler id.
    indices: Map[str, Any] = Map()
    family: Family = Family()


class OpenObjects:
    """The objects while one step, at the monotonic time `now`, changes them."""

    __slots__ = (
        "_now",
        "_records",
        "_touched",
        "family",
        "fresh",
        "indices",
        "queue",
        "tombstones",
    )

    def __init__(self, objects: Objects, now: float) -> None:
        self._records = objects.records
        self.queue = objects.queue
        self.tombstones = objects.tombstones
        self.indices = objects.indices
        self.family = objects.family
        self._now = now
        # The changed records, before they are stored; None if the object is dropped.
        self._touched: dict[Key, ObjectRecord | None] = {}
        # The first key that became due in this step, until it is served or queued.
        self.fresh: Key | None = None

    def get(self, key: Key) -> ObjectRecord | None:
        """The present record of an object."""
        touched = self._touched
        return touched[key] if key in touched else self._records.get(key)

    def body(self, key: Key) -> Body | None:
        """Any known object, as it is now."""
        record = self.get(key)
        return None if record is None or record.gone else record.body

    def put(self, key: Key, record: ObjectRecord) -> None:
        """Store the record of an object."""
        if key.resource in self.family.owners:
            self._relate_object(key, None if record.gone else record.body)
        self._touched[key] = record

    def drop(self, key: Key) -> None:
        """Forget an object."""
        if key.resource in self.family.owners:
            self._relate_object(key, None)
        has_children = self.family.children or self.family.unowned
        gone = self.get(key) if has_children else None
        for child in sorted(self.owned_by(gone.body)) if gone else ():
            self.due(child)  # it has lost its owner
        self._touched[key] = None
        self.queue = self.queue.discard(key)
        if self.fresh == key:
            self.fresh = None

    def drop_all(self) -> None:
        """Forget all objects; indices are kept."""
        self._touched.clear()
        none = Objects()
        self._records = none.records
        self.queue = none.queue
        self.tombstones = none.tombstones
        self.family = Family(self.family.owners)
        self.fresh = None

    def owned_by(self, body: Body) -> Mapping[Key, str]:
        """The versions of the objects that an object owns, by their keys."""
        return self.family.owned_by(body)

    def _relate_object(self, key: Key, body: Body | None) -> None:
        """Note an owned object in its present form; its owners are due."""
        before = self.get(key)
        was = None if before is None or before.gone else before.body
        if was is body or (was and body and was.version == body.version):
            return
        unowned = self.family.unowned
        self.family, owners, lost = self.family.related(key, was, body)
        for each in lost:
            self._has_lost(each, key)
        for each in owners:
            self.due(each)
        if self.family.unowned is not unowned:
            for each in self._owners_of_stray(
                key, unowned_bond(was), unowned_bond(body)
            ):
                self.due(each)

    def _owners_of_stray(self, child: Key, *bonds: str) -> list[Key]:
        """The owner keys for an object that names no owner: all are looked at."""
        kinds = {each.key for each in self.family.owners.get(child.resource, ())}
        return [
            key
            for key, record in self.all()
            if key.resource in kinds
            and any(is_unowned_child_of(record.body, child, bond) for bond in bonds)
        ]

    def _has_lost(self, owner: Key, child: Key) -> None:
        """Call the reconcilers of an owner that has lost a child once more.

        If the last call did not see the child, the children look unchanged to the
        handler. It has made the child, and another client took it at once.
        """
        record = self.get(owner)
        if record is None or not record.reconcilers:
            return
        reconcilers = {
            name: each
            if child in each.children
            else replace(each, start=max(self._now, each.pace.until, each.own.until))
            for name, each in record.reconcilers.items()
        }
        self._touched[owner] = replace(record, reconcilers=reconcilers)

    def all(self) -> list[tuple[Key, ObjectRecord]]:
        """All objects, in sorted order, which does not depend on hashes."""
        self._store_touched()
        return [(key, self._records[key]) for key in sorted(self._records)]

    def leave_tombstone(self, key: Key, body: Body, step: int) -> None:
        """Mark the object as gone by a live answer: a watch that shows it is late."""
        self.tombstones = self.tombstones.set(
            key, Tombstone(body.uid, body.version, step)
        )

    def drop_tombstone(self, key: Key) -> None:
        """Remove the mark of an object that is gone."""
        if key in self.tombstones:
            self.tombstones = self.tombstones.delete(key)

    def due(self, key: Key, at: float | None = None) -> None:
        """Reconcile this object at that time; without a time, at once."""
        if at is None and self.fresh is None:
            self.fresh = key
        elif at is None:
            self.queue = self.queue.add_last(key, self._now)
        else:
            self.queue = self.queue.add(key, at)

    def take_due(self) -> Key | None:
        """The next key in the queue, if it is due.

        If a key became due in this step while no other is due, it need not enter the
        queue. That is the common case, and the order is the same.
        """
        first, fresh = self.queue.first(), self.fresh
        if first is not None and first[0] <= self._now:
            key: Key = first[2]
            self.queue = self.queue.discard(key)
            return key
        if fresh is not None:
            self.fresh = None
            if first is not None:
                self.queue = self.queue.discard(fresh)
        return fresh

    def enqueue(self) -> None:
        """Queue the key that became due in this step and was not reconciled in it."""
        self.queue = self.queue.add_last(self.fresh, self._now)
        self.fresh = None

    def index(self, name: str, index: Any) -> None:
        """Store the new value of an index."""
        self.indices = self.indices.set(name, index)

    def close(self) -> Objects:
        """The next value."""
        self._store_touched()
        assert self.fresh is None, "what is due is queued before a step ends"
        return Objects(
            self._records, self.queue, self.tombstones, self.indices, self.family
        )

    def _store_touched(self) -> None:
        for key, record in self._touched.items():
            if record is not None:
                self._records = self._records.set(key, record)
            elif key in self._records:
                self._records = self._records.delete(key)
        self._touched.clear()
