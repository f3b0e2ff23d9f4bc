"""Names a handler that does not return, or takes long.

A handler runs on the loop's own thread, and so do coroutines of impure handlers: one
that blocks, or loops for ever, holds up everything. Nothing can end it, but a second
thread can show its place. In a simulation the handler runs on the thread of the
simulation.

The step's own time counts. On an overloaded machine, a runnable thread waits for a
processor, and handlers are not to blame for that. The same holds for a process that was
stopped, as by SIGSTOP: then the second thread did not run, either.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Protocol

from fnop.core.seam.commands import Command, Perform, Say
from fnop.interpreters.runtime.clock import Pulse, ThreadClock

__all__ = [
    "AWAIT",
    "OUTSIDE",
    "PATIENCE_SECONDS",
    "SLOW_STEP_SECONDS",
    "Onlooker",
    "Watchdog",
    "slow_step",
]

# A handler that blocks the others for longer is named when it returns.
SLOW_STEP_SECONDS = 0.5

# A step that is not over after these seconds is named, and again after as many.
PATIENCE_SECONDS = 5.0
# The advice for a coroutine that blocks the event loop.
AWAIT = (
    "await what takes time, such as stopped.wait(seconds) in a daemon, or write a "
    "plain function, which runs in a thread"
)
OUTSIDE = "let an admission handler that takes time run in a thread, by impure=True"
# The interval at which a thread's wait for a processor is read; it costs some 10 us.
_READ_SECONDS = 0.1
# The looks at a thread within its patience.
_LOOKS = 5
# The interval at which the second thread beats, to notice stops of the process. The
# error is less than the time that makes a step slow.
_PULSE_SECONDS = 0.2


class Times(Protocol):
    """The clock of the watched thread: see `ThreadClock`."""

    def mono(self) -> float: ...

    def busy(self) -> float: ...

    def waited(self) -> float | None: ...


class Watchdog:
    """Watches the thread that creates it, from `begin` to `end` of each step."""

    def __init__(
        self,
        say: Callable[[str], None],
        patience: float = PATIENCE_SECONDS,
        times: Times | None = None,
    ) -> None:
        self._say = say
        self._patience = patience
        self._times = ThreadClock() if times is None else times
        self._pulse = Pulse(_PULSE_SECONDS) if times is None else None
        self._stopped = 0.0  # the stops before the present step
        self._thread = threading.get_ident()
        self._step = 0  # odd while a step is under way
        self._coroutine = ""
        self._began, self._busy = self._times.mono(), self._times.busy()
        self._waited, self._read = self._times.waited(), self._began
        self._over = threading.Event()
        watch = threading.Thread(target=self._watch, name="fnop-watchdog", daemon=True)
        watch.start()

    def begin(self, coroutine: str = "") -> None:
        """Begin a step: of the operator, or of a `coroutine` of an author's.

        A coroutine's step lasts until the coroutine awaits something, which may never
        happen.
        """
        times, self._coroutine = self._times, coroutine
        self._began = times.mono()
        if self._pulse is not None:
            self._stopped = self._pulse.stopped
        if self._waited is None:
            self._busy = times.busy()
        elif self._began - self._read >= _READ_SECONDS:
            self._waited, self._read = times.waited(), self._began
        self._step += 1

    def end(self, least: float = 0.0) -> float:
        """End a step; return its own seconds if they are at least `least`.

        Shorter times are returned roughly, which saves a look at the processors.
        """
        self._step += 1
        took = self._times.mono() - self._began
        if took < least:
            return took
        own = self._running_time(took)
        return self._times.busy() - self._busy if own is None else own

    def _running_time(self, took: float) -> float | None:
        """The time that the thread has run itself; None if it is unknown."""
        before, now = self._waited, self._times.waited()
        if before is None or now is None:
            return None
        stopped = 0.0 if self._pulse is None else self._pulse.beat() - self._stopped
        return max(0.0, took - max(now - before, stopped))

    def close(self) -> None:
        """Stop watching."""
        self._over.set()

    def _watch(self) -> None:
        seen = self._step
        named = 0.0
        while not self._is_over():
            if self._step != seen or not seen % 2:
                seen, named = self._step, 0.0
                continue
            took = self._times.mono() - self._began
            own = self._running_time(took)
            seconds = took if own is None else own
            coroutine = self._coroutine
            if seconds - named < self._patience or (named and coroutine):
                continue
            named = seconds
            where = _place_of_frame(sys._current_frames().get(self._thread))
            self._say(_words_for_standstill(seconds, where, coroutine))

    def _is_over(self) -> bool:
        """Let the patience pass, with beats; True once it is closed."""
        if self._pulse is None:
            return self._over.wait(self._patience)
        until = self._times.mono() + self._patience
        while (left := until - self._times.mono()) > 0:
            if self._over.wait(min(left, self._pulse.seconds)):
                return True
            self._pulse.beat()
        return self._over.is_set()


class Onlooker:
    """Names steps that take too long only by looking at a thread's stack.

    It does not learn when steps begin and end, so they cost no time for it. It looks at
    the thread that creates it. A call of `step` that is on the stack in two successive
    looks has not ended in between.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        step: Callable[..., object],
        patience: float,
        times: Times | None = None,
    ) -> None:
        self._say, self._code = say, step.__code__
        self._patience = patience
        self._times = ThreadClock() if times is None else times
        self._pulse = Pulse(patience / _LOOKS) if times is None else None
        self._thread = threading.get_ident()
        self._over = threading.Event()
        self._looking = threading.Thread(
            target=self._watch, name="fnop-onlooker", daemon=True
        )
        self._looking.start()

    def __enter__(self) -> Onlooker:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looking.join()  # a process with threads must not fork

    def _watch(self) -> None:
        seen: FrameType | None = None
        since = named = 0.0
        while not self._over.wait(self._patience / _LOOKS):
            innermost = sys._current_frames().get(self._thread)
            under_way = self._current_call(innermost)
            if under_way is None or under_way is not seen:
                seen, since, named = under_way, self._time_not_stopped(), 0.0
                continue
            seconds = self._time_not_stopped() - since
            if seconds - named >= self._patience:
                named = seconds
                self._say(
                    _words_for_standstill(seconds, _place_of_frame(innermost), "")
                )

    def _current_call(self, innermost: FrameType | None) -> FrameType | None:
        """The call of the step that is on the stack."""
        calls = (frame for frame, _ in traceback.walk_stack(innermost))
        return next((each for each in calls if each.f_code is self._code), None)

    def _time_not_stopped(self) -> float:
        """The seconds so far that the thread was not kept from running."""
        stopped = 0.0 if self._pulse is None else self._pulse.beat()
        return self._times.mono() - (self._times.waited() or 0.0) - stopped


