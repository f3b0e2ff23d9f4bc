"""Rate limits of called functions, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.testing import External, Simulation
from tests.simulations import DEFINITION, example

KIND = "fnopexamples"


def ask(name: str, limit: Any = None) -> str:
    raise AssertionError("it is called outside")


class Service(External):
    """It notes when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, Any]] = []

    def ask(self, name: str, limit: Any = None) -> str:
        self.seen.append((name, limit))
        return name

    def digest(self) -> list[str]:
        return [name for name, _ in self.seen]


def calling(limit: Any) -> tuple[Simulation, list[str]]:
    registry, calls = Registry(), list[str]()

    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, **_: Any) -> None:
        await fnop.call(ask, limit=limit, name=name)
        calls.append(name)

    models = {"tests.unit.effects.test_call_limits:ask": Service().ask}
    sim = Simulation(registry, crds=[DEFINITION], calls=models)
    sim.apply([example(f"e-{number}") for number in range(6)])
    return sim, calls


def test_calls_wait_for_their_turn() -> None:
    # Two at once, and then one each five seconds.
    sim, calls = calling(fnop.rate(2, per=10))
    found = []
    for _ in range(5):
        sim.wait(5)
        found.append(len(calls))
    assert found == [3, 4, 5, 6, 6]


def test_without_a_limit_all_come_at_once() -> None:
    sim, calls = calling(None)
    sim.wait(0.5)
    assert len(calls) == 6


def test_an_argument_of_that_name_is_the_functions_own() -> None:
    assert fnop.call(ask, name="x", limit=3).arguments == {"name": "x", "limit": 3}
    assert fnop.call(ask, name="x").arguments == {"name": "x"}
    limited = fnop.call(ask, limit=fnop.rate(5, per=60), name="x")
    assert (limited.arguments, limited.burst) == ({"name": "x"}, 5)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "five"])
def test_rates_that_are_none(wrong: Any) -> None:
    with pytest.raises(ValueError, match="times of a rate is a number above zero"):
        fnop.rate(wrong)
    with pytest.raises((ValueError, TypeError)):
        fnop.rate(1, per=wrong)
