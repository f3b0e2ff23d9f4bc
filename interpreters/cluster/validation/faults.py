"""Constructors of faults (`apimachinery/pkg/util/validation/field`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "bad",
    "duplicate",
    "forbidden",
    "immutable",
    "required",
    "too_long",
    "unsupported",
]


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()


def bad(field: str, value: Any, why: str) -> Fault:
    """An invalid value.

    >>> bad("spec.replicas", -1, "must be more").message
    'Invalid value: -1: must be more'
    """
    return Fault(field, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {why}")


def required(field: str, why: str = "") -> Fault:
    """A missing value."""
    message = f"Required value: {why}" if why else "Required value"
    return Fault(field, "FieldValueRequired", message)


def forbidden(field: str, why: str) -> Fault:
    """A field, or a value of it, that is not allowed."""
    return Fault(field, "FieldValueForbidden", f"Forbidden: {why}")


def duplicate(field: str, value: Any) -> Fault:
    """An item that occurs twice in a list."""
    return Fault(field, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def unsupported(field: str, value: Any, known: Iterable[str]) -> Fault:
    """A value that is not one of the known ones."""
    values = ", ".join(f'"{each}"' for each in known)
    message = f"Unsupported value: {_shown(value)}: supported values: {values}"
    return Fault(field, "FieldValueNotSupported", message)


def too_long(field: str, most: int) -> Fault:
    """A value of too many bytes."""
    message = f"Too long: may not be more than {most} bytes"
    return Fault(field, "FieldValueTooLong", message)


def immutable(
    new: dict[str, Any], old: dict[str, Any], path: str, *names: str
) -> Iterator[Fault]:
    """Yield the fields that have changed."""
    for name in names:
        if new.get(name) != old.get(name):
            field = f"{path}.{name}" if path else name
            yield bad(field, new.get(name), "field is immutable")
