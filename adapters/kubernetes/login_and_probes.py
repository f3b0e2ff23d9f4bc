"""Handlers of logins and probes: they run by themselves, outside of every step.

A plain function runs in a thread, a coroutine on the event loop. They see the
operator's settings and memo, change neither, and have no effects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

from fnop.core.handlers.declare.forms import Form
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run.arguments import Situation, Writers, arguments_for
from fnop.core.seam.commands import Say
from fnop.core.state.turn import NEW, State, settings_of
from fnop.core.values.errors import PermanentError
from fnop.effects.values import ReadOnlyDict
from fnop.interpreters.runtime.clock import Clock, SystemClock

__all__ = ["Overdue", "Surroundings", "perform"]


class Overdue(TimeoutError):
    """A handler takes longer than its timeout."""


class Surroundings:
    """The context of a handler that runs outside: its settings, memo, clock and log.

    `state` returns the operator's present state, which is empty before it begins.
    """

    def __init__(
        self,
        program: Program,
        threads: Executor,
        say: Callable[[Say], None],
        clock: Clock | None = None,
        state: Callable[[], State] = lambda: NEW,
    ) -> None:
        self.threads = threads
        self.say = say
        self.clock = clock or SystemClock()
        self.state = state
        self._program = program

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return settings_of(self._program, self.state().lifecycle)

    @property
    def memo(self) -> ReadOnlyDict:
        """The values that activities have remembered."""
        return self.state().lifecycle.memo


async def perform(
    handler: Handler,
    around: Surroundings,
    *,
    timeout: float | None,
    retry: int = 0,
    started: float | None = None,
) -> Any:
    """Call a handler once, and return its result.

    `started` is the Unix time of the first attempt, `timeout` in seconds. Raises the
    handler's errors, and `Overdue`. A thread that takes longer is abandoned.
    """
    now = around.clock.now()
    situation = Situation(
        handler,
        around.settings,
        now,
        reason=handler.role.value,
        retry=retry,
        started=now.wall if started is None else started,
        memo=around.memo,
    )
    writers = Writers()
    arguments = arguments_for(situation, writers)
    try:
        async with asyncio.timeout(timeout) as limit:
            if handler.signature.form is Form.AWAITED:
                return await _await_handler(handler, arguments)
            loop = asyncio.get_running_loop()
            work = partial(_call_function, handler.fn, arguments)
            value, problem = await loop.run_in_executor(around.threads, work)
        if problem is not None:
            raise problem
        return value
    except TimeoutError:
        if limit.expired():
            raise Overdue(f"no answer within {timeout:g} s") from None
        raise  # the handler's own
    finally:
        for line in tuple(writers.lines):
            fields = tuple(sorted(line.fields.items()))
            around.say(Say(line.level, line.message, None, handler.id, fields))


def _call_function(
    function: Callable[..., Any], arguments: dict[str, Any]
) -> tuple[Any, Exception | None]:
    """Call it, and return an error that it raises: a SystemExit ends only the run."""
    try:
        return function(**arguments), None
    except StopIteration as problem:  # an event loop cannot pass it on
        return None, RuntimeError(f"StopIteration: {problem}")
    except Exception as problem:
        return None, problem
    except SystemExit as problem:
        return None, RuntimeError(f"SystemExit: {problem}")


async def _await_handler(handler: Handler, arguments: dict[str, Any]) -> Any:
    try:
        return await handler.fn(**arguments)
    except RuntimeError as problem:
        if "bad yield" not in str(problem):
            raise
        what = f"a {handler.role.value} handler cannot await effects"
        raise PermanentError(f"{what}; it acts by itself ({problem})") from None
    except SystemExit as problem:
        raise RuntimeError(f"SystemExit: {problem}") from None
