"""Effects and coroutines that are never awaited: the error names line and remedy."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.effects.builders import wait
from fnop.effects.effects import _BUILT_BY, Execute, Witness
from fnop.interpreters.runtime.unawaited import watch_coroutines
from fnop.testing import plan_of
from tests.mistakes import called, config, pod, said
from tests.simulations import Scenario, example

KIND = "fnopexamples"


ASKING: dict[str, Callable[[], Any]] = {
    "get": lambda: fnop.get("pods", name="a"),
    "list": lambda: fnop.list("pods"),
    "random": lambda: fnop.random(8),
    "patch": lambda: fnop.patch(status={}),
    "apply": lambda: fnop.apply(pod()),
    "create": lambda: fnop.create(pod()),
    "adopt": lambda: fnop.adopt(pod()),
    "delete": lambda: fnop.delete("pods", name="a"),
    "sleep": lambda: fnop.sleep(1),
    "call": lambda: fnop.call(called),
    "execute": lambda: Execute(()),
}


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(
    ("use", "lack"),
    [
        (lambda asked: asked.spec, "has no .spec"),
        (lambda asked: asked.get("spec"), "has no .get"),
        (lambda asked: asked["spec"], "has no ['spec']"),
        (lambda asked: [*asked], "has no items"),
        (lambda asked: "a" in asked, "has no items"),
    ],
)
def test_an_answer_is_there_after_await(
    name: str, use: Callable[[Any], Any], lack: str
) -> None:
    text = said(lambda: use(ASKING[name]()))
    assert text == (
        f"fnop.{name}(...) was not awaited, so it {lack}: write `await fnop.{name}"
        f"(...)` in an async handler, or `yield fnop.{name}(...)` in a generator"
    )


def test_a_daemon_that_forgets_to_await_its_pause_does_not_run_for_ever() -> None:
    async def follow(stopped: Any) -> None:
        while stopped.wait(5):
            pass

    plan = plan_of(follow, {}, reason="daemon")
    assert "stopped.wait(...) was not awaited, so it is neither" in str(plan.failure)


@pytest.mark.parametrize("name", ["get", "list", "random"])
def test_what_is_only_asked_is_not_true(name: str) -> None:
    asked = ASKING[name]()
    assert "is neither true nor false: write `await" in said(lambda: bool(asked))
    assert "has no length: write `await" in said(lambda: len(asked))


READS = {**{name: ASKING[name] for name in ("get", "list", "random")}, "wait": wait}


def reads_in_vain(**_: Any) -> Any:
    return fnop.list("pods")


@pytest.mark.parametrize("name", READS)
def test_what_is_only_asked_is_no_plan(name: str) -> None:
    read = READS[name]
    for handler in (lambda **_: read(), lambda **_: [fnop.event("Made"), read()]):
        text = str(plan_of(handler, example()).failure)
        assert "(...) was not awaited, so it answers nobody: write `await " in text


def test_what_is_only_asked_is_no_plan_of_an_impure_handler() -> None:
    fnop.on.create(KIND, registry=Registry(), impure=True)(reads_in_vain)
    text = str(plan_of(reads_in_vain, example()).failure)
    assert "fnop.list(...) was not awaited, so it answers nobody" in text


def test_an_effect_without_an_answer_has_none() -> None:
    event: Any = fnop.event("Made")
    assert said(lambda: event.spec) == "'Event' object has no attribute 'spec'"


@pytest.mark.parametrize("name", ASKING)
def test_effects_are_still_values(name: str) -> None:
    asked = ASKING[name]()
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert copy.deepcopy(asked) == copy.copy(asked) == asked
    assert {asked: 1}[ASKING[name]()] == 1
    assert not hasattr(asked, "__array__")
    assert asked.kind not in _BUILT_BY


def test_the_slip_is_told_where_it_is_made() -> None:
    def create(spec: Any) -> Any:
        secret: Any = fnop.get("secrets", name="a")
        return {"keys": sorted(secret["data"])}

    plan = plan_of(create, {})
    assert "fnop.get(...) was not awaited, so it has no ['data']" in str(plan.failure)


async def helper() -> int:
    return 1


@pytest.mark.parametrize(
    "build",
    [
        lambda value: fnop.patch(status={"a": value}),
        lambda value: fnop.result([value]),
        lambda value: fnop.call(called, a=value),
        lambda value: fnop.remember(a=value),
    ],
)
def test_what_was_not_awaited_is_no_part_of_an_effect(build: Any) -> None:
    text = said(lambda: build(fnop.get("pods", name="a")))
    assert text.endswith(
        "Get is not a JSON value; it was not awaited; write `await` "
        "before it, and use its answer"
    )
    forgotten = helper()
    assert "coroutine is not a JSON value; it was not awaited" in said(
        lambda: build(forgotten)
    )
    forgotten.close()


async def make_child() -> None:
    await fnop.create(config("a"))


make: Any = make_child  # no type checker is to find the slips


def drops_it() -> None:
    make()


async def drops_it_before_an_answer(**_: Any) -> None:
    make()
    await fnop.sleep(1)


async def drops_it_after_an_answer(**_: Any) -> None:
    await fnop.sleep(1)
    make()


async def keeps_it_to_the_end(**_: Any) -> None:
    kept = make()
    await fnop.sleep(1)
    assert kept


async def drops_it_in_a_helper(**_: Any) -> None:
    async def helper() -> None:
        make()

    await helper()


def drops_it_in_a_plan(**_: Any) -> Any:
    drops_it()
    return fnop.event("Made")


def drops_it_in_a_generator(**_: Any) -> Any:
    make()
    yield fnop.sleep(1)


DROPPING = [
    drops_it_before_an_answer,
    drops_it_after_an_answer,
    keeps_it_to_the_end,
    drops_it_in_a_helper,
    drops_it_in_a_plan,
    drops_it_in_a_generator,
]


@pytest.mark.parametrize("handler", DROPPING)
def test_r3_a_coroutine_that_nobody_awaits_fails_the_attempt(handler: Any) -> None:
    registry = Registry()
    fnop.on.create(KIND, registry=registry, id="create", retries=2, backoff=1)(handler)
    run = Scenario(registry, [example()])
    run.settle()
    assert run.objects("configmaps") == []
    [line] = (say.message for say in run.said if say.level == "error")
    assert f"make_child(...) at {__file__}:" in line, "no other try mends it"
    assert "was not awaited, so it has done nothing: write `await make_child(" in line
    assert "make_child(...) at" in str(plan_of(handler, example()).failure)


def test_r3_a_coroutine_is_missed_as_often_as_a_conversation_is_told_anew() -> None:
    """A conversation that is let go of halfway has yet to await what it keeps."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        later = make()
        await fnop.sleep(5)
        await later

    run = Scenario(registry, [example()])
    run.wait(2)
    run.machine.close()  # as at the operator's end
    run.settle()
    assert [each["metadata"]["name"] for each in run.objects("configmaps")] == ["a"]
    assert not [say for say in run.said if say.level == "error"]


