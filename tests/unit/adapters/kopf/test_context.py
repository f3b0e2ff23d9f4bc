"""The running handler, for functions without arguments."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import Any

import pytest

from fnop.adapters.kopf.declaring.context import (
    CURRENT,
    CurrentCall,
    current_call,
    current_owner,
)

BODY = {"metadata": {"name": "a"}}


def test_outside_of_handlers_there_is_none() -> None:
    for look in (current_call, current_owner):
        with pytest.raises(LookupError, match="no handler runs here"):
            look()


def test_a_handler_of_an_activity_has_no_owner() -> None:
    call = CurrentCall("a", None, None)

    def run() -> None:
        CURRENT.set(call)
        assert current_call() is call
        with pytest.raises(LookupError, match="no object"):
            current_owner()

    copy_context().run(run)


async def test_each_task_has_its_own() -> None:
    async def handle(name: str) -> list[Any]:
        CURRENT.set(CurrentCall(name, {**BODY, "name": name}, None))
        await asyncio.sleep(0)
        return [current_call().handler, current_owner()["name"]]

    first, second = await asyncio.gather(handle("a"), handle("b"))
    assert (first, second) == (["a", "a"], ["b", "b"])
    assert CURRENT.get(None) is None


def test_children_are_noted_in_order() -> None:
    call = CurrentCall("a", BODY, None)
    call.declare(print, {"id": "b"})
    call.declare(repr, {})
    assert call.children == [(print, {"id": "b"}), (repr, {})]
