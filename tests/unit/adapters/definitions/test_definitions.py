"""Definitions (CRDs) of annotated types: each form of a type, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, StrEnum
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
)

import annotated_types
import pydantic
import pytest
import yaml

import fnop
from fnop.adapters.definitions.class_kinds import kinds_in
from fnop.adapters.definitions.classes import (
    DefinitionProblem,
    definitions_of,
    definitions_yaml,
    warnings_about,
)
from fnop.core.api.definitions import definition_of, named
from fnop.core.values.errors import RegistrationError
from tests.commands import fnop as command
from tests.patience import patience
from tests.simulations import ROOT, Scenario, manifests_of

Json = dict[str, Any]
KEPT = {"x-kubernetes-preserve-unknown-fields": True}
TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


def made(name: str, fields: Any, **options: Any) -> type:
    """A dataclass of this module."""
    namespace = {"__module__": __name__}
    return make_dataclass(name, fields, namespace=namespace, **options)


def spec_of(*classes: type) -> Json:
    """The schema of the spec in the one version of one kind."""
    (found,) = definitions_of(classes)
    (version,) = found["spec"]["versions"]
    spec: Json = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def kind_of(spec: Any, name: str = "things.v1.example.com", **options: Any) -> type:
    """A kind with a spec of this type."""
    cls = made("Thing", [("spec", spec)])
    return fnop.definition(name, **options)(cls)


def field_of(hint: Any, **default: Any) -> Json:
    """The schema of a field of this type, alone in a spec."""
    one = made("One", [("a", hint, field(**default))])
    found: Json = spec_of(kind_of(one))["properties"]["a"]
    return found


# ---------------------------------------------------------------------- type forms


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Shade(StrEnum):
    DARK = "dark"


@dataclass(frozen=True)
class Inner:
    """An inner object."""

    name: str
    size: int = 1


class Mapped(TypedDict, total=False):
    name: Required[str]
    size: int


Port = NewType("Port", int)
INNER = {
    "description": "An inner object.",
    "type": "object",
    "required": ["name"],
    "properties": {"name": TEXT, "size": {"type": "integer", "default": 1}},
}
SET = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
KEYED = fnop.schema(list_type="map", list_keys=["name"])

FORMS: list[tuple[Any, Json]] = [
    (str, TEXT),
    (int, INTEGER),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (Any, KEPT),
    (object, KEPT),
    (bytes, {"type": "string", "format": "byte"}),
    (datetime, {"type": "string", "format": "date-time"}),
    (date, {"type": "string", "format": "date"}),
    (timedelta, {"type": "string", "format": "duration"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
    (Literal["a", None], {"type": "string", "enum": ["a"]}),
    (Literal["a"] | Literal["b"], {"type": "string", "enum": ["a", "b"]}),
    (Colour, {"type": "string", "enum": ["red", "blue"]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (Shade, {"type": "string", "enum": ["dark"]}),
    (list, {"type": "array", "items": KEPT}),
    (list[str], {"type": "array", "items": TEXT}),
    (tuple[str, ...], {"type": "array", "items": TEXT}),
    (Sequence[int], {"type": "array", "items": INTEGER}),
    (set[str], SET),
    (frozenset[str], SET),
    (list[Inner], {"type": "array", "items": INNER}),
    (dict, {"type": "object", **KEPT}),
    (dict[str, Any], {"type": "object", **KEPT}),
    (dict[str, str], {"type": "object", "additionalProperties": TEXT}),
    (Mapping[Shade, int], {"type": "object", "additionalProperties": INTEGER}),
    (dict[str, Inner], {"type": "object", "additionalProperties": INNER}),
    (Inner, INNER),
    (
        Mapped,
        {
            "type": "object",
            "required": ["name"],
            "properties": {"name": TEXT, "size": INTEGER},
        },
    ),
    (Port, INTEGER),
    (int | str, {"x-kubernetes-int-or-string": True}),
    (fnop.IntOrString, {"x-kubernetes-int-or-string": True}),
    (int | float, {"type": "number"}),
    (str | None, TEXT),
    (Optional[str], TEXT),  # noqa: UP045 (the older form is one, too)
    (Annotated[str, "a mark of somebody else"], TEXT),
    # An entry cannot be missing, as a field can.
    (
        list[int | None],
        {"type": "array", "items": {"type": "integer", "nullable": True}},
    ),
    (list[Any | None], {"type": "array", "items": KEPT}),
    (
        dict[str, str | None],
        {"type": "object", "additionalProperties": {**TEXT, "nullable": True}},
    ),
    (pydantic.JsonValue, KEPT),
    # Limits that all integers keep, and a server turns into others.
    (Annotated[int, annotated_types.Interval(ge=-(2**63), le=2**63 - 1)], INTEGER),
    (Annotated[int, fnop.schema(minimum=0, maximum=1e30)], {**INTEGER, "minimum": 0}),
    # A server cuts limits for whole numbers: 0 would be no less than a minimum of 0.5.
    (
        Annotated[float, fnop.schema(minimum=0.5, exclusive_maximum=2.5)],
        {
            "type": "number",
            "minimum": math.nextafter(0.5, 0),
            "exclusiveMinimum": True,
            "maximum": math.nextafter(2.5, 0),
        },
    ),
    (
        Annotated[float, fnop.schema(exclusive_minimum=0.5, maximum=2.5)],
        {"type": "number", "minimum": 0.5, "exclusiveMinimum": True, "maximum": 2.5},
    ),
    (
        Annotated[float, fnop.schema(exclusive_minimum=-2.5, maximum=-0.5)],
        {
            "type": "number",
            "minimum": math.nextafter(-2.5, 0),
            "maximum": math.nextafter(-0.5, 0),
            "exclusiveMaximum": True,
        },
    ),
    (
        Annotated[int, fnop.schema(exclusive_maximum=2**62)],
        {**INTEGER, "maximum": 2**62, "exclusiveMaximum": True},
    ),
    (
        Annotated[str, pydantic.Field(pattern=re.compile("^a", re.IGNORECASE))],
        {**TEXT, "pattern": "(?i)^a"},
    ),
    (
        Annotated[int, fnop.schema(minimum=1, exclusive_maximum=9)],
        {"type": "integer", "minimum": 1, "maximum": 9, "exclusiveMaximum": True},
    ),
    (
        Annotated[str, fnop.schema(pattern="^a", min_length=1, max_length=5)],
        {"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 5},
    ),
    (
        Annotated[str | None, fnop.schema(nullable=True, format="email")],
        {"type": "string", "nullable": True, "format": "email"},
    ),
    (
        Annotated[
            list[Annotated[str, fnop.schema(max_length=2)]], fnop.schema(max_items=3)
        ],
        {"type": "array", "items": {"type": "string", "maxLength": 2}, "maxItems": 3},
    ),
    (
        Annotated[list[Inner], KEYED],
        {
            "type": "array",
            "items": INNER,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    ),
    (
        Annotated[dict[str, str], fnop.schema(max_properties=3, map_type="atomic")],
        {
            "type": "object",
            "additionalProperties": TEXT,
            "maxProperties": 3,
            "x-kubernetes-map-type": "atomic",
        },
    ),
    (
        Annotated[Any, fnop.schema(embedded=True)],
        {"type": "object", **KEPT, "x-kubernetes-embedded-resource": True},
    ),
    (
        Annotated[Inner, fnop.schema(preserve_unknown=True, description="Another.")],
        {**INNER, **KEPT, "description": "Another."},
    ),
    (
        Annotated[int, fnop.schema(rules=[fnop.rule("self % 2 == 0", "is even")])],
        {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "self % 2 == 0", "message": "is even"}
            ],
        },
    ),
    (
        Annotated[list[str], pydantic.Field(min_length=1, description="Some.")],
        {"type": "array", "items": TEXT, "minItems": 1, "description": "Some."},
    ),
]


@pytest.mark.parametrize(("hint", "schema"), FORMS, ids=lambda each: str(each)[:60])
def test_each_form_of_a_type_has_its_schema(hint: Any, schema: Json) -> None:
    assert field_of(hint) == schema


def test_a_quantity_is_a_number_or_a_text_with_a_unit() -> None:
    found = field_of(fnop.Quantity)
    assert found.pop("pattern").startswith("^")
    assert found == {"x-kubernetes-int-or-string": True}


DEFAULTS: list[tuple[Any, Any, Any]] = [
    (int, 1, 1),
    (str, "", ""),
    (bool, False, False),
    (float, 0.5, 0.5),
    (Colour, Colour.RED, "red"),
    (Level, Level.HIGH, 2),
    (Shade, Shade.DARK, "dark"),
    (bytes, b"\x00a", "AGE="),
    (datetime, datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
    (date, date(2026, 1, 2), "2026-01-02"),
    (timedelta, timedelta(minutes=1.5), "1m30s"),
    (uuid.UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (tuple[int, ...], (1, 2), [1, 2]),
    (frozenset[str], frozenset("cab"), ["a", "b", "c"]),
    (fnop.Quantity, "1Gi", "1Gi"),
    (Inner, Inner("a"), {"name": "a"}),
    (Inner, Inner("a", 2), {"name": "a", "size": 2}),
    (tuple[Inner, ...], (Inner("a"),), [{"name": "a"}]),
]


def name_of(value: object) -> str:
    """A name for a test that is the same in each process."""
    return str(sorted(value) if isinstance(value, frozenset) else value)


@pytest.mark.parametrize(("hint", "default", "value"), DEFAULTS, ids=name_of)
def test_a_default_is_the_servers_and_its_field_is_not_required(
    hint: Any, default: Any, value: Any
) -> None:
    assert field_of(hint, default=default)["default"] == value
    assert field_of(hint, default_factory=lambda: default)["default"] == value
    one = made("One", [("a", hint, default)], frozen=True)
    assert "required" not in spec_of(kind_of(one))


@fnop.schema(rules=[fnop.rule("self.low <= self.high")])
@dataclass(frozen=True)
class Range:
    low: int = 0
    high: int = 9


def test_a_default_that_a_rule_judges_is_whole() -> None:
    """The server judges it before it fills anything in: {} would have no `low`."""
    assert field_of(Range, default=Range(1))["default"] == {"low": 1, "high": 9}
    assert field_of(Range, default=Range())["default"] == {"low": 0, "high": 9}
    outer = made("Outer", [("range", Range, Range(1))], frozen=True)
    assert field_of(outer, default=outer())["default"] == {}


@dataclass(frozen=True)
class Texts:
    """The texts of a class.

    In two paragraphs.
    """

    first: Annotated[str, fnop.schema(description="In the type.")]
    second: str
    """Below the field: a text."""
    third: str | None
    fourth: Inner
    """Of the field, not of the class."""
    fifth: Annotated[str, fnop.schema(name="class")] = "x"
    sixth: int | None = None


def test_what_is_required_and_how_fields_are_described() -> None:
    found = spec_of(kind_of(Texts))
    assert found["description"] == "The texts of a class.\n\nIn two paragraphs."
    assert found["required"] == ["first", "second", "fourth"]
    described = {k: each.get("description") for k, each in found["properties"].items()}
    assert described == {
        "first": "In the type.",
        "second": "Below the field: a text.",
        "third": None,
        "fourth": "Of the field, not of the class.",
        "class": None,
        "sixth": None,
    }
    assert "default" not in found["properties"]["sixth"]


class Base(TypedDict):
    a: NotRequired[str]
    b: str


class Derived(Base, total=False):
    c: Annotated[Required[int], fnop.schema(minimum=1)]
    d: Annotated[int, fnop.schema(default=3)]
    """Of its own."""


def test_typed_mappings_have_the_fields_of_their_bases() -> None:
    """Their types are texts here, by the import from __future__."""
    assert spec_of(kind_of(Derived)) == {
        "type": "object",
        "required": ["b", "c"],
        "properties": {
            "a": TEXT,
            "b": TEXT,
            "c": {"type": "integer", "minimum": 1},
            "d": {"type": "integer", "default": 3, "description": "Of its own."},
        },
    }


class Nested(pydantic.BaseModel):
    name: str
    size: int = 1


class Model(pydantic.BaseModel):
    """A model."""

    model_config = pydantic.ConfigDict(extra="allow")

    size: int = pydantic.Field(ge=1, lt=9, description="How large.")
    name: Annotated[str, pydantic.StringConstraints(pattern="^a", max_length=3)] = "a"
    items: list[Annotated[int, pydantic.Field(gt=0)]] = pydantic.Field(
        default_factory=list, max_length=5, alias="theItems"
    )
    nested: Nested = Nested(name="x")
    perhaps: Nested | None = None
    ours: Annotated[int, fnop.schema(multiple_of=2)]


def test_models_of_pydantic_have_its_limits_names_and_defaults() -> None:
    nested = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": TEXT, "size": {"type": "integer", "default": 1}},
    }
    positive = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    assert spec_of(kind_of(Model)) == {
        "description": "A model.",
        "type": "object",
        "required": ["size", "ours"],
        "properties": {
            "size": {
                "description": "How large.",
                "type": "integer",
                "minimum": 1,
                "maximum": 9,
                "exclusiveMaximum": True,
            },
            "name": {
                "type": "string",
                "default": "a",
                "pattern": "^a",
                "maxLength": 3,
            },
            "theItems": {
                "type": "array",
                "default": [],
                "items": positive,
                "maxItems": 5,
            },
            "nested": {**nested, "default": {"name": "x"}},
            "perhaps": nested,
            "ours": {"type": "integer", "multipleOf": 2},
        },
        **KEPT,
    }


@fnop.definition("models.v1.example.com")
class WholeModel(pydantic.BaseModel):
    metadata: Any
    spec: Nested


@fnop.definition("mappings.v1.example.com")
class WholeMapping(TypedDict):
    apiVersion: str
    spec: Nested


@pytest.mark.parametrize("cls", [WholeModel, WholeMapping])
def test_a_kind_itself_may_be_any_of_the_forms(cls: type) -> None:
    assert spec_of(cls)["required"] == ["name"]


def test_pydantic_is_not_imported_for_types_that_are_not_its() -> None:
    script = (
        "import sys, fnop.adapters.cli.main, fnop.adapters.definitions.classes as d\n"
        "from fnop.adapters.definitions.class_kinds import kinds_in\n"
        "sys.path.insert(0, 'examples/18-definitions')\n"
        "import kinds; d.definitions_of(kinds_in([kinds]))\n"
        "assert 'pydantic' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, timeout=patience(20)
    )


# ------------------------------------------------------------------------- refusals


@dataclass
class Loop:
    again: list[Loop]


@dataclass
class Unknown:
    what: Nowhere  # type: ignore[name-defined]  # noqa: F821 (this is the mistake)


@dataclass
class Twice:
    a: str
    b: Annotated[str, fnop.schema(name="a")]


@dataclass
class Naive:
    at: datetime = datetime(2026, 1, 1)  # noqa: DTZ001 (this is the mistake)


T = TypeVar("T")


@dataclass
class Page(Generic[T]):
    items: list[T]


def failing() -> str:
    raise RuntimeError("there is no disk")


@dataclass
class Failing:
    disk: str = field(default_factory=failing)


class FailingModel(pydantic.BaseModel):
    disk: str = pydantic.Field(default_factory=failing)


@dataclass(frozen=True)
class Emptied:
    size: int | None = 1


@dataclass
class Emptying:
    inner: Emptied = Emptied(None)


class Rights(IntFlag):
    READ = 1
    WRITE = 2


class Hollow(Enum):
    pass


class Endless(Enum):
    NEVER = math.inf


REFUSED: list[tuple[Any, str | None]] = [
    (str | list[str], r"One.a: str \| list\[str\] is a choice between types"),
    (Inner | Mapped, "One.a: Inner . Mapped is a choice .* a class with an optional"),
    (tuple[int, str], "One.a: a tuple with a type for each place .* take tuple"),
    (dict[int, str], r"One.a: the keys of a mapping are texts, .* dict\[str, X\]"),
    (Page[int], r"One.a: .*Page\[int\] is a generic class, .* written out"),
    (Page, "Page.items: ~T has no schema"),
    (complex, "One.a: complex has no schema; take a dataclass"),
    (Literal["a", 1], "One.a: the values 'a' and 1 are not of one type"),
    (Hollow, "One.a: it has no values; write them, or take str"),
    (Loop, "Loop.again: Loop is inside of itself, .* take Any"),
    (Unknown, "Unknown.what: its type names Nowhere, which is not known"),
    (Twice, "Twice.b: another field is a, too; rename one"),
    (Naive, "Naive.at: its default .* has no time zone.* give it tzinfo=UTC"),
    (Failing, "Failing.disk: the factory of its default fails: there is no disk"),
    (FailingModel, "FailingModel.disk: the factory of its default fails: there is no"),
    (Emptying, "Emptying.inner: its default has None in size"),
    (
        Annotated[str, fnop.schema(minimum=1)],
        "One.a: minimum= is about numbers, and this is of type string; leave it out",
    ),
    (
        Annotated[Any, fnop.schema(list_type="set")],
        "One.a: list_type= is about lists, and this is of any type",
    ),
    (
        Annotated[str, fnop.schema(embedded=True)],
        "One.a: embedded= is about objects, and this is of type string",
    ),
    (
        Annotated[float, fnop.schema(exclusive_minimum=-math.inf)],
        "One.a: minimum=-inf is nothing that JSON has; give a finite number",
    ),
    (
        Annotated[float, pydantic.Field(lt=Decimal("0.5"))],
        r"One.a: maximum=Decimal\('0.5'\) is nothing that JSON has",
    ),
    (Endless, "One.a: the value inf is nothing that JSON has; leave it out"),
    (Rights, "One.a: Rights has flags, .* take a set of an Enum"),
    (
        list[Literal["a", None]],
        "One.a: the entries .* are listed values or None, .* leave None out",
    ),
    (
        Annotated[int, fnop.schema(maximum=2**53 + 1)],
        "One.a: maximum=9007199254740993 is rounded by an API server; take a whole",
    ),
    (
        Annotated[bytes, annotated_types.MinLen(3)],
        "One.a: its length is that of its bytes, .* the letters of their base64",
    ),
    (Annotated[int, fnop.schema(minimum=0.5)], "One.a: minimum=0.5 is rounded by"),
    (
        Annotated[float, fnop.schema(maximum=1e300)],
        r"One.a: maximum=1e\+300 has more than 64 bits, .* take a smaller one, or none",
    ),
    (
        Annotated[float, fnop.schema(multiple_of=0.1)],
        "One.a: multiple_of=0.1 is cut to a whole number .* take an int",
    ),
    (Annotated[int, fnop.schema(minimum=2**63)], "One.a: minimum=.* is rounded by"),
    (
        Annotated[int, fnop.schema(exclusive_maximum=2**63 - 1)],
        "One.a: maximum=9223372036854775807 is rounded by",
    ),
    # These the API server itself refuses.
    (
        Annotated[list[Inner], fnop.schema(list_type="map", list_keys=["nam"])],
        r"Thing.spec.a \(x-kubernetes-list-map-keys\): .* names of item properties",
    ),
    (
        Annotated[list[Inner], fnop.schema(list_type="map", list_keys=["size"])],
        None,  # it has a default
    ),
    (set[Inner], r"Thing.spec.a \(items.x-kubernetes-map-type\): .* must be atomic"),
    (Annotated[str, fnop.schema(pattern="(")], r"Thing.spec.a \(pattern\): .* regular"),
    (
        Annotated[int, fnop.schema(minimum=1, default=0)],
        r"Thing.spec.a \(default\): .* greater than or equal to 1",
    ),
    (
        Annotated[int, fnop.schema(rules=[fnop.rule("self.x > 1")])],
        r"Thing.spec.a \(x-kubernetes-validations\[0\].rule\): .*",
    ),
]


@pytest.mark.parametrize(("hint", "sentence"), REFUSED, ids=lambda each: str(each)[:50])
def test_a_type_without_a_schema_is_refused_in_a_sentence(
    hint: Any, sentence: str | None
) -> None:
    if sentence is None:
        field_of(hint)
        return
    with pytest.raises(DefinitionProblem, match=f"^{sentence}") as found:
        field_of(hint)
    assert "\n" not in str(found.value)


def test_a_class_without_fields_is_no_kind() -> None:
    class Plain:
        pass

    with pytest.raises(DefinitionProblem, match="make it a dataclass"):
        definitions_of([fnop.definition("plains.v1.example.com")(Plain)])


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: fnop.definition("databases.example.com"), "must be plural, version"),
        (lambda: fnop.definition("pods.v1."), "must be plural, version and group"),
        (
            lambda: fnop.definition("a.v1.b.c", scope="cluster"),  # type: ignore[arg-type]
            "must be 'Namespaced' or 'Cluster'",
        ),
        (
            lambda: fnop.definition("a.v1.b.c", short_names="db"),
            r"short_names= takes a list, such as \['db'\], not 'db'",
        ),
        (
            lambda: fnop.definition("a.v1.b.c", rules=["self.x"]),  # type: ignore[list-item]
            r"rules= takes a list, such as \[fnop.rule\(",
        ),
        (
            lambda: fnop.definition(
                "a.v1.b.c",
                columns=fnop.column("A", ".a"),  # type: ignore[arg-type]
            ),
            r"columns= takes a list, such as \[fnop.column\(",
        ),
        (
            lambda: fnop.schema(rules=fnop.rule("self")),  # type: ignore[arg-type]
            r"fnop.schema: rules= takes a list",
        ),
        (
            lambda: fnop.schema(minimun=1),  # type: ignore[call-arg]
            "no option 'minimun'; did you mean 'minimum'",
        ),
        (lambda: fnop.schema(name="x")(Inner), "are those of one field"),
        (lambda: fnop.schema()(3), "decorates classes"),  # type: ignore[type-var]
        (
            lambda: fnop.on.create(Inner),
            "the class Inner is not a kind; decorate it with",
        ),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(declare: Any, sentence: str) -> None:
    with pytest.raises(RegistrationError, match=sentence):
        declare()


# ------------------------------------------------------------------- whole kinds


def test_all_parts_of_a_kind() -> None:
    @fnop.schema(rules=[fnop.rule("self.low <= self.high", "low is not above high")])
    @dataclass
    class Range:
        low: int = 0
        high: int = 9

    cls = made("Database", [("spec", Range), ("data", dict[str, str], None)])
    cls = fnop.definition(
        "databases.v1beta1.example.com",
        kind="DB",
        short_names=["db", "dbs"],
        categories=["all"],
        scope="Cluster",
        columns=[
            fnop.column("Low", ".spec.low", type="integer", priority=1),
            fnop.column("Age", ".metadata.creationTimestamp", type="date"),
        ],
        scale=fnop.scale(spec=".spec.low", status=".status.low"),
        rules=[
            fnop.rule(
                "self.spec.low == oldSelf.spec.low",
                message_expression="'low is ' + string(self.spec.low)",
                reason="FieldValueForbidden",
                field_path=".spec.low",
            )
        ],
        selectable=[".spec.low"],
        deprecated="use v2",
    )(cls)
    (found,) = definitions_of([cls])
    assert found == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "databases.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {
                "kind": "DB",
                "plural": "databases",
                "singular": "db",
                "shortNames": ["db", "dbs"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "deprecated": True,
                    "deprecationWarning": "use v2",
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.low",
                            "statusReplicasPath": ".status.low",
                        },
                    },
                    "additionalPrinterColumns": [
                        {
                            "name": "Low",
                            "type": "integer",
                            "priority": 1,
                            "jsonPath": ".spec.low",
                        },
                        {
                            "name": "Age",
                            "type": "date",
                            "jsonPath": ".metadata.creationTimestamp",
                        },
                    ],
                    "selectableFields": [{"jsonPath": ".spec.low"}],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {
                                        "low": {"type": "integer", "default": 0},
                                        "high": {"type": "integer", "default": 9},
                                    },
                                    "x-kubernetes-validations": [
                                        {
                                            "rule": "self.low <= self.high",
                                            "message": "low is not above high",
                                        }
                                    ],
                                },
                                "data": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                },
                                "status": {"type": "object", **KEPT},
                            },
                            "x-kubernetes-validations": [
                                {
                                    "rule": "self.spec.low == oldSelf.spec.low",
                                    "messageExpression": "'low is ' + "
                                    "string(self.spec.low)",
                                    "reason": "FieldValueForbidden",
                                    "fieldPath": ".spec.low",
                                }
                            ],
                        }
                    },
                }
            ],
        },
    }


@dataclass(frozen=True)
class Seen:
    ready: int
    phase: Literal["Pending", "Running"] = "Pending"


def status_of(hint: Any, **options: Any) -> Json:
    cls = made("Thing", [("status", hint)])
    (found,) = definitions_of(
        [fnop.definition("things.v1.example.com", **options)(cls)]
    )
    (version,) = found["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    assert "required" not in root
    status: Json = root["properties"]["status"]
    return status


def test_a_status_has_room_for_fnops_own_state() -> None:
    """Nothing in it is required, or filled in: it is written piece by piece."""
    phase = {"type": "string", "enum": ["Pending", "Running"]}
    known = {"ready": INTEGER, "phase": phase}
    assert status_of(Seen) == {"type": "object", "properties": known, **KEPT}
    assert status_of(Any) == status_of(dict[str, int]) == {"type": "object", **KEPT}
    with pytest.raises(DefinitionProblem, match="a status is an object"):
        status_of(list[str])


def test_conditions_are_a_list_with_one_of_each_type() -> None:
    found = status_of(Seen, conditions=True)["properties"]["conditions"]
    assert found["x-kubernetes-list-type"] == "map"
    assert found["x-kubernetes-list-map-keys"] == ["type"]
    assert "lastTransitionTime" in found["items"]["required"]
    own = made("Own", [("conditions", list[Any])])
    with pytest.raises(DefinitionProblem, match="leave one out"):
        status_of(own, conditions=True)


def versions(*options: Json) -> list[type]:
    names = ("v1", "v1beta1", "v2", "v1alpha1")
    return [
        fnop.definition(f"things.{each.pop('name', name)}.example.com", **each)(
            made(f"Thing{name}", [("spec", dict)])
        )
        for name, each in zip(names, map(dict, options), strict=False)
    ]


def test_versions_of_one_kind_are_in_the_order_of_discovery() -> None:
    alike: Json = {"kind": "Thing", "singular": "thing"}
    given = versions(
        {**alike, "deprecated": True},
        {**alike, "served": False},
        {**alike, "storage": True},
    )
    for order in itertools.permutations(given):
        (found,) = definitions_of(order)
        assert [
            (each["name"], each["served"], each["storage"], each.get("deprecated"))
            for each in found["spec"]["versions"]
        ] == [
            ("v2", True, True, None),
            ("v1", True, False, True),
            ("v1beta1", False, False, None),
        ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (({"kind": "T"}, {"kind": "T"}), r"\(Thingv1, Thingv1beta1\) none is marked"),
        (({"kind": "T", "storage": True},) * 2, "2 are marked as stored"),
        (
            ({"kind": "A", "storage": True}, {"kind": "B"}),
            "has kind='B' and Thingv1 kin",
        ),
        (({"kind": "A", "name": "v1"},) * 2, "are both things.v1.example.com"),
        (({"storage": False},), "none is marked as stored"),
    ],
)
def test_versions_that_do_not_fit_are_refused(
    options: tuple[Json, ...], sentence: str
) -> None:
    with pytest.raises(DefinitionProblem, match=sentence):
        definitions_of(versions(*options))


def test_formats_that_a_server_does_not_know_are_told() -> None:
    one = made("One", [("a", Annotated[str, fnop.schema(format="emial")])])
    (found,) = definitions_of([kind_of(one)])
    assert warnings_about(found) == ('unrecognized format "emial"',)


# ----------------------------------------------------------------- finding classes


def test_kinds_are_found_once_where_they_are_defined_or_imported() -> None:
    kind = kind_of(Inner)
    derived = type("Derived", (kind,), {})
    first, second = ModuleType("first"), ModuleType("second")
    vars(first).update(one=kind, other=Inner, again=kind, derived=derived)
    vars(second).update(two=kind, three=3)
    assert kinds_in([first, second]) == [kind]
    assert definition_of(derived) is None


KIND_FILE = (
    "from dataclasses import dataclass\n\nimport fnop\n\n\n"
    "@fnop.definition('{plural}.v1.example.com')\n@dataclass\n"
    "class {kind}:\n    spec: dict[str, str]\n"
)


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("from shop import kinds", ["orders"]),
        ("import shop.kinds as anything", ["orders"]),
        ("import shop.kinds", ["orders"]),
        ("from shop import handlers", ["orders"]),
        ("from shop.kinds import Order", ["orders"]),
        ("import library", []),
        ("from library import Book", ["books"]),
    ],
)
def test_kinds_are_found_in_modules_of_the_project(
    line: str, kinds: list[str], tmp_path: Path
) -> None:
    shop, library = tmp_path / "shop", tmp_path / "site-packages"
    for folder in (shop, library):
        folder.mkdir()
    (shop / "__init__.py").touch()
    (shop / "kinds.py").write_text(KIND_FILE.format(plural="orders", kind="Order"))
    (shop / "handlers.py").write_text("from shop import kinds, handlers\n")
    (library / "library.py").write_text(KIND_FILE.format(plural="books", kind="Book"))
    path = f"import sys\nsys.path.append({str(library)!r})\n"
    (tmp_path / "operator.py").write_text(f"import json\n{path}{line}\n")
    done = command("crd", tmp_path / "operator.py", folder=ROOT)
    assert [each["spec"]["names"]["plural"] for each in done.documents] == kinds
    assert kinds or "there is no kind" in done.err


def test_decorators_take_the_class_in_the_place_of_the_name() -> None:
    kind = kind_of(Inner)
    registry = fnop.Registry()

    @fnop.on.create(kind, registry=registry)
    @fnop.on.update("things.v1.example.com", registry=registry)
    def handler(**_: Any) -> None: ...

    @fnop.on.event("pods", owner=kind, registry=registry)
    def child(**_: Any) -> None: ...

    @fnop.reconcile("databases", owns=[kind], registry=registry)
    def level(**_: Any) -> None: ...

    @fnop.maps("configmaps", to=kind, registry=registry)
    def keys(**_: Any) -> list[str]:
        return []

    update, create, event, reconciling, mapping = registry.handlers
    assert reconciling.owns == (("things.v1.example.com", create.selector),)
    assert isinstance(mapping.fn, partial)
    assert mapping.fn.args[1:] == ("things.v1.example.com",)
    assert create.selector == update.selector == event.owner
    assert named(kind) == "things.v1.example.com"
    assert str(create.selector) == "things.v1.example.com"


# ------------------------------------------------------------------------- the text


@fnop.definition("fnopexamples.v1.fnop.dev", short_names=["fex"])
@dataclass
class FnopExample:
    spec: dict[str, Any] | None
    status: dict[str, Any]


@dataclass
class VolumeSpec:
    size: Annotated[str, fnop.schema(pattern="^[0-9]{1,4}[A-Z]i$")]
    secret: Annotated[str | None, fnop.schema(pattern="^[a-z]{1,20}$")]
    archived: bool | None


@fnop.definition("fnopexamples.v1.fnop.dev", kind="FnopExample", short_names=["fex"])
@dataclass
class Volume:
    spec: VolumeSpec


@pytest.mark.parametrize(
    ("example", "cls"),
    [("01-minimal", FnopExample), ("05-handlers", FnopExample), ("09-testing", Volume)],
)
def test_the_definitions_of_examples_are_what_the_types_say(
    example: str, cls: type
) -> None:
    """Byte by byte: what a person has written is what is printed."""
    text = (ROOT / "examples" / example / "object.yaml").read_text()
    assert definitions_yaml(definitions_of([cls])) == text.partition("---\n")[0]


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "y", "1", "1e3", "0o14", "~", "", " a", "a: b", "a #b", "- a", "{a}"),
        *("22:22", "2026-01-01", "^\\d$", 'say "a"', "it's", "[a", "a, b", "x" * 200),
        *("*", "&a", "!a", "%", "@", "`", "|", ">", "a\nb", "a\n\nb ", "a\n"),
        *("\x1b[2J", "a\u202eb"),
    ],
)
def test_every_text_is_read_back_as_it_was(text: str) -> None:
    from fnop.adapters.common.manifests import parse_yaml

    printed = definitions_yaml([{"a": text, "b": [text], "c": [[text], {"d": text}]}])
    assert parse_yaml(printed) == {"a": text, "b": [text], "c": [[text], {"d": text}]}
    assert printed.isprintable() or set(printed) - {"\n"} == {
        each for each in printed if each.isprintable()
    }


# ---------------------------------------------------------------------- the command

KINDS = """
from dataclasses import dataclass
from typing import Annotated
import fnop

