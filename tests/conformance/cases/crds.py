"""Definitions of custom kinds: what is refused, and how they live."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from zlib import crc32

from fnop.interpreters.runtime.protocol import APPLY_PATCH, MERGE_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS", "CRDS_136"]

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
    "moment": {**S, "format": "date-time"},
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
CRDS: tuple[Json, ...] = (
    crd("Value", version(spec({"type": "object", "properties": VALUES}))),
)
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
        "moments",
        value(201, moment="2020-01-01T00:00:00Z"),
        value(201, moment="2020-01-01t00:00:00.123456789z"),
        value(201, moment="2020-01-01T00:00:00+01:00"),
        value(422, moment="2020-01-01T00:00:00"),
        value(422, moment="2020-01-01T24:00:00Z"),
        value(422, moment="2020-01-01 00:00:00Z"),
        value(422, moment="2020-01-01T00:00:00+0100"),
        value(422, moment="2020-13-01T00:00:00Z"),
    ),
    values(
        "durations",
        value(201, span="1h"),
        value(201, span="3 days"),
        value(422, span="1"),
        value(201, span="1h30m5.25s"),
        value(201, span="+.5h"),
        value(201, span="-0"),
        value(422, span=""),
        value(422, span="."),
        value(422, span="soon"),
        value(201, span="P3D"),
        value(201, span="PT5M"),
        value(422, span="P1Y"),
        value(201, span="1.5 days"),
        value(201, span="at most 3 hours, or so"),
        value(201, span="2 hourglasses"),
        value(422, span="2 hrs"),
        value(201, span="2 HR"),
        value(422, span="3 months"),
        value(201, span="3000000h"),
        value(422, span="99999999999999999999 s"),
        value(201, span="5µs"),
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


# ------------------------------------------------------- what becomes of an object

SHAPES: dict[str, Json] = {
    "closed": {"type": "object", "properties": {"a": INT, "b": {"type": "object"}}},
    "open": {**ANY, "properties": {"a": {"type": "object", "properties": {"q": INT}}}},
    "map": {"type": "object", "additionalProperties": True},
    "texts": {"type": "object", "additionalProperties": S},
    "filled": {
        "type": "object",
        "default": {"b": {}},
        "properties": {
            "a": {**INT, "default": 1},
            "b": {
                "type": "object",
                "properties": {"c": {**S, "default": "c"}, "d": S},
            },
        },
    },
    "null": {**S, "nullable": True},
    "nullDefault": {**S, "nullable": True, "default": "x"},
    "notNull": {**S, "default": "y"},
    "either": {"x-kubernetes-int-or-string": True},
    "eitherMore": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "nullable": True,
    },
    "embedded": {**ANY, "x-kubernetes-embedded-resource": True},
    "colour": {**S, "enum": ["red", "A"]},
    "count": {**INT, "enum": [1, 2, None], "nullable": True},
    "set": {"type": "array", "items": S, "x-kubernetes-list-type": "set"},
    "one": {
        "type": "object",
        "properties": {"a": INT, "b": INT},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "never": {**INT, "not": {"minimum": 3}},
    "any": {**S, "anyOf": [{"pattern": "^a"}, {"minLength": 3}]},
    "both": {**S, "allOf": [{"pattern": "^a"}, {"minLength": 3}]},
    "text": {**S, "minLength": 2, "maxLength": 1, "pattern": "^a"},
    "number": {"type": "number", "minimum": 5, "maximum": 1, "multipleOf": 2},
    "dated": {"x-kubernetes-preserve-unknown-fields": True, "format": "date"},
    "moment": {**S, "format": "date-time"},
    "host": {**S, "format": "hostname"},
    "small": {"type": "object", "maxProperties": 1, "additionalProperties": INT},
    "needy": {"type": "object", "required": ["y", "x"], "properties": {"x": INT}},
}
CRDS_136 = (crd("Shape", version(spec({"type": "object", "properties": SHAPES}))),)
CRDS = (
    *CRDS,
    crd("Whole", version({**ANY, "properties": {"spec": {"type": "object"}}})),
)
SHAPED = f"/apis/{GROUP}/v1/namespaces/{{ns}}/shapes"


def body_of(kind: str, name: str, **parts: Any) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name},
        **parts,
    }


def shape(code: int, *, called: str = "", strict: str = "", **parts: Any) -> Step:
    body = body_of("Shape", called or f"v{crc32(repr(parts).encode())}", spec=parts)
    query = {"fieldValidation": strict} if strict else {}
    return Step("POST", SHAPED, body, query=query, code=code)


def change(code: int, type: str = MERGE_PATCH, **parts: Any) -> Step:
    return Step("PATCH", f"{SHAPED}/a", {"spec": parts}, type, code=code)


def shapes(name: str, *steps: Step, servers: tuple[str, ...] = NEW) -> Case:
    return Case(f"crds: {name}", steps, servers)


SHAPING = (
    shapes(
        "fields that are not specified are pruned",
        shape(201, closed={"a": 1, "z": 2, "b": {"q": 1}}, zz=1),
    ),
    shapes(
        "unknown fields are preserved, but not below what is specified",
        shape(201, open={"a": {"q": 1, "z": 2}, "y": {"z": [{"x": 1}]}}),
    ),
    shapes(
        "a map of anything keeps no fields", shape(201, map={"a": 1, "b": {"c": 1}})
    ),
    shapes(
        "the whole object is open, its spec is not",
        Step(
            "POST",
            f"/apis/{GROUP}/v1/namespaces/{{ns}}/wholes",
            body_of("Whole", "a", spec={"x": 1}, other={"y": {"z": 1}}),
            code=201,
        ),
        servers=BOTH,
    ),
    shapes(
        "defaults in defaults",
        shape(201),
        shape(201, filled={}),
        shape(201, filled={"a": 5, "b": {"c": "z", "d": "w"}}),
    ),
    shapes(
        "nulls where none may be",
        shape(201, null=None, nullDefault=None, notNull=None, either=None),
    ),
    shapes("nulls in maps", shape(201, texts={"a": None, "b": "c"})),
    shapes("a null inside a list", shape(422, set=[None])),
    shapes(
        "defaults come back when they are taken away",
        shape(201, called="a", filled={"a": 2}, notNull="z"),
        change(200, notNull=None),
        change(200, filled={"a": None}),
        change(200, filled=None),
    ),
    shapes("an integer or a text", shape(201, either="5%"), shape(201, either=5)),
    shapes(
        "neither an integer nor a text",
        shape(422, either=1.5),
        shape(422, either={"a": 1}),
        shape(422, eitherMore=True),
        shape(201, eitherMore=None),
    ),
    shapes(
        "an embedded object",
        shape(201, embedded={"apiVersion": "v1", "kind": "Pod", "a": 1}),
        shape(422, embedded={}),
        shape(422, embedded={"apiVersion": "", "kind": ""}),
        shape(422, embedded={"apiVersion": "a/b/c", "kind": "9"}),
        shape(400, embedded={"apiVersion": 1, "kind": "A"}),
        shape(400, embedded={"apiVersion": "v1", "kind": "A", "metadata": 3}),
    ),
    shapes(
        "an embedded object's metadata",
        shape(
            201,
            embedded={
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a", "labels": {"a": "b"}, "zz": 1},
            },
        ),
    ),
    shapes(
        "one of a list of values", shape(422, colour="blue"), shape(201, colour="A")
    ),
    shapes(
        "a value of the wrong type is not in the list of values",
        shape(422, colour=1),
        shape(422, colour={"b": 1, "a": 2}),
    ),
    shapes("a number may be a letter of the list", shape(422, colour=65)),
    shapes("null is in no list of values", shape(422, count=None), shape(201, count=2)),
    shapes("the same twice in a set", shape(422, set=["a", "b", "a", "a", "b"])),
    shapes(
        "one of two",
        shape(422, one={}),
        shape(422, one={"a": 1, "b": 2}),
        shape(201, one={"b": 1}),
    ),
    shapes("what must not be", shape(422, never=3), shape(201, never=2)),
    shapes("one of several", shape(422, any="b"), shape(201, any="bbb")),
    shapes("all of several", shape(422, both="b"), shape(422, both="ab")),
    shapes(
        "only the first fault of a text", shape(422, text="bbb"), shape(422, text="b")
    ),
    shapes("every fault of a number", shape(422, number=3)),
    shapes(
        "a format without a type",
        shape(201, dated="2020-01-01"),
        shape(422, dated="x"),
        shape(422, dated=3),
        shape(422, dated={}),
        shape(201, dated=[1]),
    ),
    shapes(
        "a format and another type",
        # The real server cannot show the managers of such a field.
        replace(shape(201, moment=["x"]), compare=("spec",)),
        shape(422, moment=1.5),
    ),
    shapes(
        "host names",
        shape(201, host="a"),
        shape(201, host="a-b.com"),
        shape(422, host="a.b"),
        shape(422, host="-a"),
        shape(422, host="a--b"),
    ),
    shapes("too many fields", shape(422, small={"a": 1, "b": 2})),
    shapes("what is required, in its order", shape(422, needy={})),
    shapes(
        "several faults, in the order of the schema",
        shape(422, needy={"x": "q"}, closed="x", colour="blue", number="x"),
    ),
    shapes(
        "fields of what should be none", shape(422, either={"a": 1}, colour=[{"b": 1}])
    ),
    shapes(
        "strictly, before all else",
        shape(400, strict="Strict", closed={"a": "x", "z": 1}, colour=[{"b": 1}]),
        shape(400, strict="Strict", map={"a": {"b": 1}}),
        shape(422, strict="Strict", closed={"a": "x"}),
    ),
    shapes("no such validation of fields", shape(422, strict="strict", notNull="x")),
    shapes(
        "a patch that is refused changes nothing",
        shape(201, called="a", colour="red"),
        change(422, colour="blue"),
        Step("GET", f"{SHAPED}/a"),
    ),
    shapes(
        "a patch with unknown fields",
        shape(201, called="a", null="x"),
        change(200, zz=1, null="y"),
        Step(
            "PATCH",
            f"{SHAPED}/a",
            {"spec": {"zz": 1}},
            MERGE_PATCH,
            query={"fieldValidation": "Strict"},
            code=422,
            # The message has the whole object, times and all.
            has={"details.causes.0.field": "patch"},
            compare=("reason", "code", "details.causes.0.reason"),
        ),
    ),
)


# ------------------------------------------------------------------ definitions


def make(definition: Json) -> Step:
    return Step("POST", DEFINITIONS, definition, code=201, compare="code")


def redefine(plural: str, *versions: Json, **parts: Any) -> Step:
    return Step(
        "PATCH",
        f"{DEFINITIONS}/{plural}.{GROUP}",
        {"spec": {"versions": list(versions), **parts}},
        MERGE_PATCH,
        compare="code",
    )


def at(plural: str, name: str = "", version: str = "v1") -> str:
    path = f"/apis/{GROUP}/{version}/namespaces/{{ns}}/{plural}"
    return f"{path}/{name}" if name else path


def definition_status(plural: str, **has: Any) -> Step:
    return Step(
        "GET",
        f"{DEFINITIONS}/{plural}.{GROUP}",
        has=has,
        compare=("status.storedVersions", "status.acceptedNames"),
        eventually=True,
    )


OPEN = spec(ANY)
OLD_TYPE: Json = {"type": "object", "properties": {"a": S}}
NEW_TYPE: Json = {
    "type": "object",
    "properties": {"a": INT, "d": {**S, "default": "x"}},
}
SCALE = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
DEFINED = (
    Case(
        "crds: a kind in two versions",
        (
            make(
                crd(
                    "Dual",
                    version(OPEN),
                    version(OPEN, "v2", storage=False),
                )
            ),
            served("duals"),
            Step("POST", at("duals"), body_of("Dual", "a", spec={"x": 1}), code=201),
            Step("GET", at("duals", "a", "v2"), has={"apiVersion": f"{GROUP}/v2"}),
            Step("PATCH", at("duals", "a", "v2"), {"spec": {"y": 2}}, MERGE_PATCH),
            Step("GET", at("duals", "a"), has={"spec.y": 2}),
            redefine(
                "duals",
                version(OPEN, storage=False),
                version(OPEN, "v2"),
            ),
            definition_status("duals", **{"status.storedVersions": ["v1", "v2"]}),
            Step("GET", at("duals", "a"), has={"spec.y": 2}),
        ),
        BOTH,
    ),
    Case(
        "crds: nobody manages what does not fit a new schema",
        (
            make(crd("Misfit", version(spec(OLD_TYPE)))),
            served("misfits"),
            Step(
                "POST", at("misfits"), body_of("Misfit", "a", spec={"a": "x"}), code=201
            ),
            Step(
                "POST", at("misfits"), body_of("Misfit", "b", spec={"a": "x"}), code=201
            ),
            redefine("misfits", version(spec(NEW_TYPE))),
            Step(
                "GET",
                at("misfits", "a"),
                has={"spec": {"a": "x", "d": "x"}},
                compare=("spec",),
                eventually=True,
            ),
            Step(
                "PATCH",
                at("misfits", "a"),
                body_of("Misfit", "a", metadata={"name": "a", "labels": {"l": "m"}}),
                APPLY_PATCH,
                {"fieldManager": "x"},
                code=500,
            ),
            Step(
                "PATCH",
                at("misfits", "a"),
                {"metadata": {"labels": {"l": "m"}}},
                MERGE_PATCH,
                has={"metadata.managedFields": ABSENT},
            ),
            Step(
                "PATCH",
                at("misfits", "a"),
                body_of("Misfit", "a", spec={"a": 1}),
                APPLY_PATCH,
                {"fieldManager": "x"},
                code=500,
            ),
            Step(
                "PATCH",
                at("misfits", "b"),
                {"spec": {"a": 1}},
                MERGE_PATCH,
                has={"metadata.managedFields": ABSENT},
            ),
            Step(
                "PATCH",
                at("misfits", "b"),
                body_of("Misfit", "b", spec={"a": 1}),
                APPLY_PATCH,
                {"fieldManager": "x"},
            ),
        ),
        NEW,
    ),
    Case(
        "crds: a version that is not served any more",
        (
            make(crd("Gone", version(OPEN), version(OPEN, "v2", storage=False))),
            Step("GET", at("gones", "", "v2"), compare="code", eventually=True),
            redefine(
                "gones",
                version(OPEN),
                version(OPEN, "v2", storage=False, served=False),
            ),
            Step(
                "GET", at("gones", "", "v2"), code=404, compare="code", eventually=True
            ),
            Step("GET", at("gones"), compare="code", eventually=True),
        ),
        BOTH,
    ),
    Case(
        "crds: subresources come and go",
        (
            make(crd("Turn", version(OPEN))),
            served("turns"),
            Step("POST", at("turns"), body_of("Turn", "a", spec={"n": 1}), code=201),
            Step("GET", f"{at('turns', 'a')}/status", code=404),
            redefine(
                "turns", version(OPEN, subresources={"status": {}, "scale": SCALE})
            ),
            Step(
                "GET",
                f"{at('turns', 'a')}/scale",
                has={"spec.replicas": 1},
                eventually=True,
            ),
            Step("GET", f"{at('turns', 'a')}/status", compare="code"),
        ),
        NEW,  # 1.20 hangs up here
        slow=True,  # and now and then so does 1.36
    ),
    Case(
        "crds: definitions of the same name",
        (
            make(crd("Same", version(OPEN))),
            Step("POST", DEFINITIONS, crd("Same", version(OPEN)), code=409),
        ),
        BOTH,
    ),
    Case(
        "crds: short names that are taken",
        (
            make(crd("Long", version(OPEN), shortNames=["lo"])),
            served("longs"),
            make(crd("Lone", version(OPEN), shortNames=["lo"])),
            Step(
                "GET",
                f"{DEFINITIONS}/lones.{GROUP}",
                has={"status.conditions.0.reason": "ShortNamesConflict"},
                compare=("status",),
                eventually=True,
            ),
        ),
        NEW,
    ),
    Case(
        "crds: a definition takes its objects along",
        (
            make(crd("Late", version(OPEN))),
            served("lates"),
            Step("POST", at("lates"), body_of("Late", "a"), code=201),
            Step("DELETE", f"{DEFINITIONS}/lates.{GROUP}", compare="code"),
            Step(
                "GET",
                f"{DEFINITIONS}/lates.{GROUP}",
                code=404,
                compare="code",
                eventually=True,
            ),
            Step("GET", at("lates"), code=404, compare="code", eventually=True),
        ),
        BOTH,
    ),
    Case(
        "crds: columns of a table that change",
        (
            make(crd("Board", version(OPEN))),
            served("boards"),
            Step("POST", at("boards"), body_of("Board", "a", spec={"x": 1}), code=201),
            redefine(
                "boards",
                version(
                    OPEN,
                    additionalPrinterColumns=[
                        {"name": "X", "type": "integer", "jsonPath": ".spec.x"}
                    ],
                ),
            ),
            Step(
                "GET",
                at("boards"),
                accept="application/json;as=Table;v=v1;g=meta.k8s.io",
                has={"columnDefinitions.1.name": "X", "rows.0.cells.1": 1},
                compare=("columnDefinitions",),
                eventually=True,
            ),
        ),
        NEW,
    ),
    Case(
        "crds: selectable fields",
        (
            make(
                crd(
                    "Pick",
                    version(
                        spec({"type": "object", "properties": {"c": S, "n": INT}}),
                        selectableFields=[{"jsonPath": ".spec.c"}],
                    ),
                )
            ),
            served("picks"),
            Step("POST", at("picks"), body_of("Pick", "a", spec={"c": "x"}), code=201),
            Step("POST", at("picks"), body_of("Pick", "b", spec={"c": "y"}), code=201),
            Step(
                "GET",
                at("picks"),
                query={"fieldSelector": "spec.c=y"},
                has={"items.0.metadata.name": "b"},
            ),
            Step("GET", at("picks"), query={"fieldSelector": "spec.n=1"}, code=400),
        ),
        NEW,
    ),
    Case(
        "crds: a definition without anything",
        (
            Step(
                "POST",
                DEFINITIONS,
                {
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "metadata": {"name": "a"},
                    "spec": {},
                },
                code=422,
            ),
        ),
        NEW,
    ),
    Case(
        "crds: names that are none",
        (
            Step(
                "POST",
                DEFINITIONS,
                crd(
                    "Bad", version(OPEN), plural="Bads", kind="9", shortNames=["B", ""]
                ),
                code=422,
            ),
        ),
        NEW,
    ),
    Case(
        "crds: two versions are stored, and none",
        (
            Step(
                "POST",
                DEFINITIONS,
                crd("Two", version(OPEN), version(OPEN, "v2")),
                code=422,
            ),
            Step(
                "POST", DEFINITIONS, crd("Two", version(OPEN, storage=False)), code=422
            ),
        ),
        NEW,
    ),
    Case(
        "crds: a version without a schema",
        (
            Step(
                "POST",
                DEFINITIONS,
                crd("Bare", {"name": "v1", "served": True, "storage": True}),
                code=422,
            ),
        ),
        NEW,
    ),
    Case(
        "crds: the metadata is not for a schema to say",
        tuple(
            Step(
                "POST",
                DEFINITIONS,
                crd(
                    "Meta",
                    version({"type": "object", "properties": {"metadata": part}}),
                ),
                query={"dryRun": "All"},
                code=code,
                compare="all" if code == 422 else "code",
            )
            for part, code in (
                (
                    {"type": "object", "properties": {"name": {**S, "maxLength": 3}}},
                    201,
                ),
                ({"type": "object", "properties": {"labels": ANY}}, 422),
                ({"type": "string"}, 422),
                ({"type": "object", "required": ["name"]}, 422),
            )
        ),
        NEW,
    ),
    Case(
        "crds: what is empty is not written",
        (
            Step(
                "POST",
                DEFINITIONS,
                crd(
                    "Empty",
                    version(
                        spec(
                            {
                                **ANY,
                                "properties": {},
                                "required": [],
                                "nullable": False,
                                "description": "",
                                "default": {"a": 1.0},
                            }
                        )
                    ),
                ),
                query={"dryRun": "All"},
                code=201,
                compare=("spec",),
            ),
        ),
        NEW,
    ),
    refused("defaults of lists", {"type": "array", "items": INT, "default": ["x"]}),
    refused(
        "defaults of maps",
        {"type": "object", "additionalProperties": INT, "default": {"a": "x"}},
    ),
    refused(
        "an unknown field and a wrong one in a default",
        {
            "type": "object",
            "properties": {"a": INT},
            "default": {"z": 1.0, "a": "x"},
        },
    ),
    refused("a map of nothing", {"type": "array", "x-kubernetes-list-type": "map"}),
    refused("a type in what must not be", {**INT, "not": {"type": "string"}}),
    accepted(
        "a wrong default in a map",
        {"type": "object", "additionalProperties": {**INT, "default": "x"}},
    ),
    accepted(
        "a list as a default of a format", {**S, "format": "date", "default": [1]}
    ),
)
CASES = (*REFUSED, *CHECKED, *LIFE, *SHAPING, *DEFINED)
