"""The limits of a check: its time, tries and signals; and the report up to then."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from msgspec import Struct

from fnop.adapters.common.plain import echo
from fnop.core.values.errors import number_of
from fnop.interpreters.check.campaign.campaign import Options
from fnop.interpreters.check.campaign.reports import Result
from fnop.interpreters.runtime.clock import Clock, SystemClock
from fnop.interpreters.runtime.interrupts import interruptible

__all__ = ["Limits", "Steps"]

# The alarm rings again after this interval.
AGAIN_SECONDS = 0.5
# The alarm rings this long after the end of the time, so that it never rings before.
LATER_SECONDS = 0.01


class Steps(Struct, frozen=True):
    """The steps of a progress bar: schedules, or tasks if their number is unknown.

    A first fault is one task. Its number of pairs is known only after trying it.
    """

    length: int
    label: str
    are_tasks: bool

    @classmethod
    def of(cls, options: Options, tasks: int) -> Steps:
        """The steps of this number of tasks; a task may have several schedules."""
        if options.depth != 2:
            return cls(min(tasks, options.budget or tasks), "schedules", True)
        if options.budget is not None:
            return cls(options.budget, "schedules at most", False)
        return cls(tasks, "schedules, and first faults of pairs", True)

    def taken(self, result: Result) -> int:
        """The number of steps that a result counts for."""
        return 1 if self.are_tasks else len(result.verdicts)


# The first progress line comes after this time, the others after growing pauses.
_FIRST_SECONDS = 10.0
_MOST_SECONDS = 60.0


class _Lines:
    """Progress lines when no user watches a bar: in CI, or if the output is a file."""

    def __init__(self, length: int, label: str, limits: Limits) -> None:
        self._length, self._label, self._limits = length, label, limits
        self._done = self._violating = 0
        self._began, self._next = limits.now, _FIRST_SECONDS

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the report follows."""

    def update(self, steps: int, result: Result | None = None) -> None:
        """Count some steps, and print a line from time to time."""
        self._done += steps
        if result is not None:
            self._violating += any(each.violations for each in result.verdicts)
        took = self._limits.now - self._began
        if took < self._next or not self._done:
            return
        self._next = took + min(took, _MOST_SECONDS)
        left = took / self._done * max(0, self._length - self._done)
        self._limits.say(
            f"{self._done} of {self._length} {self._label} after {took:.0f} s, "
            f"{self._found()}; about {left:.0f} s are left"
        )

    def _found(self) -> str:
        if not self._violating:
            return "no violation so far"
        return f"{number_of(self._violating, 'violation')} so far, to be confirmed"


class Limits:
    """The limits of one call: seconds from now on, and schedules to be tried.

    The schedules that are tried to shrink failures have a `budget` of their own. It is
    the same number as the budget of the schedules.
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
        self._begun = self._clock.now().mono
        self._end = math.inf if seconds is None else self._begun + seconds
        self._is_interrupted = self._has_failed = False

    @property
    def is_quiet(self) -> bool:
        """Whether only the report is printed."""
        return self._quiet

    def has_time(self) -> bool:
        """Whether time is left."""
        return self._clock.now().mono < self._end

    def may_prepare(self) -> bool:
        """Whether another script may be prepared: the schedules need time, too."""
        return self.now < self._begun + (self._end - self._begun) / 2

    def left(self) -> float:
        """The seconds that are left; infinity without a limit."""
        return self._end - self.now

    def fails(self) -> None:
        """Try no further schedules: there is a failure, which is yet to be shrunk."""
        self._has_failed = True

    @property
    def has_failed(self) -> bool:
        """Whether a failure has ended the search."""
        return self._has_failed

    @property
    def cut(self) -> str:
        """Why no more is tried: "signal", "failure", "time", or else "budget"."""
        if self._is_interrupted:
            return "signal"
        if self._has_failed:
            return "failure"
        return "budget" if self.has_time() else "time"

    @contextmanager
    def ceiling(self, *, again: bool = True) -> Iterator[None]:
        """End the block when the time is over, at any instruction.

        It is done as Ctrl-C does it, so it also ends a run that never ends. With
        `again` the alarm rings repeatedly: an author's code may take the first one for
        its own.
        """
        if math.isinf(self._end) or not hasattr(signal, "setitimer"):
            yield
            return
        former = signal.signal(signal.SIGALRM, signal.default_int_handler)
        left = max(0.0, self._end - self._clock.now().mono) + LATER_SECONDS
        try:
            interval = AGAIN_SECONDS if again else 0.0
            signal.setitimer(signal.ITIMER_REAL, left, interval)
            with interruptible():
                yield
        except KeyboardInterrupt:
            if self.has_time():
                raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)

    def may_shrink(self) -> bool:
        """Whether time and tries are left for a smaller failure."""
        return self._tries > 0 and self.has_time()

    def takes_a_try(self) -> bool:
        """Take one of the tries; whether that is within the limits."""
        self._tries -= 1
        return self._tries >= 0 and self.has_time()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal end the block, after which no time is left."""
        try:
            yield
        except KeyboardInterrupt:
            self._end = self._clock.now().mono
            self._is_interrupted = True
            self.say("interrupted; what is known by now (again: without recordings):")

    @property
    def now(self) -> float:
        """The time, in monotonic seconds."""
        return self._clock.now().mono

    def progress(self, length: int, label: str) -> Any:
        """The progress of a number of steps: a bar on a terminal, or else lines."""
        if not sys.stderr.isatty():
            return _Lines(length, label, self)
        return click.progressbar(
            length=length, label=label, file=sys.stderr, hidden=self._quiet
        )

    def say(self, sentence: str) -> None:
        """Print what is being done, unless quiet."""
        if not self._quiet:
            echo(f"fnop: {sentence}", err=True)
