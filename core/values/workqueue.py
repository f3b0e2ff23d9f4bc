"""The work queue as an immutable value: keys of objects with deadlines.

Each key is in it once; the earliest deadline wins. Keys leave in the order of their
deadlines, and equal ones in the order of their arrival. A key that is due is served
before any that became due later, so none starves.

Keys that are due at once are in a line. So are later ones that come in order, as after
a constant pause. The others are in a leftist heap. All consist of tuples that older
values of the queue share. A map has the current deadlines. Entries that an earlier
deadline has replaced stay in place until they reach the front.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from immutables import Map
from msgspec import Struct

__all__ = ["EMPTY", "WorkQueue"]

# An entry is (due, serial, key); serials are unique.
QueueEntry = tuple[float, int, Any]
# Linked pairs: (entry, the rest of them).
Links = tuple[QueueEntry, Any] | None
# (rank, entry, left, right): each node is due before those below it. The right spine is
# the shorter one, so a merge is O(log n).
Heap = tuple[int, QueueEntry, Any, Any] | None

# Replaced entries are swept out when they outnumber the current ones.
_STALE_MAX = 64


def _merge_heaps(one: Heap, other: Heap) -> Heap:
    if one is None:
        return other
    if other is None:
        return one
    if other[1] < one[1]:
        one, other = other, one
    left, right = one[2], _merge_heaps(one[3], other)
    left_rank = left[0] if left else 0
    right_rank = right[0] if right else 0
    if left_rank < right_rank:
        left, right = right, left
    return (min(left_rank, right_rank) + 1, one[1], left, right)


class Line(Struct, frozen=True):
    """A FIFO queue of entries in the order of their deadlines.

    The first to leave is at the head of `front`. The newest is at the head of `back`,
    which is empty if `front` is; `last` is the newest one's deadline.
    """

    front: Links = None
    back: Links = None
    last: float = 0.0

    def takes(self, at: float) -> bool:
        """Whether an entry that is due at `at` can be added at the end."""
        return self.front is None or self.last <= at

    def add(self, entry: QueueEntry) -> Line:
        if self.front is None:
            return Line((entry, None), None, entry[0])
        return Line(self.front, (entry, self.back), entry[0])

    def rest(self) -> Line:
        """The line without its first entry."""
        assert self.front is not None
        front = self.front[1]
        if front is None:
            return Line(_reverse_links(self.back), None, self.last)
        return Line(front, self.back, self.last)


def _reverse_links(links: Links) -> Links:
    found: Links = None
    while links is not None:
        found, links = (links[0], found), links[1]
    return found


class WorkQueue(Struct, frozen=True):
    """Keys with deadlines on the monotonic clock, in seconds.

    `line` has the entries that are due at once, `later` has later ones in order, and
    `heap` has those that came out of order. `size` counts all entries, including
    replaced ones.
    """

    due: Map[Any, tuple[float, int]]
    line: Line
    later: Line
    heap: Heap
    serial: int
    size: int

    def add(self, key: Hashable, at: float) -> WorkQueue:
        """Return a queue with the key due at `at`, or at its earlier deadline."""
        known = self.due.get(key)
        if known is not None and known[0] <= at:
            return self
        entry = (at, self.serial, key)
        if self.later.takes(at):
            return self._with_entry(entry, self.line, self.later.add(entry), self.heap)
        heap = _merge_heaps(self.heap, (1, entry, None, None))
        return self._with_entry(entry, self.line, self.later, heap)

    def add_last(self, key: Hashable, now: float) -> WorkQueue:
        """Return a queue in which the key is due now, after all keys due by now.

        `now` must not decrease between calls: that keeps the line in order.
        """
        known = self.due.get(key)
        if known is not None and known[0] <= now:
            return self
        entry = (now, self.serial, key)
        return self._with_entry(entry, self.line.add(entry), self.later, self.heap)

    def _with_entry(
        self, entry: QueueEntry, line: Line, later: Line, heap: Heap
    ) -> WorkQueue:
        due, size = self.due.set(entry[2], entry[:2]), self.size + 1
        queue = WorkQueue(due, line, later, heap, self.serial + 1, size)
        return queue._drop_replaced() if size > 2 * len(due) + _STALE_MAX else queue

    def first(self) -> QueueEntry | None:
        """The entry that is due first: its deadline, its serial, and its key."""
        if not self.size:
            return None
        line, later, heap = self.line.front, self.later.front, self.heap
        first = line[0] if line else None
        if later is not None and (first is None or later[0] < first):
            first = later[0]
        if heap is not None and (first is None or heap[1] < first):
            first = heap[1]
        return first

    def next_due(self) -> float | None:
        """The earliest deadline; None when nothing is queued."""
        first = self.first()
        return None if first is None else first[0]

    def take(self, now: float) -> tuple[Any, WorkQueue]:
        """The key that is due first, and the queue without it; None if none is due.

        >>> key, rest = EMPTY.add("a", 5.0).add("b", 3.0).take(4.0)
        >>> key, rest.next_due()
        ('b', 5.0)
        """
        first = self.first()
        if first is None or first[0] > now:
            return None, self
        return first[2], self.discard(first[2])

    def discard(self, key: Hashable) -> WorkQueue:
        """Return a queue without the key."""
        if key not in self.due:
            return self
        due, size = self.due.delete(key), self.size
        line, later, heap = self.line, self.later, self.heap
        # The heads are always current, so that next_due() need not search.
        while line.front is not None and _is_stale(line.front[0], due):
            line, size = line.rest(), size - 1
        while later.front is not None and _is_stale(later.front[0], due):
            later, size = later.rest(), size - 1
        while heap is not None and _is_stale(heap[1], due):
            heap, size = _merge_heaps(heap[2], heap[3]), size - 1
        return WorkQueue(due, line, later, heap, self.serial, size)

    def _drop_replaced(self) -> WorkQueue:
        """The same queue without the replaced entries."""
        current = sorted((at, serial, key) for key, (at, serial) in self.due.items())
        line = Line()
        for entry in current:
            line = line.add(entry)
        return WorkQueue(self.due, Line(), line, None, self.serial, len(self.due))

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self.due, key=self.due.__getitem__))

    def __len__(self) -> int:
        return len(self.due)


def _is_stale(entry: QueueEntry, due: Map[Any, tuple[float, int]]) -> bool:
    return due.get(entry[2]) != entry[:2]


EMPTY = WorkQueue(Map(), Line(), Line(), None, 0, 0)
