"""Simulated runs of reconcile handlers: when such a run has settled."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.adapters.testing.cases import cases_of, subjects_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.state.worlds import _stripped
from fnop.interpreters.simulation.settling import WAITS_MAX, Despair, Prospects
from fnop.interpreters.simulation.simulation import unserved_selectors
from fnop.testing import Simulation
from tests.simulations import DEFINITION, example

# Longer than any run is waited for.
LONG = 8 * 86_400.0


def config_map(data: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "child"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": data,
    }


def simulation(answer: Any, **options: Any) -> tuple[Simulation, list[float]]:
    registry, calls = Registry(), list[float]()

    @fnop.reconcile("fnopexamples", owns="configmaps", registry=registry, **options)
    def level(now: Any, **_: Any) -> Any:
        calls.append(now.timestamp())
        return answer()

    sim = Simulation(registry, crds=DEFINITION, objects=example(field="value"))
    return sim, calls


@pytest.mark.parametrize("after", [10.0, LONG])
def test_what_asks_to_be_called_again_has_settled(after: float) -> None:
    sim, calls = simulation(lambda: fnop.desired(config_map({"a": "b"}), again=after))
    sim.settle()
    assert sim.settled, sim.unsettled
    seen = len(calls)
    sim.wait(after + 1)
    assert len(calls) == seen + 1


def test_a_resync_leaves_a_run_settled() -> None:
    sim, _ = simulation(lambda: fnop.desired(config_map({"a": "b"})), resync=600.0)
    assert sim.settle().settled, sim.unsettled


def test_a_child_that_is_refused_for_ever_has_not_settled() -> None:
    sim, _ = simulation(lambda: fnop.desired(config_map({"no key": "b"})))
    sim.wait(1)
    sim._run.prospects = Prospects(sim._run, Despair(waits=WAITS_MAX // 10))
    assert not sim.settle().settled
    assert "fails for fnopexamples/example-1" in sim.unsettled


def test_an_operator_of_reconcile_handlers_alone_is_served() -> None:
    sim, _ = simulation(lambda: fnop.desired(config_map({"a": "b"})))
    assert unserved_selectors(sim.settle()._run) == ()


def test_its_objects_are_edited_in_a_check() -> None:
    registry = Registry()

    @fnop.reconcile("fnopexamples", owns="configmaps", registry=registry)
    def level(spec: fnop.Spec, **_: Any) -> Any:
        return fnop.desired(config_map({"a": str(spec["field"])}))

    @fnop.maps("configmaps", to="fnopexamples", registry=registry)
    def mapped(**_: Any) -> None:
        pass

    program = Program(registry.handlers, Settings())
    found = subjects_of(
        program, [DEFINITION, example(field="value"), config_map({"x": "y"})]
    )
    assert [each["kind"] for each in found.subjects] == ["FnopExample"]
    names = [each.name for each in cases_of(program, found)]
    assert any("edit" in each for each in names), names


def test_the_order_of_conditions_makes_no_other_world() -> None:
    ready, synced = {"type": "Ready", "status": "True"}, {"type": "Synced"}
    one, other = (
        _stripped({**example(), "status": {"conditions": [*given]}})
        for given in ((ready, synced), (synced, ready))
    )
    assert one == other


def test_who_has_lost_its_watches_has_not_settled() -> None:
    sim, _ = simulation(lambda: fnop.desired(config_map({"a": "b"}), again=LONG))
    sim.settle()
    for source in sorted(sim._run.reads.watches.kinds):
        sim._run.reads.watches.breaks(source, reason="unreachable")
    sim.edit("configmaps/child", data={"a": "c"}).settle()
    assert sim["configmaps/child"]["data"] == {"a": "b"}, "it has seen the change"
