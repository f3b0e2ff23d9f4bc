"""What is planned is what is done first, whatever the cluster; a plan does nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.handlers.registry import Registry
from fnop.interpreters.clock import VirtualClock
from fnop.interpreters.cluster import Off, paced
from fnop.interpreters.cluster.controllers.rounds import NAMES
from fnop.interpreters.simulation import SimulatedRun
from tests.plans import Served, planned, planner_of, sent_as_planned
from tests.simulations import Scenario, example

KIND = "fnopexamples"
_NAMES = st.sampled_from(("a", "b", "c", "d"))
_SPECS = st.fixed_dictionaries(
    {"size": st.integers(0, 3)},
    optional={"children": st.integers(0, 3), "fails": st.booleans()},
)
_DRIFT = st.one_of(
    st.tuples(st.just("spec"), _NAMES, _SPECS),
    st.tuples(st.just("child"), _NAMES, st.integers(0, 2)),
    st.tuples(st.just("gone"), _NAMES, st.integers(0, 2)),
    st.tuples(st.just("delete"), _NAMES, st.none()),
    st.tuples(st.just("create"), st.sampled_from(("x", "y")), _SPECS),
)


def operators() -> dict[str, Registry]:
    """Operators of different styles."""
    levels, causes = Registry(), Registry()

    @fnop.reconcile(KIND, owns=["configmaps"], registry=levels)
    def keep(name: str, spec: fnop.Spec, **_: Any) -> fnop.Desired:
        size = str(spec.get("size"))
        children = [note(f"{name}-{n}", size) for n in range(spec.get("children", 1))]
        return fnop.desired(children, status={"size": size})

    @fnop.on.delete(KIND, registry=causes)
    async def delete(name: str, **_: Any) -> None:
        await fnop.delete("configmaps", name=f"{name}-0")

    @fnop.on.create(KIND, registry=causes)
    @fnop.on.update(KIND, registry=causes)
    async def change(
        name: str, spec: fnop.Spec, patch: fnop.Patch, **_: Any
    ) -> dict[str, Any]:
        token = await fnop.random(4)
        if spec.get("fails"):
            raise fnop.TemporaryError("not yet", delay=60)
        for n in range(spec.get("children", 1)):
            await fnop.apply(note(f"{name}-{n}", f"{spec.get('size')}/{token}"))
        patch.status["size"] = str(spec.get("size"))
        return {"token": token}

    return {"levels": levels, "causes": causes}


def note(name: str, size: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"size": size},
    }


def drifted(run: Scenario, drift: tuple[str, str, Any]) -> None:
    what, name, value = drift
    match what:
        case "spec" if run.get(KIND, name) is not None:
            run.edit(KIND, name, spec={"children": None, "fails": None, **value})
        case "child" if run.get("configmaps", f"{name}-{value}") is not None:
            run.edit("configmaps", f"{name}-{value}", data={"size": "drifted"})
        case "gone" if run.get("configmaps", f"{name}-{value}") is not None:
            run.delete("configmaps", f"{name}-{value}")
        case "delete" if run.get(KIND, name) is not None:
            run.delete(KIND, name)
        case "create" if run.get(KIND, name) is None:
            run.apply(example(name, **value))
        case _:
            pass


@settings(max_examples=60)
@given(
    st.sampled_from(("levels", "causes")),
    st.dictionaries(_NAMES, _SPECS, max_size=4),
    st.lists(_DRIFT, max_size=6),
    st.booleans(),
)
def test_the_first_round_is_what_a_run_does_at_once(
    style: str,
    specs: dict[str, dict[str, Any]],
    drifts: list[tuple[str, str, Any]],
    has_run: bool,
) -> None:
    registry = operators()[style]
    run = Scenario(registry, [example(name, **spec) for name, spec in specs.items()])
    if has_run:
        run.settle(seconds=30)
    for each in drifts:
        drifted(run, each)
    before, wall = run.cluster, run.clock.now().wall
    served = Served(before, wall)
    planner = planner_of(registry, served, wall)
    planned(planner)
    # Nothing was written, and what is stored is what it was.
    assert served.cluster is before
    assert {each.method for each in served.requests} == {"GET"}
    off = paced(before, {name: Off() for name in NAMES})
    program = run.machine.program
    real = SimulatedRun(program, off, seed="other", clock=VirtualClock(wall))
    real.settle(seconds=0.1)
    assert sent_as_planned(planner, real.requests) == []
