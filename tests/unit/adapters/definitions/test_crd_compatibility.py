"""`fnop crd --compatible-with` and `--live`: changes that break what exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fnop.core.api.resources import Resource
from fnop.interpreters.plan.compatibility import breaking_changes
from fnop.interpreters.simulation.tried_definitions import cluster_with, refusal_of
from tests.commands import fnop

KIND = """
from dataclasses import dataclass

import fnop


@dataclass(frozen=True)
class Spec:
    {fields}


@fnop.definition("widgets.v1.e.com")
@dataclass(frozen=True)
class Widget:
    spec: Spec
"""


def version(spec: Any = None, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec or {"type": "object"}}}
    found = {"name": "v1", "served": True, "storage": True}
    return {**found, "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.e.com"},
        "spec": {
            "group": "e.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [*versions] or [version()],
            **spec,
        },
    }


def of(**fields: Any) -> dict[str, Any]:
    """A version whose spec has these fields."""
    return version({"type": "object", "properties": fields})


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EITHER = {"x-kubernetes-int-or-string": True}
RULE = {"rule": "self > 1"}
FLAG = {"type": "boolean"}
LIST = {"type": "array", "items": TEXT}
MAP = {"type": "object", "additionalProperties": TEXT}
STRUCT = {"type": "object", "properties": {"b": TEXT}}

FIELDS: list[tuple[Any, Any, str]] = [
    (TEXT, TEXT, ""),
    (NUMBER, TEXT, "the type is string, and was integer"),
    (NUMBER, {"type": "number"}, ""),
    (NUMBER, EITHER, ""),
    (EITHER, NUMBER, "the type is integer, and was int or string"),
    ({**TEXT, "nullable": True}, TEXT, "null is no longer valid"),
    (TEXT, {**TEXT, "enum": ["a"]}, "only 'a' are valid now"),
    ({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["a"]}, "'b' are no longer valid"),
    ({**TEXT, "enum": ["a"]}, {**TEXT, "enum": ["a", "b"]}, ""),
    (NUMBER, {**NUMBER, "minimum": 1}, "minimum is 1"),
    ({**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 2}, "minimum is 2, and was 1"),
    ({**NUMBER, "minimum": 2}, {**NUMBER, "minimum": 1}, ""),
    (NUMBER, {**NUMBER, "maximum": 9}, "maximum is 9"),
    ({**TEXT, "maxLength": 9}, {**TEXT, "maxLength": 10}, ""),
    (TEXT, {**TEXT, "pattern": "a"}, "pattern is 'a'"),
    (TEXT, {**TEXT, "format": "date"}, "format is 'date'"),
    ({**TEXT, "format": "date"}, TEXT, ""),
    (NUMBER, {**NUMBER, "x-kubernetes-validations": [RULE]}, "the rule 'self > 1' is"),
    (OPEN, {"type": "object"}, "unknown fields are pruned now"),
    (
        {"type": "array", "items": TEXT},
        {"type": "array", "items": {**TEXT, "maxLength": 3}},
        "spec.a[]: maxLength is 3",
    ),
    (
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "additionalProperties": {**TEXT, "minLength": 1}},
        "spec.a.*: minLength is 1",
    ),
    (NUMBER, {**NUMBER, "default": 3, "description": "another"}, ""),
    (TEXT, {**TEXT, "minLength": 0}, ""),
    (TEXT, {**TEXT, "allOf": [{"minLength": 3}]}, "allOf is new, or another one"),
    ({**NUMBER, "format": "int32"}, {**NUMBER, "format": "int64"}, ""),
    ({**NUMBER, "format": "int64"}, {**NUMBER, "format": "int32"}, "format is 'int32'"),
    ({**NUMBER, "multipleOf": 4}, {**NUMBER, "multipleOf": 2}, ""),
    ({**NUMBER, "multipleOf": 2}, {**NUMBER, "multipleOf": 4}, "multipleOf is 4"),
    ({**NUMBER, "enum": [1, 2]}, {**NUMBER, "enum": [1.0, 2.0]}, ""),
    (FLAG, {**FLAG, "enum": [True, False]}, ""),
    (FLAG, {**FLAG, "enum": [True]}, "False are no longer valid"),
    (
        {**NUMBER, "x-kubernetes-validations": [RULE]},
        {**NUMBER, "x-kubernetes-validations": [{"rule": " self  >\n1"}]},
        "",
    ),
    (LIST, {**LIST, "x-kubernetes-list-type": "atomic"}, ""),
    (LIST, {**LIST, "x-kubernetes-list-type": "set"}, "x-kubernetes-list-type is set"),
    (MAP, STRUCT, "values by other names are pruned now"),
    (STRUCT, MAP, ""),
    (MAP, {"type": "object"}, "unknown fields are pruned now"),
    ({"type": "object", "additionalProperties": True}, OPEN, ""),
    (
        {"type": "object", "additionalProperties": True},
        MAP,
        "its values have a schema now",
    ),
    (
        STRUCT,
        {"type": "object", "additionalProperties": NUMBER},
        "spec.a.b: the type is integer, and was string",
    ),
    (OPEN, {**OPEN, **STRUCT}, "spec.a.b: it has a schema now"),
]


@pytest.mark.parametrize(("before", "after", "why"), FIELDS, ids=range(len(FIELDS)))
def test_a_field_that_takes_less_breaks(before: Any, after: Any, why: str) -> None:
    old, new = definition(of(a=before)), definition(of(a=after))
    found = [*map(str, breaking_changes(old, new))]
    if not why:
        assert found == []
        return
    (text,) = found
    assert text.startswith("v1 spec.a")
    assert why in text


V2 = version(name="v2", storage=False)
NOT_SERVED = version(name="v2", storage=False, served=False)
# controller-gen describes the fields of all objects, and requires them.
OF_ALL = {
    "type": "object",
    "properties": {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": {"type": "object"},
        "spec": {"type": "object"},
    },
    "required": ["apiVersion", "kind", "metadata"],
}
GENERATED = version(schema={"openAPIV3Schema": OF_ALL})
SCALE = {"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}}
CONVERTED = {"conversion": {"strategy": "Webhook"}}
DROPPED = "v2: it is dropped, and objects are stored in it: the API server refuses that"
KINDS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (definition(), definition(), []),
    (definition(), definition(version(), V2), []),
    (definition(version(), V2), definition(), ["v2: it is no longer served"]),
    (definition(), definition(version(served=False)), ["v1: it is no longer served"]),
    (
        {**definition(version(), V2), "status": {"storedVersions": ["v1", "v2"]}},
        definition(),
        [DROPPED],
    ),
    (
        definition(),
        definition(scope="Cluster"),
        ["the scope is Cluster, and was Namespaced; it cannot be changed"],
    ),
    (
        definition(version(subresources={"status": {}})),
        definition(),
        ["v1: the status subresource is gone"],
    ),
    (
        definition(),
        definition(version(subresources={"status": {}})),
        [
            "v1: the status has a subresource now: writes of the object leave it as "
            "it is"
        ],
    ),
    (
        definition(version(subresources=SCALE)),
        definition(),
        ["v1: the scale subresource is gone"],
    ),
    (
        definition(version(selectableFields=[{"jsonPath": ".spec.a"}])),
        definition(),
        ["v1: field selectors no longer know .spec.a"],
    ),
    (
        definition(**CONVERTED),
        definition(),
        ["versions are no longer converted by a webhook"],
    ),
    (definition(version(), NOT_SERVED), definition(), []),
    (definition(GENERATED), definition(), []),
    (definition(), definition(GENERATED), []),
    (definition(of(a=TEXT)), definition(of(a=TEXT, b=TEXT)), []),
    (
        definition(of(a=TEXT, b=TEXT)),
        definition(of(a=TEXT)),
        ["v1 spec.b: it is gone: stored values are pruned"],
    ),
]


@pytest.mark.parametrize(("before", "after", "expected"), KINDS, ids=range(len(KINDS)))
def test_versions_and_fields_that_go_break(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    assert [*map(str, breaking_changes(before, after))] == expected


@pytest.mark.parametrize(
    ("field", "breaks"), [({"type": "string"}, True), ({**TEXT, "default": "x"}, False)]
)
def test_a_field_that_is_required_now_breaks_without_a_default(
    field: dict[str, Any], breaks: bool
) -> None:
    spec = {"type": "object", "properties": {"a": TEXT}}
    new = {**spec, "properties": {"a": TEXT, "b": field}, "required": ["b"]}
    found = breaking_changes(definition(version(spec)), definition(version(new)))
    assert bool(found) is breaks


def test_a_required_field_that_loses_its_default_breaks() -> None:
    spec = {"type": "object", "required": ["a"], "properties": {"a": TEXT}}
    old = {**spec, "properties": {"a": {**TEXT, "default": "x"}}}
    found = breaking_changes(definition(version(old)), definition(version(spec)))
    assert [*map(str, found)] == ["v1 spec.a: it is required now, and has no default"]
    assert breaking_changes(definition(version(spec)), definition(version(spec))) == ()


def test_objects_are_tried_with_the_new_definition() -> None:
    spec = {"type": "object", "properties": {"a": {**NUMBER, "maximum": 3}}}
    cluster = cluster_with(definition(version(spec)))
    resource = Resource("e.com", "v1", "widgets", "Widget")

    def why(a: Any) -> str:
        meta: dict[str, Any] = {"name": "w", "namespace": "other", "uid": "u"}
        meta |= {"resourceVersion": "7", "finalizers": ["e.com/x"]}
        meta |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        found = {"apiVersion": "e.com/v1", "kind": "Widget", "metadata": meta}
        return refusal_of(cluster, resource, {**found, "spec": {"a": a}}, 0.0)

    assert why(3) == ""
    assert "spec.a" in why(4)


def test_the_command_refuses_what_breaks_a_release(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(KIND.format(fields="size: int = 1"))
    (tmp_path / "new.py").write_text(KIND.format(fields="size: int"))
    released = fnop("crd", "old.py", folder=tmp_path)
    (tmp_path / "released.yaml").write_text(released.out)
    same = fnop("crd", "old.py", "--compatible-with", "released.yaml", folder=tmp_path)
    assert (same.status, same.out, same.err) == (0, "", "")
    other = fnop("crd", "new.py", "--compatible-with", "released.yaml", folder=tmp_path)
    assert other.status == 1
    assert other.out == (
        "widgets.e.com v1 spec.size: it is required now, and has no default\n"
    )
    assert "a change breaks what exists" in other.err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "released.yaml has no definition (CustomResourceDefinition)"),
        (
            "apiVersion: apiextensions.k8s.io/v1\n"
            "kind: CustomResourceDefinition\nmetadata: {name: x}\n"
            "spec: {versions: [3]}\n",
            "x is not a definition of apiextensions.k8s.io/v1",
        ),
    ],
    ids=["empty", "malformed"],
)
def test_a_file_without_definitions_is_a_clear_error(
    tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "old.py").write_text(KIND.format(fields="size: int = 1"))
    (tmp_path / "released.yaml").write_text(text)
    found = fnop("crd", "old.py", "--compatible-with", "released.yaml", folder=tmp_path)
    assert (found.status, found.out) == (1, "")
    assert why in found.err
    assert "Traceback" not in found.err