def slow_step(seconds: float, commands: Iterable[Command]) -> str:
    """The warning about a slow step; the step's commands show its handlers."""
    names = {
        command.handler
        for command in commands
        if isinstance(command, (Say, Perform)) and command.handler
    }
    who = ", ".join(sorted(names)) or "a step"
    return (
        f"{who} blocked the operator for {seconds:.1f} s; move slow work into "
        "fnop.call, and wait by fnop.sleep"
    )


def _words_for_standstill(seconds: float, where: str, coroutine: str) -> str:
    still = f"the operator has been blocked for {seconds:.1f} s"
    if not coroutine:
        remedy = (
            "move slow work into fnop.call, or into an impure handler, and wait by "
            "fnop.sleep"
        )
        return f"{still}, at {where}; {remedy}"
    return (
        f"{still}: the coroutine {coroutine} goes on without an await, at {where}; "
        f"{AWAIT}"
    )


def _place_of_frame(frame: FrameType | None) -> str:
    """The place of a thread: its last line in an author's code, or else in fnop's."""
    places = list(reversed(list(traceback.walk_stack(frame)))) if frame else []
    known = [(each, line) for each, line in places if not _is_of_python(each)]
    authors = [each for each in known if not _is_ours(each[0])]
    if not known:
        return "an unknown place"
    found, line = (authors or known)[-1]
    return f"{found.f_code.co_filename}:{line} in {found.f_code.co_name}"


def _is_of_python(frame: FrameType) -> bool:
    """Whether it is in the standard library, or generated by it without a file."""
    name = frame.f_code.co_filename.replace("\\", "/")
    return "/lib/python" in name or name.startswith("<")


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("fnop.")
