"""Two replicas of an operator, one of which leads: it dies, or it stands still."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import fnop
from bench.sweep import cases_named, elected
from fnop import Registry
from fnop.adapters.check.recordings import write_failure
from fnop.adapters.common.loading import handlers_of_file, module_of_file
from fnop.adapters.kubernetes.identity import replicated
from fnop.adapters.reports.check_report import failure_record
from fnop.adapters.testing.models import models_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.peers import election
from fnop.core.peers.election import Election
from fnop.core.state.coordination import Coordination
from fnop.core.values.now import Now
from fnop.interpreters.check.campaign.explore import Case, Explorer, Failure, is_special
from fnop.interpreters.check.state.kinds import Fault, Place, Site
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.trials.catalogue import BY_NAME
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.simulation.actions import Action, apply, edit
from fnop.interpreters.simulation.externals import PostService
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun
from fnop.testing import create, explore, models
from tests.commands import fnop as fnop_command
from tests.simulations import example, manifests_of

DEFINITION = manifests_of("01-minimal")[0]
NAME = "fnopexamples/example-1"
LEASE = ("coordination.k8s.io", "leases")
SECONDS = 15.0


class Rentals(PostService):
    """A service that makes the ids of its things."""

    def order(self, key: str) -> Any:
        return self.create({}, tags={"key": key})["id"]

    def found(self, key: str) -> Any:
        return self.find(key=key)


def explorer_of(registry: Registry, *script: Action) -> Explorer:
    """The case of an operator that rents things of one service."""
    service = Rentals()
    calls = {f"{__name__}:{e}": getattr(service, e) for e in ("order", "found")}
    program = Program(registry.handlers, Settings())
    case = Case(program, (DEFINITION,), script, calls=calls)
    return Explorer(elected(case))


def order(key: str) -> str:
    raise NotImplementedError


def found(key: str) -> list[str]:
    raise NotImplementedError


@cache
def children() -> Explorer:
    """An example whose object is created, deleted, and created."""
    *_, last = cases_named("02-children")
    return Explorer(elected(last))


def of_replicas(explorer: Explorer) -> list[Fault]:
    return [each for (each,) in explorer.singles() if each.kind.code == "F15"]


def played(explorer: Explorer, mode: str) -> Trial:
    """The trial of the first fault of a mode."""
    fault = next(e for e in of_replicas(explorer) if e.kind.mode == mode)
    return explorer.trial_of((fault,)).play()


@pytest.mark.parametrize("fault", of_replicas(children()), ids=str)
def test_a_good_operator_survives_each_change_of_the_leader(fault: Fault) -> None:
    verdict = children().tried((fault,))
    assert verdict.struck
    assert verdict.violations == ()


def test_only_an_operator_that_elects_a_leader_has_replicas() -> None:
    *_, last = cases_named("02-children")
    modes = {e.kind.mode for e in of_replicas(Explorer(last))}
    assert modes == {"two"}
    modes = {e.kind.mode for e in of_replicas(children())}
    assert modes == {"two", "failover", "paused"}
    for name in ("F15:failover", "F15:paused"):
        site = Site(Place.WRITE, "create", "create", "pods/x")
        assert not is_special((Fault(BY_NAME[name], site),))


@pytest.mark.parametrize("mode", ["failover", "paused"])
def test_the_replica_leads_when_the_lease_is_over_and_is_gone_with_the_faults(
    mode: str,
) -> None:
    trial = played(children(), mode)
    lease = trial.run.cluster.shelves[LEASE]["default", "fnop-default"]
    assert lease["spec"]["holderIdentity"] == "replica-1"
    assert lease["spec"]["leaseTransitions"] == 2, "to the replica, and back"
    when = {each.lane: each.at for each in reversed(trial.journal.story)}
    assert when["fault"] < SECONDS
    healed = trial.journal.ends[Phase.HEALED].time
    assert healed is not None
    assert healed - trial.journal.since == pytest.approx(2 * SECONDS, abs=0.1)


def test_who_stands_still_goes_on_when_the_other_works_in_its_place() -> None:
    trial = played(children(), "paused")
    told = [str(each.what) for each in trial.journal.story if each.lane == "fault"]
    assert told[-1] == "the former leader goes on"
    makers = {trial.journal.maker_of(each.after) for each in trial.journal.writes}
    assert makers >= {"operator", "second"}


# ------------------------------------------------------------------------- fences


def renting() -> Registry:
    """An operator that rents a thing, unless it finds one, after it has made a note."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def rent(uid: str, **_: object) -> None:
        if not await fnop.call(found, key=uid):
            await fnop.apply(note())
            await fnop.call(order, key=uid)

    return registry


