"""Impure handlers: whole handlers that run outside, as one recorded call (R9)."""

from __future__ import annotations

import asyncio
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.core import errors, impure, resources
from fnop.core.registry import Registry
from fnop.effects import Call, builders
from fnop.effects.wire import from_wire, to_wire
from fnop.interpreters.clock import ThreadClock
from fnop.interpreters.run import SLOW_STEP_SECONDS
from fnop.interpreters.watchdog import Watchdog
from fnop.testing import plan_of
from tests.live import operating
from tests.simulations import Scenario, example

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("module", [impure, resources, builders, errors])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    import doctest

    assert doctest.testmod(module).failed == 0


# Handlers that run outside stand at the top level of a module.


def everything(**kwargs: Any) -> dict[str, Any]:
    kwargs["logger"].info("seen %s", kwargs["name"])
    kwargs["patch"].status["seen"] = kwargs["spec"]["size"]
    assert kwargs["body"].spec == kwargs["spec"]
    assert kwargs["meta"].name == kwargs["name"] == "example-1"
    assert kwargs["resource"].plural == KIND
    assert kwargs["runtime"].total_seconds() == 0
    assert kwargs["now"] == kwargs["started"]
    return {"reason": kwargs["reason"], "thread": threading.current_thread().name}


def changed(old: Any, new: Any, diff: Any, patch: Any, **_: Any) -> None:
    patch.status["diff"] = [list(map(str, item)) for item in diff]
    patch.status["sizes"] = [old["spec"]["size"], new["spec"]["size"]]


def planning(name: str, **_: Any) -> list[fnop.Effect]:
    return [
        fnop.event("Made", f"a map for {name}"),
        fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap", "data": {"for": name}}),
    ]


def failing(patch: Any, retry: int, **_: Any) -> None:
    patch.status["tries"] = retry + 1
    if retry < 2:
        raise fnop.TemporaryError("not yet", delay=5)
    raise fnop.PermanentError("never")


def dropping() -> None:
    fnop.event("Lost", "nobody returns it")


async def awaiting(**_: Any) -> None:
    await fnop.sleep(1)


def connecting(memo: Any, **_: Any) -> fnop.Effect:
    return fnop.remember(address="db.example.com")


def running(registry: Registry, **calls: Any) -> Scenario:
    models = {f"{__name__}:{name}": fn for name, fn in calls.items()}
    return Scenario(registry, [example(size=1)], calls=models)


