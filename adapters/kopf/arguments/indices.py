"""Kopf's indices: live values of the process, which the core keeps as they are."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

__all__ = ["Index", "Kept", "Store", "kept"]


class Kept:
    """A value of an index, of any type: the core neither reads nor copies it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Kept({self.value!r})"


def kept(found: Any) -> dict[Any, Any] | None:
    """The result of an index function in the form of the core.

    >>> kept({"a": 1}), kept(5), kept(None)
    ({'a': Kept(1)}, {None: Kept(5)}, None)
    """
    if found is None:
        return None
    given = found if isinstance(found, Mapping) else {None: found}
    return {key: Kept(value) for key, value in given.items()}


class Store(Collection[Any]):
    """The values of all objects under one key of an index, as they are at each access.

    `look` returns them. A store that an author keeps has the newest ones, too; a deep
    copy has those of its time.
    """

    def __init__(self, look: Callable[[], Iterable[Any]]) -> None:
        self._look = look

    def __len__(self) -> int:
        return len(tuple(self._look()))

    def __iter__(self) -> Iterator[Any]:
        return iter(tuple(self._look()))

    def __contains__(self, value: object) -> bool:
        return value in tuple(self._look())

    def __deepcopy__(self, memo: dict[int, Any]) -> Store:
        values = copy.deepcopy(tuple(self), memo)
        return Store(lambda: values)

    def __repr__(self) -> str:
        return repr(list(self))


class Index(Mapping[Any, Store]):
    """An index as it is at each access: keys with stores of values.

    `look` returns the core's index, or None before the operator serves. A deep copy is
    the index as it is now.
    """

    def __init__(self, look: Callable[[], Mapping[Any, Any] | None]) -> None:
        self._look = look

    def _found(self) -> Mapping[Any, Any]:
        return self._look() or {}

    def __getitem__(self, key: Any) -> Store:
        _ = self._found()[key]  # or it is missing

        def values() -> list[Any]:
            return [each.value for each in self._found().get(key, ())]

        return Store(values)

    def __deepcopy__(self, memo: dict[int, Any]) -> Index:
        found = {
            copy.deepcopy(key, memo): [
                Kept(copy.deepcopy(each.value, memo)) for each in values
            ]
            for key, values in self._found().items()
        }
        return Index(lambda: found)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def __contains__(self, key: object) -> bool:
        found = self._found()
        try:
            found[key]
        except (KeyError, TypeError):
            return False
        return True

    def __repr__(self) -> str:
        return repr({key: list(store) for key, store in self.items()})
