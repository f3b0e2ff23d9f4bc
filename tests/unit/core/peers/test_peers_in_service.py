"""An operator with peers: frozen by a peer, or standby for a leader."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.peers.lease import Candidate
from fnop.core.peers.peers import Member, Mode, record_of
from fnop.core.seam.commands import Command, Perform, Say
from fnop.core.state.lifecycle import Phase
from fnop.interpreters.runtime.clock import EPOCH
from fnop.testing import Simulation
from tests.peerings import PEERING_OBJECT, peering_definition
from tests.simulations import DEFINITION, example
from tests.stories import Story

KIND = "fnopexamples"
PEERING = "clusterkopfpeerings/default"


class Diary(list[str]):
    pass


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def registry(diary: Diary) -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> dict[str, str]:
        diary.append(f"created {name}")
        return {"done": name}

    @fnop.on.update(KIND, registry=registry)
    def update(name: str, spec: Any, **_: Any) -> None:
        diary.append(f"updated {name} to {spec['size']}")

    @fnop.on.resume(KIND, registry=registry)
    def resume(name: str, **_: Any) -> None:
        diary.append(f"resumed {name}")

    @fnop.daemon(KIND, registry=registry, finalizer=False)
    async def follow(name: str, **_: Any) -> None:
        diary.append(f"daemon of {name}")
        try:
            while True:
                await fnop.sleep(5)
                await fnop.event("Alive", "still")
        except fnop.Cancelled:
            diary.append(f"no daemon of {name}")
            raise

    return registry


def simulation(registry: Registry, member: Member, *more: Any) -> Simulation:
    return Simulation(
        registry,
        crds=[DEFINITION, peering_definition()],
        objects=[*more],
        settings=Settings(peering=member),
    )


def peer(sim: Simulation, identity: str, priority: int, lifetime: int = 60) -> None:
    """Another operator writes its record, or renews it."""
    record = record_of(priority, lifetime, sim.now.timestamp())
    sim.edit(PEERING, status={identity: record})


def phase(sim: Simulation) -> Phase:
    return sim._run.machine.state.lifecycle.phase


def records(sim: Simulation) -> Any:
    return sim[PEERING].status


def test_without_a_peering_object_it_serves_and_says_so_once(
    registry: Registry, diary: Diary
) -> None:
    sim = simulation(registry, Member("me"), example(size=1)).settle()
    assert "created example-1" in diary
    lines = [line for line in sim.log if "no peering object 'default'" in line]
    assert len(lines) == 1


def test_with_one_it_writes_its_record_and_serves(
    registry: Registry, diary: Diary
) -> None:
    sim = simulation(registry, Member("me"), PEERING_OBJECT, example(size=1))
    sim.wait(5)
    assert "created example-1" in diary
    assert set(records(sim)) == {"me"}
    before = records(sim)["me"]["lastseen"]
    sim.wait(120)
    assert records(sim)["me"]["lastseen"] > before, "it is kept alive"
    sim.stop()
    assert "me" not in records(sim), "who leaves takes its record away"


def test_a_mandatory_object_is_waited_for(registry: Registry, diary: Diary) -> None:
    member = Member("me", mode=Mode.MANDATORY)
    sim = simulation(registry, member, example(size=1))
    sim.wait(60)
    assert diary == []
    assert phase(sim) is Phase.FROZEN
    sim.apply(PEERING_OBJECT)
    sim.wait(15)
    assert "created example-1" in diary


@pytest.mark.parametrize("after", [10.0, 86_400.0])
def test_a_mandatory_object_is_waited_for_when_its_kind_is_missing_too(
    registry: Registry, diary: Diary, after: float
) -> None:
    settings = Settings(peering=Member("me", mode=Mode.MANDATORY))
    crds, objects = [DEFINITION], [example(size=1)]
    sim = Simulation(registry, crds=crds, objects=objects, settings=settings)
    sim.wait(after)
    assert phase(sim) is Phase.FROZEN
    sim.apply([peering_definition(), PEERING_OBJECT])
    sim.wait(5)
    assert phase(sim) is Phase.SERVING
    assert "created example-1" in diary


def test_a_higher_priority_freezes_and_its_end_resumes(
    registry: Registry, diary: Diary
) -> None:
    sim = simulation(registry, Member("me"), PEERING_OBJECT, example(size=1))
    sim.wait(12)
    assert diary == ["daemon of example-1", "created example-1"] or set(diary) == {
        "daemon of example-1",
        "created example-1",
    }
    diary.clear()
    peer(sim, "boss", 100)
    sim.wait(1)
    assert phase(sim) is Phase.FROZEN
    assert diary == ["no daemon of example-1"]
    writes = len(sim.writes)
    sim.edit(f"{KIND}/example-1", spec={"size": 2})
    sim.apply(example("example-2", size=1))
    sim.wait(20)
    assert diary == ["no daemon of example-1"], "nothing is handled"
    assert all("/clusterkopfpeerings/" in each for each in sim.writes[writes:])
    sim.edit(PEERING, status={"boss": None})
    sim.wait(12)
    assert phase(sim) is Phase.SERVING
    assert set(diary[1:]) == {
        "updated example-1 to 2",
        "created example-2",
        "daemon of example-1",
        "daemon of example-2",
    }, "what came meanwhile is handled, and nobody is resumed anew"


def test_a_dead_peer_is_not_waited_for(registry: Registry, diary: Diary) -> None:
    sim = simulation(registry, Member("me"), PEERING_OBJECT, example(size=1))
    sim.wait(5)
    peer(sim, "boss", 100, lifetime=20)
    sim.wait(2)
    assert phase(sim) is Phase.FROZEN
    sim.wait(40)
    assert phase(sim) is Phase.SERVING
    assert "boss" not in records(sim), "its record is cleaned away"


def test_equals_all_freeze_with_a_warning(registry: Registry, diary: Diary) -> None:
    sim = simulation(registry, Member("me"), PEERING_OBJECT, example(size=1))
    sim.wait(5)
    peer(sim, "twin", 0)
    sim.wait(2)
    assert phase(sim) is Phase.FROZEN
    assert any("--priority" in line for line in sim.log)


def test_a_lower_priority_is_no_matter(registry: Registry, diary: Diary) -> None:
    sim = simulation(registry, Member("me", 5), PEERING_OBJECT, example(size=1))
    sim.wait(5)
    peer(sim, "less", 4)
    sim.wait(5)
    assert phase(sim) is Phase.SERVING


def test_what_somebody_else_has_handled_meanwhile_is_not_handled_again(
    registry: Registry, diary: Diary
) -> None:
    """The peer is an operator of the same name: it leaves its state on the object."""
    sim = simulation(registry, Member("me"), PEERING_OBJECT, example(size=1))
    sim.wait(5)
    peer(sim, "boss", 100)
    sim.wait(2)
    diary.clear()
    # The boss sees the change, and handles it.
    stand_in = Simulation(registry, crds=DEFINITION, objects=example(size=1)).settle()
    stand_in.edit(f"{KIND}/example-1", spec={"size": 2}).settle()
    state = dict(stand_in[f"{KIND}/example-1"].status)
    uid = stand_in[f"{KIND}/example-1"].metadata["uid"]
    own = sim[f"{KIND}/example-1"].metadata["uid"]
    state["fnop.dev/default"] = state["fnop.dev/default"].replace(uid, own)
    diary.clear()
    sim.edit(f"{KIND}/example-1", spec={"size": 2})
    sim.edit(f"{KIND}/example-1", status=state)
    sim.edit(PEERING, status={"boss": None})
    sim.wait(12)
    assert diary == ["daemon of example-1"]


def test_a_conversation_is_given_up_and_begun_anew(diary: Diary) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def slow(**_: Any) -> None:
        diary.append("begun")
        await fnop.sleep(30)
        diary.append("done")

    sim = simulation(registry, Member("me"), PEERING_OBJECT, example(size=1))
    sim.wait(5)
    peer(sim, "boss", 100)
    sim.wait(40)
    assert diary == ["begun"], "frozen, it does not go on"
    sim.edit(PEERING, status={"boss": None})
    sim.wait(60)
    assert diary == ["begun", "begun", "done"]


# ------------------------------------------------------- frozen by an own handler


def child(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_behind_a_freeze_no_request_is_begun() -> None:
    """Law 7: neither the rest of its own plan, nor the object's own write."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        return [
            fnop.create(child("before")),
            fnop.freeze("the storage is full"),
            fnop.create(child("behind")),
            fnop.event("Behind", "the freeze"),
            fnop.patch(status={"behind": True}),
        ]

    run = Story(registry, [example()])
    run.wait(600)
    assert run.sent == ["POST configmaps"]
    assert run.machine.state.lifecycle.phase is Phase.FROZEN
    assert "frozen: the storage is full" in run.said_at("warning")
    assert [line for line in run.lines if "succeeded" in line] == [], "nor is it done"


