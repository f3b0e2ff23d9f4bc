"""Patterns of models in the syntax of the API server: RE2, in Go's dialect.

pydantic uses Rust's regex, or Python's `re` for a compiled pattern. Both know letters
and digits of all of Unicode, but RE2 only those of ASCII (RE2: syntax). A pattern is
translated so that it matches the same texts, or it is refused.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from msgspec import Struct

from fnop.effects.regexes import regex

__all__ = ["Untranslatable", "go_of_python", "go_of_rust"]


class Untranslatable(ValueError):
    """RE2 cannot match the same texts; the text has the reason, and an alternative."""


# Sets of characters: Unicode's digits and white space, and Rust's word characters.
_DIGITS = r"\p{Nd}"
_SPACES = (
    r"\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}"
    r"\x{3000}"
)
# The complement of the sets above, within a set.
_NO_SPACES = (
    r"\x{0}-\x{8}\x{E}-\x{1F}!-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}"
    r"\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}"
    r"\x{3001}-\x{10FFFF}"
)
# Unicode: Alphabetic, M, Nd, Pc and Join_Control (TR18, annex C).
_WORDS = (
    r"\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}"
    r"\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}"
)
_ASCII_SPACES = r"\t-\r "  # RE2's \s has no vertical tab
_BOUNDARY = (
    "{} is about letters of Unicode to the model, and of ASCII to an API server; write "
    "the characters before and after it"
)
_REPEATS_MAX = 1000  # Go's limit: regexp/syntax


def _check_repeats(most: int) -> None:
    if most > _REPEATS_MAX:
        raise Untranslatable(
            f"it repeats something {most} times, and an API server takes at most "
            f"{_REPEATS_MAX}; take max_length for the length"
        )


# ------------------------------------------------------------------ of Rust's regex

_TOKEN = regex(
    r"""(?P<set>\[\^?\]?(?:\[:\^?\w+:\]|\\[pPxuU]\{[^}]*\}|\\.|[^\]\\])*\])
    | \\(?P<escape>[pP](?:\{[^}]*\}|.)|[xuU]\{[^}]*\}|x..|u.{4}|U.{8}|b\{[^}]*\}|.)
    | \(\?(?P<flags>[a-zA-Z-]+)(?P<end>[:)])
    | (?P<name>\(\?P?<\w+>)
    | (?P<repeat>(?:[*+?]|\{\s*(?P<least>\d+)\s*(?:,\s*(?P<most>\d*)\s*)?\})\??)
    | .""",
    re.VERBOSE | re.DOTALL,
)
_IN_SET = regex(
    r"""\[:\^?\w+:\]
    | \\(?P<escape>[pP](?:\{[^}]*\}|.)|[xuU]\{[^}]*\}|x..|u.{4}|U.{8}|.)
    | (?P<operation>&&|--|~~|\[)
    | .""",
    re.VERBOSE | re.DOTALL,
)


def go_of_rust(pattern: str) -> str:
    r"""A pattern of Rust's regex in Go's syntax.  Raises `Untranslatable`.

    >>> go_of_rust(r"^[a-z]\d*$"), go_of_rust(r"(?-u:\b)a")
    ('^[a-z]\\p{Nd}*$', '(?:\\b)a')
    """
    return "".join(_translate_rust(pattern))


def _translate_rust(pattern: str) -> Iterator[str]:
    groups, is_repeated = [False], False  # whether letters are ASCII letters
    for found in _TOKEN.finditer(pattern):
        text, was_repeated, is_repeated = found[0], is_repeated, bool(found["repeat"])
        if found["set"]:
            yield _rust_set(text, is_ascii=groups[-1])
        elif found["escape"]:
            yield _rust_escape(found["escape"], is_ascii=groups[-1])
        elif found["flags"]:
            is_ascii = _is_ascii(found["flags"], text, before=groups[-1])
            flags = found["flags"].replace("u", "").rstrip("-")
            if found["end"] == ":":
                groups.append(is_ascii)
                yield f"(?{flags}:"
            else:
                groups[-1] = is_ascii
                yield f"(?{flags})" if flags else ""
        elif found["name"]:
            groups.append(groups[-1])
            yield text if re.fullmatch(r"\(\?P<[A-Za-z_]\w*>", text, re.A) else "("
        elif is_repeated:
            if was_repeated:
                raise Untranslatable(
                    f"an API server takes no {text} after another repetition; write "
                    "the inner one as (?:...)"
                )
            _check_repeats(int(found["most"] or found["least"] or 0))
            yield text.replace(" ", "")
        else:
            groups += [groups[-1]] if text == "(" else []
            if text == ")" and len(groups) > 1:
                groups.pop()
            yield text


def _is_ascii(flags: str, text: str, *, before: bool) -> bool:
    """Whether letters are ASCII letters, after some flags."""
    if strange := set(flags) - set("imsUu-"):
        raise Untranslatable(
            f"an API server does not know the flag {min(strange)} of {text}; write the "
            "pattern without it"
        )
    on, _, off = flags.partition("-")
    is_ascii = "u" in off or (before and "u" not in on)
    if is_ascii and "i" in on:
        raise Untranslatable(
            f"an API server ignores the case of all of Unicode, and {text} that of "
            "ASCII; write both cases, as in [aA]"
        )
    return is_ascii


def _rust_escape(text: str, *, is_ascii: bool) -> str:
    if text[0] in "xuU" and len(text) > 1:
        return _escape_code(int(text[1:].strip("{}"), 16))
    if text[0] in "bB<>" and (text != "b" or not is_ascii):
        instead = r", or (?-u:\b)" if text == "b" else ""
        raise Untranslatable(_BOUNDARY.format(f"\\{text}") + instead)
    if text == "S" and not is_ascii:
        return f"[^{_SPACES}]"
    body = _rust_class(text, is_ascii=is_ascii)
    if body is None:
        return f"\\{text}"
    return body if body in (_DIGITS, r"\P{Nd}", r"\d", r"\w") else f"[{body}]"


def _rust_class(text: str, *, is_ascii: bool) -> str | None:
    """The characters of `\\d` and the like within a set, or None."""
    if is_ascii:
        return {"d": r"\d", "w": r"\w", "s": _ASCII_SPACES}.get(text)
    return {
        "d": _DIGITS,
        "D": r"\P{Nd}",
        "s": _SPACES,
        "S": _NO_SPACES,
        "w": _WORDS,
        "W": f"^{_WORDS}",
    }.get(text)


def _rust_set(text: str, *, is_ascii: bool) -> str:
    head = re.match(r"\[\^?\]?", text)
    assert head is not None  # sets begin with one
    parts = [head[0]]
    for found in _IN_SET.finditer(text, head.end(), len(text) - 1):
        escape = found["escape"]
        if found["operation"]:
            raise Untranslatable(
                f"an API server knows no sets inside of sets, nor {found[0]} in one; "
                f"write {text} as one set"
            )
        if escape == "W":
            raise Untranslatable(
                rf"an API server has no words for \W in a set; write {text} as the "
                "characters that are meant"
            )
        if escape is None:
            parts.append(found[0])
        elif escape[0] in "xuU" and len(escape) > 1:
            parts.append(_escape_code(int(escape[1:].strip("{}"), 16)))
        else:
            parts.append(_rust_class(escape, is_ascii=is_ascii) or found[0])
    return "".join(parts) + "]"


# ------------------------------------------------------------------- of Python's re


def go_of_python(pattern: re.Pattern[Any]) -> str:
    r"""A compiled pattern in Go's syntax.  Raises `Untranslatable`.

    >>> go_of_python(re.compile(r"^[^a]\d$")), go_of_python(re.compile("^a", re.I))
    ('^[^a]\\p{Nd}\\n?$', '(?i)^a')
    """
    if not isinstance(pattern.pattern, str):
        raise Untranslatable("it is about bytes; take a pattern of texts")
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        # The standard library has no other access to the parts of a pattern.
        parts = import_module("re._parser").parse(pattern.pattern, pattern.flags)
    is_folded = bool(pattern.flags & re.I) and _folds_alike(parts, pattern.flags)
    flags = re.RegexFlag(pattern.flags & ~(re.I if is_folded else 0))
    return ("(?i)" if is_folded else "") + _write_parts(parts, flags, last=True)


def _folds_alike(parts: Any, flags: int) -> bool:
    """Whether RE2 ignores the case of all letters as Python does.

    Python also matches `i` with the Turkish letters. With the flag ASCII, it matches
    neither `k` with the Kelvin sign nor `s` with the long s.
    """
    strange = "kKsS" if flags & re.A else "iI"
    return all(
        high < 128 and not any(low <= ord(each) <= high for each in strange)
        for low, high in _literals(parts)
    )


def _literals(parts: Any) -> Iterator[tuple[int, int]]:
    """The literals and ranges of a pattern; for anything else, the range of all."""
    for operation, value in parts:
        match str(operation):
            case "LITERAL" | "NOT_LITERAL":
                yield value, value
            case "RANGE":
                yield value
            case "IN":
                yield from _literals(value)
            case "CATEGORY":
                yield 0, sys.maxunicode
            case "BRANCH":
                for each in value[1]:
                    yield from _literals(each)
            case "SUBPATTERN" | "MAX_REPEAT" | "MIN_REPEAT":
                yield from _literals(value[-1])
            case _:
                pass


def _write_parts(parts: Any, flags: re.RegexFlag, *, last: bool) -> str:
    """Parts in Go's syntax; the `last` of them end the pattern."""
    ends = [False] * (len(parts) - 1) + [last]
    return "".join(
        _part(str(operation), value, flags, last=end)
        for (operation, value), end in zip(parts, ends, strict=False)
    )


def _part(operation: str, value: Any, flags: re.RegexFlag, *, last: bool) -> str:
    match operation:
        case "LITERAL" | "NOT_LITERAL" if flags & re.I:
            return _folded_set([(operation, value)], flags)
        case "LITERAL":
            return _escape_code(value)
        case "NOT_LITERAL":
            return f"[^{_escape_code(value)}]"
        case "IN":
            return _python_set(value, flags)
        case "ANY":
            return "(?s:.)" if flags & re.S else "."
        case "AT":
            return _position(str(value), flags, last=last)
        case "BRANCH":
            branches = [_write_parts(each, flags, last=last) for each in value[1]]
            return f"(?:{'|'.join(branches)})"
        case "SUBPATTERN":
            number, added, removed, inner = value
            inside = re.RegexFlag((flags | added) & ~removed)
            sign = "(?:" if number is None else "("
            return f"{sign}{_write_parts(inner, inside, last=last)})"
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, inner = value
            lazy = "?" if operation == "MIN_REPEAT" else ""
            return _repetition(least, most, inner, flags, lazy)
        case _:
            raise Untranslatable(
                f"an API server has no {_NAMES.get(operation, 'such expression')}; "
                "write the pattern without it"
            )


_NAMES = {
    "ASSERT": "(?=...) and (?<=...)",
    "ASSERT_NOT": "(?!...) and (?<!...)",
    "ATOMIC_GROUP": "atomic groups, (?>...)",
    "GROUPREF": "back references",
    "GROUPREF_EXISTS": "back references",
    "GROUPREF_IGNORE": "back references",
    "POSSESSIVE_REPEAT": "possessive repetitions, such as a++",
}


def _repetition(
    least: int, most: int, inner: Any, flags: re.RegexFlag, lazy: str
) -> str:
    endless = str(most) == "MAXREPEAT"
    _check_repeats(least if endless else most)
    text = _write_parts(inner, flags, last=False)
    is_atom = len(inner) == 1 and str(inner[0][0]) in _ATOMS
    atom = text if is_atom else f"(?:{text})"
    if endless and least < 2:
        return f"{atom}{'*+'[least]}{lazy}"
    if (least, most) == (0, 1):
        return f"{atom}?{lazy}"
    upper = "" if endless else most
    times = f"{least}" if least == most else f"{least},{upper}"
    return f"{atom}{{{times}}}{lazy}"


_ATOMS = ("LITERAL", "NOT_LITERAL", "IN", "ANY", "SUBPATTERN", "BRANCH")


def _position(name: str, flags: re.RegexFlag, *, last: bool) -> str:
    match name:
        case "AT_BEGINNING":
            return "(?m:^)" if flags & re.M else "^"
        case "AT_BEGINNING_STRING":
            return r"\A"
        case "AT_END_STRING":
            return "$"
        case "AT_END" if flags & re.M:
            return "(?m:$)"
        case "AT_END" if last:
            return r"\n?$"  # Python's `$` also matches before a last newline
        case "AT_END":
            raise Untranslatable(r"its $ has something behind it; write \Z, or \n?\Z")
        case "AT_BOUNDARY" if flags & re.A:
            return r"\b"
        case _:
            shown = r"\b" if name == "AT_BOUNDARY" else r"\B"
            raise Untranslatable(_BOUNDARY.format(shown))


def _python_set(items: Sequence[Any], flags: re.RegexFlag) -> str:
    inner = [(str(operation), value) for operation, value in items]
    is_negated = inner[0][0] == "NEGATE"
    parts = [
        _python_class(str(value), flags)
        if operation == "CATEGORY"
        else "-".join(map(_escape_code, value))
        if operation == "RANGE"
        else _escape_code(value)
        for operation, value in inner[is_negated:]
    ]
    if flags & re.I or (len(parts) > 1 and any(each[:1] == "^" for each in parts)):
        return _folded_set(inner, flags)
    body = "".join(parts)
    if is_negated and body.startswith("^"):
        return f"[{body[1:]}]"
    is_plain = body == _DIGITS and not is_negated
    return body if is_plain else f"[{'^' if is_negated else ''}{body}]"


def _python_class(name: str, flags: re.RegexFlag) -> str:
    r"""The characters of `\d` and the like; `^` comes first for a complement."""
    kind = name.removeprefix("CATEGORY_").removeprefix("UNI_").removeprefix("NOT_")
    is_ascii = bool(flags & re.A)
    bodies = {
        "DIGIT": "0-9" if is_ascii else _DIGITS,
        "SPACE": _ASCII_SPACES if is_ascii else rf"\x{{1C}}-\x{{1F}}{_SPACES}",
        "WORD": "0-9A-Za-z_" if is_ascii else r"\p{L}\p{N}_",
    }
    return ("^" if "NOT_" in name else "") + bodies[kind]


class _Set(Struct, frozen=True):
    """A set in Python's syntax."""

    items: Sequence[tuple[str, Any]]

    def __str__(self) -> str:
        return f"[{''.join(map(self._item, self.items))}]"

    @staticmethod
    def _item(item: tuple[str, Any]) -> str:
        match item:
            case ("NEGATE", _):
                return "^"
            case ("CATEGORY", name):
                letter = str(name).rpartition("_")[2][0]
                return f"\\{letter if 'NOT_' in str(name) else letter.lower()}"
            case ("RANGE", (low, high)):
                return rf"\U{low:08x}-\U{high:08x}"
            case (operation, code):
                sign = "^" if operation == "NOT_LITERAL" else ""
                return rf"{sign}\U{code:08x}"


def _folded_set(items: Sequence[tuple[str, Any]], flags: re.RegexFlag) -> str:
    """A set as the ranges of all characters that Python finds in it."""
    kept = flags & (re.I | re.A)
    codes = [*map(ord, re.findall(str(_Set(items)), _all_characters(), kept))]
    starts = [b for a, b in pairwise([-2, *codes]) if b != a + 1]
    ends = [a for a, b in pairwise([*codes, sys.maxunicode + 2]) if b != a + 1]
    if not codes:
        raise Untranslatable("it has a set without any character; leave it out")
    ranges = (
        _escape_code(low)
        if low == high
        else f"{_escape_code(low)}-{_escape_code(high)}"
        for low, high in zip(starts, ends, strict=True)
    )
    return f"[{''.join(ranges)}]"


@lru_cache(maxsize=1)
def _all_characters() -> str:
    """All characters of Unicode, without surrogates, which no text has."""
    return "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))


_PLAIN = " _/:,;<>=@'\"%#!`"  # in addition to letters and digits


def _escape_code(code: int) -> str:
    """A character that stands for itself, inside and outside of sets."""
    char = chr(code)
    if char.isascii() and char.isprintable():
        return char if char.isalnum() or char in _PLAIN else f"\\{char}"
    return char if char.isalnum() else f"\\x{{{code:X}}}"
