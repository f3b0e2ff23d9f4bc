"""The only reader of the clock, and the virtual clock."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol

from fnop.core.values.now import Now

__all__ = [
    "EPOCH",
    "Clock",
    "ProcessClock",
    "Pulse",
    "SystemClock",
    "ThreadClock",
    "VirtualClock",
]

# The start of virtual time: a fixed day, so that two runs give the same texts.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


class Clock(Protocol):
    """A source of the time."""

    def now(self) -> Now:
        """The present moment, wall and monotonic, in seconds."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Now:
        return Now(time.time(), time.monotonic())


class ProcessClock:
    """A clock of the time that the process has been on a processor."""

    def busy(self) -> float:
        """Seconds on a processor, of all its threads together."""
        return time.process_time()


class ThreadClock:
    """A clock of one thread: the time that it has run, and that it has waited.

    The kernel counts how long a thread could have run while others did (Linux:
    `schedstat`, in nanoseconds). If it does not, `waited` is None. Then only the time
    on a processor is known to be the thread's own.
    """

    def __init__(self) -> None:
        """Start the clock of the thread that creates it."""
        self._path = f"/proc/self/task/{threading.get_native_id()}/schedstat"

    # Seconds of the machine's monotonic clock; and seconds that the calling thread has
    # been on a processor. Each step reads them.
    mono = staticmethod(time.monotonic)
    busy = staticmethod(time.thread_time)

    def waited(self) -> float | None:
        """Seconds that the thread has waited for a processor, over its whole life."""
        try:
            with open(self._path, "rb") as file:
                return int(file.read().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return None


class Pulse:
    """Notices that the whole process was stopped: by SIGSTOP, or with its machine.

    The thread that creates it is watched; another thread beats at intervals of
    `seconds`. If the beat is late, and the watched thread has not run meanwhile, then
    neither could run. A sleeping thread does not stop the other.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        get_clock = getattr(time, "pthread_getcpuclockid", None)
        self._clock = None if get_clock is None else get_clock(threading.get_ident())
        self._last = time.monotonic(), self._processor_seconds(), 0.0
        # The seconds of all stops up to the last beat.
        self.stopped = 0.0

    def beat(self) -> float:
        """Note that this thread runs; return the seconds of all stops so far.

        Stops are measured with an error of at most twice the interval.
        """
        at, ran, stopped = self._last
        now, runs = time.monotonic(), self._processor_seconds()
        late = now - at - self.seconds
        if self._clock is not None and late >= self.seconds:
            stopped += max(0.0, late - (runs - ran))
        self._last, self.stopped = (now, runs, stopped), stopped
        return stopped

    def _processor_seconds(self) -> float:
        """The seconds that the watched thread has been on a processor."""
        try:
            return 0.0 if self._clock is None else time.clock_gettime(self._clock)
        except OSError:  # the thread has ended
            return 0.0


class VirtualClock:
    """A clock that moves only on request, and costs no waiting."""

    def __init__(self, wall: float = EPOCH) -> None:
        self._start = wall
        self._now = Now(wall, 0.0)

    def now(self) -> Now:
        return self._now

    def fork(self) -> VirtualClock:
        """Return a second clock that shows the same time, and runs by itself."""
        twin = VirtualClock(self._start)
        twin._now = self._now
        return twin

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now.mono

    def advance_to(self, mono: float) -> None:
        """Move on to this moment; the clock never moves back."""
        if mono > self._now.mono:
            self._now = Now(self._start + mono, mono)
