"""Patterns of models match the same texts on an API server, or are refused."""

from __future__ import annotations

import re
from dataclasses import make_dataclass
from typing import Annotated, Any

import pydantic
import pytest
from hypothesis import given, strategies as st
from pydantic import Field

import fnop
from fnop.adapters.definitions.classes import DefinitionProblem, definitions_of
from fnop.adapters.definitions.patterns import go_of_python, go_of_rust
from fnop.interpreters.cluster.schema.regex import compiled, in_python
from tests.model_patterns import PYTHON, RUST, TEXTS


def texts_of(pattern: Any, *, by_python: bool = False) -> set[str]:
    """The texts that a model with the pattern reads."""
    config = pydantic.ConfigDict(
        regex_engine="python-re" if by_python else "rust-regex"
    )
    hint = Annotated[str, Field(pattern=pattern)]
    model = pydantic.create_model("Made", __config__=config, a=(hint, ...))
    validator = model.__pydantic_validator__
    return {each for each in TEXTS if validator.isinstance_python({"a": each})}


def texts_of_server(pattern: str) -> set[str]:
    """The texts in which an API server finds a pattern."""
    found = compiled(pattern)
    texts = {each for each in TEXTS if found.search(each)}
    # Without the package google-re2; there the case of ASCII alone is ignored.
    in_pure_python = re.compile(in_python(pattern), re.ASCII)
    if "(?i" not in pattern:
        assert texts == {each for each in TEXTS if in_pure_python.search(each)}
    return texts


@pytest.mark.parametrize("pattern", RUST)
def test_a_pattern_of_a_model_matches_the_same_texts(pattern: str) -> None:
    assert texts_of_server(go_of_rust(pattern)) == texts_of(pattern)


@pytest.mark.parametrize(
    "pattern", [r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"(?i)^a{1,9}\.b$", r"[[:alpha:]]"]
)
def test_what_both_know_stays_as_it_is(pattern: str) -> None:
    assert go_of_rust(pattern) == pattern


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("pattern", PYTHON)
def test_a_compiled_pattern_matches_the_same_texts(pattern: str) -> None:
    expression = re.compile(pattern)
    assert texts_of_server(go_of_python(expression)) == texts_of(expression)
    assert texts_of(expression) == texts_of(pattern, by_python=True)


def refusal_of(pattern: Any) -> str:
    model = pydantic.create_model("Made", a=(Annotated[str, Field(pattern=pattern)], 0))
    cls = make_dataclass("Thing", [("spec", model)])
    with pytest.raises(DefinitionProblem) as found:
        definitions_of([fnop.definition("things.v1.example.com")(cls)])
    assert "\n" not in str(found.value)
    return str(found.value)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (r"\ba", r"\b is about letters of Unicode to the model"),
        (r"\Ba", r"\B is about letters of Unicode to the model"),
        (r"\<a", r"\< is about letters of Unicode to the model"),
        (r"\b{start}a", "is about letters of Unicode to the model"),
        (r"[\Wa]", r"has no words for \W in a set"),
        ("[a[bc]]", "no sets inside of sets"),
        ("[a-z&&b]", "nor && in one"),
        ("[a-z--b]", "nor -- in one"),
        ("(?x)a b", "does not know the flag x"),
        ("(?R)a", "does not know the flag R"),
        ("(?i-u:k)", "ignores the case of all of Unicode"),
        ("a**", "takes no * after another repetition"),
        ("a{2}{3}", "takes no {3} after another repetition"),
        ("a{1001}", "repeats something 1001 times"),
        (r"\p{greek}", "invalid character class range"),
        (r"\p{Alphabetic}", "invalid character class range"),
        (re.compile("(?=a)a"), "has no (?=...)"),
        (re.compile("(?<!a)b"), "has no (?!...)"),
        (re.compile(r"(a)\1"), "has no back references"),
        (re.compile("(?P<n>a)(?P=n)"), "has no back references"),
        (re.compile("(a)?(?(1)b|c)"), "has no back references"),
        (re.compile("(?>a)b"), "has no atomic groups"),
        (re.compile("a++b"), "has no possessive repetitions"),
        (re.compile(r"\ba"), r"\b is about letters of Unicode"),
        (re.compile("a$b"), "its $ has something behind it"),
        (re.compile("a{1001}"), "repeats something 1001 times"),
    ],
    ids=str,
)
def test_what_a_server_does_not_know_is_refused(pattern: Any, problem: str) -> None:
    found = refusal_of(pattern)
    assert found.startswith(("Made.a: its pattern: ", "Thing.spec.a (pattern): "))
    assert problem in found


ATOMS = st.sampled_from(
    [
        *"abki_1é\u03b1",
        ".",
        r"\d",
        r"\w",
        r"\s",
        r"\S",
        "[a-c]",
        r"[^a\d]",
        r"[\s_]",
        "(a|b)",
    ]
)
REPEATS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "*?"])
PATTERNS = st.builds(
    lambda parts, start, end: start + "".join(a + b for a, b in parts) + end,
    st.lists(st.tuples(ATOMS, REPEATS), max_size=3),
    st.sampled_from(["", "^", "(?i)", "(?s)^"]),
    st.sampled_from(["", "$"]),
)


@given(PATTERNS)
def test_any_pattern_matches_the_same_texts(pattern: str) -> None:
    assert texts_of_server(go_of_rust(pattern)) == texts_of(pattern)
    expression = re.compile(pattern)
    assert texts_of_server(go_of_python(expression)) == texts_of(expression)
