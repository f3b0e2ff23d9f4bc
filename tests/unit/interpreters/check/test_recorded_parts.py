"""`fnop check`: a part of a recording begins with the state of the cluster."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fnop as facade
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.account import Watched, happened, record_of
from fnop.interpreters.check.campaign.explore import Case, Explorer, observed
from fnop.interpreters.check.state.kinds import Schedule
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.recording.model.excerpt import Excerpt, excerpt_of
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.simulation.actions import apply, delete, edit
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.checks import CRD, OBJECT, failure
from tests.commands import fnop

Versions = dict[Place, str]


def keeping() -> Case:
    """An operator with a child; a user edits, deletes, and recreates the object."""
    registry = Registry()

    @facade.reconcile("xs.example.com", owns="secrets", registry=registry)
    def keep(spec: Any, name: str, **_: Any) -> facade.Desired:
        data = {"size": str(spec["size"])}
        meta = {"name": f"{name}-a"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
        return facade.desired({**secret, "stringData": data})

    script = (
        apply(OBJECT),
        edit("xs/x", spec={"size": 2}),
        delete("xs/x"),
        apply(OBJECT),
    )
    program = Program(registry.handlers, Settings(traces=True))
    return Case(program, (CRD,), script)


CASE = keeping()
FAULTS = ("F2:rest", "F2:action", "F10:applied", "F8:held", "F1:after", "F19:deleted")


# After these there is more, or less, than the operator has been shown.
LATE = ("F2:action", "F1:after")


def schedule_of(fault: str) -> Schedule:
    """The first schedule of a fault."""
    found = (each for each in Explorer(CASE).singles() if each[0].kind.name == fault)
    return next(found)


def plots(schedule: Schedule) -> tuple[list[Excerpt], list[Excerpt]]:
    """The parts from each step on, by the account and by what was shown."""
    _, steps, account = happened(CASE, schedule, Redaction(b"", CASE.program))
    records = [*map(record_of, steps)]
    read = partial(iter, records)
    numbers = range(1, len(records) + 1)
    true = [excerpt_of(read, each, account=account) for each in numbers]
    return true, [excerpt_of(read, each) for each in numbers]


class Seen(Watched):
    """Notes the cluster at each step."""

    def __init__(self, run: SimulatedRun) -> None:
        super().__init__(run)
        self.clusters: list[Cluster] = []

    def observe(self, *step: Any) -> None:
        super().observe(*step)
        self.clusters.append(self._run.cluster)


def clusters(schedule: Schedule) -> list[Cluster]:
    found: list[Seen] = []

    def observer(run: SimulatedRun) -> Seen:
        found.append(Seen(run))
        return found[0]

    observed(CASE, schedule, observer)
    return found[0].clusters


def versions_in(cluster: Cluster) -> Versions:
    """All of its objects of the kinds that the operator has to do with."""
    kinds = (("example.com", "xs"), ("", "secrets"))
    objects = [
        each for kind in kinds for _, each in cluster.shelves.get(kind, {}).items()
    ]
    return versions_of({Place.of(each): each for each in objects})


def versions_of(objects: Any) -> Versions:
    return {
        place: each["metadata"]["resourceVersion"] for place, each in objects.items()
    }


@pytest.mark.parametrize("fault", FAULTS)
def test_it_begins_with_the_truth_at_each_step(fault: str) -> None:
    schedule = schedule_of(fault)
    true, shown = plots(schedule)
    for excerpt, cluster in zip(true, clusters(schedule), strict=True):
        known = versions_in(cluster)
        found = versions_of(excerpt.objects)
        assert found.items() <= known.items(), excerpt.step
        # Left out is only what the garbage collector is about to remove.
        assert {each.kind for each in known.keys() - found.keys()} <= {"Secret"}
        owners = [each for each in known if each.kind == "X"]
        assert known == found or not owners, excerpt.step
    assert all(each.is_true for each in true)
    if fault in LATE:
        both = zip(true, shown, strict=True)
        assert any(e.objects.keys() != other.objects.keys() for e, other in both)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_others_do_is_told_once_in_its_order(fault: str) -> None:
    (first, *_), _ = plots(schedule_of(fault))
    x = [each for each in first.changes if each.place.kind == "X"]
    done = [(each.before is None, each.after is None) for each in x]
    assert done[0] == (True, False)
    assert done[-1] == (True, False)
    assert [each.step for each in x] == sorted(each.step for each in x)
    assert [each.wall for each in x] == sorted(each.wall for each in x)
    children = [each for each in first.changes if each.place.kind == "Secret"]
    assert bool(children) == (fault == "F19:deleted")


def test_the_cluster_goes_on_from_the_truth(tmp_path: Path) -> None:
    """The operator had crashed before it was answered: it was shown no child."""
    recording = failure(tmp_path)
    asked = ("replay", recording, "op.py", "--from", "8")
    found = fnop(*asked, folder=tmp_path)
    assert "2 objects of the cluster as it was then, 0 changes by others" in found.out
    assert found.out.endswith("the end is as recorded\n"), found.out
