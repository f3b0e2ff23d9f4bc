"""The waiting times of tests for real things: another thread, a process, a server.

A test waits for a condition and goes on as soon as it holds. The deadline ends a test
whose condition never holds, so it measures nothing and may be generous. It grows with
the machine: `SLOWNESS` compares a fixed piece of work, timed when pytest starts, with
the time that it takes on a calm core. Load that begins later is covered by `_SPARE`.
docs/contributing/testing-fnop.md lists what depends on load all the same.

`FNOP_TESTS_SLOWNESS` sets the factor, and hands it on to the processes that run tests.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Callable

__all__ = ["SLOWNESS", "eventually", "happens", "patience", "soon"]

# The work below on a calm core of 2024, in seconds.
_CALM_SECONDS = 0.05
# How much slower the machine may become after it was timed.
_SPARE = 6.0
# The pauses between two looks: a long wait is looked at less often.
_POLL_SECONDS, _POLL_MOST, _POLL_PART = 0.005, 0.25, 0.05
_VARIABLE = "FNOP_TESTS_SLOWNESS"


def _measured() -> float:
    """The time of a fixed piece of work, as a multiple of a calm core's."""
    began = time.perf_counter()
    total = 0
    for number in range(1_000_000):
        total += number
    took = time.perf_counter() - began
    return max(1.0, took / _CALM_SECONDS)


SLOWNESS = float(os.environ.get(_VARIABLE) or _measured())
"""At least 1; 3 where a core is shared with two busy loops."""
os.environ[_VARIABLE] = str(SLOWNESS)


def patience(seconds: float) -> float:
    """The seconds after which to give up what takes `seconds` on a calm machine."""
    return seconds * SLOWNESS * _SPARE


def happens(
    holds: Callable[[], object], seconds: float = 20.0, *, every: float = 0.0
) -> bool:
    """Wait until a condition holds, in a thread; False after `patience(seconds)`.

    It is looked at once in `every` seconds at the most.
    """
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        if waited > patience(seconds):
            return False
        time.sleep(_pause(waited, every))
    return True


def _pause(waited: float, every: float) -> float:
    return max(every, min(_POLL_MOST, _POLL_SECONDS + waited * _POLL_PART))


def eventually(
    holds: Callable[[], object],
    seconds: float = 20.0,
    *,
    otherwise: Callable[[], object] = lambda: "it did not happen",
    every: float = 0.0,
) -> None:
    """Wait until a condition holds, in a thread.

    Raises `AssertionError` with what `otherwise` returns after `patience(seconds)`.
    """
    assert happens(holds, seconds, every=every), otherwise()


async def soon(
    holds: Callable[[], object],
    seconds: float = 20.0,
    *,
    otherwise: Callable[[], object] = lambda: "it did not happen",
    every: float = 0.0,
) -> None:
    """Wait until a condition, which may be awaited, holds on an event loop.

    See `eventually`.
    """
    began = time.monotonic()
    while not await _found(holds()):
        waited = time.monotonic() - began
        assert waited < patience(seconds), otherwise()
        await asyncio.sleep(_pause(waited, every))


async def _found(what: object) -> object:
    found: object = await what if inspect.isawaitable(what) else what
    return found
