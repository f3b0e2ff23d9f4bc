"""A schema's rules for a status are exactly what the API server accepts and keeps."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from fnop.core.api.statuses import UNDESCRIBED, StatusSchema, only_statuses, status_of
from fnop.interpreters.cluster.schema.schema import compile_root, object_faults
from tests.thorough import examples

Json = dict[str, Any]

TYPE = "fnop.dev/default"
# The operator's words at their longest, and at their shortest.
TOLD = [
    {
        "type": TYPE,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-31T23:59:59Z",
        "observedGeneration": 7,
    }
    for status, reason, message in (
        ("True", "Succeeded", ""),
        ("False", "CreateFailed", "m" * 1024),
        ("Unknown", "R" * 64, "why"),
    )
]

TEXTS = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "maxLength": st.sampled_from((3, 40, 64, 316, 1024, 32768)),
        "minLength": st.sampled_from((0, 1)),
        "enum": st.sampled_from((["True", "False", "Unknown"], ["Ready"], [TYPE])),
        "pattern": st.sampled_from(("^[A-Za-z]", "^$", r"^[a-z./A-Z]*$")),
        "format": st.sampled_from(("date-time", "")),
    },
)
OTHERS = st.sampled_from(
    (
        {"type": "boolean"},
        {"type": "integer", "format": "int64"},
        {"type": "integer", "maximum": 3},
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"x-kubernetes-int-or-string": True},
    )
)
INTEGERS = st.just({"type": "integer", "format": "int64"})
PLAIN = st.just({"type": "string"})
NAMES = ("type", "status", "reason", "message", "lastTransitionTime")
PROPERTIES = st.fixed_dictionaries(
    {"type": PLAIN | PLAIN | TEXTS, "status": PLAIN | PLAIN | PLAIN | TEXTS},
    optional={
        **{name: PLAIN | PLAIN | PLAIN | TEXTS | OTHERS for name in NAMES[2:]},
        "observedGeneration": INTEGERS | OTHERS,
        "severity": PLAIN,
    },
)


@st.composite
def conditions(draw: st.DrawFn) -> Json:
    """The schema of some list of conditions, or of something else by that name."""
    if not draw(st.integers(0, 5)):
        return draw(
            st.sampled_from(
                (
                    {"type": "object", "additionalProperties": {"type": "string"}},
                    {"type": "array", "items": {"type": "string"}},
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    {"x-kubernetes-preserve-unknown-fields": True},
                    {"type": "string"},
                )
            )
        )
    properties = draw(PROPERTIES)
    for name in draw(st.sets(st.sampled_from(("type", "status")), max_size=1)):
        if not draw(st.integers(0, 3)):
            del properties[name]
    item: Json = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        item["required"] = sorted(draw(st.sets(st.sampled_from(sorted(properties)))))
    found: Json = {"type": "array", "items": item}
    if not draw(st.integers(0, 4)):
        found["maxItems"] = draw(st.sampled_from((1, 2, 64)))
    return found


@st.composite
def statuses(draw: st.DrawFn) -> Json:
    properties: Json = {"phase": {"type": "string"}}
    if draw(st.integers(0, 4)):
        properties["conditions"] = draw(conditions())
    found: Json = {"type": "object", "properties": properties}
    if not draw(st.integers(0, 3)):
        found["required"] = ["phase"]
    if not draw(st.integers(0, 3)):
        found["x-kubernetes-preserve-unknown-fields"] = True
    return found


def kept(schema: Json, status: Json) -> bool:
    """Whether the API server takes a status, and keeps all of it."""
    root = compile_root({"type": "object", "properties": {"status": schema}})
    assert root is not None
    whole = {"apiVersion": "a/v1", "kind": "A", "metadata": {}, "status": status}
    return not [*object_faults(root, whole)] and root.filled(whole) == whole


@settings(max_examples=examples(150), deadline=None)
@given(schema=statuses())
def test_the_server_takes_what_fits(schema: Json) -> None:
    found = status_of({"properties": {"status": schema}}, [TYPE])
    whole = {name: "Ready" for name in found.required}
    assert found.required == set(schema.get("required", ()))
    assert kept(schema, {"phase": "Ready"})
    assert kept(schema, {"phase": "Ready", "another": {"a": 1}}) == found.keeps(
        "another"
    )
    assert kept(schema, {}) != found.lacks({})
    takes = [
        kept(schema, {**whole, "conditions": [told(each, schema)]}) for each in TOLD
    ]
    limits = schema["properties"].get("conditions", {})
    if found.refused:
        # The list has no room for others', or what is observed depends on the object.
        assert not all(takes) or "maxItems" in limits or has_limit(limits)
    else:
        assert all(takes)


def told(condition: Json, schema: Json) -> Json:
    """A condition without parts that no reader misses."""
    items = schema["properties"].get("conditions", {}).get("items") or {}
    known = items.get("properties") or {}
    spare = {"lastTransitionTime", "observedGeneration"} - {*known}
    return {key: value for key, value in condition.items() if key not in spare}


def has_limit(conditions: Json) -> bool:
    """Whether the fields of a condition are limited by more than their types."""
    items = conditions.get("items") or {}
    return any(
        {"maximum", "pattern", "format"} & {*each}
        for each in (items.get("properties") or {}).values()
    )


def test_what_no_schema_describes_has_to_be_tried() -> None:
    for kind in (
        {"properties": {"status": {"$ref": "#/components/schemas/Status"}}},
        {"properties": {"status": {"type": "object", "anyOf": [{"required": ["a"]}]}}},
    ):
        assert status_of(kind, [TYPE]) == UNDESCRIBED
    assert StatusSchema() == UNDESCRIBED


def test_what_is_read_is_all_that_is_recorded() -> None:
    status = {
        "type": "object",
        "description": "what is so",
        "properties": {"description": {"type": "string", "description": "of it"}},
    }
    kinds = [{"group": "a.dev", "version": "v1", "kind": "A"}]
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object"}, "status": status},
        "x-kubernetes-group-version-kind": kinds,
    }
    document = {"openapi": "3.0.0", "components": {"schemas": {"a": schema}}}
    slim = only_statuses(document)
    assert only_statuses(slim) == slim
    (found,) = slim["components"]["schemas"].values()
    described = {"type": "object", "properties": {"description": {"type": "string"}}}
    assert found["properties"] == {"status": described}
    assert status_of(found, [TYPE]) == status_of(schema, [TYPE])
