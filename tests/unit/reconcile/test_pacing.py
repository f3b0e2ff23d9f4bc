"""Reconcile handlers that cause their own next call, and such as only seem to."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.values.pace import ROLLOUT_CHANGES
from fnop.testing import Simulation
from tests.reconcilers import (
    KIND,
    NAME,
    Desiring,
    config_map,
    data_of,
    keeping,
    simulation,
)
from tests.simulations import example


def told(sim: Simulation) -> list[str]:
    return [each for each in sim.log if "growing pauses" in each]


# --------------------------------------------------------------------- without end


@pytest.mark.parametrize("is_data", [True, False])
def test_another_child_at_each_call_is_told_once_by_its_name(is_data: bool) -> None:
    calls: list[float] = []

    def keep(now: Any, **_: Any) -> fnop.Desired:
        calls.append(now.timestamp())
        turn = str(len(calls))
        data = {"turn": turn, "same": "x"}
        return fnop.desired(config_map("one" if is_data else f"one-{turn}", **data))

    sim = keeping(keep, owns="configmaps")
    sim.apply(example()).wait(3_600)
    (line,) = told(sim)
    assert "keep is called again and again" in line
    assert "changes configmap/one" in line
    assert ("data.turn" in line, "data.same" in line) == (is_data, False)
    # At first at once, and in the end once a minute.
    assert ROLLOUT_CHANGES < len(calls) < ROLLOUT_CHANGES + 75
    assert calls[-1] - calls[-2] == pytest.approx(60, abs=2)


def test_another_child_after_each_long_call_is_told() -> None:
    calls: list[str] = []

    async def keep(**_: Any) -> fnop.Desired:
        await fnop.sleep(5)
        calls.append("call")
        return fnop.desired(config_map("one", turn=str(len(calls))))

    sim = keeping(keep, owns="configmaps")
    sim.apply(example()).wait(3_600)
    assert len(told(sim)) == 1
    assert len(calls) < ROLLOUT_CHANGES + 75


def test_who_requeues_itself_is_told_once() -> None:
    def again(**_: Any) -> Any:
        return [fnop.requeue(KIND, name="example-1"), fnop.desired()]

    sim = keeping(again)
    sim.apply(example()).wait(600)
    (line,) = told(sim)
    assert "keep is called again and again" in line
    assert "requeues itself" in line


def test_two_that_requeue_each_other_are_slowed_down() -> None:
    calls: list[str] = []

    def again(name: str, **_: Any) -> Any:
        calls.append(name)
        other = {"ash": "oak", "oak": "ash"}[name]
        return [fnop.requeue(KIND, name=other), fnop.desired()]

    sim = keeping(again)
    sim.apply([example("ash"), example("oak")]).wait(60)
    (line,) = told(sim)
    assert "requeues others, and is requeued by them" in line
    assert len(calls) < 2 * ROLLOUT_CHANGES + 20


def test_who_asks_to_be_called_again_at_once_is_slowed_down() -> None:
    op = Desiring(config_map("one"))
    op.more = {"again": 0}
    op.sim.apply(example())
    op.sim.wait(60)
    assert ROLLOUT_CHANGES < len(op.calls) < ROLLOUT_CHANGES + 10
    assert "asks to be called again in 0 s" in told(op.sim)[0]


def test_who_deletes_a_child_again_and_again_is_told() -> None:
    op = Desiring(config_map("one"))

    @fnop.on.event("configmaps", registry=op.registry)
    def rival(name: str, type: str | None, **_: Any) -> Any:
        if name == "one" and type != "DELETED":
            return fnop.delete("configmaps", name="one", namespace="default")
        return None

    op.sim = simulation(op.registry)
    op.sim.apply(example())
    op.sim.wait(60)
    (line,) = told(op.sim)
    assert "configmap/one (deleted)" in line
    assert "another client" in line
    assert len(op.calls) < 60


def test_an_edit_does_not_wait_for_the_pauses_of_a_loop() -> None:
    rounds: list[Any] = []

    def keep(spec: Any, **_: Any) -> fnop.Desired:
        rounds.append(spec.get("round"))
        return fnop.desired(config_map("one", turn=str(len(rounds))))

    sim = keeping(keep, owns="configmaps")
    sim.apply(example()).wait(300)
    assert told(sim)
    sim.edit(NAME, spec={"round": 7}).wait(0.5)
    assert 7 in rounds
    before = len(rounds)
    sim.wait(20)
    assert len(rounds) <= before + 1, "the loop goes on at its pace"


# ---------------------------------------------------------------- that have an end


def test_a_rollout_of_children_one_after_the_other_is_not_slowed_down() -> None:
    def keep(children: fnop.Children, **_: Any) -> fnop.Desired:
        there = len(children["configmaps"])
        wanted = min(there + 1, ROLLOUT_CHANGES)
        return fnop.desired([config_map(f"one-{each}") for each in range(wanted)])

    sim = keeping(keep, owns="configmaps")
    sim.apply(example()).wait(0.9)
    assert data_of(sim, f"one-{ROLLOUT_CHANGES - 1}") is not None
    assert told(sim) == []


def test_a_rollout_of_a_child_step_by_step_is_not_slowed_down() -> None:
    def keep(children: fnop.Children, **_: Any) -> fnop.Desired:
        found = children["configmaps"].get("one")
        step = int(found["data"]["step"]) if found else ROLLOUT_CHANGES
        return fnop.desired(config_map("one", step=str(max(step - 1, 1))))

    sim = keeping(keep, owns="configmaps")
    sim.apply(example()).wait(0.9)
    assert data_of(sim, "one") == {"step": "1"}
    assert told(sim) == []


def test_many_changes_of_the_spec_are_no_loop() -> None:
    op = Desiring(config_map("one", turn="0")).begin()
    for turn in range(3 * ROLLOUT_CHANGES):
        op.desire(config_map("one", turn=str(turn)))
        assert data_of(op.sim, "one") == {"turn": str(turn)}
        op.sim.wait(2)
    assert told(op.sim) == []


def test_a_child_that_changes_each_minute_is_no_loop() -> None:
    def keep(now: Any, **_: Any) -> fnop.Desired:
        turn = str(int(now.timestamp() // 60))
        return fnop.desired(config_map("one", turn=turn), again=20)

    sim = keeping(keep, owns="configmaps")
    sim.apply(example()).wait(7_200)
    assert told(sim) == []


def test_many_that_requeue_one_are_no_loop() -> None:
    names = [f"leaf-{number}" for number in range(3 * ROLLOUT_CHANGES)]

    def keep(name: str, **_: Any) -> Any:
        rest = [] if name == "root" else [fnop.requeue(KIND, name="root")]
        return [*rest, fnop.desired()]

    sim = keeping(keep)
    sim.apply([example("root"), *(example(each) for each in names)]).wait(30)
    assert told(sim) == []
