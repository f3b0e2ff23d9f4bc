"""The sources of a value: the answers and the indices that an attempt was given.

No recording holds what the author's code did with them. But a value that equals one
that the code was given is probably that value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.values.body import Key
from fnop.core.values.paths import FieldPath
from fnop.effects import Answer, Applied
from fnop.effects.values import same_json
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.effects import has_answer

__all__ = ["IndexEntry", "Reply", "Source", "equal_to", "replies"]

Json = Mapping[str, Any]


class Reply(Struct, frozen=True):
    """An answer that an attempt was given: to which effect, and in which step."""

    asked: Json
    step: int


class IndexEntry(Struct, frozen=True):
    """An entry of an index that an attempt could read, and the object of the entry."""

    name: str
    key: Any
    object: Key


class Source(Struct, frozen=True):
    """A value equal to the one in question: its origin, and its path there."""

    of: Reply | IndexEntry
    path: FieldPath


def replies(attempt: Attempt, until: int) -> Iterator[tuple[Reply, Any]]:
    """The answers of an attempt up to a step, with their values."""
    for each in attempt.exchanges:
        if not has_answer(each.asked["is"]) or not 0 < each.answered <= until:
            continue
        match each.outcome:
            case Answer(value=value) | Applied(object=value):
                yield Reply(each.asked, each.answered), value
            case _:
                pass


def equal_to(value: Any, attempt: Attempt, until: int) -> Iterator[Source]:
    """The answers and the entries of indices that hold an equal value."""
    if not _is_telling(value):
        return
    for reply, given in replies(attempt, until):
        for path in _places(value, given):
            yield Source(reply, path)
    for name, index in sorted(attempt.indices.items()):
        for key, of, held in index.entries():
            for path in _places(value, held):
                yield Source(IndexEntry(name, key, of), path)


def _is_telling(value: Any) -> bool:
    """Whether equality with this value is unlikely to be a coincidence.

    >>> [_is_telling(each) for each in ("gold", 42, True, 1, "", None, [])]
    [True, True, False, False, False, False, False]
    """
    match value:
        case None | bool() | 0 | 1:
            return False
        case str():
            return len(value) > 1
        case dict() | list():
            return bool(value)
        case _:
            return True


def _places(value: Any, given: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """The paths at which something holds a value."""
    if same_json(value, given):
        yield path
    elif isinstance(given, dict):
        for name, each in given.items():
            yield from _places(value, each, (*path, str(name)))
    elif isinstance(given, list | tuple):
        for number, each in enumerate(given):
            yield from _places(value, each, (*path, number))
