"""Objects of an author's classes, written as JSON: dataclasses and models.

A dataclass is written field by field, under the names that `fnop.schema(name=...)` may
give them. A model of pydantic, or a Struct of msgspec, writes itself; this module
imports no library.
"""

from __future__ import annotations

import base64
import dataclasses
import inspect
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias, get_type_hints

from fnop.effects.hints import named

__all__ = [
    "Model",
    "definition_of_model",
    "duration_text",
    "is_model",
    "moment_text",
    "plain_model",
    "plain_scalar",
]


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


class _PydanticModel(Protocol):
    __pydantic_fields__: ClassVar[dict[str, Any]]


class _Struct(Protocol):
    __struct_fields__: ClassVar[tuple[str, ...]]


Model: TypeAlias = _Dataclass | _PydanticModel | _Struct


def is_model(value: Any) -> bool:
    """Whether a value is an object of an author's class with fields.

    >>> is_model({"a": 1}), is_model(timedelta(1))
    (False, False)
    """
    cls = type(value)
    return (
        dataclasses.is_dataclass(cls)
        or hasattr(cls, "__pydantic_serializer__")
        or hasattr(cls, "__struct_fields__")
    ) and not cls.__module__.startswith("fnop.")


def definition_of_model(value: Any) -> Any:
    """The definition of the kind of an object (`fnop.definition`), or None.

    It has an `api_version` and a `kind`.
    """
    return vars(type(value)).get("__fnop_definition__") if is_model(value) else None


def plain_model(value: Any, *, without_none: bool = False) -> Any:
    """The JSON of such an object.

    A field that is None becomes null, which removes it in a merge patch. In manifests
    it is omitted (`without_none`).

    >>> @dataclasses.dataclass
    ... class Status:
    ...     ready: int
    ...     since: datetime | None = None
    >>> plain_model(Status(2)), plain_model(Status(2), without_none=True)
    ({'ready': 2, 'since': None}, {'ready': 2})
    """
    cls: Any = type(value)
    if hasattr(cls, "__pydantic_serializer__"):
        return cls.__pydantic_serializer__.to_python(
            value, mode="json", by_alias=True, exclude_none=without_none
        )
    if hasattr(cls, "__struct_fields__"):
        # The library module that defines the class.
        library: Any = inspect.getmodule(type(cls))
        return _plain_value(library.to_builtins(value), without_none)
    found = {
        name: _plain_value(getattr(value, attribute), without_none)
        for attribute, name in _names_in(cls)
    }
    return _without_none(found) if without_none else found


@lru_cache(maxsize=1024)
def _names_in(cls: Any) -> tuple[tuple[str, str], ...]:
    """The fields of a dataclass: their names in the class, and in objects."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (AttributeError, NameError, SyntaxError, TypeError):
        hints = {}
    names = (each.name for each in dataclasses.fields(cls))
    return tuple((name, named(name, hints.get(name))) for name in names)


def _plain_value(value: Any, without_none: bool) -> Any:
    """Return a value inside of such an object, as JSON."""
    if isinstance(value, Mapping):
        found = {key: _plain_value(item, without_none) for key, item in value.items()}
        return _without_none(found) if without_none else found
    if isinstance(value, (list, tuple)):
        return [_plain_value(item, without_none) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain_value(item, without_none) for item in value), key=repr)
    if is_model(value):
        return plain_model(value, without_none=without_none)
    return plain_scalar(value)


def plain_scalar(value: Any) -> Any:
    """The JSON of a value that typed fields may have.

    Such a value is a member of an enumeration, a moment, a duration, bytes, a UUID, or
    a set. Any other value is returned as it is. Raises `ValueError` for a moment or a
    duration that Go cannot represent.

    >>> plain_scalar(timedelta(minutes=90)), plain_scalar(b"a"), plain_scalar(1)
    ('1h30m', 'YQ==', 1)
    """
    if isinstance(value, Enum):
        return plain_scalar(value.value)
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain_scalar, value), key=repr)
    if (type(value).__module__, type(value).__name__) == ("uuid", "UUID"):
        return str(value)
    return value


def _without_none(found: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in found.items() if item is not None}


def moment_text(value: datetime) -> str:
    """RFC 3339 with microseconds, which both metav1.Time and MicroTime accept.

    >>> moment_text(datetime(2030, 1, 1, 12, tzinfo=UTC))
    '2030-01-01T12:00:00.000000Z'

    Raises `ValueError` for a moment outside of the years 1 to 9999 of UTC.
    """
    try:
        known = value if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{value} is in no year from 1 to 9999 of UTC") from None
    known = known.replace(tzinfo=UTC)
    return known.isoformat(timespec="microseconds").replace("+00:00", "Z")


# Go counts nanoseconds in 64 bits.
_MICROSECONDS_MAX = (2**63 - 1) // 1000
_UNITS = (("h", 3600 * 10**6), ("m", 60 * 10**6), ("s", 10**6), ("ms", 1000), ("us", 1))


def duration_text(value: timedelta) -> str:
    """A duration as Go and the schema format `duration` read it.

    >>> duration_text(timedelta(minutes=90)), duration_text(timedelta(seconds=-0.25))
    ('1h30m', '-250ms')
    >>> duration_text(timedelta())
    '0s'

    Raises `ValueError` for a duration that Go cannot represent.
    """
    micro = (value.days * 86_400 + value.seconds) * 10**6 + value.microseconds
    left = abs(micro)
    if left > _MICROSECONDS_MAX:
        raise ValueError(f"{value!r} is more than the 292 years that a duration may be")
    parts = []
    for unit, size in _UNITS:
        number, left = divmod(left, size)
        parts += [f"{number}{unit}"] * bool(number)
    sign = "-" if value < timedelta() else ""
    return f"{sign}{''.join(parts)}" if parts else "0s"