@fnop.definition("databases.v1.example.com")
@dataclass
class Database:
    spec: dict[str, str]
"""


def test_the_command_prints_and_checks(tmp_path: Path) -> None:
    (tmp_path / "kinds.py").write_text(KINDS)
    # The same file, imported and named: one kind.
    (tmp_path / "operator.py").write_text("from kinds import Database\n")
    done = command("crd", "operator.py", "kinds.py", folder=tmp_path)
    assert (done.status, done.err) == (0, "")
    (found,) = done.documents
    assert found["metadata"]["name"] == "databases.example.com"
    (tmp_path / "crd.yaml").write_text(done.out)
    same = command("crd", "operator.py", "--check", "crd.yaml", folder=tmp_path)
    assert (same.status, same.out, same.err) == (0, "", "")
    (tmp_path / "crd.yaml").write_text(
        done.out.replace("served: true", "served: false")
    )
    other = command("crd", "operator.py", "--check", "crd.yaml", folder=tmp_path)
    assert other.status == 1
    assert "-      served: false\n+      served: true\n" in other.out
    assert other.complaint == (
        "fnop: crd.yaml is not what the types say; write it anew: "
        "fnop crd operator.py > crd.yaml"
    )


def test_the_command_tells_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text("import fnop\n")
    (tmp_path / "kinds.py").write_text(KINDS.replace("str, str", "int, str"))
    (tmp_path / "odd.py").write_text(
        KINDS.replace("dict[str, str]", "Annotated[str, fnop.schema(format='emial')]")
    )
    none = command("crd", "operator.py", folder=tmp_path)
    assert (none.status, none.out) == (2, "")
    assert "there is no kind; decorate a class" in none.err
    nothing = command("crd", folder=tmp_path)
    assert nothing.status == 2
    assert "fnop crd operator.py" in nothing.err
    wrong = command("crd", "kinds.py", folder=tmp_path)
    assert (wrong.status, wrong.out) == (1, "")
    assert wrong.err.startswith("fnop: Database.spec: the keys of a mapping are texts")
    odd = command("crd", "odd.py", folder=tmp_path)
    assert odd.status == 0
    assert 'databases.example.com: unrecognized format "emial"' in odd.err


def test_the_help_says_what_it_is_for(tmp_path: Path) -> None:
    done = command("crd", "--help", folder=tmp_path)
    assert done.status == 0
    assert "fnop crd operator.py > crd.yaml" in done.out
    assert "--check FILE" in done.out


# ---------------------------------------------------------------- in the simulation


@dataclass(frozen=True)
class PoolSpec:
    size: Annotated[int, fnop.schema(minimum=1)]
    mode: Literal["fast", "slow"] = "fast"
    inner: Inner = Inner("a")
    limit: int | None = None


@fnop.definition(
    "pools.v1.example.com",
    rules=[fnop.rule("self.spec.size <= 9", "at most nine")],
    conditions=True,
)
@dataclass(frozen=True)
class Pool:
    spec: PoolSpec
    status: Seen = Seen(0)


def pool(**spec: Any) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Pool",
        "metadata": {"name": "example-1", "namespace": "default"},
        "spec": spec,
    }


@pytest.fixture
def handlers() -> fnop.Registry:
    registry = fnop.Registry()

    @fnop.on.create(Pool, registry=registry, id="created")
    def created(spec: fnop.Spec, **_: Any) -> Json:
        if spec["size"] == 2:
            raise fnop.PermanentError("two is too much")
        return {"mode": spec["mode"], "inner": spec["inner"]}

    return registry


def test_an_operator_of_such_a_kind_keeps_its_state(handlers: fnop.Registry) -> None:
    manifests = [*definitions_of([Pool]), pool(size=1, limit=None)]
    sim = Scenario(handlers, manifests)
    assert sim.settle()
    found = sim.get("pools")
    assert found is not None
    inner = {"name": "a", "size": 1}
    assert found["spec"] == {"size": 1, "mode": "fast", "inner": inner}
    assert found["status"]["created"] == {"mode": "fast", "inner": inner}
    assert json.loads(found["status"]["fnop.dev/default"])
    assert "annotations" not in found["metadata"]
    assert "phase" not in found["status"]


def test_the_condition_of_a_failure_is_one_of_the_standard(
    handlers: fnop.Registry,
) -> None:
    sim = Scenario(handlers, [*definitions_of([Pool]), pool(size=2)])
    assert sim.settle()
    found = sim.get("pools")
    assert found is not None
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("fnop.dev/default", "False")


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"size": 0},
        {"size": 10},
        {"size": 1, "mode": "odd"},
        {"size": "1"},
        {"size": 1, "inner": {}},
    ],
    ids=str,
)
def test_a_bad_object_is_refused(handlers: fnop.Registry, spec: Json) -> None:
    from fnop.interpreters.simulation.scenario import ApplyProblem

    with pytest.raises(ApplyProblem, match="is invalid"):
        Scenario(handlers, [*definitions_of([Pool]), pool(**spec)])


def test_the_examples_definitions_are_accepted_again() -> None:
    """A guard of the test above: what is compared are definitions."""
    assert (
        yaml.safe_load(definitions_yaml(definitions_of([Volume])))
        == (manifests_of("09-testing")[0])
    )


@pytest.mark.parametrize("limit", [math.inf, math.nan])
def test_limits_that_are_no_numbers_are_refused(limit: float) -> None:
    @dataclass
    class Spec:
        size: Annotated[float, fnop.schema(maximum=limit)]

    Spec.__annotations__["size"] = Annotated[float, fnop.schema(maximum=limit)]

    @fnop.definition("sizes.v1.example.com")
    @dataclass
    class Size:
        spec: Spec

    Size.__annotations__["spec"] = Spec
    try:
        text = yaml.safe_dump(definitions_of([Size]))
    except DefinitionProblem:
        return
    assert ".inf" not in text
    assert ".nan" not in text
