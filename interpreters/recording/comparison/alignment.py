"""Align a run with its reference: which events both have, and which only one has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

__all__ = ["Pair", "aligned"]

# For longer runs only a common beginning and a common end are found: comparing all
# pairs would take too long.
COMPARED_MAX = 3_000


class Pair(NamedTuple):
    """An event by its number in the run, in the reference, or in both; else None."""

    own: int | None
    other: int | None


def aligned(own: Sequence[str], other: Sequence[str]) -> Iterator[Pair]:
    """All events of both runs in one order, with equal events paired by their keys.

    >>> [tuple(each) for each in aligned("abd", "acd")]
    [(0, 0), (1, None), (None, 1), (2, 2)]
    """
    begin, end = _common_lengths(own, other)
    yield from (Pair(each, each) for each in range(begin))
    mine, theirs = own[begin : len(own) - end], other[begin : len(other) - end]
    if max(len(mine), len(theirs)) > COMPARED_MAX:
        yield from _unpaired(
            range(begin, len(own) - end), range(begin, len(other) - end)
        )
    else:
        yield from _pairs_of(mine, theirs, begin)
    for back in range(end, 0, -1):
        yield Pair(len(own) - back, len(other) - back)


def _common_lengths(own: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """The lengths of the common beginning and of the common end."""
    most = min(len(own), len(other))
    begin = next((n for n in range(most) if own[n] != other[n]), most)
    left = most - begin
    ends = (n for n in range(left) if own[-1 - n] != other[-1 - n])
    return begin, next(ends, left)


def _pairs_of(mine: Sequence[str], theirs: Sequence[str], begin: int) -> Iterator[Pair]:
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    for tag, first, last, first_other, last_other in matcher.get_opcodes():
        own = range(begin + first, begin + last)
        other = range(begin + first_other, begin + last_other)
        if tag == "equal":
            yield from map(Pair, own, other)
        else:
            yield from _unpaired(own, other)


def _unpaired(own: range, other: range) -> Iterator[Pair]:
    yield from (Pair(each, None) for each in own)
    yield from (Pair(None, each) for each in other)
