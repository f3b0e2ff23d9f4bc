"""Validation of structural schemas: the rules for an openAPIV3Schema.

Three validators of the real server apply, in this order:

- the OpenAPI schema's validator
  (`validation.ValidateCustomResourceDefinitionOpenAPISchema`)
- the validator of defaults
- the validator of structural schemas (`schema.ValidateStructural`, whose faults are
  sorted)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from fnop.interpreters.cluster.schema.cel import compile_laws, rule_faults
from fnop.interpreters.cluster.schema.regex import pattern_fault
from fnop.interpreters.cluster.schema.rules import format_of
from fnop.interpreters.cluster.schema.schema import Schema, compile_schema, plain
from fnop.interpreters.cluster.values.golang import go_json
from fnop.interpreters.cluster.values.status import Fault, quoted

__all__ = [
    "RULE_FIELDS",
    "SCHEMA_FIELDS",
    "schema_faults",
    "unrecognized_formats",
    "written_schema",
]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
JUNCTORS = ("allOf", "anyOf", "oneOf")
# Keywords of JSON schema that the server does not support.
UNSUPPORTED = (
    "$ref",
    "definitions",
    "dependencies",
    "patternProperties",
    "additionalItems",
    "id",
)
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def schema_faults(schema: dict[str, Any], where: str) -> list[Fault]:
    """The faults of the schema of a custom kind."""
    if _names_its_dialect(schema):
        why = "OpenAPIV3Schema 'schema' is not supported"
        return [Fault(where, "FieldValueInvalid", f'Invalid value: "": {why}')]
    faults = [*_node_faults(schema, where, root=True)]
    if schema.get("nullable"):
        faults.append(
            _forbidden_fault(f"{where}.nullable", "nullable cannot be true at the root")
        )
    if _has_unsupported(schema):
        return faults  # it cannot be read as a structure
    structural = sorted(
        (*_structural_faults(schema, where, "root"), *_gaps(schema, schema, where)),
        key=lambda fault: f"{fault.field}: {fault.message}",
    )
    faults += structural
    if not structural:
        faults += _default_faults(schema, where, root=True)
    if not faults:
        # Rules are compiled only against valid types.
        faults += _law_faults(schema, where, root=True)
    if not faults:
        faults += _lawless_defaults(schema, where)
    return faults


def _has_unsupported(schema: dict[str, Any]) -> bool:
    return (
        isinstance(schema.get("items"), list)
        or any(schema.get(name) for name in UNSUPPORTED)
        or any(
            _has_unsupported(part)
            for part, _ in (*_parts(schema, ""), *_alternatives(schema, ""))
        )
    )


def _names_its_dialect(schema: dict[str, Any]) -> bool:
    return bool(schema.get("$schema")) or any(
        _names_its_dialect(part) for part, _ in _parts(schema, "")
    )


def _required_fault(field: str, why: str) -> Fault:
    return Fault(field, "FieldValueRequired", f"Required value: {why}")


def _forbidden_fault(field: str, why: str) -> Fault:
    return Fault(field, "FieldValueForbidden", f"Forbidden: {why}")


def _invalid_fault(field: str, value: Any, why: str) -> Fault:
    shown = go_json(plain(value))
    return Fault(field, "FieldValueInvalid", f"Invalid value: {shown}: {why}")


def _unsupported_fault(field: str, value: str, known: tuple[str, ...]) -> Fault:
    listed = ", ".join(map(quoted, known))
    message = f"Unsupported value: {quoted(value)}: supported values: {listed}"
    return Fault(field, "FieldValueNotSupported", message)


def _parts(schema: dict[str, Any], where: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The structural parts of a schema."""
    for name, part in (schema.get("properties") or {}).items():
        yield part, f"{where}.properties[{name}]"
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield schema[name], f"{where}.{name}"


def _alternatives(
    schema: dict[str, Any], where: str
) -> Iterator[tuple[dict[str, Any], str]]:
    for name in JUNCTORS:
        for index, part in enumerate(schema.get(name) or ()):
            yield part, f"{where}.{name}[{index}]"
    if schema.get("not") is not None:
        yield schema["not"], f"{where}.not"


