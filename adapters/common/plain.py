r"""Text from elsewhere, so that nothing in it acts on a terminal or forges a line.

Names, messages and exceptions contain text from other people. A line break would begin
a line that fnop has not logged. An escape sequence moves the cursor or colours the
screen, and a bidirectional mark reverses the reading order. All such characters are
shown as Python's `repr` shows them.
"""

from __future__ import annotations

import json
import re
import sys

from fnop.adapters.common.streams import end_if_lost
from fnop.effects.regexes import regex

__all__ = ["acts", "block", "echo", "escaped", "json_line", "one_line", "plain"]

_CANDIDATES = regex(r"[^ -~]")
# Python prints these, but they are invisible (Unicode: Default_Ignorable_Code_Point,
# without the two that choose between the forms of an emoji).
_INVISIBLE = regex(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0"
    r"\U000e0000-\U000e0fff]"
)
_LAYOUT = str.maketrans("", "", "\n\t")
_INDENT = "  "


def one_line(text: str) -> str:
    r"""The text with every character escaped that is neither visible nor a blank.

    >>> print(one_line("a\n\x1b[31mb\u202ec ü"))
    a\n\x1b[31mb\u202ec ü
    """
    if text.isascii() and text.isprintable():
        return text
    return _CANDIDATES.sub(_escape_letter, text)


def json_line(text: str) -> str:
    r"""A JSON text in one line, with the same characters escaped as JSON escapes them.

    Outside of its strings a JSON text is ASCII: the escapes do not change its value.

    >>> print(json_line('{"a": "\x9b31m\u202e\U000e0041 ü"}'))
    {"a": "\u009b31m\u202e\udb40\udc41 ü"}
    """
    if text.isascii() and text.isprintable():
        return text
    return _CANDIDATES.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    letter = found[0]
    return json.dumps(letter)[1:-1] if _acts(letter) else letter


def _escape_letter(found: re.Match[str]) -> str:
    letter = found[0]
    return letter.encode("unicode_escape").decode() if _acts(letter) else letter


def _acts(letter: str) -> bool:
    return not letter.isprintable() or _INVISIBLE.match(letter) is not None


def acts(text: str) -> bool:
    r"""Whether it has characters to escape, apart from line breaks and tabs.

    >>> acts("two\nlines"), acts("\u202e")
    (False, True)
    """
    rest = text.translate(_LAYOUT)
    return not rest.isprintable() or _INVISIBLE.search(rest) is not None


def escaped(text: str) -> str:
    r"""The text, with line breaks and tabs as they are."""
    return re.sub(r"[^\n\t]+", lambda found: one_line(found[0]), text)


def block(text: str) -> str:
    r"""The lines of a text, each indented, so that none looks like a line of fnop.

    >>> print(block("Traceback\n  File"))
      Traceback
        File
    """
    return "\n".join(_INDENT + one_line(line) for line in text.split("\n"))


def plain(text: str) -> str:
    r"""A report: all lines but the first are indented.

    >>> print(plain("at spec.x\n\x1b[2Jidentical"))
    at spec.x
      \x1b[2Jidentical
    """
    first, *rest = text.split("\n")
    return "\n".join((one_line(first), *map(block, rest)))


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a report, to standard error with `err`; end if the reader has stopped."""
    import click

    # click on its own takes ASCII for a mistake, and writes UTF-8 instead.
    stream = sys.stderr if err else sys.stdout
    click.echo(plain(text), file=stream)
    end_if_lost(stream)
