"""Values that `json` accepts arrive, with any class."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from fnop.core.handlers.declare.registry import Registry
from fnop.effects.values import canonical, freeze_json
from tests.json_scenarios import (
    GIVEN,
    VALUES_AND_NULLS,
    Given,
    as_read,
    assert_arrived,
    echo,
    same,
    writing,
)
from tests.simulations import Scenario, example
from tests.thorough import examples


@settings(max_examples=examples(150))
@given(VALUES_AND_NULLS)
def test_a_frozen_value_is_the_one_that_json_reads(value: Any) -> None:
    frozen = freeze_json(value, "value")
    assert same(frozen, as_read(value))
    assert freeze_json(frozen, "value") == frozen
    canonical(frozen)  # it has plain keys


@settings(max_examples=examples(15), deadline=None)
@given(GIVEN)
def test_what_a_handler_writes_arrives(found: Given) -> None:
    registry = writing({"example-1": found}, Registry())
    run = Scenario(registry, [example()], calls={f"{echo.__module__}:echo": echo})
    assert run.settle()
    assert run.failures == 0, [each.message for each in run.said]
    assert_arrived(found, lambda name: run.get("fnopexamples", name), "example-1")
