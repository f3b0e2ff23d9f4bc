"""Patterns of names, as in a shell: `*` is anything, `?` one letter."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["is_pattern", "matches"]


def is_pattern(text: str) -> bool:
    """Whether a text means more than the one name that it is."""
    return "*" in text or "?" in text


def matches(pattern: str, name: str) -> bool:
    """Whether a name is one of those that a pattern means.

    >>> matches("*.example.com", "a.b.example.com"), matches("v?", "v1beta1")
    (True, False)
    """
    return bool(_compiled(pattern).fullmatch(name))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped)
