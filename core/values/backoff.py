"""How long to wait before the next try, from failures and jitter alone; and how many
requests may fail at all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from fnop.effects.values import check_seconds

__all__ = [
    "BACKOFF_SECONDS",
    "RETURN_SECONDS",
    "Allowance",
    "Backoff",
    "backoff_seconds",
    "drawn",
    "growing_seconds",
    "heeding",
    "is_told",
    "jitter_of",
    "put_back",
]

BACKOFF_SECONDS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 30.0)
# Nobody waits longer for a server that may be back any moment: with jitter, the try
# itself, a listing and the handlers' work all is well within 15 seconds of its return.
RETURN_SECONDS = 5.0
# More than anybody waits.
_DOUBLINGS_MAX = 24


def backoff_seconds(
    failures: int, jitter: float, *, most: float = RETURN_SECONDS
) -> float:
    """The wait after so many failures in a row; `jitter` from 0 to 1 adds a fifth.

    `most`, in seconds, is for what does not get well by itself: 30 at the most.

    >>> backoff_seconds(1, 0.0), backoff_seconds(100, 0.0)
    (0.5, 5.0)
    >>> backoff_seconds(100, 0.5, most=30.0)
    33.0
    """
    index = min(max(failures, 1), len(BACKOFF_SECONDS)) - 1
    return min(BACKOFF_SECONDS[index], most) * (1.0 + jitter / 5)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waits before the next attempts of a handler that has failed.

    The first wait is `first` seconds; each next one is `factor` times as long, up to
    `most` seconds. Jitter adds up to a fifth, so that many objects that have failed
    together are not tried together again.

    >>> [Backoff().seconds(failures, 0.0) for failures in (1, 2, 3, 9, 10_000)]
    [1.0, 2.0, 4.0, 60.0, 60.0]

    Raises `ValueError` or `TypeError` for waits that are not durations, or do not grow.
    """

    first: float = 1.0
    most: float = 60.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        for name in ("first", "most"):
            check_seconds(getattr(self, name), f"Backoff.{name}")
        factor: Any = self.factor
        is_number = isinstance(factor, (int, float)) and not isinstance(factor, bool)
        if not (is_number and factor >= 1 and 0 < self.first <= self.most):
            raise ValueError(
                "a backoff begins with a wait above zero, grows by a factor of one or "
                f"more, and up to no less than it begins with; not {self}"
            )

    def seconds(self, failures: int, jitter: float) -> float:
        """The wait after so many failures in a row; `jitter` is from 0 to 1."""
        grown = min(
            self.factor ** min(max(failures, 1) - 1, 64), self.most / self.first
        )
        return self.first * grown * (1.0 + jitter / 5)


# A server that names a time is asked after it, but not after any time.
_ADVICE_MAX_SECONDS = 300.0


def heeding(advice_seconds: float | None, wait: float) -> float:
    """The wait where the server says when to come again (Retry-After): the longer one.

    >>> heeding(None, 2.0), heeding(10.0, 2.0), heeding(86_400.0, 2.0)
    (2.0, 10.0, 300.0)
    """
    return max(wait, min(advice_seconds or 0.0, _ADVICE_MAX_SECONDS))


def growing_seconds(looks: int, jitter: float, *, most: float) -> float:
    """The wait after so many looks in vain for what somebody has yet to bring.

    It doubles from 2 seconds to `most`: nobody waits longer than has been waited
    already, give or take.

    >>> [growing_seconds(looks, 0.0, most=600.0) for looks in (0, 1, 8, 9, 10_000)]
    [2.0, 4.0, 512.0, 600.0, 600.0]
    """
    doubled = 2.0 ** (min(looks, _DOUBLINGS_MAX) + 1)
    return min(doubled * (1.0 + jitter / 5), most)


def jitter_of(seed: str, counter: int) -> float:
    """A number from 0 to 1, drawn from the operator's seed and a counter.

    >>> jitter_of("a", 1) == jitter_of("a", 1)
    True
    """
    raw = hashlib.blake2b(f"{seed}/{counter}".encode(), digest_size=4).digest()
    return int.from_bytes(raw, "big") / 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Allowance:
    """A token bucket: `burst` requests at once, then `per_second`.

    `left` tokens were there at the monotonic time `at`; less than none are left where
    some are promised to requests that wait.
    """

    per_second: float
    burst: float
    left: float
    at: float = 0.0


def drawn(allowance: Allowance, now: float) -> tuple[Allowance, float]:
    """What is left when a request takes a token, and how long it has to wait for it.

    >>> allowance = Allowance(per_second=2.0, burst=1.0, left=1.0)
    >>> allowance, wait = drawn(allowance, 10.0)
    >>> wait, drawn(allowance, 10.0)[1], drawn(allowance, 10.25)[1]
    (0.0, 0.5, 0.25)
    """
    since = max(0.0, now - allowance.at)
    had = min(allowance.burst, allowance.left + since * allowance.per_second)
    left = had - 1.0
    wait = max(0.0, -left / allowance.per_second)
    return Allowance(allowance.per_second, allowance.burst, left, now), wait


def is_told(tries: int, first: int = 1) -> bool:
    """Whether a try in vain is worth a line: the `first`, the fifth, each twentieth.

    >>> [tries for tries in range(45) if is_told(tries)]
    [1, 5, 20, 40]
    >>> [tries for tries in range(45) if is_told(tries, first=2)]
    [2, 5, 20, 40]
    """
    return tries in (first, 5) or (tries > 0 and tries % 20 == 0)


def put_back(allowance: Allowance) -> Allowance:
    """A request gives its token back: it has cost the server nothing in vain.

    >>> put_back(Allowance(2.0, 5.0, left=4.5)).left
    5.0
    """
    left = min(allowance.burst, allowance.left + 1.0)
    return Allowance(allowance.per_second, allowance.burst, left, allowance.at)
