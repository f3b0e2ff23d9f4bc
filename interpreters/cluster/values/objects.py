"""Stored objects, their keys, their equality, and timestamps."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

__all__ = ["Key", "Object", "Resource", "same", "timestamp", "without_nulls"]

Object = dict[str, Any]
Resource = tuple[str, str]  # group, plural
Key = tuple[str, str]  # namespace ("" if it has none), name


def same(new: Any, old: Any) -> bool:
    """Whether values are equal as JSON: only in Python, true is 1.

    >>> same({"a": True}, {"a": 1})
    False
    """
    if new is old:
        return True
    options = orjson.OPT_SORT_KEYS
    return bool(new == old) and orjson.dumps(new, option=options) == orjson.dumps(
        old, option=options
    )


def without_nulls(value: Any) -> Any:
    """A value without the fields that are null, at any depth.

    >>> without_nulls({"a": None, "b": [{"c": None}, None]})
    {'b': [{}, None]}
    """
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [*map(without_nulls, value)]
    return value


@lru_cache(maxsize=1024)
def _rfc3339(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(now: float) -> str:
    """The wall clock as `metav1.Time` prints it: whole seconds, UTC.

    >>> timestamp(0.9)
    '1970-01-01T00:00:00Z'
    """
    return _rfc3339(int(now))
