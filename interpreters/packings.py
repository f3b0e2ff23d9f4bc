"""Large collections in less memory: the texts of their objects are packed."""

from __future__ import annotations

from fnop.core.values.body import Body
from fnop.core.values.packing import Packing

__all__ = ["Packings"]

# Fewer objects are kept as they came: packing a text takes as long as parsing it ten
# times.
PLAIN_MAX = 1000


class Packings:
    """The packing of each kind, made with the text of the first object that is packed.

    It is a cache, and no part of the state: bodies are equal, packed or not.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, Packing] = {}

    def pack(self, body: Body, kind: str, objects: int) -> None:
        """Pack the text of a body, if the operator follows many objects."""
        if objects <= PLAIN_MAX or not body.has_text:
            return
        packing = self._known.get(kind)
        if packing is None:
            packing = self._known[kind] = Packing(body.raw)
        body.pack(packing)
