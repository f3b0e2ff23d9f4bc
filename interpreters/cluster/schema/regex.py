"""Go's regular expressions (RE2 syntax) in the terms of Python's.

The dialects agree on nearly everything that schemas use.  Differences are translated;
syntax that Go does not have (look-around, back references, possessive and atomic
groups) is refused, as a real server refuses it when a CRD is written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

try:
    import re2
except ImportError:  # the extra `cel` brings it
    re2 = None  # type: ignore[assignment]

__all__ = ["BadPattern", "compiled", "in_python", "pattern_fault"]


class BadPattern(ValueError):
    """A text is no regular expression to Go; the text says why."""


# Unicode classes that patterns use; the wide ones only as far as Latin-1.
UNICODE = {
    "L": "A-Za-zªµºÀ-ÖØ-öø-ÿ", "Lu": "A-ZÀ-ÖØ-Þ", "Ll": "a-zß-öø-ÿ",
    "N": "0-9", "Nd": "0-9",
}  # fmt: skip
POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F", "digit": "0-9", "graph": "!-~", "lower": "a-z",
    "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
TOKEN = re.compile(
    r"""\\Q(?P<literal>.*?)(?:\\E|\Z)
    | (?P<escape>\\[pP](?:\{\w+\}|\w)|\\x\{[0-9A-Fa-f]+\}|\\.)
    | (?P<set>\[(?:\^|(?!\^))(?:\]|(?!\]))(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])
    | \(\?(?P<flags>[ims]+)\)
    | (?P<group>\(\?(?:P?<[=!]?|P[=>]|[=!>|#(])?)
    | (?P<open>\[)
    | .""",
    re.VERBOSE | re.DOTALL,
)
IN_SET = re.compile(
    r"""\[:(?P<posix>\^?\w+):\]
    | (?P<escape>\\[pP](?:\{\w+\}|\w)|\\x\{[0-9A-Fa-f]+\}|\\.)
    | .""",
    re.VERBOSE | re.DOTALL,
)
REPEAT = re.compile(r"\{(\d+)(?:,(\d+)?)?\}")
FLAGS = re.compile("[imsU]*(?:-[imsU]+)?:")  # of a group
REPEATS_MAX = 1000  # Go: regexp/syntax
GROUPS = ("(?", "(?P<", "(?<")  # and flags after the first


class Pattern(Protocol):
    """The methods of a compiled pattern."""

    def search(self, text: str) -> Any:
        """The first match, or None."""
        ...

    def finditer(self, text: str) -> Iterator[Any]:
        """All matches."""
        ...


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Pattern:
    r"""A pattern of Go's, ready to search.  Raises `BadPattern`.

    With the package google-re2 it takes linear time, as in Go; Python's own engine
    can take for ever on patterns such as `(a+)+`.

    >>> bool(compiled("^[[:alpha:]]+$").search("abc\n"))
    False
    """
    try:
        # In Go, \d, \w, \s and \b know ASCII only.
        translated = re.compile(in_python(pattern), re.ASCII)
    except re.error as error:
        raise BadPattern(_go_fault(pattern, error)) from None
    except (OverflowError, RecursionError):
        raise _bad("expression nests too deeply", pattern) from None
    return _linear(pattern) or translated


def _linear(pattern: str) -> Pattern | None:
    """The pattern for RE2 itself, Go's model, where that is installed."""
    if re2 is None:
        return None
    try:
        found: Pattern = re2.compile(pattern)  # type: ignore[no-untyped-call]
    except re2.error:  # Go takes it all the same: (?<name>...) for one
        return None
    return found


def pattern_fault(pattern: str) -> str | None:
    """Go's complaint about a pattern; None if it is valid.

    >>> pattern_fault("(?=a)")
    'error parsing regexp: invalid or unsupported Perl syntax: `(?=`'
    """
    try:
        compiled(pattern)
    except BadPattern as fault:
        return str(fault)
    return None


def _bad(why: str, part: str) -> BadPattern:
    return BadPattern(f"error parsing regexp: {why}: `{part}`")


def in_python(pattern: str) -> str:
    """A pattern of Go's syntax as Python writes it.

    >>> in_python("[[:alpha:]]+")
    '[A-Za-z]+'
    """
    return "".join(_parts(pattern))


def _parts(pattern: str) -> Iterator[str]:
    before, opened = "", 0
    for found in TOKEN.finditer(pattern):
        text = found[0]
        if found["literal"] is not None:
            yield re.escape(found["literal"])
        elif found["escape"]:
            yield _escape(text, inside=False)
        elif found["set"]:
            yield _set(text)
        elif found["open"]:
            raise _bad("missing closing ]", pattern[found.start() :])
        elif found["flags"]:
            # Python wants flags at the start, or around a group of their own.
            yield f"(?{found['flags']}:"
            opened += 1
        elif found["group"]:
            _check_group(text, pattern[found.start() :])
            yield "(?P<" if text == "(?<" else text
        elif text == "{":
            _check_repeat(pattern[found.start() :])
            yield text
        elif text == "+" and before in ("*", "+", "?", "}"):
            # Possessive in Python.
            raise _bad("invalid nested repetition operator", before + text)
        else:
            # In Go, `$` is the end of the text; in Python also before a last newline.
            yield r"\Z" if text == "$" else text
        before = text
    yield ")" * opened


def _check_group(text: str, rest: str) -> None:
    if text not in GROUPS:
        raise _bad("invalid or unsupported Perl syntax", text)
    if text == "(?" and FLAGS.match(rest, len(text)) is None:
        raise _bad("invalid or unsupported Perl syntax", rest[:3])


def _check_repeat(rest: str) -> None:
    repeat = REPEAT.match(rest)
    counts = () if repeat is None else repeat.groups(default="0")
    if repeat is not None and any(int(each) > REPEATS_MAX for each in counts):
        raise _bad("invalid repeat count", repeat[0])


def _set(text: str) -> str:
    """A set of characters, brackets included."""
    head = re.match(r"\[\^?\]?", text)
    assert head is not None  # it is how sets begin
    parts = [head[0].replace("]", r"\]")]
    for found in IN_SET.finditer(text, head.end(), len(text) - 1):
        char = found[0]
        if found["posix"]:
            parts.append(_named(POSIX, found["posix"], char))
        elif found["escape"]:
            parts.append(_escape(char, inside=True))
        else:
            # Python keeps these for operations on sets.
            parts.append(f"\\{char}" if char in "[&~|" else char)
    return "".join(parts) + "]"


def _named(names: dict[str, str], name: str, shown: str) -> str:
    chars = names.get(name)
    if chars is None:
        raise _bad("invalid character class range", shown)
    return chars


def _escape(text: str, *, inside: bool) -> str:
    if text[1] in "pP":
        chars = _named(UNICODE, text[2:].strip("{}"), text)
        if inside and text[1] == "p":
            return chars
        return f"[{'^' if text[1] == 'P' else ''}{chars}]"
    if text.startswith(r"\x{"):
        code = int(text[3:-1], 16)
        if code > sys.maxunicode:
            raise _bad("invalid escape sequence", text)
        return re.escape(chr(code))
    if text == r"\z":
        return r"\Z"
    if text[1].isalnum() and text[1] not in "0AabBdDfnrsStvwWx":
        raise _bad("invalid escape sequence", text)
    return text


def _go_fault(pattern: str, error: re.error) -> str:
    """Go's message for a pattern that Python does not compile."""
    at = error.pos or 0
    match error.msg.split(",")[0].split(" at ")[0]:
        case "missing )":
            why, part = "missing closing )", pattern
        case "unbalanced parenthesis":
            why, part = "unexpected )", pattern
        case "bad escape (end of pattern)":
            return "error parsing regexp: trailing backslash at end of expression: ``"
        case "nothing to repeat":
            why, part = "missing argument to repetition operator", pattern[at : at + 1]
        case "multiple repeat":
            why, part = "invalid nested repetition operator", pattern[at - 1 : at + 1]
        case text if text.startswith("bad character range "):
            why, part = (
                "invalid character class range",
                text[len("bad character range ") :],
            )
        case text:
            why, part = text, pattern
    return f"error parsing regexp: {why}: `{part}`"
