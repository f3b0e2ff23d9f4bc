"""Turns: the handlers of one object are called one after the other."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.running.handlers import handlers_of
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.turns import Turns
from fnop.core.handlers.declare.writers import PatchWriter
from fnop.core.values.body import Body

Diary = list[str]


def make_turns(limit: int | None = None) -> Turns:
    settings = kopf.OperatorSettings()
    settings.queueing.worker_limit = limit
    return Turns(settings.queueing)


async def stay(turns: Turns, uid: str, name: str, diary: Diary) -> None:
    async with turns.of(uid, "pods"):
        diary.append(f"{name} comes")
        await asyncio.sleep(0)
        diary.append(f"{name} goes")


async def test_those_of_one_object_come_in_their_order() -> None:
    turns, diary = make_turns(), Diary()
    await asyncio.gather(*(stay(turns, "u", each, diary) for each in "abc"))
    assert diary == [f"{each} {does}" for each in "abc" for does in ("comes", "goes")]
    assert len(turns) == 0


async def test_those_of_several_objects_do_not_wait_for_each_other() -> None:
    turns, diary = make_turns(), Diary()
    await asyncio.gather(stay(turns, "u", "a", diary), stay(turns, "v", "b", diary))
    assert diary == ["a comes", "b comes", "a goes", "b goes"]


async def test_one_that_is_cancelled_leaves_the_queue() -> None:
    turns, diary = make_turns(), Diary()
    async with turns.of("u", "pods"):
        waiting = asyncio.create_task(stay(turns, "u", "a", diary))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert len(turns) == 1
    await stay(turns, "u", "b", diary)
    assert diary == ["b comes", "b goes"]
    assert len(turns) == 0


async def test_a_limit_of_workers_is_a_limit_of_objects_of_a_kind() -> None:
    turns, at_work, most = make_turns(limit=2), 0, 0

    async def work(uid: str) -> None:
        nonlocal at_work, most
        async with turns.of(uid, "pods"):
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0)
            at_work -= 1

    async with turns.of("a", "pods"), turns.of("b", "pods"):
        assert not turns.are_free("c", "pods")
        assert turns.are_free("c", "jobs")
        tasks = [asyncio.create_task(work(each)) for each in "acdefg"]
        async with turns.of("x", "jobs"):
            assert not at_work
    await asyncio.gather(*tasks)
    assert most == 2


async def called_at_once(
    registry: OperatorRegistry, uids: str, limit: int | None = None
) -> None:
    """Call all handlers of watch events about these objects at the same time."""
    loop = asyncio.get_running_loop()
    operator = Operator(registry, kopf.OperatorSettings(), None, loop)
    operator.settings.batching.worker_limit = limit
    calls = [
        each.fn(
            body=Body({"metadata": {"name": uid, "uid": uid}}).data,
            type="ADDED",
            resource="resource",
            patch=PatchWriter(),
            started=datetime.fromtimestamp(0, UTC),
        )
        for uid in uids
        for each in handlers_of(operator)
    ]
    try:
        await asyncio.gather(*calls)
    finally:
        operator.settings.execution.executor.shutdown()


async def test_a_handler_of_watch_events_waits_for_the_one_before(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.event("pods", id="slow", registry=registry)
    async def slow(memo: kopf.Memo, **_: Any) -> None:
        await asyncio.sleep(0)
        memo.size = 1

    @kopf.on.event("pods", id="fast", registry=registry)
    def fast(memo: kopf.Memo, name: str, **_: Any) -> None:
        diary.append(f"{name}: {memo.size}")

    await called_at_once(registry, "uv")
    assert sorted(diary) == ["u: 1", "v: 1"]


async def test_with_one_worker_handlers_of_two_objects_do_not_meet(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.event("pods", registry=registry)
    async def look(name: str, **_: Any) -> None:
        diary.append(f"{name} comes")
        await asyncio.sleep(0)
        diary.append(f"{name} goes")

    await called_at_once(registry, "uvw", limit=1)
    assert diary == [f"{each} {does}" for each in "uvw" for does in ("comes", "goes")]
