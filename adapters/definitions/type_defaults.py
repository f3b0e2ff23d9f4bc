"""Defaults of the author's classes as JSON, for their schemas."""

from __future__ import annotations

import base64
import math
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any

from fnop.adapters.definitions.type_fields import fields_of, is_record, is_root_model
from fnop.adapters.definitions.type_marks import text_of_bytes
from fnop.adapters.definitions.type_places import Node, Place
from fnop.effects.models import duration_text
from fnop.effects.values import freeze_json, thaw_json

__all__ = ["default_of", "plain_value", "without_defaults"]

_TEXT_OF: dict[type, Callable[[Any], str]] = {
    uuid.UUID: str,
    date: date.isoformat,
    bytes: lambda value: base64.b64encode(value).decode(),
    timedelta: duration_text,
}


def default_of(value: Any, place: Place, node: Node) -> Any:
    """A default as JSON has it by this schema, and as the API server keeps it."""
    found = _json_of(value, place, node)
    try:
        return thaw_json(freeze_json(found, "its default"))
    except (TypeError, ValueError) as problem:
        raise place.problem(str(problem)) from None


def _json_of(value: Any, place: Place, node: Node) -> Any:
    if isinstance(value, Enum):
        value = value.value
    if is_root_model(type(value)):
        return _json_of(value.root, place, node)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise place.problem(
            f"its default has {value.bit_length()} bits, and the API server keeps "
            "integers of 64; take a text"
        )
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if (text := _text_of(value, place, node)) is not None:
        return text
    return _json_of_parts(value, place, node)


def _json_of_parts(value: Any, place: Place, node: Node) -> Any:
    """The JSON of a collection, or of an object of a class with fields."""
    if isinstance(value, (list, tuple)):
        return [_json_of(each, place, node.get("items", {})) for each in value]
    if isinstance(value, (set, frozenset)):  # they have no order of their own
        found = [_json_of(each, place, node.get("items", {})) for each in value]
        return sorted(found, key=lambda each: (str(type(each)), each))
    if isinstance(value, Mapping):
        named = ((plain_value(k), v) for k, v in value.items())
        return {k: _json_of(v, place, _part_of(node, k)) for k, v in named}
    if is_record(type(value)):
        return dict(_members(value, place, node))
    raise place.problem(
        f"its default {value!r:.60} is nothing that JSON has; take texts, numbers, "
        "lists, mappings, and classes of these"
    )


def _part_of(node: Node, name: str) -> Node:
    """The schema of a member of an object."""
    found: Any = node.get("properties", {}).get(name, node.get("additionalProperties"))
    return found if isinstance(found, dict) else {}


def _text_of(value: Any, place: Place, node: Node) -> str | None:
    """The text that stands for a value of a type that JSON lacks."""
    if isinstance(value, datetime):
        return _moment(value, place)
    if isinstance(value, bytes) and node.get("format") != "byte":  # of a model
        text = text_of_bytes(value, node.get("pattern"))
        if text is None:
            raise place.problem(
                f"its default has the bytes {value!r:.60}, which a model reads from no "
                "text; write X | None = None, and let a handler fill it in"
            )
        return text
    text_of = _TEXT_OF.get(type(value))
    try:
        return text_of(value) if text_of else None
    except ValueError as problem:
        raise place.problem(f"its default cannot be written: {problem}") from None


def _moment(value: datetime, place: Place) -> str:
    if value.tzinfo is None:
        raise place.problem(
            f"its default {value!r} has no time zone, which the format date-time "
            "wants; give it tzinfo=UTC"
        )
    return value.isoformat().replace("+00:00", "Z")


def _members(value: Any, place: Place, node: Node) -> Iterator[tuple[str, Any]]:
    """The fields of an instance in a default, without fields that are None."""
    for field in fields_of(type(value)):
        found = getattr(value, field.attribute)
        if found is not None:
            yield field.name, _json_of(found, place, _part_of(node, field.name))
        elif field.default is not None:
            raise place.problem(
                f"its default has None in {field.name}, where the server would fill in "
                f"the default of {type(value).__qualname__}; give it a value"
            )


def without_defaults(value: Any, node: Node) -> Any:
    """A default without the parts that the server fills in itself: nested defaults.

    The server judges a default by its rules before it fills anything in. So a default
    with rules has to be whole.

    >>> inner = {"properties": {"a": {"default": 1}, "b": {}}}
    >>> without_defaults({"a": 1, "b": 2}, inner)
    {'b': 2}
    """
    if "x-kubernetes-validations" in node:
        return value
    if isinstance(value, list):
        return [without_defaults(each, node.get("items", {})) for each in value]
    if not isinstance(value, dict):
        return value
    parts, others = node.get("properties", {}), node.get("additionalProperties", {})
    found = {k: without_defaults(v, parts.get(k, others)) for k, v in value.items()}
    return {
        name: part
        for name, part in found.items()
        if "default" not in parts.get(name, {}) or parts[name]["default"] != part
    }


def plain_value(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
