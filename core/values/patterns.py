"""Patterns of names, as in a shell: `*` is any text, `?` one character."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["is_pattern", "matches"]


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern rather than a plain name."""
    return "*" in text or "?" in text


def matches(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern.

    >>> matches("*.example.com", "a.b.example.com"), matches("v?", "v1beta1")
    (True, False)
    """
    return bool(_compile_pattern(pattern).fullmatch(name))


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped)
