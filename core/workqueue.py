"""The work queue as a value: which object is due when.

A key is in it once; the earliest deadline wins.  Keys leave in the order of
their deadlines, and among equal ones in the order in which they came: whatever
is due is served before anything that became due later, so nothing starves.

Held as a leftist heap of tuples beside a map of what is current; entries that
an earlier deadline has replaced stay in the heap until they surface.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from pyrsistent import PMap, pmap

__all__ = ["EMPTY", "WorkQueue"]

# (rank, (due, serial, key), left, right): each node is due before those below
# it, and the right spine is the short one, so merging is O(log n).
Heap = tuple[int, tuple[float, int, Any], Any, Any] | None

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


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """Keys with deadlines on the monotonic clock, in seconds."""

    due: PMap[Any, tuple[float, int]]
    heap: Heap
    serial: int
    size: int

    def add(self, key: Hashable, at: float) -> WorkQueue:
        """The queue in which the key is due at `at`, or earlier if it was."""
        known = self.due.get(key)
        if known is not None and known[0] <= at:
            return self
        entry = (at, self.serial, key)
        queue = WorkQueue(
            self.due.set(key, entry[:2]),
            _merge(self.heap, (1, entry, None, None)),
            self.serial + 1,
            self.size + 1,
        )
        if queue.size > 2 * len(queue.due) + _STALE_MAX:
            return queue._swept()
        return queue

    def next_due(self) -> float | None:
        """The earliest deadline; None when nothing is queued."""
        return None if self.heap is None else self.heap[1][0]

    def take(self, now: float) -> tuple[Any, WorkQueue]:
        """The key that is due first, and the rest; None if nothing is due.

        >>> key, rest = EMPTY.add("a", 5.0).add("b", 3.0).take(4.0)
        >>> key, rest.next_due()
        ('b', 5.0)
        """
        if self.heap is None or self.heap[1][0] > now:
            return None, self
        key = self.heap[1][2]
        return key, self.discard(key)

    def discard(self, key: Hashable) -> WorkQueue:
        """The queue without the key."""
        if key not in self.due:
            return self
        due, heap, size = self.due.discard(key), self.heap, self.size
        # The head is always current, so that next_due() need not search.
        while heap is not None and due.get(heap[1][2]) != heap[1][:2]:
            heap, size = _merge(heap[2], heap[3]), size - 1
        return WorkQueue(due, heap, self.serial, size)

    def _swept(self) -> WorkQueue:
        heap: Heap = None
        for key, (at, serial) in self.due.items():
            heap = _merge(heap, (1, (at, serial, key), None, None))
        return WorkQueue(self.due, heap, self.serial, len(self.due))

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self.due, key=self.due.__getitem__))

    def __len__(self) -> int:
        return len(self.due)


EMPTY = WorkQueue(pmap(), None, 0, 0)
