"""Words similar to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["similar"]


def similar(word: str, known: Iterable[str], least: float = 0.6) -> list[str]:
    """Give the known word that is most similar, if its likeness is at least `least`.

    The likeness is difflib's ratio, from 0 to 1.

    >>> similar("deploymnets", ["pods", "deployments"]), similar("x", ["pods"])
    (['deployments'], [])
    """
    # Only a mistake needs it: an import costs a start some milliseconds.
    from difflib import get_close_matches

    return get_close_matches(word, [*known], 1, least)
