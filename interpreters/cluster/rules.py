"""The value rules of JSON schema, with the messages of the real validator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any

import orjson

from fnop.interpreters.cluster.status import Fault, quoted

__all__ = ["Place", "Rule", "place_text", "rules_of", "type_name"]

# Where a value stands: (where its parent stands, its name or index there).
# Names are joined only when there is something to complain about.
Place = tuple[Any, Any] | None
Rule = Callable[[Any, Place], Fault | None]


def place_text(place: Place) -> str:
    """A place as errors print it.

    >>> place_text((((None, "spec"), "list"), 1))
    'spec.list[1]'
    """
    if place is None:
        return ""
    parent, part = place
    before = place_text(parent)
    if isinstance(part, int):
        return f"{before}[{part}]"
    return f"{before}.{part}" if before else str(part)


def type_name(value: Any) -> str:
    """The JSON schema type of a value.

    >>> type_name(True), type_name(1), type_name(1.5)
    ('boolean', 'integer', 'number')
    """
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
        type(None): "null",
    }
    return names[type(value)]


def _invalid(place: Place, value: Any, why: str) -> Fault:
    field = place_text(place)
    shown = orjson.dumps(value).decode()
    return Fault(
        field, "FieldValueInvalid", f"Invalid value: {shown}: {field} in body {why}"
    )


def _too_many(place: Place, count: int, limit: int) -> Fault:
    return Fault(
        place_text(place),
        "FieldValueTooMany",
        f"Too many: {count}: must have at most {limit} items",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _minimum(schema: dict[str, Any]) -> Rule:
    limit, exclusive = schema["minimum"], bool(schema.get("exclusiveMinimum"))

    def rule(value: Any, place: Place) -> Fault | None:
        if not _is_number(value) or value > limit or (value == limit and not exclusive):
            return None
        word = "greater than" if exclusive else "greater than or equal to"
        return _invalid(place, value, f"should be {word} {limit}")

    return rule


def _maximum(schema: dict[str, Any]) -> Rule:
    limit, exclusive = schema["maximum"], bool(schema.get("exclusiveMaximum"))

    def rule(value: Any, place: Place) -> Fault | None:
        if not _is_number(value) or value < limit or (value == limit and not exclusive):
            return None
        word = "less than" if exclusive else "less than or equal to"
        return _invalid(place, value, f"should be {word} {limit}")

    return rule


def _multiple_of(schema: dict[str, Any]) -> Rule:
    factor = schema["multipleOf"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not _is_number(value) or (value / factor).is_integer():
            return None
        return _invalid(place, value, f"should be a multiple of {factor}")

    return rule


def _min_length(schema: dict[str, Any]) -> Rule:
    limit = schema["minLength"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, str) or len(value) >= limit:
            return None
        return _invalid(place, value, f"should be at least {limit} chars long")

    return rule


def _max_length(schema: dict[str, Any]) -> Rule:
    limit = schema["maxLength"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, str) or len(value) <= limit:
            return None
        return Fault(
            place_text(place),
            "FieldValueTooLong",
            f"Too long: may not be more than {limit} bytes",
        )

    return rule


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    # In Go, `$` is the end of the text; in Python also before a last newline.
    python = re.sub(r"(?<!\\)\$$", r"\\Z", pattern)
    try:
        return re.compile(python)
    except re.error:
        return None


def _pattern(schema: dict[str, Any]) -> Rule:
    pattern = schema["pattern"]
    expression = _compiled(pattern)

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, str) or expression is None or expression.search(value):
            return None
        return _invalid(place, value, f"should match '{pattern}'")

    return rule


def _enum(schema: dict[str, Any]) -> Rule:
    allowed = schema["enum"]
    keys = {orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in allowed}
    listed = ", ".join(
        quoted(item if isinstance(item, str) else orjson.dumps(item).decode())
        for item in allowed
    )

    def rule(value: Any, place: Place) -> Fault | None:
        if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) in keys:
            return None
        return Fault(
            place_text(place),
            "FieldValueNotSupported",
            f"Unsupported value: {orjson.dumps(value).decode()}: "
            f"supported values: {listed}",
        )

    return rule


def _min_items(schema: dict[str, Any]) -> Rule:
    limit = schema["minItems"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, list) or len(value) >= limit:
            return None
        return _invalid(place, len(value), f"should have at least {limit} items")

    return rule


def _max_items(schema: dict[str, Any]) -> Rule:
    limit = schema["maxItems"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, list) or len(value) <= limit:
            return None
        return _too_many(place, len(value), limit)

    return rule


def _min_properties(schema: dict[str, Any]) -> Rule:
    limit = schema["minProperties"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, dict) or len(value) >= limit:
            return None
        return _invalid(place, len(value), f"should have at least {limit} properties")

    return rule


def _max_properties(schema: dict[str, Any]) -> Rule:
    limit = schema["maxProperties"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, dict) or len(value) <= limit:
            return None
        return _too_many(place, len(value), limit)

    return rule


def _list_type(schema: dict[str, Any]) -> Rule:
    """Lists that are sets, or maps by some of their items' fields."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema["x-kubernetes-list-type"] not in ("set", "map"):
        return lambda value, place: None

    def identity(item: Any) -> Any:
        if keys and isinstance(item, dict):
            return {key: item.get(key) for key in keys}
        return item

    def rule(value: Any, place: Place) -> Fault | None:
        seen = set()
        for index, item in enumerate(value if isinstance(value, list) else ()):
            shown = orjson.dumps(identity(item), option=orjson.OPT_SORT_KEYS)
            if shown in seen:
                return Fault(
                    place_text((place, index)),
                    "FieldValueDuplicate",
                    f"Duplicate value: {shown.decode()}",
                )
            seen.add(shown)
        return None

    return rule


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None and "T" in text.upper()
    except ValueError:
        return False


def _is_day(text: str) -> bool:
    try:
        datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007 (a day has no zone)
    except ValueError:
        return False
    return True


def _is_address(kind: type[IPv4Address] | type[IPv6Address]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except AddressValueError:
            return False
        return True

    return check


UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _is_moment,
    "date": _is_day,
    "ipv4": _is_address(IPv4Address),
    "ipv6": _is_address(IPv6Address),
    "uuid": lambda text: UUID.fullmatch(text) is not None,
}


def _format(schema: dict[str, Any]) -> Rule:
    name = schema["format"]
    # Unknown formats are ignored, as the API conventions demand.
    check = FORMATS.get(name)

    def rule(value: Any, place: Place) -> Fault | None:
        if check is None or not isinstance(value, str) or check(value):
            return None
        field, shown = place_text(place), quoted(value)
        message = (
            f"Invalid value: {shown}: {field} in body must be of type {name}: {shown}"
        )
        return Fault(field, "FieldValueTypeInvalid", message)

    return rule


KEYWORDS: dict[str, Callable[[dict[str, Any]], Rule]] = {
    "minimum": _minimum,
    "maximum": _maximum,
    "multipleOf": _multiple_of,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "enum": _enum,
    "minItems": _min_items,
    "maxItems": _max_items,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "x-kubernetes-list-type": _list_type,
    "format": _format,
}


def rules_of(schema: dict[str, Any]) -> tuple[Rule, ...]:
    """The rules that a schema node states about its value."""
    return tuple(_rules(schema))


def _rules(schema: dict[str, Any]) -> Iterator[Rule]:
    for keyword, make in KEYWORDS.items():
        if schema.get(keyword) is not None:
            yield make(schema)
