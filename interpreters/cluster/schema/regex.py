"""Translate Go's regular expressions (RE2 syntax) to Python's.

The dialects agree on nearly everything that schemas use. Differences are translated.
Syntax that Go does not have (look-around, back references, possessive and atomic
groups) is refused, as a real server refuses it when a CRD is written.
"""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Protocol

from msgspec import Struct

from fnop.effects.structs import replace

try:
    import re2
except ImportError:  # the extra `cel` installs it
    re2 = None  # type: ignore[assignment]

__all__ = ["BadPattern", "compiled", "in_python", "pattern_fault"]


class BadPattern(ValueError):
    """A text is not a regular expression in Go; the message says why."""


# The classes of Unicode that Go knows by these names (Go: unicode.Categories), in
# addition to its scripts.
_CATEGORIES = """
C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm
So Z Zl Zp Zs
"""
_SCRIPTS = """
Adlam Ahom Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki
Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian
Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret
Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic
Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul
Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited
Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li
Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A
Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen
Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive
Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari
New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian
Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian
Old_Turkic Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician
Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting
Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa
Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangut Telugu Thaana Thai Tibetan Tifinagh
Tirhuta Ugaritic Vai Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""
CATEGORIES, SCRIPTS = frozenset(_CATEGORIES.split()), frozenset(_SCRIPTS.split())
# Python's library does not know scripts, but the names of their characters.
SCRIPT_NAMES = {
    "Han": ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "CJK RADICAL"),
    "Inherited": ("COMBINING ",),
    "Canadian_Aboriginal": ("CANADIAN SYLLABICS",),
    "Meetei_Mayek": ("MEETEI MAYEK",),
}
POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F", "digit": "0-9", "graph": "!-~", "lower": "a-z",
    "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
TOKEN = re.compile(
    r"""\\Q(?P<literal>.*?)(?:\\E|\Z)
    | (?P<escape>\\[pP](?:\{\^?\w+\}|\w)|\\x\{[0-9A-Fa-f]+\}
        |\\0[0-7]{0,2}|\\[1-7][0-7]{1,2}|\\.)
    | (?P<set>\[(?:\^|(?!\^))(?:\]|(?!\]))(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])
    | \(\?(?P<flags>[imsU]+(?:-[imsU]+)?|-[imsU]+)\)
    | \(\?(?P<scope>[imsU]*(?:-[imsU]+)?):
    | (?P<group>\(\?(?:P?<[=!]?|P[=>]|[=!>|#(])?)
    | (?P<open>\[)
    | .""",
    re.VERBOSE | re.DOTALL,
)
IN_SET = re.compile(
    r"""\[:(?P<posix>\^?\w+):\]
    | (?P<escape>\\[pP](?:\{\^?\w+\}|\w)|\\x\{[0-9A-Fa-f]+\}
        |\\0[0-7]{0,2}|\\[1-7][0-7]{1,2}|\\.)
    | .""",
    re.VERBOSE | re.DOTALL,
)
REPEAT = re.compile(r"\{(\d+)(?:,(\d+)?)?\}")
REPEATS_MAX = 1000  # Go: regexp/syntax
GROUPS = ("(?P<", "(?<")


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
    r"""A pattern of Go's, ready to search. Raises `BadPattern`.

    With the package google-re2 it takes linear time, as in Go. Python's own engine may
    never finish on patterns such as `(a+)+`.

    >>> bool(compiled("^[[:alpha:]]+$").search("abc\n"))
    False
    """
    try:
        # In Go, \d, \w, \s and \b only apply to ASCII.
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            translated = re.compile(in_python(pattern), re.ASCII)
    except re.error as error:
        raise BadPattern(_go_fault(pattern, error)) from None
    except (OverflowError, RecursionError):
        raise _bad_pattern("expression nests too deeply", pattern) from None
    return _compile_with_re2(pattern) or translated


def _compile_with_re2(pattern: str) -> Pattern | None:
    """The pattern for RE2 itself, Go's model, if that is installed."""
    if re2 is None:
        return None
    try:
        found: Pattern = re2.compile(pattern)  # type: ignore[no-untyped-call]
    except re2.error:  # Go accepts some of these, such as (?<name>...)
        return None
    return found


def pattern_fault(pattern: str) -> str | None:
    """Go's error for a pattern; None if it is valid.

    >>> pattern_fault("(?=a)")
    'error parsing regexp: invalid or unsupported Perl syntax: `(?=`'
    """
    try:
        compiled(pattern)
    except BadPattern as fault:
        return str(fault)
    return None


def _bad_pattern(why: str, part: str) -> BadPattern:
    return BadPattern(f"error parsing regexp: {why}: `{part}`")


def in_python(pattern: str, most: int = sys.maxunicode) -> str:
    """A pattern of Go's syntax as Python writes it.

    It has the characters of Unicode's classes up to `most`, or else all. A few are
    enough to make texts, and all of them take seconds.

    >>> in_python("[[:alpha:]]+")
    '[A-Za-z]+'
    """
    return "".join(_parts(pattern, most))


class _Group(Struct, frozen=True):
    """An open group: the flags set inside it, and whether lines count."""

    flags: str = ""
    is_multiline: bool = False

    def with_flags(self, text: str) -> _Group:
        on, _, off = text.partition("-")
        lines = "m" in on or (self.is_multiline and "m" not in off)
        return _Group(f"{self.flags}(?{_flags(text)}:", lines)

    @property
    def ends(self) -> str:
        return ")" * self.flags.count("(")


def _parts(pattern: str, most: int) -> Iterator[str]:
    before, groups = "", [_Group()]
    for found in TOKEN.finditer(pattern):
        text, rest = found[0], pattern[found.start() :]
        if text == "+" and before in ("*", "+", "?", "}"):
            # This would be possessive in Python.
            raise _bad_pattern("invalid nested repetition operator", before + text)
        is_char = found.lastgroup is None
        part = (
            _char(found, rest, groups) if is_char else _token(found, rest, groups, most)
        )
        # Python does not repeat a zero-width match.
        yield (
            f"(?:{part})" if text in POSITIONS and _repeats(rest[len(text) :]) else part
        )
        before = text
    yield groups[0].ends


def _token(found: re.Match[str], rest: str, groups: list[_Group], most: int) -> str:
    """A multi-character token in Python; `groups` are the open groups."""
    text = found[0]
    match found.lastgroup:
        case "literal":
            return re.escape(found["literal"])
        case "escape":
            return _escape(text, most, inside=False)
        case "set":
            return _set(text, most)
        case "flags":
            # Python requires flags at the start, or around a group of their own.
            groups[-1] = groups[-1].with_flags(found["flags"])
            return f"(?{_flags(found['flags'])}:"
        case "scope":
            lines = groups[-1].with_flags(found["scope"]).is_multiline
            groups.append(_Group("", lines))
            return f"(?{_flags(found['scope'])}:"
        case "group":
            _check_group(text, rest)
            groups.append(replace(groups[-1], flags=""))
            return "(?P<" if text == "(?<" else text
        case _:
            raise _bad_pattern("missing closing ]", rest)


def _char(found: re.Match[str], rest: str, groups: list[_Group]) -> str:
    """A character in Python, inside of the `groups`."""
    match text := found[0]:
        case "{":
            _check_repeat(rest)
        case "(":
            groups.append(replace(groups[-1], flags=""))
        case "|":  # Go's flags hold for all alternatives that follow
            return f"{groups[-1].ends}|{groups[-1].flags}"
        case ")":
            ends = groups[-1].ends
            groups[1:] = groups[1:-1]
            return f"{ends})"
        case "$" if not groups[-1].is_multiline:
            # In Go, it is the end of the text; in Python also the place before a last
            # newline.
            return r"\Z"
    return text


POSITIONS = ("^", "$", r"\A", r"\b", r"\B", r"\z")


def _repeats(rest: str) -> bool:
    """Whether a pattern continues with a repetition."""
    return rest[:1] in ("*", "+", "?") or REPEAT.match(rest) is not None


def _flags(text: str) -> str:
    """Go's flags in Python; a lazy repetition (U) matches whenever a greedy one does.

    >>> _flags("sU"), _flags("i-U")
    ('s', 'i')
    """
    return text.replace("U", "").rstrip("-")


def _check_group(text: str, rest: str) -> None:
    if text not in GROUPS:
        shown = rest[:3] if text == "(?" else text
        raise _bad_pattern("invalid or unsupported Perl syntax", shown)


def _check_repeat(rest: str) -> None:
    repeat = REPEAT.match(rest)
    counts = () if repeat is None else repeat.groups(default="0")
    if repeat is not None and any(int(each) > REPEATS_MAX for each in counts):
        raise _bad_pattern("invalid repeat count", repeat[0])


def _set(text: str, most: int) -> str:
    """A set of characters, brackets included."""
    head = re.match(r"\[\^?\]?", text)
    assert head is not None  # sets begin like this
    most = sys.maxunicode if "^" in head[0] else most
    parts, is_class = [head[0].replace("]", r"\]")], False
    for found in IN_SET.finditer(text, head.end(), len(text) - 1):
        char, was_class = found[0], is_class
        is_class = found["posix"] is not None or char[:2] in CLASSES
        if found["posix"]:
            parts.append(_posix(found["posix"], char))
        elif found["escape"]:
            parts.append(_escape(char, most, inside=True))
        else:
            # Python keeps these for operations on sets; a range cannot begin at a
            # class.
            is_kept = char in "[&~|" or (char == "-" and was_class)
            parts.append(f"\\{char}" if is_kept else char)
    return "".join(parts) + "]"


CLASSES = tuple(rf"\{each}" for each in "dDsSwWpP")


def _posix(name: str, shown: str) -> str:
    chars = POSIX.get(name.removeprefix("^"))
    if chars is None:
        raise _bad_pattern("invalid character class range", shown)
    return _other_ranges(f"[{chars}]") if name.startswith("^") else chars


def _escape(text: str, most: int, *, inside: bool) -> str:
    if text[1] in "pP":
        name, is_negated = _unicode(text)
        if is_negated and not inside:
            return f"[^{_in_class(name, sys.maxunicode)}]"
        chars = _in_class(name, most, is_negated=is_negated)
        return chars if inside else f"[{chars}]"
    if text.startswith(r"\x{"):
        code = int(text[3:-1], 16)
        if code > sys.maxunicode:
            raise _bad_pattern("invalid escape sequence", text)
        return re.escape(chr(code))
    if OCTAL.fullmatch(text):
        return re.escape(chr(int(text[1:], 8)))
    if text in SPACES:
        return SPACES[text] if inside else f"[{SPACES[text]}]"
    if text == r"\z" and not inside:
        return r"\Z"
    known = "adDfnrsStvwWx" if inside else "aAbBdDfnrsStvwWx"
    if (text[1].isalnum() or not text[1].isascii()) and text[1] not in known:
        raise _bad_pattern("invalid escape sequence", text)
    return text


# A vertical tab is white space in Python, but not in Go.
SPACES = {r"\s": r"\t\n\f\r ", r"\S": r"\S\v"}
OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")


def _unicode(text: str) -> tuple[str, bool]:
    r"""The name in `\p{Name}` or `\P{Name}`, and whether it is negated."""
    name = text[2:].strip("{}")
    plain = name.removeprefix("^")
    if plain not in CATEGORIES and plain not in SCRIPTS and plain != "Any":
        raise _bad_pattern("invalid character class range", text)
    return plain, (text[1] == "P") != name.startswith("^")


@lru_cache(maxsize=64)
def _in_class(name: str, most: int, *, is_negated: bool = False) -> str:
    """The characters of a class up to `most`, or else all, as ranges within a set."""
    codes = range(most + 1)
    found = _ranges(
        code for code in codes if _is_in_unicode_class(name, code) != is_negated
    )
    if found == NOTHING and most < sys.maxunicode:
        return _in_class(name, sys.maxunicode, is_negated=is_negated)
    return found


def _is_in_unicode_class(name: str, code: int) -> bool:
    """Whether a character belongs to a class of Unicode."""
    if name in CATEGORIES:
        return _is_of(name, unicodedata.category(chr(code)))
    if name == "Any":
        return True
    begins = SCRIPT_NAMES.get(name, (f"{name.upper().replace('_', ' ')} ",))
    return unicodedata.name(chr(code), "").startswith(begins)


def _is_of(name: str, category: str) -> bool:
    """Whether a category is one of Go's, which has none for unassigned characters."""
    return category.startswith(name) and category != "Cn"


def _other_ranges(chars: str) -> str:
    """The ranges of all characters that are not in a set."""
    known = re.compile(chars)
    codes = range(sys.maxunicode + 1)
    return _ranges(code for code in codes if not known.match(chr(code)))


NOTHING = r"\ud800"


def _ranges(codes: Iterable[int]) -> str:
    """Characters as ranges within a set.

    A set in Python cannot be empty: half of a pair, which no text has, stands for
    nothing.

    >>> _ranges([97, 98, 99, 120])
    '\\\\U00000061-\\\\U00000063\\\\U00000078-\\\\U00000078'
    """
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    ranges = "".join(rf"\U{low:08x}-\U{high:08x}" for low, high in found)
    return ranges or NOTHING


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
