"""`@frozen` behaves as `@dataclass(frozen=True, slots=True)` does."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st

from fnop.effects.frozen import frozen

# NaN equals itself only in a container that compares identities first.
VALUES = st.sampled_from([0, 1, float("nan")])
NAMES = ("alpha", "beta", "gamma", "delta")
KINDS: dict[str, Callable[[], Any]] = {
    "required": lambda: None,
    "default": lambda: 7,
    "field default": lambda: field(default="x"),
    "factory": lambda: field(default_factory=list),
    "not compared": lambda: field(default=None, compare=False),
    "not shown": lambda: field(default=0, repr=False),
    "by name": lambda: field(kw_only=True),
    "by name, default": lambda: field(default=3, kw_only=True),
    "not taken, default": lambda: field(default=5, init=False),
    "not taken, factory": lambda: field(default_factory=dict, init=False),
}


def made(decorate: Any, kinds: list[str], **options: bool) -> Any:
    """A class with a field of each kind, in this order."""
    required_last = sorted(kinds, key=lambda kind: kind not in ("required", "by name"))
    annotations = dict.fromkeys(NAMES[: len(kinds)], "Any")
    body: dict[str, Any] = {"__annotations__": annotations}
    for name, kind in zip(NAMES, required_last, strict=False):
        value = KINDS[kind]()
        if kind != "required":
            body[name] = value
    body["__module__"] = __name__
    return decorate(**options)(type("Made", (), body))


def standard(**options: bool) -> Any:
    return dataclass(frozen=True, slots=True, **options)


@given(
    st.lists(st.sampled_from(sorted(KINDS)), max_size=4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_a_frozen_class_is_a_frozen_dataclass_with_slots(
    kinds: list[str], kw_only: bool, eq: bool, show: bool, data: st.DataObject
) -> None:
    options = {"kw_only": kw_only, "eq": eq, "repr": show}
    ours, theirs = made(frozen, kinds, **options), made(standard, kinds, **options)
    signature = inspect.signature(theirs)
    assert str(inspect.signature(ours)) == str(signature)
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert [(one.name, one.init) for one in fields(ours)] == [
        (one.name, one.init) for one in fields(theirs)
    ]
    numbers = {name: VALUES for name in signature.parameters}
    needed = {
        name: numbers.pop(name)
        for name, one in signature.parameters.items()
        if one.default is inspect.Parameter.empty
    }
    taken = data.draw(st.fixed_dictionaries(needed, optional=numbers))
    a, b = ours(**taken), theirs(**taken)
    assert asdict(a) == asdict(b)
    if show:
        assert repr(a) == repr(b)
    other = {name: data.draw(VALUES) for name in taken}
    assert (a == ours(**other)) is (b == theirs(**other))
    assert (a != ours(**other)) is (b != theirs(**other))
    assert a != b
    assert outcome(lambda: isinstance(hash(a), int)) == outcome(
        lambda: isinstance(hash(b), int)
    )
    assert asdict(replace(a, **other)) == asdict(replace(b, **other))
    assert asdict(copy.copy(a)) == asdict(b)
    too_few = dict(list(taken.items())[1:])
    assert outcome(lambda: asdict(ours(**too_few))) == outcome(
        lambda: asdict(theirs(**too_few))
    )


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except TypeError as error:
        return str(error)


@frozen
class Base:
    number: int
    name: str = "http"
    count: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("a port is not negative")


@frozen
class Derived(Base):
    note: str = ""

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __hash__(self) -> int:
        return 1


def test_a_derived_class_has_the_fields_and_slots_of_its_base() -> None:
    one = Derived(80, note="x")
    assert (one.number, one.name, one.note) == (80, "http", "x")
    assert (repr(one), hash(one)) == ("<http>", 1)
    assert one == Derived(80, note="x")
    assert one != Derived(81, note="x")
    assert not hasattr(one, "__dict__")
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(ValueError, match="not negative"):
        Derived(-1)


def test_a_frozen_value_matches_a_pattern() -> None:
    one: Any = Base(80)
    match one:
        case Base(80, name=name):
            assert name == "http"
        case _:
            pytest.fail("the pattern does not match")


def test_a_frozen_value_is_not_changed() -> None:
    one: Any = Base(80)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'number'"):
        one.number = 1
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'other'"):
        one.other = 1
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'number'"):
        del one.number
