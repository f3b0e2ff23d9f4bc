"""What becomes of children when a reconcile handler cannot say what should exist."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from tests.reconcilers import (
    KIND,
    NAME,
    Desiring,
    condition,
    config_map,
    data_of,
    simulation,
)
from tests.simulations import example


@pytest.mark.parametrize("error", [fnop.PermanentError, fnop.TemporaryError])
def test_children_stay_as_they_are_when_nothing_can_be_desired(
    error: type[Exception],
) -> None:
    registry, calls = fnop.Registry(), list[int]()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def keep(spec: fnop.Spec, **_: Any) -> fnop.Desired:
        calls.append(len(calls))
        if spec.get("zone") == "x":
            raise error("spec.zone: there is no zone x")
        ready = fnop.condition("Ready", True, "Good")
        return fnop.desired(config_map("one", a="1"), conditions=ready)

    sim = simulation(registry)
    sim.apply(example()).settle()
    sim.edit(NAME, spec={"zone": "x"}).wait(10)
    told = f"{error.__name__}: spec.zone: there is no zone x"
    assert condition(sim, "Synced") == ("False", "HandlerFailed", told)
    assert condition(sim, "Ready")[0] == "True", "it is what was desired before"
    assert data_of(sim, "one") == {"a": "1"}

    before = len(calls)
    sim.edit("configmaps/one", data={"a": "2"}).wait(10)
    assert len(calls) > before, "a change of a child calls it"
    assert data_of(sim, "one") == {"a": "2"}, "nobody repairs it"

    sim.edit(NAME, spec={"zone": None}).wait(120)
    assert condition(sim, "Synced")[0] == "True"
    assert data_of(sim, "one") == {"a": "1"}


def test_to_desire_nothing_deletes_the_children() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    op.desire()
    assert data_of(op.sim, "one") is None
