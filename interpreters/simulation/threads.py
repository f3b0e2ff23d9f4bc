"""Impure daemons in a simulation: threads that take turns with the simulator.

A daemon runs until it waits by `stopped.wait`, or ends; meanwhile the simulator stands
still. So only one runs at a time, and its waits last virtual time. Equal beginnings
lead to equal ends.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from fnop.core.seam.commands import Interrupt, Refresh
from fnop.effects import Answer, Call, Log, Outcome, Raised
from fnop.effects.outcomes import CANCELLED
from fnop.interpreters.runtime.calls import StopFlag, called
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.simulation.externals import set_now

__all__ = ["DEAF_MAX", "LEAST_SECONDS", "Over", "SimulatedThreads"]

# The longest time until a daemon has to wait or to end, in real seconds.
PATIENCE_SECONDS = 10.0
# The longest time for its end when the simulation is over, in real seconds.
_END_SECONDS = 1.0
# The shortest wait in virtual seconds: time would not pass with shorter ones.
LEAST_SECONDS = 0.001
# The number of waits that a daemon may start after a stop request, before it is kept
# waiting.
DEAF_MAX = 1_000
# The number of waits that a daemon may start after its simulation is over.
_CHANCES = 100


class Over(BaseException):
    """The simulation is over: raised in a function that waits, to end its thread."""


class SimulatedThreads:
    """The impure daemons of one simulated run that are under way, by their calls."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._threads: dict[int, _SimulatedThread] = {}
        self._finalizer: weakref.finalize[..., Any] | None = None

    def end_with(self, owner: object) -> None:
        """End all daemons when their owner is freed, or the process ends."""
        if self._finalizer is None:
            self._finalizer = weakref.finalize(owner, self.close)

    @property
    def calls(self) -> Collection[int]:
        """The commands that are under way: each of them waits."""
        return self._threads.keys()

    @property
    def wakes(self) -> list[float]:
        """The virtual seconds at which waiting daemons continue."""
        return [each.until for each in self._threads.values() if each.until is not None]

    def begin(
        self,
        id: int,
        function: Callable[..., Any],
        call: Call,
        say: Callable[[Log], None],
    ) -> Outcome | None:
        """Begin a daemon; its outcome if it has ended, None if it waits."""
        thread = self._threads[id] = _SimulatedThread(function, call, say, self._clock)
        return self._continue_thread(id, thread)

    def wake(self) -> list[tuple[int, Outcome]]:
        """Continue the daemons that are due; return the outcomes of those that end."""
        now = self._clock.elapsed
        due = [
            (each.until, id, each)
            for id, each in self._threads.items()
            if each.until is not None and each.until <= now
        ]
        ended = []
        for _, id, thread in sorted(due, key=lambda found: found[:2]):
            outcome = self._continue_thread(id, thread)
            if outcome is not None:
                ended.append((id, outcome))
        return ended

    def tell(self, command: Interrupt | Refresh) -> Outcome | None:
        """Pass a command on to a daemon; its outcome if it ends because of it."""
        thread = self._threads.get(command.id)
        match command:
            case Refresh(_, body, wall) if thread is not None:
                thread.stopped.refresh(body.data, wall)
            case Interrupt(id, reason, cancel) if thread is not None:
                thread.stopped.set(reason)
                thread.stopped.is_cancelled = cancel
                outcome = self._continue_thread(id, thread)
                if not cancel or thread.is_awaited:
                    return outcome  # a coroutine may tidy up
                if outcome is None:
                    self._threads.pop(id).end()
                return CANCELLED
        return None

    def close(self) -> None:
        """End all daemons: the operator is gone."""
        while self._threads:
            _, thread = self._threads.popitem()
            thread.end()

    def _continue_thread(self, id: int, thread: _SimulatedThread) -> Outcome | None:
        set_now(thread.function, self._clock.now().wall)
        outcome = thread.go_on()
        if outcome is not None:
            self._threads.pop(id, None)
        return outcome


