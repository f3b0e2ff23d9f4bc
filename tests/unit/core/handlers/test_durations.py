"""Durations and counts in options, effects and settings: what is refused, and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.run.invocation import failure_of
from fnop.core.peers.lease import Timing
from fnop.effects.builders import wait
from tests.mistakes import said
from tests.simulations import Scenario, example

KIND = "fnopexamples"


def test_a_timer_that_always_finds_itself_overdue_leaves_a_moment_to_others() -> None:
    registry = Registry()
    calls: list[int] = []

    @fnop.timer("fnopexamples", registry=registry, interval=lambda **_: -5)
    def tick(**_: Any) -> None:
        calls.append(1)

    run = Scenario(registry, [example()])
    run.wait(10)
    assert len(calls) <= 11


def declared(**options: Any) -> None:
    @fnop.timer(KIND, registry=Registry(), **options)
    def tick(**_: Any) -> None: ...


TIMED: dict[str, Callable[[Any], Any]] = {
    "TemporaryError.delay": lambda it: fnop.TemporaryError("not yet", delay=it),
    "Sleep.seconds": lambda it: fnop.sleep(it),
    "Again.after": lambda it: fnop.again(it),
    "Wait.seconds": lambda it: wait(it),
    "timeout=": lambda it: declared(timeout=it),
    "backoff=": lambda it: declared(backoff=it),
    "interval=": lambda it: declared(interval=it),
    "idle=": lambda it: declared(idle=it),
    "initial_delay=": lambda it: declared(initial_delay=it),
    "cancellation_timeout=": lambda it: declared(cancellation_timeout=it),
    "Backoff.first": lambda it: fnop.Backoff(first=it),
    "Backoff.most": lambda it: fnop.Backoff(most=it),
    "default_backoff=": lambda it: fnop.Settings(default_backoff=it),
    "rediscovery_seconds=": lambda it: fnop.Settings(rediscovery_seconds=it),
    "election: retry_seconds": lambda it: Timing(retry_seconds=it),
}


NO_DURATIONS = {
    "nan": (math.nan, "to ten years, not nan"),
    "infinite": (math.inf, "to ten years, not inf"),
    "below zero": (-5, "to ten years, not -5"),
    "a text": ("x", "not 'x'"),
    "true": (True, "not True"),
    "a timedelta": (
        timedelta(seconds=5),
        "not a timedelta: write its .total_seconds()",
    ),
}


@pytest.mark.parametrize("place", TIMED)
@pytest.mark.parametrize("name", NO_DURATIONS)
def test_what_is_no_duration_is_refused_where_it_is_given(
    place: str, name: str
) -> None:
    value, sentence = NO_DURATIONS[name]
    text = said(lambda: TIMED[place](value))
    if (place, name) == ("default_backoff=", "a text"):
        assert "a number of seconds, or fnop.Backoff" in text
        return
    assert f"{place} must be a number of seconds" in text
    assert text.endswith(sentence)


@pytest.mark.parametrize("place", TIMED)
def test_a_duration_is_taken(place: str) -> None:
    TIMED[place](1)


@pytest.mark.parametrize("value", [math.nan, "2"])
def test_a_backoff_grows_by_a_number(value: Any) -> None:
    assert "grows by a factor" in said(lambda: fnop.Backoff(factor=value))


@pytest.mark.parametrize("interval", [0, 1e-9])
def test_a_timer_that_lets_no_time_pass_is_refused(interval: float) -> None:
    text = said(lambda: declared(interval=interval))
    assert "interval= must be a number of seconds from 0.05 to ten years" in text


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("interval", [0, 1e-9, 0.01])
def test_a_timer_whose_function_lets_no_time_pass_leaves_a_moment_to_others(
    interval: float, sharp: bool
) -> None:
    registry, calls = Registry(), []

    @fnop.timer(KIND, registry=registry, interval=lambda **_: interval, sharp=sharp)
    def tick(**_: Any) -> None:
        calls.append(1)

    Scenario(registry, [example()]).wait(2)
    assert 2 <= len(calls) <= 41


@pytest.mark.parametrize("retries", [0, 0.5, math.nan, "3", True, -1])
def test_attempts_are_counted_in_whole_numbers(retries: Any) -> None:
    text = said(lambda: declared(retries=retries))
    assert "retries= must be a number of attempts, whole and at least one" in text


def test_an_error_of_a_class_of_its_own_has_the_usual_delay() -> None:
    class NotReady(fnop.TemporaryError):
        def __init__(self, what: str) -> None:
            Exception.__init__(self, f"{what} is not ready")

    failure = failure_of(NotReady("it"))
    assert (str(failure), failure.temporary) == ("NotReady: it is not ready", 60.0)
