"""The calls of handlers under way in a simulated world, and their virtual waits.

A call runs until it ends, or waits: for the stop of its daemon, or in a sleep. While it
runs, the world waits for it. While it waits, virtual time passes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextvars import ContextVar
from functools import partial, wraps
from types import FrameType
from typing import Any, cast

from fnop.adapters.kopf.arguments.stopping import DaemonStopped
from fnop.adapters.kopf.checking.door import PATIENCE_SECONDS, Door
from fnop.adapters.testing.cases import CheckProblem
from fnop.core.seam.commands import Interrupt, Refresh
from fnop.effects import Call, Log, Outcome
from fnop.effects.outcomes import CANCELLED
from fnop.interpreters.runtime.calls import LiveStopped, called_on_loop
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.simulation.threads import DEAF_MAX, LEAST_SECONDS, Over

__all__ = [
    "HASTE",
    "STRAND",
    "Haste",
    "Line",
    "Strand",
    "Strands",
    "VirtualStopped",
    "waits_for_task",
]

# A daemon that does nothing for so long waits, in real seconds; at a line where it is
# known to wait, the shorter time is enough.
QUIET_SECONDS, KNOWN_SECONDS = 0.3, 0.01


# The coroutines that wait, each with its code and the place in it; and those of the
# tasks that they wait for.
Line = tuple[Any, ...]
# The modules whose coroutines wait for other tasks.
_SIGNALLING = ("asyncio/locks.py", "asyncio/queues.py")


class _Waiter:
    """One wait of a call: until a virtual second, or until its daemon is to stop."""

    def __init__(
        self, until: float | None, wake: Callable[[], object], *, heeds_stop: bool
    ) -> None:
        self.until, self.wake, self.heeds_stop = until, wake, heeds_stop
        self.is_cancelled = False


class Strand:
    """One call under way. The simulator's thread alone changes what others read."""

    def __init__(self, name: str, clock: VirtualClock, door: Door) -> None:
        self.name = name
        self.outcome: Outcome | None = None
        self.is_running = True
        self.is_over = False
        self.waiters: list[_Waiter] = []
        self.stopped: VirtualStopped | None = None
        self.task: asyncio.Task[Any] | None = None
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        self._clock, self._door = clock, door

    # ------------------------------------------------ in the simulator's thread

    @property
    def until(self) -> float | None:
        """The virtual second at which it continues; None if it waits for a stop."""
        moments = (each.until for each in self.waiters if each.until is not None)
        return min(moments, default=None)

    @property
    def place(self) -> Line | None:
        """The line at which its coroutines wait for others; None if it is unknown."""
        if self.coroutine is None or self.task is None:
            return None
        return _line_of(self.coroutine, self.task)

    def end(self, outcome: Outcome) -> None:
        """Note its outcome."""
        self.outcome, self.is_running = outcome, False

    def wake(self, is_due: Callable[[_Waiter], bool]) -> bool:
        """Let the waits that are due end; whether there were any."""
        due = [each for each in self.waiters if is_due(each)]
        self.waiters = [each for each in self.waiters if each not in due]
        self.is_running = bool(due) or self.is_running
        for each in due:
            each.wake()
        return bool(due)

    def close(self) -> None:
        """End it where it waits."""
        self.is_over = True
        self.wake(lambda each: True)

    def _note_wait(self, waiter: _Waiter) -> None:
        if not waiter.is_cancelled:
            self.waiters.append(waiter)
            self.is_running = False

    def _note_cancel(self, waiter: _Waiter) -> None:
        """Note that a wait was cancelled by its call, which goes on."""
        waiter.is_cancelled = True
        if waiter in self.waiters:
            self.waiters.remove(waiter)
            self.is_running = True

    def _note_rest(self) -> None:
        if self.waiters:
            self.is_running = False

    # -------------------------------------------------- in threads and on loops

    def comes_due(self) -> None:
        """Let its waits end as soon as the simulator goes on."""

        def mark() -> None:
            for each in self.waiters:
                each.until = self._clock.elapsed

        self._door.ask(mark)

    def _waiter(
        self, seconds: float | None, wake: Callable[[], object], *, heeds_stop: bool
    ) -> _Waiter:
        until = None
        if seconds is not None:
            until = self._clock.elapsed + max(seconds, LEAST_SECONDS)
        return _Waiter(until, wake, heeds_stop=heeds_stop)

    def sleep(self, seconds: float | None, *, heeds_stop: bool = False) -> None:
        """Let virtual time pass, in a thread."""
        event = threading.Event()
        if not self.is_over:
            waiter = self._waiter(seconds, event.set, heeds_stop=heeds_stop)
            self._door.ask(partial(self._note_wait, waiter))
            event.wait()
        if self.is_over:
            raise Over

    async def asleep(self, seconds: float | None, *, heeds_stop: bool = False) -> None:
        """Let virtual time pass, on a loop, whose other tasks run on."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        wake = partial(_call_on, loop, woken.set)
        waiter = self._waiter(seconds, wake, heeds_stop=heeds_stop)
        # Tasks that can run do so before the simulator goes on.
        loop.call_soon(loop.call_soon, self._door.ask, partial(self._note_wait, waiter))
        try:
            await woken.wait()
        except asyncio.CancelledError:
            self._door.ask(partial(self._note_cancel, waiter))
            raise
        # It may end now, while other tasks of the call still sleep.
        loop.call_soon(loop.call_soon, self._door.ask, self._note_rest)


def _call_on(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    """Do something on a loop, unless it is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)


