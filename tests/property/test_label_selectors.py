"""What an operator takes for a label selector, beside what a server does."""

from __future__ import annotations

import doctest

from hypothesis import example, given, settings, strategies as st

from fnop.core.handlers.settings import Settings
from fnop.core.values import label_selectors
from fnop.interpreters.cluster.requests.selectors import label_clauses

# What the server's lexer knows, and a bit more, in any order.
WORDS = st.sampled_from(
    [*"=!(),<> ", "==", "!=", "in", "notin", "a", "b.c/d", "1", "-2", "\t", "e_f", ""]
)


@settings(max_examples=1500)
@given(st.lists(WORDS, max_size=12).map("".join))
@example("a in (b,),c notin(),!d, e!=")
def test_none_is_refused_that_a_server_takes(selector: str) -> None:
    if not isinstance(label_clauses(selector), str):
        assert Settings(selector=selector).selector == selector


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(label_selectors).failed == 0
