"""JSON values as Go's messages write them."""

from __future__ import annotations

from typing import Any

import orjson

__all__ = ["go_json", "go_name", "go_text"]


def go_json(value: Any) -> str:
    """JSON as Go writes it into messages: keys in order, 2.0 as 2."""
    if type(value) is float and value.is_integer() and abs(value) < 2**63:
        value = int(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def go_name(value: Any) -> str:
    """The name of a JSON type in Go's decoder.

    >>> go_name([])
    'array'
    """
    if isinstance(value, bool):
        return "bool"
    names = {dict: "object", list: "array", str: "string", int: "number"}
    return names.get(type(value), "number" if isinstance(value, float) else "null")


def go_text(value: Any) -> str:
    """A JSON value as Go's `%v` prints it.

    >>> go_text({"b": [1, True], "a": None})
    'map[a:<nil> b:[1 true]]'
    """
    if isinstance(value, dict):
        items = (f"{name}:{go_text(value[name])}" for name in sorted(value))
        return f"map[{' '.join(items)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
