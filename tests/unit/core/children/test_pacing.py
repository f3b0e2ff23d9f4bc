"""Reconcile handlers that cause their own next call: loops are slowed down."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.pace import ROLLOUT_CHANGES
from fnop.testing import Simulation
from tests.reconcilers import (
    KIND,
    NAME,
    Desiring,
    config_map,
    data_of,
    keeping,
    secret,
    simulation,
)
from tests.simulations import DEFINITION, example


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


def test_again_at_once_is_again() -> None:
    op = Desiring()
    op.more = {"again": 0}
    op.sim.apply(example())
    with suppress(AssertionError):  # time may not pass
        op.sim.wait(10)
    assert len(op.calls) > 1


@pytest.mark.parametrize("is_data", [True, False])
def test_who_desires_another_child_at_each_call_is_slowed_down(is_data: bool) -> None:
    """On a real API server 163 writes a second, and nothing in the log."""
    registry, calls = Registry(), list[int]()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def restless(**_: Any) -> fnop.Desired:
        calls.append(len(calls))
        turn = str(len(calls))
        if is_data:
            return fnop.desired(config_map("one", turn=turn))
        return fnop.desired(config_map("ab"[len(calls) % 2]))

    sim = simulation(registry)
    sim.apply(example())
    sim.wait(100)  # fails if no time passes
    assert len(calls) < 50


def test_who_requeues_itself_is_slowed_down() -> None:
    registry, calls = Registry(), list[str]()

    @fnop.reconcile(KIND, registry=registry)
    def again(name: str, **_: Any) -> Any:
        calls.append(name)
        return [fnop.requeue(KIND, name=name), fnop.desired()]

    sim = Simulation(registry, crds=[DEFINITION])
    sim.apply(example())
    sim.wait(20)  # fails if no time passes
    assert len(calls) < 100


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s"},
    "spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "protocol": "TCP"}]},
}


def told_of_a_loop(sim: Simulation) -> list[str]:
    return [each for each in sim.log if "growing pauses" in each]


def test_a_child_that_tells_what_others_change_in_another_one_is_no_loop() -> None:
    def keep(children: fnop.Children, **_: Any) -> fnop.Desired:
        service: Any = children["services"].get("s", {})
        ready = service.get("metadata", {}).get("annotations", {}).get("ready", "0")
        return fnop.desired([SERVICE, config_map("told", ready=ready)])

    sim = keeping(keep, owns=["services", "configmaps"])
    sim.apply(example()).settle()
    for ready in map(str, range(1, 3 * ROLLOUT_CHANGES)):
        sim.edit("services/s", metadata={"annotations": {"ready": ready}}).wait(0.3)
        assert data_of(sim, "told") == {"ready": ready}
    assert told_of_a_loop(sim) == []


def test_a_template_that_is_edited_again_and_again_is_no_loop() -> None:
    registry = Registry()
    labels = {"template": "yes"}

    @fnop.index("configmaps", labels=labels, registry=registry)
    def templates(name: str, body: fnop.Body, **_: Any) -> Any:
        return {name: dict(body["data"])}

    @fnop.maps("configmaps", to=KIND, labels=labels, registry=registry)
    def users(**_: Any) -> list[str]:
        return ["default/example-1"]

    @fnop.reconcile(KIND, owns="secrets", registry=registry)
    def keep(templates: Any = fnop.INDEX, **_: Any) -> fnop.Desired:
        (template,) = templates["t"]
        return fnop.desired(secret("made", n=template["n"]))

    sim = simulation(registry)
    template = config_map("t", "default", n="AAAA")
    template["metadata"]["labels"] = labels
    sim.apply([template, example()]).settle()
    for turn in range(1, 3 * ROLLOUT_CHANGES):
        sim.edit("configmaps/t", data={"n": f"{turn:04}"}).wait(0.5)
        assert sim["secrets/made"]["data"] == {"n": f"{turn:04}"}
    assert told_of_a_loop(sim) == []


def test_two_that_follow_each_other_through_children_are_slowed_down() -> None:
    registry = Registry()

    def following(other: str) -> Any:
        def keep(name: str, seen: Any = fnop.INDEX, **_: Any) -> fnop.Desired:
            number = max((int(each) for each in seen.get(other, ())), default=0)
            return fnop.desired(config_map(name, n=str(number + 1)))

        return keep

    @fnop.index("configmaps", registry=registry)
    def seen(name: str, body: fnop.Body, **_: Any) -> Any:
        return {name: body["data"].get("n", "0")}

    @fnop.maps("configmaps", to=KIND, registry=registry)
    def beside(name: str, **_: Any) -> list[str]:
        return ["default/" + {"one": "two", "two": "one"}.get(name, name)]

    for name, other in (("one", "two"), ("two", "one")):
        fnop.reconcile(
            KIND,
            owns="configmaps",
            registry=registry,
            id=name,
            when=lambda name, mine=name, **_: name == mine,
        )(following(other))
    sim = simulation(registry)
    sim.apply([example("one"), example("two")]).wait(120)
    assert told_of_a_loop(sim)
    assert int(data_of(sim, "one")["n"]) < 1000


def test_a_rollout_of_many_children_one_after_the_other_takes_no_hour() -> None:
    def keep(children: fnop.Children, **_: Any) -> fnop.Desired:
        there = len(children["configmaps"])
        return fnop.desired([config_map(f"c-{n}") for n in range(min(there + 1, 100))])

    sim = keeping(keep, owns="configmaps")
    sim.apply(example()).wait(60)
    assert data_of(sim, "c-99") is not None
    assert not told_of_a_loop(sim)


def test_a_set_that_grows_without_end_is_slowed_down() -> None:
    def keep(children: fnop.Children, **_: Any) -> fnop.Desired:
        there = len(children["configmaps"])
        return fnop.desired([config_map(f"c-{n}") for n in range(there + 1)])

    sim = keeping(keep, owns="configmaps")
    sim.apply(example()).wait(60)
    assert told_of_a_loop(sim)
    assert 300 <= len(sim.objects("configmaps")) < 400
