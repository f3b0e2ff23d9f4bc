"""Kubernetes quantities: their syntax, their numbers, and the schema for them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

import fnop
from fnop.core.api.definitions import Schema
from fnop.core.kubernetes.quantities import amount, canonical
from fnop.testing import values_of_schema

# As controller-gen writes it into definitions.
GENERATED = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


def pattern() -> str:
    """The pattern of the type `fnop.Quantity`."""
    (mark,) = [each for each in get_args(fnop.Quantity) if isinstance(each, Schema)]
    found = dict(mark.keywords)["pattern"]
    assert isinstance(found, str)
    return found


NUMBERS: list[tuple[str | float, str]] = [
    ("0", "0"),
    ("1k", "1000"),
    ("1.5Gi", "1610612736"),
    (".5", "0.5"),
    ("5.", "5"),
    ("-100m", "-0.1"),
    ("+1E", "1000000000000000000"),
    ("1E3", "1000"),
    ("1e-3", "0.001"),
    ("3n", "0.000000003"),
    (3, "3"),
    (0.25, "0.25"),
    (1e22, "10000000000000000000000"),
]


@pytest.mark.parametrize(("text", "number"), NUMBERS)
def test_a_quantity_is_a_number(text: str | float, number: str) -> None:
    found = fnop.quantity(text)
    assert found == Decimal(number)
    assert "E+" not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1 Gi", " 1", "1\n", "1gi", "1KI", "1Gib", "--1", ".", "1e", "1e+"),
        *("5.1e-.5", "1e1.5", "1e1k", "1mm", "\u0661", "1.2.3", "0x1", "NaN", "inf"),
        *(True, None, float("nan"), float("inf"), b"1", ["1"]),
    ],
)
def test_what_is_no_quantity_is_told(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a quantity; write one such as"):
        fnop.quantity(text)


@given(st.from_regex(re.compile(pattern(), re.ASCII)))
def test_the_pattern_of_the_type_is_the_grammar(text: str) -> None:
    """Python's `$` looks over a newline at the end, which RE2's does not."""
    if not text.endswith("\n"):
        assert fnop.quantity(text) is not None
        assert canonical(text) is not None


@given(st.text("0123456789.+-eEkKmMiGn", max_size=7))
def test_type_function_and_simulated_server_know_one_grammar(text: str) -> None:
    try:
        fnop.quantity(text)
    except ValueError:
        assert re.search(pattern(), text) is None
        assert amount(text) is None
    else:
        assert re.search(pattern(), text)
        assert fnop.quantity(text) == amount(text)


@pytest.mark.parametrize("pattern", [GENERATED, pattern()])
def test_quantities_that_are_drawn_can_be_read(pattern: str) -> None:
    schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": pattern,
        "x-kubernetes-int-or-string": True,
    }

    @given(values_of_schema(schema))
    def drawn(value: Any) -> None:
        fnop.quantity(value)

    drawn()


@given(st.decimals(-(10**6), 10**6, places=6))
def test_what_the_server_writes_stands_for_the_same_number(number: Decimal) -> None:
    text = canonical(f"{number:f}")
    assert text is not None
    assert fnop.quantity(text) == number
