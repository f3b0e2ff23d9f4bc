"""The work queue as a value: which object is due when.

A key is in it once; the earliest deadline wins.  Keys leave in the order of
their deadlines, and among equal ones in the order in which they came: whatever
is due is served before anything that became due later, so nothing starves.

What is due at once stands in a line, what is due later in a leftist heap; both
are made of tuples that older values of the queue share.  A map says what is
current: entries that an earlier deadline has replaced stay where they are until
they come to the front.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from immutables import Map

__all__ = ["EMPTY", "WorkQueue"]

# An entry is (due, serial, key).
Entry = tuple[float, int, Any]
# A line is linked pairs: (entry, the rest of the line).
Line = tuple[Entry, Any] | None
# (rank, entry, left, right): each node is due before those below it, and the
# right spine is the short one, so merging is O(log n).
Heap = tuple[int, Entry, Any, Any] | None

# Replaced entries are swept out when they outnumber the current ones.
_STALE_MAX = 64


def _merge(one: Heap, other: Heap) -> Heap:
    if one is None:
        return other
    if other is None:
        return one
    if other[1][:2] < one[1][:2]:
        one, other = other, one
    left, right = one[2], _merge(one[3], other)
    left_rank = left[0] if left else 0
    right_rank = right[0] if right else 0
    if left_rank < right_rank:
        left, right = right, left
    return (min(left_rank, right_rank) + 1, one[1], left, right)


def _reversed(line: Line) -> Line:
    found: Line = None
    while line is not None:
        found, line = (line[0], found), line[1]
    return found


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """Keys with deadlines on the monotonic clock, in seconds.

    `front` is the head of the line, the first to leave at its head; `back` its
    tail, the last that came at its head.
    """

    due: Map[Any, tuple[float, int]]
    front: Line
    back: Line
    heap: Heap
    serial: int
    size: int

    def add(self, key: Hashable, at: float) -> WorkQueue:
        """The queue in which the key is due at `at`, or earlier if it was."""
        known = self.due.get(key)
        if known is not None and known[0] <= at:
            return self
        heap = _merge(self.heap, (1, (at, self.serial, key), None, None))
        return self._with(key, at, self.front, self.back, heap)

    def add_last(self, key: Hashable, now: float) -> WorkQueue:
        """The queue in which the key is due now, behind all that is due by now.

        Times of calls must not decrease: that keeps the line in order.
        """
        known = self.due.get(key)
        if known is not None and known[0] <= now:
            return self
        entry = (now, self.serial, key)
        if self.front is None:
            return self._with(key, now, (entry, None), self.back, self.heap)
        return self._with(key, now, self.front, (entry, self.back), self.heap)

    def _with(
        self, key: Hashable, at: float, front: Line, back: Line, heap: Heap
    ) -> WorkQueue:
        due, serial = self.due.set(key, (at, self.serial)), self.serial + 1
        queue = WorkQueue(due, front, back, heap, serial, self.size + 1)
        if queue.size > 2 * len(due) + _STALE_MAX:
            return queue._swept()
        return queue

    def _first(self) -> Entry | None:
        line, heap = self.front, self.heap
        if line is None or (heap is not None and heap[1][:2] < line[0][:2]):
            return None if heap is None else heap[1]
        return line[0]

    def next_due(self) -> float | None:
        """The earliest deadline; None when nothing is queued."""
        first = self._first()
        return None if first is None else first[0]

    def take(self, now: float) -> tuple[Any, WorkQueue]:
        """The key that is due first, and the rest; None if nothing is due.

        >>> key, rest = EMPTY.add("a", 5.0).add("b", 3.0).take(4.0)
        >>> key, rest.next_due()
        ('b', 5.0)
        """
        first = self._first()
        if first is None or first[0] > now:
            return None, self
        return first[2], self.discard(first[2])

    def discard(self, key: Hashable) -> WorkQueue:
        """The queue without the key."""
        if key not in self.due:
            return self
        due, size = self.due.delete(key), self.size
        front, back, heap = self.front, self.back, self.heap
        # The heads are always current, so that next_due() need not search.
        while heap is not None and due.get(heap[1][2]) != heap[1][:2]:
            heap, size = _merge(heap[2], heap[3]), size - 1
        while front is not None and due.get(front[0][2]) != front[0][:2]:
            front, size = front[1], size - 1
            if front is None:
                front, back = _reversed(back), None
        return WorkQueue(due, front, back, heap, self.serial, size)

    def _swept(self) -> WorkQueue:
        """The same queue without replaced entries."""
        heap: Heap = None
        for key, (at, serial) in self.due.items():
            heap = _merge(heap, (1, (at, serial, key), None, None))
        return WorkQueue(self.due, None, None, heap, self.serial, len(self.due))

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self.due, key=self.due.__getitem__))

    def __len__(self) -> int:
        return len(self.due)


EMPTY = WorkQueue(Map(), None, None, None, 0, 0)
