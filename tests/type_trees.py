"""Random kinds: classes of classes, whose values are known in Python and in JSON."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from dataclasses import field, make_dataclass
from datetime import UTC, date, datetime
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import pydantic
from hypothesis import strategies as st
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

import fnop

__all__ = ["Kind", "kinds"]

Json = dict[str, Any]


class Value(NamedTuple):
    """A value, and what it is in JSON."""

    python: Any
    json: Any


class Form(NamedTuple):
    """A type, and the values that it admits."""

    hint: Any
    values: st.SearchStrategy[Value]


class Kind(NamedTuple):
    """A kind, and the spec that the server fills in if it is missing."""

    cls: type
    spec: Json


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def plain(hint: Any, *values: Any) -> Form:
    return Form(hint, st.sampled_from([Value(each, each) for each in values]))


SCALARS = (
    plain(str, "", "a", "yes", "1", "a: b", "é\n"),
    plain(int, -5, 0, 2**40),
    plain(bool, True, False),
    plain(float, 0.5, -2.25),
    plain(Literal["a", "b"], "a", "b"),
    plain(Literal[1, 2], 1, 2),
    plain(int | str, 1, "50%"),
    plain(fnop.Quantity, 1, "10Gi", "250m"),
    plain(Annotated[int, fnop.schema(minimum=0, maximum=9)], 0, 9),
    plain(Annotated[str, fnop.schema(pattern="^[a-z]+$", max_length=3)], "a", "abc"),
    Form(Colour, st.sampled_from([Value(each, each.value) for each in Colour])),
    Form(
        bytes,
        # The server refuses "", and models read bytes from UTF-8 alone.
        st.text("abé", min_size=1, max_size=3).map(
            lambda text: Value(text.encode(), base64.b64encode(text.encode()).decode())
        ),
    ),
    Form(date, st.just(Value(date(2026, 1, 2), "2026-01-02"))),
    Form(
        datetime,
        st.just(Value(datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z")),
    ),
)
TEXTS = plain(str, "a", "b", "c")
NAMES = st.sampled_from(["size", "name", "items", "yes", "a1", "metadata", "spec"])
_numbers = itertools.count(1)


@st.composite
def forms(draw: st.DrawFn, depth: int) -> Form:
    nested = ("list", "mapping", "set", "keyed", "open")
    classes = ("dataclass", "model", "typed mapping")
    kind = draw(st.sampled_from(("scalar", *(nested + classes if depth else ()))))
    if kind == "scalar":
        scalar: Form = draw(st.sampled_from(SCALARS))
        return scalar
    if kind == "open":
        return plain(Any, {"x": [1, None]}, "a", [])
    if kind == "set":
        return Form(
            frozenset[str],
            st.lists(TEXTS.values, max_size=3).map(
                lambda found: Value(
                    frozenset(each.python for each in found),
                    sorted({each.json for each in found}),
                )
            ),
        )
    if kind in classes:
        return draw(records(depth - 1, kind))
    if kind == "keyed":
        return draw(keyed(depth - 1))
    inner = draw(forms(depth - 1))
    hint: Any = inner.hint
    if kind == "list":
        return Form(list[hint], lists_of(inner.values))
    return Form(dict[str, hint], mappings_of(inner.values))


def lists_of(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.lists(values, max_size=2).map(
        lambda found: Value([e.python for e in found], [e.json for e in found])
    )


def mappings_of(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.dictionaries(NAMES, values, max_size=2).map(
        lambda found: Value(
            {name: each.python for name, each in found.items()},
            {name: each.json for name, each in found.items()},
        )
    )


@st.composite
def keyed(draw: st.DrawFn, depth: int) -> Form:
    """A list of objects with a name each, which several may write."""
    other = draw(forms(depth))
    defaults = {"value": draw(other.values)}
    cls = made("dataclass", {"key": str, "value": other.hint}, defaults)
    keys = st.lists(st.sampled_from("abc"), max_size=2, unique=True)
    values = keys.map(
        lambda found: Value(
            [cls(key=each) for each in found],
            [{"key": each, "value": defaults["value"].json} for each in found],
        )
    )
    mark = fnop.schema(list_type="map", list_keys=["key"])
    return Form(Annotated[list[cls], mark], values)  # type: ignore[valid-type]


def made(kind: str, hints: Mapping[str, Any], defaults: Mapping[str, Value]) -> Any:
    """A class of some form with fields of these types."""
    name = f"Made{next(_numbers)}"
    if kind == "typed mapping":
        found = {each: NotRequired[hint] for each, hint in hints.items()}
        return TypedDict(name, found)  # type: ignore[operator]  # made at run time
    if kind == "model":
        fields: Json = {
            each: (hint, defaults[each].python if each in defaults else ...)
            for each, hint in hints.items()
        }
        return pydantic.create_model(name, **fields)
    return make_dataclass(
        name,
        [
            (each, hint, field(default_factory=partial(_same, defaults[each].python)))
            if each in defaults
            else (each, hint)
            for each, hint in hints.items()
        ],
    )


def _same(value: Any) -> Any:
    return value


@st.composite
def records(draw: st.DrawFn, depth: int, kind: str = "dataclass") -> Form:
    """A class, all of whose fields have defaults or may be missing."""
    found = draw(st.dictionaries(NAMES, forms(depth), max_size=3))
    optional = {name for name in found if draw(st.booleans())}
    hints = {
        name: each.hint | None
        if name in optional and each.hint is not Any
        else each.hint
        for name, each in found.items()
    }
    missing = {name for name in optional if draw(st.booleans())}
    defaults = {
        name: Value(None, None) if name in missing else draw(each.values)
        for name, each in found.items()
    }
    cls = made(kind, hints, defaults)
    parts = {name: each.values for name, each in found.items()}
    given = st.fixed_dictionaries({}, optional=parts)

    def value(parts: Mapping[str, Value]) -> Value:
        python = {name: each.python for name, each in parts.items()}
        filled = parts if kind == "typed mapping" else {**defaults, **parts}
        json = {n: each.json for n, each in filled.items() if each.json is not None}
        return Value(cls(**python), json)

    return Form(cls, given.map(value))


@st.composite
def kinds(draw: st.DrawFn, depth: int = 3) -> Kind:
    """A kind whose spec has a default for everything."""
    spec = draw(records(depth, draw(st.sampled_from(("dataclass", "model")))))
    default = draw(spec.values)
    number = next(_numbers)
    cls = make_dataclass(
        f"Kind{number}",
        [("spec", spec.hint, field(default_factory=lambda: default.python))],
    )
    marked = fnop.definition(
        f"kind{number}s.v1.trees.conf.dev", conditions=draw(st.booleans())
    )
    return Kind(marked(cls), default.json)
