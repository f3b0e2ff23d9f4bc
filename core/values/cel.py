"""CEL, the language of match conditions: names, literals, and errors in texts.

The API server compiles each expression. Without its compiler, fnop finds only errors
that no version of cel-go accepts (`parser/gen/CEL.g4`).
"""

from __future__ import annotations

import re

from fnop.effects.regexes import regex

__all__ = ["SIZE_MAX", "fault_of", "is_name", "is_sayable", "literal"]

# cel-go: the maximum number of characters of an expression
# (ExpressionSizeCodePointLimit).
SIZE_MAX = 100_000

_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
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


# The tokens of CEL. Words are numbers, too: `1u`, `0x1f`. Texts may have a prefix: r
# for raw texts, with a literal backslash, and b for bytes.
_ESCAPE = (
    r"\\(?:[abfnrtv?`'\"\\]|[xX][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}"
    r"|[0-3][0-7]{2})"
)
_TOKEN = regex(
    rf"""
    [\t\n\f\r\ ]+ | //[^\n]*
  | [bB]?[rR] (?: \"{{3}}.*?\"{{3}} | '{{3}}.*?'{{3}} | \"[^\"\r\n]*\" | '[^'\r\n]*' )
  | [bB]? (?:
        \"{{3}}(?:{_ESCAPE}|[^\\])*?\"{{3}} | '{{3}}(?:{_ESCAPE}|[^\\])*?'{{3}}
      | \"(?:{_ESCAPE}|[^\\\"\r\n])*\" | '(?:{_ESCAPE}|[^\\'\r\n])*'
    )
  | `[A-Za-z0-9_./\ -]+`
  | [A-Za-z0-9_]+
  | == | != | <= | >= | && | \|\| | [][(){{}}.,\-!?:+*/%<>]
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def fault_of(expression: str) -> str:
    """The reason why no API server can read an expression; "" if one may.

    >>> fault_of("object.spec.size > 3"), fault_of("(a"), fault_of("a = 1")
    ('', "the '(' at character 1 is not closed", "'=' at character 3 is not CEL")
    >>> fault_of("'a'.matches('\\\\d')")
    'the text at character 13 is not closed, or has an escape that CEL does not know'
    """
    if len(expression) > SIZE_MAX:
        return f"it has more than {SIZE_MAX:,} characters"
    place, is_empty = 0, True
    expected: list[tuple[str, int]] = []
    while place < len(expression):
        found = _TOKEN.match(expression, place)
        if found is None:
            return _unreadable_character(expression[place], place)
        token, place = found[0], found.end()
        if not token.strip() or token.startswith("//"):
            continue
        is_empty = False
        if token in _CLOSING:
            expected.append((token, place))
        elif token in _CLOSING.values() and (
            not expected or _CLOSING[expected.pop()[0]] != token
        ):
            return f"the {token!r} at character {place} closes nothing"
    if expected:
        token, place = expected[-1]
        return f"the {token!r} at character {place} is not closed"
    return "it is empty" if is_empty else ""


def _unreadable_character(character: str, place: int) -> str:
    """The error of an expression without a token at this place, counted from 0."""
    if character in "\"'":
        return (
            f"the text at character {place + 1} is not closed, or has an escape that "
            "CEL does not know"
        )
    return f"{character!a} at character {place + 1} is not CEL"
