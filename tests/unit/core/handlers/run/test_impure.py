"""Impure handlers: whole handlers that run outside, as one recorded call (R9)."""

from __future__ import annotations

import asyncio
import gc
import inspect
import io
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import fnop
from fnop.core.api import resources
from fnop.core.handlers.declare import plans
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run import impure
from fnop.core.seam.commands import Command, Interrupt, Perform, Refresh
from fnop.core.seam.inputs import Answered, Input
from fnop.core.seam.wire import command_to_wire, input_to_wire
from fnop.core.values import errors
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import Call, Raised, Witness, builders
from fnop.effects.wire import from_wire, to_wire
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.recording.replay.replay import read_header, read_records, replay
from fnop.interpreters.runtime.calls import called_on_loop
from fnop.interpreters.runtime.clock import SystemClock, ThreadClock
from fnop.interpreters.runtime.watchdog import SLOW_STEP_SECONDS, Onlooker, Watchdog
from fnop.interpreters.simulation import threads
from fnop.testing import plan_of
from tests.commands import fnop as command
from tests.example_scenarios import own_status
from tests.live import LiveRun, operating
from tests.patience import eventually, patience, soon
from tests.recordings import text_of
from tests.simulations import DEFINITION, Scenario, example

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("module", [impure, plans, resources, builders, errors])
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
    patch.spec["field"] = "patched"
    patch.fns.append(lambda body: body["spec"].update(also=body["spec"]["field"]))


def test_k_5_3_functions_are_applied_to_the_object_as_it_is_written(
    registry: Registry,
) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(transforming)
    run = running(registry, transforming=transforming)
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    spec = found["spec"]
    assert (spec["field"], spec["also"]) == ("patched", "patched")


def test_k_5_3_without_the_functions_their_change_is_known() -> None:
    body = {"metadata": {"name": "a", "uid": "u"}, "spec": {"field": "value"}}
    facts = {"body": body, "moments": [0.0, 0.0]}
    arguments = {"wants": ["patch"], "indices": [], "facts": facts}
    outside = impure.Outside(arguments, lambda line: None, None)
    transforming(**outside.arguments)
    answer = outside.returned(None, Witness())
    for fns in (outside.fns, ()):
        (patch, change) = impure.ended(answer, fns).changes
        assert patch.merge == {"spec": {"field": "patched"}}
        found: Any = {"spec": {"field": "patched"}}
        change.change(found)  # type: ignore[union-attr]  # it is not a patch
        assert found == {"spec": {"field": "patched", "also": "patched"}}
    assert len(outside.fns) == 1


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


@pytest.mark.parametrize("name", ["watching", "watching_on_a_loop"])
def test_the_plan_of_an_impure_daemon_takes_no_time(name: str) -> None:
    registry, handler = Registry(), globals()[name]
    fnop.daemon(KIND, registry=registry, impure=True)(handler)
    body = example(size=1)
    plan = plan_of(handler, body, answers=[False, False, True], registry=registry)
    assert plan.result == "done"
    said = [line.message for line in plan.lines]
    assert said == ["round 1: size 1", "round 2: size 1", "told: resource_deleted"]
    ends = [False, fnop.PermanentError("enough")]
    plan = plan_of(handler, body, answers=ends, registry=registry)
    assert plan.failed("enough")
    with pytest.raises(AssertionError, match="goes on; a test of a daemon gives"):
        plan_of(handler, body, registry=registry)


def test_a_daemon_that_never_waits_has_no_plan() -> None:
    registry = Registry()
    fnop.daemon(KIND, registry=registry, impure=True)(busy)
    with pytest.raises(AssertionError, match="asked for 1000 effects and goes on"):
        plan_of(busy, example(), registry=registry)


def busy(stopped: Any, **_: Any) -> None:
    while not stopped:
        ran.append("again")


def test_the_plan_of_an_impure_handler_tells_what_is_lost() -> None:
    registry = Registry()
    fnop.on.create(KIND, registry=registry, impure=True)(dropping)
    assert plan_of(dropping, example(), registry=registry).failed(line_of(dropping))


def test_its_call_survives_the_wire() -> None:
    call = Call("module:name", {"wants": []}, as_handler=True)
    assert from_wire(to_wire(call)) == call


# ------------------------------------------------------------ what is refused


class Model:
    """A value that a client library might return."""


def nested(depth: int) -> Any:
    found: Any = "end"
    for _ in range(depth):
        found = {"more": found}
    return found


MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
REFUSED: dict[str, Callable[[], Any]] = {
    "list": lambda: ["a", "b"],
    "mixed": lambda: [fnop.event("Made", "one"), "a"],
    "datetime": lambda: MOMENT,
    "model": Model,
    "bytes": lambda: {"raw": b"1"},
    "nan": lambda: {"share": float("nan")},
    "text": lambda: "caf\udce9",
    "deep": lambda: nested(250),
    "large": lambda: "x" * (3 << 20),
    "settings": fnop.Settings,
}
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def returning(spec: Any, **_: Any) -> Any:
    ran.append(spec["what"])
    return REFUSED[spec["what"]]()


async def returning_on_the_loop(spec: Any, **_: Any) -> Any:
    return returning(spec)


