"""Strategies for objects of a schema: the cluster accepts everything that they draw.

The definitions have the features of well-known operators': unions distinguished by a
rule or by `oneOf`, lists that are maps, quantities, patterns of Go, objects in objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.testing import Simulation, manifests, values_of_schema

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
HOST: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 253,
    "pattern": r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z]([-a-z0-9]*[a-z0-9])?)*$",
}
# As Go has it: a class of Unicode, and the end of the text.
LABEL: Schema = {"type": "string", "pattern": r"^\pL[[:word:]]{0,5}\z", "maxLength": 9}
QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^([0-9]+(\.[0-9]*)?)([KMGTPE]i|[mkMGTPE])?$",
    "x-kubernetes-int-or-string": True,
}
SPAN: Schema = {
    "type": "string",
    "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$",
    "maxLength": 32,
}
PORT: Schema = {
    "type": "integer",
    "format": "int32",
    "minimum": 1,
    "maximum": 65535,
}


def an(*required: str, **properties: Schema) -> Schema:
    """A schema of objects."""
    found: Schema = {"type": "object", "properties": properties}
    return {**found, "required": [*required]} if required else found


def lists(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def map_of(items: Schema, *keys: str) -> Schema:
    """A list whose items are distinguished by some of their fields."""
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*keys]}
    return lists(items, **kind)


def ruled(schema: Schema, *rules: str) -> Schema:
    return {
        **schema,
        "x-kubernetes-validations": [{"rule": rule, "message": rule} for rule in rules],
    }


def defining(kind: str, spec: Schema, *rules: str) -> Schema:
    plural = f"{kind.lower()}s"
    root = ruled(an("spec", spec=spec), *rules) if rules else an("spec", spec=spec)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "singular": kind.lower()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": root},
                }
            ],
        },
    }


# ------------------------------------------------------------- the definitions

# The field of each type of filter.
PARTS: dict[str, tuple[str, Schema]] = {
    "Header": ("header", an(set=map_of(an("name", name=LABEL, value=TEXT), "name"))),
    "Mirror": ("mirror", an("port", port=PORT, weight={**NUMBER, "default": 1})),
    "Redirect": ("redirect", an(host=HOST, code={"type": "integer", "enum": [301]})),
    "Rewrite": ("rewrite", an(host=HOST, path=TEXT)),
}
FILTER = ruled(
    an(
        "type",
        type={"type": "string", "enum": [*PARTS]},
        **{field: schema for field, schema in PARTS.values()},
    ),
    *(
        f"has(self.{field}) == (self.type == '{kind}')"
        for kind, (field, _) in PARTS.items()
    ),
)
FILTERS = ruled(
    lists(FILTER, maxItems=4),
    "self.filter(f, f.type == 'Redirect').size() <= 1",
    "!(self.exists(f, has(f.redirect)) && self.exists(f, has(f.rewrite)))",
)
PATH = ruled(
    an(
        type={"type": "string", "enum": ["Exact", "Regex"], "default": "Exact"},
        value={"type": "string", "default": "/", "maxLength": 1024},
    ),
    "self.type != 'Exact' || self.value.startsWith('/')",
)
SPANS = ruled(
    an(whole=SPAN, part=SPAN),
    "!has(self.whole) || !has(self.part) || "
    "duration(self.part) <= duration(self.whole)",
)
BRANCH = ruled(
    an(
        name={"type": "string", "maxLength": 63, "pattern": NAME},
        paths=lists(PATH, maxItems=4, default=[{"type": "Exact", "value": "/"}]),
        filters=FILTERS,
        backends=lists(an("name", name=HOST, port=PORT, filters=FILTERS), maxItems=4),
        timeouts=SPANS,
    ),
    "!has(self.backends) || self.backends.size() == 0 || !has(self.filters) || "
    "self.filters.all(f, !has(f.redirect))",
)
ROUTE = defining(
    "Route",
    an(
        hosts=lists(HOST, maxItems=16),
        parents=ruled(
            lists(an("name", name=HOST, port=PORT), maxItems=8),
            "self.all(a, self.exists_one(b, a.name == b.name))",
        ),
        branches=lists(BRANCH, minItems=1, maxItems=4),
    ),
    "self.metadata.name.size() < 20",
)

RESOURCES = an(
    limits={"type": "object", "additionalProperties": QUANTITY},
    claims=map_of(an("name", name=TEXT), "name"),
)
CONTAINER = an(
    "name",
    name=TEXT,
    args=lists(TEXT),
    ports=map_of(
        an("port", port=NUMBER, protocol={**TEXT, "default": "TCP"}), "port", "protocol"
    ),
    resources=RESOURCES,
    probe=an(port={"x-kubernetes-int-or-string": True}),
)
WORKLOAD = defining(
    "Workload",
    an(
        replicas={"type": "integer", "format": "int32"},
        retention={"type": "string", "pattern": "(^0|([0-9]*[.])?[0-9]+((K|M)i?)?B)$"},
        containers=map_of(CONTAINER, "name"),
        names=lists(TEXT, **{"x-kubernetes-list-type": "set"}, minItems=2),
        labels={"type": "object", "additionalProperties": TEXT, "minProperties": 1},
        template={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"spec": an(resources=RESOURCES)},
        },
        kept={"x-kubernetes-preserve-unknown-fields": True},
        partly={
            **an("size", size=NUMBER),
            "x-kubernetes-preserve-unknown-fields": True,
        },
        maybe={"type": "string", "nullable": True, "enum": ["x", None]},
        perhaps=lists({**TEXT, "nullable": True}, nullable=True),
        deep=lists(
            lists({"type": "object", "additionalProperties": lists(PORT)}), maxItems=2
        ),
    ),
)

WAYS = ("acme", "authority", "cloud", "custom", "local", "remote", "signed", "vault")
ISSUER = defining(
    "Issuer",
    {
        **an(
            **{
                way: an("server", server={"type": "string", "format": "uri"})
                for way in WAYS
            },
            name={"type": "string", "allOf": [{"minLength": 3}, {"pattern": "^[a-z]"}]},
            one={**an(a=NUMBER, b=NUMBER, c=NUMBER, d=NUMBER), "maxProperties": 1},
            two={
                **an(a=NUMBER, b=NUMBER, c=NUMBER),
                "anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}],
                "not": {"required": ["a", "b"]},
            },
            none={
                **an(a=NUMBER, b=NUMBER, c=NUMBER),
                "not": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            },
            sized={
                **an("kind", kind=TEXT, size=NUMBER),
                "oneOf": [
                    {"properties": {"kind": {"enum": ["big"]}, "size": {"minimum": 9}}},
                    {"properties": {"kind": {"enum": ["nil"]}, "size": {"maximum": 0}}},
                ],
            },
            share={
                "x-kubernetes-int-or-string": True,
                "allOf": [
                    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                    {"pattern": "^[0-9]+%$"},
                ],
            },
        ),
        "oneOf": [{"required": [way]} for way in WAYS],
    },
)

BOUNDED = defining(
    "Bounded",
    ruled(
        an(
            "least",
            least={"type": "integer", "minimum": 0, "maximum": 100},
            most={"type": "integer", "minimum": 0, "maximum": 100},
            paid={"type": "number", "minimum": 0.1, "maximum": 0.3},
            mode={"type": "string", "enum": ["all", "some"], "default": "all"},
        ),
        "!has(self.most) || self.least <= self.most",
        "has(self.paid) == (self.mode == 'some')",
    ),
    "self.spec.least % 2 == 0",
)

DEFINITIONS = [ROUTE, WORKLOAD, ISSUER, BOUNDED]


def kind_of(definition: Schema) -> str:
    return str(definition["spec"]["names"]["kind"])


# ------------------------------------------------------------------------ laws

NOBODY = Registry()


@fnop.on.event("nodes", registry=NOBODY)
def look(**_: Any) -> None: ...


def is_kept(drawn: Any, stored: Any) -> bool:
    """Whether all that was drawn is there; defaults may have been filled in."""
    if isinstance(drawn, dict):
        return all(
            key in stored and is_kept(value, stored[key])
            for key, value in drawn.items()
        )
    if isinstance(drawn, list):
        return len(drawn) == len(stored) and all(map(is_kept, drawn, stored))
    return bool(drawn == stored)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=kind_of)
def test_the_cluster_takes_what_is_drawn_and_keeps_it(definition: Schema) -> None:
    sim = Simulation(NOBODY, crds=definition)
    where = f"{kind_of(definition).lower()}/drawn"

    @settings(max_examples=25, deadline=None, phases=[Phase.generate])
    @given(manifests(definition, name="drawn"))
    def law(body: dict[str, Any]) -> None:
        sim.apply(body)
        assert is_kept(body["spec"], sim[where]["spec"])
        sim.delete(where)

    law()


def found(
    values: st.SearchStrategy[Any], fits: Callable[[Any], bool], *, small: bool = False
) -> Any:
    """One of the values; with `small` the simplest."""
    phases = [Phase.generate, *([Phase.shrink] if small else [])]
    slow = [HealthCheck.too_slow]
    asked = settings(
        max_examples=3_000,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=slow,
    )
    return find(values, fits, settings=asked)


@pytest.mark.parametrize("kind", PARTS)
def test_each_part_of_a_union_is_drawn(kind: str) -> None:
    field, _ = PARTS[kind]
    value = found(values_of_schema(FILTER), lambda value: value["type"] == kind)
    assert {"type", field} == value.keys()


@pytest.mark.parametrize("way", WAYS)
def test_each_alternative_is_drawn(way: str) -> None:
    spec = found(manifests(ISSUER), lambda body: way in body["spec"])["spec"]
    assert spec.keys().isdisjoint({*WAYS} - {way})


def test_an_example_is_made_small() -> None:
    smallest = found(
        values_of_schema(FILTERS), lambda value: len(value) > 1, small=True
    )
    assert smallest == [{"type": "Header", "header": {}}] * 2


HARD: list[Schema] = [
    {"type": "integer", "minimum": 5_000_000_000, "format": "int64"},
    {"type": "integer", "maximum": -3_000_000_000},
    {"type": "integer", "multipleOf": 7, "minimum": -20, "maximum": -3},
    {"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 4},
    {"type": "number", "minimum": 0.1, "maximum": 0.3},
    {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1e-3},
    {"type": "number", "minimum": 1e12},
    {"type": "number", "multipleOf": 0.25, "minimum": 0.1, "maximum": 0.6},
    {"type": "string", "pattern": r"^[[:alpha:]_]{2,4}\z"},
    {"type": "string", "pattern": r"(?i)^abc\d$"},
    {"type": "string", "pattern": "[0-9]Gi", "maxLength": 8},
    {"type": "string", "pattern": "^[a-z]+$", "minLength": 5, "maxLength": 8},
    {"type": "string", "minLength": 30, "maxLength": 40},
    {"type": "string", "enum": ["a", "bb"], "minLength": 2},
    {"type": "string", "format": "k8s-short-name", "maxLength": 5},
    {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"},
    {"type": "array", "items": {"type": "boolean"}, "x-kubernetes-list-type": "set"},
    {"type": "object", "additionalProperties": True, "minProperties": 6},
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "required": ["a"]},
    *(
        {"type": "string", "format": name}
        for name in (
            *("bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time"),
            *("datetime", "duration", "email", "hexcolor", "hostname", "ipv4", "ipv6"),
            *("isbn", "isbn10", "isbn13", "k8s-long-name", "mac", "password"),
            *("rgbcolor", "ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5", "unheard"),
        )
    ),
]


@pytest.mark.parametrize("schema", HARD, ids=str)
def test_there_are_values_of_what_is_seldom_met(schema: Schema) -> None:
    """And enough of them: Hypothesis complains of a strategy that mostly fails."""

    @settings(max_examples=20, deadline=None, phases=[Phase.generate])
    @given(values_of_schema(schema))
    def law(value: Any) -> None:
        assert value is not None

    law()


def digits(text: str) -> list[int]:
    return [10 if char == "X" else int(char) for char in text]


CHECKS: dict[str, Callable[[list[int]], bool]] = {
    "isbn10": lambda found: sum(n * d for n, d in enumerate(found[::-1], 1)) % 11 == 0,
    "isbn13": lambda found: (sum(found[::2]) + 3 * sum(found[1::2])) % 10 == 0,
    "creditcard": lambda found: (
        (sum(found[-1::-2]) + sum(2 * d - 9 * (d > 4) for d in found[-2::-2])) % 10 == 0
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_numbers_with_a_check_digit_have_the_right_one(name: str) -> None:
    """Real servers look at it; the simulated one looks at the form alone."""

    @settings(max_examples=50, deadline=None)
    @given(values_of_schema({"type": "string", "format": name}))
    def law(value: str) -> None:
        assert CHECKS[name](digits(value))

    law()
