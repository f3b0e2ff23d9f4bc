"""Cleanup handlers are for what startup handlers have begun."""

from typing import Any

import pytest

import fnop
from fnop.core.handlers.registry import Registry
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
