"""Definitions of custom kinds: what is refused, and how they live."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from fnop.interpreters.protocol import MERGE_PATCH
from tests.conformance.suite import Case, Step

__all__ = ["CASES", "CRDS"]

Json = dict[str, Any]

GROUP = "crds.conf.dev"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
INT: Json = {"type": "integer"}
S: Json = {"type": "string"}
ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
BOTH, NEW = ("1.20", "1.36"), ("1.36",)


def version(schema: Json, name: str = "v1", **more: Any) -> Json:
    found = {"name": name, "served": True, "storage": True, **more}
    return {**found, "schema": {"openAPIV3Schema": schema}}


def crd(called: str, *versions: Json, **names: Any) -> Json:
    plural = f"{called.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": called, **names},
            "versions": list(versions),
        },
    }


def spec(schema: Json) -> Json:
    return {"type": "object", "properties": {"spec": schema}}


def refused(name: str, schema: Json, servers: tuple[str, ...] = NEW) -> Case:
    """A schema of a field that no definition may have."""
    body = crd(
        "Refused", version(spec({"type": "object", "properties": {"a": schema}}))
    )
    step = Step("POST", DEFINITIONS, body, query={"dryRun": "All"}, code=422)
    return Case(f"crds: {name}", (step,), servers)


def accepted(name: str, schema: Json) -> Case:
    body = crd(
        "Accepted", version(spec({"type": "object", "properties": {"a": schema}}))
    )
    query = {"dryRun": "All"}
    step = Step("POST", DEFINITIONS, body, query=query, code=201, compare="code")
    return Case(f"crds: {name}", (step,), NEW)


def unfit(name: str, **parts: Any) -> Case:
    """A version that no definition may have."""
    body = crd(
        "Unfit", version(spec({"type": "object", "properties": {"c": S}}), **parts)
    )
    step = Step("POST", DEFINITIONS, body, query={"dryRun": "All"}, code=422)
    return Case(f"crds: {name}", (step,), NEW)


def keyed(items: Json, *keys: str) -> Json:
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


REFUSED = (
    refused("a field without a type", {}),
    refused("an unknown type", {"type": "foo"}),
    refused("a list without items", {"type": "array"}),
    refused("items without a type", {"type": "array", "items": {}}),
    refused(
        "properties beside additional ones",
        {"type": "object", "properties": {"q": INT}, "additionalProperties": INT},
    ),
    refused("unique items", {"type": "array", "items": INT, "uniqueItems": True}),
    refused("a pattern that is none", {**S, "pattern": "("}),
    refused("a pattern that looks ahead", {**S, "pattern": "(?=a)"}),
    refused("a default of another type", {**INT, "default": "x"}),
    refused("a default too long", {**S, "maxLength": 3, "default": "abcd"}),
    refused(
        "a default with unknown fields",
        {"type": "object", "properties": {"q": INT}, "default": {"z": 1}},
    ),
    refused("a map of scalars", keyed(INT, "k")),
    refused(
        "a key that may be missing",
        keyed({"type": "object", "properties": {"k": S}}, "k"),
    ),
    refused(
        "a key that is an object",
        keyed(
            {"type": "object", "required": ["k"], "properties": {"k": ANY}},
            "k",
        ),
    ),
    refused(
        "an unknown list type",
        {"type": "array", "items": INT, "x-kubernetes-list-type": "foo"},
    ),
    refused("a list type of a text", {**S, "x-kubernetes-list-type": "set"}),
    refused(
        "a set of what may be null",
        {
            "type": "array",
            "items": {**INT, "nullable": True},
            "x-kubernetes-list-type": "set",
        },
    ),
    refused(
        "a set of granular objects",
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
    ),
    refused("an unknown map type", {"type": "object", "x-kubernetes-map-type": "foo"}),
    refused(
        "int or string and unknown fields",
        {
            "x-kubernetes-int-or-string": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    ),
    refused(
        "an embedded resource of nothing",
        {"type": "object", "x-kubernetes-embedded-resource": True},
    ),
    refused("a type in an alternative", {**INT, "anyOf": [{"type": "integer"}]}),
    refused(
        "structure in an alternative",
        {
            "type": "object",
            "properties": {"q": INT},
            "allOf": [{"properties": {"q": {"default": 3, "nullable": True}}}],
        },
    ),
    refused("a reference", {"type": "object", "$ref": "#/a"}),
    refused("definitions", {"type": "object", "definitions": {"a": INT}}),
    refused("the type null", {"type": "null"}),
    unfit("a column without anything", additionalPrinterColumns=[{}]),
    unfit(
        "a column of no type",
        additionalPrinterColumns=[{"name": "A", "type": "foo", "jsonPath": "x"}],
    ),
    unfit("a selected object", selectableFields=[{"jsonPath": ".spec"}]),
    unfit("a selected nothing", selectableFields=[{"jsonPath": ".spec.zz"}]),
    unfit(
        "the same field selected twice",
        selectableFields=[{"jsonPath": ".spec.c"}, {"jsonPath": ".spec.c"}],
    ),
    unfit("scale without paths", subresources={"scale": {}}),
    unfit(
        "scale with wrong paths",
        subresources={
            "scale": {"specReplicasPath": ".status.x", "statusReplicasPath": "spec"}
        },
    ),
    unfit("a warning of a version in its prime", deprecationWarning="x"),
    accepted(
        "additional properties beside all",
        {"type": "object", "properties": {"q": INT}, "additionalProperties": True},
    ),
    accepted("a null default", {**S, "default": None}),
    accepted(
        "a set with doubles as default",
        {
            "type": "array",
            "items": INT,
            "x-kubernetes-list-type": "set",
            "default": [1, 1],
        },
    ),
    accepted("an unknown format", {**S, "format": "foo"}),
)


# ----------------------------------------------------------------- their values

VALUES: dict[str, Json] = {
    "small": {**INT, "format": "int32"},
    "wide": INT,
    "single": {"type": "number", "format": "float"},
    "steps": {**INT, "multipleOf": 5},
    "above": {"type": "number", "minimum": 1.5, "exclusiveMinimum": True},
    "day": {**S, "format": "date"},
    "span": {**S, "format": "duration"},
    "mail": {**S, "format": "email"},
    "id": {**S, "format": "uuid"},
    "net": {**S, "format": "cidr"},
    "bytes": {**S, "format": "byte"},
    "letters": {**S, "maxLength": 3},
    "few": {"type": "array", "maxItems": 1, "items": INT},
    "pair": {"type": "object", "minProperties": 2, "additionalProperties": S},
    "all": {"type": "object", "properties": {"a": INT}, "allOf": [{"required": ["a"]}]},
    "some": {
        "type": "object",
        "properties": {"a": INT},
        "anyOf": [{"required": ["a"]}],
    },
    "deep": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"a": {**INT, "default": 1}},
        },
    },
    "open": {"x-kubernetes-preserve-unknown-fields": True},
    "two": keyed(
        {
            "type": "object",
            "required": ["n"],
            "properties": {"n": S, "m": {**INT, "default": 3}},
        },
        "n",
        "m",
    ),
}
CRDS = (crd("Value", version(spec({"type": "object", "properties": VALUES}))),)
PATH = f"/apis/{GROUP}/v1/namespaces/{{ns}}/values"


def value(code: int, **parts: Any) -> Step:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Value",
        "metadata": {"name": f"v{crc32(repr(parts).encode())}"},
        "spec": parts,
    }
    return Step("POST", PATH, body, code=code)


def values(name: str, *steps: Step) -> Case:
    return Case(f"crds: {name}", steps, NEW)


CHECKED = (
    values(
        "integers of 32 bits",
        value(422, small=2**31),
        value(201, small=2**31 - 1),
        value(422, small=1.5),
        value(422, small="x"),
        value(201, small=1e3),
    ),
    values("integers of 64 bits", value(422, wide=2**63), value(201, wide=2**63 - 1)),
    values("floats of 32 bits", value(422, single=1e39), value(201, single=1.5)),
    values("multiples", value(422, steps=7), value(201, steps=10)),
    values(
        "limits of integers lose fractions", value(422, above=1), value(422, above=1.5)
    ),
    values("days", value(201, day="2020-01-01"), value(422, day="x")),
    values(
        "durations",
        value(201, span="1h"),
        value(201, span="3 days"),
        value(422, span="1"),
    ),
    values("mail addresses", value(422, mail="x"), value(201, mail="A <a@b>")),
    values("uuids", value(422, id="x")),
    values("networks", value(201, net="1.2.3.0/24"), value(422, net="x")),
    values("base64", value(201, bytes="YQ=="), value(422, bytes="Y Q==")),
    values("letters, not bytes", value(201, letters="ééé"), value(422, letters="éééé")),
    values("one item at most", value(422, few=[1, 2]), value(422, few=[None])),
    values("two properties at least", value(422, pair={"a": "b"})),
    values("all of", value(422, all={})),
    values("any of", value(422, some={})),
    values(
        "defaults in maps", value(201, deep={"k": {}}), value(201, deep={"k": None})
    ),
    values("numbers as Go writes them", value(201, open={"a": 1.0, "c": [None]})),
    values(
        "keys with defaults",
        value(422, two=[{"n": "a"}, {"n": "a"}]),
        value(201, two=[{"n": "a", "m": 1}, {"n": "a"}]),
    ),
)


# -------------------------------------------------------------------- their life


def served(plural: str) -> Step:
    path = f"/apis/{GROUP}/v1/namespaces/{{ns}}/{plural}"
    return Step("GET", path, compare="code", eventually=True)


LIFE = (
    Case(
        "crds: what cannot be changed",
        (
            Step(
                "POST",
                DEFINITIONS,
                crd("Fixed", version(spec(ANY))),
                code=201,
                compare="code",
            ),
            served("fixeds"),
            Step(
                "PATCH",
                f"{DEFINITIONS}/fixeds.{GROUP}",
                {"spec": {"scope": "Cluster"}},
                MERGE_PATCH,
                code=422,
            ),
            Step(
                "PATCH",
                f"{DEFINITIONS}/fixeds.{GROUP}",
                {"spec": {"names": {"kind": "Other"}}},
                MERGE_PATCH,
                code=422,
            ),
            Step(
                "PATCH",
                f"{DEFINITIONS}/fixeds.{GROUP}",
                {"spec": {"versions": [version(spec(ANY), "v2")]}},
                MERGE_PATCH,
                code=422,
            ),
        ),
        NEW,
    ),
    Case(
        "crds: names that are taken",
        (
            Step(
                "POST",
                DEFINITIONS,
                crd("First", version(spec(ANY))),
                code=201,
                compare="code",
            ),
            served("firsts"),
            Step(
                "POST",
                DEFINITIONS,
                crd(
                    "Second",
                    version(spec(ANY)),
                    kind="First",
                    singular="first",
                    listKind="FirstList",
                ),
                code=201,
                compare="code",
            ),
            Step(
                "GET",
                f"{DEFINITIONS}/seconds.{GROUP}",
                has={"status.conditions.1.status": "False"},
                compare=("status",),
                eventually=True,
            ),
        ),
        NEW,
    ),
    Case(
        "crds: fields of yesterday's objects",
        (
            Step(
                "POST",
                DEFINITIONS,
                crd("Past", version(spec(ANY))),
                code=201,
                compare="code",
            ),
            served("pasts"),
            Step(
                "POST",
                f"/apis/{GROUP}/v1/namespaces/{{ns}}/pasts",
                {
                    "apiVersion": f"{GROUP}/v1",
                    "kind": "Past",
                    "metadata": {"name": "a"},
                    "spec": {"a": 9, "b": 1},
                },
                code=201,
            ),
            Step(
                "PATCH",
                f"{DEFINITIONS}/pasts.{GROUP}",
                {
                    "spec": {
                        "versions": [
                            version(
                                spec(
                                    {
                                        "type": "object",
                                        "properties": {
                                            "a": {**INT, "maximum": 5},
                                            "d": {**S, "default": "x"},
                                        },
                                    }
                                )
                            )
                        ]
                    }
                },
                MERGE_PATCH,
                compare="code",
            ),
            Step(
                "GET",
                f"/apis/{GROUP}/v1/namespaces/{{ns}}/pasts/a",
                has={"spec.d": "x", "spec.a": 9},
                compare=("spec",),
                eventually=True,
            ),
            # Ratcheting: what stays as it was may stay wrong.
            Step(
                "PATCH",
                f"/apis/{GROUP}/v1/namespaces/{{ns}}/pasts/a",
                {"spec": {"d": "y"}},
                MERGE_PATCH,
                compare=("spec",),
            ),
            Step(
                "PATCH",
                f"/apis/{GROUP}/v1/namespaces/{{ns}}/pasts/a",
                {"spec": {"a": 8}},
                MERGE_PATCH,
                code=422,
            ),
            Step(
                "PATCH",
                f"/apis/{GROUP}/v1/namespaces/{{ns}}/pasts/a",
                {"spec": {"zz": 8}},
                MERGE_PATCH,
                query={"fieldValidation": "Strict"},
                code=422,
                compare="code",
            ),
        ),
        NEW,
    ),
    Case(
        "crds: unknown fields, strictly",
        (
            Step(
                "POST",
                PATH,
                {
                    "apiVersion": f"{GROUP}/v1",
                    "kind": "Value",
                    "metadata": {"name": "a", "foo": 1},
                    "spec": {"nope": 1, "deep": {"k": {"b": 1}}},
                },
                query={"fieldValidation": "Strict"},
                code=400,
            ),
            Step(
                "POST",
                PATH,
                {
                    "apiVersion": f"{GROUP}/v1",
                    "kind": "Value",
                    "metadata": {"name": "a"},
                    "spec": {"nope": 1},
                },
                query={"fieldValidation": "Ignore"},
                code=201,
            ),
        ),
        NEW,
    ),
)
CASES = (*REFUSED, *CHECKED, *LIFE)
