"""The differences between an object before and after, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from fnop.effects.values import same_json

__all__ = [
    "UNKNOWN",
    "FieldChange",
    "changed_fields",
    "known_part",
    "unknown_of",
    "without_server_fields",
]

# The fields that the API server counts and sets by itself.
_SERVER_FIELDS = frozenset(
    ("managedFields", "resourceVersion", "generation", "selfLink")
)
# The fields that the server sets on a new object, and those that name it.
_NEW_FIELDS = _SERVER_FIELDS | {"uid", "creationTimestamp", "name", "namespace"}
UNKNOWN = "(known once it is written)"


class FieldChange(NamedTuple):
    """A field that changes: its path with dots, and its values (None: absent).

    A value that is `unknown` becomes known once it is written.
    """

    path: str
    old: Any
    new: Any
    unknown: bool = False


def unknown_of(value: Any, other: Any) -> Any:
    """The parts of a value that differ in another run from the same state.

    True if the values differ, else False. Mappings and lists keep their shape, with
    True at the parts that differ. Mappings have only the keys of such parts. A list
    whose items all differ is unknown as a whole.

    >>> unknown_of({"a": 1, "b": {"c": "x", "d": 2}}, {"a": 1, "b": {"c": "y", "d": 2}})
    {'b': {'c': True}}
    >>> unknown_of([1, "x"], [1, "y"]), unknown_of([1], [1, 2]), unknown_of([1], [2])
    ([False, True], True, True)
    >>> unknown_of(1, 1)
    False
    """
    if isinstance(value, dict) and isinstance(other, dict):
        keys = dict.fromkeys((*value, *other))
        parts = {each: unknown_of(value.get(each), other.get(each)) for each in keys}
        return {key: part for key, part in parts.items() if part} or False
    if isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
        found = [unknown_of(*each) for each in zip(value, other, strict=True)]
        if not any(found):
            return False
        return True if all(each is True for each in found) else found
    return not same_json(value, other)


def known_part(value: Any, unknown: Any) -> Any:
    """A value without its unknown parts; in a list None stands for them.

    >>> known_part({"a": 1, "b": [1, "x"]}, {"b": [False, True]})
    {'a': 1, 'b': [1, None]}
    """
    if unknown is True:
        return None
    if isinstance(unknown, dict) and isinstance(value, dict):
        return {
            key: known_part(each, unknown.get(key, False))
            for key, each in value.items()
            if unknown.get(key) is not True
        }
    if isinstance(unknown, list) and isinstance(value, list):
        return [known_part(*each) for each in zip(value, unknown, strict=False)]
    return value


def changed_fields(old: Any, new: Any, unknown: Any = False) -> tuple[FieldChange, ...]:
    """The fields that differ, in the order of their paths.

    Lists of equal lengths are compared item by item. Empty values count as absent. In a
    new list, a text stands for the parts that are unknown.

    >>> changed_fields({"a": {"b": 1}, "c": []}, {"a": {"b": 2}})
    (FieldChange(path='a.b', old=1, new=2, unknown=False),)
    >>> [each.path for each in changed_fields({"a": [{"x": 1}]}, {"a": [{"x": 2}]})]
    ['a[0].x']
    >>> changed_fields(None, [{"x": 1, "y": 2}], [{"y": True}])[0].new
    [{'x': 1, 'y': '(known once it is written)'}]
    """
    return tuple(_field_changes(old, new, unknown, ""))


def _field_changes(
    old: Any, new: Any, unknown: Any, path: str
) -> Iterator[FieldChange]:
    old, new = _none_if_empty(old), _none_if_empty(new)
    if unknown is True:
        yield FieldChange(path, old, None, unknown=True)
    elif isinstance(new, dict) and isinstance(old, dict | None):
        parts = unknown if isinstance(unknown, dict) else {}
        before = old or {}
        for key in sorted({*before, *new, *parts}):
            part = parts.get(key, False)
            yield from _field_changes(
                before.get(key), new.get(key), part, _path_below(path, key)
            )
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        marks = unknown if isinstance(unknown, list) else [False] * len(new)
        for place, each in enumerate(zip(old, new, marks, strict=True)):
            yield from _field_changes(*each, f"{path}[{place}]")
    elif not same_json(old, new):
        yield FieldChange(path, old, _value_with_unknown(new, unknown))


def _value_with_unknown(value: Any, unknown: Any) -> Any:
    """A value with a text in the place of each unknown part."""
    if unknown is True:
        return UNKNOWN
    if isinstance(unknown, dict) and isinstance(value, dict):
        return {
            key: _value_with_unknown(each, unknown.get(key, False))
            for key, each in value.items()
        }
    if isinstance(unknown, list) and isinstance(value, list):
        return [
            _value_with_unknown(*each) for each in zip(value, unknown, strict=False)
        ]
    return value


def _none_if_empty(value: Any) -> Any:
    return None if value in ({}, []) else value


def _path_below(path: str, key: str) -> str:
    """The path of a key: one with dots is put in brackets.

    >>> _path_below("metadata", "name"), _path_below("", "a")
    ('metadata.name', 'a')
    >>> _path_below("metadata.labels", "a.io/b")
    'metadata.labels["a.io/b"]'
    """
    if "." in key:
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def without_server_fields(body: dict[str, Any], *, new: bool = False) -> dict[str, Any]:
    """The object without the fields that the API server counts and sets by itself.

    For a `new` object also without its address, its uid and its time.
    """
    left_out = _NEW_FIELDS if new else _SERVER_FIELDS
    metadata = body.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in left_out}
    head = ("apiVersion", "kind") if new else ()
    found = {key: value for key, value in body.items() if key not in head}
    return {**found, "metadata": kept}