# ------------------------------------------------------------- OpenAPI schemas


def _node_faults(
    schema: dict[str, Any], where: str, *, root: bool = False
) -> Iterator[Fault]:
    """Yield the keywords of a node that the server does not allow in any schema."""
    kind = schema.get("type")
    if kind and kind not in TYPES:
        yield _unsupported_fault(f"{where}.type", kind, TYPES)
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield _forbidden_fault(f"{where}.type", why)
    for name in UNSUPPORTED:
        if schema.get(name):
            yield _forbidden_fault(f"{where}.{name}", f"{name} is not supported")
    if isinstance(schema.get("items"), list):
        why = "items must be a schema object and not an array"
        yield _forbidden_fault(f"{where}.items", why)
    if schema.get("uniqueItems"):
        why = (
            "uniqueItems cannot be set to true since the runtime complexity becomes "
            "quadratic"
        )
        yield _forbidden_fault(f"{where}.uniqueItems", why)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and additional not in (None, True):
        why = "additionalProperties and properties are mutual exclusive"
        yield _forbidden_fault(f"{where}.additionalProperties", why)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        field = f"{where}.x-kubernetes-preserve-unknown-fields"
        yield _invalid_fault(field, False, "must be true or undefined")
    yield from _map_type_faults(schema, where)
    yield from _list_type_faults(schema, where)
    for part, place in (*_parts(schema, where), *_alternatives(schema, where)):
        yield from _node_faults(part, place)


def _map_type_faults(schema: dict[str, Any], where: str) -> Iterator[Fault]:
    name = schema.get("x-kubernetes-map-type")
    if name is None:
        return
    if schema.get("type") != "object":
        why = "must be object if x-kubernetes-map-type is specified"
        yield _wrong_type_fault(schema, f"{where}.type", why)
    if name not in ("atomic", "granular"):
        field = f"{where}.x-kubernetes-map-type"
        yield _unsupported_fault(field, name, ("atomic", "granular"))


def _wrong_type_fault(schema: dict[str, Any], field: str, why: str) -> Fault:
    kind = schema.get("type")
    return _invalid_fault(field, kind, why) if kind else _required_fault(field, why)


def _list_type_faults(schema: dict[str, Any], where: str) -> Iterator[Fault]:
    name = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    given = schema.get("items")
    items = given if isinstance(given, dict) else {}
    field = f"{where}.x-kubernetes-list-type"
    if name is not None and schema.get("type") != "array":
        why = "must be array if x-kubernetes-list-type is specified"
        yield _wrong_type_fault(schema, f"{where}.type", why)
    if name is not None and name not in ("atomic", "set", "map"):
        yield _unsupported_fault(field, name, ("atomic", "set", "map"))
    if keys and name is None:
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield _required_fault(field, why)
    elif keys and name != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield _invalid_fault(field, name, why)
    if name == "set" and schema.get("type") == "array":
        yield from _set_item_faults(items, f"{where}.items")
    if name == "map" and given is None:
        why = "must have a schema if x-kubernetes-list-type is map"
        yield _required_fault(f"{where}.items", why)
        if not keys:
            why = "must not be empty if x-kubernetes-list-type is map"
            yield _required_fault(f"{where}.x-kubernetes-list-map-keys", why)
    elif name == "map":
        yield from _keys_faults(items, keys, where)


def _set_item_faults(items: dict[str, Any], where: str) -> Iterator[Fault]:
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        given = items.get("x-kubernetes-map-type")
        why = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield _invalid_fault(f"{where}.x-kubernetes-map-type", given, why)
    is_list = items.get("type") == "array"
    if is_list and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        given = items.get("x-kubernetes-list-type")
        why = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield _invalid_fault(f"{where}.x-kubernetes-list-type", given, why)
    if items.get("nullable"):
        why = "cannot be nullable when x-kubernetes-list-type is set"
        yield _forbidden_fault(f"{where}.nullable", why)


