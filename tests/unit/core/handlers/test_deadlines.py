"""`timeout=`: when it ends a handler, and what the object and the log say then."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.effects import Get, Unreachable
from tests.simulations import Scenario, example
from tests.stories import Story

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def condition(run: Scenario) -> dict[str, Any]:
    found = run.get(KIND)
    assert found is not None
    conditions: list[dict[str, Any]] = found["status"]["conditions"]
    return conditions[0]


def deleted(registry: Registry) -> Scenario:
    """An object that was there, and is deleted at second 0."""
    run = Scenario(registry, [example()])
    run.wait(0)
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"]
    run.delete(KIND)
    return run


# ------------------------------------------------------- the moment, and the words


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (
            fnop.again(after=700, because="for it"),
            "times out in 600 s, before it goes on in 700 s: for it",
        ),
        (
            fnop.TemporaryError("for it", delay=700),
            "failed, times out in 600 s, before the next attempt in 700 s: "
            "TemporaryError: for it",
        ),
    ],
)
def test_a_delay_beyond_the_deadline_ends_there(
    registry: Registry, result: Any, line: str
) -> None:
    calls: list[float] = []

    @fnop.on.create(KIND, registry=registry, id="waits", timeout=600)
    def waits(**_: Any) -> Any:
        calls.append(run.clock.elapsed)
        if isinstance(result, Exception):
            raise result
        return result

    run = Scenario(registry, [example()])
    run.wait(599)
    assert run.lines == [f"create handler waits {line}"]
    run.wait(2)
    assert calls == [0], "nothing begins at the deadline or after it"
    ended = run.lines[-1]
    assert ended.startswith("create handler waits has timed out after 600 s: ")
    assert "for it" in ended
    assert condition(run)["reason"] == "CreateFailed"
    assert "has timed out after 600 s" in condition(run)["message"]
    assert run.machine.state.notes.failures == 1


def test_a_deletion_waits_as_long_as_its_timeout_says(registry: Registry) -> None:
    calls: list[float] = []

    @fnop.on.delete(KIND, registry=registry, id="drains", timeout=3600)
    def drains(**_: Any) -> fnop.Effect:
        calls.append(run.clock.elapsed)
        return fnop.again(after=1900, because="it drains")

    run = deleted(registry)
    run.wait(3599)
    assert run.get(KIND) is not None
    assert calls == [0, 1900]
    run.wait(2)
    assert run.get(KIND) is None
    assert run.lines[-1] == (
        "delete handler drains has timed out after 3600 s: it drains"
    )


def test_attempts_that_are_used_up_are_not_waited_for(registry: Registry) -> None:
    @fnop.on.delete(KIND, registry=registry, timeout=600, retries=1)
    def fails(**_: Any) -> None:
        raise fnop.TemporaryError("no", delay=700)

    run = deleted(registry)
    run.wait(0)
    assert run.get(KIND) is None
    assert "failed for good after 1 attempt" in run.lines[-1]


def test_a_deadline_that_passes_while_nobody_is_there_holds(registry: Registry) -> None:
    calls: list[float] = []

    @fnop.on.delete(KIND, registry=registry, id="fails", timeout=600)
    def fails(**_: Any) -> None:
        calls.append(run.clock.elapsed)
        raise fnop.TemporaryError("no", delay=100)

    run = deleted(registry)
    run.wait(50)
    run.clock.advance_to(1000)
    run.crash()
    run.wait(1)
    assert calls == [0]
    assert run.get(KIND) is None
    assert run.lines[-1] == (
        "delete handler fails has timed out after 600 s: TemporaryError: no"
    )


def test_a_timer_ends_at_its_deadline(registry: Registry) -> None:
    calls: list[float] = []

    @fnop.timer(KIND, registry=registry, id="fails", interval=10, timeout=25)
    def fails(**_: Any) -> None:
        calls.append(run.clock.elapsed)
        raise fnop.TemporaryError("no", delay=20)

    run = Scenario(registry, [example()])
    run.wait(24)
    assert "times out in 5 s, before the next attempt in 20 s" in run.lines[-1]
    run.wait(100)
    assert calls == [0, 20]
    ended = "timer handler fails has timed out after 25 s: TemporaryError: no"
    assert [line for line in run.lines if "timed out" in line] == [ended]
    assert run.machine.state.notes.failures == 1


def test_a_handler_ends_at_its_deadline_before_its_first_answer(
    registry: Registry,
) -> None:
    ended: list[str] = []

    @fnop.on.create(KIND, registry=registry, id="asks", timeout=25)
    async def asks(**_: Any) -> None:
        try:
            await fnop.get("configmaps", name="settings")
        except fnop.Cancelled as cancelled:
            ended.append(type(cancelled).__name__)
            raise

    run = Story(registry, [example()])
    run.fate = lambda _, command: (
        Unreachable("away") if isinstance(command.effect, Get) else None
    )
    run.settle(seconds=100)
    assert ended == ["Cancelled"]
    assert [line for line in run.lines if "not done within 25 s" in line]


def test_a_startup_handler_ends_at_its_deadline(registry: Registry) -> None:
    calls: list[float] = []

    @fnop.on.startup(registry=registry, timeout=25)
    def fails(**_: Any) -> None:
        calls.append(run.clock.elapsed)
        raise fnop.TemporaryError("no", delay=20)

    run = Scenario(registry)
    run.wait(100)
    assert calls == [0, 20]
    assert any("fails has timed out after 25 s" in line for line in run.lines)


# ---------------------------------------------------------------------- the parts


def declares(part: Any) -> Any:
    def handler(**_: Any) -> None:
        fnop.register(part, id="part")

    return handler


def executes(part: Any) -> Any:
    async def handler(**_: Any) -> None:
        await fnop.execute({"part": part})

    return handler


@pytest.mark.parametrize("has", [declares, executes])
@pytest.mark.parametrize("restarts", [0, 3])
def test_a_deletion_ends_with_its_timeout_whatever_its_parts_do(
    registry: Registry, has: Any, restarts: int
) -> None:
    calls: list[float] = []

    def part(**_: Any) -> None:
        calls.append(run.clock.elapsed)
        raise fnop.TemporaryError("no", delay=3)

    fnop.on.delete(KIND, registry=registry, id="v", timeout=10, retries=2)(has(part))
    run = deleted(registry)
    for _ in range(restarts):
        run.wait(2)
        run.crash()
    run.wait(11 - run.clock.elapsed)
    assert run.get(KIND) is None
    run.wait(100)
    assert max(calls) < 10
    told = "\n".join(run.lines)
    assert "timed out after 10 s" in told or "not done within 10 s" in told


def test_the_part_that_kept_a_handler_waiting_is_named(registry: Registry) -> None:
    def part(**_: Any) -> None:
        raise fnop.TemporaryError("no", delay=3)

    fnop.on.create(KIND, registry=registry, id="v", timeout=4)(declares(part))
    run = Scenario(registry, [example()])
    assert run.settle()
    assert run.clock.elapsed == 4
    assert run.lines[-1] == (
        "create handler v has timed out after 4 s: "
        "its sub-handler v/part has not ended: TemporaryError: no"
    )
    assert condition(run)["reason"] == "CreateFailed"
    assert run.machine.state.notes.failures == 1


@pytest.mark.parametrize("has", [declares, executes])
def test_a_part_under_way_ends_with_its_handler(registry: Registry, has: Any) -> None:
    calls: list[str] = []

    async def part(**_: Any) -> None:
        try:
            await fnop.sleep(1000)
            calls.append("acts")
        finally:
            calls.append("ends")

    fnop.on.create(KIND, registry=registry, id="v", timeout=4)(has(part))
    run = Scenario(registry, [example()])
    assert run.settle()
    assert calls == ["ends"]
    assert run.clock.elapsed == 4
    assert "create handler v/part is cancelled" in run.lines
    assert condition(run)["reason"] == "CreateFailed"


def test_parts_of_parts_end_too(registry: Registry) -> None:
    calls: list[float] = []

    def inner(**_: Any) -> None:
        calls.append(run.clock.elapsed)
        raise fnop.TemporaryError("no", delay=3)

    fnop.on.delete(KIND, registry=registry, timeout=10)(executes(executes(inner)))
    run = deleted(registry)
    run.wait(11)
    assert run.get(KIND) is None
    assert calls == [0, 3, 6, 9]


def test_a_part_s_own_limits_count_as_well(registry: Registry) -> None:
    calls: list[tuple[str, float]] = []

    def fails(name: str) -> Any:
        def part(**_: Any) -> None:
            calls.append((name, run.clock.elapsed))
            raise fnop.TemporaryError("no", delay=3)

        return part

    @fnop.on.delete(KIND, registry=registry, id="v", timeout=100)
    def declares(**_: Any) -> None:
        fnop.register(fails("short"), id="short", timeout=4)
        fnop.register(fails("twice"), id="twice", retries=2)

    run = deleted(registry)
    run.wait(5)
    assert run.get(KIND) is None
    assert sorted(calls) == [("short", 0), ("short", 3), ("twice", 0), ("twice", 3)]
    assert "delete handler v/short has timed out after 4 s" in "\n".join(run.lines)


def test_parts_do_not_outlive_a_handler_that_fails_for_good(registry: Registry) -> None:
    """It declares a part, goes on itself, and fails while the part is under way."""
    calls: list[float] = []

    @fnop.on.create(KIND, registry=registry, id="v")
    async def v(**_: Any) -> None:
        @fnop.subhandler(id="part")
        def part(**_: Any) -> None:
            calls.append(run.clock.elapsed)
            raise fnop.TemporaryError("no", delay=3)

        await fnop.sleep(4)
        raise fnop.PermanentError("never")

    run = Scenario(registry, [example()])
    assert run.settle()
    assert calls == [0, 3]
    assert condition(run)["message"] == "v: failed for good: PermanentError: never"


# ------------------------------------------------------------- the handler's own part


@pytest.mark.parametrize("how", ["fails", "waits"])
def test_a_handler_goes_on_after_parts_that_have_succeeded(
    registry: Registry, how: str
) -> None:
    """The success of its parts is not the success of its own work."""
    calls: list[str] = []

    @fnop.on.create(KIND, registry=registry, id="v")
    async def v(**_: Any) -> Any:
        calls.append("v")
        await fnop.execute({"part": lambda **_: calls.append("part")})
        if calls.count("v") == 3:
            return "done"
        if how == "fails":
            raise fnop.TemporaryError("not yet", delay=5)
        return fnop.again(after=5, because="not yet")

    run = Scenario(registry, [example()])
    assert run.settle()
    assert calls == ["v", "part", "v", "v"]
    assert run.clock.elapsed == 10
    found = run.get(KIND)
    assert found is not None
    assert found["status"]["v"] == "done"