class _SimulatedThread:
    """One daemon in its thread, which runs only while the simulator waits for it."""

    def __init__(
        self,
        function: Callable[..., Any],
        call: Call,
        say: Callable[[Log], None],
        clock: VirtualClock,
    ) -> None:
        self.is_awaited = inspect.iscoroutinefunction(function)
        self.stopped = (_Awaited if self.is_awaited else _Parked)(self, clock)
        self.until: float | None = None
        self._is_over = False
        self.function = function
        self._name, self._say = call.function, say
        self._outcome: Outcome | None = None
        self._work = partial(called, function, call, self._say_line, self.stopped)
        self._its_turn = threading.Semaphore(0)
        self._our_turn = threading.Semaphore(0)
        self._thread = threading.Thread(
            target=self._run, name=f"simulated {call.function}", daemon=True
        )
        self._thread.start()

    # ---------------------------------------------- in the simulator's thread

    def go_on(self) -> Outcome | None:
        """Let the daemon run until it waits (None), or has ended."""
        self.until = None
        self._its_turn.release()
        if self._our_turn.acquire(timeout=PATIENCE_SECONDS):
            if self._outcome is not None:
                self._thread.join()
            return self._outcome
        self._stop_thread()
        text = (
            f"{self._name} has neither waited nor ended within {PATIENCE_SECONDS:g} s; "
            "in a simulation a daemon waits by stopped.wait(seconds) alone, which "
            "takes no time"
        )
        return Raised("Blocked", text, permanent=True)

    def end(self) -> None:
        """End the daemon during its wait."""
        self._stop_thread()
        if self._thread is not threading.current_thread():
            self._thread.join(_END_SECONDS)

    def _stop_thread(self) -> None:
        self._is_over = True
        self._its_turn.release(_CHANCES)

    # -------------------------------------------------- in the daemon's thread

    def _run(self) -> None:
        self._its_turn.acquire()
        found = self._work()
        is_cut = isinstance(found, Answer) and isinstance(
            found.exception, asyncio.CancelledError
        )
        self._outcome = CANCELLED if is_cut else found
        self._our_turn.release()

    def park(self, until: float | None) -> bool:
        """Let the simulator continue until then; False if the simulation is over."""
        self.until = until
        if not self._is_over:
            self._our_turn.release()
            self._its_turn.acquire()
        elif not self._its_turn.acquire(blocking=False):
            threading.Event().wait()  # it does not end, but must not do anything more
        return not self._is_over

    def _say_line(self, line: Log) -> None:
        if not self._is_over:
            self._say(line)


class _Waiting(StopFlag):
    """The argument `stopped` of a simulated daemon."""

    def __init__(self, thread: _SimulatedThread, clock: VirtualClock) -> None:
        super().__init__()
        self.is_cancelled = False
        self._strand, self._clock = thread, clock
        self._asked = 0

    def _should_wait(self) -> bool:
        """Whether to wait: not after a stop request, unless it is ignored."""
        if not self.is_set():
            return True
        self._asked += 1
        return self._asked > DEAF_MAX

    def _deadline_for(self, timeout: float | None) -> float | None:
        if timeout is None or self.reason:
            return None
        return self._clock.elapsed + max(timeout, LEAST_SECONDS)


class _Parked(_Waiting):
    """The flag of a plain function, which waits in its thread."""

    def wait(self, timeout: float | None = None) -> bool:
        if self._should_wait() and not self._strand.park(self._deadline_for(timeout)):
            raise Over
        return self.is_set()


class _Awaited(_Waiting):
    """The flag of a coroutine: its loop waits when all of its tasks do."""

    def __init__(self, thread: _SimulatedThread, clock: VirtualClock) -> None:
        super().__init__(thread, clock)
        self._waiters: dict[asyncio.Future[None], float | None] = {}
        self._rests = False

    async def wait(self, timeout: float | None = None) -> bool:
        if self._should_wait():
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters[waiter] = self._deadline_for(timeout)
            self._schedule_rest(loop)
            try:
                await waiter
            finally:
                del self._waiters[waiter]
        return self.is_set()

    def _schedule_rest(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._rests:
            self._rests = True
            loop.call_soon(self._rest_until_due, loop)

    def _rest_until_due(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the simulator continue, until one of the waiters is due."""
        self._rests = False
        waiters = {each: at for each, at in self._waiters.items() if not each.done()}
        if not waiters:
            return
        moments = [at for at in waiters.values() if at is not None]
        goes_on = self._strand.park(min(moments, default=None))
        ends = self.is_cancelled or not goes_on
        self.is_cancelled = False
        for waiter, at in waiters.items():
            if ends:
                waiter.cancel()
            elif self.reason or (at is not None and at <= self._clock.elapsed):
                waiter.set_result(None)
            else:
                self._schedule_rest(loop)
