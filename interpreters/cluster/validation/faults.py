"""Constructors of faults (`apimachinery/pkg/util/validation/field`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "at_least",
    "bad",
    "duplicate",
    "forbidden",
    "immutable",
    "one_of",
    "required",
]


def bad(field: str, value: Any, why: str) -> Fault:
    """An invalid value.

    >>> bad("spec.replicas", -1, "must be more").message
    'Invalid value: -1: must be more'
    """
    shown = orjson.dumps(value).decode()
    return Fault(field, "FieldValueInvalid", f"Invalid value: {shown}: {why}")


def required(field: str, why: str = "") -> Fault:
    """A missing value."""
    message = f"Required value: {why}" if why else "Required value"
    return Fault(field, "FieldValueRequired", message)


def forbidden(field: str, why: str) -> Fault:
    """A field, or a value of it, that is not allowed."""
    return Fault(field, "FieldValueForbidden", f"Forbidden: {why}")


def duplicate(field: str, value: Any) -> Fault:
    """An item that occurs twice in a list."""
    shown = orjson.dumps(value).decode()
    return Fault(field, "FieldValueDuplicate", f"Duplicate value: {shown}")


def one_of(field: str, value: Any, known: Iterable[str]) -> Iterator[Fault]:
    """Yield a fault unless the value is one of the known ones."""
    if value not in known:
        shown = orjson.dumps(value).decode()
        values = ", ".join(f'"{each}"' for each in known)
        message = f"Unsupported value: {shown}: supported values: {values}"
        yield Fault(field, "FieldValueNotSupported", message)


def at_least(
    obj: dict[str, Any], path: str, *names: str, least: int = 0
) -> Iterator[Fault]:
    """Yield the fields whose numbers are too small."""
    for name in names:
        value = obj.get(name)
        if isinstance(value, int) and value < least:
            why = f"must be greater than or equal to {least}"
            yield bad(f"{path}.{name}", value, why)


def immutable(
    new: dict[str, Any], old: dict[str, Any], path: str, *names: str
) -> Iterator[Fault]:
    """Yield the fields that have changed."""
    for name in names:
        if new.get(name) != old.get(name):
            field = f"{path}.{name}" if path else name
            yield bad(field, new.get(name), "field is immutable")