def _line_of(
    coroutine: Coroutine[Any, Any, Any], task: asyncio.Future[Any]
) -> Line | None:
    """The line at which a coroutine of a task waits for others.

    It waits for a lock, an event, a queue, or for tasks that all wait so.
    """
    line: list[Any] = []
    at, inner = cast(Any, coroutine), None
    while (frame := getattr(at, "cr_frame", None)) is not None:
        line.append((frame.f_code, frame.f_lasti))
        at, inner = at.cr_await, frame
    if inner is None:
        return None
    if inner.f_code.co_filename.endswith(_SIGNALLING):
        return tuple(line)
    lines = [_line_of_task(e) for e in _awaited_by(task, inner) if not e.done()]
    return (*line, frozenset(lines)) if lines and None not in lines else None


def _line_of_task(task: asyncio.Future[Any]) -> Line | None:
    coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
    return _line_of(coroutine, task) if isinstance(coroutine, Coroutine) else None


def _awaited_by(
    task: asyncio.Future[Any], inner: FrameType
) -> Iterable[asyncio.Future[Any]]:
    """The tasks that one awaits, by itself, by `asyncio.gather` or `asyncio.wait`."""
    names = inner.f_locals
    if inner.f_code.co_filename.endswith("asyncio/tasks.py"):
        return names.get("fs", ()) if names.get("timeout") is None else ()
    waiter = getattr(task, "_fut_waiter", None)
    if isinstance(waiter, asyncio.Task):
        return (waiter,)
    return getattr(waiter, "_children", ())


def waits_for_task(task: asyncio.Future[Any]) -> bool:
    """Whether a task waits for another task of its loop, and not for a socket."""
    return _line_of_task(task) is not None


class Haste:
    """An activity, such as a startup handler, whose sleeps take no time at all.

    They are `left` seconds together; further ones, and those after it, are real.
    """

    def __init__(self, left: float) -> None:
        self._left = left

    def skips(self, seconds: float) -> bool:
        """Whether a sleep is left out."""
        self._left -= seconds
        return self._left >= 0

    def end(self) -> None:
        """Let sleeps of the tasks and threads that it has left be real."""
        self._left = 0.0


# The activity that runs in the current thread or task.
HASTE: ContextVar[Haste] = ContextVar("kopf-haste")
# The call that runs in the current thread or task.
STRAND: ContextVar[Strand] = ContextVar("kopf-strand")


