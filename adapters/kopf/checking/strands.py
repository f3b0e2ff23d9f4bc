"""The calls of handlers under way in a simulated world, and their virtual waits.

A call runs until it ends, or waits: for the stop of its daemon, or in a sleep. While it
runs, the world waits for it. While it waits, virtual time passes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

from fnop.adapters.kopf.arguments.stopping import DaemonStopped
from fnop.adapters.kopf.checking.door import PATIENCE_SECONDS, Door
from fnop.adapters.testing.cases import CheckProblem
from fnop.core.seam.commands import Interrupt, Refresh
from fnop.effects import Call, Log, Outcome
from fnop.interpreters.runtime.calls import LiveStopped, called_on_loop
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.simulation.threads import (
    CANCELLED,
    DEAF_MAX,
    LEAST_SECONDS,
    Over,
)

__all__ = ["STRAND", "Strand", "Strands", "VirtualStopped"]

# A daemon that does nothing for so long waits, in real seconds.
QUIET_SECONDS = 0.3


class _Waiter:
    """One wait of a call: until a virtual second, or until its daemon is to stop."""

    def __init__(
        self, until: float | None, wake: Callable[[], object], *, heeds_stop: bool
    ) -> None:
        self.until, self.wake, self.heeds_stop = until, wake, heeds_stop


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
        self._clock, self._door = clock, door

    # ------------------------------------------------ in the simulator's thread

    @property
    def until(self) -> float | None:
        """The virtual second at which it continues; None if it waits for a stop."""
        moments = (each.until for each in self.waiters if each.until is not None)
        return min(moments, default=None)

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
        self.waiters.append(waiter)
        self.is_running = False

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
        await woken.wait()
        # It may end now, while other tasks of the call still sleep.
        loop.call_soon(loop.call_soon, self._door.ask, self._note_rest)


def _call_on(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    """Do something on a loop, unless it is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)


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
    functions named in `lasting` may last as long as their objects.
    """

    def __init__(
        self, clock: VirtualClock, loop: asyncio.AbstractEventLoop, door: Door
    ) -> None:
        self.lasting: Collection[str] = ()
        self._clock, self._loop, self._door = clock, loop, door
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

        async def work() -> None:
            STRAND.set(strand)
            strand.task = asyncio.current_task()
            stopped, outcome = LiveStopped(), cast(Outcome, CANCELLED)
            stopped.on_loop()
            try:
                outcome = await called_on_loop(function, call, say_line, stopped)
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
        strand.close()
        self._door.serve(lambda: strand.outcome is not None, QUIET_SECONDS)
        return CANCELLED

    def close(self) -> None:
        """End all calls: the process is gone."""
        while self._strands:
            _, strand = self._strands.popitem()
            strand.close()

    def _go_on(self, id: int, strand: Strand) -> Outcome | None:
        """Stand at the door until a call waits, or has ended."""
        lasts = strand.name in self.lasting
        patience = QUIET_SECONDS if lasts else PATIENCE_SECONDS
        if not self._door.serve(lambda: not strand.is_running, patience):
            if lasts:  # it waits for its cancellation, or for something outside
                return None
            raise CheckProblem(
                f"{strand.name.partition(':')[2]} has neither ended nor asked the "
                f"simulated cluster for anything within {PATIENCE_SECONDS:g} s: a "
                "handler that waits for something outside of the cluster cannot be "
                "checked"
            )
        if strand.outcome is not None:
            del self._strands[id]
        return strand.outcome