@pytest.mark.parametrize("last", [True, False])
def test_a_freeze_stops_the_others_in_the_same_step(last: bool) -> None:
    """All of them wake up at the same moment, and one of them freezes all."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> list[fnop.Effect]:
        freezing = [fnop.freeze("it is late")] if name == "a" else []
        behind = [] if last else [fnop.create(child(name))]
        return [fnop.sleep(5), *freezing, *behind, fnop.patch(status={"name": name})]

    run = Story(registry, [example(name) for name in "abc"])
    run.wait(600)
    frozen = next(
        number
        for number, (_, _, commands) in enumerate(run.trace.steps)
        if any(isinstance(each, Say) and "frozen" in each.message for each in commands)
    )
    performed = [
        command
        for _, _, commands in run.trace.steps[frozen:]
        for command in _behind(commands)
        if isinstance(command, Perform)
    ]
    assert performed == []
    run.stop()
    run.wait(60)
    assert run.exit is not None, "and it ends in order"


def _behind(commands: tuple[Command, ...]) -> tuple[Command, ...]:
    """The requests of a step, after the freeze if it has one."""
    for number, each in enumerate(commands):
        if isinstance(each, Say) and "frozen" in each.message:
            return commands[number:]
    return commands


def test_a_conversation_that_freezes_is_cancelled(diary: Diary) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        try:
            await fnop.freeze("stop")
            await fnop.create(child("behind"))
        except fnop.Cancelled:
            diary.append("cancelled")
            raise

    run = Story(registry, [example()])
    run.wait(60)
    assert diary == ["cancelled"]
    assert run.sent == []


def test_who_was_frozen_by_a_handler_calls_it_again_after_a_restart(
    diary: Diary,
) -> None:
    """It was not done: whether a reason still exists is checked again."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> list[fnop.Effect]:
        diary.append(name)
        done: list[fnop.Effect] = [fnop.patch(status={"done": True})]
        return done if len(diary) > 1 else [fnop.freeze("no storage"), *done]

    run = Story(registry, [example()])
    run.wait(60)
    run.crash()
    assert run.settle()
    assert run.status() == {"done": True}


