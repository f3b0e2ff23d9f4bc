"""Memos: what an operator remembers in its process, for itself and for each object."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["Memo", "Memos"]


class Memo(dict[str, Any]):
    """A dict whose keys are attributes, too.

    >>> memo = Memo(size=1)
    >>> memo.size += 1
    >>> memo["size"]
    2
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None


class Memos:
    """The memo of an operator, and those of its objects by their uids.

    An object's memo begins as a shallow copy of the operator's, and ends with the
    object.

    >>> memos = Memos(Memo(lock="x"))
    >>> memos.of("u").lock, memos.of("u") is memos.of("u")
    ('x', True)
    """

    def __init__(self, memo: Any) -> None:
        self.own = memo
        self._by_uid: dict[str, Any] = {}

    def of(self, uid: str, *, keep: bool = True) -> Any:
        """The memo of an object. A new one is for one use if it is not to be kept."""
        if uid in self._by_uid:
            return self._by_uid[uid]
        memo = copy.copy(self.own)
        if keep:
            self._by_uid[uid] = memo
        return memo

    def forget(self, uid: str) -> None:
        """Forget a deleted object."""
        self._by_uid.pop(uid, None)