class VirtualStopped(DaemonStopped):
    """The argument `stopped` of a daemon in a simulated world."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        super().__init__(loop)
        self._strand = STRAND.get()
        self._strand.stopped = self
        self._deaf = 0

    def _should_wait(self) -> bool:
        """Whether to wait: not after a stop request, unless it is ignored."""
        if not self.is_set():
            return True
        self._deaf += 1
        return self._deaf > DEAF_MAX

    def wait(self, timeout: float | None = None) -> Any:
        if self._loop is not None:
            return self._awaited(timeout)
        if self._should_wait():
            self._strand.sleep(self._seconds(timeout), heeds_stop=True)
        return self

    async def _awaited(self, timeout: float | None) -> DaemonStopped:
        if self._should_wait():
            await self._strand.asleep(self._seconds(timeout), heeds_stop=True)
        return self

    def _seconds(self, timeout: float | None) -> float | None:
        return None if self.is_set() else timeout


class Strands:
    """The calls of one process that are under way, by the numbers of their commands.

    They run on the author's `loop`, and in the threads that it uses. Those of the
    functions named in `lasting` may last as long as their objects. `resting` are the
    lines at which they wait, as far as known; it grows.
    """

    def __init__(
        self,
        clock: VirtualClock,
        loop: asyncio.AbstractEventLoop,
        door: Door,
        resting: set[tuple[str, Line]],
    ) -> None:
        self.lasting: Collection[str] = ()
        # The function of the call that the simulator waits for.
        self.present: str | None = None
        self._clock, self._loop, self._door = clock, loop, door
        self._resting = resting
        self._strands: dict[int, Strand] = {}

    @property
    def calls(self) -> Collection[int]:
        """The calls of daemons: each of them waits."""
        return [id for id, e in self._strands.items() if e.name in self.lasting]

    @property
    def wakes(self) -> list[float]:
        """The virtual seconds at which waiting calls continue."""
        return [each.until for each in self._strands.values() if each.until is not None]

    def begin(
        self,
        id: int,
        function: Callable[..., Any],
        call: Call,
        say: Callable[[Log], None],
    ) -> Outcome | None:
        """Begin a call; its outcome if it has ended, None if it waits."""
        strand = self._strands[id] = Strand(call.function, self._clock, self._door)

        def say_line(line: Log) -> None:
            self._door.ask(partial(say, line))

        @wraps(function)
        async def noted(*given: Any, **named: Any) -> Any:
            strand.coroutine = function(*given, **named)
            return await strand.coroutine

        async def work() -> None:
            STRAND.set(strand)
            strand.task = asyncio.current_task()
            stopped, outcome = LiveStopped(), cast(Outcome, CANCELLED)
            stopped.on_loop()
            try:
                outcome = await called_on_loop(noted, call, say_line, stopped)
            finally:
                self._door.ask(partial(strand.end, outcome))

        asyncio.run_coroutine_threadsafe(work(), self._loop)
        return self._go_on(id, strand)

    def wake(self) -> list[tuple[int, Outcome]]:
        """Continue the calls that are due; return the outcomes of those that end."""
        now, ended = self._clock.elapsed, []
        self._door.serve(lambda: False, 0.0)  # daemons may have ended by themselves
        for id, strand in [*self._strands.items()]:
            if strand.outcome is not None:
                ended.append((id, strand.outcome))
                del self._strands[id]
        due = [
            (each.until, id, each)
            for id, each in self._strands.items()
            if each.until is not None and each.until <= now
        ]
        for _, id, strand in sorted(due, key=lambda found: found[:2]):
            strand.wake(lambda each: each.until is not None and each.until <= now)
            outcome = self._go_on(id, strand)
            if outcome is not None:
                ended.append((id, outcome))
        return ended

    def tell(self, command: Interrupt | Refresh) -> Outcome | None:
        """Pass a stop request on; the outcome of the call if it ends because of it."""
        strand = self._strands.get(command.id)
        if strand is None or isinstance(command, Refresh):
            return None  # daemons look at the newest object by themselves
        if strand.stopped is not None:
            strand.stopped.set(command.reason)
        outcome: Outcome | None = None
        if strand.wake(lambda each: each.heeds_stop) or strand.is_running:
            outcome = self._go_on(command.id, strand)
        if not command.cancel or outcome is not None:
            return outcome
        del self._strands[command.id]
        if strand.task is not None:
            self._loop.call_soon_threadsafe(strand.task.cancel)
            # A coroutine may tidy up, but not wait again.
            self._door.serve(lambda: strand.outcome is not None, KNOWN_SECONDS)
        if strand.outcome is None:
            strand.close()
            self._door.serve(lambda: strand.outcome is not None, QUIET_SECONDS)
            return CANCELLED
        return strand.outcome

    def close(self) -> None:
        """End all calls: the process is gone."""
        while self._strands:
            _, strand = self._strands.popitem()
            strand.close()

    def _go_on(self, id: int, strand: Strand) -> Outcome | None:
        """Stand at the door until a call waits, or has ended."""
        self.present = strand.name
        try:
            return self._stand(id, strand)
        finally:
            self.present = None

    def _stand(self, id: int, strand: Strand) -> Outcome | None:
        if strand.name in self.lasting:
            if self._rests(strand):
                return None
        elif not self._door.serve(lambda: not strand.is_running, PATIENCE_SECONDS):
            raise CheckProblem(
                f"{strand.name.partition(':')[2]} has neither ended nor asked the "
                f"simulated cluster for anything within {PATIENCE_SECONDS:g} s: a "
                "handler that waits for something outside of the cluster cannot be "
                "checked"
            )
        if strand.outcome is not None:
            del self._strands[id]
        return strand.outcome

    def _rests(self, strand: Strand) -> bool:
        """Whether a daemon waits for its cancellation, or for something outside.

        A line at which one has waited for long is known from then on.
        """
        if self._door.serve(lambda: not strand.is_running, KNOWN_SECONDS):
            return False
        if (strand.name, strand.place) in self._resting:
            return True
        if self._door.serve(lambda: not strand.is_running, QUIET_SECONDS):
            return False
        place = strand.place
        if place is not None:
            self._resting.add((strand.name, place))
        return True
