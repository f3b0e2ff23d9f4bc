"""Errors in how a handler uses fnop: no retry mends them, a change or a restart may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.memory.progress import Failure
from tests.simulations import condition_of, example
from tests.stories import Story

KIND = "fnopexamples"
TYPE = "fnop.dev/default"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def mistyped(**_: Any) -> Any:
    return fnop.delete("configmaps", nmae="a")  # type: ignore[call-arg]


def badly_typed(**_: Any) -> Any:
    return fnop.patch(status={"a": object()})


def no_plan(**_: Any) -> Any:
    return [fnop.delete("configmaps", name="a"), "b"]


def lost(**_: Any) -> Any:
    fnop.delete("configmaps", name="a")


async def waiting(**_: Any) -> None:
    await fnop.sleep("soon")  # type: ignore[arg-type]


async def forgotten(**_: Any) -> None:
    fnop.get("configmaps", name="a").data  # type: ignore[attr-defined]  # noqa: B018


async def dropped(**_: Any) -> None:
    waiting()  # type: ignore[unused-coroutine]


def changed(status: Any, **_: Any) -> None:
    status["a"] = 1


MISUSES = (mistyped, badly_typed, no_plan, lost, waiting, forgotten, dropped, changed)


@pytest.mark.parametrize("wrong", MISUSES)
def test_a_misuse_is_tried_once(registry: Registry, wrong: Callable[..., Any]) -> None:
    fnop.on.create(KIND, registry=registry, id="made")(wrong)
    story = Story(registry, [example()])
    story.wait(3600)
    [line] = story.said_at("error")
    assert "called again when its object changes, or after a restart: " in line
    told = condition_of(story.get(KIND), TYPE)
    assert (told["status"], told["reason"]) == ("False", "CreateFailed")
    assert story.state.notes.failures == 1
    assert story.settle(), "nothing is left to do"


def test_it_is_called_again_for_a_change_and_by_another_version(
    registry: Registry,
) -> None:
    calls: list[int] = []

    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    def handle(spec: Any, retry: int, **_: Any) -> Any:
        calls.append(retry)
        return fnop.delete("configmaps", nmae="a")  # type: ignore[call-arg]

    story = Story(registry, [example()])
    story.wait(600)
    story.edit(KIND, spec={"a": 1})
    story.wait(600)
    assert len(calls) == 2
    fixed, mended = Registry(), []

    @fnop.on.create(KIND, registry=fixed, id="handle")
    def better(name: str, **_: Any) -> None:
        mended.append(name)

    story.crash(Program(fixed.handlers, fnop.Settings()))
    story.wait(600)
    assert mended == ["example-1"]
    assert condition_of(story.get(KIND), TYPE)["status"] == "True"


def test_an_object_is_not_let_go_for_it(registry: Registry) -> None:
    fnop.on.delete(KIND, registry=registry)(mistyped)
    story = Story(registry, [example()])
    story.settle()
    story.delete(KIND)
    story.wait(600)
    assert len(story.said_at("error")) == 1
    assert story.get(KIND) is not None, "its finalizer stays"
    fixed = Registry()
    fnop.on.delete(KIND, registry=fixed, id="mistyped")(lambda **_: None)
    story.crash(Program(fixed.handlers, fnop.Settings()))
    story.wait(600)
    assert story.get(KIND) is None


def test_a_deadline_and_the_tries_hold_all_the_same(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, timeout=30)(mistyped)
    fnop.on.create(KIND, registry=registry, retries=1)(no_plan)
    story = Story(registry, [example()])
    story.wait(100)
    timed, tried, over = sorted(story.said_at("error"))
    assert "has timed out after 30 s" in timed + tried + over
    assert "failed for good after 1 attempt" in timed + tried + over


@pytest.mark.parametrize("declare", ["reconcile", "timer", "daemon"])
def test_other_handlers_fail_for_good(registry: Registry, declare: str) -> None:
    options: dict[str, Any] = {"interval": 5} if declare == "timer" else {}
    wrong = waiting if declare == "daemon" else no_plan
    getattr(fnop, declare)(KIND, registry=registry, **options)(wrong)
    story = Story(registry, [example()])
    story.wait(600)
    [line] = story.said_at("error")
    assert "failed for good: TypeError" in line


def test_a_startup_handler_ends_the_operator(registry: Registry) -> None:
    fnop.on.startup(registry=registry)(mistyped)
    story = Story(registry, [example()])
    story.wait(600)
    assert story.exit is not None
    assert len(story.said_at("error")) == 1


def test_other_errors_are_tried_again(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, backoff=10)
    def create(spec: Any, **_: Any) -> None:
        len(spec.get("size", 5))

    story = Story(registry, [example()])
    story.wait(100)
    assert len(story.said_at("error")) > 5


def test_the_authors_mode_counts(registry: Registry) -> None:
    mode = fnop.ErrorsMode.IGNORED
    fnop.on.create(KIND, registry=registry, errors=mode)(mistyped)
    story = Story(registry, [example()])
    story.settle()
    assert any("which is ignored" in each for each in story.said_at("warning"))


def test_a_failure_is_no_misuse_unless_it_says_so() -> None:
    assert not Failure("TypeError", "no").misuse
