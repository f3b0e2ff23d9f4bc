"""The room for the operator's own fields in a kind's status, by its schema.

The schema comes from the API server's OpenAPI documents (v3; Kubernetes 1.24 and later,
readable by anyone who has logged in), else from the definition. So fnop does not try
anything that the schema refuses, or drops (Kubernetes: structural schemas, field
pruning). Rules that no schema shows, such as CEL rules, are found by trial.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource, group_parts, segment
from fnop.core.values.table import Table
from fnop.effects.values import digest

__all__ = [
    "DEFINITIONS",
    "UNDESCRIBED",
    "StatusSchema",
    "definition_path",
    "document_path",
    "only_statuses",
    "schemas_in",
    "status_of",
    "statuses_in",
]

Schema = Mapping[str, Any]

# The fields of a condition (Kubernetes: metav1.Condition), and the maximum length of
# fnop's texts in them.
_FIELDS = frozenset(
    ("type", "status", "reason", "message", "lastTransitionTime", "observedGeneration")
)
_LONGEST = {"reason": 64, "message": 1024, "lastTransitionTime": 27}
# Fields without which a condition has no meaning.
_TOLD = frozenset(("type", "status", "reason", "message"))
_STATUSES = ("True", "False", "Unknown")
_EXAMPLES = {
    "reason": ("Succeeded", "CreateFailed", "AsDesired"),
    "lastTransitionTime": ("2000-01-31T23:59:59Z",),
}
_FORMATS = {"lastTransitionTime": "date-time"}
# A list of conditions has room for the operator's, and for some of others.
_ROOM = 8
# A schema with one of these may refuse anything: it must be tried.
_FURTHER = ("allOf", "anyOf", "oneOf", "not", "$ref")
_KEEPS = "x-kubernetes-preserve-unknown-fields"
_KINDS = "x-kubernetes-group-version-kind"
# The digest of a whole schema, in a document without the rest of it.
_DIGEST = "x-fnop-digest"


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
"""The path before the name of a definition."""


class StatusSchema(Struct, frozen=True):
    """A status that keeps fields of these `names`, or any if it `is_open`.

    It always has the `required` fields. Conditions of the types `refused` do not fit.
    """

    is_open: bool = True
    names: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    def keeps(self, name: str) -> bool:
        """Whether a status may have a field of this name."""
        return self.is_open or name in self.names

    def lacks(self, status: Collection[str]) -> bool:
        """Whether a status with these fields lacks a required one."""
        return not self.required.issubset(status)


UNDESCRIBED = StatusSchema()
"""The status of a kind without a known schema: the operator tries its writes."""


def document_path(group: str, version: str) -> str:
    """The path of the OpenAPI document of a group and version.

    >>> document_path("example.com", "v1")
    '/openapi/v3/apis/example.com/v1'
    """
    return "/openapi/v3/" + "/".join(map(segment, (*group_parts(group), version)))


def definition_path(resource: Resource) -> str:
    """The path of the definition of a kind."""
    return f"{DEFINITIONS}{segment(f'{resource.plural}.{resource.group}')}"


def only_statuses(document: Mapping[str, Any]) -> dict[str, Any]:
    """Kinds, and the schemas of their statuses: all parts of a document that are read.

    The result has the form of an OpenAPI document. The rest, which is nearly
    everything, would be most of a recording. Raises `AttributeError`, `KeyError` or
    `TypeError` for a document of another shape.

    >>> kinds = [{"group": "example.com", "version": "v1", "kind": "Thing"}]
    >>> thing = {"properties": {"spec": {}, "status": {}}, _KINDS: kinds}
    >>> slim = only_statuses({"paths": {}, "components": {"schemas": {"Thing": thing}}})
    >>> slim["components"]["schemas"]["example.com/v1/Thing"]["properties"]
    {'status': {}}
    """
    found: dict[str, Any] = {}
    for (group, version, kind), schema in _schemas_in(document):
        status = (schema.get("properties") or {}).get("status")
        slim: dict[str, Any] = {_KEEPS: schema[_KEEPS]} if _KEEPS in schema else {}
        slim[_KINDS] = [{"group": group, "version": version, "kind": kind}]
        slim[_DIGEST] = _digest_of(schema)
        slim["properties"] = (
            {} if status is None else {"status": _without_texts(status)}
        )
        found[f"{group}/{version}/{kind}"] = slim
    return {"components": {"schemas": found}}


def schemas_in(
    document: Mapping[str, Any], resources: Iterable[Resource]
) -> Table[str, str]:
    """The digests of the schemas of resources in a document, by their keys.

    Texts for people do not count. The document, and the errors raised, are as for
    `statuses_in`.
    """
    found = _schemas_of(document, resources)
    return Table({key: _digest_of(schema) for key, schema in found})


def _digest_of(schema: Schema) -> str:
    known = schema.get(_DIGEST)
    return known if isinstance(known, str) else digest(_without_texts(schema))


def _without_texts(schema: Any) -> Any:
    """A schema without texts for people."""
    if isinstance(schema, list):
        return [_without_texts(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: _without_texts(value)
        for key, value in schema.items()
        if key != "description" or isinstance(value, Mapping)
    }


def statuses_in(
    document: Mapping[str, Any], resources: Iterable[Resource], types: Collection[str]
) -> Table[str, StatusSchema]:
    """The statuses of the resources that a document describes, by their keys.

    The document is an OpenAPI document, or the definition of a kind. `types` are the
    types of the operator's own conditions. Raises `AttributeError`, `TypeError` or
    `ValueError` for a document of another shape.
    """
    found = _schemas_of(document, resources)
    return Table({key: status_of(schema, types) for key, schema in found})


def _schemas_of(
    document: Mapping[str, Any], resources: Iterable[Resource]
) -> Iterator[tuple[str, Schema]]:
    """The schemas of resources in a document, by their keys."""
    schemas = dict(_schemas_in(document))
    for each in resources:
        place = each.group, each.version, each.kind
        if place in schemas:
            yield each.key, schemas[place]


def _schemas_in(
    document: Mapping[str, Any],
) -> Iterator[tuple[tuple[str, str, str], Schema]]:
    """The schemas in a document, by group, version and kind."""
    for schema in ((document.get("components") or {}).get("schemas") or {}).values():
        kinds: list[Mapping[str, str]] = schema.get(_KINDS) or []
        if len(kinds) == 1:  # schemas of options have many
            (each,) = kinds
            yield (each["group"], each["version"], each["kind"]), schema
    spec = document.get("spec") or {}
    for version in spec.get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema and not spec.get("preserveUnknownFields"):
            yield (spec["group"], version["name"], spec["names"]["kind"]), schema


def status_of(schema: Schema, types: Collection[str]) -> StatusSchema:
    """The status in the schema of a kind.

    `types` are the types of the operator's own conditions.

    >>> phase = {"type": "object", "properties": {"phase": {"type": "string"}}}
    >>> found = status_of({"properties": {"status": phase}}, ["Synced"])
    >>> found.keeps("phase"), found.keeps("fnop"), found.refused
    (True, False, frozenset({'Synced'}))
    >>> status_of({"x-kubernetes-preserve-unknown-fields": True}, ["Synced"]).refused
    frozenset()
    """
    status = (schema.get("properties") or {}).get("status")
    if status is None:
        is_open = bool(schema.get(_KEEPS))
        return StatusSchema(is_open, refused=frozenset(() if is_open else types))
    if any(each in status for each in _FURTHER):
        return UNDESCRIBED
    if status.get("type", "object") != "object":
        return StatusSchema(False, refused=frozenset(types))
    properties = status.get("properties") or {}
    is_open = bool(status.get(_KEEPS)) or status.get("additionalProperties") is True
    conditions = properties.get("conditions", {} if is_open else None)
    return StatusSchema(
        is_open,
        frozenset(properties),
        frozenset(status.get("required") or ()),
        frozenset(each for each in types if not _can_hold_type(conditions, each)),
    )


def _can_hold_type(conditions: Schema | None, type: str) -> bool:
    """Whether a list of conditions accepts one of the standard shape and this type."""
    if not conditions:
        return conditions is not None
    if conditions.get("type") != "array" or any(e in conditions for e in _FURTHER):
        return "type" not in conditions and bool(conditions.get(_KEEPS))
    if conditions.get("maxItems", _ROOM) < _ROOM:
        return False
    if conditions.get("x-kubernetes-list-type", "map") == "set":
        return False  # a changed condition would be another one
    keys = conditions.get("x-kubernetes-list-map-keys") or ("type",)
    return [*keys] == ["type"] and _is_condition(conditions.get("items") or {}, type)


def _is_condition(item: Schema, type: str) -> bool:
    """Whether an item of the list may be a condition of the standard shape."""
    if item.get("type", "object") != "object" or any(e in item for e in _FURTHER):
        return False
    properties = item.get("properties") or {}
    keeps = item.get(_KEEPS) or properties.keys() >= _TOLD
    if not keeps or not _FIELDS.issuperset(item.get("required") or ()):
        return False
    known = _FIELDS & properties.keys()
    return all(_can_hold_field(name, properties[name], type) for name in known)


def _can_hold_field(name: str, schema: Schema, type: str) -> bool:
    """Whether a field of a condition accepts what the operator writes there."""
    if any(each in schema for each in _FURTHER):
        return False
    if name == "observedGeneration":
        return _is_of(schema, "integer", "number") and "maximum" not in schema
    if not _is_of(schema, "string"):
        return False
    words = {"type": (type,), "status": _STATUSES}.get(name, ())
    allowed = schema.get("enum")
    if allowed is not None and not (words and {*words} <= {*allowed}):
        return False
    return _can_hold_text(name, schema, words)


def _can_hold_text(name: str, schema: Schema, words: tuple[str, ...]) -> bool:
    """Whether a text field accepts these words; if there are none, what is usual."""
    longest = max(map(len, words)) if words else _LONGEST[name]
    examples = words or _EXAMPLES.get(name, ())
    return (
        schema.get("maxLength", longest) >= longest
        and schema.get("minLength", 0) <= min(map(len, examples), default=0)
        and schema.get("format") in (None, "", _FORMATS.get(name))
        and all(_is_match(schema.get("pattern"), each) for each in examples)
        and (name != "message" or not schema.get("pattern"))
    )


def _is_of(schema: Schema, *types: str) -> bool:
    return schema.get("type") in types or bool(schema.get("x-kubernetes-int-or-string"))


def _is_match(pattern: str | None, text: str) -> bool:
    try:
        return pattern is None or re.search(pattern, text) is not None
    except re.error:
        return False  # of another dialect: unknown
