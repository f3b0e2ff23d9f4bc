"""Operators within programs: the arguments, and the tasks."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import fnop
from fnop import kopf
from fnop.adapters.kopf.commands import cli as kopf_cli, testing as kopf_testing
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.running import embedding
from fnop.adapters.kopf.running.embedding import run_tasks, sayer
from fnop.adapters.kopf.running.startup import ActivityError
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import AttemptEnded, Say, Subject


@pytest.mark.parametrize("name", ["indexers", "memories", "insights", "vault"])
async def test_parts_of_kopf_itself_are_refused(name: str) -> None:
    given: Any = {name: object()}
    with pytest.raises(TypeError, match=f"{name}= is a part of Kopf itself"):
        await kopf.operator(clusterwide=True, **given)


@pytest.mark.parametrize(
    "given",
    [
        {"namespaces": ["a"], "clusterwide": True},
        {"namespaces": ["a"], "namespace": "b"},
    ],
    ids=["cluster and namespaces", "two kinds of namespaces"],
)
async def test_namespaces_are_given_in_one_way(given: Any) -> None:
    with pytest.raises(TypeError, match="give either"):
        await kopf.operator(**given)


async def test_a_former_argument_warns() -> None:
    with pytest.warns(DeprecationWarning, match="use namespaces="):
        (task,) = await kopf.spawn_tasks(namespace="a")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_without_a_choice_of_namespaces_it_warns() -> None:
    with pytest.warns(FutureWarning, match="the whole cluster is served"):
        (task,) = await kopf.spawn_tasks()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# ------------------------------------------------------------------------------- log


def test_handlers_of_fnop_beside_those_of_kopf_have_their_own_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with default_registry.set_aside():
        fnop.on.create("pods", id="ours")(lambda **_: None)
        kopfs = Registry()
        fnop.on.create("pods", id="theirs", registry=kopfs)(lambda **_: None)
        handlers = (*default_registry.handlers, *kopfs.handlers)
        say = sayer(Program(handlers), kopf.OperatorSettings())
    about = Subject("pods.v1.", "default", "a")
    ended = AttemptEnded("error")
    caplog.set_level(logging.INFO)
    for id in ("ours", "ours/part", "theirs", "theirs/part"):
        say(Say("info", f"{id}: hello", about, id))
        say(Say("error", f"{id} failed", about, id, ended=ended))
    say(Say("info", "of nobody", about))
    found = [f"{each.levelname} {each.message}" for each in caplog.records]
    assert found == [
        *("INFO ours: hello", "ERROR ours failed"),
        *("INFO ours/part: hello", "ERROR ours/part failed"),
    ]


def test_a_patch_that_the_server_rejects_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kopfs = Registry()
    fnop.on.create("pods", registry=kopfs, id="theirs")(lambda **_: None)
    say = sayer(Program(kopfs.handlers), kopf.OperatorSettings())
    about = Subject("pods.v1.", "default", "a")
    for ended in (AttemptEnded("error"), AttemptEnded("error", rejected=True)):
        say(Say("error", f"rejected: {ended.rejected}", about, "theirs", ended=ended))
    assert caplog.messages == ["rejected: True"]


def test_a_login_that_fails_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """In Kopf's words, by its activity; what ends an operator is another error."""
    kopfs = Registry()
    fnop.on.login(registry=kopfs, id="gate")(lambda **_: None)
    say = sayer(Program(kopfs.handlers), kopf.OperatorSettings())
    caplog.set_level(logging.INFO)
    say(Say("error", "login handler gate failed", handler="gate", error="shut"))
    say(Say("info", "of nobody"))
    assert [each.message for each in caplog.records] == []


def test_kopfs_modules_for_tests_and_programs_are_there() -> None:
    from fnop.kopf import cli, testing

    assert testing.KopfRunner is kopf_testing.KopfRunner
    assert cli.main is kopf_cli.main


# --------------------------------------------------------------------------- startup


async def failed(registry: OperatorRegistry, **given: Any) -> str:
    """The error that ends an operator whose startup fails."""
    with pytest.raises(ActivityError) as found:
        await kopf.operator(registry=registry, clusterwide=True, **given)
    return str(found.value)


async def test_a_startup_handler_may_end_the_operator(
    registry: OperatorRegistry,
) -> None:
    calls = []

    @kopf.on.startup(id="first", registry=registry)
    def first(**kwargs: Any) -> None:
        calls.append(kwargs)

    @kopf.on.startup(id="second", registry=registry)
    async def second(**_: Any) -> None:
        raise kopf.PermanentError("no licence")

    @kopf.on.startup(id="third", registry=registry)
    def third(**_: Any) -> None:
        calls.append({})

    settings, memo = kopf.OperatorSettings(), kopf.Memo()
    text = await failed(registry, settings=settings, memo=memo)
    assert text == "the startup handler second has failed: no licence"
    found, third_call = calls
    assert third_call == {}, "the others run to their end, as in Kopf"
    assert found["settings"] is settings
    assert found["memo"] is memo
    assert found["activity"] == "startup"
    wanted = {"logger", "memo", "param", "retry", "started", "runtime", "settings"}
    assert found.keys() >= wanted


