"""Patterns of schemas, as Go judges them."""

from __future__ import annotations

import re

import pytest

from fnop.interpreters.cluster.schema.regex import compiled, in_python, pattern_fault


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
        (r"\p{greek}", r"invalid character class range: `\p{greek}`"),
        (r"\p{Letter}", r"invalid character class range: `\p{Letter}`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"[\b]", r"invalid escape sequence: `\b`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\é", r"invalid escape sequence: `\é`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P=`"),
        ("a++", "invalid nested repetition operator: `++`"),
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
        *(r"\pL", r"\p{Greek}", r"\P{Han}", r"\p{^Lu}", r"\p{Any}", r"[\pN\p{Latin}_]"),
        *(r"\Qa.b\E", r"\Q(", r"a\z", r"\101", r"\07", "[[:alpha:]]", "[[:^space:]]"),
        *("(?s).", "(?U)a+", "(?sU:a+)", "(?-i)a", "(?i-s)a", "(a(?i)b)c", "a(?i)b|c"),
        *("^*", r"\b+", "$?", r"[\d-z]", "(?m)a$", "a{,3}", "x{", "[[.a.]]"),
    ],
)
def test_what_go_takes_is_taken(pattern: str) -> None:
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        (r"^\p{Greek}$", ("\u03b1", "Ω"), ("a", "я")),
        (r"^\P{Greek}$", ("a", "я"), ("\u03b1", "Ω")),
        (r"^[^\p{Lu}]$", ("a", "1"), ("A", "Ω")),
        (r"^\p{Han}+$", ("漢字",), ("かな",)),
        (r"^[[:^alpha:]]$", ("1", "é"), ("a", "Z")),
        (r"^\101$", ("A",), ("a", "101")),
        ("^(?:a(?i)b|c)$", ("ab", "aB", "c", "C"), ("AB",)),
        ("^(a(?i)b)c$", ("abc", "aBc"), ("abC", "Abc")),
        (r"^\s$", (" ", "\t"), ("\v", "\u00a0")),
        (r"^[\S]$", ("\v", "\u00a0"), (" ",)),
        ("(?m)^a$", ("a", "b\na\nb"), ("ab",)),
        (r"^[\d-z]$", ("1", "-", "z"), ("a",)),
    ],
)
def test_patterns_match_as_in_go(
    pattern: str, texts: tuple[str, ...], others: tuple[str, ...]
) -> None:
    for found in (compiled(pattern), re.compile(in_python(pattern), re.ASCII)):
        assert all(map(found.search, texts))
        assert not any(map(found.search, others))
