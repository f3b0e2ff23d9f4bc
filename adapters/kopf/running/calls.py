"""One call of an author's function: its arguments, its thread or task, its lines.

Coroutines are tasks of the event loop of the operator's author, and never of fnop's.
Other functions run in the executor of the settings.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from datetime import UTC, datetime
from types import CodeType
from typing import Any

from msgspec import Struct

from fnop.adapters.common.tracebacks import begin_at_author, steps_of
from fnop.adapters.kopf.declaring.context import CURRENT, CurrentCall
from fnop.core.handlers.declare.filters import Combination
from fnop.core.values.errors import (
    ErrorsMode,
    HandlerRetriesError,
    HandlerTimeoutError,
    PermanentError,
    TemporaryError,
)
from fnop.interpreters.runtime.clock import Clock

__all__ = [
    "ABSENT_VALUE",
    "Attempt",
    "answer_of",
    "exit_in",
    "is_async",
    "logged",
    "plain_result",
    "report_failure",
    "run_function",
    "stored_part",
    "times",
    "untied",
]

Kwargs = Mapping[str, Any]


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether a function is a coroutine function below partials and wrappers.

    >>> async def work(): ...
    >>> is_async(functools.partial(work)), is_async(print)
    (True, False)
    """
    while True:
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif inspect.iscoroutinefunction(fn):
            return True
        elif hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        else:
            return False


class _Absent(enum.Enum):
    """The mark that filter functions get in place of an absent field.

    Kopf gives them a mark of its own, too: it is true, and equal to no value. Functions
    of labels and annotations get None.
    """

    ABSENT = "absent"


ABSENT_VALUE = _Absent.ABSENT


def answer_of(fn: Callable[..., Any], *values: Any, **kwargs: Any) -> bool:
    """The answer of an author's filter; it may be any value, also within combinations.

    >>> answer_of(lambda spec, **_: spec.get("paused"), spec={})
    False
    """
    if isinstance(fn, Combination):
        return fn.verdict(answer_of(each, *values, **kwargs) for each in fn.fns)
    return bool(fn(*values, **kwargs))


def times(started: float, now: float) -> dict[str, Any]:
    """The arguments about time: `started`, with its zone, and `runtime`."""
    begun = datetime.fromtimestamp(started, UTC)
    return {
        "started": begun,
        "runtime": datetime.fromtimestamp(now, UTC) - begun,
    }


def plain_result(value: Any) -> Any:
    """A handler's result as JSON; raises `TypeError` for what has no JSON form."""
    return None if value is None else json.loads(json.dumps(value))


_LOST = object()


def stored_part(value: Any, source: str, logger: Any) -> Any:
    """The part of a handler's result or patch that is JSON; None without any.

    The log names the other parts. As with Kopf, the handler has succeeded: a second
    call would do its work twice.

    >>> import logging
    >>> stored_part({"a": (1, 2), "b": {3}}, "result", logging.getLogger("quiet"))
    {'a': [1, 2]}
    """
    lost: dict[str, Exception] = {}
    found = _json_part(value, source, lost)
    for path, problem in lost.items():
        logger.error(f"{path} is not stored: {problem}")
    return None if found is _LOST else found


def _json_part(value: Any, path: str, lost: dict[str, Exception]) -> Any:
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as problem:
        # A mapping that contains itself has no end.
        is_endless = isinstance(problem, RecursionError) or "Circular" in str(problem)
        if is_endless or not isinstance(value, dict):
            lost[path] = problem
            return _LOST
    parts = {
        key: _json_part(each, f"{path}.{key}", lost) for key, each in value.items()
    }
    return {
        key: each
        for key, each in parts.items()
        if each is not _LOST and isinstance(key, str)
    }


def untied(problem: BaseException) -> BaseException:
    """An exception that a future can carry: a StopIteration cannot."""
    if not isinstance(problem, (StopIteration, SystemExit)):
        return problem
    made = RuntimeError(f"{type(problem).__name__}: {problem}")
    if isinstance(problem, SystemExit):
        made.exit = problem  # type: ignore[attr-defined]
    return made.with_traceback(problem.__traceback__)


def exit_in(problem: BaseException) -> SystemExit | None:
    """The `SystemExit` of an author's function, if that is the problem."""
    found = getattr(problem, "exit", None)
    return found if isinstance(found, SystemExit) else None


async def run_function(
    fn: Callable[..., Any], kwargs: Kwargs, call: CurrentCall, executor: Any
) -> Any:
    """Call a function with its context; it runs on this loop or in the executor.

    A thread cannot be cancelled: a cancellation waits for its end.
    """
    # A sub-handler is called within the call of its parent, which goes on after it.
    former = CURRENT.set(call)
    try:
        value = await _called(fn, kwargs, executor)
        if call.family is not None and call.children and not call.family.has_run:
            await call.family.run_on_loop()
    except (StopIteration, SystemExit) as found:
        raise untied(found) from None
    finally:
        CURRENT.reset(former)
    return value


