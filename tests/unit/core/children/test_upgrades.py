"""Reconcile handlers of a new release: renamed handlers and operators, other kinds."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.simulation.simulation import SimulatedRun
from fnop.testing import Simulation
from tests.reconcilers import KIND, NAME, Desiring, config_map, data_of


def upgraded(
    op: Desiring, registry: Registry, settings: Settings | None = None
) -> Simulation:
    """The same cluster with another operator, after the first one has stopped."""
    run = op.sim._run
    op.sim._run = SimulatedRun(
        Program(registry.handlers, settings or Settings()),
        run.cluster,
        clock=run.clock,
        on_say=run.on_say,
    )
    return op.sim


def test_a_renamed_handler_leaves_nothing_behind_elsewhere() -> None:
    op = Desiring(config_map("far", "kube-public")).begin()
    op.sim.stop().delete(NAME)
    renamed = Registry()

    @fnop.reconcile(KIND, owns=["configmaps"], registry=renamed, id="renamed")
    def keep(**_: Any) -> fnop.Desired:
        return fnop.desired(config_map("far", "kube-public"))

    sim = upgraded(op, renamed)
    sim.settle()
    assert sim.get(NAME) is None
    assert data_of(sim, "far", namespace="kube-public") is None


@pytest.mark.parametrize("still", ["another kind", "no reconcile handler"])
def test_a_new_release_tells_that_it_may_leave_something_behind(still: str) -> None:
    op = Desiring(config_map("far", "kube-public")).begin()
    op.sim.stop()
    later = Registry()
    if still == "another kind":

        @fnop.reconcile(KIND, owns=["secrets"], registry=later, id="keep")
        def keep(**_: Any) -> fnop.Desired:
            return fnop.desired()
    else:

        @fnop.on.update(KIND, registry=later)
        def updated(**_: Any) -> None: ...

    sim = upgraded(op, later)
    sim.settle()
    sim.delete(NAME).wait(60)
    is_told = any("that a former release has made" in each for each in sim.log)
    assert is_told or data_of(sim, "far", namespace="kube-public") is None


def test_a_renamed_operator_removes_fields_that_are_not_named_any_more() -> None:
    op = Desiring(config_map("one", a="1", b="2")).begin()
    op.sim.stop()
    op.wanted = [config_map("one", a="1")]
    sim = upgraded(op, op.registry, Settings(operator="latter"))
    sim.settle()
    assert op.synced()[0] == "True"
    assert data_of(sim, "one") == {"a": "1"}
