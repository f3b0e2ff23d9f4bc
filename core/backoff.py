"""How long to wait before the next try, from failures and jitter alone."""

from __future__ import annotations

import hashlib

__all__ = ["BACKOFF_SECONDS", "backoff_seconds", "jitter_of"]

BACKOFF_SECONDS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 30.0)


def backoff_seconds(failures: int, jitter: float) -> float:
    """The wait after so many failures in a row; `jitter` from 0 to 1 adds a fifth.

    >>> backoff_seconds(1, 0.0), backoff_seconds(100, 0.0)
    (0.5, 30.0)
    """
    index = min(max(failures, 1), len(BACKOFF_SECONDS)) - 1
    return BACKOFF_SECONDS[index] * (1.0 + jitter / 5)


def jitter_of(seed: str, counter: int) -> float:
    """A number from 0 to 1, drawn from the operator's seed and a counter.

    >>> jitter_of("a", 1) == jitter_of("a", 1)
    True
    """
    raw = hashlib.blake2b(f"{seed}/{counter}".encode(), digest_size=4).digest()
    return int.from_bytes(raw, "big") / 0xFFFFFFFF
