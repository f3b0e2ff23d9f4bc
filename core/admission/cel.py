"""Names and literals of CEL, the language of match conditions."""

from __future__ import annotations

import re

__all__ = ["is_name", "is_sayable", "literal"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The language definition of CEL: keywords and reserved words.
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else"),
        *("for", "function", "if", "import", "let", "loop", "package", "namespace"),
        *("return", "var", "void", "while"),
    )
)


def is_name(text: str) -> bool:
    """Whether CEL accepts a text as the name of a field.

    >>> is_name("spec"), is_name("in"), is_name("app.kubernetes.io/name")
    (True, False, False)
    """
    return bool(_NAME.fullmatch(text)) and text not in _RESERVED


def is_sayable(value: str | bool | int) -> bool:
    """Whether `literal` can write a value: integers have 64 bits.

    >>> is_sayable("it's"), is_sayable("a\\rb"), is_sayable(2**63)
    (True, False, False)
    """
    if isinstance(value, str):
        return all(each.isprintable() or each == "\n" for each in value)
    return -(2**63) <= value < 2**63


def literal(value: str | bool | int) -> str:
    """A value as CEL writes it.

    >>> literal("it's"), literal(True), literal(3)
    ("'it\\\\'s'", 'true', '3')
    """
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case text:
            escaped = text.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped.replace(chr(10), chr(92) + 'n')}'"
