"""Validation of CustomResourceDefinitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any
from urllib.parse import urlsplit

import orjson

from fnop.interpreters.cluster.kinds.crds import APPROVAL, is_established, is_protected
from fnop.interpreters.cluster.schema.cel import field_path
from fnop.interpreters.cluster.schema.rules import label_fault, type_name
from fnop.interpreters.cluster.schema.schema_rules import (
    RULE_FIELDS,
    SCHEMA_FIELDS,
    schema_faults,
    unrecognized_formats,
)
from fnop.interpreters.cluster.values.metadata import name_faults
from fnop.interpreters.cluster.values.objects import Object, same
from fnop.interpreters.cluster.values.status import Fault, bad_request, quoted

__all__ = ["check_crd_shape", "crd_faults", "crd_update_faults", "unknown_crd_fields"]

SCOPES = ("Cluster", "Namespaced")


# ------------------------------------------------------------------- decoding

# The Go types of the fields read here: a body that does not fit is not decoded.
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
    "deprecated": bool,
    "deprecationWarning": str,
    "additionalPrinterColumns": list,
    "selectableFields": list,
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
                raise _wrong_type_error("spec.versions.subresources", part)
        scale = (version.get("subresources") or {}).get("scale") or {}
        _check("scale", scale, dict.fromkeys(scale, str))


def _check(where: str, value: Any, shape: dict[str, type]) -> None:
    if not isinstance(value, dict):
        raise _wrong_type_error(where, value)
    for name, wanted in shape.items():
        given = value.get(name)
        if given is None:
            continue
        allowed = (int, float) if wanted is float else wanted
        is_bool = isinstance(given, bool) and wanted is not bool
        if is_bool or not isinstance(given, allowed):
            raise _wrong_type_error(f"{where}.{name}", given)
        if name in TEXT_LISTS and not all(isinstance(x, str) for x in value[name]):
            raise _wrong_type_error(f"{where}.{name}", given)


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


def _wrong_type_error(where: str, value: Any) -> Exception:
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
VERSION_FIELDS = (*VERSION_SHAPE,)
COLUMN_FIELDS = ("name", "type", "format", "description", "priority", "jsonPath")
SCALE_FIELDS = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")


def unknown_crd_fields(obj: Object) -> Iterator[str]:
    """The paths in a CRD that its type does not have (below metadata: not here)."""
    for path, known in FIELDS.items():
        part: Any = obj
        for name in path.split(".") if path else ():
            part = part.get(name) or {}
        yield from _unknown_names(part, known, path)
    for index, version in enumerate((obj.get("spec") or {}).get("versions") or ()):
        where = f"spec.versions[{index}]"
        yield from _unknown_names(version, VERSION_FIELDS, where)
        schema = version.get("schema") or {}
        yield from _unknown_names(schema, ("openAPIV3Schema",), f"{where}.schema")
        if isinstance(schema.get("openAPIV3Schema"), dict):
            yield from _unknown_in_schema(
                schema["openAPIV3Schema"], f"{where}.schema.openAPIV3Schema"
            )
        for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
            path = f"{where}.additionalPrinterColumns[{number}]"
            yield from _unknown_names(column, COLUMN_FIELDS, path)
        for number, field in enumerate(version.get("selectableFields") or ()):
            path = f"{where}.selectableFields[{number}]"
            yield from _unknown_names(field, ("jsonPath",), path)
        parts = version.get("subresources") or {}
        yield from _unknown_names(parts, ("status", "scale"), f"{where}.subresources")
        scale = parts.get("scale") or {}
        yield from _unknown_names(scale, SCALE_FIELDS, f"{where}.subresources.scale")


def _unknown_names(value: Any, known: Collection[str], path: str) -> Iterator[str]:
    for name in value if isinstance(value, dict) else ():
        if name not in known:
            yield f"{path}.{name}" if path else name


def _unknown_in_schema(schema: dict[str, Any], path: str) -> Iterator[str]:
    yield from _unknown_names(schema, SCHEMA_FIELDS, path)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{index}]"
        yield from _unknown_names(rule, RULE_FIELDS, where)
    for name, part in (schema.get("properties") or {}).items():
        yield from _unknown_in_schema(part, f"{path}.properties.{name}")
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), dict):
            yield from _unknown_in_schema(schema[name], f"{path}.{name}")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(schema.get(name) or ()):
            yield from _unknown_in_schema(part, f"{path}.{name}[{index}]")


# ----------------------------------------------------------------- validating


def _required_fault(field: str, why: str = "") -> Fault:
    message = f"Required value: {why}" if why else "Required value"
    return Fault(field, "FieldValueRequired", message)


def _invalid_fault(field: str, value: Any, why: str) -> Fault:
    shown = orjson.dumps(value).decode()  # structs: their fields keep their order
    return Fault(field, "FieldValueInvalid", f"Invalid value: {shown}: {why}")


def crd_faults(obj: Object, warnings: list[str] | None = None) -> list[Fault]:
    """The faults of a CRD of the right shape; a valid one may add to `warnings`."""
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    faults = [*_name_faults(obj["metadata"], spec, names), *_group_faults(spec)]
    scope = spec.get("scope")
    if not scope:
        faults.append(_required_fault("spec.scope"))
    elif scope not in SCOPES:
        faults.append(_unsupported_fault("spec.scope", scope, SCOPES))
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        faults.append(_invalid_fault("spec.preserveUnknownFields", True, why))
    faults += _version_faults(spec.get("versions") or [])
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field) or (names.get(field) == "List" and field == "listKind"):
            faults.append(_required_fault(f"spec.names.{field}"))
    faults += _names_faults(names)
    faults += _conversion_faults(spec)
    if not faults and warnings is not None:
        formats: set[str] = set()
        for version in spec.get("versions") or ():
            formats |= unrecognized_formats(version["schema"]["openAPIV3Schema"])
        warnings += [f'unrecognized format "{name}"' for name in sorted(formats)]
    return faults


def _unsupported_fault(field: str, value: str, known: tuple[str, ...]) -> Fault:
    listed = ", ".join(map(quoted, known))
    message = f"Unsupported value: {quoted(value)}: supported values: {listed}"
    return Fault(field, "FieldValueNotSupported", message)


def _name_faults(
    metadata: dict[str, Any], spec: dict[str, Any], names: dict[str, Any]
) -> Iterator[Fault]:
    name = metadata.get("name", "")
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        why = 'must be spec.names.plural+"."+spec.group'
        yield _invalid_fault("metadata.name", name, why)
    if not is_protected(spec.get("group") or ""):
        return
    field = f"metadata.annotations[{APPROVAL}]"
    approval = (metadata.get("annotations") or {}).get(APPROVAL, "")
    rule = f'protected groups must have approval annotation "{APPROVAL}"'
    if not approval:
        yield _required_fault(field, f"{rule}, see {POLICY}")
    elif not approval.startswith("unapproved") and not _is_url(approval):
        more = 'with either a URL or a reason starting with "unapproved"'
        yield _invalid_fault(field, approval, f"{rule} {more}, see {POLICY}")


POLICY = "https://github.com/kubernetes/enhancements/pull/1111"


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme and parts.netloc)


def _group_faults(spec: dict[str, Any]) -> Iterator[Fault]:
    group = spec.get("group") or ""
    if not group:
        yield _required_fault("spec.group")
    elif whys := name_faults(("", "spec.group"), group):
        yield _invalid_fault("spec.group", group, ",".join(whys))
    elif "." not in group:
        yield _invalid_fault(
            "spec.group", group, "should be a domain with at least one dot"
        )


def _names_faults(names: dict[str, Any]) -> Iterator[Fault]:
    for field in ("plural", "singular", "kind", "listKind"):
        name = names.get(field) or ""
        mixed = field in ("kind", "listKind")
        why = label_fault(name.lower() if mixed else name) if name else ""
        if why and mixed:
            why = f"may have mixed case, but should otherwise match: {why}"
        if why:
            yield _invalid_fault(f"spec.names.{field}", name, why)
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            if why := label_fault(name):
                yield _invalid_fault(f"spec.names.{field}[{index}]", name, why)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        why = "kind and listKind may not be the same"
        yield _invalid_fault("spec.names.listKind", names["listKind"], why)


def _conversion_faults(spec: dict[str, Any]) -> Iterator[Fault]:
    conversion = spec.get("conversion") or {}
    strategy, where = conversion.get("strategy"), "spec.conversion"
    webhook = conversion.get("webhook") or {}
    if not strategy:
        yield _required_fault(f"{where}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield _unsupported_fault(f"{where}.strategy", strategy, ("None", "Webhook"))
    if strategy != "Webhook":
        for name, field in (
            ("clientConfig", "webhookClientConfig"),
            ("conversionReviewVersions", "conversionReviewVersions"),
        ):
            if webhook.get(name):
                why = "Forbidden: should not be set when strategy is not set to Webhook"
                yield Fault(f"{where}.{field}", "FieldValueForbidden", why)
        return
    if not webhook.get("clientConfig"):
        why = "required when strategy is set to Webhook"
        yield _required_fault(f"{where}.webhookClientConfig", why)
    if not webhook.get("conversionReviewVersions"):
        yield _required_fault(f"{where}.conversionReviewVersions")
    if len(spec.get("versions") or ()) > 1:
        why = "Forbidden: the simulated cluster calls no webhooks to convert versions"
        yield Fault(f"{where}.strategy", "FieldValueForbidden", why)


# -------------------------------------------------------------------- versions


def _version_faults(versions: list[dict[str, Any]]) -> Iterator[Fault]:
    for index, version in enumerate(versions):
        where, name = f"spec.versions[{index}]", version.get("name") or ""
        if not name:
            yield _required_fault(f"{where}.name")
        elif why := label_fault(name):
            yield _invalid_fault(f"{where}.name", name, why)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield _required_fault(f"{where}.schema.openAPIV3Schema")
        yield from _deprecation_faults(version, where)
    stored = [each.get("name") or "" for each in versions if each.get("storage")]
    if len({version.get("name") for version in versions}) != len(versions):
        shown = _printed_versions(versions)
        yield _invalid_fault(
            "spec.versions", shown, "must contain unique version names"
        )
    if len(stored) != 1:
        why = "must have exactly one version marked as storage version"
        yield _invalid_fault("spec.versions", _printed_versions(versions) or None, why)
        field = "status.storedVersions"
        if not stored:
            yield _invalid_fault(field, None, "must have at least one stored version")
        for name in stored[1:]:
            # Only the first one was noted as stored.
            yield _invalid_fault(
                field, stored[:1], f"must have the storage version {name}"
            )
    yield from _part_faults(versions)


def _printed_versions(versions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Versions as Go prints them, without the parts that they share."""
    return [
        {
            "Name": version.get("name") or "",
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": None,
            "Subresources": None,
            "AdditionalPrinterColumns": None,
            "SelectableFields": None,
        }
        for version in versions
    ]


