"""A small immutable mapping: copied when it changes, as fast as a dict to read.

It is for mappings that are read at every step and seldom change, or that have a handful
of entries. Mappings with thousands of entries are persistent maps.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

__all__ = ["NOTHING", "Table"]

K = TypeVar("K")
V = TypeVar("V")


def _refuse_change(*_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError("a table is immutable; use set() or discard()")


class Table(dict[K, V]):
    """An immutable mapping that keeps its entries in the order of their insertion.

    >>> table = Table({"a": 1})
    >>> table.set("b", 2), table.discard("a"), table
    ({'a': 1, 'b': 2}, {}, {'a': 1})
    """

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse_change
    clear = pop = popitem = setdefault = update = _refuse_change

    def set(self, key: K, value: V) -> Table[K, V]:
        """Return a copy with this entry."""
        return Table({**self, key: value})

    def discard(self, key: Any) -> Table[K, V]:
        """Return a copy without this key."""
        if key not in self:
            return self
        return Table({each: value for each, value in self.items() if each != key})


# The empty table, for field defaults.
NOTHING: Table[Any, Any] = Table()
