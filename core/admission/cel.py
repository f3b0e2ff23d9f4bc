"""Literals of CEL, the language of match conditions."""

from __future__ import annotations

__all__ = ["literal"]


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