def _deprecation_faults(version: dict[str, Any], where: str) -> Iterator[Fault]:
    warning, field = version.get("deprecationWarning"), f"{where}.deprecationWarning"
    if warning is None:
        return
    if not version.get("deprecated"):
        yield _invalid_fault(field, warning, "can only be set for deprecated versions")
    if not warning:
        yield _invalid_fault(field, warning, "must not be empty")
    if len(warning.encode()) > 256:
        yield _invalid_fault(field, warning, "must be <= 256 characters long")
    at = next((i for i, char in enumerate(warning) if not char.isprintable()), None)
    if at is not None:
        why = (
            "must only contain printable UTF-8 characters; non-printable character "
            f"found at index {at}"
        )
        yield _invalid_fault(field, warning, why)


def _part_faults(versions: list[dict[str, Any]]) -> Iterator[Fault]:
    """Yield the faults of versions; parts shared by all are reported as if in spec."""
    for name, check in PARTS.items():
        values = [version.get(name) for version in versions]
        if all(same(value, values[0]) for value in values[1:]):
            places = [("spec.validation" if name == "schema" else f"spec.{name}", 0)]
        else:
            places = [(f"spec.versions[{i}].{name}", i) for i in range(len(values))]
        for where, index in places if values else ():
            if values[index]:
                yield from check(values[index], where, versions[index])


