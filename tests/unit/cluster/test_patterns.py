"""Patterns of schemas, as Go judges them."""

from __future__ import annotations

import pytest

from fnop.interpreters.cluster.schema.regex import pattern_fault


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("^[a-z]{1,1500}$", "invalid repeat count: `{1,1500}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?x) a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?a:b)", "invalid or unsupported Perl syntax: `(?a`"),
        ("a[]", "missing closing ]: `[]`"),
        ("[^]", "missing closing ]: `[^]`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000}`"),
        ("(?#words)", "invalid or unsupported Perl syntax: `(?#`"),
    ],
)
def test_what_go_does_not_take_is_refused(pattern: str, fault: str) -> None:
    assert pattern_fault(pattern) == f"error parsing regexp: {fault}"


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1,1000}",
        r"\{2000}",
        "[{]2000}",
        "a{,2000}",
        "(?i)a",
        "(?i-s:a)",
        "(?:a)",
        "[]a]",
        "[^]]",
    ],
)
def test_what_go_takes_is_taken(pattern: str) -> None:
    assert pattern_fault(pattern) is None
