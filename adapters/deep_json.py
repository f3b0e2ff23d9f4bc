"""JSON of any depth: an object that nobody can read must not hide all others.

Kubernetes takes 10,000 levels, the parser 1,024.  Whoever may create one object of a
kind could keep an operator from listing that kind at all.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

__all__ = ["LEVELS_MAX", "loads", "shallow"]

# As deep as anything of a cut text is nested; far more than anybody writes.
LEVELS_MAX = 200

# Possessive: in linear time, whatever the text.
_MARKS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]')


def loads(text: bytes) -> Any:
    """Parse JSON; of what is too deep for the parser, all that is too deep is null.

    Raises `ValueError` for what is no JSON.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        cut = shallow(text)
        if cut == text:
            raise
        return orjson.loads(cut)


def shallow(text: bytes, levels: int = LEVELS_MAX) -> bytes:
    """The same JSON, with null in the place of what is nested deeper.

    >>> shallow(b'{"a": [1, {"b": "}"}], "c": "]"}', 2)
    b'{"a": [1, null], "c": "]"}'
    """
    parts, kept, depth = [], 0, 0
    for mark in _MARKS.finditer(text):
        if mark.group() in (b"{", b"["):
            depth += 1
            if depth == levels + 1:
                parts += [text[kept : mark.start()], b"null"]
        elif mark.group() in (b"}", b"]"):
            if depth == levels + 1:
                kept = mark.end()
            depth -= 1
    return b"".join((*parts, text[kept:]))
