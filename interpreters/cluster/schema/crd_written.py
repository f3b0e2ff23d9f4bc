"""A definition's spec as it comes back from Go: known fields, without empty ones.

The structs come from `apiextensions/v1`. Fields that Go omits when they are empty are
marked with `omitempty` there, and are not pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from fnop.interpreters.cluster.schema.schema_rules import written_schema

__all__ = ["written_spec"]

Write = Callable[[Any], Any]


def _as_is(value: Any) -> Any:
    return value


class GoStruct(Struct, frozen=True):
    """The fields of a Go struct, and those that are omitted when empty."""

    always: Mapping[str, Write]
    filled: Mapping[str, Write]

    def __call__(self, value: Any) -> Any:
        if type(value) is not dict:
            return value
        return {
            name: (self.always.get(name) or self.filled[name])(part)
            for name, part in value.items()
            if (name in self.always and part is not None)
            or (name in self.filled and part)
        }


def _unchanged_fields(text: str) -> dict[str, Write]:
    return dict.fromkeys(text.split(), _as_is)


def _write_items(write: Write) -> Write:
    return lambda value: [*map(write, value)] if type(value) is list else value


def _with_port(value: Any) -> Any:
    return {"port": 443, **value}


SERVICE = GoStruct(_unchanged_fields("namespace name path port"), {})
CLIENT = GoStruct(
    {**_unchanged_fields("url"), "service": lambda value: _with_port(SERVICE(value))},
    _unchanged_fields("caBundle"),
)
WEBHOOK = GoStruct(
    {**_unchanged_fields("conversionReviewVersions"), "clientConfig": CLIENT}, {}
)
CONVERSION = GoStruct({**_unchanged_fields("strategy"), "webhook": WEBHOOK}, {})
COLUMN = GoStruct(
    _unchanged_fields("name type jsonPath"),
    _unchanged_fields("format description priority"),
)
SCALE = GoStruct(
    _unchanged_fields("specReplicasPath statusReplicasPath labelSelectorPath"), {}
)
NAMES = GoStruct(
    _unchanged_fields("plural kind"),
    _unchanged_fields("singular shortNames listKind categories"),
)
VERSION = GoStruct(
    {
        **_unchanged_fields("name served storage deprecationWarning"),
        "schema": GoStruct({"openAPIV3Schema": written_schema}, {}),
        "subresources": GoStruct({"status": GoStruct({}, {}), "scale": SCALE}, {}),
    },
    {
        **_unchanged_fields("deprecated"),
        "additionalPrinterColumns": _write_items(COLUMN),
        "selectableFields": _write_items(GoStruct(_unchanged_fields("jsonPath"), {})),
    },
)
SPEC = GoStruct(
    {
        **_unchanged_fields("group scope"),
        "names": NAMES,
        "versions": _write_items(VERSION),
        "conversion": CONVERSION,
    },
    _unchanged_fields("preserveUnknownFields"),
)


def written_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec of a definition as it is stored.

    >>> written_spec({"preserveUnknownFields": False, "group": "g.dev", "x": 1})
    {'group': 'g.dev'}
    """
    found: dict[str, Any] = SPEC(spec)
    return found