def test_r9_it_gets_the_arguments_of_a_handler(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(everything)
    run = Scenario(
        registry,
        [example(size=1)],
        calls={f"{__name__}:everything": everything},
    )
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["status"]["seen"] == 1
    assert found["status"]["everything"]["reason"] == "create"
    assert "seen example-1" in run.lines


def everything_wanted(
    logger: Any, patch: Any, body: Any, spec: Any, meta: Any, name: str, **kwargs: Any
) -> dict[str, Any]:
    return everything(
        logger=logger, patch=patch, body=body, spec=spec, meta=meta, name=name, **kwargs
    )


def test_r9_old_new_and_diff(registry: Registry) -> None:
    fnop.on.update(KIND, registry=registry, impure=True)(changed)
    fnop.on.create(KIND, registry=registry)(lambda_free)
    run = running(registry, changed=changed)
    assert run.settle()
    run.edit(KIND, spec={"size": 2})
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["status"]["sizes"] == [1, 2]
    assert found["status"]["diff"] == [["change", "('spec', 'size')", "1", "2"]]


def lambda_free(**_: Any) -> None:
    """A creation to begin with."""


def test_r9_its_effects_are_performed_as_those_of_any_other(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(planning)
    run = running(registry, planning=planning)
    assert run.settle()
    (child,) = run.objects("configmaps")
    assert child["data"] == {"for": "example-1"}
    assert [each["reason"] for each in run.objects("events")] == ["Made"]


def test_r9_its_errors_mean_what_they_mean_everywhere(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(failing)
    run = running(registry, failing=failing)
    run.settle()
    assert run.clock.elapsed == pytest.approx(10, abs=1)
    found = run.get(KIND)
    assert found is not None
    assert found["status"]["tries"] == 3
    assert any("failing failed for good" in line for line in run.lines)


def dividing(spec: Any, **_: Any) -> float:
    return float(1 / spec["size"])


async def dividing_on_the_loop(spec: Any, **_: Any) -> float:
    return dividing(spec)


@pytest.mark.parametrize("handler", [dividing, dividing_on_the_loop])
def test_what_it_raises_is_shown_where_it_was_raised(
    registry: Registry, handler: Any
) -> None:
    decorate: Any = fnop.on.create(KIND, registry=registry, impure=True)
    decorate(handler)

    async def story() -> Any:
        async with operating(registry, [example(size=0)]) as run:
            await run.until(lambda: any(say.error for say in run.said))
            return next(say.exception for say in run.said if say.error)

    problem = asyncio.run(story())
    assert isinstance(problem, ZeroDivisionError)
    names = [step.name for step in traceback.extract_tb(problem.__traceback__)]
    assert names[0] == handler.__name__
    assert names[-1] == "dividing"


def transforming(patch: Any, **_: Any) -> None:
    patch.fns.append(lambda body: body.clear())


def test_k_5_3_functions_cannot_be_handed_over(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True, retries=1)(transforming)
    run = running(registry, transforming=transforming)
    assert run.settle()
    assert any("an impure handler cannot hand over" in line for line in run.lines)


def test_r9_what_is_not_simulated_says_so(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True, retries=1)(planning)
    run = running(registry)
    run.settle()
    assert any("planning is not simulated" in line for line in run.lines)


def test_r9_startup_handlers_can_be_impure(registry: Registry) -> None:
    fnop.on.startup(registry=registry, impure=True)(connecting)
    run = running(registry, connecting=connecting)
    assert run.settle()
    assert run.exit is None


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda r: fnop.on.create(KIND, registry=r, impure=True)(lambda **_: 0), "id="),
        (
            lambda r: fnop.on.create(KIND, registry=r, impure=True, id="x")(
                lambda **_: 0
            ),
            "top level of a module",
        ),
        (
            lambda r: fnop.on.startup(registry=r, impure=True)(settling),
            "no settings",
        ),
        (
            lambda r: fnop.on.create(KIND, registry=r, impure=True)(yielding),
            "cannot yield",
        ),
        (
            lambda r: fnop.index(KIND, registry=r, impure=True)(  # type: ignore[call-arg]
                lambda_free
            ),
            "no option impure=",
        ),
    ],
)
def test_what_cannot_run_outside_is_refused(
    declare: Any, sentence: str, **_: Any
) -> None:
    with pytest.raises(fnop.RegistrationError, match=sentence):
        declare(Registry())


def settling(settings: Any, **_: Any) -> None:
    """No impure handler has settings."""


def yielding(**_: Any) -> Any:
    yield fnop.sleep(1)


def test_the_plan_of_an_impure_handler_is_what_it_returns() -> None:
    registry = Registry()
    fnop.on.create(KIND, registry=registry, impure=True)(planning)
    plan = plan_of(planning, body=example(), registry=registry)
    assert [each.kind for each in plan] == ["Event", "Adopt"]


def test_its_call_survives_the_wire() -> None:
    call = Call("module:name", {"wants": []}, as_handler=True)
    assert from_wire(to_wire(call)) == call


# ----------------------------------------------------- on the loop, in threads


