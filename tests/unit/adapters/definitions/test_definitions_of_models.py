"""Definitions admit what classes read: defaults of factories, and pydantic's names."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import pydantic
import pydantic.dataclasses
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel

import fnop
from fnop.adapters.definitions.classes import DefinitionProblem, definitions_of

Json = dict[str, Any]
INTEGER = {"type": "integer"}


def spec_of(hint: Any) -> Json:
    """The schema of a spec of this type."""
    cls = make_dataclass("Thing", [("spec", hint)])
    (found,) = definitions_of([fnop.definition("things.v1.example.com")(cls)])
    (version,) = found["spec"]["versions"]
    spec: Json = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def refusal_of(hint: Any) -> str:
    with pytest.raises(DefinitionProblem) as found:
        spec_of(hint)
    assert "\n" not in str(found.value)
    return str(found.value)


# ------------------------------------------------------------------- factories


@dataclass(eq=False)
class Inner:
    """A value without an equality of its own."""

    size: int = 1


class Counting:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return self.count


OTHER_EACH_TIME: dict[str, Callable[[], Any]] = {
    "uuid4": uuid.uuid4,
    "now": partial(datetime.now, UTC),  # noqa: TID251 (these are the mistakes)
    "a day": date.today,
    "a day in a function": lambda: f"{date.today():%Y}",  # noqa: DTZ011
    "the time": time.time,  # noqa: TID251
    "a counter": Counting(),
    "an iterator": itertools.count().__next__,
    "one of two": itertools.cycle("ab").__next__,
    "inside": lambda: {"a": [uuid.uuid4().hex]},
    "in an instance": lambda: Inner(uuid.uuid4().int % 2**60),
}
THE_SAME: dict[str, tuple[Callable[[], Any], Any]] = {
    "list": (list, []),
    "dict": (dict, {}),
    "an instance": (Inner, {"size": 1}),
    "a value": (lambda: {"a": 1}, {"a": 1}),
    "a set": (lambda: {"b", "a"}, ["a", "b"]),
}


@pytest.mark.parametrize("way", ["dataclass", "model"])
@pytest.mark.parametrize("factory", OTHER_EACH_TIME.values(), ids=OTHER_EACH_TIME)
def test_a_factory_that_makes_another_value_each_time_is_refused(
    factory: Any, way: str
) -> None:
    said = refusal_of(made(way, Any, default_factory=factory))
    assert said == (
        "Made.a: the factory of its default makes another value each time, and a "
        "definition has one for all objects; write `X | None = None`, and let a "
        "handler fill it in"
    )


@pytest.mark.parametrize("way", ["dataclass", "model"])
@pytest.mark.parametrize(("factory", "default"), THE_SAME.values(), ids=THE_SAME)
def test_a_factory_of_equal_values_is_a_default(
    factory: Any, default: Any, way: str
) -> None:
    schema = spec_of(made(way, Any, default_factory=factory))
    assert schema["properties"]["a"]["default"] == default


def made(way: str, hint: Any, **options: Any) -> Any:
    if way == "dataclass":
        return make_dataclass("Made", [("a", hint, field(**options))])
    return pydantic.create_model("Made", a=(hint, Field(**options)))


# ----------------------------------------------------------------------- names

BY_ALIAS = ConfigDict(serialize_by_alias=True)
NAMED: dict[str, tuple[ConfigDict, Json, str]] = {
    "nothing": (ConfigDict(), {}, "my_a"),
    "alias": (ConfigDict(), {"alias": "b"}, "b"),
    "alias by default": (BY_ALIAS, {"alias": "b"}, "b"),
    "both": (ConfigDict(), {"validation_alias": "b", "serialization_alias": "b"}, "b"),
    "one of several": (
        ConfigDict(),
        {"validation_alias": AliasChoices("c", "b"), "serialization_alias": "b"},
        "b",
    ),
    "a path of one": (
        ConfigDict(),
        {"validation_alias": AliasPath("b"), "serialization_alias": "b"},
        "b",
    ),
    "a generator": (ConfigDict(alias_generator=to_camel), {}, "myA"),
    "its name is read": (
        ConfigDict(validate_by_name=True),
        {"validation_alias": "b"},
        "my_a",
    ),
    "populated by name": (
        ConfigDict(populate_by_name=True, serialize_by_alias=False),
        {"alias": "b"},
        "my_a",
    ),
    "fnop's own": (ConfigDict(), {"alias": "b", "mark": fnop.schema(name="b")}, "b"),
}
MISNAMED: dict[str, tuple[ConfigDict, Json, str]] = {
    "read alone": (
        ConfigDict(),
        {"validation_alias": "b"},
        "the model reads it as 'b' and writes it as 'my_a', .* alias='b' alone",
    ),
    "written alone": (
        ConfigDict(),
        {"serialization_alias": "b"},
        "the model reads it as 'my_a' and writes it as 'b', .* alias='b' alone",
    ),
    "choices": (
        ConfigDict(),
        {"validation_alias": AliasChoices("b", "c")},
        "the model reads it as 'b' or 'c' and writes it as 'my_a'",
    ),
    "a path": (
        ConfigDict(),
        {"validation_alias": AliasPath("b", "c", 0), "serialization_alias": "b"},
        r"the model reads it from inside another field \(b.c.0\)",
    ),
    "a path among choices": (
        ConfigDict(),
        {
            "validation_alias": AliasChoices("b", AliasPath("c", "d")),
            "serialization_alias": "b",
        },
        r"the model reads it from inside another field \(c.d\)",
    ),
    "not written by alias": (
        ConfigDict(serialize_by_alias=False),
        {"alias": "b"},
        "the model reads it as 'b' and writes it as 'my_a'",
    ),
    "not read by alias": (
        ConfigDict(validate_by_alias=False, validate_by_name=True),
        {"alias": "b"},
        "the model reads it as 'my_a' and writes it as 'b'",
    ),
    "fnop's own": (
        ConfigDict(),
        {"mark": fnop.schema(name="b")},
        "the model reads it as 'my_a' and writes it as 'b'",
    ),
    "that of another": (
        ConfigDict(),
        {
            "validation_alias": AliasChoices("b", "other"),
            "serialization_alias": "b",
        },
        "the model would read it from 'other', which is the field other",
    ),
}


def named(config: ConfigDict, options: Json) -> Any:
    options = dict(options)
    hint: Any = int
    if mark := options.pop("mark", None):
        hint = Annotated[int, mark]
    fields: Json = {"my_a": (hint, Field(**options)), "other": (int, 5)}
    return pydantic.create_model("Made", __config__=config, **fields)


@pytest.mark.parametrize(("config", "options", "name"), NAMED.values(), ids=NAMED)
def test_a_field_has_the_name_that_the_model_reads_and_writes(
    config: ConfigDict, options: Json, name: str
) -> None:
    model = named(config, options)
    schema = spec_of(model)
    assert schema["required"] == [name]
    assert schema["properties"][name] == INTEGER
    assert model.model_validate({name: 7}).my_a == 7


@pytest.mark.parametrize(
    ("config", "options", "problem"), MISNAMED.values(), ids=MISNAMED
)
def test_a_model_that_reads_and_writes_otherwise_is_refused(
    config: ConfigDict, options: Json, problem: str
) -> None:
    with pytest.raises(DefinitionProblem, match=rf"^Made\.my_a: {problem}"):
        spec_of(named(config, options))


# ------------------------------------------------------------------------ forms


class Sizes(RootModel[list[Annotated[int, Field(ge=1)]]]):
    """Several sizes."""


class Rooted(BaseModel):
    sizes: Sizes = Sizes([1, 2])
    by_name: dict[str, Sizes] = {}


class Endless(RootModel[list["Endless"]]):
    pass


def test_a_root_model_is_its_root() -> None:
    sizes = {
        "description": "Several sizes.",
        "type": "array",
        "items": {"type": "integer", "minimum": 1},
    }
    assert spec_of(Rooted)["properties"] == {
        "sizes": {**sizes, "default": [1, 2]},
        "by_name": {"type": "object", "additionalProperties": sizes, "default": {}},
    }
    assert spec_of(Sizes) == sizes
    assert "Endless.root: Endless is inside of itself" in refusal_of(Endless)


def test_a_root_model_is_no_kind() -> None:
    kind = fnop.definition("things.v1.example.com")(Sizes)
    with pytest.raises(DefinitionProblem, match="Sizes has no fields"):
        definitions_of([kind])


class Computing(BaseModel):
    size: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.size


class ComputingOpen(Computing):
    model_config = ConfigDict(extra="allow")


def test_what_is_computed_is_not_read() -> None:
    assert spec_of(Computing)["properties"] == {"size": INTEGER}
    said = refusal_of(ComputingOpen)
    assert said.startswith("ComputingOpen.double: it is computed, and the model would")


def test_what_is_excluded_is_read_where_it_may_be_missing() -> None:
    fine = pydantic.create_model("Made", a=(int, Field(1, exclude=True)))
    assert spec_of(fine)["properties"]["a"] == {**INTEGER, "default": 1}
    wrong = pydantic.create_model("Made", a=(int, Field(exclude=True)))
    assert "Made.a: the model reads it, and does not write it" in refusal_of(wrong)


def test_what_a_model_wants_and_a_server_removes_is_refused() -> None:
    wrong = pydantic.create_model("Made", a=(int | None, ...))
    assert "Made.a: the model wants it, and the API server" in refusal_of(wrong)
    hint = Annotated[int | None, fnop.schema(nullable=True)]
    kept = pydantic.create_model("Made", a=(hint, ...))
    assert spec_of(kept) == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "integer", "nullable": True}},
    }


@pydantic.dataclasses.dataclass
class Checked:
    size: int = Field(ge=1, default=3, alias="theSize")
    items: list[int] = Field(default_factory=list)


def test_a_dataclass_of_pydantic_is_a_model() -> None:
    assert spec_of(Checked)["properties"] == {
        "theSize": {"type": "integer", "minimum": 1, "default": 3},
        "items": {"type": "array", "items": INTEGER, "default": []},
    }


class Limited(BaseModel):
    model_config = ConfigDict(str_max_length=5, str_min_length=1)

    name: str
    short: Annotated[str, Field(max_length=2)]


def test_the_limits_of_all_texts_of_a_model() -> None:
    text = {"type": "string", "minLength": 1}
    assert spec_of(Limited)["properties"] == {
        "name": {**text, "maxLength": 5},
        "short": {**text, "maxLength": 2},
    }


class Colour(Enum):
    RED = "red"


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        (timedelta, "pydantic writes a timedelta as 'PT5M'"),
        (dict[Colour, int], "the model reads no other keys than Colour"),
        (dict[Literal["a"], int], "the model reads no other keys than .*Literal"),
        (dict[uuid.UUID, int], "the model reads no other keys than UUID"),
        (
            Annotated[Cat | Dog, Field(discriminator="kind")],
            r"Cat \| Dog is a choice between types|.*Cat.*Dog.* is a choice between",
        ),
        (pydantic.SecretStr, "SecretStr has no schema"),
        (
            Annotated[
                str, pydantic.StringConstraints(strip_whitespace=True, min_length=2)
            ],
            r"the model changes a text before it judges it \(strip_whitespace\)",
        ),
        (
            Annotated[
                str, pydantic.StringConstraints(to_lower=True, pattern="^[a-z]+$")
            ],
            r"the model changes a text before it judges it \(to_lower\)",
        ),
    ],
)
def test_what_a_schema_cannot_say_of_a_model_is_refused(
    hint: Any, problem: str
) -> None:
    model = pydantic.create_model("Made", a=(hint, ...))
    with pytest.raises(DefinitionProblem, match=rf"^Made\.a: ({problem})"):
        spec_of(model)


@pytest.mark.parametrize(
    ("default", "problem"),
    [
        (2**63, "its default has 64 bits, and the API server keeps integers of 64"),
        ("\ud800", "its default: no Unicode text"),
        ({"a": {"\ud800": 1}}, r"its default\.a: the key"),
    ],
)
def test_a_default_that_a_server_would_change_is_refused(
    default: Any, problem: str
) -> None:
    with pytest.raises(DefinitionProblem, match=rf"^Made\.a: {problem}"):
        spec_of(made("model", Any, default=default))