def patching(patch: Any, **_: Any) -> None:
    ran.append("patched")
    patch.status["at"] = object()


def answering(what: str) -> Any:
    ran.append(what)
    return REFUSED[what]()


def refusals(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if "is not tried again" in line]


@pytest.mark.parametrize("what", REFUSED)
def test_a_result_that_is_refused_fails_for_good(registry: Registry, what: str) -> None:
    """For what the handler has done is done: it must not be repeated for ever."""
    fnop.on.create(KIND, registry=registry, impure=True)(returning)
    models = {f"{__name__}:returning": returning}
    run = Scenario(registry, [example(what=what)], calls=models)
    assert run.settle()
    assert ran == [what]
    (line,) = refusals(run.lines)
    assert "create handler returning failed for good" in line
    assert f"{__name__}:returning has run" in line


def test_the_refusal_tells_what_was_returned_and_the_remedy(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(returning)
    models = {f"{__name__}:returning": returning}
    said = {}
    for what in REFUSED:
        run = Scenario(registry, [example(what=what)], calls=models)
        run.settle()
        (said[what],) = refusals(run.lines)
    assert "it returned list" in said["list"]
    assert "fnop.result([...])" in said["list"]
    assert "either a list of effects, or a result" in said["mixed"]
    assert "it returned datetime" in said["datetime"]
    assert "it returned Model" in said["model"]
    assert "bytes is not a JSON value; use str, int" in said["bytes"]
    assert "nan is not a JSON number" in said["nan"]
    assert "it is too deep" in said["deep"]
    assert "keep it elsewhere" in said["large"]


@pytest.mark.parametrize("handler", [returning, returning_on_the_loop])
@pytest.mark.parametrize("what", ["list", "mixed", "model", "deep"])
def test_a_refused_result_fails_for_good_on_the_loop_and_in_threads(
    registry: Registry, handler: Any, what: str
) -> None:
    fnop.on.create(KIND, registry=registry, impure=True, backoff=0)(handler)

    async def story() -> None:
        async with operating(registry, [example(what=what)]) as run:
            await run.until(lambda: run.runner.state.notes.failures)
            assert refusals(run.lines)
        assert ran == [what]

    asyncio.run(story())


def test_a_patch_that_is_refused_fails_for_good(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(patching)
    run = running(registry, patching=patching)
    assert run.settle()
    assert ran == ["patched"]
    (line,) = refusals(run.lines)
    assert "Patch.merge.status.at: object is not a JSON value" in line


def patching_in_vain(patch: Any, retry: int, **_: Any) -> None:
    ran.append(f"{retry}")
    patch.status["at"] = object()
    if retry == 0:
        raise fnop.TemporaryError("not yet", delay=5)
    raise fnop.PermanentError("never")


def test_what_it_raises_counts_where_its_patch_is_refused_too(
    registry: Registry,
) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(patching_in_vain)
    run = running(registry, patching_in_vain=patching_in_vain)
    assert run.settle()
    assert ran == ["0", "1"]
    assert run.clock.elapsed == pytest.approx(5, abs=1)
    assert any("what it has patched is lost: Patch.merge" in line for line in run.lines)
    assert any("failed for good: PermanentError: never" in line for line in run.lines)


@pytest.mark.parametrize("what", sorted(REFUSED.keys() - {"list"}))
def test_an_answer_of_a_called_function_that_is_refused_fails_for_good(
    registry: Registry, what: str
) -> None:
    @fnop.on.create(KIND, registry=registry, id="asking")
    async def asking(spec: Any, **_: Any) -> Any:
        return await fnop.call(answering, what=spec["what"])

    models = {f"{__name__}:answering": answering}
    run = Scenario(registry, [example(what=what)], calls=models)
    assert run.settle()
    assert ran == [what]
    (line,) = refusals(run.lines)
    assert "create handler asking failed for good" in line
    assert f"{__name__}:answering has run" in line


def test_the_answer_of_a_called_function_may_be_a_list(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="asking")
    async def asking(**_: Any) -> Any:
        return {"found": await fnop.call(answering, what="list")}

    run = running(registry, answering=answering)
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["status"]["asking"] == {"found": ["a", "b"]}


# ---------------------------------------------------------- effects that are lost


def dropping(**_: Any) -> None:
    ran.append("dropped")
    fnop.event("Lost", "nobody returns it")


async def dropping_on_the_loop(**_: Any) -> None:
    dropping()


def line_of(handler: Any) -> str:
    """The line that builds the lost event."""
    lines, first = inspect.getsourcelines(handler)
    number = next(n for n, line in enumerate(lines) if "fnop.event(" in line)
    return f"test_impure.py:{first + number} has no effect: return it"


def test_r3_an_effect_that_it_drops_fails_it_for_good(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(dropping)
    run = running(registry, dropping=dropping)
    assert run.settle()
    assert ran == ["dropped"]
    (line,) = refusals(run.lines)
    assert line_of(dropping) in line


@pytest.mark.parametrize("handler", [dropping, dropping_on_the_loop])
def test_r3_also_on_the_loop_and_in_threads(registry: Registry, handler: Any) -> None:
    fnop.on.create(KIND, registry=registry, impure=True, backoff=0)(handler)

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            await run.until(lambda: run.runner.state.notes.failures)
            (line,) = refusals(run.lines)
            assert line_of(dropping) in line
        assert ran == ["dropped"]

    asyncio.run(story())


meeting: list[threading.Barrier] = []


def meeting_in_threads(spec: Any, **_: Any) -> Any:
    """One of two that build their effects at the same time."""
    found = fnop.event("Kept" if spec["keeps"] else "Lost", "of one of them")
    meeting[0].wait(patience(20))
    return found if spec["keeps"] else None


async def meeting_on_the_loop(spec: Any, **_: Any) -> Any:
    found = fnop.event("Kept" if spec["keeps"] else "Lost", "of one of them")
    ran.append("built")
    await soon(lambda: len(ran) > 1, every=0.002)
    return found if spec["keeps"] else None


@pytest.mark.parametrize("handler", [meeting_in_threads, meeting_on_the_loop])
def test_r3_calls_at_the_same_time_are_not_mixed_up(
    registry: Registry, handler: Any
) -> None:
    meeting[:] = [threading.Barrier(2)]
    fnop.on.create(KIND, registry=registry, impure=True, backoff=0)(handler)
    both = [example("example-1", keeps=True), example("example-2", keeps=False)]

    async def story() -> None:
        async with operating(registry, both) as run:
            done = f"create handler {handler.__name__} succeeded"
            await run.until(
                lambda: run.runner.state.notes.failures and done in run.lines
            )
            (line,) = refusals(run.lines)
            assert "the Event built at" in line
            (said,) = [say for say in run.said if say.message == line]
            assert said.subject is not None
            assert said.subject.name == "example-2"

    asyncio.run(story())


def reporting(stopped: Any) -> None:
    while not stopped.wait(5):
        fnop.event("Lost", "as long as it goes on")


async def reporting_on_a_loop(stopped: Any) -> None:
    while not await stopped.wait(5):
        fnop.event("Lost", "as long as it goes on")


@pytest.mark.parametrize("handler", [reporting, reporting_on_a_loop])
def test_r3_who_goes_on_is_told_once_that_its_effects_wait(
    registry: Registry, handler: Any
) -> None:
    run = tending(registry, handler)
    run.wait(60)
    (said,) = [say for say in run.said if say.level == "warning"]
    assert "is not performed before the handler ends and returns it" in said.message
    where = line_of(handler).partition(" has no effect")[0]
    assert where in said.message
    run.delete(KIND)
    assert run.settle()
    (line,) = refusals(run.lines)
    assert line_of(handler) in line


def test_r3_a_called_function_performs_no_effects(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="asking")
    async def asking(**_: Any) -> Any:
        return await fnop.call(dropping)

    run = running(registry, dropping=dropping)
    assert run.settle()
    (line,) = refusals(run.lines)
    assert "a called function performs none, so let the handler build it" in line


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


async def tidying(stopped: Any, patch: Any, logger: Any, **_: Any) -> dict[str, int]:
    """It ends when it is cancelled, and not before: it changes its object then."""
    logger.info("it has begun")
    try:
        while True:
            await stopped.wait(0.02)
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        patch.status["left"] = stopped.reason
        return {"rounds": 3}


TIDIED = {"left": "filters_mismatch", "tidying": {"rounds": 3}}
TIDY: dict[str, Any] = {"labels": {"tidy": "yes"}, "cancellation_backoff": 0.01}
WITH_LABEL: dict[str, Any] = {"metadata": {"labels": {"tidy": "yes"}}}


def test_the_changes_of_a_coroutine_that_catches_its_cancellation(
    registry: Registry,
) -> None:
    fnop.daemon(KIND, registry=registry, impure=True, **TIDY)(tidying)

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            run.edit(**WITH_LABEL)
            await run.until(lambda: "it has begun" in run.lines)
            run.edit(metadata={"labels": {"tidy": None}})
            await run.until(lambda: run.status() == TIDIED)
            await run.until(lambda: "daemon handler tidying succeeded" in run.lines)

    asyncio.run(story())


# ------------------------------------------- daemons that look at their object


def seen_in(views: dict[str, Any]) -> str:
    """The object's size in all the views."""
    body, meta, spec = views["body"], views["meta"], views["spec"]
    assert body.spec == spec
    assert meta == body.meta
    assert views["labels"] == meta.labels == body.labels
    assert views["annotations"] == meta.annotations
    assert views["status"] == body.status
    return f"size {spec.get('size')}, {sorted(views['labels'])}"


def following(stopped: Any, logger: Any, **views: Any) -> None:
    said = ""
    while not stopped.wait(0.005):
        if seen_in(views) != said:
            said = seen_in(views)
            logger.info(said)
    logger.info("ends with %s", sorted(views["meta"].keys() & {"deletionTimestamp"}))


async def following_on_the_loop(stopped: Any, logger: Any, **views: Any) -> None:
    said = ""
    while not await stopped.wait(0.005):
        if seen_in(views) != said:
            said = seen_in(views)
            logger.info(said)
    logger.info("ends with %s", sorted(views["meta"].keys() & {"deletionTimestamp"}))


@pytest.mark.parametrize("handler", [following, following_on_the_loop])
def test_an_impure_daemon_sees_the_changes_of_its_object(
    registry: Registry, handler: Any
) -> None:
    fnop.daemon(KIND, registry=registry, impure=True)(handler)

    async def story() -> None:
        async with operating(registry, [example(size=1)]) as run:
            await run.until(lambda: "size 1, []" in run.lines)
            run.edit(spec={"size": 2})
            await run.until(lambda: "size 2, []" in run.lines)
            run.edit(spec={"size": None}, metadata={"labels": {"a": "b"}})
            await run.until(lambda: "size None, ['a']" in run.lines)
            run.delete()
            await run.until(lambda: run.get() is None)
            assert "ends with ['deletionTimestamp']" in run.lines

    asyncio.run(story())


def looking(stopped: Any, logger: Any, body: Any, spec: Any, **_: Any) -> None:
    """It looks at the object, and only then at `stopped`."""
    nested, first = spec["more"], body.now
    logger.info("it has begun")
    meeting[0].wait(patience(20))
    logger.info("before: %s", spec["size"])
    assert not stopped
    logger.info("after: %s at %s", spec["size"], body.now > first)
    logger.info("what was taken out of it stays: %s", nested["a"])


def test_nothing_changes_while_a_daemon_looks_elsewhere(registry: Registry) -> None:
    """So a loop over a view is never disturbed."""
    meeting[:] = [threading.Barrier(2)]
    fnop.daemon(KIND, registry=registry, impure=True)(looking)

    async def story() -> None:
        async with operating(registry, [example(size=1, more={"a": 1})]) as run:
            await run.until(lambda: "it has begun" in run.lines)
            told = Refreshes()
            run.runner._machine._observers = (told,)
            run.edit(spec={"size": 2, "more": {"a": 2}})
            await run.until(lambda: told.bodies)
            await asyncio.get_running_loop().run_in_executor(None, meeting[0].wait)
            last = "what was taken out of it stays: 1"
            await run.until(lambda: last in run.lines)
            assert "before: 1" in run.lines
            assert "after: 2 at True" in run.lines

    asyncio.run(story())


class Refreshes:
    """The updates that daemons are shown."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        self.bodies += [each.body for each in commands if isinstance(each, Refresh)]


async def conversing(stopped: Any, **_: Any) -> None:
    while not await stopped.wait(5):
        pass


def test_nobody_else_is_shown_anything(registry: Registry) -> None:
    fnop.timer(KIND, registry=registry, interval=60)(lambda_free)
    fnop.daemon(KIND, registry=registry)(conversing)
    fnop.on.update(KIND, registry=registry)(lambda_free)
    told = Refreshes()
    run = Scenario(registry, [example(size=1)], observers=[told])
    run.wait(30)
    run.edit(KIND, spec={"size": 2})
    run.wait(30)
    assert told.bodies == []


async def told_at_once(stopped: Any, logger: Any) -> None:
    await stopped.wait()
    logger.info("it was told: %s", stopped.reason)


async def never_begun() -> None:
    raise AssertionError


@pytest.mark.parametrize("cancel", [False, True])
def test_who_is_told_before_it_has_begun_has_been_told(cancel: bool) -> None:
    """The commands come in one go, and a call begins at the loop's next turn."""
    name = "never_begun" if cancel else "told_at_once"
    facts = {
        "wants": ["logger", "stopped"],
        "indices": [],
        "facts": {"moments": [0, 0]},
    }
    call = Call(f"{__name__}:{name}", {} if cancel else facts, as_handler=not cancel)

    async def story() -> None:
        run = LiveRun(Registry())
        run.runner._perform(Perform(7, call))
        run.runner._perform(Interrupt(7, "resource_deleted", cancel))
        await run.until(lambda: run.runner._inbox)
        (answered,) = run.runner._inbox
        assert isinstance(answered, Answered)
        if cancel:
            assert answered.outcome == Raised(
                "Cancelled", "it was told to stop, and did not"
            )
        else:
            assert run.lines == ["it was told: resource_deleted"]

    asyncio.run(story())


def test_a_daemon_of_an_object_that_was_made_anew_is_told(registry: Registry) -> None:
    """The watch has seen neither its end nor the other's beginning, as after a gap."""
    fnop.daemon(KIND, registry=registry, impure=True, finalizer=False)(
        following_on_the_loop
    )

    async def story() -> None:
        async with operating(registry, [example(size=1)]) as run:
            await run.until(lambda: "size 1, []" in run.lines)
            watches = [*run.api.watches]
            run.api.watches.clear()
            run.delete()
            run.create(example(size=2))
            run.api.watches += watches
            run.edit(spec={"size": 3})
            await run.until(lambda: "size 3, []" in run.lines)
            await run.until(lambda: "ends with []" in run.lines)

    asyncio.run(story())


# ------------------------------------------------------- daemons in a simulation


def watching(stopped: Any, logger: Any, spec: Any, patch: Any, **_: Any) -> str:
    """A daemon, or the model of one: its waiting takes virtual time alone."""
    rounds = 0
    while not stopped.wait(5):
        rounds += 1
        logger.info("round %s: size %s", rounds, spec["size"])
    logger.info("told: %s", stopped.reason)
    patch.status["rounds"] = rounds
    return "done"


async def watching_on_a_loop(stopped: Any, logger: Any, spec: Any, patch: Any) -> str:
    rounds = 0
    while not await stopped.wait(5):
        rounds += 1
        logger.info("round %s: size %s", rounds, spec["size"])
    logger.info("told: %s", stopped.reason)
    patch.status["rounds"] = rounds
    return "done"


def tending(registry: Registry, handler: Any, **options: Any) -> Scenario:
    """A simulation with an impure daemon, which is its own model."""
    fnop.daemon(KIND, registry=registry, impure=True, **options)(handler)
    name = f"{handler.__module__}:{handler.__qualname__}"
    return Scenario(registry, [example(size=1)], calls={name: handler})


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No thread is left of what a test has simulated."""
    monkeypatch.setattr(threads, "_END_SECONDS", patience(1))
    before = {*threading.enumerate()}
    yield
    gc.collect()  # the objects of its simulation are gone
    left = [each for each in threading.enumerate() if each not in before]
    assert [each.name for each in left if each.name.startswith("simulated")] == []


BOTH_FORMS = pytest.mark.parametrize("handler", [watching, watching_on_a_loop])


@BOTH_FORMS
def test_a_simulated_daemon_waits_in_virtual_time(
    registry: Registry, handler: Any, alone: None
) -> None:
    run = tending(registry, handler)
    run.wait(11)
    run.edit(KIND, spec={"size": 2})
    run.wait(5)
    run.delete(KIND)
    run.wait(1)
    assert [line for line in run.lines if line.startswith(("round", "told"))] == [
        "round 1: size 1",
        "round 2: size 1",
        "round 3: size 2",
        "told: resource_deleted",
    ]
    assert run.get(KIND) is None
    assert run.threads.calls == set()


def tidied_by(ending: Callable[[Scenario], object], registry: Registry) -> Scenario:
    """A run whose daemon has ended, on an object that another client holds."""
    run = tending(registry, tidying, **TIDY)
    run.edit(KIND, metadata={"finalizers": ["example.com/other"]})
    run.edit(KIND, **WITH_LABEL)
    run.wait(1)
    ending(run)
    run.settle(seconds=2)
    return run


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        (
            "filters_mismatch",
            lambda run: run.edit(KIND, metadata={"labels": {"tidy": None}}),
        ),
        ("resource_deleted", lambda run: run.delete(KIND)),
        ("operator_exiting", lambda run: run.stop()),
    ],
)
def test_the_last_changes_of_a_simulated_coroutine(
    reason: str,
    ending: Callable[[Scenario], object],
    registry: Registry,
    alone: None,
) -> None:
    run = tidied_by(ending, registry)
    found = run.get(KIND)
    assert found is not None
    assert own_status(found) == {**TIDIED, "left": reason}
    assert run.threads.calls == set()


def test_a_coroutine_that_goes_on_has_its_time_and_no_more(
    registry: Registry, alone: None
) -> None:
    run = tending(registry, stubborn, **TIDY, cancellation_timeout=5)
    run.edit(KIND, **WITH_LABEL)
    run.wait(1)
    run.delete(KIND)
    run.wait(4)
    assert run.get(KIND) is not None
    run.wait(2)
    assert run.get(KIND) is None
    assert "daemon handler stubborn is cancelled: resource_deleted" in run.lines


async def stubborn(stopped: Any, **_: Any) -> None:
    """It goes on after its cancellation."""
    for _attempt in range(2):
        with suppress(asyncio.CancelledError):
            while True:
                await stopped.wait()


@BOTH_FORMS
def test_a_simulation_settles_with_a_daemon_that_waits(
    registry: Registry, handler: Any, alone: None
) -> None:
    """When it has had its turn, and nothing was written, as with any other (R36)."""
    run, others = tending(registry, handler), Registry()
    fnop.daemon(KIND, registry=others)(conversing)
    other = Scenario(others, [example(size=1)])
    for _ in range(2):
        assert run.settle()
        assert other.settle()
        assert run.clock.elapsed == other.clock.elapsed > 0


@BOTH_FORMS
def test_a_simulation_settles_with_a_timer_beside_a_daemon_that_waits(
    registry: Registry, handler: Any, alone: None
) -> None:
    def looks(**_: Any) -> None:
        """Change nothing."""

    fnop.timer(KIND, registry=registry, interval=30)(looks)
    run = tending(registry, handler)
    assert run.settle()
    assert run.clock.elapsed < 100


async def waiting(stopped: Any, logger: Any, **_: Any) -> None:
    await stopped.wait()
    logger.info("told: %s", stopped.reason)


def test_who_waits_for_the_end_alone_is_settled(
    registry: Registry, alone: None
) -> None:
    run = tending(registry, waiting)
    assert run.settle()
    assert run.clock.elapsed < 1
    assert run.settle(seconds=100)
    run.delete(KIND)
    assert run.settle()
    assert "told: resource_deleted" in run.lines
    assert run.get(KIND) is None


@BOTH_FORMS
def test_equal_beginnings_lead_to_equal_ends_with_daemons_too(
    handler: Any, alone: None
) -> None:
    def told() -> list[Any]:
        registry, steps = Registry(), Steps()
        fnop.timer(KIND, registry=registry, interval=3)(counting)
        fnop.daemon(KIND, registry=registry, impure=True)(handler)
        objects = [example(f"example-{n}", size=n) for n in range(5)]
        models = {f"{__name__}:{handler.__name__}": handler}
        run = Scenario(registry, objects, calls=models, observers=[steps])
        run.wait(20)
        run.edit(KIND, "example-3", spec={"size": 30})
        run.wait(20)
        run.stop()
        run.settle(seconds=60)
        assert run.exit is not None
        return steps.taken

    first, second = told(), told()
    assert len(first) > 50
    assert first == second


def counting(status: Any, **_: Any) -> fnop.Effect:
    return fnop.patch(status={"count": status.get("count", 0) + 1})


class Steps:
    """All that goes in and comes out, as a recording has it."""

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        found = [command_to_wire(each) for each in commands]
        self.taken.append((now.mono, input_to_wire(input), found))


@BOTH_FORMS
def test_a_recording_of_a_daemon_replays_identically(
    registry: Registry, handler: Any, alone: None
) -> None:
    fnop.daemon(KIND, registry=registry, impure=True)(handler)
    models = {f"{__name__}:{handler.__name__}": handler}
    program, file = Program(registry.handlers), io.BytesIO()
    recorder = Recorder(file, header_of(program, "0"), Redaction(b"key", program))
    run = Scenario(registry, [example(size=1)], calls=models, observers=[recorder])
    run.wait(7)
    run.edit(KIND, spec={"size": 2})
    run.wait(7)
    run.delete(KIND)
    run.wait(1)
    recorder.finish()
    recorded = text_of(file.getvalue())
    assert '"do":"Refresh"' in recorded
    records = read_records(io.BytesIO(file.getvalue()))
    read_header(records)
    replayed = replay(records, program)
    assert replayed.difference is None
    assert replayed.steps == run.steps


@BOTH_FORMS
def test_a_crash_ends_its_daemons_where_they_wait(
    registry: Registry, handler: Any, alone: None
) -> None:
    run = tending(registry, handler)
    run.wait(6)
    (before,) = threads_of(handler)
    run.crash()
    assert not before.is_alive()
    run.wait(6)
    (after,) = threads_of(handler)
    assert after is not before
    assert run.lines.count("round 1: size 1") == 2
    assert "told" not in "".join(run.lines)


def threads_of(handler: Any) -> list[threading.Thread]:
    name = f"simulated {__name__}:{handler.__name__}"
    return [each for each in threading.enumerate() if each.name == name]


@BOTH_FORMS
def test_the_operator_that_ends_tells_its_daemons(
    registry: Registry, handler: Any, alone: None
) -> None:
    run = tending(registry, handler)
    run.wait(1)
    run.stop()
    run.settle(seconds=60)
    assert run.exit is not None
    assert "told: operator_exiting" in run.lines
    assert threads_of(handler) == []


@BOTH_FORMS
def test_the_threads_of_a_simulation_that_nobody_holds_end(
    registry: Registry, handler: Any
) -> None:
    run = tending(registry, handler)
    run.wait(1)
    (thread,) = threads_of(handler)
    del run
    gc.collect()
    thread.join(patience(20))
    assert not thread.is_alive()


def not_listening(stopped: Any, logger: Any) -> None:
    logger.info("it has begun")
    while True:
        stopped.wait(1)


async def not_listening_on_a_loop(stopped: Any, logger: Any) -> None:
    logger.info("it has begun")
    while True:
        await stopped.wait(1)


@pytest.mark.parametrize("handler", [not_listening, not_listening_on_a_loop])
def test_who_does_not_listen_is_ended_when_its_time_is_up(
    registry: Registry, handler: Any, alone: None
) -> None:
    run = tending(registry, handler, cancellation_backoff=7)
    run.wait(10)
    begin = run.clock.elapsed
    run.delete(KIND)
    assert run.settle()
    assert run.get(KIND) is None
    assert run.clock.elapsed - begin == pytest.approx(7, abs=0.5)
    assert threads_of(handler) == []


def blocking(stopped: Any) -> None:
    while not stopped and not gate.is_set():
        gate.wait(patience(20))


async def blocking_on_a_loop(stopped: Any) -> None:
    while not stopped and not gate.is_set():
        await asyncio.sleep(0.01)


gate = threading.Event()


@pytest.mark.parametrize("handler", [blocking, blocking_on_a_loop])
def test_who_waits_otherwise_is_told_how_to(
    registry: Registry, handler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PATIENCE_SECONDS", 0.2)
    gate.clear()
    run = tending(registry, handler)
    assert run.settle()
    (line,) = [line for line in run.lines if "failed for good" in line]
    assert "waits by stopped.wait(seconds) alone" in line
    assert f"{__name__}:{handler.__name__} has neither waited nor ended" in line
    gate.set()
    # One that went on would take its time from all other tests of this process.
    eventually(lambda: threads_of(handler) == [])


async def dividing_its_time(stopped: Any, logger: Any) -> None:
    """Two tasks that wait for different times."""

    async def saying(name: str, seconds: float) -> None:
        while not await stopped.wait(seconds):
            logger.info(name)

    await asyncio.gather(saying("three", 3), saying("five", 5))


def test_tasks_of_a_simulated_daemon_wait_side_by_side(
    registry: Registry, alone: None
) -> None:
    run = tending(registry, dividing_its_time)
    run.wait(10.5)
    said = [line for line in run.lines if line in ("three", "five")]
    assert said == ["three", "five", "three", "three", "five"]
    run.delete(KIND)
    assert run.settle()
    assert run.get(KIND) is None


def test_a_model_that_ends_at_once_is_a_daemon_that_has_ended(
    registry: Registry, alone: None
) -> None:
    fnop.daemon(KIND, registry=registry, impure=True)(watching)
    models = {f"{__name__}:watching": lambda patch, **_: patch.status.update(seen=1)}
    run = Scenario(registry, [example(size=1)], calls=models)
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["status"]["seen"] == 1


def measuring(stopped: Any, spec: Any, logger: Any) -> None:
    """A timer that waits for a while within its turn."""
    before = spec["size"]
    is_told = stopped.wait(4)
    logger.info("from %s to %s, told: %s", before, spec["size"], is_told)


def test_a_simulated_timer_can_wait_too(registry: Registry, alone: None) -> None:
    decorate: Any = fnop.timer(KIND, registry=registry, interval=10, impure=True)
    decorate(measuring)
    run = running(registry, measuring=measuring)
    run.wait(15)  # its second turn begins at 14
    run.edit(KIND, spec={"size": 2})
    run.wait(14)  # and the third at 28
    run.delete(KIND)
    assert run.settle()
    said = [line for line in run.lines if line.startswith("from")]
    assert said == [
        "from 1 to 1, told: False",
        "from 1 to 2, told: False",
        "from 2 to 2, told: True",
    ]
    assert run.get(KIND) is None


def impatient(stopped: Any) -> None:
    while not stopped.wait(0):
        ran.append("again")


def test_who_waits_for_no_time_lets_some_pass(registry: Registry, alone: None) -> None:
    run = tending(registry, impatient)
    run.wait(1)
    assert 900 < len(ran) <= 1001


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
    assert told.wait(patience(20))
    watchdog.end()
    watchdog.close()
    assert "the operator has been blocked for 7.0 s, at " in said[0]
    assert "test_impure.py:" in said[0]
    assert "impure handler" in said[0]


def test_an_onlooker_names_the_step_that_is_still_on_the_stack() -> None:
    said: list[str] = []
    told = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        told.set()

    def step() -> None:
        deadline = SystemClock().now().mono + patience(20)
        while not told.is_set() and SystemClock().now().mono < deadline:
            times.passed += 1.0  # and more of it at the next look

    times = Times()
    with Onlooker(say, step, patience=0.02, times=times):
        step()
    assert "the operator has been blocked for " in said[0]
    assert "test_impure.py:" in said[0]
    assert "impure handler" in said[0]


def test_an_onlooker_says_nothing_of_steps_that_come_to_their_ends() -> None:
    """Each step ends after one look at it, and before the next one."""
    said: list[str] = []
    looked, goes_on = threading.Semaphore(0), threading.Semaphore(0)

    class Looked(Times):
        def waited(self) -> float | None:
            looked.release()
            goes_on.acquire()
            return self.queued

    def step() -> None:
        assert looked.acquire(timeout=patience(20))
        times.passed += 1.0

    times = Looked()
    with Onlooker(said.append, step, patience=0.01, times=times):
        for _ in range(20):
            step()
            goes_on.release()
        goes_on.release(1_000_000)  # for the looks until it ends
    assert said == []


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
        (3.0, 0.1, None, 0.1),  # if the kernel does not report it
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


STOPPED = """
import os, subprocess, sys, threading, time
from fnop.interpreters.runtime.watchdog import Onlooker, Watchdog

said = []
stop = f"sleep 0.3; kill -STOP {os.getpid()}; sleep 1.5; kill -CONT {os.getpid()}"


def step(seconds):
    threading.Event().wait(seconds)


def stopped():
    process = subprocess.Popen(["sh", "-c", stop])
    step(1.0)
    process.wait()


watchdog = Watchdog(said.append, patience=1.2)
watchdog.begin()
stopped()
print(watchdog.end(0.1))
watchdog.begin()
step(0.8)
print(watchdog.end(0.1))
watchdog.close()
print(said)
"""


def test_a_process_that_was_stopped_blames_nobody() -> None:
    """SIGSTOP, as of a shell or a debugger; a step that sleeps is still a slow one."""
    words = [sys.executable, "-c", STOPPED]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    own, slept, said = done.stdout.splitlines()
    assert float(own) < 1.2, "the step itself, and at most two beats"
    assert 0.6 < float(slept) < 1.2
    assert said == "[]"


def test_a_handler_that_blocks_is_named(registry: Registry) -> None:
    """Not each time on a busy machine: waiting for a turn is not blocking."""

    @fnop.on.create(KIND, registry=registry, id="blocking")
    def blocking(**_: Any) -> None:
        if not named.is_set():
            named.wait(SLOW_STEP_SECONDS * 2)
            raise fnop.TemporaryError("it blocks again", delay=0)

    named = threading.Event()

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            await run.until(
                lambda: any("blocking blocked the operator" in e for e in run.lines)
            )
            named.set()

    asyncio.run(story())


def test_a_handler_that_blocks_is_named_in_a_simulation(registry: Registry) -> None:
    times = Times()

    @fnop.on.create(KIND, registry=registry, id="blocking")
    def blocking(**_: Any) -> None:
        times.passed += SLOW_STEP_SECONDS * 1.2

    watchdog = Watchdog(lambda text: None, times=times)
    run = Scenario(registry, [example()], watchdog=watchdog)
    assert run.settle()
    watchdog.close()
    found = [line for line in run.lines if "blocked the operator" in line]
    assert found == [
        "blocking blocked the operator for 0.6 s; move slow work into fnop.call, and "
        "wait by fnop.sleep"
    ]


STANDSTILLS: list[str] = []


class LookedAt(Times):
    """A coroutine's time, and the checks of it since it was named."""

    looks = 0

    def waited(self) -> float | None:
        self.looks += bool(STANDSTILLS)
        return self.queued


TIMES: list[LookedAt] = []


async def forgets(**_: Any) -> None:
    """A daemon that has forgotten to await `stopped.wait(...)`."""
    await asyncio.sleep(0)
    clock = SystemClock()
    (times,), end = TIMES, clock.now().mono + patience(20)
    # After some more looks it would be named again, were it named more than once.
    while times.looks < 5 and clock.now().mono < end:
        times.passed += 1.0


async def blocks(**_: Any) -> None:
    await asyncio.sleep(0)
    threading.Event().wait(SLOW_STEP_SECONDS * 2)


def test_a_coroutine_that_awaits_nothing_is_named_once(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    STANDSTILLS.clear()
    TIMES[:] = [LookedAt()]

    class Watched(Watchdog):
        def __init__(self, say: Callable[[str], None]) -> None:
            def told(text: str) -> None:
                STANDSTILLS.append(text)
                say(text)

            super().__init__(told, 0.01, TIMES[0])

    monkeypatch.setattr("fnop.interpreters.runtime.run.Watchdog", Watched)
    fnop.daemon(KIND, registry=registry, impure=True)(forgets)

    async def story() -> list[str]:
        async with operating(registry, [example()]) as run:
            await run.until(
                lambda: any("has been blocked" in each for each in run.lines)
            )
        return run.lines

    lines = [each for each in asyncio.run(story()) if "has been blocked" in each]
    (line,) = lines
    assert "the coroutine forgets of default/example-1 goes on without an await" in line
    assert "test_impure.py:" in line
    assert " in forgets" in line
    assert "stopped.wait(seconds)" in line


def test_an_impure_coroutine_that_blocks_is_named(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, impure=True)(blocks)

    async def story() -> None:
        async with operating(registry, [example()]) as run:
            words = "blocks of default/example-1 blocked the operator for"
            await run.until(lambda: any(words in each for each in run.lines))

    asyncio.run(story())


def test_a_coroutine_in_turns_is_cancelled_and_closed_as_any_other() -> None:
    turns: list[str] = []
    seen: list[str] = []

    @contextmanager
    def turn() -> Iterator[None]:
        turns.append("begin")
        try:
            yield
        finally:
            turns.append("end")

    async def waits() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            raise
        finally:
            seen.append("over")
        return ""

    async def story() -> None:
        call = Call("m:waits", {})
        task = asyncio.create_task(called_on_loop(waits, call, turn=turn))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert seen == ["cancelled", "over"]
    assert turns == ["begin", "end"] * 3


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
        assert looked.acquire(timeout=patience(20))
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
        """It would never let others have a turn."""

    with pytest.raises(fnop.RegistrationError, match="a daemon awaits something"):
        fnop.daemon(KIND, registry=Registry())(daemon)


# ---------------------------------------------------------------- from a terminal


WATCHER = """
import fnop

@fnop.daemon("fnopexamples", impure=True)
def watch_over(stopped, spec, logger, patch):
    patch.status["seen"] = spec.get("size", 0)
    while not stopped.wait(30):
        logger.info("a round is over")
    logger.info("told: %s", stopped.reason)
"""


def test_a_simulated_run_with_an_impure_daemon_ends(tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(WATCHER)
    manifests = yaml.safe_dump_all([DEFINITION, example(size=1)])
    (tmp_path / "object.yaml").write_text(manifests)
    run = ("run", "operator.py", "--simulate", "object.yaml", "--real-calls")
    done = command(*run, "--record", "run.fnop", folder=tmp_path)
    assert done.status == 0, done
    assert "a round is over" in done.err
    again = command(*run, "--record", "again.fnop", folder=tmp_path)
    assert (again.out, again.err) == (done.out, done.err)
    replayed = command("replay", "run.fnop", "operator.py", folder=tmp_path)
    assert replayed.out.startswith("identical: "), replayed
