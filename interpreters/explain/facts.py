"""The facts that were read about an object, and careful reading of them.

Others wrote everything here. Any part may be missing, have another type, or be meant to
confuse. Malformed parts count as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource, Selectors
from fnop.core.handlers.declare.settings import Settings
from fnop.core.values.now import parse_time

__all__ = [
    "ChildFact",
    "Evidence",
    "HandlerFact",
    "Recorded",
    "Requested",
    "fields_within",
    "items",
    "line",
    "mapping",
    "moment",
    "unique",
]

# The most characters that are shown of a text written by others.
TEXT_LENGTH_MAX = 1024
# Trees of managed fields are as deep as the object; no schema has this many levels.
_DEPTH_MAX = 64


class ChildFact(Struct, frozen=True):
    """A child as it was read: its kind, and its JSON form (only metadata for a Secret).

    `depth` is 0 for a child, 1 for an object that a child owns, and so on.
    """

    resource: Resource
    body: Mapping[str, Any]
    depth: int = 0


class HandlerFact(Struct, frozen=True):
    """A handler of the object's kind: its role, and whether its filters match.

    `fits` is None if one of the author's filters has failed. `place` is the file and
    line.
    """

    id: str
    role: str
    fits: bool | None
    place: str = ""


class Requested(Struct, frozen=True):
    """The way the operator lists and watches the object's kind.

    `metadata_only` means that handlers look only at metadata.
    """

    selectors: Selectors
    metadata_only: bool


class Recorded(Struct, frozen=True):
    """A line of a recording's story: the time (Unix seconds), the actor, the text."""

    at: float
    who: str
    what: str


class Evidence(Struct, frozen=True):
    """Everything that was read about one object, at `wall` (Unix seconds).

    `settings` are the settings of the operator in question. `leases` and `peerings` are
    the objects that show living operators; `sees_operators` is whether these could be
    read. `handlers` and `recorded` are None if no file was given, as is `requested`.
    `unread` has a sentence for each thing that could not be read.
    """

    resource: Resource
    body: Mapping[str, Any]
    wall: float
    settings: Settings
    events: tuple[Mapping[str, Any], ...] = ()
    children: tuple[ChildFact, ...] = ()
    leases: tuple[Mapping[str, Any], ...] = ()
    peerings: tuple[Mapping[str, Any], ...] = ()
    sees_operators: bool = True
    handlers: tuple[HandlerFact, ...] | None = None
    recorded: tuple[Recorded, ...] | None = None
    unread: tuple[str, ...] = ()
    requested: Requested | None = None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one.

    >>> mapping({"a": 1}), mapping("a")
    ({'a': 1}, {})
    """
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Iterator[Mapping[str, Any]]:
    """The mappings in a list.

    >>> [*items([{"a": 1}, 7])], [*items(None)]
    ([{'a': 1}], [])
    """
    found = value if isinstance(value, (list, tuple)) else ()
    return (each for each in found if isinstance(each, Mapping))


def line(value: Any, length: int = TEXT_LENGTH_MAX) -> str:
    """A text written by others, of bounded length; "" for any other value.

    >>> line("abc"), line("abcdef", 4), line(7), line(None)
    ('abc', 'abc…', '7', '')
    """
    if value is None or isinstance(value, (Mapping, list, tuple)):
        return ""
    text = str(value)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def moment(value: Any) -> float | None:
    """The Unix time of a text; None for anything else.

    >>> moment("1970-01-01T00:00:01Z"), moment("soon"), moment(None)
    (1.0, None, None)
    """
    if not isinstance(value, str):
        return None
    try:
        return parse_time(value)
    except (ValueError, OverflowError):
        return None


def fields_within(tree: Any) -> tuple[str, ...]:
    """The paths of the fields in a tree of `managedFields` (FieldsV1), in order.

    >>> fields_within({"f:spec": {".": {}, "f:size": {}, "f:ports": {
    ...     'k:{"port":80}': {".": {}, "f:name": {}}}}})
    ('spec.ports[port=80].name', 'spec.size')
    """
    return tuple(sorted(_leaf_paths(tree)))


def _leaf_paths(tree: Any) -> Iterator[str]:
    waiting: list[tuple[str, Any, int]] = [("", tree, 0)]
    while waiting:
        path, found, depth = waiting.pop()
        below = [key for key in mapping(found) if key != "."]
        if path and (not below or depth >= _DEPTH_MAX):
            yield path
        elif depth < _DEPTH_MAX:
            waiting += [(_path_below(path, str(k)), found[k], depth + 1) for k in below]


def _path_below(path: str, key: str) -> str:
    kind, _, name = key.partition(":")
    if kind == "f":
        return f"{path}.{name}" if path else name
    words = name.strip("{}").replace('"', "").replace(":", "=")
    return f"{path}[{words}]"


def unique(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without duplicates, in order."""
    return tuple(dict.fromkeys(texts))
