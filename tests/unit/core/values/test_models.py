"""Reading objects as classes, and writing them: types, defaults, and errors."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.values.models import Unfit, is_read, reader_of
from fnop.effects.models import is_model, plain_model
from fnop.effects.values import freeze_json, read_only
from tests.thorough import examples


class Color(Enum):
    RED = "red"
    ONE = 1


@dataclass(frozen=True)
class Inner:
    name: str
    from_: Annotated[int, fnop.schema(name="from")] = 0


class Struct(msgspec.Struct, frozen=True, rename="camel"):
    min_size: int
    names: list[str] = []


class Model(pydantic.BaseModel):
    min_size: int = pydantic.Field(alias="minSize")
    names: list[str] = []


class Loose(TypedDict, total=False):
    inner: Inner
    other: int


MOMENT = datetime(2030, 1, 1, 12, tzinfo=UTC)
UUID = uuid.UUID(int=5)
# Types, their values in JSON, and what they are read as.
READ: list[tuple[Any, Any, Any]] = [
    (int, 3, 3),
    (int, 3.0, 3),
    (float, 3, 3),
    (str | None, None, None),
    (fnop.IntOrString, "http", "http"),
    (fnop.IntOrString, 80, 80),
    (fnop.Quantity, "10Gi", "10Gi"),
    (Literal["a", "b"], "b", "b"),
    (Color, "red", Color.RED),
    (Color, 1, Color.ONE),
    (datetime, "2030-01-01T12:00:00Z", MOMENT),
    (datetime, "2030-01-01T13:00:00.000000+01:00", MOMENT),
    (date, "2030-01-01", date(2030, 1, 1)),
    (timedelta, "1h30m", timedelta(minutes=90)),
    (timedelta, "2 days", timedelta(days=2)),
    (bytes, "QUI=", b"AB"),
    (uuid.UUID, str(UUID), UUID),
    (list[Inner], [{"name": "a", "from": 2}], [Inner("a", 2)]),
    (tuple[int, ...], [1, 2], (1, 2)),
    (frozenset[str], ["a"], frozenset("a")),
    (Sequence[date], ["2030-01-01"], [date(2030, 1, 1)]),
    (Mapping[str, Inner], {"x": {"name": "a"}}, {"x": Inner("a")}),
    (Inner | None, {"name": "a", "unknown": 1}, Inner("a")),
    (Inner, {"name": "a", "from": None}, Inner("a")),
    (Struct, {"minSize": 3, "unknown": 1}, Struct(3)),
    (Model, {"minSize": 3}, Model(minSize=3)),
    (Loose, {"inner": {"name": "a"}, "x": 1}, {"inner": Inner("a"), "x": 1}),
    (Any, {"a": [1]}, {"a": [1]}),
]


@pytest.mark.parametrize(("hint", "value", "wanted"), READ)
def test_a_value_is_read_by_its_type(hint: Any, value: Any, wanted: Any) -> None:
    found = reader_of(hint)(read_only(value))
    assert found == wanted
    assert type(found) is type(wanted) or isinstance(found, type(wanted))


@pytest.mark.parametrize(
    ("hint", "value", "why"),
    [
        (int, "3", "'3' is not a whole number"),
        (int, True, "true is not a whole number"),
        (int, 3.5, "3.5 is not a whole number"),
        (str, 3, "3 is not a text"),
        (bool, 1, "1 is not a boolean"),
        (Literal["a", "b"], "c", "'c' is not one of 'a' and 'b'"),
        (Color, "blue", "'blue' is not one of 'red' and 1"),
        (Color, {}, "an object is not one of 'red' and 1"),
        (datetime, "2030-01-01T12:00:00", "is not a moment"),
        (timedelta, "soon", "'soon' is not a duration, such as 1h30m"),
        (bytes, "?", "'?' is not base64"),
        (uuid.UUID, 7, "7 is not a UUID"),
        (list[int], [1, "x"], "[1]: 'x' is not a whole number"),
        (list[int], {}, "an object is not a list"),
        (dict[str, int], {"a": []}, "a: a list is not a whole number"),
        (Inner, {}, "name: it is missing, and Inner needs it"),
        (Inner, {"name": None}, "name: it is missing, and Inner needs it"),
        (Inner, "x", "'x' is not an object"),
        (list[Inner], [{"name": "a", "from": "b"}], "[0].from: 'b' is not a whole"),
        (Struct, {"minSize": 1, "names": [1]}, "names[0]: expected `str`, got `int`"),
        (Model, {"minSize": 1, "names": [1]}, "names[0]: input should be a valid"),
        (Loose, {"inner": {}}, "inner.name: it is missing"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(
    hint: Any, value: Any, why: str
) -> None:
    with pytest.raises(Unfit) as found:
        reader_of(hint)(read_only(value))
    assert str(found.value).startswith(why) or why in str(found.value)


def test_a_class_s_own_checks_count() -> None:
    @dataclass
    class Even:
        size: int

        def __post_init__(self) -> None:
            if self.size % 2:
                raise ValueError("it is odd")

    with pytest.raises(Unfit, match="Even refuses it: it is odd"):
        reader_of(Even)({"size": 3})


def test_types_that_json_has_are_not_read() -> None:
    plain = (int, str | None, Any, dict, dict[str, Any], list[int], Literal["a"])
    assert not any(map(is_read, plain))
    assert all(map(is_read, (Inner, list[Inner], Color, date, tuple[int, ...])))


def test_the_fields_of_a_model_are_written_by_their_names() -> None:
    @dataclass
    class Status:
        color: Color
        inner: Inner
        since: datetime | None = None
        every: timedelta = timedelta(seconds=90)
        tags: frozenset[str] = frozenset("ba")
        extra: dict[str, Any] = field(default_factory=dict)

    found = plain_model(Status(Color.RED, Inner("a", 2), MOMENT, extra={"a": None}))
    assert found == {
        "color": "red",
        "inner": {"name": "a", "from": 2},
        "since": "2030-01-01T12:00:00.000000Z",
        "every": "1m30s",
        "tags": ["a", "b"],
        "extra": {"a": None},
    }
    bare = plain_model(Status(Color.RED, Inner("a")), without_none=True)
    assert "since" not in bare
    assert freeze_json({"s": [Struct(3)]}, "x") == {"s": [{"minSize": 3, "names": []}]}
    assert plain_model(Model(minSize=3)) == {"minSize": 3, "names": []}


def test_what_is_fnop_s_own_is_no_model() -> None:
    assert not any(map(is_model, (fnop.event("A"), fnop.desired(), {}, "x", Inner)))


SCALARS = [
    (int, st.integers(-(2**62), 2**62)),
    (str, st.text()),
    (bool, st.booleans()),
    (Color, st.sampled_from(Color)),
    (datetime, st.datetimes(timezones=st.just(UTC))),
    (date, st.dates()),
    (bytes, st.binary()),
    (uuid.UUID, st.uuids()),
    (
        timedelta,
        st.integers(-(10**15), 10**15).map(lambda us: timedelta(microseconds=us)),
    ),
]


# Types made of another one, and their values.
FORMS: list[Callable[[Any, Any], tuple[Any, Any]]] = [
    lambda hint, values: (hint, values),
    lambda hint, values: (list.__class_getitem__(hint), st.lists(values, max_size=3)),
    lambda hint, values: (
        tuple.__class_getitem__((hint, ...)),
        st.lists(values, max_size=3).map(tuple),
    ),
    lambda hint, values: (
        dict.__class_getitem__((str, hint)),
        st.dictionaries(st.text(), values, max_size=3),
    ),
    lambda hint, values: (hint | None, st.none() | values),
]


@st.composite
def objects(draw: Any) -> Any:
    """An object of a class that is made up."""
    fields: list[Any] = []
    values = {}
    for number in range(draw(st.integers(1, 5))):
        name = f"f{number}"
        form = draw(st.sampled_from(FORMS))
        hint, strategy = form(*draw(st.sampled_from(SCALARS)))
        fields.append((name, hint))
        values[name] = draw(strategy)
    return make_dataclass("Made", fields)(**values)


@settings(max_examples=examples(60))
@given(objects(), st.booleans())
def test_what_is_written_is_read_as_it_was(found: Any, without_none: bool) -> None:
    written = plain_model(found, without_none=without_none)
    cls: Any = type(found)
    assert reader_of(cls)(read_only(written)) == found
