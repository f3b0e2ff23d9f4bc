"""JSON of any depth: an unreadable object must not hide all others.

Kubernetes accepts 10,000 levels, the parser 1,024. Otherwise a client that may create
one object of a kind could keep an operator from listing that kind.
"""

from __future__ import annotations

from typing import Any

import orjson

from fnop.effects.regexes import regex
from fnop.effects.values import LEVELS_MAX

__all__ = ["LEVELS_MAX", "loads", "shallow"]

# Possessive quantifiers: linear time for any text.
_MARKS = regex(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]')


def loads(text: bytes, around: int = 0) -> Any:
    """Parse an object, or a list of objects, with null for values nested too deep.

    `around` is the number of levels around the object itself. Raises `ValueError` if
    the text is not JSON.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        cut = shallow(text, LEVELS_MAX + around)
        if cut == text:
            raise
        found = orjson.loads(cut)
        is_list = isinstance(found, dict) and isinstance(found.get("items"), list)
        return orjson.loads(shallow(text, LEVELS_MAX + 2)) if is_list else found


def shallow(text: bytes, levels: int = LEVELS_MAX) -> bytes:
    """The same JSON, with null in place of values that are nested too deeply.

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
