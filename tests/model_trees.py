"""Random classes that pydantic reads, objects for a server, and the law about both.

What the server admits the class parses to the same value, and what the class dumps the
server admits.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import field, make_dataclass
from datetime import date, datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import annotated_types
import pydantic
from hypothesis import strategies as st
from pydantic import AliasChoices, Field, RootModel, TypeAdapter

import fnop

__all__ = ["Modelled", "assert_alike", "modelled"]

Json = dict[str, Any]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Names(RootModel[list[str]]):
    """Several names."""


class Share(RootModel[Annotated[float, Field(ge=0, le=1)]]):
    pass


class Form(NamedTuple):
    """A type, and values of it as JSON."""

    hint: Any
    values: st.SearchStrategy[Any]


class Modelled(NamedTuple):
    """A kind, its spec's class, JSON values of it, and others that may be invalid."""

    kind: type
    spec: Any
    values: list[Json]
    others: list[Json]


class Made(NamedTuple):
    cls: Any
    values: st.SearchStrategy[Json]
    others: st.SearchStrategy[Json]


def form(hint: Any, *values: Any) -> Form:
    return Form(hint, st.sampled_from(values))


SCALARS = (
    form(str, "", "a", "ö", "1"),
    form(int, -5, 0, 2**53 + 1, 2**63 - 1, -(2**63)),
    form(bool, True, False),
    form(float, 0.5, -2.25, 1, 1e300),
    form(Literal["a", "b"], "a", "b"),
    form(Literal[1, 2], 1, 2),
    form(Colour, "red", "blue"),
    form(Level, 1, 2),
    form(int | str, 1, "50%"),
    form(Annotated[int, Field(ge=0, lt=9)], 0, 8),
    form(Annotated[int, annotated_types.Gt(0), annotated_types.MultipleOf(5)], 5, 10),
    form(Annotated[float, annotated_types.Interval(gt=0, le=1)], 0.5, 1),
    form(Annotated[float, Field(ge=0.5, lt=2.5)], 0.5, 1, 2, 2.4),
    form(Annotated[float, Field(gt=-2.5, le=-0.5)], -2, -1, -0.5),
    form(Annotated[str, Field(min_length=1, max_length=2)], "a", "öö"),
    form(Annotated[str, annotated_types.Len(2, 3)], "ab", "abc"),
    form(Annotated[str, pydantic.StringConstraints(pattern="^[a-z]*$")], "", "ab"),
    form(Annotated[list[int], annotated_types.MaxLen(1)], [], [1]),
    form(Annotated[dict[str, int], annotated_types.MinLen(1)], {"a": 1}),
    form(date, "2026-01-02"),
    form(datetime, "2026-01-02T03:04:05Z"),
    form(UUID, "c0ffee00-0000-4000-8000-000000000000"),
    form(pydantic.UUID4, "c0ffee00-0000-4000-8000-000000000000"),
    form(pydantic.Base64Bytes, "", "YQ==", "/w=="),
    form(pydantic.AwareDatetime, "2026-01-02T03:04:05+01:00"),
    form(Annotated[str, Field(pattern=r"^\w\d*$")], "a", "ö", "a٣"),
    form(Annotated[str, Field(pattern=re.compile(r"^\S$"))], "a", "ö\n"),
    form(pydantic.FiniteFloat, 0.5),
    form(frozenset[str], [], ["a"], ["a", "b"]),
    form(Names, [], ["a"]),
    form(Share, 0.5),
    form(pydantic.JsonValue, {"x": [1, None]}, "a", 1),
)
FORMATTED = (date, datetime, UUID, pydantic.UUID4, pydantic.AwareDatetime)
LISTED = (Literal["a", "b"], Literal[1, 2], Colour, Level)
OTHERS = st.sampled_from(
    [
        *(None, True, -3, -1, 0, 1, 2, 3, 5, 9, 10**6, 2**60, 0.5, 1.5, -0.5, 1e20),
        *("", "a", "A", "abc", "abcd", "red", "5", "2026-01-02", "ö" * 3),
        *([], ["a"], ["a", "a"], [1, 2], [None], {}, {"a": 1}, {"a": None}, {"b": "x"}),
    ]
)
NAMES = ("size", "items", "name", "from_", "kind")
_numbers = itertools.count(1)


