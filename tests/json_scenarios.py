"""Values that `json` takes, and an operator that writes them in every way."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple

from hypothesis import strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry

__all__ = [
    "GIVEN",
    "KIND",
    "VALUES_AND_NULLS",
    "Given",
    "as_read",
    "assert_arrived",
    "echo",
    "same",
    "writing",
]

KIND = "fnopexamples"


class Colour(str, Enum):  # noqa: UP042  # formatted, it shows its name
    RED = "red"
    BLUE = "größer"


class Level(IntEnum):
    LOW = 1
    HIGH = 2**40


class Phase(StrEnum):
    READY = "Ready"


class Share(float, Enum):
    HALF = 0.5


class Text(str):
    """A text that shows itself otherwise."""

    def __str__(self) -> str:
        return "<text>"


class Whole(int):
    def __repr__(self) -> str:
        return "<whole>"


class Ratio(float):
    def __repr__(self) -> str:
        return "<ratio>"


class Items(list[Any]):
    pass


class Table(dict[Any, Any]):
    pass


class Point(NamedTuple):
    x: Any
    y: Any


_WHOLES = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
# A server reads what is applied as YAML, which lacks some of these, and folds others.
_TEXTS = st.text(max_size=5) | st.text("\x7f\x85\u2028\ufeff\uffff \n", max_size=5)
_MEMBERS = st.sampled_from([*Colour, *Level, *Phase, *Share])
_KEYS = st.one_of(
    *(_TEXTS, _WHOLES, _FLOATS, st.booleans(), st.none(), _MEMBERS),
    *(_TEXTS.map(Text), _WHOLES.map(Whole), _FLOATS.map(Ratio)),
)
_SCALARS = st.one_of(
    *(_TEXTS, _WHOLES, _FLOATS, st.booleans(), _MEMBERS),
    *(_TEXTS.map(Text), _WHOLES.map(Whole), _FLOATS.map(Ratio)),
)


def _as_key(key: Any) -> str:
    (found,) = json.loads(json.dumps({key: 0}))
    return str(found)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=3)
    pairs = st.tuples(_KEYS, inner)
    tables = st.lists(pairs, max_size=3, unique_by=lambda pair: _as_key(pair[0]))
    return st.one_of(
        *(lists, lists.map(tuple), lists.map(Items), st.builds(Point, inner, inner)),
        *(tables.map(dict), tables.map(Table), tables.map(OrderedDict)),
        tables.map(lambda found: defaultdict(list, found)),
    )


# A null in a merge patch is what is to be removed.
VALUES = st.recursive(_SCALARS, _containers, max_leaves=8)
VALUES_AND_NULLS = st.recursive(_SCALARS | st.none(), _containers, max_leaves=8)


def as_read(value: Any) -> Any:
    """A value as any reader of JSON gets it."""
    return json.loads(json.dumps(value))


def same(one: Any, other: Any) -> bool:
    """Whether two values are one for a server, which has floats of 64 bits."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return float(one) == float(other)
    return type(one) is type(other) and bool(one == other)


def echo(value: Any) -> Any:
    """A called function."""
    return {"answer": value}


class Given(NamedTuple):
    """Values to be written, one of them perhaps with nulls."""

    kept: Any
    created: Any


GIVEN = st.builds(Given, VALUES, VALUES_AND_NULLS)


def writing(given: Mapping[str, Given], registry: Registry) -> Registry:
    """A handler that writes the values for an object in every way."""

    @fnop.on.create(KIND, registry=registry, id="written", retries=1)
    async def write(name: str, patch: Any, **_: Any) -> Any:
        if name not in given:
            return None
        kept, created = given[name]
        patch.status["patched"] = {"value": kept}
        patch.fns.append(lambda body: body["status"].update(changed={"value": kept}))
        await fnop.create(child(f"{name}-created", created))
        await fnop.apply(child(f"{name}-applied", created))
        answer = await fnop.call(echo, value=kept)
        return {"value": kept, **answer}

    return registry


def child(name: str, value: Any) -> dict[str, Any]:
    return {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "metadata": {"name": name},
        "spec": {"value": value},
    }


def assert_arrived(given: Given, get: Callable[[str], Any], name: str) -> None:
    """Whether all that was written is there, as `json` reads it."""
    kept, created = map(as_read, given)
    status = get(name)["status"]
    found = [
        status["patched"]["value"],
        status["changed"]["value"],
        status["written"]["value"],
        status["written"]["answer"],
    ]
    assert all(same(each, kept) for each in found), (kept, found)
    children = [get(f"{name}-{way}")["spec"]["value"] for way in ("created", "applied")]
    assert all(same(each, created) for each in children), (created, children)