def _keys_faults(items: dict[str, Any], keys: list[str], where: str) -> Iterator[Fault]:
    field = f"{where}.x-kubernetes-list-map-keys"
    properties = items.get("properties") or {}
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        yield _required_fault(field, why)
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield _wrong_type_fault(items, f"{where}.items.type", why)
        return
    if len(set(keys)) != len(keys):
        yield _invalid_fault(field, keys, "must not contain duplicate entries")
    for key in dict.fromkeys(keys):
        part, place = properties.get(key), f"{where}.items.properties[{key}]"
        if part is None:
            yield _invalid_fault(
                field, keys, "entries must all be names of item properties"
            )
            return
        if part.get("type") in ("array", "object"):
            why = (
                "must be a scalar type if parent array's x-kubernetes-list-type is map"
            )
            yield _invalid_fault(f"{place}.type", part["type"], why)
        if "default" not in part and key not in (items.get("required") or ()):
            why = (
                "this property is in x-kubernetes-list-map-keys, so it must have a "
                "default or be a required property"
            )
            yield _required_fault(f"{place}.default", why)
        if part.get("nullable"):
            why = (
                "this property is in x-kubernetes-list-map-keys, so it cannot be "
                "nullable"
            )
            yield _forbidden_fault(f"{place}.nullable", why)


# ----------------------------------------------------------- structural schemas

UNTYPED = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def _structural_faults(
    schema: dict[str, Any], where: str, level: str
) -> Iterator[Fault]:
    """Yield the faults of the structure: each value has one type."""
    kind, items = schema.get("type"), schema.get("items")
    if kind == "array" and items is None:
        yield _required_fault(f"{where}.items", "must be specified")
    for part, place in _parts(schema, where):
        is_item = part is items
        yield from _structural_faults(part, place, "item" if is_item else "field")
    additional = schema.get("additionalProperties")
    if additional is not None and level == "root":
        yield _forbidden_fault(
            f"{where}.additionalProperties", "must not be used at the root"
        )
    yield from _extension_faults(schema, where)
    yield from _value_faults(schema, where)
    yield from _type_faults(schema, where, level)
    if schema.get("x-kubernetes-embedded-resource") and additional is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        yield _forbidden_fault(f"{where}.additionalProperties", why)
    yield from _object_faults(schema, where, level)


def _type_faults(schema: dict[str, Any], where: str, level: str) -> Iterator[Fault]:
    kind, field = schema.get("type"), f"{where}.type"
    untyped = schema.get("x-kubernetes-int-or-string") or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield _wrong_type_fault(schema, field, why)
    elif not kind and not untyped:
        yield _required_fault(field, UNTYPED[level])
    if level == "root" and kind and kind != "object":
        yield _invalid_fault(field, kind, "must be object at the root")


def _extension_faults(schema: dict[str, Any], where: str) -> Iterator[Fault]:
    if not schema.get("x-kubernetes-int-or-string"):
        return
    for name in (
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ):
        if schema.get(name):
            why = "must be false if x-kubernetes-int-or-string is true"
            yield _invalid_fault(f"{where}.{name}", True, why)


def _object_faults(schema: dict[str, Any], where: str, level: str) -> Iterator[Fault]:
    """Yield the faults in the schemas of an object's apiVersion, kind and metadata."""
    properties = schema.get("properties") or {}
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if level == "root" or embedded:
        for name, wanted in (
            ("kind", "string"),
            ("apiVersion", "string"),
            ("metadata", "object"),
        ):
            part = properties.get(name)
            if part is not None and part.get("type") != wanted:
                field = f"{where}.properties[{name}].type"
                given = part.get("type") or ""
                yield _invalid_fault(field, given, f"must be {wanted}")
    if level == "root" and "metadata" in properties:
        yield from _metadata_faults(
            properties["metadata"], f"{where}.properties[metadata]"
        )
    keeps = schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and not keeps and not properties:
        why = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        yield _required_fault(f"{where}.properties", why)


