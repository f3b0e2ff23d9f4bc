"""Label selectors: an operator accepts what a server accepts."""

from __future__ import annotations

import doctest
from typing import Any

from hypothesis import example, given, settings, strategies as st

from fnop.core.handlers.declare.settings import Settings
from fnop.core.kubernetes.label_selectors import OPERATORS, matches
from fnop.core.values import label_selectors
from fnop.interpreters.cluster.requests.selectors import label_clauses
from fnop.interpreters.cluster.validation.selector_rules import matches_unchecked
from tests.thorough import examples

# What the server's lexer knows, and a bit more, in any order.
WORDS = st.sampled_from(
    [*"=!(),<> ", "==", "!=", "in", "notin", "a", "b.c/d", "1", "-2", "\t", "e_f", ""]
)


@settings(max_examples=examples(300))
@given(st.lists(WORDS, max_size=12).map("".join))
@example("a in (b,),c notin(),!d, e!=")
def test_none_is_refused_that_a_server_takes(selector: str) -> None:
    if not isinstance(label_clauses(selector), str):
        assert Settings(selector=selector).selector == selector


# The values that the clauses above name, and some others.
VALUES = st.sampled_from(["", "a", "b", "in", "1", "-2", "7", "x"])


@settings(max_examples=examples(300))
@given(
    st.lists(WORDS, max_size=12).map("".join),
    st.dictionaries(st.sampled_from(["a", "b.c/d", "in", "e_f"]), VALUES),
)
@example("a in (b,),in notin(),!b.c/d, e_f!=", {"a": "", "in": "x"})
@example("a>-2,in<7", {"a": "1", "in": "x"})
def test_labels_fit_as_for_the_server(selector: str, labels: dict[str, str]) -> None:
    clauses = label_clauses(selector)
    if not isinstance(clauses, str):
        expected = all(each.holds(labels) for each in clauses)
        assert label_selectors.fits(selector, labels) is expected


KEYS = st.sampled_from("ab")
LABELS = st.dictionaries(KEYS, st.sampled_from("xy"))
SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": LABELS,
        "matchExpressions": st.lists(
            st.fixed_dictionaries(
                {"key": KEYS, "operator": st.sampled_from([*OPERATORS, "Near", ""])},
                optional={"values": st.lists(st.sampled_from("xy"))},
            )
        ),
    },
)


@given(SELECTORS, LABELS)
def test_an_unknown_operator_is_read_as_absence_before_validation(
    selector: dict[str, Any], labels: dict[str, str]
) -> None:
    expressions = selector.get("matchExpressions", ())
    faulty = [one for one in expressions if one["operator"] not in OPERATORS]
    sound = [one for one in expressions if one["operator"] in OPERATORS]
    rest = matches({**selector, "matchExpressions": sound}, labels)
    absent = all(one["key"] not in labels for one in faulty)
    assert matches_unchecked(selector, labels) == (rest and absent)
    assert matches(selector, labels) == (rest and not faulty)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(label_selectors).failed == 0
