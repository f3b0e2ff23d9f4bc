"""Large collections in less memory: the texts of their objects are packed."""

from __future__ import annotations

from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body
from fnop.core.values.packing import Packing

__all__ = ["PLAIN_MAX", "Packings"]

# Up to this number, objects are kept as they came: packing a text takes as long as
# parsing it ten times.
PLAIN_MAX = 1000


class Packings:
    """The packing of each kind, made with the texts of its first objects.

    It is a cache, not a part of the state: bodies are equal, packed or not.
    """

    __slots__ = ("_first", "_known")

    def __init__(self) -> None:
        self._first: dict[str, bytes] = {}
        self._known: dict[str, Packing] = {}

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
