"""Large collections in less memory: the texts of their objects are packed."""

from __future__ import annotations

from collections import OrderedDict

from fnop.core.state.objects import Objects
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body, Key
from fnop.core.values.packing import Packing

__all__ = ["PLAIN_MAX", "Packings"]

# Up to this number, objects are kept as they came: packing a text takes as long as
# parsing it ten times.
PLAIN_MAX = 1000
# The most objects that are looked at after a step. An event adds one object to the
# line, so the line gets shorter with each step.
_LOOKS = 2


class Packings:
    """The packing of each kind, made with the texts of its first objects.

    It is a cache, not a part of the state: bodies are equal, packed or not. An object
    is packed when it is at rest, and not while it waits for its handlers.
    """

    __slots__ = ("_first", "_known", "_line")

    def __init__(self) -> None:
        self._first: dict[str, bytes] = {}
        self._known: dict[str, Packing] = {}
        self._line: OrderedDict[Key, None] = OrderedDict()

    def enqueue(self, key: Key) -> None:
        """Pack an object when it is at rest."""
        self._line[key] = None

    def pack_rested(self, objects: Objects, now: float) -> None:
        """Pack the next objects of the line that are at rest at a monotonic time."""
        line = self._line
        for _ in range(min(_LOOKS, len(line))):
            key, _nothing = line.popitem(last=False)
            record = objects.records.get(key)
            if record is None:
                continue
            due = objects.queue.due.get(key)
            if record.is_at_rest and (due is None or due[0] > now):
                self.pack(key.resource, record.body, record)
            else:
                line[key] = None

    def pack(self, kind: str, body: Body, record: ObjectRecord | None) -> None:
        """Pack the text of an object, and the former values in its record."""
        packing = self._packing_of(kind, body)
        if packing is None:
            body.forget()
            return
        seen = None if record is None else record.stored.seen
        if seen is not None and seen.values is not None:
            seen.values.pack(body)
        body.pack(packing)

    def _packing_of(self, kind: str, body: Body) -> Packing | None:
        """The packing of a kind; None until two of its objects are known.

        Two objects show the differences from one to the next, and more add little. The
        window of the compressor holds only some of them, and takes longer to search.
        """
        packing = self._known.get(kind)
        if packing is not None:
            return packing
        first = self._first.pop(kind, None)
        if first is None:
            self._first[kind] = body.raw
            return None
        packing = self._known[kind] = Packing(first + body.raw)
        return packing