@st.composite
def forms(draw: st.DrawFn, depth: int) -> tuple[Form, st.SearchStrategy[Any]]:
    """A type, and values that may not belong to it."""
    ways = ("list", "mapping", "optional", "class") if depth else ()
    way = draw(st.sampled_from(("scalar", "scalar", *ways)))
    if way == "scalar":
        scalar: Form = draw(st.sampled_from(SCALARS))
        # A server takes any list for a text with a format (kube-openapi: type.go).
        lists = scalar.hint not in FORMATTED
        return scalar, OTHERS.filter(lambda each: lists or not isinstance(each, list))
    if way == "class":
        made: Made = draw(classes(depth - 1))
        return Form(made.cls, made.values), made.others | OTHERS
    hint: Any
    (hint, values), others = draw(forms(depth - 1))
    # No null next to listed values: that is refused in a sentence.
    if way == "optional" and hint not in LISTED:
        hint, values = hint | None, values | st.none()
    if way == "mapping":
        return (
            Form(dict[str, hint], st.dictionaries(st.sampled_from("ab"), values)),
            st.dictionaries(st.sampled_from("ab"), others) | OTHERS,
        )
    return (
        Form(list[hint], st.lists(values, max_size=2)),
        st.lists(others, max_size=2) | OTHERS,
    )


@st.composite
def classes(draw: st.DrawFn, depth: int) -> Made:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    way = draw(st.sampled_from(("model", "dataclass")))
    fields: Json = {}
    values: dict[bool, Json] = {True: {}, False: {}}
    others: Json = {}
    for name in names:
        (hint, its), any_ = draw(forms(depth))
        has = draw(st.sampled_from(("nothing", "default", "optional")))
        options: Json = {}
        if has == "default":
            options["default_factory"] = _maker(hint, draw(its))
        elif has == "optional":
            hint, options["default"] = hint | None, None
        elif None in _kinds_of(hint):
            has, options["default"] = "optional", None
        known = name
        if way == "model":
            alias = draw(st.sampled_from(("", "", f"{name}Alias")))
            if alias and draw(st.booleans()):
                options |= {"alias": alias}
            elif alias:
                choices = AliasChoices(f"{name}_old", alias)
                options |= {"validation_alias": choices, "serialization_alias": alias}
            known = alias or name
        fields[name] = (hint, options)
        values[has == "nothing"][known] = its
        others[known] = any_
    given = st.fixed_dictionaries(values[True], optional=values[False])
    cls = _class_of(way, fields)
    return Made(cls, given, st.fixed_dictionaries({}, optional=others))


def _kinds_of(hint: Any) -> tuple[Any, ...]:
    return tuple(
        None if each is type(None) else each for each in getattr(hint, "__args__", ())
    )


def _maker(hint: Any, value: Any) -> Callable[[], Any]:
    read = TypeAdapter(hint)
    return lambda: read.validate_python(value)


def _class_of(way: str, fields: Json) -> Any:
    name = f"Made{next(_numbers)}"
    if way == "model":
        made: Json = {
            each: (hint, Field(**options)) for each, (hint, options) in fields.items()
        }
        return pydantic.create_model(name, **made)
    return make_dataclass(
        name,
        [(each, hint, field(**options)) for each, (hint, options) in fields.items()],
        kw_only=True,
    )


@st.composite
def modelled(draw: st.DrawFn) -> Modelled:
    made: Made = draw(classes(2))
    number = next(_numbers)
    cls = make_dataclass(f"Kind{number}", [("spec", made.cls)])
    marked = fnop.definition(f"kind{number}s.v1.models.conf.dev")(cls)
    values = draw(st.lists(made.values, min_size=2, max_size=2))
    others = draw(st.lists(made.others, min_size=5, max_size=5))
    return Modelled(marked, made.cls, values, others)


def assert_alike(found: Modelled, create: Callable[[Json], tuple[int, Any]]) -> int:
    """Assert the law; `create` makes an object with a spec. How many were admitted."""
    read = TypeAdapter(found.spec)
    for value in found.values:
        one = read.validate_python(value)
        dumped = read.dump_python(one, mode="json", by_alias=True)
        status, stored = create(dumped)
        assert status == 201, (dumped, stored)
        assert read.validate_python(stored["spec"]) == one, (stored["spec"], dumped)
    admitted = 0
    for other in found.others:
        status, stored = create(other)
        if status != 201:
            continue
        admitted += 1
        one = read.validate_python(stored["spec"])
        try:
            meant = read.validate_python(other)
        except pydantic.ValidationError:
            continue  # a null, which the server has removed
        assert one == meant, (stored["spec"], other)
    return admitted
