"""Names a handler that does not come back, or takes its time.

A handler is driven on the loop's own thread, so one that blocks, or runs in a circle,
holds up everything.  Nobody can end it; but a thread beside can tell where it is.

What counts is the step's own time.  On a machine that has too much to do, a thread
that could run waits for a processor, and no handler is to be blamed for that.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Protocol

from fnop.interpreters.clock import ThreadClock

__all__ = ["Watchdog"]

# So long may a step take before it is named; and again after as long.
PATIENCE_SECONDS = 5.0
# What a thread has waited for a processor is read so often; it costs some 10 us.
_READ_SECONDS = 0.1


class Times(Protocol):
    """The clock of the thread that is watched: see `ThreadClock`."""

    def mono(self) -> float: ...

    def busy(self) -> float: ...

    def waited(self) -> float | None: ...


class Watchdog:
    """Watches the thread that makes it, from `begin` to `end` of each step."""

    def __init__(
        self,
        say: Callable[[str], None],
        patience: float = PATIENCE_SECONDS,
        times: Times | None = None,
    ) -> None:
        self._say = say
        self._patience = patience
        self._times = ThreadClock() if times is None else times
        self._thread = threading.get_ident()
        self._step = 0  # odd while one is under way
        self._began, self._busy = self._times.mono(), self._times.busy()
        self._waited, self._read = self._times.waited(), self._began
        self._over = threading.Event()
        watch = threading.Thread(target=self._watch, name="fnop-watchdog", daemon=True)
        watch.start()

    def begin(self) -> None:
        """A step begins."""
        times = self._times
        self._began = times.mono()
        if self._waited is None:
            self._busy = times.busy()
        elif self._began - self._read >= _READ_SECONDS:
            self._waited, self._read = times.waited(), self._began
        self._step += 1

    def end(self, least: float = 0.0) -> float:
        """A step has ended; the seconds of it that were its own, if at `least` so many.

        Less than these are answered roughly: they cost no look at the processors.
        """
        self._step += 1
        took = self._times.mono() - self._began
        if took < least:
            return took
        own = self._own(took)
        return self._times.busy() - self._busy if own is None else own

    def _own(self, took: float) -> float | None:
        """What of the time the thread has spent by itself; None where nobody knows."""
        before, now = self._waited, self._times.waited()
        if before is None or now is None:
            return None
        return max(0.0, took - (now - before))

    def close(self) -> None:
        """Stop watching."""
        self._over.set()

    def _watch(self) -> None:
        seen = self._step
        named = 0.0
        while not self._over.wait(self._patience):
            if self._step != seen or not seen % 2:
                seen, named = self._step, 0.0
                continue
            took = self._times.mono() - self._began
            own = self._own(took)
            seconds = took if own is None else own
            if seconds - named < self._patience:
                continue
            named = seconds
            where = _innermost(sys._current_frames().get(self._thread))
            self._say(
                f"the operator stands still for {seconds:.1f} s, at {where}; move slow "
                "work into fnop.call, or into an impure handler"
            )


def _innermost(frame: FrameType | None) -> str:
    """Where a thread is: the last place outside of the standard library."""
    places = traceback.extract_stack(frame) if frame is not None else []
    for place in reversed(places):
        if "/lib/python" not in place.filename.replace("\\", "/"):
            return f"{place.filename}:{place.lineno} in {place.name}"
    return "an unknown place"
