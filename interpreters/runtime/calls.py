"""Functions that run outside: impure handlers, and those that `fnop.call` names.

Everything they do is answered by an outcome.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
import types
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Hashable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from typing import Any

from fnop.core.handlers.declare.plans import refuse_lost
from fnop.core.handlers.declare.typed import Typed, typed
from fnop.core.handlers.run.impure import Outside, answerable
from fnop.core.values.errors import PermanentError, TemporaryError, text_of
from fnop.effects import Answer, Call, Log, Outcome, Raised, Witness
from fnop.effects.values import freeze_json
from fnop.interpreters.runtime.interrupts import Interrupted, interruptible

__all__ = [
    "CallThreads",
    "LiveStopped",
    "StopFlag",
    "called",
    "called_on_loop",
    "raised",
]


class CallThreads:
    """The threads of functions that are not coroutines, created on demand.

    The threads of a given `executor` belong to its owner: it is not shut down here.
    """

    def __init__(self, executor: Executor | None = None) -> None:
        self._given = executor
        self._pool: ThreadPoolExecutor | None = None
        self._number = 0
        # The functions that have started and not ended, by name.
        self._busy: dict[object, str] = {}

    def begin(
        self, number: int, name: str, work: Callable[[], Outcome]
    ) -> asyncio.Future[Outcome]:
        """Run a function called `name`, in a pool of `number` threads."""

        def listed() -> Outcome:
            entry = object()
            self._busy[entry] = name
            try:
                return work()
            finally:
                del self._busy[entry]

        return asyncio.get_running_loop().run_in_executor(self._pool_of(number), listed)

    @property
    def busy(self) -> Counter[str]:
        """The number of calls under way, by the name of their function."""
        return Counter(tuple(self._busy.values()))

    def _pool_of(self, number: int) -> Executor:
        """The pool with the number of threads from the settings."""
        if self._given is not None:
            return self._given
        if self._pool is None or self._number != number:
            if self._pool is not None:
                self._pool.shutdown(wait=False)
            self._pool = ThreadPoolExecutor(number, "fnop-call")
            self._number = number
        return self._pool

    def close(self) -> None:
        """Start no more functions."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


class StopFlag:
    """The argument `stopped` of an impure daemon: true once it has to stop.

    Whenever the daemon reads it, fnop updates the views that the daemon was given. This
    happens in the daemon's own thread or task and nowhere else.
    """

    def __init__(self) -> None:
        self.reason = ""
        # The operator has gone on without the call: it must not run again.
        self.is_given_up = False
        self._fresh: tuple[dict[str, Any], float] | None = None
        self._show: Callable[[dict[str, Any], float], None] = lambda data, wall: None
        self._remind: Callable[[], None] = lambda: None
        self._looking = threading.Lock()

    def set(self, reason: str) -> None:
        """Signal the daemon to stop; the first reason counts."""
        self.reason = self.reason or reason

    def refresh(self, data: dict[str, Any], wall: float) -> None:
        """Pass on its object as seen at this wall time."""
        self._fresh = data, wall

    def serves(
        self, show: Callable[[dict[str, Any], float], None], remind: Callable[[], None]
    ) -> None:
        """Set callbacks for each look at the flag: `show` only if there is news."""
        self._show, self._remind = show, remind

    def is_set(self) -> bool:
        self._show_news()
        return bool(self.reason)

    def __bool__(self) -> bool:
        return self.is_set()

    def _show_news(self) -> None:
        self._remind()
        if self._fresh is None:
            return
        with self._looking:
            fresh, self._fresh = self._fresh, None
            if fresh is not None:
                self._show(*fresh)


class LiveStopped(StopFlag):
    """Whether an impure daemon is to stop, in real time.

    `wait(seconds)` returns the answer after this time at the latest; a coroutine awaits
    it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._flag = threading.Event()
        self._event: asyncio.Event | None = None

    def on_loop(self) -> None:
        """Make it awaitable, for a coroutine."""
        self._event = asyncio.Event()
        if self.reason:
            self._event.set()

    def set(self, reason: str) -> None:
        """Signal the daemon to stop, from the loop's thread."""
        super().set(reason)
        self._flag.set()
        if self._event is not None:
            self._event.set()

    def wait(self, timeout: float | None = None) -> Any:
        if self._event is not None:
            return self._wait_for_event(self._event, timeout)
        self._flag.wait(timeout)
        return self.is_set()

    async def _wait_for_event(
        self, event: asyncio.Event, timeout: float | None
    ) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await event.wait()
        return self.is_set()


# A handler's annotations are read once, and not at each of its calls.
_known = lru_cache(maxsize=1_000)(typed)


def _typed(function: Any) -> Typed | None:
    """The converted arguments of a function; a callable object may be unhashable."""
    return (_known if isinstance(function, Hashable) else typed)(function)


# The most effects of a call that are remembered: a daemon may run for ever.
_BUILT_MAX = 1_000


