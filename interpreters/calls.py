"""Functions that run outside: those that `fnop.call` names, and impure handlers.

Whatever they do is answered by an outcome.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from fnop.core.errors import PermanentError, TemporaryError, text_of
from fnop.core.impure import Outside
from fnop.effects import Answer, Call, Log, Outcome, Raised
from fnop.effects.values import freeze_json

__all__ = ["CallThreads", "LiveStopped", "called", "called_on_loop", "raised"]


class CallThreads:
    """The threads of functions that are not coroutines, made when one is needed.

    Those of an `executor` that was given are its owner's: it is not shut down here.
    """

    def __init__(self, executor: Executor | None = None) -> None:
        self._given = executor
        self._pool: ThreadPoolExecutor | None = None
        self._number = 0

    def of(self, number: int) -> Executor:
        """As many threads as the settings now say; what runs in others goes on."""
        if self._given is not None:
            return self._given
        if self._pool is None or self._number != number:
            if self._pool is not None:
                self._pool.shutdown(wait=False)
            self._pool = ThreadPoolExecutor(number, "fnop-call")
            self._number = number
        return self._pool

    def close(self) -> None:
        """Begin nothing more."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


class LiveStopped:
    """Whether an impure daemon is to stop: false until it is told so.

    `wait(seconds)` answers it at the latest then; in a coroutine it is awaited.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.reason = ""
        self._flag = threading.Event()
        self._loop = loop
        self._event = asyncio.Event() if loop is not None else None

    def set(self, reason: str) -> None:
        """Tell it, from the loop's thread."""
        self.reason = reason
        self._flag.set()
        if self._event is not None:
            self._event.set()

    def is_set(self) -> bool:
        return self._flag.is_set()

    def __bool__(self) -> bool:
        return self._flag.is_set()

    def wait(self, timeout: float | None = None) -> Any:
        if self._event is None:
            return self._flag.wait(timeout)
        return self._wait(self._event, timeout)

    async def _wait(self, event: asyncio.Event, timeout: float | None) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            return False
        return True


class _Run:
    """One call: the arguments to give, and what to make of its end."""

    def __init__(
        self, call: Call, say: Callable[[Log], None], stopped: LiveStopped | None
    ) -> None:
        self.call = call
        self.outside = None
        self.arguments: dict[str, Any] = call.arguments
        if call.as_handler:
            flag = LiveStopped() if stopped is None else stopped  # it may be false
            self.outside = Outside(call.arguments, say, flag)
            self.arguments = self.outside.arguments

    def returned(self, value: Any) -> Outcome:
        if self.outside is not None:
            value = self.outside.returned(value)
        return Answer(freeze_json(value, f"the answer of {self.call.function}"))

    def failed(self, problem: BaseException) -> Outcome:
        _kept_for_the_log(problem)
        if self.outside is None:
            return raised(problem)
        if isinstance(problem, RuntimeError) and "bad yield" in text_of(problem):
            text = "an impure handler cannot await effects; let it return them"
            problem = PermanentError(f"{text} ({problem})")
        failure = freeze_json(self.outside.failed(problem), "the failure")
        return Answer(failure, problem)


def _nobody(line: Log) -> None:
    """A log line that nobody wants."""


def called(
    function: Callable[..., Any],
    call: Call,
    say: Callable[[Log], None] = _nobody,
    stopped: LiveStopped | None = None,
) -> Outcome:
    """Run a called function in its thread; what it raises is an outcome.

    It is returned, not raised: a StopIteration cannot cross over to the loop, and
    a SystemExit would end the operator.
    """
    try:
        run = _Run(call, say, stopped)
    except Exception as problem:
        return raised(problem)
    try:
        value = function(**run.arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        return run.returned(value)
    except BaseException as problem:
        return run.failed(problem)


async def called_on_loop(
    function: Callable[..., Any],
    call: Call,
    say: Callable[[Log], None] = _nobody,
    stopped: LiveStopped | None = None,
) -> Outcome:
    """Run a called coroutine function on the loop; what it raises is an outcome.

    A cancellation of the task itself, as when the operator ends, goes through.
    """
    try:
        run = _Run(call, say, stopped)
    except Exception as problem:
        return raised(problem)
    try:
        return run.returned(await function(**run.arguments))
    except asyncio.CancelledError as problem:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return run.failed(problem)
    except (Exception, SystemExit) as problem:
        return run.failed(problem)


def raised(problem: BaseException) -> Raised:
    """What an exception of a called function is to the handler that called it."""
    name, text = type(problem).__name__, text_of(problem)
    match problem:
        case TemporaryError():
            return Raised("TemporaryError", text, problem.delay)
        case PermanentError():
            return Raised(name, text, permanent=True)
        case _:
            return Raised(name, text, exception=problem)


def _kept_for_the_log(problem: BaseException) -> None:
    """Let an exception show the author's code, and hold nothing else in memory."""
    steps = problem.__traceback__
    problem.__traceback__ = steps and steps.tb_next  # the first step is in this module
    traceback.clear_frames(problem.__traceback__)
