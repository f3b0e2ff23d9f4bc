"""Functions outside that an operator has called, and that have not ended."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from fnop.core.handlers.declare.writers import DaemonStoppingReason
from fnop.core.seam.commands import Interrupt, Perform, Refresh
from fnop.effects import Call, Log, Outcome, outcomes
from fnop.interpreters.runtime.calls import (
    CallThreads,
    LiveStopped,
    called,
    called_on_loop,
    raised,
)

__all__ = ["OutsideCall", "OutsideCalls", "end_calls", "stop_calls"]

# The seconds that coroutines cancelled at the end have to tidy up.
TIDY_SECONDS = 5.0
# The seconds within which given-up ones have to be gone.
_UNWINDING_SECONDS = 1.0


class OutsideCall:
    """A call under way, with its stop flag and a requested cancellation.

    It `has_begun` if it does not wait for a thread.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_begun = False
        self.stopped = LiveStopped()
        self.running: asyncio.Future[Outcome] | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel it if it runs already."""
        if self.running is not None:
            self.running.cancel()


class OutsideCalls:
    """The calls under way, by the numbers of their commands.

    They have threads of their own: slow functions stop nothing else. `resolve` finds
    a function by its name. `say` takes its log lines, `turn` watches each turn of a
    coroutine, and `thread_count` is the number of threads now.
    """

    def __init__(
        self,
        resolve: Callable[[str], Callable[..., Any]],
        say: Callable[[Perform, Log], None],
        turn: Callable[[Perform], AbstractContextManager[None]],
        thread_count: Callable[[], int],
        executor: Executor | None = None,
    ) -> None:
        self._resolve = resolve
        self._say = say
        self._turn = turn
        self._thread_count = thread_count
        self.threads = CallThreads(executor)
        self._by_number: dict[int, OutsideCall] = {}

    @property
    def under_way(self) -> tuple[OutsideCall, ...]:
        """All calls that were requested, and have not ended."""
        return tuple(self._by_number.values())

    def expect(self, number: int, call: Call) -> OutsideCall:
        """Note a call that is about to begin."""
        found = self._by_number[number] = OutsideCall(call.function)
        return found

    def forget(self, number: int) -> None:
        """Forget a call that has ended, if it was one."""
        self._by_number.pop(number, None)

    def tell(self, command: Interrupt | Refresh) -> None:
        """Pass a command on to a call that is under way, or about to begin."""
        outside = self._by_number.get(command.id)
        if outside is None:
            return
        match command:
            case Refresh():
                outside.stopped.refresh(command.body.data, command.wall)
            case Interrupt():
                outside.stopped.set(command.reason)
                outside.cancelled = command.cancel
                if command.cancel:
                    outside.cancel()

    async def outcome(self, command: Perform, call: Call) -> Outcome:
        """Call the function of an expected call, and wait for its outcome."""
        outside = self._by_number[command.id]
        try:
            function = self._resolve(call.function)
        except Exception as problem:
            return raised(problem)
        running = outside.running = self._begin(function, command, call, outside)
        if outside.cancelled:
            running.cancel()
        # If awaited itself, a task that swallows its cancellation would keep this one,
        # too.
        await asyncio.wait((running,))
        if running.cancelled():
            return outcomes.CANCELLED
        return running.result()

    def _begin(
        self,
        function: Callable[..., Any],
        command: Perform,
        call: Call,
        outside: OutsideCall,
    ) -> asyncio.Future[Outcome]:
        stopped, say = outside.stopped, partial(self._say, command)
        if inspect.iscoroutinefunction(function):
            outside.has_begun = True
            stopped.on_loop()
            turn = partial(self._turn, command)
            work = called_on_loop(function, call, say, stopped, turn)
            return asyncio.create_task(work)

        def in_thread() -> Outcome:
            outside.has_begun = True
            return called(function, call, say, stopped)

        return self.threads.begin(self._thread_count(), outside.name, in_thread)


def stop_calls(under_way: Iterable[OutsideCall]) -> None:
    """Ask calls to end because the operator does."""
    for each in under_way:
        each.stopped.set(DaemonStoppingReason.OPERATOR_EXITING.value)
        each.cancel()


async def end_calls(
    under_way: Iterable[OutsideCall],
    hurry: asyncio.Event,
    warn: Callable[[str], None],
) -> None:
    """Let cancelled coroutines tidy up, and give up those that do not end.

    A coroutine that swallows its cancellation would keep the process for ever. With
    `hurry` set, the operator does not wait for them.
    """
    running = {each.running: each for each in under_way if each.running is not None}
    left: set[asyncio.Future[Any]] = {each for each in running if not each.done()}
    hurried: asyncio.Future[Any] = asyncio.create_task(hurry.wait())
    try:
        until = asyncio.get_running_loop().time() + TIDY_SECONDS
        while left and not hurried.done():
            wait = max(0.0, until - asyncio.get_running_loop().time())
            done, _ = await asyncio.wait(
                {*left, hurried}, timeout=wait, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                break
            left -= done
    finally:
        hurried.cancel()
        for each in left:
            outside = running[each]
            warn(f"{outside.name} was cancelled and goes on; it is ended as it is")
            outside.stopped.is_given_up = True
            each.cancel()
    await asyncio.wait({hurried, *left}, timeout=_UNWINDING_SECONDS)