def test_a_startup_handler_that_freezes_is_done_all_the_same() -> None:
    registry = Registry()

    @fnop.on.startup(registry=registry)
    def begin(**_: Any) -> list[fnop.Effect]:
        return [fnop.freeze("a rehearsal"), fnop.create(child("begun"))]

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        return [fnop.create(child("behind"))]

    run = Story(registry, [example()])
    run.wait(60)
    assert run.machine.state.lifecycle.phase is Phase.FROZEN
    assert [each["metadata"]["name"] for each in run.objects("configmaps")] == ["begun"]


# ------------------------------------------------------------ among other requests


def test_a_backlog_that_hangs_costs_neither_the_lease_nor_the_record() -> None:
    """All slots are taken by reads that are never answered; renewals go past them."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def ask(name: str, **_: Any) -> None:
        await fnop.get("configmaps", name=name)

    class Hanging(Story):
        def perform(self, command: Command) -> None:
            if isinstance(command, Perform) and not command.urgent:
                return  # its answer never comes
            super().perform(command)

    candidate = Candidate("me", "default", "operator")
    settings = Settings(peering=Member("me"), election=candidate)
    run = Hanging(
        registry,
        [peering_definition(), PEERING_OBJECT, *_many(40)],
        settings=settings,
    )
    run.wait(300)
    asked = [command for _, command in run.trace.performed]
    others = [each for each in asked if not each.urgent]
    kinds = {each.resource.plural for each in asked if each.urgent and each.resource}
    assert len(others) == settings.request_concurrency
    assert kinds == {"leases", "clusterkopfpeerings"}
    assert run.machine.state.lifecycle.phase is Phase.SERVING
    assert [line for line in run.lines if "not leading" in line] == []
    assert [line for line in run.lines if "frozen" in line] == []


def _many(number: int) -> list[dict[str, Any]]:
    return [example(f"example-{each}", size=1) for each in range(number)]


# -------------------------------------------------------------------- election


def elected(registry: Registry, *more: Any, identity: str = "me") -> Simulation:
    candidate = Candidate(identity, "default", "operator")
    settings = Settings(election=candidate)
    return Simulation(registry, crds=DEFINITION, objects=[*more], settings=settings)


def held_by(holder: str, sim_time: float) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "operator", "namespace": "default"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
    }


LEASE = "leases/operator"


def test_who_takes_the_lease_serves_and_gives_it_back(
    registry: Registry, diary: Diary
) -> None:
    sim = elected(registry, example(size=1))
    sim.wait(10)
    assert "created example-1" in diary
    spec = sim[LEASE].spec
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("me", 0)
    sim.stop()
    assert sim[LEASE].spec["holderIdentity"] == ""


def test_who_has_no_lease_stands_by_with_a_filled_store(
    registry: Registry, diary: Diary
) -> None:
    sim = elected(registry, held_by("other", EPOCH), example(size=1))
    for _ in range(6):
        sim.wait(5)
        sim.edit(LEASE, metadata={"annotations": {"renewed": str(sim.elapsed)}})
    assert diary == []
    assert phase(sim) is Phase.STANDBY
    assert all(not each.startswith("P") for each in sim.writes), "it writes nothing"
    sim.apply(example("example-2", size=1))
    sim.wait(40)  # the other one no longer renews
    assert phase(sim) is Phase.SERVING
    assert {"created example-1", "created example-2"} <= set(diary)
    assert sim[LEASE].spec["holderIdentity"] == "me"


def test_who_loses_the_lease_stops_at_once(registry: Registry, diary: Diary) -> None:
    sim = elected(registry, example(size=1))
    sim.wait(10)
    diary.clear()
    sim.edit(LEASE, spec={"holderIdentity": "thief"})
    sim.wait(5)
    assert phase(sim) is Phase.STANDBY
    assert diary == ["no daemon of example-1"]
    sim.edit(f"{KIND}/example-1", spec={"size": 2})
    sim.wait(5)
    assert diary == ["no daemon of example-1"]
    sim.wait(30)
    assert "updated example-1 to 2" in diary, "the thief has not renewed it"


def test_who_takes_over_with_deaf_watches_reads_before_it_acts() -> None:
    """Objects that the former leader created and users deleted stay deleted."""
    registry = Registry()
    called: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> None:
        called.append(name)

    @fnop.on.event(KIND, registry=registry)
    def spy(name: str, type: Any, **_: Any) -> None:
        called.append(f"{name} is seen as {type}")

    settings = Settings(election=Candidate("me", "default", "operator"))
    objects = [example("gone", size=1), example("stays", size=1)]
    story = Story(registry, [held_by("other", EPOCH), *objects], settings=settings)
    story.wait(5)
    assert called == []
    story.late_events = True
    story.delete(KIND, "gone").apply(example("new", size=1))
    story.wait(40)  # the other one no longer renews
    assert story.machine.state.lifecycle.phase is Phase.SERVING
    assert sorted(called) == [
        "gone is seen as DELETED",
        "new",
        "new is seen as None",
        "stays",
        "stays is seen as None",
    ]
    story.let_events_through()
    story.wait(10)
    assert all("MODIFIED" in each for each in called[5:])