def _metadata_faults(schema: dict[str, Any], where: str) -> Iterator[Fault]:
    if "default" in schema:
        yield _forbidden_fault(
            f"{where}.default", "must not be set in top-level metadata"
        )
    named = set(schema.get("properties") or ()) <= {"name", "generateName"}
    if not named or not set(schema) <= {"type", "properties", "description", "default"}:
        why = (
            "must not specify anything other than name and generateName, but metadata "
            "is implicitly specified"
        )
        yield _forbidden_fault(where, why)


def _value_faults(
    schema: dict[str, Any], where: str, *, nested: bool = False
) -> Iterator[Fault]:
    pattern = schema.get("pattern")
    if pattern and (fault := pattern_fault(pattern)):
        why = f"must be a valid regular expression, but isn't: {fault}"
        yield _invalid_fault(f"{where}.pattern", pattern, why)
    any_of, all_of = schema.get("anyOf") or [], schema.get("allOf") or []
    first = all_of[0].get("anyOf") if all_of else None
    if nested:  # only the structure may say so
        any_of, first = [], None
    for part, place in _alternatives(schema, where):
        if any_of == INT_OR_STRING and any(part is one for one in any_of):
            continue
        is_first = first == INT_OR_STRING and part is all_of[0]
        yield from _nested_faults(part, place, skip_any_of=is_first)


def _gaps(
    values: dict[str, Any], structure: dict[str, Any] | None, where: str, at: str = ""
) -> Iterator[Fault]:
    """Yield parts that alternatives specify and the structure does not.

    See validateStructuralCompleteness. `where` is the place in the structure, `at` the
    place in the alternative.
    """
    if structure is None:
        yield _required_fault(where, f"because it is defined in {at}")
        return
    for part, place in _alternatives(values, at or where):
        yield from _gaps(part, structure, where, place)
    if not at:
        return
    items = values.get("items")
    if isinstance(items, dict):
        inner = structure.get("items")
        yield from _gaps(items, inner, f"{where}.items", f"{at}.items")
    known = structure.get("properties") or {}
    for name, part in (values.get("properties") or {}).items():
        key = f"properties[{name}]"
        yield from _gaps(part, known.get(name), f"{where}.{key}", f"{at}.{key}")


