"""A clock that was ahead when times were stored, and is right again after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.simulations import Scenario, example

KIND = "FnopExample"
DAY = 86_400.0


def set_back(run: Scenario, seconds: float) -> None:
    """Let the operator's process end, and set its clock back before the next one."""
    run.crash()
    now = run.clock.now()
    run.clock._start -= seconds
    run.clock._now = now._replace(wall=now.wall - seconds)


@pytest.fixture
def registry() -> Registry:
    return Registry()


WAITS: dict[str, Callable[[], Any]] = {
    "error": lambda: ValueError("no"),
    "temporary": lambda: fnop.TemporaryError("no", delay=30),
    "again": lambda: fnop.again(after=30, because="for it"),
}


@pytest.mark.parametrize("way", WAITS)
@pytest.mark.parametrize("jumps", [(DAY,), (600.0,), (5.0,), (-5.0,), (-DAY, DAY)])
def test_no_handler_waits_for_longer_than_it_asked_for(
    registry: Registry, way: str, jumps: tuple[float, ...]
) -> None:
    calls: list[float] = []

    @fnop.on.create(KIND, registry=registry, backoff=30, timeout=30 * DAY)
    def create(**_: Any) -> Any:
        calls.append(run.clock.elapsed)
        found = WAITS[way]()
        if isinstance(found, Exception):
            raise found
        return found

    run = Scenario(registry, [example()])
    run.wait(1)
    for seconds in jumps:
        set_back(run, seconds)
        attempts = len(calls)
        run.wait(36)
        assert len(calls) > attempts


def test_a_timeout_begins_again(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, backoff=30, timeout=100)
    def create(**_: Any) -> None:
        raise ValueError("no")

    run = Scenario(registry, [example()])
    run.wait(1)
    set_back(run, DAY)
    run.wait(120)
    assert any("timed out after 100 s" in each for each in run.lines)