@pytest.mark.parametrize("status", [3, "no configuration"])
def test_a_startup_handler_that_exits_ends_the_operator(
    registry: OperatorRegistry, status: int | str
) -> None:
    others: list[str] = []

    @kopf.on.startup(registry=registry)
    async def first(**_: Any) -> None:
        sys.exit(status)

    @kopf.on.startup(registry=registry)
    def second(**_: Any) -> None:
        others.append("second")

    with pytest.raises(SystemExit) as found:
        asyncio.run(kopf.operator(clusterwide=True, registry=registry))
    assert (found.value.code, others) == (status, [])


async def test_a_startup_handler_is_retried(registry: OperatorRegistry) -> None:
    tries = []

    @kopf.on.startup(id="only", retries=3, backoff=0, registry=registry)
    async def only(retry: int, **_: Any) -> None:
        tries.append(retry)
        raise ValueError("not yet")

    assert "not yet" in await failed(registry)
    assert tries == [0, 1, 2]


async def test_startup_handlers_run_while_another_one_waits(
    registry: OperatorRegistry,
) -> None:
    calls = []

    @kopf.on.startup(id="slow", retries=2, backoff=0.01, registry=registry)
    async def slow(retry: int, **_: Any) -> None:
        calls.append(f"slow {retry}")
        raise ValueError("not yet")

    @kopf.on.startup(id="other", registry=registry)
    def other(**_: Any) -> None:
        calls.append("other")

    assert "slow has failed" in await failed(registry)
    assert calls == ["slow 0", "other", "slow 1"]


async def test_an_operator_may_be_stopped_while_it_starts(
    registry: OperatorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    stop, ready = asyncio.Event(), asyncio.Event()

    @kopf.on.startup(id="only", backoff=3600, registry=registry)
    async def only(**_: Any) -> None:
        stop.set()
        raise ValueError("not yet")

    await kopf.operator(
        registry=registry, clusterwide=True, stop_flag=stop, ready_flag=ready
    )
    assert not ready.is_set()
    assert "Startup activity is only partially executed" in caplog.messages[-1]


async def test_an_operator_that_does_not_start_is_not_ready(
    registry: OperatorRegistry,
) -> None:
    ready = asyncio.Event()

    @kopf.on.startup(id="only", errors=kopf.ErrorsMode.PERMANENT, registry=registry)
    def only(**_: Any) -> None:
        raise ValueError("no")

    await failed(registry, ready_flag=ready)
    assert not ready.is_set()


# ----------------------------------------------------------------------------- tasks


async def test_the_first_task_that_ends_ends_the_others() -> None:
    ended = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    async def ends() -> None:
        await asyncio.sleep(0)

    ignored = asyncio.create_task(waits())
    tasks = [asyncio.create_task(waits()), asyncio.create_task(ends()), ignored]
    await run_tasks(tasks, ignored=[ignored])
    assert ended == ["waits"]
    assert not ignored.done()
    ignored.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ignored


async def test_the_error_of_a_task_is_raised() -> None:
    async def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_tasks([asyncio.create_task(fails())])


async def left_by_a_handler(
    work: Callable[[], Coroutine[Any, Any, None]],
) -> list[asyncio.Task[None]]:
    """Run an operator that ends at once; return the tasks that it has left."""
    found: list[asyncio.Task[None]] = []

    async def handler() -> None:
        found.append(asyncio.create_task(work()))

    before = asyncio.all_tasks()
    await run_tasks([asyncio.create_task(handler())], ignored=before)
    return found


async def test_a_task_that_a_handler_has_left_may_end() -> None:
    async def work() -> None:
        await asyncio.sleep(0.01)

    (task,) = await left_by_a_handler(work)
    assert task.done()
    assert not task.cancelled()


async def test_a_task_that_does_not_end_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(embedding, "_GRACE_SECONDS", 0.01)
    (task,) = await left_by_a_handler(work)
    assert task.cancelled()


async def test_the_error_of_a_task_that_a_handler_has_left_is_raised() -> None:
    async def work() -> None:
        await asyncio.sleep(0.01)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await left_by_a_handler(work)


async def test_all_tasks_are_cancelled_with_the_operator() -> None:
    async def waits() -> None:
        await asyncio.Event().wait()

    before = asyncio.all_tasks()
    left = asyncio.create_task(waits())
    tasks = [asyncio.create_task(waits())]
    running = asyncio.create_task(run_tasks(tasks, ignored=before))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert left.cancelled()
