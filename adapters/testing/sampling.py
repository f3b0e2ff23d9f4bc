"""One value for a schema, if no author has given one: valid in most cases.

It is the same in each process. Random values come from
`fnop.adapters.testing.strategies`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

from fnop.interpreters.cluster.schema.regex import BadPattern, compiled, in_python
from fnop.interpreters.cluster.schema.rules import format_of

__all__ = ["sampled"]

Schema = Mapping[str, Any]


def sampled(schema: Schema) -> Any:
    """A value that a schema describes, with all its fields.

    >>> sampled({"type": "object", "properties": {"size": {"type": "integer"}}})
    {'size': 1}
    """
    for key in ("default", "example"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    match schema.get("type"):
        case "integer" | "number" as kind:
            return _number(schema, whole=kind == "integer")
        case "boolean":
            return False
        case "string":
            return _text(schema)
        case "array":
            number = max(int(schema.get("minItems", 0)), 1)
            return [sampled(schema.get("items") or {})] * number
        case "object":
            return _object(schema)
        case _:
            return {}


def _object(schema: Schema) -> dict[str, Any]:
    known: Mapping[str, Schema] = schema.get("properties") or {}
    found = {key: sampled(value) for key, value in known.items()}
    others = schema.get("additionalProperties")
    values = sampled(others) if isinstance(others, Mapping) else "x"
    names = (
        f"x{number or ''}" for number in range(int(schema.get("minProperties", 0)))
    )
    for name in (*schema.get("required", ()), *names):
        if others and len(found) < int(schema.get("minProperties", len(found) + 1)):
            found.setdefault(name, values)
    return found


# ------------------------------------------------------------------------ numbers


def _number(schema: Schema, *, whole: bool) -> int | float:
    """A number within the bounds, if one exists: 1, or the least, or one between.

    >>> _number({"minimum": 1, "exclusiveMinimum": True, "multipleOf": 5}, whole=True)
    5
    >>> _number({"minimum": 0.25, "maximum": 0.5}, whole=False)
    0.25
    """
    found = next((e for e in _numbers(schema) if _is_within(e, schema, whole)), 1)
    return int(found) if whole or found == int(found) else found


def _numbers(schema: Schema) -> Iterator[float]:
    low, high = schema.get("minimum"), schema.get("maximum")
    step = schema.get("multipleOf") or 1
    yield 1
    for bound in (low, high, 0):
        if bound is not None:
            nearest = math.floor(bound / step)
            yield from ((nearest + each) * step for each in (0, 1, -1, 2))
            yield from (bound, bound + 1, bound - 1)
    if low is not None and high is not None:
        yield (low + high) / 2


def _is_within(number: float, schema: Schema, whole: bool) -> bool:
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    step = schema.get("multipleOf")
    return (
        (low < number or (low == number and not schema.get("exclusiveMinimum")))
        and (number < high or (number == high and not schema.get("exclusiveMaximum")))
        and not (step and math.remainder(number, step))
        and not (whole and number != int(number))
    )


# -------------------------------------------------------------------------- texts

_FORMATS = {
    "byte": "eA==",
    "cidr": "192.0.2.0/24",
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "datetime": "2026-01-01T00:00:00Z",
    "duration": "10s",
    "email": "a@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "mac": "00:00:5e:00:53:01",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "uuid3": "123e4567-e89b-32d3-a456-426614174000",
    "uuid4": "123e4567-e89b-42d3-a456-426614174000",
    "uuid5": "123e4567-e89b-52d3-a456-426614174000",
}
# The most repetitions of a part of a pattern that are tried.
_REPEATED_MAX = 64


def _text(schema: Schema) -> str:
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength", math.inf)
    found = _FORMATS.get(format_of(dict(schema)) or "")
    if "pattern" in schema:
        texts: Iterator[str] = chain([found] if found else [], _like(schema["pattern"]))
        for text in texts:
            if least <= len(text) <= most and _matches_pattern(text, schema["pattern"]):
                return text
    if found is not None:
        return found
    return "x" * int(max(least, min(1, most)))


def _matches_pattern(text: str, pattern: str) -> bool:
    try:
        return compiled(pattern).search(text) is not None
    except BadPattern:
        return False


_LATIN = 0xFF  # the last character of Latin-1


def _like(pattern: str) -> Iterator[str]:
    r"""Texts like a pattern, with its repeated parts once, or not, or more often.

    >>> next(_like("^[0-9]+(Gi|Mi)$"))
    '1Gi'
    """
    try:
        yield from texts_like(in_python(pattern, _LATIN))
    except (BadPattern, ValueError):
        return


def texts_like(pattern: str, flags: int = 0) -> Iterator[str]:
    r"""Texts like a pattern of Python, though not all of them match.

    >>> next(texts_like(r"loss=(\d+)"))
    'loss=1'
    """
    try:
        # The standard library has no other access to the parts of a pattern.
        parts = import_module("re._parser").parse(pattern, flags)
    except (ImportError, ValueError, re.error):
        return
    for times in (1, 0, *range(2, _REPEATED_MAX)):
        yield "".join(_write_parts(parts, times))


def _write_parts(parts: Sequence[Any], times: int) -> Iterator[str]:
    for operation, value in parts:
        match str(operation):
            case "LITERAL":
                yield chr(value)
            case "NOT_LITERAL":
                yield _character([("NEGATE", None), (operation, value)])
            case "ANY":
                yield "a"
            case "IN":
                yield _character(value)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = value
                for _ in range(max(least, min(times, most))):
                    yield from _write_parts(inner, times)
            case "SUBPATTERN":
                yield from _write_parts(value[-1], times)
            case "BRANCH":
                yield from _write_parts(value[1][0], times)
            case _:  # a position, such as the beginning
                pass


# Common characters come first.
_CHARACTERS = "a1A-" + "".join(map(chr, range(32, 127)))
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda each: each.isalnum() or each == "_",
    "CATEGORY_NOT_DIGIT": lambda each: not each.isdigit(),
    "CATEGORY_NOT_SPACE": lambda each: not each.isspace(),
    "CATEGORY_NOT_WORD": lambda each: not (each.isalnum() or each == "_"),
}


def _character(choices: Sequence[Any]) -> str:
    """A character of a set; "a" if no common character is in it."""
    negated = bool(choices) and str(choices[0][0]) == "NEGATE"
    inner = choices[1:] if negated else choices
    for each in _CHARACTERS:
        if any(_is_of(each, *choice) for choice in inner) is not negated:
            return each
    return "a"


def _is_of(character: str, operation: Any, value: Any) -> bool:
    match str(operation):
        case "RANGE":
            return bool(value[0] <= ord(character) <= value[1])
        case "CATEGORY":
            return bool(_CATEGORIES[str(value)](character))
        case _:
            return bool(ord(character) == value)
