"""What a CustomResourceDefinition must look like to be accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from fnop.interpreters.cluster.rules import type_name
from fnop.interpreters.cluster.schema_rules import schema_faults
from fnop.interpreters.cluster.status import Fault, bad_request, quoted
from fnop.interpreters.cluster.store import Object, same

__all__ = ["check_crd_shape", "crd_faults", "crd_update_faults", "unknown_crd_fields"]

SCOPES = ("Cluster", "Namespaced")


# ------------------------------------------------------------------- decoding

# The Go types of what is read here: a body that does not fit is not decoded.
SPEC_SHAPE: dict[str, type] = {
    "group": str,
    "scope": str,
    "names": dict,
    "versions": list,
    "conversion": dict,
}
NAMES_SHAPE: dict[str, type] = {
    "plural": str,
    "singular": str,
    "kind": str,
    "listKind": str,
    "shortNames": list,
    "categories": list,
}
VERSION_SHAPE: dict[str, type] = {
    "name": str,
    "served": bool,
    "storage": bool,
    "schema": dict,
    "subresources": dict,
}
SCHEMA_SHAPE: dict[str, type] = {
    "type": str,
    "format": str,
    "pattern": str,
    "nullable": bool,
    "properties": dict,
    "not": dict,
    "required": list,
    "enum": list,
    "allOf": list,
    "anyOf": list,
    "oneOf": list,
    "minLength": int,
    "maxLength": int,
    "minItems": int,
    "maxItems": int,
    "minProperties": int,
    "maxProperties": int,
    "minimum": float,
    "maximum": float,
    "multipleOf": float,
    "exclusiveMinimum": bool,
    "exclusiveMaximum": bool,
    "x-kubernetes-preserve-unknown-fields": bool,
    "x-kubernetes-int-or-string": bool,
    "x-kubernetes-embedded-resource": bool,
    "x-kubernetes-list-type": str,
    "x-kubernetes-list-map-keys": list,
}
TEXT_LISTS = frozenset(
    ("shortNames", "categories", "required", "x-kubernetes-list-map-keys")
)


def check_crd_shape(obj: Object) -> None:
    """Refuse (400) a CRD that could not be decoded into its Go types."""
    spec = obj.get("spec")
    if spec is None:
        return
    _check("spec", spec, SPEC_SHAPE)
    if spec.get("names") is not None:
        _check("spec.names", spec["names"], NAMES_SHAPE)
    for version in spec.get("versions") or ():
        _check("spec.versions", version, VERSION_SHAPE)
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            _check_schema(schema)
        for part in (version.get("subresources") or {}).values():
            if part is not None and not isinstance(part, dict):
                raise _misshapen("spec.versions.subresources", part)
        scale = (version.get("subresources") or {}).get("scale") or {}
        _check("scale", scale, dict.fromkeys(scale, str))


def _check(where: str, value: Any, shape: dict[str, type]) -> None:
    if not isinstance(value, dict):
        raise _misshapen(where, value)
    for name, wanted in shape.items():
        given = value.get(name)
        if given is None:
            continue
        allowed = (int, float) if wanted is float else wanted
        is_bool = isinstance(given, bool) and wanted is not bool
        if is_bool or not isinstance(given, allowed):
            raise _misshapen(f"{where}.{name}", given)
        if name in TEXT_LISTS and not all(isinstance(x, str) for x in value[name]):
            raise _misshapen(f"{where}.{name}", given)


def _check_schema(schema: Any) -> None:
    _check("openAPIV3Schema", schema, SCHEMA_SHAPE)
    for part in _parts(schema):
        _check_schema(part)


def _parts(schema: dict[str, Any]) -> Iterator[Any]:
    yield from (schema.get("properties") or {}).values()
    for name in ("items", "not"):
        if isinstance(schema.get(name), dict):
            yield schema[name]
    for name in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(name) or ()
    additional = schema.get("additionalProperties")
    if additional is not None and not isinstance(additional, bool):
        yield additional


def _misshapen(where: str, value: Any) -> Exception:
    return bad_request(
        'CustomResourceDefinition in version "v1" cannot be handled as a '
        f"CustomResourceDefinition: json: cannot unmarshal {type_name(value)} into "
        f"Go struct field {where}"
    )


# ------------------------------------------------------------- unknown fields

FIELDS: dict[str, tuple[str, ...]] = {
    "": ("apiVersion", "kind", "metadata", "spec", "status"),
    "spec": (*SPEC_SHAPE, "preserveUnknownFields"),
    "spec.names": tuple(NAMES_SHAPE),
    "spec.conversion": ("strategy", "webhook"),
}
VERSION_FIELDS = (
    *VERSION_SHAPE,
    "deprecated",
    "deprecationWarning",
    "additionalPrinterColumns",
    "selectableFields",
)
COLUMN_FIELDS = ("name", "type", "format", "description", "priority", "jsonPath")
SCALE_FIELDS = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
SCHEMA_FIELDS = (
    *SCHEMA_SHAPE,
    *(
        "items",
        "id",
        "$schema",
        "$ref",
        "description",
        "title",
        "default",
        "uniqueItems",
    ),
    *("additionalProperties", "patternProperties", "dependencies", "additionalItems"),
    *("definitions", "externalDocs", "example", "x-kubernetes-map-type"),
    "x-kubernetes-validations",
)
RULE_FIELDS = (
    *("rule", "message", "messageExpression", "reason", "fieldPath"),
    "optionalOldSelf",
)


def unknown_crd_fields(obj: Object) -> Iterator[str]:
    """The paths in a CRD that its type does not have (below metadata: not here)."""
    for path, known in FIELDS.items():
        part: Any = obj
        for name in path.split(".") if path else ():
            part = part.get(name) or {}
        yield from _others(part, known, path)
    for index, version in enumerate((obj.get("spec") or {}).get("versions") or ()):
        where = f"spec.versions[{index}]"
        yield from _others(version, VERSION_FIELDS, where)
        schema = version.get("schema") or {}
        yield from _others(schema, ("openAPIV3Schema",), f"{where}.schema")
        if isinstance(schema.get("openAPIV3Schema"), dict):
            yield from _unknown_in_schema(
                schema["openAPIV3Schema"], f"{where}.schema.openAPIV3Schema"
            )
        for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
            path = f"{where}.additionalPrinterColumns[{number}]"
            yield from _others(column, COLUMN_FIELDS, path)
        for number, field in enumerate(version.get("selectableFields") or ()):
            path = f"{where}.selectableFields[{number}]"
            yield from _others(field, ("jsonPath",), path)
        parts = version.get("subresources") or {}
        yield from _others(parts, ("status", "scale"), f"{where}.subresources")
        scale = parts.get("scale") or {}
        yield from _others(scale, SCALE_FIELDS, f"{where}.subresources.scale")


def _others(value: Any, known: tuple[str, ...], path: str) -> Iterator[str]:
    for name in value if isinstance(value, dict) else ():
        if name not in known:
            yield f"{path}.{name}" if path else name


def _unknown_in_schema(schema: dict[str, Any], path: str) -> Iterator[str]:
    yield from _others(schema, SCHEMA_FIELDS, path)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{index}]"
        yield from _others(rule, RULE_FIELDS, where)
    for name, part in (schema.get("properties") or {}).items():
        yield from _unknown_in_schema(part, f"{path}.properties.{name}")
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), dict):
            yield from _unknown_in_schema(schema[name], f"{path}.{name}")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(schema.get(name) or ()):
            yield from _unknown_in_schema(part, f"{path}.{name}[{index}]")


# ----------------------------------------------------------------- validating


def _required(field: str, why: str = "") -> Fault:
    message = f"Required value: {why}" if why else "Required value"
    return Fault(field, "FieldValueRequired", message)


def _invalid(field: str, value: Any, why: str) -> Fault:
    shown = orjson.dumps(value).decode()
    return Fault(field, "FieldValueInvalid", f"Invalid value: {shown}: {why}")


def crd_faults(obj: Object) -> list[Fault]:
    """What is wrong with a CRD whose shape is right."""
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    name = obj["metadata"].get("name", "")
    faults = []
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        why = 'must be spec.names.plural+"."+spec.group'
        faults.append(_invalid("metadata.name", name, why))
    if not spec.get("group"):
        faults.append(_required("spec.group"))
    scope = spec.get("scope")
    if not scope:
        faults.append(_required("spec.scope"))
    elif scope not in SCOPES:
        known = ", ".join(map(quoted, SCOPES))
        message = f"Unsupported value: {quoted(scope)}: supported values: {known}"
        faults.append(Fault("spec.scope", "FieldValueNotSupported", message))
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        faults.append(_invalid("spec.preserveUnknownFields", True, why))
    faults += _version_faults(spec.get("versions") or [])
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field) or (names.get(field) == "List" and field == "listKind"):
            faults.append(_required(f"spec.names.{field}"))
    return faults


def _version_faults(versions: list[dict[str, Any]]) -> Iterator[Fault]:
    stored = [version for version in versions if version.get("storage")]
    if len(stored) != 1:
        why = "must have exactly one version marked as storage version"
        yield _invalid("spec.versions", versions or None, why)
        field, why = "status.storedVersions", "must have at least one stored version"
        if not stored:
            yield _invalid(field, None, why)
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}]"
        if not version.get("name"):
            yield _required(f"{where}.name")
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield _required(f"{where}.schema.openAPIV3Schema")
            continue
        # With one version the server speaks of spec.validation, as of old.
        one = len(versions) == 1
        root = f"{'spec.validation' if one else f'{where}.schema'}.openAPIV3Schema"
        yield from schema_faults(schema, root)


def crd_update_faults(new: Object, old: Object) -> Iterator[Fault]:
    """What of a CRD cannot be changed once its kind is served."""
    for path in (("scope",), ("group",), ("names", "plural"), ("names", "kind")):
        after, before = new.get("spec") or {}, old["spec"]
        for part in path:
            after, before = after.get(part) or {}, before[part]
        if not same(after, before):
            yield _invalid(f"spec.{'.'.join(path)}", after, "field is immutable")
