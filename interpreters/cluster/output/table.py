"""Tables: objects as rows, with the columns that kubectl shows.

Built-in kinds have the columns of `pkg/printers/internalversion`. Custom kinds have the
columns of their definition (`apiextensions-apiserver/pkg/registry/.../tableconvertor`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from fnop.interpreters.cluster.kinds.kinds import Column, Kind
from fnop.interpreters.cluster.output.ages import UNKNOWN, human_duration, seconds_of
from fnop.interpreters.cluster.output.jsonpath import first, printed
from fnop.interpreters.cluster.output.printers import CELLS, COLUMNS, conditions_of
from fnop.interpreters.cluster.values.objects import Object

__all__ = ["cells_of", "columns_of", "conditions_of"]

NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, "
    "although some resources may allow a client to request the generation of an "
    "appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object "
    "was created. It is not guaranteed to be set in happens-before order across "
    "separate operations. Clients may not set this value. It is represented in "
    "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists."
    " More info: https://git.k8s.io/community/contributors/devel/sig-architecture/"
    "api-conventions.md#metadata"
)
DESCRIPTIONS = {
    "Name": NAME_DESCRIPTION,
    "Age": CREATED_DESCRIPTION,
    "Created At": CREATED_DESCRIPTION,
}

# --------------------------------------------------------------------- columns

Definition = dict[str, Any]


def _definition(
    name: str,
    type_: str = "string",
    form: str = "",
    description: str = "",
    priority: int = 0,
) -> Definition:
    return {
        "name": name,
        "type": type_,
        "format": form,
        "description": description,
        "priority": priority,
    }


def _builtin_columns(text: str) -> Iterator[Definition]:
    for part in text.split("|"):
        title, _, type_ = part.removeprefix("*").partition(":")
        yield _definition(
            title,
            type_ or "string",
            "name" if title == "Name" else "",
            DESCRIPTIONS.get(title, ""),
            int(part.startswith("*")),
        )


# For custom kinds without columns, and for anything else that is not known here.
AGE = Column("Age", "date", ".metadata.creationTimestamp")
NAME_COLUMN = _definition("Name", "string", "name", NAME_DESCRIPTION)
DEFAULT = [NAME_COLUMN, _definition("Created At", "date", "", CREATED_DESCRIPTION)]


def columns_of(kind: Kind | None) -> list[Definition]:
    """The columns of a kind's tables."""
    if kind is None:
        return DEFAULT
    if not kind.custom:
        return _columns_at((kind.group, kind.plural))
    return [NAME_COLUMN, *map(_custom_column, _custom_columns(kind))]


@lru_cache(maxsize=128)
def _columns_at(resource: tuple[str, str]) -> list[Definition]:
    text = COLUMNS.get(resource)
    return DEFAULT if text is None else list(_builtin_columns(text))


def _custom_columns(kind: Kind) -> tuple[Column, ...]:
    return kind.columns or (AGE,)


def _custom_column(column: Column) -> Definition:
    description = column.description
    if column is AGE:
        description = CREATED_DESCRIPTION
    return _definition(
        column.name,
        column.type,
        column.format,
        description
        or f"Custom resource definition column (in JSONPath format): "
        f"{column.json_path}",
        column.priority,
    )


# ----------------------------------------------------------------------- cells


def cells_of(kind: Kind | None, obj: Object, now: float) -> list[Any]:
    """The cells of an object's row."""
    metadata = obj.get("metadata") or {}
    name = metadata.get("name", "")
    if kind is not None and kind.custom:
        found = [_custom_cell(each, obj, now) for each in _custom_columns(kind)]
        return [name, *found]
    make = None if kind is None else CELLS.get((kind.group, kind.plural))
    if make is None:
        return [name, metadata.get("creationTimestamp")]
    return make(obj, now)


def _custom_cell(column: Column, obj: Object, now: float) -> Any:
    found = first(column.json_path, obj)
    if not found:
        return None
    value = found[0]
    if column.type == "string":
        return printed(value)
    if column.type == "date":
        return _date_cell(value, now)
    is_flag = isinstance(value, bool)
    if column.type == "boolean":
        return value if is_flag else None
    if is_flag or not isinstance(value, int | float):
        return None
    return _int64_of(value) if column.type == "integer" else value


def _date_cell(value: Any, now: float) -> str | None:
    if not isinstance(value, str):
        return None
    if not value or value == "null":
        return UNKNOWN
    seconds = seconds_of(value)
    return "<invalid>" if seconds is None else human_duration(now - seconds)


def _int64_of(value: float) -> int:
    """Convert like Go's int64(x): values that do not fit become the smallest."""
    number = int(value)
    return number if -(2**63) <= number < 2**63 else -(2**63)