async def _called(fn: Callable[..., Any], kwargs: Kwargs, executor: Any) -> Any:
    if is_async(fn):
        return await fn(**kwargs)
    context = copy_context()
    work = functools.partial(context.run, _in_thread, fn, kwargs)
    running = asyncio.get_running_loop().run_in_executor(executor, work)
    value, problem = await _to_its_end(running)
    if problem is not None:
        raise problem
    return value


def _in_thread(fn: Callable[..., Any], kwargs: Kwargs) -> tuple[Any, Any]:
    try:
        return fn(**kwargs), None
    except BaseException as problem:  # futures cannot carry all of them
        return None, untied(problem)


async def _to_its_end(running: asyncio.Future[Any]) -> Any:
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError as problem:
            cancelled = problem
    if cancelled is not None:
        raise cancelled
    return running.result()


class Attempt(Struct, frozen=True):
    """The facts that decide what a failure means, for the log line about it."""

    name: str
    errors: ErrorsMode
    backoff: float
    timeout: float | None
    retries: int | None
    retry: int
    started: float

    def words_for(self, problem: BaseException, now: float) -> str:
        """Kopf's sentence about an attempt that has failed."""
        temporary = isinstance(problem, TemporaryError)
        text = str(problem) or (str(None) if temporary else repr(problem))
        if isinstance(problem, (HandlerTimeoutError, HandlerRetriesError)):
            return text
        if isinstance(problem, PermanentError):
            return f"{self.name} failed permanently: {text}"
        if not temporary and self.errors is ErrorsMode.IGNORED:
            return f"{self.name} failed with an exception and will ignore it: {text}"
        if not temporary and self.errors is ErrorsMode.PERMANENT:
            return f"{self.name} failed with an exception and will stop now: {text}"
        delay = getattr(problem, "delay", None) if temporary else self.backoff
        runtime = now - self.started + (delay or 0.0)
        if self.timeout is not None and runtime >= self.timeout:
            if temporary:
                end = f"will time out after {self.timeout} seconds"
                return f"{self.name} failed temporarily but {end}: {text}"
            end = f"it would time out in {self.timeout} seconds on the next attempt"
            stops = f"failed with an exception and will stop now ({end})"
            return f"{self.name} {stops}: {text}"
        if self.retries is not None and self.retry + 1 >= self.retries:
            if temporary:
                end = f"will exceed {self.retries} retries"
                return f"{self.name} failed temporarily but {end}: {text}"
            end = f"it would exceed {self.retries} retries on the next attempt"
            stops = f"failed with an exception and will stop now ({end})"
            return f"{self.name} {stops}: {text}"
        if temporary:
            return f"{self.name} failed temporarily: {text}"
        again = f"will try again in {self.backoff} seconds"
        return f"{self.name} failed with an exception and {again}: {text}"


async def logged(
    attempt: Attempt, logger: Any, clock: Clock, work: Callable[[], Awaitable[Any]]
) -> Any:
    """Await a call, and log its beginning and its end in Kopf's words."""
    logger.debug(f"{attempt.name} is invoked.")
    try:
        value = await work()
    except asyncio.CancelledError:
        logger.warning(f"{attempt.name} is cancelled. Will escalate.")
        raise
    except Exception as problem:
        if getattr(problem, "is_of_children", False):
            logger.debug(
                f"{attempt.name} has unfinished sub-handlers. Will retry soon."
            )
            raise
        report_failure(attempt, logger, problem, clock.now().wall)
        raise
    logger.info(f"{attempt.name} succeeded.")
    return value


def report_failure(
    attempt: Attempt, logger: Any, problem: Exception, now: float
) -> None:
    """Log the end of an attempt that has failed, with a traceback if it is a bug."""
    text = attempt.words_for(problem, now)
    is_expected = isinstance(problem, (PermanentError, TemporaryError))
    if exit_in(problem) is not None:
        text, is_expected = f"{attempt.name} ends the operator: {problem}", True
    _trim(problem)
    logger.error(text, exc_info=None if is_expected else problem)


def _trim(problem: Exception) -> None:
    """Leave the lines of fnop out of a traceback.

    If the parameters of a function do not fit its call, there are no other lines: a
    note has the place of the function.
    """
    begin_at_author(problem)
    inner = [each.tb_frame for each in steps_of(problem)][-1:]
    if not inner or inner[0].f_code not in (_called.__code__, _in_thread.__code__):
        return
    code = getattr(inspect.unwrap(inner[0].f_locals["fn"]), "__code__", None)
    if isinstance(code, CodeType):
        place = f"{code.co_filename}, line {code.co_firstlineno}"
        problem.add_note(
            f"{place}: let its parameters be Kopf's arguments and **kwargs"
        )
        problem.with_traceback(None)