def test_a_plain_one_runs_in_a_thread(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(threaded)

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            await run.until(lambda: "threaded" in run.status())
            assert run.status()["threaded"].startswith("fnop-call")
            assert "from the thread" in run.lines

    asyncio.run(story())


def threaded(logger: Any, **_: Any) -> str:
    logger.info("from the thread")
    return threading.current_thread().name


def test_a_coroutine_runs_on_the_loop(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(looping)

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            await run.until(lambda: "looping" in run.status())

    asyncio.run(story())


async def looping(**_: Any) -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_effects_are_returned_and_not_awaited(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(awaiting)

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            await run.until(
                lambda: any("cannot await effects" in line for line in run.lines)
            )

    asyncio.run(story())


@pytest.mark.parametrize("name", ["patient_thread", "patient_coroutine"])
def test_r9_a_daemon_is_told_to_stop(registry: Registry, name: str) -> None:
    fnop.daemon(KIND, registry=registry, impure=True)(globals()[name])

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            await run.until(lambda: "it has begun" in run.lines)
            run.delete()
            await run.until(lambda: run.get() is None)
            assert "it ends: the object is deleted" in " ".join(run.lines)

    asyncio.run(story())


def patient_thread(stopped: Any, logger: Any) -> None:
    logger.info("it has begun")
    while not stopped.wait(60):
        pass
    logger.info("it ends: the object is deleted")


async def patient_coroutine(stopped: Any, logger: Any) -> None:
    logger.info("it has begun")
    while not await stopped.wait(60):
        pass
    logger.info("it ends: the object is deleted")


def test_r9_a_coroutine_that_does_not_listen_is_cancelled(registry: Registry) -> None:
    fnop.daemon(KIND, registry=registry, impure=True)(deaf)

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            await run.until(lambda: "it has begun" in run.lines)
            run.delete()
            await run.until(lambda: run.get() is None)
            assert "it is cancelled" in run.lines

    asyncio.run(story())


async def deaf(logger: Any, **_: Any) -> None:
    logger.info("it has begun")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        logger.info("it is cancelled")
        raise


# --------------------------------------------------------- who does not come back


def test_a_step_that_takes_too_long_is_named() -> None:
    said: list[str] = []
    told = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        told.set()

    times = Times()
    watchdog = Watchdog(say, patience=0.01, times=times)
    watchdog.begin()
    times.passed = 7.0
    assert told.wait(20)
    watchdog.end()
    watchdog.close()
    assert "the operator stands still for 7.0 s, at " in said[0]
    assert "test_impure.py:" in said[0]
    assert "impure handler" in said[0]


class Times:
    """The clock of a thread, as a test says."""

    def __init__(self, queued: float | None = 0.0) -> None:
        self.passed = self.worked = 0.0
        self.queued = queued

    def mono(self) -> float:
        return self.passed

    def busy(self) -> float:
        return self.worked

    def waited(self) -> float | None:
        return self.queued


@pytest.mark.parametrize(
    ("passed", "worked", "queued", "own"),
    [
        (3.0, 0.0, 0.0, 3.0),  # a handler that sleeps
        (3.0, 3.0, 0.0, 3.0),  # one that computes
        (3.0, 0.1, 2.9, 0.1),  # a machine with too much to do
        (3.0, 1.0, 1.5, 1.5),  # both
        (3.0, 0.1, None, 0.1),  # where the kernel does not tell
        (0.2, 0.1, 0.1, 0.2),  # nothing to be looked at closely
    ],
)
def test_a_step_is_blamed_for_its_own_time(
    passed: float, worked: float, queued: float | None, own: float
) -> None:
    times = Times(None if queued is None else 10.0)
    watchdog = Watchdog(lambda text: None, times=times)
    times.passed, times.worked = 50.0, 20.0
    watchdog.begin()
    times.passed, times.worked = 50.0 + passed, 20.0 + worked
    times.queued = None if queued is None else 10.0 + queued
    took = watchdog.end(0.5)
    watchdog.close()
    assert took == pytest.approx(own)


def test_a_handler_that_blocks_is_named(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="blocking")
    def blocking(**_: Any) -> None:
        threading.Event().wait(SLOW_STEP_SECONDS * 1.2)

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            await run.until(
                lambda: any("blocking blocked the operator" in e for e in run.lines)
            )

    asyncio.run(story())


def test_a_thread_that_waits_for_a_processor_stands_not_still() -> None:
    said: list[str] = []
    looked = threading.Semaphore(0)

    class Looked(Times):
        def waited(self) -> float | None:
            looked.release()
            return self.queued

    times = Looked()
    watchdog = Watchdog(said.append, patience=0.01, times=times)
    watchdog.begin()
    times.queued = times.passed = 60.0
    for _ in range(5):
        assert looked.acquire(timeout=20)
    watchdog.end()
    watchdog.close()
    assert said == []


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux tells it")
def test_the_kernel_tells_how_long_a_thread_has_waited() -> None:
    clock = ThreadClock()
    before = clock.waited()
    sum(range(100_000))
    after = clock.waited()
    assert before is not None
    assert after is not None
    assert 0 <= before <= after
    assert clock.busy() > 0


def test_a_plain_daemon_is_refused() -> None:
    def daemon(stopped: Any, **_: Any) -> None:
        """It would never let anybody else have a turn."""

    with pytest.raises(fnop.RegistrationError, match="a daemon awaits something"):
        fnop.daemon(KIND, registry=Registry())(daemon)
