"""A status of a reconcile handler that the API server refuses."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime
from typing import Any

import fnop
from fnop.core.handlers.registry import Registry
from fnop.testing import Simulation
from tests.reconcilers import KIND, NAME, condition, config_map, data_of
from tests.simulations import DEFINITION, example


def strict_definition() -> dict[str, Any]:
    """One whose status has conditions, and a phase that is a text."""
    found = deepcopy(DEFINITION)
    (version,) = found["spec"]["versions"]
    conditions = {
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = {
        "type": "object",
        "properties": {"phase": {"type": "string"}, "conditions": conditions},
    }
    return found


def test_a_refused_status_fails_the_call_and_is_told() -> None:
    registry, calls = Registry(), list[datetime]()
    phases: list[Any] = [5]

    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id="keep")
    def keep(now: datetime, **_: Any) -> fnop.Desired:
        calls.append(now)
        return fnop.desired(config_map("one", a="1"), status={"phase": phases[0]})

    sim = Simulation(registry, crds=[strict_definition()])
    sim.apply(example()).wait(60)
    assert data_of(sim, "one") == {"a": "1"}
    status, reason, message = condition(sim, "Synced")
    assert (status, reason) == ("False", "HandlerFailed")
    assert message.startswith("Refused: its status is refused: ")
    assert "phase" in message
    assert 4 < len(calls) < 20, "it is tried again, with growing pauses"
    told = [each for each in sim.errors if "status is refused" in each]
    assert told
    assert "keep failed, again in" in told[0]
    phases[0] = "good"
    sim.wait(120)
    assert sim[NAME].status["phase"] == "good"
    assert condition(sim, "Synced")[0] == "True"
    number = len(calls)
    sim.wait(600)
    assert len(calls) == number


def test_a_status_that_is_refused_for_good_ends_with_its_error() -> None:
    registry = Registry()

    @fnop.reconcile(
        KIND, registry=registry, id="keep", errors=fnop.ErrorsMode.PERMANENT
    )
    def keep(**_: Any) -> fnop.Desired:
        return fnop.desired(status={"phase": 5})

    sim = Simulation(registry, crds=[strict_definition()])
    sim.apply(example()).wait(600)
    assert condition(sim, "Synced")[1] == "HandlerFailed"
    assert len(sim.errors) == 1
