"""Field paths as people write them: `spec.ports[0].port`, `conditions[type=Ready]`.

A key with dots is in brackets, as in `metadata.labels[app.kubernetes.io/name]`. An
element of a list is named by its number, or by one of its fields, as Kubernetes does
with lists of mappings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.values.diff import path_at
from fnop.effects.regexes import regex
from fnop.effects.values import same_json

__all__ = [
    "Contrast",
    "Element",
    "FieldPath",
    "Part",
    "contrasts",
    "element_of",
    "find",
    "names_of",
    "parse_path",
    "path_text",
]


class Element(Struct, frozen=True):
    """The element of a list whose field `key` has this value, as text."""

    key: str
    value: str


Part = str | int | Element
FieldPath = tuple[Part, ...]

# A name; or in brackets a number, key=value, or a name with dots.
_PART = regex(r"(?:^|\.)([^.\[\]]+)|\[([^\[\]]+)\]")
_ELEMENT = regex(r"([A-Za-z][A-Za-z0-9]*)=(.*)", re.DOTALL)


def parse_path(text: str) -> FieldPath:
    """The path that a person has written.

    Raises `ValueError` with a sentence for anything else.

    >>> parse_path("metadata.labels[e.com/a]")
    ('metadata', 'labels', 'e.com/a')
    >>> parse_path("status.conditions[type=Ready].status")
    ('status', 'conditions', Element(key='type', value='Ready'), 'status')
    >>> parse_path("spec.ports[0]"), parse_path(".kind")
    (('spec', 'ports', 0), ('kind',))
    """
    if "/" in text.partition(".")[0].partition("[")[0]:
        plain = path_text(path_at(f"/{text.removeprefix('/')}"))
        raise ValueError(f"{text!r} is a JSON pointer; write {plain}")
    given = text.removeprefix(".")
    found: list[Part] = []
    at = 0
    while at < len(given):
        part = _PART.match(given, at)
        if part is None or (at == 0 and part[1] is None):
            break
        found.append(part[1] or _parse_bracket(part[2]))
        at = part.end()
    if not found or at < len(given):
        raise ValueError(
            f"{text!r} is not a path of a field; write it as in status.phase, "
            "spec.ports[0].port, status.conditions[type=Ready] or "
            "metadata.labels[app.kubernetes.io/name]"
        )
    return tuple(found)


def _parse_bracket(text: str) -> Part:
    if text.isdecimal():
        return int(text)
    found = _ELEMENT.fullmatch(text)
    return text if found is None else Element(found[1], found[2])


def path_text(path: Sequence[Part]) -> str:
    """A path in the form that `parse_path` reads.

    >>> path_text(("status", "conditions", Element("type", "Ready"), "status"))
    'status.conditions[type=Ready].status'
    >>> path_text(("data", "app.conf")), path_text(("spec", "ports", 0))
    ('data[app.conf]', 'spec.ports[0]')
    """
    found = ""
    for part in path:
        match part:
            case Element(key, value):
                found += f"[{key}={value}]"
            case str() if found and not _is_plain(part):
                found += f"[{part}]"
            case str():
                found += f".{part}" if found else part
            case _:
                found += f"[{part}]"
    return found


def _is_plain(name: str) -> bool:
    return bool(name) and not name.isdecimal() and not any(e in name for e in ".[]")


def names_of(path: Sequence[Part]) -> tuple[str, ...]:
    """The names on a path, up to the first list.

    >>> names_of(("spec", "ports", 0, "port"))
    ('spec', 'ports')
    """
    names = takewhile(lambda part: isinstance(part, str), path)
    return tuple(str(each) for each in names)


def find(value: Any, path: Sequence[Part]) -> Any:
    """The value at a path; None without one.

    >>> find({"a": [{"name": "x", "n": 1}]}, parse_path("a[name=x].n"))
    1
    >>> find({"a": [5, 6]}, ("a", 1)), find({"a": {"1": 7}}, ("a", 1))
    (6, 7)
    """
    for part in path:
        value = element_of(value, part)
    return value


def element_of(value: Any, part: Part) -> Any:
    """The item of a mapping or a list for one part of a path; None without one."""
    match value, part:
        case Mapping(), Element(key, text):
            return value.get(f"{key}={text}")
        case Mapping(), _:
            return value.get(str(part))
        case list(), int():
            return value[part] if part < len(value) else None
        case list(), Element(key, text):
            named = (each for each in value if isinstance(each, Mapping))
            return next(
                (each for each in named if _scalar_text(each.get(key)) == text), None
            )
        case _:
            return None


def _scalar_text(value: Any) -> str | None:
    """A scalar as written in a path.

    >>> _scalar_text("Ready"), _scalar_text(80), _scalar_text(True), _scalar_text([])
    ('Ready', '80', 'true', None)
    """
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case _:
            return None


# --------------------------------------------------------------------- two values


class Contrast(NamedTuple):
    """A field that differs, with its two values; None for an absent one."""

    path: FieldPath
    old: Any
    new: Any


# The fields that name the elements of a list, by the API's conventions.
_KEYS = ("type", "name", "key", "uid", "ip", "containerPort", "port", "kind")


def contrasts(old: Any, new: Any, path: FieldPath = ()) -> Iterator[Contrast]:
    """The fields that differ in two values, also within lists.

    Elements of lists of mappings are paired by the field that names them, other
    elements by their numbers.

    >>> old = [{"type": "Ready", "status": "False"}, {"type": "Synced"}]
    >>> new = [{"type": "Synced"}, {"type": "Ready", "status": "True"}]
    >>> for each in contrasts(old, new):
    ...     print(path_text(each.path), each.old, each.new)
    [type=Ready].status False True
    """
    match old, new:
        case dict(), dict():
            for key in sorted({**old, **new}):
                yield from contrasts(old.get(key), new.get(key), (*path, key))
        case list(), list():
            parts = _parts_of_lists(old, new)
            for part in parts:
                pair = element_of(old, part), element_of(new, part)
                yield from contrasts(*pair, (*path, part))
        case _:
            if not same_json(old, new):
                yield Contrast(path, old, new)


def _parts_of_lists(old: list[Any], new: list[Any]) -> list[Part]:
    """The elements of two lists: by the first field that names all, or by numbers."""
    for key in _KEYS:
        names = [_unique_names(each, key) for each in (old, new)]
        if all(each is not None for each in names):
            both = dict.fromkeys(name for each in names for name in each or ())
            return [Element(key, name) for name in both]
    return [*range(max(len(old), len(new)))]


def _unique_names(values: list[Any], key: str) -> list[str] | None:
    """The values of a field in all elements; None if they are not unique."""
    found = [
        _scalar_text(each.get(key)) if isinstance(each, dict) else None
        for each in values
    ]
    names = [each for each in found if each is not None]
    return names if len(names) == len(values) == len({*names}) else None
