"""Patterns that models may have, and texts that distinguish them."""

from __future__ import annotations

__all__ = ["PYTHON", "RUST", "TEXTS"]

TEXTS = (
    *("", "a", "A", "ab", "abc", "aa", "aaaa", "b", "k", "K", "i", "s", "1", "12"),
    *("_", "-", "a-b", " ", "a b", "\t", "\n", "a\n", "\na", "a\nb", "\v", "\x1c"),
    *("é", "É", "ß", "\u017f", "\u212a", "İ", "\u0131", "\u03b1", "Ω", "٣", "½"),
    *("Ⅷ", "\u0301", "\u203f", "\u200d", "Ⓐ", "\u00a0", "\u2028", "\u3000", "漢"),
    *("😀", "<", ">", ".", "&"),
)
# In the syntax of Rust's regex.
RUST = (
    *(r"^\d+$", r"^\D+$", r"^\w+$", r"^\W+$", r"^\s+$", r"^\S+$", r"^[\d-]+$"),
    *(r"^[^\d]+$", r"^[\D]$", r"^[\s\S]$", r"^[^\s]$", r"^[\w-]+$", r"^[^\w]$"),
    *(r"(?-u:\b)a", r"^(?-u:\w)+$", r"^(?-u)\s$", r"^(?-u)\d(?u)\d$", r"(?-u:[\w-])"),
    *(r"\pL", r"\PL", r"^\p{Lu}$", r"^[\p{L}\d]+$", r"^[^\pL]+$", r"\p{Any}"),
    *(r"^[[:alpha:]]+$", r"^[[:^alpha:]]+$", r"^[[:word:]]$", r"^[[:space:]]$"),
    *(r"a\z", r"\Aa", r"^a$", r"(?m)^a$", r"(?s)a.b", r"a.b", r"(?U)a+", r"(?i)^k$"),
    *(r"(?i)^[a-z]$", r"(?i:é)", r"a(?i)B|K", r"(a(?i)B)c", r"(?i)a(?-i)B", r"(?-s)."),
    *(r"^a{2}$", r"^a{2,}$", r"^(a|b){1,2}?$", r"^a??$", r"(?:a*)*b", r"(?P<n>a)"),
    *(r"(?<n>a)", r"\x41", r"\x{e9}", r"\u{e9}", r"\u00e9", r"^[\x41-\u0043]$"),
    *(r"\-", r"\.", r"\_", r"\&", r"[\-\]]", r"[]a]", r"^[^]a]$", r"^*a", r"a|", "_"),
)
# In the syntax of Python's re.
PYTHON = (
    *(r"^\d+$", r"^\D+\Z", r"^\w+$", r"^\W+$", r"^\s+$", r"^\S+$", r"^[\d-]+$"),
    *(r"^[\W_]+$", r"^[^\W\d_]+$", r"^[^\s]$", r"^[\s\S]$", r"(?a)\ba", r"(?a)^\w+$"),
    *(r"(?a)^[\W]$", r"(?a)^\s$", r"a$", r"a\Z", r"^(a|b$)", r"(?m)^a$", r"a.b"),
    *(r"(?s)a.b", r"(?i)^k$", r"(?i)^[a-z]$", r"(?i)i", r"(?ai)^k$", r"(?i)^[^a]$"),
    *(r"(?i:É)", r"(?i)^ab?$", r"(?i)\w", r"(?x) a b # words", r"(?#words)a"),
    *(r"^a{2}$", r"^a{2,}$", r"^a{,2}$", r"^(?:ab?)*$", r"^(a|b){1,2}?$", r"a+?b"),
    *(r"(?P<n>a)", r"\x41", r"\u00e9", r"\101", r"\N{LATIN SMALL LETTER A}", r"a|"),
    *(r"^[\x41-\u0043]$", r"\-", r"[\]-]", r"^[^\]]$", r"", r"[a&&b]", r"(?:)a", "_"),
)
