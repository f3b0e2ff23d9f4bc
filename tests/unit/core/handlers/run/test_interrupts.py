"""Errors of an author's code that are not `Exception`, and code that does not end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.state import lifecycle
from fnop.effects import Call
from fnop.interpreters.runtime import outside
from fnop.interpreters.runtime.calls import called_on_loop
from fnop.interpreters.runtime.interrupts import Interrupted, interruptible
from fnop.testing import plan_of
from tests.live import LiveRun, operating
from tests.patience import patience
from tests.simulations import Scenario, example

KIND = "fnopexamples"
BEGUN: list[str] = []


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Handle SIGINT as in a terminal, even if the tests run in the background."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.fixture
def registry() -> Iterator[Registry]:
    BEGUN.clear()
    yield Registry()
    # Python's own handler is in force again, whatever has happened.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Panic(BaseException):
    """As extensions in Rust raise it (PyO3's PanicException)."""


ERRORS: dict[str, type[BaseException]] = {
    "Panic": Panic,
    "GeneratorExit": GeneratorExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": SystemExit,
}


async def raises(spec: Any, **_: Any) -> None:
    await asyncio.sleep(0)
    raise ERRORS[spec["error"]]("no way")


async def raising(error: str) -> None:
    await asyncio.sleep(0)
    raise ERRORS[error]("no way")


# ------------------------------------------------- a coroutine that runs outside


async def failed_for_good(registry: Registry, error: str) -> LiveRun:
    manifest = {**example(), "spec": {"error": error}}
    async with operating(registry, [manifest]) as run:
        await run.until(lambda: any("failed for good" in line for line in run.lines))
    return run


@pytest.mark.parametrize("error", ERRORS)
async def test_a_coroutine_fails_whatever_it_raises(
    registry: Registry, error: str
) -> None:
    fnop.on.create(KIND, registry=registry, impure=True, retries=2, backoff=0.01)(
        raises
    )
    run = await failed_for_good(registry, error)
    (line,) = [line for line in run.lines if "failed for good" in line]
    assert "no way" in line


@pytest.mark.parametrize("error", ERRORS)
async def test_a_called_coroutine_fails_whatever_it_raises(
    registry: Registry, error: str
) -> None:
    @fnop.on.create(KIND, registry=registry, retries=2, backoff=0.01)
    async def calls(spec: Any, **_: Any) -> None:
        await fnop.call(raising, error=spec["error"])

    run = await failed_for_good(registry, error)
    (line,) = [line for line in run.lines if "failed for good" in line]
    assert error in line
    assert "no way" in line


def test_ctrl_c_in_a_coroutine_is_no_failure_of_it(registry: Registry) -> None:
    async def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        called_on_loop(interrupted, Call("m:interrupted", {})).send(None)


# --------------------------------------------------------------- within a step


def interrupts(**_: Any) -> None:
    raise KeyboardInterrupt("no way")


def interrupts_filter(**_: Any) -> bool:
    raise KeyboardInterrupt("no way")


def test_a_handler_that_raises_a_keyboard_interrupt_fails(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, id="own", retries=2)(interrupts)
    run = Scenario(registry, [example()])
    assert run.settle()
    assert any("KeyboardInterrupt: no way" in line for line in run.lines)


def test_a_filter_that_raises_a_keyboard_interrupt_fails(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, when=interrupts_filter)
    def never(**_: Any) -> None:
        raise AssertionError

    @fnop.on.create(KIND, registry=registry)
    def other(**_: Any) -> dict[str, Any]:
        return {"done": True}

    run = Scenario(registry, [example()])
    assert run.settle()
    assert any("KeyboardInterrupt: no way" in line for line in run.lines)


def test_a_function_of_a_patch_that_raises_one_fails(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, retries=1)
    def patches(patch: Any, **_: Any) -> None:
        patch.fns.append(lambda body: interrupts())

    run = Scenario(registry, [example()])
    assert run.settle()
    assert any("KeyboardInterrupt: no way" in line for line in run.lines)


def deaf(**_: Any) -> None:
    """It is interrupted, and takes that for an error of its library."""
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        BEGUN.append("caught")


@pytest.mark.parametrize("impure", [False, True])
def test_ctrl_c_ends_a_simulation_in_any_case(registry: Registry, impure: bool) -> None:
    fnop.on.create(KIND, registry=registry, impure=impure)(deaf)
    run = Scenario(registry, [example()], calls={f"{__name__}:deaf": deaf})
    with pytest.raises(KeyboardInterrupt):
        run.settle()
    assert BEGUN == ["caught"]


def test_ctrl_c_ends_the_innermost_block_in_which_it_was_pressed() -> None:
    def blocks() -> None:
        with interruptible():
            with interruptible():
                deaf()
            BEGUN.append("went on")

    BEGUN.clear()
    with pytest.raises(Interrupted):
        blocks()
    assert BEGUN == ["caught"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("sigint", [signal.default_int_handler, signal.SIG_IGN])
def test_sigterm_is_heard_where_it_is_an_interruption(sigint: Any) -> None:
    """Even in the background of a shell, where SIGINT is ignored."""

    def block() -> None:
        with interruptible(), suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)

    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    usual = signal.signal(signal.SIGINT, sigint)
    try:
        with pytest.raises(Interrupted):
            block()
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is sigint
    finally:
        signal.signal(signal.SIGTERM, former)
        signal.signal(signal.SIGINT, usual)
    with interruptible():
        assert signal.getsignal(signal.SIGTERM) is former


@pytest.mark.parametrize("impure", [False, True])
def test_ctrl_c_ends_a_test_of_a_plan(registry: Registry, impure: bool) -> None:
    handler = fnop.on.create(KIND, registry=registry, impure=impure)(deaf)
    with pytest.raises(KeyboardInterrupt):
        plan_of(handler, body=example())


# ------------------------------------------------------------ who does not let go


async def deaf_to_cancellation() -> None:
    BEGUN.append("begun")
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            BEGUN.append("cancelled")


async def tidies() -> None:
    BEGUN.append("begun")
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(0.05)
        BEGUN.append("tidied")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in progress is cancelled soon after the first signal."""
    monkeypatch.setattr(lifecycle, "_STOPPING_SHARE", 0.01)


async def ending(registry: Registry, *, stops: int) -> LiveRun:
    """An operator that is asked to stop so often while a call is under way."""
    run = LiveRun(registry)
    run.create()
    task = asyncio.create_task(run.runner.run())
    await run.until(lambda: BEGUN)
    run.runner.stop("SIGTERM")
    for _ in range(stops - 1):
        await asyncio.sleep(lifecycle.REPEAT_SECONDS)
        run.runner.stop("SIGTERM")
    async with asyncio.timeout(patience(20)):
        await task
    return run


def calling(registry: Registry, function: Any) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def calls(**_: Any) -> None:
        await fnop.call(function)


async def test_who_swallows_its_cancellation_is_given_up(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "TIDY_SECONDS", 0.05)
    calling(registry, deaf_to_cancellation)
    before = asyncio.all_tasks()
    run = await ending(registry, stops=1)
    assert BEGUN == ["begun", "cancelled"]
    (line,) = [line for line in run.lines if "was cancelled and goes on" in line]
    assert "deaf_to_cancellation" in line
    assert asyncio.all_tasks() == before, "the loop can be closed"


async def test_a_second_wish_gives_it_up_at_once(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "TIDY_SECONDS", patience(40))
    calling(registry, deaf_to_cancellation)
    await ending(registry, stops=2)
    assert BEGUN == ["begun", "cancelled"]


async def test_who_tidies_up_is_waited_for(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "TIDY_SECONDS", patience(5))
    calling(registry, tidies)
    run = await ending(registry, stops=1)
    assert BEGUN == ["begun", "tidied"]
    assert not any("goes on" in line for line in run.lines)