def _schema(
    schema: dict[str, Any], where: str, version: dict[str, Any]
) -> Iterator[Fault]:
    source = schema.get("openAPIV3Schema")
    if source is not None:
        yield from schema_faults(source, f"{where}.openAPIV3Schema")


def _subresources(
    parts: dict[str, Any], where: str, version: dict[str, Any]
) -> Iterator[Fault]:
    scale = parts.get("scale")
    if scale is None:
        return
    for name, under, words in (
        ("specReplicasPath", (".spec.",), ".spec"),
        ("statusReplicasPath", (".status.",), ".status"),
        ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status"),
    ):
        field, path = f"{where}.scale.{name}", scale.get(name) or ""
        if not path:
            if name != "labelSelectorPath":
                yield _required_fault(field)
        elif not path.startswith("."):
            yield _invalid_fault(
                field, path, "must be a simple json path starting with ."
            )
        elif not path.startswith(under):
            yield _invalid_fault(field, path, f"should be a json path under {words}")


COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = (
    *("byte", "date", "date-time", "double", "float", "int32", "int64"),
    "password",
)


def _columns(
    columns: list[dict[str, Any]], where: str, version: dict[str, Any]
) -> Iterator[Fault]:
    for index, column in enumerate(columns):
        place, kind = f"{where}[{index}]", column.get("type") or ""
        form, path = column.get("format") or "", column.get("jsonPath") or ""
        wanted = f"must be one of {','.join(COLUMN_TYPES)}"
        if not column.get("name"):
            yield _required_fault(f"{place}.name")
        if not kind:
            yield _required_fault(f"{place}.type", wanted)
        elif kind not in COLUMN_TYPES:
            yield _invalid_fault(f"{place}.type", kind, wanted)
        if form and form not in COLUMN_FORMATS:
            wanted = f"must be one of {','.join(COLUMN_FORMATS)}"
            yield _invalid_fault(f"{place}.format", form, wanted)
        if not path:
            yield _required_fault(f"{place}.JSONPath")
        elif not path.startswith("."):
            why = "must be a simple json path starting with ."
            yield _invalid_fault(f"{place}.JSONPath", path, why)


