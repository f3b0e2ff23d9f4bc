"""Startup and cleanup handlers: cleanup follows what startup has begun."""

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.state.lifecycle import CLEANUP_SECONDS
from tests.stories import Story

WAITING = fnop.TemporaryError("not yet", delay=5)


@pytest.fixture
def registry() -> Registry:
    return Registry()


def cleaned(registry: Registry) -> list[str]:
    called: list[str] = []

    @fnop.on.cleanup(registry=registry)
    def cleanup(**_: Any) -> None:
        called.append("cleanup")

    return called


def stopped_after(registry: Registry, seconds: float) -> Story:
    story = Story(registry)
    story.wait(seconds)
    story.stop()
    assert story.settle()
    assert story.exit is not None
    return story


def test_no_cleanup_where_no_startup_has_succeeded(registry: Registry) -> None:
    called = cleaned(registry)

    @fnop.on.startup(registry=registry)
    def startup(**_: Any) -> None:
        raise WAITING

    stopped_after(registry, 3)
    assert called == []


def test_cleanup_where_one_of_several_has(registry: Registry) -> None:
    called = cleaned(registry)

    @fnop.on.startup(registry=registry)
    def first(**_: Any) -> None:
        pass

    @fnop.on.startup(registry=registry)
    def second(**_: Any) -> None:
        raise WAITING

    stopped_after(registry, 3)
    assert called == ["cleanup"]


def test_cleanup_where_all_have_or_there_is_none(registry: Registry) -> None:
    called = cleaned(registry)
    stopped_after(registry, 3)
    assert called == ["cleanup"]


@pytest.mark.parametrize("way", ["sleeps", "fails"])
def test_cleanup_handlers_have_a_minute(registry: Registry, way: str) -> None:
    @fnop.on.cleanup(registry=registry, backoff=1)
    async def cleanup(**_: Any) -> None:
        if way == "fails":
            raise ValueError("no way")
        await fnop.sleep(3600)

    story = Story(registry)
    story.wait(1)
    story.stop()
    story.wait(CLEANUP_SECONDS - 2)
    assert story.exit is None
    story.wait(3)
    assert story.exit is not None
    assert story.exit.status == 1
    assert "took longer than 60" in story.exit.reason