# Keywords for the structure only, and their allowed values elsewhere: "empty" and
# "false" allow the keyword itself, with such a value.
STRUCTURAL: dict[str, Literal["empty", "false", "undefined"]] = {
    "type": "empty",
    "additionalProperties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    "externalDocs": "undefined",
    "x-kubernetes-preserve-unknown-fields": "false",
    "x-kubernetes-embedded-resource": "false",
    "x-kubernetes-int-or-string": "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}


def _nested_faults(
    schema: dict[str, Any], where: str, *, skip_any_of: bool = False
) -> Iterator[Fault]:
    """Yield the keywords that alternatives may not have: they only validate."""
    rest = {**schema, "anyOf": []} if skip_any_of else schema
    yield from _value_faults(rest, where, nested=True)
    if isinstance(schema.get("items"), dict):
        yield from _nested_faults(schema["items"], f"{where}.items")
    for name, part in (schema.get("properties") or {}).items():
        place = f"{where}.properties[{name}]"
        yield from _nested_faults(part, place)
        if name == "metadata":
            yield _forbidden_fault(place, "must not be specified in a nested context")
    for name, demand in STRUCTURAL.items():
        given = schema.get(name)
        if given or (given is not None and demand == "undefined"):
            yield _forbidden_fault(
                f"{where}.{name}", f"must be {demand} to be structural"
            )


# -------------------------------------------------------------------- defaults


def _default_faults(
    schema: dict[str, Any], where: str, *, root: bool = False
) -> Iterator[Fault]:
    if schema.get("default") is not None and (compiled := compile_schema(schema)):
        yield from _one_default(compiled, schema["default"], f"{where}.default", root)
    for part, place in _parts(schema, where):
        # The real server does not look for defaults in maps.
        if part is not schema.get("additionalProperties"):
            yield from _default_faults(part, place)


def _one_default(schema: Schema, value: Any, where: str, root: bool) -> Iterator[Fault]:
    if root:
        for name in ("apiVersion", "kind"):
            if name not in value:
                yield Fault(f"{where}.{name}", "FieldValueRequired", "Required value")
        return
    if schema.pruned(value) != value:
        yield _invalid_fault(where, value, "must not have unknown fields")
    # The default as it is written: defaults inside it are not filled in yet.
    for fault in schema.faults(plain(value), None):
        inner = fault.field if fault.field not in ("", "<nil>") else ""
        # Places in the message begin at the default.
        dot = "." if inner and inner[0] != "." else ""
        field = f"{where}{dot}{inner}"
        yield Fault(field, fault.reason, fault.message)


def _lawless_defaults(schema: dict[str, Any], where: str) -> Iterator[Fault]:
    """Yield the defaults that break CEL rules of their schema."""
    default = schema.get("default")
    if default is not None and (laws := compile_laws(schema)) is not None:
        for fault in laws.faults(plain(default), None, None, [], False):
            inside = "" if fault.field in ("", "<nil>") else f".{fault.field}"
            yield Fault(f"{where}.default{inside}", fault.reason, fault.message)
    for part, place in _parts(schema, where):
        if part is not schema.get("additionalProperties"):
            yield from _lawless_defaults(part, place)


# ----------------------------------------------------------------- rules in CEL


def _law_faults(
    schema: dict[str, Any], where: str, *, root: bool = False
) -> Iterator[Fault]:
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    yield from rule_faults(schema, where, root=root or embedded)
    for part, place in _parts(schema, where):
        yield from _law_faults(part, place)


# ------------------------------------------------------------ what is written

# Fields that Go omits when they are empty (omitempty).
OMITTED_EMPTY = frozenset(
    (
        *("id", "$schema", "description", "type", "format", "title", "pattern"),
        *("exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "nullable"),
        *("required", "enum", *JUNCTORS, "properties", "patternProperties"),
        *("dependencies", "definitions", "x-kubernetes-embedded-resource"),
        *("x-kubernetes-int-or-string", "x-kubernetes-list-map-keys"),
        "x-kubernetes-validations",
    )
)


# All fields: pointers are written even if their value is empty.
SCHEMA_FIELDS = OMITTED_EMPTY | {
    *("$ref", "default", "example", "items", "not", "externalDocs"),
    *("maximum", "minimum", "multipleOf", "maxLength", "minLength"),
    *("maxItems", "minItems", "maxProperties", "minProperties"),
    *("additionalProperties", "additionalItems"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type"),
    "x-kubernetes-map-type",
}
RULE_FIELDS = frozenset(
    (
        *("rule", "message", "messageExpression", "reason", "fieldPath"),
        "optionalOldSelf",
    )
)
OMITTED_OF_RULES = frozenset(("message", "messageExpression", "fieldPath"))


def written_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as it comes back from Go, without unknown fields.

    >>> written_schema({"type": "object", "properties": {}, "default": 1.0, "x": 1})
    {'type': 'object', 'default': 1}
    """
    return {
        name: _written_part(name, value)
        for name, value in schema.items()
        if name in SCHEMA_FIELDS
        and value is not None
        and (value or name not in OMITTED_EMPTY)
    }


def _written_rule(rule: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in rule.items()
        if name in RULE_FIELDS
        and value is not None
        and (value or name not in OMITTED_OF_RULES)
    }


def _written_part(name: str, value: Any) -> Any:
    if name in ("items", "not", "additionalProperties") and isinstance(value, dict):
        return written_schema(value)
    if name in ("properties", "patternProperties", "definitions"):
        return {key: written_schema(part) for key, part in value.items()}
    if name in JUNCTORS:
        return [written_schema(part) for part in value]
    if name == "x-kubernetes-validations":
        return [_written_rule(rule) for rule in value]
    return plain(value)


def unrecognized_formats(schema: dict[str, Any]) -> set[str]:
    """The formats that have no effect at their place."""
    found = {schema.get("format") or ""} - {format_of(schema), ""}
    for part, _ in (*_parts(schema, ""), *_alternatives(schema, "")):
        found |= unrecognized_formats(part)
    return found
