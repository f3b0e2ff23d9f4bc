"""Strands: what is known of a call that waits while a check goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fnop.adapters.kopf.checking.strands import waits_for_task


async def awaits_event(event: asyncio.Event) -> None:
    await event.wait()


async def awaits_task(event: asyncio.Event) -> None:
    await asyncio.create_task(awaits_event(event))


async def awaits_first(event: asyncio.Event) -> None:
    tasks = [asyncio.create_task(awaits_event(event)) for _ in range(2)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def awaits_all(event: asyncio.Event) -> None:
    await asyncio.gather(awaits_first(event), awaits_task(event))


async def awaits_for_a_while(event: asyncio.Event) -> None:
    await asyncio.wait([asyncio.create_task(awaits_event(event))], timeout=3600)


async def awaits_something(_: asyncio.Event) -> None:
    await asyncio.get_running_loop().create_future()


async def awaits_both(event: asyncio.Event) -> None:
    await asyncio.gather(awaits_event(event), awaits_something(event))


@pytest.mark.parametrize(
    ("waits", "is_known"),
    [
        *((each, True) for each in (awaits_event, awaits_task, awaits_first)),
        (awaits_all, True),
        *((each, False) for each in (awaits_for_a_while, awaits_something)),
        (awaits_both, False),
    ],
)
async def test_a_task_that_waits_for_tasks_which_only_wait_is_known(
    waits: Callable[[asyncio.Event], Coroutine[Any, Any, None]], is_known: bool
) -> None:
    """Others may answer at any time: for these, a check waits in real time."""
    task = asyncio.create_task(waits(asyncio.Event()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert waits_for_task(task) is is_known
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)
