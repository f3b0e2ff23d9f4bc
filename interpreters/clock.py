"""The only reader of the clock, and the virtual clock beside it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

from fnop.core.now import Now

__all__ = ["EPOCH", "Clock", "SystemClock", "VirtualClock"]

# Where virtual time begins: a fixed day, so that two runs say the same.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


class Clock(Protocol):
    """Something that tells the time."""

    def now(self) -> Now:
        """This moment, wall and monotonic, in seconds."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Now:
        return Now(time.time(), time.monotonic())


class VirtualClock:
    """A clock that moves when it is told to, and costs no waiting."""

    def __init__(self, wall: float = EPOCH) -> None:
        self._start = wall
        self._elapsed = 0.0

    def now(self) -> Now:
        return Now(self._start + self._elapsed, self._elapsed)

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the beginning."""
        return self._elapsed

    def advance_to(self, mono: float) -> None:
        """Let it be then; the past stays the past."""
        self._elapsed = max(self._elapsed, mono)
