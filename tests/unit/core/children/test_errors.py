"""Errors of reconcile handlers: children stay, and the object and the log say why."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.testing import Simulation
from tests.reconcilers import (
    KIND,
    NAME,
    Desiring,
    condition,
    config_map,
    data_of,
    secret,
    simulation,
)
from tests.simulations import DEFINITION, example


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


MANIFEST = config_map("one", a="1")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([MANIFEST], "has returned a list; return fnop.desired([...]) to have"),
        ((MANIFEST, MANIFEST), "return fnop.desired([...])"),
        ([fnop.child(MANIFEST)], "return fnop.desired([...])"),
        ([["one"]], "return fnop.desired([...])"),
        ([fnop.event("Made"), MANIFEST], "return [fnop.desired([...]), ...]"),
        ([fnop.desired(MANIFEST), MANIFEST], "return fnop.desired([...])"),
        (MANIFEST, "has returned a manifest; return fnop.desired(manifest) to have"),
        (fnop.child(MANIFEST), "return fnop.desired(manifest)"),
    ],
)
def test_children_that_are_returned_bare_are_refused(
    answer: Any, sentence: str
) -> None:
    registry = fnop.Registry()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def keep(**_: Any) -> Any:
        return answer

    sim = simulation(registry)
    sim.apply(example()).wait(1)
    status, _, message = condition(sim, "Synced")
    assert (status, sentence in message) == ("False", True), message


def test_to_desire_nothing_deletes_the_children() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    op.desire()
    assert data_of(op.sim, "one") is None


def test_a_value_of_a_secret_is_not_told() -> None:
    op = Desiring(secret("s", pin=987654321), owns="secrets")
    op.sim.apply(example()).wait(30)
    told = [*op.sim.log, *op.synced()]
    assert not [each for each in told if "987654321" in each]


def test_a_bare_manifest_is_no_answer() -> None:
    registry = Registry()
    fnop.reconcile(KIND, owns="configmaps", registry=registry, id="forgot")(
        lambda **_: config_map("one")
    )
    sim = simulation(registry)
    sim.apply(example()).wait(30)
    assert sim.errors or "configmaps/one" in sim


def test_a_malformed_condition_of_somebody_hinders_nobody() -> None:
    op = Desiring(config_map("one", a="1"))
    op.sim.apply(example())
    op.sim.edit(NAME, status={"conditions": [{"type": ["x"]}]}).wait(30)
    assert op.sim.errors == []


def test_a_child_with_malformed_labels_fails_alone() -> None:
    wrong = config_map("wrong")
    wrong["metadata"]["labels"] = "app"
    op = Desiring(wrong, config_map("one", a="1"))
    op.sim.apply(example()).wait(30)
    told = [each for each in op.sim.errors if "is not a mapping" in each]
    assert data_of(op.sim, "one") == {"a": "1"} or "labels" in told[0]


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


@pytest.mark.parametrize("by_patch", [True, False])
def test_a_refused_status_is_despaired_of_as_other_refusals_are(
    by_patch: bool,
) -> None:
    registry, calls = Registry(), list[str]()

    def refused(name: str, **_: Any) -> Any:
        calls.append(name)
        status = {"phase": 5}
        return fnop.patch(status=status) if by_patch else fnop.desired(status=status)

    decorate = fnop.on.create if by_patch else fnop.reconcile
    decorate(KIND, registry=registry)(refused)
    sim = Simulation(registry, crds=[strict_definition()])
    sim.apply(example()).settle()
    assert 2 < len(calls) < 25


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
