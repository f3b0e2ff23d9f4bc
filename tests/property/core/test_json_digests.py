"""Digests of JSON values: equal for equal values, and cheap for large ones."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from fnop.effects.values import digest, same_json
from tests.thorough import examples

# Texts that look like the end of a number, and numbers of all forms.
TEXTS = st.text('.0e+1,]}["-', max_size=8)
FLOATS = st.floats(-1e30, 1e30, allow_nan=False)
WHOLE = st.integers(-(2**53), 2**53)
VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS | FLOATS | WHOLE,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=8,
)


def as_floats(value: Any) -> Any:
    """The same value, its numbers written as floats."""
    if isinstance(value, dict):
        return {key: as_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_floats(item) for item in value]
    return float(value) if type(value) is int else value


@settings(max_examples=examples(50))
@given(VALUES)
def test_the_form_of_a_number_does_not_change_the_digest(value: Any) -> None:
    other = as_floats(value)
    assert same_json(value, other)
    assert digest(value) == digest(other)


@settings(max_examples=examples(50))
@given(VALUES, VALUES)
def test_digests_are_equal_where_values_are(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) is same_json(one, other)
