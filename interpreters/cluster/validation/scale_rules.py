"""Validation of the fields of custom objects that `/scale` reads.

The rules come from `customresource.customResourceValidator`, the words from
`unstructured.NestedInt64` and `NestedString`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.kinds.kinds import Scale
from fnop.interpreters.cluster.values.golang import go_json, go_text
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["LARGEST", "Inaccessible", "number_at", "scale_faults", "text_at"]

LARGEST = 2**31 - 1  # of Go's int32
Path = tuple[str, ...]


class Inaccessible(Exception):
    """The value at a path is of another type than wanted."""


GO_NAMES: dict[type, str] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    type(None): "<nil>",
}


def _wrong_type_error(path: Path, value: Any, wanted: str) -> Inaccessible:
    return Inaccessible(
        f".{'.'.join(path)} accessor error: {go_text(value)} is of the type "
        f"{GO_NAMES[type(value)]}, expected {wanted}"
    )


def _value_at(obj: Object, path: Path) -> tuple[Any, bool]:
    """The value at a path, and whether it exists."""
    value: Any = obj
    for depth, name in enumerate(path):
        if value is None:
            return None, False
        if type(value) is not dict:
            raise _wrong_type_error(path[: depth + 1], value, "map[string]interface{}")
        if name not in value:
            return None, False
        value = value[name]
    return value, True


def number_at(obj: Object, path: Path) -> int | None:
    """The whole number at a path, None if it is missing.

    Raises `Inaccessible`.

    >>> number_at({"spec": {"replicas": 3}}, ("spec", "replicas"))
    3
    """
    value, found = _value_at(obj, path)
    if found and type(value) is not int:
        raise _wrong_type_error(path, value, "int64")
    return value if found else None


def text_at(obj: Object, path: Path) -> str:
    """The text at a path, "" if it is missing.

    Raises `Inaccessible`.
    """
    value, found = _value_at(obj, path)
    if found and type(value) is not str:
        raise _wrong_type_error(path, value, "string")
    return value if found else ""


def scale_faults(
    rule: Scale | None, obj: Object, *, status_only: bool = False
) -> Iterator[Fault]:
    """Yield the faults of the replicas and the selector of an object."""
    if rule is None:
        return
    if not status_only:
        yield from _number_faults(obj, rule.spec)
    yield from _number_faults(obj, rule.status)
    if rule.selector is None:
        return
    try:
        text_at(obj, rule.selector)
    except Inaccessible as problem:
        yield _fault(rule.selector, "", str(problem))


def _number_faults(obj: Object, path: Path) -> Iterator[Fault]:
    try:
        number = number_at(obj, path) or 0
    except Inaccessible as problem:
        yield _fault(path, 0, str(problem))
        return
    if number < 0:
        yield _fault(path, number, "should be a non-negative integer")
    elif number > LARGEST:
        yield _fault(path, number, f"should be less than or equal to {LARGEST}")


def _fault(path: Path, value: Any, why: str) -> Fault:
    message = f"Invalid value: {go_json(value)}: {why}"
    return Fault(f".{'.'.join(path)}", "FieldValueInvalid", message)
