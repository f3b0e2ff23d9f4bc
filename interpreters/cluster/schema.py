"""Structural schemas: what a CRD lets through, fills in and refuses.

A schema is compiled once, when its CRD is written, into a tree of `Schema`
nodes.  `filled` prunes and applies defaults (and shares what it leaves alone);
`faults` validates.  The order is that of a real server: prune, default, check.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fnop.interpreters.cluster.metadata import clean_metadata
from fnop.interpreters.cluster.rules import Place, Rule, place_text, rules_of, type_name
from fnop.interpreters.cluster.status import Fault

__all__ = ["Schema", "compile_root", "compile_schema"]

NOTHING = object()
TYPE_META = frozenset(("apiVersion", "kind", "metadata"))


@dataclass(frozen=True, slots=True)
class Schema:
    """One compiled node of a structural schema."""

    types: tuple[str, ...]  # none: any type
    classes: frozenset[type]  # the same, as Python knows them
    nullable: bool
    properties: dict[str, Schema]
    additional: Schema | None
    items: Schema | None
    # Fields that are not specified stay.
    preserving: bool
    # Nothing inside is specified: values pass as they are.
    opaque: bool
    # The value is a Kubernetes object inside an object.
    embedded: bool
    # The value is the custom resource itself, whose metadata is checked elsewhere.
    root: bool
    # What to fill in: (name, default) of properties.
    defaults: tuple[tuple[str, Any], ...]
    default: Any
    required: tuple[str, ...]
    rules: tuple[Rule, ...]
    # allOf, anyOf, oneOf, not: they only check values, they never fill them.
    all_of: tuple[Schema, ...]
    any_of: tuple[Schema, ...]
    one_of: tuple[Schema, ...]
    none_of: Schema | None

    # ------------------------------------------------------------ filling

    def filled(self, value: Any) -> Any:
        """The value pruned and with defaults."""
        kind = type(value)
        if self.opaque:
            return plain(value)
        if kind is dict:
            return self._filled_object(value)
        if kind is list and self.items is not None:
            fill = self.items.filled
            result = [fill(item) for item in value]
            return result if _differs(result, value) else value
        return plain(value)

    def _filled_object(self, value: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        differs = False
        properties, additional = self.properties, self.additional
        for name, item in value.items():
            child = properties.get(name, additional)
            if child is None:
                if self.embedded and name == "metadata":
                    new = clean_metadata(item)
                elif (self.embedded or self.root) and name in TYPE_META:
                    new = item
                elif self.preserving:
                    new = plain(item)
                else:
                    differs = True  # pruned
                    continue
            elif item is None and not child.nullable:
                differs = True  # a null where none may be is as good as nothing
                continue
            else:
                new = child.filled(item)
            differs = differs or new is not item
            result[name] = new
        for name, default in self.defaults:
            if name not in result:
                result[name] = default
                differs = True
        return result if differs else value

    # ------------------------------------------------------------ checking

    def faults(self, value: Any, place: Place) -> Iterator[Fault]:
        """What the schema refuses in a value."""
        if value is None and self.nullable:
            return
        if self.classes and type(value) not in self.classes:
            yield from _wrong_type(value, self.types, place)
            return
        if self.opaque:
            return
        if type(value) is dict:
            yield from self._object_faults(value, place)
        elif type(value) is list and self.items is not None:
            for index, item in enumerate(value):
                yield from self.items.faults(item, (place, index))
        for rule in self.rules:
            fault = rule(value, place)
            if fault is not None:
                yield fault
        if self.all_of or self.any_of or self.one_of or self.none_of:
            yield from self._combined_faults(value, place)

    def _object_faults(self, value: dict[str, Any], place: Place) -> Iterator[Fault]:
        for name in self.required:
            if name not in value:
                field = place_text((place, name))
                yield Fault(field, "FieldValueRequired", "Required value")
        for name, item in value.items():
            child = self.properties.get(name, self.additional)
            if child is not None:
                yield from child.faults(item, (place, name))

    def _combined_faults(self, value: Any, place: Place) -> Iterator[Fault]:
        for part in self.all_of:
            yield from part.faults(value, place)
        field = place_text(place)
        if self.any_of and not any(map(_passes(value, place), self.any_of)):
            yield _aside(f'"{field}" must validate at least one schema (anyOf)')
        if self.one_of:
            count = sum(map(_passes(value, place), self.one_of))
            if count != 1:
                found = f"{count} valid alternatives" if count else "none valid"
                yield _aside(
                    f'"{field}" must validate one and only one schema (oneOf). '
                    f"Found {found}"
                )
        if self.none_of is not None and _passes(value, place)(self.none_of):
            yield _aside(f'"{field}" must not validate the schema (not)')


def _passes(value: Any, place: Place) -> Any:
    def passes(schema: Schema) -> bool:
        return next(schema.faults(value, place), None) is None

    return passes


def _aside(why: str) -> Fault:
    """A fault that the real validator reports without its field."""
    return Fault("<nil>", "FieldValueInvalid", f'Invalid value: "": {why}')


def _differs(new: list[Any], old: list[Any]) -> bool:
    return any(a is not b for a, b in zip(new, old, strict=True))


def plain(value: Any) -> Any:
    """A value as it comes back from Go: 1.0 is 1.

    >>> plain({"a": [1.0, 1.5]})
    {'a': [1, 1.5]}
    """
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if kind is dict:
        for item in value.values():
            if type(item) in COMPOUND and plain(item) is not item:
                return {name: plain(item) for name, item in value.items()}
    elif kind is list:
        for item in value:
            if type(item) in COMPOUND and plain(item) is not item:
                return [plain(item) for item in value]
    return value


COMPOUND = frozenset((dict, list, float))


JSON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def _wrong_type(value: Any, types: tuple[str, ...], place: Place) -> Iterator[Fault]:
    got, field, wanted = type_name(value), place_text(place), ",".join(types)
    message = (
        f'Invalid value: "{got}": {field} in body must be of type {wanted}: "{got}"'
    )
    yield Fault(field, "FieldValueTypeInvalid", message)
    if wanted == "integer" and got == "number":
        yield _aside(
            f"Checked value must be of type integer (default format) in {field}"
        )


# ------------------------------------------------------------------ compiling


def compile_schema(source: Any) -> Schema | None:
    """Prepare a structural schema; None where there is none.

    >>> schema = compile_schema({"type": "object", "properties": {
    ...     "size": {"type": "integer", "default": 1}}})
    >>> schema.filled({"colour": "red"})
    {'size': 1}
    """
    return _compiled(source) if isinstance(source, dict) else None


def compile_root(source: Any) -> Schema | None:
    """The schema of a whole custom resource: it is an object of its own."""
    if not isinstance(source, dict):
        return None
    properties = {
        name: part
        for name, part in (source.get("properties") or {}).items()
        # The type and the metadata of an object are checked elsewhere.
        if name not in TYPE_META
    }
    return _compiled({**source, "properties": properties}, root=True)


def _compiled(source: dict[str, Any], *, root: bool = False) -> Schema:
    int_or_string = bool(source.get("x-kubernetes-int-or-string"))
    properties = {
        name: _compiled(part) for name, part in (source.get("properties") or {}).items()
    }
    items = source.get("items")
    embedded = bool(source.get("x-kubernetes-embedded-resource"))
    required = tuple(source.get("required") or ())
    types = _types(source, int_or_string)
    bare = Schema(
        types=types,
        classes=frozenset(kind for name in types for kind in JSON_TYPES.get(name, ())),
        nullable=bool(source.get("nullable")),
        properties=properties,
        additional=_additional(source.get("additionalProperties")),
        items=_compiled(items) if isinstance(items, dict) else None,
        preserving=bool(source.get("x-kubernetes-preserve-unknown-fields")),
        opaque=False,
        embedded=embedded,
        root=root,
        defaults=tuple(
            (name, part.default)
            for name, part in properties.items()
            if part.default is not NOTHING
        ),
        default=NOTHING,
        required=("apiVersion", "kind", *required) if embedded else required,
        rules=rules_of(source),
        all_of=_parts(source, "allOf"),
        any_of=() if int_or_string else _parts(source, "anyOf"),
        one_of=_parts(source, "oneOf"),
        none_of=_compiled(source["not"]) if source.get("not") else None,
    )
    bare = replace(bare, opaque=_is_opaque(bare))
    if "default" not in source:
        return bare
    # Defaults are themselves filled, once and for all.
    return replace(bare, default=bare.filled(source["default"]))


def _is_opaque(schema: Schema) -> bool:
    """Whether there is nothing to fill in, prune or check inside a value."""
    specified = (
        schema.properties,
        schema.additional,
        schema.items,
        schema.embedded,
        schema.root,
        schema.required,
        schema.rules,
        schema.all_of,
        schema.any_of,
        schema.one_of,
        schema.none_of,
    )
    is_scalar = bool(schema.types) and schema.types not in (("object",), ("array",))
    return (schema.preserving or is_scalar) and not any(specified)


def _types(source: dict[str, Any], int_or_string: bool) -> tuple[str, ...]:
    if int_or_string:
        return ("integer", "string")
    name = source.get("type")
    return (name,) if name else ()


ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}


def _additional(source: Any) -> Schema | None:
    if source is True:
        return _compiled(ANYTHING)
    return _compiled(source) if isinstance(source, dict) else None


def _parts(source: dict[str, Any], name: str) -> tuple[Schema, ...]:
    return tuple(_compiled(part) for part in source.get(name) or ())
