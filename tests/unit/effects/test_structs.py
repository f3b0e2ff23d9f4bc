"""Values of fnop: Structs, some of whose fields are beside the value."""

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st
from msgspec import Struct
from msgspec.structs import force_setattr

from fnop.effects.structs import beside, compared, derived, replace

# NaN equals itself only in a container that compares identities first.
VALUES = st.sampled_from([0, 1, float("nan")])


class Plain(Struct, frozen=True):
    port: Any
    name: Any = "http"
    found: Any = None


@beside("found", secret=("name",))
class Told(Struct, frozen=True):
    port: Any
    name: Any = "http"
    found: Any = None


class Sum(Struct, frozen=True):
    terms: tuple[int, ...]
    total: int = derived()

    def __post_init__(self) -> None:
        force_setattr(self, "total", sum(self.terms))


@given(VALUES, VALUES, VALUES, VALUES)
def test_what_is_beside_the_value_is_not_compared(
    port: Any, name: Any, found: Any, other: Any
) -> None:
    one = Told(port, name, found)
    assert one == Told(port, name, other)
    assert hash(one) == hash(Told(port, name, other))
    for changed in (replace(one, port=other), replace(one, name=other)):
        plain = Plain(changed.port, changed.name) == Plain(port, name)
        assert (one == changed) is plain
        assert (one != changed) is not plain
    stranger: Any = Plain(port, name, found)
    assert one != stranger


def test_neither_it_nor_a_secret_is_shown() -> None:
    assert repr(Told(80, "s3cret", 7)) == "Told(port=80)"
    assert compared(Told) == ("port", "name")
    assert compared(Plain) == ("port", "name", "found")


def test_a_copy_keeps_what_is_beside_the_value() -> None:
    one = Told(80, "a", 7)
    for each in (copy.copy(one), pickle.loads(pickle.dumps(one))):
        assert (each, each.found) == (one, 7)
    assert replace(one, port=81).found == 7


def test_a_derived_field_follows_the_others() -> None:
    one = replace(Sum((1, 2)), terms=(3, 4))
    assert one.total == 7
    assert one == Sum((3, 4), total=0)


def test_a_value_is_not_changed() -> None:
    one: Any = Told(80)
    with pytest.raises(AttributeError):
        one.port = 81
    with pytest.raises(TypeError, match="has no field 'ports'"):
        replace(one, ports=81)
