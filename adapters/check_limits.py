"""The limits of a check: its time, its tries and signals; and what it tells by then."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from fnop.adapters.plain import echo
from fnop.interpreters.clock import Clock, SystemClock

__all__ = ["Limits"]


class Limits:
    """The limits of one call, in seconds from now on, and in schedules to be tried.

    All schedules that are tried again in order to shrink failures have a `budget` of
    their own, which is the same as that of the schedules.
    """

    def __init__(
        self,
        *,
        budget: int | None = None,
        seconds: float | None = None,
        quiet: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._quiet = quiet
        self._tries = math.inf if budget is None else budget
        self._end = math.inf
        if seconds is not None:
            self._end = self._clock.now().mono + seconds

    def has_time(self) -> bool:
        """Whether the time is not over."""
        return self._clock.now().mono < self._end

    def may_shrink(self) -> bool:
        """Whether time and tries are left for a smaller failure."""
        return self._tries > 0 and self.has_time()

    def takes_a_try(self) -> bool:
        """Take one of the tries, where that is within the limits."""
        self._tries -= 1
        return self._tries >= 0 and self.has_time()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A signal ends what is done within, and there is no more time."""
        try:
            yield
        except KeyboardInterrupt:
            self._end = self._clock.now().mono
            self.say("interrupted; what is known by now (again: without recordings):")

    def progress(self, length: int, label: str) -> Any:
        """A progress bar for people who watch, of so many steps."""
        hidden = self._quiet or not sys.stderr.isatty()
        return click.progressbar(
            length=length, label=label, file=sys.stderr, hidden=hidden
        )

    def say(self, sentence: str) -> None:
        """Tell what is being done, where that is wanted."""
        if not self._quiet:
            echo(f"fnop: {sentence}", err=True)
