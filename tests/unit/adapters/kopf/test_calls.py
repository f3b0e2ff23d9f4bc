"""Calls of an author's functions: in threads and tasks, to their ends, and logged."""

from __future__ import annotations

import asyncio
import doctest
import functools
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import pytest

from fnop.adapters.kopf.declaring.context import CurrentCall, current_call
from fnop.adapters.kopf.running import calls
from fnop.adapters.kopf.running.calls import (
    Attempt,
    is_async,
    logged,
    plain_result,
    run_function,
    stored_part,
    times,
    untied,
)
from fnop.adapters.kopf.running.subhandlers import ChildrenRetry
from fnop.core.values.errors import (
    ErrorsMode,
    HandlerRetriesError,
    HandlerTimeoutError,
    PermanentError,
    TemporaryError,
)
from fnop.effects.structs import replace
from fnop.interpreters.runtime.clock import SystemClock

CALL = CurrentCall("a", {"metadata": {"name": "a"}}, None)


@pytest.fixture(scope="module")
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as found:
        yield found


def plain(**_: Any) -> None: ...


async def awaited(**_: Any) -> None: ...


@functools.wraps(awaited)
def around_awaited(**_: Any) -> Any: ...


@functools.wraps(plain)
async def around_plain(**_: Any) -> Any: ...


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(calls)
    assert found.attempted
    assert found.failed == 0


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (plain, False),
        (awaited, True),
        (functools.partial(awaited), True),
        (functools.partial(functools.partial(plain)), False),
        (around_awaited, True),
        (around_plain, True),
        (functools.partial(around_awaited), True),
        (lambda **_: None, False),
        (print, False),
    ],
    ids=range(9),
)
def test_a_coroutine_function_is_found_below_wrappers(
    fn: Callable[..., Any], wanted: bool
) -> None:
    assert is_async(fn) is wanted


# ----------------------------------------------------------------- threads and tasks


async def test_a_function_runs_in_a_thread_and_a_coroutine_on_the_loop(
    executor: ThreadPoolExecutor,
) -> None:
    def sync(number: int) -> Any:
        return number, threading.current_thread()

    async def coroutine(number: int) -> Any:
        return number, threading.current_thread()

    found = await run_function(sync, {"number": 1}, CALL, executor)
    assert found[0] == 1
    assert found[1] is not threading.current_thread()
    found = await run_function(coroutine, {"number": 2}, CALL, executor)
    assert found == (2, threading.current_thread())


VARIABLE: ContextVar[str] = ContextVar("variable")


@pytest.mark.parametrize("kind", ["thread", "task"])
async def test_a_function_has_the_context_of_its_call(
    executor: ThreadPoolExecutor, kind: str
) -> None:
    def sync() -> Any:
        return VARIABLE.get(), current_call().handler

    async def coroutine() -> Any:
        return sync()

    VARIABLE.set("outside")
    fn = sync if kind == "thread" else coroutine
    assert await run_function(fn, {}, CALL, executor) == ("outside", "a")


async def test_a_thread_keeps_its_changes_of_the_context_to_itself(
    executor: ThreadPoolExecutor,
) -> None:
    VARIABLE.set("before")
    await run_function(lambda: VARIABLE.set("inside"), {}, CALL, executor)
    assert VARIABLE.get() == "before"


@pytest.mark.parametrize("kind", ["thread", "task"])
@pytest.mark.parametrize(
    ("problem", "wanted", "text"),
    [
        (StopIteration("end"), RuntimeError, "StopIteration"),
        (SystemExit(3), RuntimeError, "SystemExit: 3"),
        (ValueError("wrong"), ValueError, "wrong"),
        (TemporaryError("later"), TemporaryError, "later"),
    ],
    ids=["StopIteration", "SystemExit", "ValueError", "TemporaryError"],
)
async def test_an_error_of_a_handler_is_an_error_of_the_call(
    executor: ThreadPoolExecutor,
    kind: str,
    problem: BaseException,
    wanted: type[Exception],
    text: str,
) -> None:
    def sync() -> None:
        raise problem

    async def coroutine() -> None:
        raise problem

    fn = sync if kind == "thread" else coroutine
    with pytest.raises(wanted, match=text):
        await run_function(fn, {}, CALL, executor)
    assert await run_function(lambda: "again", {}, CALL, executor) == "again"


def test_what_a_future_can_carry_stays_as_it_is() -> None:
    problem = KeyError("k")
    assert untied(problem) is problem
    assert isinstance(untied(StopIteration()), RuntimeError)


async def test_a_cancellation_waits_for_the_thread(
    executor: ThreadPoolExecutor,
) -> None:
    begun, may_end, ended = (threading.Event() for _ in range(3))

    def slow() -> None:
        begun.set()
        may_end.wait()
        ended.set()

    running = asyncio.create_task(run_function(slow, {}, CALL, executor))
    await asyncio.to_thread(begun.wait)
    for _ in range(2):
        running.cancel()
        await asyncio.sleep(0)
    assert not running.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()


async def test_a_coroutine_is_cancelled_at_once(executor: ThreadPoolExecutor) -> None:
    cancelled = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    running = asyncio.create_task(run_function(slow, {}, CALL, executor))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert cancelled == [True]


# ------------------------------------------------------------------------ arguments


def test_times_have_a_zone() -> None:
    found = times(60.0, 120.0)
    assert found["started"] == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert found["runtime"].total_seconds() == 60


ENDLESS: dict[str, Any] = {}
ENDLESS["a"] = ENDLESS


