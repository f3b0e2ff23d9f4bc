"""Merge patches (RFC 7386) and JSON patches (RFC 6902) as pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.effects.values import same_json

__all__ = ["collisions", "effective", "merged", "operations", "pointer"]


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two merge patches as one; where they disagree, the later wins.

    >>> merged({"a": {"b": 1}}, {"a": {"c": None}})
    {'a': {'b': 1, 'c': None}}
    """
    found = dict(one)
    for key, value in other.items():
        mine = found.get(key)
        if isinstance(mine, dict) and isinstance(value, dict):
            found[key] = merged(mine, value)
        else:
            found[key] = value
    return found


def collisions(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Fields to which two merge patches give different values, as pointers.

    >>> collisions({"a": {"b": 1}}, {"a": {"b": 2}})
    ['/a/b']
    """
    found: list[str] = []
    for key in sorted(one.keys() & other.keys()):
        mine, theirs = one[key], other[key]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            found += [pointer((key,)) + deeper for deeper in collisions(mine, theirs)]
        elif not same_json(mine, theirs):
            found.append(pointer((key,)))
    return found


def effective(patch: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a merge patch that would change `base`: no-ops are dropped.

    >>> effective({"a": 1, "b": None, "c": {"d": 2}}, {"a": 1, "c": {"d": 1}})
    {'c': {'d': 2}}
    """
    found: dict[str, Any] = {}
    for key, value in patch.items():
        if value is None:
            if base.get(key) is not None:
                found[key] = None
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            deeper = effective(value, base[key])
            if deeper:
                found[key] = deeper
        elif key not in base or not same_json(_without_nulls(value), base[key]):
            found[key] = value
    return found


def _without_nulls(value: Any) -> Any:
    """What a merge patch leaves of a new subtree: RFC 7386 drops its nulls."""
    if not isinstance(value, dict):
        return value
    return {
        key: _without_nulls(item) for key, item in value.items() if item is not None
    }


def operations(
    patch: Mapping[str, Any], base: Mapping[str, Any], path: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """A merge patch against `base` as JSON patch operations.

    >>> operations({"a": {"b": 1}}, {"a": {}})
    [{'op': 'add', 'path': '/a/b', 'value': 1}]
    """
    found: list[dict[str, Any]] = []
    for key, value in effective(patch, base).items():
        here = (*path, key)
        if value is None:
            found.append({"op": "remove", "path": pointer(here)})
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            found += operations(value, base[key], here)
        else:
            # `add` also replaces an existing member (RFC 6902, 4.1).
            value = _without_nulls(value)
            found.append({"op": "add", "path": pointer(here), "value": value})
    return found


def pointer(path: tuple[str, ...]) -> str:
    """The JSON pointer of a path (RFC 6901)."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)
