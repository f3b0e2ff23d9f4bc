"""Deadlines of reviews: the API server gives up after a time that it states."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fnop.core.handlers.declare.webhook import SECONDS, TIMEOUT_SECONDS
from fnop.core.values.errors import joined
from fnop.effects.regexes import regex

__all__ = ["answered_within", "crowded", "late", "timeout_of"]

# The shares of the API server's time that an answer needs for its way back.
SHARE, LEAST_SECONDS = 0.1, 0.5
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_UNITS["ns"] = 1e-9
_PART = r"(\d+(?:\.\d*)?|\.\d+)(h|ms|us|µs|ns|m|s)"
_DURATION = regex(rf"\+?(?:{_PART})+")


def timeout_of(text: str | None) -> float:
    """The seconds after which the API server gives up, as its query states them.

    It is a Go duration of at most thirty seconds. For any other text it is the API
    server's default.

    >>> timeout_of("5s"), timeout_of("1m"), timeout_of("2h"), timeout_of(None)
    (5.0, 30.0, 30.0, 10.0)
    >>> timeout_of("1s500ms"), timeout_of("soon"), timeout_of("0s")
    (1.5, 10.0, 10.0)
    """
    if text is None or len(text) > 50 or not _DURATION.fullmatch(text):
        return float(TIMEOUT_SECONDS)
    seconds = sum(float(n) * _UNITS[unit] for n, unit in re.findall(_PART, text))
    if seconds <= 0:
        return float(TIMEOUT_SECONDS)
    return min(seconds, float(SECONDS[-1]))


def answered_within(timeout: float) -> float:
    """The seconds within which to answer a client that waits for this many.

    >>> answered_within(10), answered_within(1), answered_within(0.2)
    (9.0, 0.5, 0.1)
    """
    return max(timeout / 2, timeout - max(SHARE * timeout, LEAST_SECONDS))


def late(handler: str | None, seconds: float) -> str:
    """A sentence about a handler that still waits after this many seconds.

    >>> late("scans", 1.49996).partition(",")[0]
    'scans was not done within 1.5 s'
    >>> [late("a", each).split(" ")[5] for each in (8.998, 0.29991, -0.1)]
    ['9', '0.3', '0']
    """
    return (
        f"{handler or 'it'} was not done within {_show_seconds(seconds)} s, the time "
        "of its webhook less a margin for the way back; give it a longer timeout=, or "
        "less to wait for"
    )


def crowded(handler: str | None, seconds: float, busy: Mapping[str, int]) -> str:
    """A sentence about a call that found no free thread in this many seconds.

    `busy` are the calls that occupy the threads: their numbers, by their names.

    >>> crowded("scans", 9, {"scan.look": 32}).partition(";")[0]
    'scans was not begun within 9 s: calls of scan.look (32) hold all threads'
    """
    most = sorted(busy.items(), key=lambda each: (-each[1], each[0]))[:_NAMED_MAX]
    named = joined([f"{name} ({number})" for name, number in most] or ["others"])
    return (
        f"{handler or 'it'} was not begun within {_show_seconds(seconds)} s: calls of "
        f"{named} hold all threads; let them end in time, or raise call_threads in the "
        "settings"
    )


# The maximum number of functions that a sentence names.
_NAMED_MAX = 3


def _show_seconds(seconds: float) -> str:
    left = max(seconds, 0.0)
    return f"{left:.1f}".removesuffix(".0") if left >= 1 else f"{left:.1g}"
