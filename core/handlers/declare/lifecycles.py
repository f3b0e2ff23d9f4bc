"""The lifecycles, which select the handlers that are called in one pass.

A pass over an object ends with a write if a restart needs to know the progress. So a
lifecycle that calls one handler per pass costs one write for each handler.
`all_at_once` needs the fewest. A lifecycle is a pure function from the due candidates
to the candidates that are called, in this order. It is set in the settings:

    settings.replace(lifecycle=fnop.lifecycles.one_by_one)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

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
    """The part of a handler that a lifecycle may look at."""

    @property
    def id(self) -> str: ...


class Candidate(Struct, frozen=True):
    """A handler that is due: the `handler` itself, its `progress` and a random `order`.

    `handler.id` is its id, `progress.retries` the number of its failed attempts.
    `order` is drawn from a seed, so that a replay draws the same.
    """

    handler: Named
    progress: Progress
    order: int


Lifecycle = Callable[[Sequence[Candidate]], Sequence[Candidate]]


def all_at_once(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Call all `candidates`, in the order of their declaration: the default."""
    return candidates


def one_by_one(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Call the first of the `candidates`."""
    return candidates[:1]


def asap(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Call the one of the `candidates` with the fewest attempts.

    A failing handler does not hold up the others.
    """
    return sorted(candidates, key=lambda each: each.progress.retries)[:1]


def shuffled(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Call all `candidates`, in a random order."""
    return sorted(candidates, key=lambda each: each.order)


def randomized(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Call a random one of the `candidates`."""
    return shuffled(candidates)[:1]


def order_of(seed: str, about: str, handler: str) -> int:
    """Draw a number from a seed: the same one for the same arguments.

    >>> order_of("0", "uid 1", "a") == order_of("0", "uid 1", "a")
    True
    """
    text = f"{seed}/{about}/{handler}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