def test_r3_what_was_raised_is_told_before_what_was_dropped() -> None:
    async def handler() -> None:
        make()
        raise fnop.PermanentError("bad spec")

    assert str(plan_of(handler, example()).failure) == "PermanentError: bad spec"


def test_r3_a_coroutine_of_somebody_else_is_warned_of_by_python() -> None:
    """One that the garbage collector finds within a drive, and one outside of all."""
    watch_coroutines()

    def handler() -> None:
        knot: list[Any] = []
        knot.append((knot, make()))
        del knot
        gc.collect(0)  # it has just been made

    with pytest.warns(RuntimeWarning, match="'make_child' was never awaited"):
        assert plan_of(handler, example()).failure is None
    with pytest.warns(RuntimeWarning, match="'make_child' was never awaited"):
        make()


def test_a_daemon_that_asks_can_be_stopped() -> None:
    """The core looks at what is asked, and must not ask whether it is true."""
    registry, ended = Registry(), []

    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: Any, **_: Any) -> None:
        while not stopped:
            await fnop.get(KIND, name="example-1")
            await fnop.sleep(1)
        ended.append(stopped.reason)

    run = Scenario(registry, [example()])
    run.wait(5)
    run.delete(KIND)
    run.wait(5)
    assert ended == ["resource_deleted"]
    assert not [say.message for say in run.said if say.level == "error"]


@pytest.mark.parametrize("how", ["wait", "sleep"])
def test_a_forgotten_await_in_a_daemon_s_loop_ends_it_with_its_line(how: str) -> None:
    registry = Registry()

    @fnop.daemon("fnopexamples", registry=registry, retries=1)
    async def watch(stopped: Any, **_: Any) -> None:
        while not stopped:
            if how == "wait":
                stopped.wait(10)
            else:
                fnop.sleep(10)

    run = Scenario(registry, [example()])
    run.wait(5)
    (line,) = [say.message for say in run.said if say.level == "error"]
    assert "10000 effects were built and not awaited" in line
    assert "test_forgotten_await.py:" in line


def test_a_daemon_that_awaits_each_effect_goes_on() -> None:
    registry = Registry()
    calls: list[int] = []

    @fnop.daemon("fnopexamples", registry=registry)
    async def watch(**_: Any) -> None:
        while True:
            await fnop.sleep(1)
            calls.append(1)

    run = Scenario(registry, [example()])
    witness = Witness.UNASKED_MAX
    try:
        Witness.UNASKED_MAX = 5
        run.wait(30)
    finally:
        Witness.UNASKED_MAX = witness
    assert len(calls) > 20