class _Run:
    """One call of a function: its arguments, and the outcome of its end."""

    def __init__(
        self, call: Call, say: Callable[[Log], None], stopped: StopFlag | None
    ) -> None:
        self.call = call
        self.outside = None
        self.arguments: dict[str, Any] = call.arguments
        # Remembers the effects that the call builds; each thread or task has its own.
        self.witness = Witness(_BUILT_MAX)
        if call.as_handler:
            flag = LiveStopped() if stopped is None else stopped  # a flag may be false
            self.outside = Outside(call.arguments, say, flag)
            self.arguments = self.outside.arguments
            flag.serves(self.outside.shows, self._remind)
        self._say, self._has_reminded = say, False

    def arguments_of(self, function: Callable[..., Any]) -> Mapping[str, Any]:
        """The arguments that the annotations of a handler ask for."""
        is_of_object = self.outside is not None and self.outside.is_of_object
        reads = _typed(function) if is_of_object else None
        return self.arguments if reads is None else reads.read(self.arguments)

    def _remind(self) -> None:
        """Warn that the first effect is not performed before the handler returns."""
        if self.witness.built and not self._has_reminded:
            self._has_reminded = True
            effect, where = self.witness.built[0]
            text = (
                f"the {effect.kind} built at {where} is not performed before the "
                "handler ends and returns it; in a handler that goes on for ever await "
                "it instead, without impure=True"
            )
            with Witness.looking_away():
                self._say(Log("warning", text))

    def returned(self, value: Any) -> Outcome:
        """The outcome of a call that has returned; a rejected answer is final."""
        try:
            return Answer(self._answer(value), fns=self._fns)
        except Exception as problem:
            text = f"{self.call.function} has run, and is not tried again"
            return self.failed(PermanentError(f"{text}: {text_of(problem)}"))

    @property
    def _fns(self) -> tuple[Callable[[dict[str, Any]], object], ...]:
        return () if self.outside is None else self.outside.fns

    def _answer(self, value: Any) -> Any:
        if self.outside is not None:
            return answerable(self.outside.returned(value, self.witness), "its answer")
        found = answerable(value, "its answer")
        remedy = "a called function performs none, so let the handler build it"
        refuse_lost(self.witness, (), remedy)
        return found

    def failed(self, problem: BaseException) -> Outcome:
        _kept_for_the_log(problem)
        if self.outside is None:
            return raised(problem)
        if isinstance(problem, RuntimeError) and "bad yield" in text_of(problem):
            text = "an impure handler cannot await effects; let it return them"
            problem = PermanentError(f"{text} ({problem})")
        failure = freeze_json(self.outside.failed(problem), "the failure")
        return Answer(failure, problem, self._fns)


def _drop_line(line: Log) -> None:
    """Drop a log line."""


def called(
    function: Callable[..., Any],
    call: Call,
    say: Callable[[Log], None] = _drop_line,
    stopped: StopFlag | None = None,
) -> Outcome:
    """Run a called function in its thread; turn what it raises into an outcome.

    An exception is returned, not raised: a StopIteration cannot cross over to the loop,
    and a SystemExit would end the operator.
    """
    try:
        run = _Run(call, say, stopped)
    except Exception as problem:
        return raised(problem)
    try:
        with interruptible(), run.witness.looking():
            value = function(**run.arguments_of(function))
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
        return run.returned(value)
    except Interrupted:
        raise
    except BaseException as problem:
        return run.failed(problem)


async def called_on_loop(
    function: Callable[..., Any],
    call: Call,
    say: Callable[[Log], None] = _drop_line,
    stopped: StopFlag | None = None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Outcome:
    """Run a called coroutine function on the loop; turn what it raises into an outcome.

    Each time it runs, up to its next await, it does so within a `turn`. A cancellation
    of the task itself, as when the operator ends, is passed on.
    """
    flag = LiveStopped() if stopped is None else stopped  # a flag may be false
    try:
        run = _Run(call, say, flag)
    except Exception as problem:
        return raised(problem)
    try:
        with run.witness.looking():
            coroutine = function(**run.arguments_of(function))
            value = await _run_in_turns(coroutine, turn, flag)
        return run.returned(value)
    except asyncio.CancelledError as problem:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return run.failed(problem)
    except Interrupted:
        raise
    except BaseException as problem:  # every error is an outcome
        return run.failed(problem)


@types.coroutine
def _run_in_turns(
    coroutine: Coroutine[Any, Any, Any],
    turn: Callable[[], AbstractContextManager[None]],
    stopped: StopFlag,
) -> Generator[Any, Any, Any]:
    """Run a coroutine with each of its turns in a context of its own.

    Once given up, it gets no more turns. A coroutine that swallows its cancellation
    would otherwise keep the loop, and the process, for ever.
    """
    problem: BaseException | None = None
    while True:
        with turn(), interruptible():
            try:
                if problem is None:
                    awaited = coroutine.send(None)
                else:
                    awaited = coroutine.throw(problem)
            except StopIteration as end:
                return end.value
        problem = None
        try:
            yield awaited
        except BaseException as found:  # a cancellation, too: the coroutine receives it
            if stopped.is_given_up:
                with suppress(BaseException):
                    coroutine.close()
                raise
            problem = found


def raised(problem: BaseException) -> Raised:
    """The outcome of a call that raised, in the form that the handler gets."""
    name, text = type(problem).__name__, text_of(problem)
    match problem:
        case TemporaryError():
            return Raised("TemporaryError", text, problem.delay)
        case PermanentError():
            return Raised(name, text, permanent=True)
        case _:
            return Raised(name, text, exception=problem)


def _kept_for_the_log(problem: BaseException) -> None:
    """Make an exception show the author's code, and hold nothing else in memory."""
    steps = problem.__traceback__
    while steps is not None and steps.tb_frame.f_globals is globals():
        steps = steps.tb_next  # the first frames are in this module
    problem.with_traceback(steps)
    traceback.clear_frames(problem.__traceback__)
