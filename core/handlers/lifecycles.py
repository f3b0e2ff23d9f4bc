"""Which of several handlers that are due are called in one pass over an object.

A pass ends with a write where a restart has to know what was done, so a lifecycle that
calls one handler in a pass costs a write for each. `all_at_once` needs the fewest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from fnop.core.memory.progress import Progress

__all__ = [
    "Candidate",
    "Lifecycle",
    "all_at_once",
    "asap",
    "one_by_one",
    "order_of",
    "randomized",
    "shuffled",
]


class Named(Protocol):
    """What there is to know of a handler here."""

    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A handler that is due; `order` is a number at random, from a seed."""

    handler: Named
    progress: Progress
    order: int


Lifecycle = Callable[[Sequence[Candidate]], Sequence[Candidate]]


def all_at_once(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """All, in the order of their declaration: the default."""
    return candidates


def one_by_one(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The first of them."""
    return candidates[:1]


def asap(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The one that was tried least often: one that fails holds nobody up."""
    return sorted(candidates, key=lambda each: each.progress.retries)[:1]


def shuffled(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """All, in an order at random."""
    return sorted(candidates, key=lambda each: each.order)


def randomized(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """One of them, at random."""
    return shuffled(candidates)[:1]


def order_of(seed: str, about: str, handler: str) -> int:
    """A number at random that is the same whenever it is asked for.

    >>> order_of("0", "uid 1", "a") == order_of("0", "uid 1", "a")
    True
    """
    text = f"{seed}/{about}/{handler}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
