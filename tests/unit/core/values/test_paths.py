"""Paths to fields, as people write them, and the differing fields of two values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from fnop.core.values.paths import (
    Element,
    FieldPath,
    contrasts,
    find,
    names_of,
    parse_path,
    path_text,
)

names = st.text("abXY019-/_ .", min_size=1, max_size=6).filter(
    lambda each: not each.isdecimal()
)
elements = st.builds(
    Element, st.sampled_from(["type", "name"]), st.text("aB. =/", max_size=4)
)
parts = st.one_of(names, st.integers(0, 99), elements)
heads = st.text("abXY-_ ", min_size=1, max_size=6)


@given(heads, st.lists(parts, max_size=4))
def test_a_path_is_read_as_it_is_written(head: str, rest: list[Any]) -> None:
    path = (head, *rest)
    assert parse_path(path_text(path)) == path


@pytest.mark.parametrize(
    "text", ["", ".", "a..b", "a[", "a]", "a[]", "a.[0]", "[0]", "a[0", "a[[0]]", "a."]
)
def test_what_is_no_path_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"is not a path of a field; write it as in"
    ) as e:
        parse_path(text)
    assert "\n" not in str(e.value)


CONDITIONS = {
    "status": {
        "conditions": [
            {"type": "Ready", "status": "False"},
            {"type": "Synced", "status": "True"},
        ],
        "ports": [80, 443],
    },
    "metadata": {"labels": {"a.b/c": "x"}},
    "data": {"1": "one"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("status.conditions[type=Synced].status", "True"),
        ("status.conditions[0].type", "Ready"),
        ("status.conditions[2].type", None),
        ("status.conditions[type=Gone].status", None),
        ("status.ports[1]", 443),
        ("status.ports[type=x]", None),
        ("metadata.labels[a.b/c]", "x"),
        ("data[1]", "one"),
        ("data[1].more", None),
        ("status.conditions.type", None),
    ],
)
def test_a_value_is_found(text: str, value: Any) -> None:
    assert find(CONDITIONS, parse_path(text)) == value


def test_the_names_of_a_path_end_at_a_list() -> None:
    path = parse_path("status.conditions[type=Ready].status")
    assert names_of(path) == ("status", "conditions")


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "x", "y"]), each, max_size=3)
    ),
    max_leaves=8,
)


@given(values, values)
def test_contrasts_are_what_differs_at_their_paths(old: Any, new: Any) -> None:
    for path, before, now in contrasts(old, new):
        assert before != now or type(before) is not type(now)
        assert _is_at(old, path, before)
        assert _is_at(new, path, now)


def _is_at(value: Any, path: FieldPath, found: Any) -> bool:
    at = find(value, path)
    return at == found and type(at) is type(found)


@given(values)
def test_equal_values_have_no_contrasts(value: Any) -> None:
    assert [*contrasts(value, value)] == []


def test_an_element_in_the_middle_is_one_contrast() -> None:
    old = [{"name": "a", "n": 1}, {"name": "c", "n": 3}]
    new = [{"name": "a", "n": 1}, {"name": "b", "n": 2}, {"name": "c", "n": 3}]
    (found,) = contrasts(old, new)
    assert (path_text(found.path), found.old, found.new) == ("[name=b]", None, new[1])