def note() -> dict[str, Any]:
    metadata = {"name": "note", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def violations(explorer: Explorer, verb: str = "") -> dict[str, set[str]]:
    """The violations of the faults of each mode, at sites of a verb."""
    told: dict[str, set[str]] = {}
    for fault in of_replicas(explorer):
        if fault.site.verb.startswith(verb):
            names = {e.property for e in explorer.tried((fault,)).violations}
            told.setdefault(fault.kind.mode, set()).update(names)
    return told


def test_a_leader_that_goes_on_begins_no_request() -> None:
    told = violations(explorer_of(renting(), apply(example())), "apply")
    assert "creates_once" not in told["failover"] | told["paused"]


def test_without_the_fence_two_leaders_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """fnop's own fence is what the check sees: it does not pass of itself."""
    explorer = explorer_of(renting(), apply(example()))
    leads = election.may_start

    def once_a_leader(state: Election, now: Now) -> bool:
        return state.candidate.identity == "replica-1" or leads(state, now)

    monkeypatch.setattr(f"{Coordination.__module__}.may_start", once_a_leader)
    monkeypatch.setattr(Coordination, "lease_ends", property(lambda self: None))
    assert "creates_once" in violations(explorer, "apply")["paused"]


def test_both_processes_have_one_world_outside() -> None:
    """External resources of a replica count: the records of both are in one model."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def rent(name: str, **_: object) -> dict[str, str]:
        return {"id": await fnop.call(order, key=name)}

    told = violations(explorer_of(registry, apply(example())), "call")
    assert "creates_once" in told["failover"] & told["paused"]


def test_a_change_while_the_replica_leads_is_not_lost() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    @fnop.on.update("fnopexamples", registry=registry)
    def show(spec: Any, **_: object) -> fnop.Effect:
        return fnop.patch(status={"field": spec.get("field")})

    edited = edit(NAME, spec={"field": "other"})
    explorer = explorer_of(registry, apply(example()), edited)
    assert explorer.benign.violations == ()
    assert not any(violations(explorer).values())


# --------------------------------------------------------------------- simulation


def test_a_simulated_replica_waits_for_the_lease_of_another() -> None:
    """`fnop run --simulate --leader-elect` with the Lease of a process that is gone."""
    case = elected(cases_named("02-children")[0])
    run = SimulatedRun(case.program, empty_cluster())
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "fnop-default", "namespace": "default"},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 40},
    }
    objects = manifests_of("02-children")
    apply_manifests(run, [*objects, lease])
    assert run.settle(), run.unsettled
    assert run.clock.elapsed >= 40
    assert run.cluster.shelves["", "pods"]


# ------------------------------------------------------------------------ command

RENTS = """
import fnop

async def order(key): ...

@fnop.on.create("fnopexamples")
async def rent(name):
    await fnop.call(order, key=name)
"""
MODELS = """
from fnop.testing import PostService

class Rentals(PostService):
    def order(self, key):
        return self.create({}, tags={"key": key})["id"]

CALLS = {"order": Rentals().order}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "op.py").write_text(RENTS)
    (tmp_path / "models.py").write_text(MODELS)
    objects = yaml.safe_dump_all([DEFINITION, example()])
    (tmp_path / "object.yaml").write_text(objects)
    return tmp_path


@pytest.mark.parametrize("mode", ["failover", "paused"])
def test_the_recording_of_a_leader_s_failure_is_decided_again_alike(
    mode: str, folder: Path
) -> None:
    """It is the first process's recording: the other one is in it by its changes."""
    program = Program(handlers_of_file(folder / "op.py"), replicated(Settings()))
    calls = models_of([module_of_file(folder / "models.py")], [])
    case = Case(program, (DEFINITION,), (apply(example()),), calls=calls)
    explorer = Explorer(case)
    fault = next(
        e
        for e in of_replicas(explorer)
        if e.kind.mode == mode and e.site.place is Place.CALL
    )
    violation = explorer.tried((fault,)).violations[0]
    failure = Failure(case.name, (fault,), violation)
    record = failure_record(case, failure)
    file = folder / "failure.fnop"
    write_failure(file, explorer, failure, record, lambda: True)
    done = fnop_command("replay", file.name, "op.py", folder=folder)
    assert done.status == 0, done
    assert "identical" in done.out
    page = fnop_command("replay", file.name, "--html", "page.html", folder=folder)
    assert page.status == 0, page
    assert "another process of the operator" in (folder / "page.html").read_text()


def test_the_command_checks_two_replicas_and_its_test_has_them(folder: Path) -> None:
    call = ("check", "op.py", "--calls", "models.py", "--property", "creates_once")
    done = fnop_command(*call, "--leader-elect", "-o", "json", folder=folder)
    assert done.status == 1, done
    assert json.loads(done.out)["faults"]["F15"] > 2
    (failure,) = (folder / "fnop-failures").glob("creates_once-*.fnop")
    test = fnop_command("check", "--as-test", str(failure), folder=folder)
    assert "leader_elect=True" in test.out


def test_an_exploration_has_replicas_where_it_is_asked_for(folder: Path) -> None:
    done = [
        explore(
            folder / "op.py",
            create(example()),
            crds=[DEFINITION],
            calls=models(folder / "models.py"),
            leader_elect=elects,
        )
        for elects in (True, False)
    ]
    with_replicas, without = (each.report.by_fault["F15"] for each in done)
    assert with_replicas > without == 1
