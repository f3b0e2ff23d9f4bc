"""Write texts as differences from earlier texts, which makes a recording small.

An operator has seen most of its input before. The answer to a write comes again as a
watch event. A new version of an object differs from the last one in a few values. The
steps of one object resemble the steps of another. So a JSON text is cut at its commas
into members, and a member at its quotes into tokens. Only the tokens that differ from a
text in the memory are written. Cutting and joining are lossless for any text.

An entry, in a line of a recording, is one of

    [slot]                        the text that is in this slot
    [slot, base]                  the text of slot `base`, now in this slot, too
    [slot, base, n, m, "t", ...]  that text, but: n members further, token m is "t",
                                  and so on; the whole member is "t" where m is -1
    [slot, {...}]                 the text of this value
    [null, value]                 the text of a value that is not kept: it is long
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from itertools import compress
from operator import ne
from typing import Any

import orjson
from msgspec import Struct

from fnop.effects.structs import replace

__all__ = ["MEMORY_BYTES", "DeltaReader", "DeltaWriter", "Written"]

# The memory of a writer; a reader needs the same amount.
MEMORY_BYTES = 8 * 1024 * 1024
_COMMA, _QUOTE = b",", b'"'
_TEXT_MAX = MEMORY_BYTES // 16
# A text is written as it is if more than this part of it differs.
_PART_MAX = 0.5


class _Kept(Struct, frozen=True):
    """A text in the memory, with the number of its members."""

    slot: int
    text: bytes
    size: int
    watched: bool


class Written(Struct, frozen=True):
    """An entry; `news` are the members of its text that were not in the memory.

    If the entry is a difference from a watched text, the whole text counts as news.
    """

    entry: bytes
    news: bytes


class DeltaWriter:
    """Writes JSON texts as entries, with a memory of at most `size` bytes of text.

    `forget` takes back everything written since the last `keep`, as if it had never
    been written.
    """

    def __init__(self, size: int = MEMORY_BYTES) -> None:
        self._limit, self._size = size, 0
        self._known: OrderedDict[Hashable, _Kept] = OrderedDict()
        # The key of the last text of a family with this number of members.
        self._alike: dict[tuple[Hashable, int], Hashable] = {}
        self._next = 0
        self._free: list[int] = []

        # The same since the last `keep`, and the slots taken since then.
        self._new: dict[Hashable, _Kept] = {}
        self._new_alike: dict[tuple[Hashable, int], Hashable] = {}
        self._taken: list[int] = []

    def write(self, key: Hashable, family: Hashable, text: bytes) -> Written:
        """The entry of a text, which becomes the last text of this key.

        `text` must be as `orjson` writes it. It is written as the difference from the
        last text of the key. Otherwise it is the difference from the last text of its
        family with the same number of members.
        """
        before = self._find_kept(key)
        if before is not None and before.text == text:
            return Written(b"[%d]" % before.slot, text if before.watched else b"")
        if len(text) > _TEXT_MAX or text[:1] != b"{":
            return Written(b"[null,%b]" % text, text)
        members = text.split(_COMMA)
        count = len(members)
        base = self._base_text(before, family, count)
        found = (
            None if base is None else _difference_of(base.text.split(_COMMA), members)
        )
        slot = self._take_slot() if before is None else before.slot
        is_watched = False
        if base is None or found is None:
            entry, news = b"[%d,%b]" % (slot, text), text
        else:
            entry = orjson.dumps([slot, base.slot, *found.changes])
            is_watched = base.watched
            news = text if is_watched else found.news
        self._new[key] = _Kept(slot, text, count, is_watched)
        self._new_alike[family, count] = key
        return Written(entry, news)

    def watch(self, key: Hashable) -> None:
        """Count as news all texts written as differences from the text of this key."""
        found = self._find_kept(key)
        if found is not None and not found.watched:
            self._new[key] = replace(found, watched=True)

    def text_of(self, key: Hashable) -> bytes | None:
        """The last text of a key, or None if the memory no longer has it."""
        found = self._find_kept(key)
        return None if found is None else found.text

    def _find_kept(self, key: Hashable) -> _Kept | None:
        return self._new.get(key) or self._known.get(key)

    def _base_text(
        self, before: _Kept | None, family: Hashable, count: int
    ) -> _Kept | None:
        """The text to write a difference from; it has the same number of members."""
        if before is not None and before.size == count:
            return before
        alike = family, count
        other = self._new_alike.get(alike, self._alike.get(alike))
        found = None if other is None else self._find_kept(other)
        return found if found is not None and found.size == count else None

    def _take_slot(self) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._next = self._next, self._next + 1
        self._taken.append(slot)
        return slot

    def keep(self) -> None:
        """Keep the texts written so far, and forget the oldest to make room."""
        for key, kept in self._new.items():
            before = self._known.pop(key, None)
            self._size += len(kept.text) - (0 if before is None else len(before.text))
            self._known[key] = kept
        self._alike |= self._new_alike
        self._clear_new()
        while self._size > self._limit and len(self._known) > 1:
            key, oldest = self._known.popitem(last=False)
            self._size -= len(oldest.text)
            self._free.append(oldest.slot)
        if len(self._alike) > 2 * len(self._known) + _ALIKE_SPARE:
            self._alike = {a: k for a, k in self._alike.items() if k in self._known}

    def forget(self) -> None:
        """Take back what was written since the last `keep`."""
        self._free += reversed(self._taken)
        self._clear_new()

    def _clear_new(self) -> None:
        self._new, self._new_alike, self._taken = {}, {}, []


_ALIKE_SPARE = 1024


_NUMBERS = range(_TEXT_MAX + 1)


class _Difference(Struct, frozen=True):
    changes: list[int | str]
    news: bytes


def _difference_of(base: list[bytes], members: list[bytes]) -> _Difference | None:
    """The difference of texts with equally many members; None if it is large."""
    places = [*compress(_NUMBERS, map(ne, base, members))]
    if len(places) > _PART_MAX * len(members) + 1:
        return None
    changes: list[int | str] = []
    last = 0
    for place in places:
        member = members[place]
        was, is_ = base[place].split(_QUOTE), member.split(_QUOTE)
        if len(was) != len(is_):
            changes += (place - last, -1, member.decode())
            last = place
            continue
        for token in compress(_NUMBERS, map(ne, was, is_)):
            changes += (place - last, token, is_[token].decode())
            last = place
    return _Difference(changes, _COMMA.join([members[place] for place in places]))


class DeltaReader:
    """Reads entries back to texts, with a memory of at most `size` bytes of text.

    A file may be hostile. `read` raises `ValueError` for anything that is not an entry,
    or that needs more memory than any writer has.
    """

    def __init__(self, size: float = 4 * MEMORY_BYTES) -> None:
        self._limit, self._size = size, 0
        self._known: dict[int, bytes] = {}

    def read(self, entry: Any) -> bytes:
        """The text of an entry; raises `ValueError`."""
        match entry:
            case [int(slot)]:
                return self._text(slot)
            case [None, value]:
                return orjson.dumps(value)
            case [int(slot), dict(value)]:
                text = orjson.dumps(value)
            case [int(slot), int(base), *changes]:
                text = self._text(base)
                text = _text_with_changes(text, changes) if changes else text
            case _:
                raise ValueError(f"no entry: {str(entry)[:80]}")
        before = self._known.get(slot)
        self._size += len(text) - (0 if before is None else len(before))
        if self._size > self._limit:
            raise ValueError("it refers to more texts than a recording keeps")
        self._known[slot] = text
        return text

    def _text(self, slot: int) -> bytes:
        found = self._known.get(slot)
        if found is None:
            raise ValueError(f"it refers to a text {slot}, which is not there")
        return found


def _text_with_changes(text: bytes, changes: list[Any]) -> bytes:
    members, place = text.split(_COMMA), 0
    each = iter(changes)
    try:
        for skipped, token, new in zip(each, each, each, strict=True):
            place += skipped
            if token == -1:
                members[place] = new.encode()
            else:
                tokens = members[place].split(_QUOTE)
                tokens[token] = new.encode()
                members[place] = _QUOTE.join(tokens)
            if skipped < 0 or token < -1:
                raise ValueError("a difference goes back")
    except IndexError:
        raise ValueError("a difference goes on after the end of its text") from None
    except (TypeError, AttributeError):
        raise ValueError("a difference is not made of numbers and texts") from None
    return _COMMA.join(members)