def test_results_are_json() -> None:
    assert plain_result(None) is None
    assert plain_result({"a": (1, 2)}) == {"a": [1, 2]}
    with pytest.raises(TypeError, match="JSON"):
        plain_result(object())


@pytest.mark.parametrize(
    ("value", "stored", "lost"),
    [
        (None, None, []),
        (0, 0, []),
        ({"a": (1,)}, {"a": [1]}, []),
        (datetime(2030, 1, 1, tzinfo=UTC), None, ["part"]),
        (float("nan"), None, ["part"]),
        ({"a": {"b": {1}, "c": 1}, "d": 2}, {"a": {"c": 1}, "d": 2}, ["part.a.b"]),
        ({"a": [{1}]}, {}, ["part.a"]),
        ({"a": ENDLESS, "b": 1}, None, ["part"]),
    ],
)
def test_what_is_not_json_is_reported_and_not_stored(
    value: Any, stored: Any, lost: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    found = stored_part(value, "part", logging.getLogger("stored"))
    assert found == stored
    lines = [each.getMessage().partition(" ")[0] for each in caplog.records]
    assert lines == lost


# ---------------------------------------------------------------------------- lines

ATTEMPT = Attempt("Handler 'a'", ErrorsMode.TEMPORARY, 60, None, None, 0, 0.0)
FAILS = "failed with an exception and"


@pytest.mark.parametrize(
    ("changes", "problem", "wanted"),
    [
        ({}, PermanentError("no"), "failed permanently: no"),
        ({}, TemporaryError(), "failed temporarily: None"),
        ({}, TemporaryError("later", delay=3), "failed temporarily: later"),
        ({}, ValueError("x"), f"{FAILS} will try again in 60 seconds: x"),
        ({}, ValueError(), f"{FAILS} will try again in 60 seconds: ValueError()"),
        (
            {"errors": ErrorsMode.IGNORED},
            ValueError("x"),
            f"{FAILS} will ignore it: x",
        ),
        (
            {"errors": ErrorsMode.PERMANENT},
            ValueError("x"),
            f"{FAILS} will stop now: x",
        ),
        (
            {"errors": ErrorsMode.PERMANENT},
            TemporaryError("x"),
            "failed temporarily: x",
        ),
        ({"errors": ErrorsMode.IGNORED}, PermanentError("x"), "failed permanently: x"),
        (
            {"timeout": 30},
            ValueError("x"),
            f"{FAILS} will stop now (it would time out in 30 seconds on the next "
            "attempt): x",
        ),
        (
            {"timeout": 30},
            TemporaryError("x", delay=40),
            "failed temporarily but will time out after 30 seconds: x",
        ),
        ({"timeout": 90}, TemporaryError("x", delay=5), "failed temporarily: x"),
        (
            {"retries": 1},
            ValueError("x"),
            f"{FAILS} will stop now (it would exceed 1 retries on the next attempt): x",
        ),
        (
            {"retries": 3, "retry": 2},
            TemporaryError("x"),
            "failed temporarily but will exceed 3 retries: x",
        ),
        ({"retries": 3, "retry": 1}, TemporaryError("x"), "failed temporarily: x"),
    ],
    ids=range(15),
)
def test_a_failure_has_the_sentence_of_kopf(
    changes: dict[str, Any], problem: Exception, wanted: str
) -> None:
    found = replace(ATTEMPT, **changes).words_for(problem, 0.0)
    assert found == f"Handler 'a' {wanted}"


@pytest.mark.parametrize("kind", [HandlerTimeoutError, HandlerRetriesError])
def test_errors_that_handlers_take_from_kopf_are_their_own_sentences(
    kind: type[Exception],
) -> None:
    assert ATTEMPT.words_for(kind("had enough"), 0.0) == "had enough"


LOGGER = logging.getLogger("tests.calls")


async def lines_of(
    caplog: pytest.LogCaptureFixture, outcome: Any
) -> list[tuple[int, str, bool]]:
    async def work() -> Any:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    caplog.clear()
    caplog.set_level(logging.DEBUG)
    if isinstance(outcome, BaseException):
        with pytest.raises(type(outcome)):
            await logged(ATTEMPT, LOGGER, SystemClock(), work)
    else:
        assert await logged(ATTEMPT, LOGGER, SystemClock(), work) == outcome
    return [
        (each.levelno, each.getMessage(), bool(each.exc_info))
        for each in caplog.records
        if each.name == LOGGER.name
    ]


@pytest.mark.parametrize(
    ("outcome", "level", "text", "has_trace"),
    [
        (5, logging.INFO, "succeeded.", False),
        (PermanentError("x"), logging.ERROR, "failed permanently: x", False),
        (TemporaryError("x"), logging.ERROR, "failed temporarily: x", False),
        (
            ValueError("x"),
            logging.ERROR,
            "failed with an exception and will try again in 60 seconds: x",
            True,
        ),
        (
            ChildrenRetry("x", delay=1),
            logging.DEBUG,
            "has unfinished sub-handlers. Will retry soon.",
            False,
        ),
        (
            asyncio.CancelledError(),
            logging.WARNING,
            "is cancelled. Will escalate.",
            False,
        ),
    ],
    ids=["success", "permanent", "temporary", "error", "children", "cancelled"],
)
async def test_a_call_is_logged_at_its_beginning_and_its_end(
    caplog: pytest.LogCaptureFixture,
    outcome: Any,
    level: int,
    text: str,
    has_trace: bool,
) -> None:
    assert await lines_of(caplog, outcome) == [
        (logging.DEBUG, "Handler 'a' is invoked.", False),
        (level, f"Handler 'a' {text}", has_trace),
    ]
