"""Backoff and rate limits: the waits before the next try, and a token bucket.

The waits are computed from the number of failures and jitter alone.
"""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct

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
    "is_worth_logging",
    "jitter_of",
    "put_back",
]

BACKOFF_SECONDS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 30.0)
# The longest wait for a server that may be back at any moment. With jitter, the retry
# itself, a listing and the handlers' work, the operator has caught up 15 seconds after
# its return.
RETURN_SECONDS = 5.0
# A wait of 2 to this power, in seconds, exceeds any limit.
_DOUBLINGS_MAX = 24


def backoff_seconds(
    failures: int, jitter: float, *, most: float = RETURN_SECONDS
) -> float:
    """The wait after a number of failures in a row, in seconds.

    `jitter`, from 0 to 1, adds up to a fifth. `most` is the longest wait, without
    jitter: up to 30 seconds for problems that do not pass by themselves.

    >>> backoff_seconds(1, 0.0), backoff_seconds(100, 0.0)
    (0.5, 5.0)
    >>> backoff_seconds(100, 0.5, most=30.0)
    33.0
    """
    index = min(max(failures, 1), len(BACKOFF_SECONDS)) - 1
    return min(BACKOFF_SECONDS[index], most) * (1.0 + jitter / 5)


class Backoff(Struct, frozen=True):
    """The waits before the next attempts of a failed handler.

    The first wait is `first` seconds; each next one is `factor` times as long, up to
    `most` seconds. Jitter adds up to a fifth, so that many objects that failed together
    are not retried together.

    >>> [Backoff().seconds(failures, 0.0) for failures in (1, 2, 3, 9, 10_000)]
    [1.0, 2.0, 4.0, 60.0, 60.0]

    Raises `ValueError` or `TypeError` for waits that are not durations, or that do not
    grow.
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
        """The wait after a number of failures in a row; `jitter` is from 0 to 1."""
        grown = min(
            self.factor ** min(max(failures, 1) - 1, 64), self.most / self.first
        )
        return self.first * grown * (1.0 + jitter / 5)


# The server's advice (Retry-After) is followed up to this wait.
_ADVICE_MAX_SECONDS = 300.0


def heeding(advice_seconds: float | None, wait: float) -> float:
    """The longer of a wait and the server's advice (Retry-After, up to 300 s).

    >>> heeding(None, 2.0), heeding(10.0, 2.0), heeding(86_400.0, 2.0)
    (2.0, 10.0, 300.0)
    """
    return max(wait, min(advice_seconds or 0.0, _ADVICE_MAX_SECONDS))


def growing_seconds(looks: int, jitter: float, *, most: float) -> float:
    """The wait before the next of many looks for a missing object.

    It doubles from 2 seconds to `most`. So it is about as long as all previous waits.

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


class Allowance(Struct, frozen=True):
    """A token bucket: `burst` requests at once, then `per_second`.

    `left` tokens were available at the monotonic time `at`. It is negative if tokens
    are promised to waiting requests.
    """

    per_second: float
    burst: float
    left: float
    at: float = 0.0


def drawn(allowance: Allowance, now: float) -> tuple[Allowance, float]:
    """Take a token for a request; return the bucket, and the seconds to wait.

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


def is_worth_logging(tries: int, first: int = 1) -> bool:
    """Whether to log a failed try: the `first`, the fifth, and each twentieth one.

    >>> [tries for tries in range(45) if is_worth_logging(tries)]
    [1, 5, 20, 40]
    >>> [tries for tries in range(45) if is_worth_logging(tries, first=2)]
    [2, 5, 20, 40]
    """
    return tries in (first, 5) or (tries > 0 and tries % 20 == 0)


def put_back(allowance: Allowance) -> Allowance:
    """Return the token of a request that does not count.

    >>> put_back(Allowance(2.0, 5.0, left=4.5)).left
    5.0
    """
    left = min(allowance.burst, allowance.left + 1.0)
    return Allowance(allowance.per_second, allowance.burst, left, allowance.at)
