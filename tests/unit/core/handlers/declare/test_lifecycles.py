"""Lifecycles: which of several handlers are called in one pass."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare import lifecycles
from fnop.core.handlers.declare.lifecycles import Candidate, Lifecycle
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from tests.simulations import Scenario, example

KIND = "fnopexamples"
NAMES = ("a", "b", "c", "d")


def called(lifecycle: Lifecycle, seed: str = "0") -> tuple[list[str], Scenario]:
    """The order in which four handlers are called; the second fails twice."""
    registry, calls = Registry(), []
    for name in NAMES:

        @fnop.on.create(KIND, id=name, registry=registry)
        def create(retry: int, key: str = name, **_: Any) -> None:
            calls.append(key)
            if key == "b" and retry < 2:
                raise fnop.TemporaryError("not yet", delay=0)

    settings = Settings(lifecycle=lifecycle)
    run = Scenario(registry, [example()], settings=settings, seed=seed)
    assert run.settle()
    return calls, run


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(lifecycles).failed == 0


@pytest.mark.parametrize(
    ("lifecycle", "calls"),
    [
        (lifecycles.all_at_once, "abcdbb"),
        (lifecycles.one_by_one, "abcdbb"),
        (lifecycles.asap, "abcdbb"),
    ],
)
def test_k_17_3_the_order_of_calls(lifecycle: Lifecycle, calls: str) -> None:
    assert "".join(called(lifecycle)[0]) == calls


def test_all_at_once_needs_the_fewest_writes() -> None:
    _, few = called(lifecycles.all_at_once)
    _, many = called(lifecycles.one_by_one)
    assert len(few.writes) < len(many.writes)


@pytest.mark.parametrize("lifecycle", [lifecycles.shuffled, lifecycles.randomized])
def test_what_is_at_random_is_so_by_the_seed(lifecycle: Lifecycle) -> None:
    orders = {seed: called(lifecycle, seed)[0] for seed in "0123456789"}
    assert all(sorted(set(calls)) == list(NAMES) for calls in orders.values())
    assert len({tuple(calls) for calls in orders.values()}) > 1
    assert called(lifecycle, "3")[0] == orders["3"]


def test_a_lifecycle_of_ones_own() -> None:
    def last(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates[-1:]

    assert "".join(called(last)[0]) == "dcbabb"


def test_every_handler_succeeds_once_whatever_the_lifecycle() -> None:
    for lifecycle in (lifecycles.one_by_one, lifecycles.asap, lifecycles.randomized):
        calls, run = called(lifecycle)
        assert sorted(calls) == ["a", "b", "b", "b", "c", "d"]
        found: Any = run.get(KIND)
        assert "progress" not in str(found.get("status"))


@pytest.mark.parametrize("lifecycle", [lifecycles.asap, lifecycles.one_by_one])
def test_a_handler_that_its_own_write_excludes_does_not_hold_up_the_others(
    lifecycle: Lifecycle,
) -> None:
    registry, calls = Registry(), []

    def is_open(body: Any, **_: Any) -> bool:
        return (body.get("status") or {}).get("phase") != "Closed"

    @fnop.on.update(KIND, id="closes", when=is_open, registry=registry)
    def closes(patch: fnop.Patch, **_: Any) -> None:
        calls.append("closes")
        patch.status["phase"] = "Closed"

    for name in ("b", "c"):

        @fnop.on.update(KIND, id=name, registry=registry)
        def update(key: str = name, **_: Any) -> None:
            calls.append(key)

    run = Scenario(registry, [example(size=1)], settings=Settings(lifecycle=lifecycle))
    run.settle()
    run.edit(KIND, spec={"size": 2}).settle()
    assert calls == ["closes", "b", "c"]
    run.edit(KIND, spec={"size": 3}).settle()
    assert calls == ["closes", "b", "c", "b", "c"]
    assert "progress" not in str(run.get(KIND))