def _selectable_faults(
    fields: list[dict[str, Any]], where: str, version: dict[str, Any]
) -> Iterator[Fault]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    seen: set[str] = set()
    for index, selected in enumerate(fields):
        field, path = f"{where}[{index}].jsonPath", selected.get("jsonPath") or ""
        if not path:
            yield _required_fault(field)
        elif why := _selectable_fault(path, schema):
            yield _invalid_fault(field, path, why)
        if path and path in seen:
            message = f"Duplicate value: {quoted(path)}"
            yield Fault(field, "FieldValueDuplicate", message)
        seen.add(path)


def _selectable_fault(path: str, schema: dict[str, Any]) -> str:
    if not path.startswith((".", "[")):
        first = re.split(r"[.\[]", path)[0]
        return f"is an invalid path: expected [ or . but got: {first}"
    if "[" in path:
        return "is an invalid path: array notation is not allowed"
    found = field_path(path, schema)
    if found is None or path.startswith(".metadata."):
        return "is an invalid path: does not refer to a valid field"
    if found.get("type") not in ("string", "boolean", "integer"):
        return (
            "must point to a field of type string, boolean or integer. Enum string "
            "fields and strings with formats are allowed."
        )
    return ""


PARTS: dict[str, Callable[[Any, str, dict[str, Any]], Iterator[Fault]]] = {
    "schema": _schema,
    "subresources": _subresources,
    "additionalPrinterColumns": _columns,
    "selectableFields": _selectable_faults,
}


def crd_update_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the changes to a CRD that its served kind does not allow."""
    paths: tuple[tuple[str, ...], ...] = (("group",), ("names", "plural"))
    if is_established(old):
        paths = (("scope",), ("names", "kind"), *paths)
    for path in paths:
        after, before = new.get("spec") or {}, old["spec"]
        for part in path:
            after, before = after.get(part) or {}, before[part]
        if not same(after, before):
            yield _invalid_fault(f"spec.{'.'.join(path)}", after, "field is immutable")
    versions = (new.get("spec") or {}).get("versions") or ()
    names = [version.get("name") for version in versions]
    stored = (new.get("status") or {}).get("storedVersions") or ()
    for index, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, "
                "and must remain in spec.versions until a storage migration ensures no "
                f"data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            yield _invalid_fault(f"status.storedVersions[{index}]", name, why)
