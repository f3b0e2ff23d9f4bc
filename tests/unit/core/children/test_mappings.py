"""Mappings (`fnop.maps`): which objects they name, and how they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import force_setattr

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.objects.decide.mapping_retries import (
    STATES_MAX,
    TRIES_MAX,
    bounded,
    with_events,
)
from fnop.core.state.record import PendingEvent
from fnop.core.values.body import Body
from fnop.effects.structs import replace
from fnop.testing import Simulation
from tests.reconcilers import KIND, config_map, simulation
from tests.simulations import DEFINITION, ROOT, example


class Mapped:
    """An operator with a mapping that the test writes; it notes who is looked at."""

    def __init__(self, names: Callable[[dict[str, Any]], Any]) -> None:
        self.looked: list[str] = []
        self.asked: list[dict[str, str]] = []
        self.registry = Registry()

        @fnop.reconcile(KIND, registry=self.registry)
        def look(name: str, **_: Any) -> fnop.Desired:
            self.looked.append(name)
            return fnop.desired()

        @fnop.maps("configmaps", to=KIND, registry=self.registry)
        def users(body: fnop.Body, **_: Any) -> Any:
            if body["metadata"]["name"] != "template":
                return ()
            data = dict(body.get("data") or {})
            self.asked.append(data)
            return names(data)

        self.sim: Simulation = simulation(self.registry)

    def begin(self, *owners: str) -> Mapped:
        self.sim.apply([example(each) for each in owners]).settle()
        self.looked.clear()
        return self

    def template(self, **data: str) -> Mapped:
        self.sim.apply(config_map("template", **data))
        return self


class Raising:
    """A mapping that raises these, one at each call, and names by `user` then."""

    def __init__(self, *problems: Exception) -> None:
        self.problems = [*problems]

    def __call__(self, data: dict[str, str]) -> Any:
        if self.problems:
            raise self.problems.pop(0)
        return data.get("user", "ash")


@pytest.mark.parametrize("restarts", [False, True])
def test_arbitrary_errors_are_tried_again_after_growing_waits(restarts: bool) -> None:
    op = Mapped(Raising(*(ValueError("not yet") for _ in range(5)))).begin("ash")
    op.template()
    op.sim.wait(10)  # 1 + 2 + 4 seconds, and a fifth of each at most
    assert len(op.asked) == 4
    assert op.looked == []
    if restarts:
        op.sim.restart().settle()
    op.sim.wait(60)
    assert {*op.looked} == {"ash"}
    assert len(op.looked) == 1 + restarts, "a restart looks at all anyway"


def test_a_mapping_that_fails_for_good_is_told_and_not_called_again() -> None:
    op = Mapped(Raising(fnop.PermanentError("no such template"))).begin("ash")
    op.template().sim.wait(600)
    assert (op.looked, len(op.asked)) == ([], 1)
    assert any("failed for good: PermanentError" in each for each in op.sim.errors)


def test_a_newer_state_does_not_wait_and_whom_the_older_has_named_is_not_lost() -> None:
    delays = (fnop.TemporaryError("not yet", delay=100) for _ in range(2))
    op = Mapped(Raising(*delays)).begin("ash", "oak", "elm")
    op.template(user="ash").sim.wait(1)
    op.sim.edit("configmaps/template", data={"user": "oak"}).wait(1)
    assert op.asked == [{"user": "ash"}, {"user": "ash"}, {"user": "oak"}]
    assert op.looked == ["oak"]
    op.sim.edit("configmaps/template", data={"user": "elm"}).wait(1)
    assert op.looked == ["oak", "oak", "elm"], "the oldest one still waits"
    op.sim.wait(100)
    assert op.looked == ["oak", "oak", "elm", "ash"]


def test_a_deleted_object_is_asked_for_again() -> None:
    fails = Raising()
    op = Mapped(fails).begin("ash")
    op.template(user="ash").sim.settle()
    op.looked.clear()
    # For the object as it was, and as it was deleted.
    fails.problems = [fnop.TemporaryError("not yet", delay=20) for _ in range(2)]
    op.sim.delete("configmaps/template").wait(5)
    assert op.looked == []
    op.sim.wait(60)
    assert "ash" in op.looked


def test_one_that_is_made_anew_does_not_undo_what_waits() -> None:
    fails = Raising(fnop.TemporaryError("not yet", delay=20))
    op = Mapped(fails).begin("ash", "oak")
    op.template(user="ash").sim.wait(1)
    op.sim.delete("configmaps/template").wait(1)
    op.template(user="oak").sim.wait(60)
    assert sorted({*op.looked}) == ["ash", "oak"]


def test_a_state_that_nobody_can_mend_is_given_up() -> None:
    """The mapping fails for what the object was, and not for what it is."""

    def names(data: dict[str, str]) -> Any:
        return data["user"]

    op = Mapped(names).begin("ash")
    op.template().sim.wait(1)
    op.sim.edit("configmaps/template", data={"user": "ash"}).wait(3_600)
    assert op.looked == ["ash"]
    assert 1 + TRIES_MAX <= op.asked.count({}) <= 2 + TRIES_MAX
    assert any("failed for good after" in each for each in op.sim.errors)


def test_the_operator_stops_though_a_mapping_waits() -> None:
    op = Mapped(Raising(fnop.TemporaryError("not yet", delay=1_000))).begin("ash")
    op.template().sim.wait(1)
    op.sim.stop()
    assert len(op.asked) == 1


def test_a_mapping_that_names_many_names_them_all() -> None:
    others = [f"other-{number}" for number in range(20_000)]
    op = Mapped(lambda data: iter([*others, "ash", "oak"])).begin("ash", "oak")
    op.template().sim.settle()
    assert sorted(op.looked) == ["ash", "oak"]
    assert op.sim.errors == []


def test_a_mapping_without_end_is_told_by_a_fitting_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fnop.core.handlers.declare.plans.MAPPED_MAX", 1_000)

    def endless(data: dict[str, str]) -> Iterator[str]:
        while True:
            yield "ash"

    op = Mapped(endless).begin("ash")
    op.template().sim.settle()
    (told,) = [each for each in op.sim.errors if "more than" in each]
    assert "1,000 names" in told
    assert "await" not in told


# ------------------------------------------------------------------ states that wait


def events(registry: Registry, *versions: str, failed: bool = False) -> list[Any]:
    mapping = next(each for each in registry.handlers if each.to)
    bodies = [Body({"metadata": {"uid": "u", "resourceVersion": e}}) for e in versions]
    found = [PendingEvent(mapping, "MODIFIED", each) for each in bodies]
    if failed:
        for each in found:
            force_setattr(each, "progress", replace(each.progress, retries=1))
    return found


def test_the_oldest_of_many_states_that_wait_is_kept() -> None:
    registry = Mapped(lambda data: ()).registry
    waiting = events(registry, *map(str, range(20)), failed=True)
    kept = with_events(waiting, events(registry, "19", "20"))
    versions = [each.body.version for each in kept]
    assert versions[0] == "0"
    assert versions[-2:] == ["19", "20"]
    assert len(versions) == STATES_MAX + 2


def test_what_is_left_out_of_too_many_events_names_nobody() -> None:
    registry = Mapped(lambda data: ()).registry
    fnop.on.event("configmaps", registry=registry, id="spy")(lambda **_: None)
    spy = next(each for each in registry.handlers if each.id == "spy")
    (mapped,) = events(registry, "1")
    spied = tuple(PendingEvent(spy, None, mapped.body) for _ in range(5))
    assert bounded((mapped, *spied), 3) == (mapped, *spied[3:])
    assert bounded((mapped, *spied), 10) == (mapped, *spied)


@pytest.mark.parametrize("gone", [False, True])
def test_a_mapping_that_fails_for_ever_has_not_settled(gone: bool) -> None:
    def names(data: dict[str, str]) -> Any:
        raise ValueError("no such user")

    op = Mapped(names).begin("ash")
    op.template().sim.wait(1)
    if gone:
        op.sim.delete("configmaps/template")
    assert not op.sim.settle().settled
    assert "users fails for configmaps/template" in op.sim.unsettled
    assert "ValueError: no such user" in op.sim.unsettled


def test_a_mapping_that_fails_once_is_tried_again() -> None:
    registry, calls, fails = Registry(), list[str](), [True]

    @fnop.reconcile(KIND, registry=registry)
    def look(name: str, **_: Any) -> fnop.Desired:
        calls.append(name)
        return fnop.desired()

    @fnop.maps("configmaps", to=KIND, registry=registry)
    def users(name: str, **_: Any) -> Any:
        if name == "template" and fails:
            fails.pop()
            raise fnop.TemporaryError("not yet", delay=1)
        return "example-1"

    sim = simulation(registry)
    sim.apply(example()).settle()
    calls.clear()
    sim.apply(config_map("template")).wait(120)
    assert calls == ["example-1"]


def test_a_mapping_may_name_many() -> None:
    registry, calls = Registry(), list[str]()

    @fnop.reconcile(KIND, registry=registry)
    def look(name: str, **_: Any) -> fnop.Desired:
        calls.append(name)
        return fnop.desired()

    @fnop.maps("configmaps", to=KIND, registry=registry)
    def users(name: str, **_: Any) -> Any:
        others = [f"other-{number}" for number in range(10_000)]
        return [*others, "example-1"] if name == "template" else ()

    sim = simulation(registry)
    sim.apply(example()).settle()
    calls.clear()
    sim.apply(config_map("template")).settle()
    assert calls == ["example-1"]


def test_a_mapping_that_fails_for_a_deleted_object_comes_to_an_end() -> None:
    """Otherwise the operator would keep all objects that there ever were."""
    registry = Registry()
    calls: list[str] = []

    @fnop.maps("configmaps", to=KIND, registry=registry)
    def users(name: str, **_: Any) -> None:
        if name == "one":
            calls.append(name)
            raise ValueError("no such key")

    @fnop.reconcile(KIND, owns="secrets", registry=registry)
    def keep(**_: Any) -> fnop.Desired:
        return fnop.desired()

    sim = simulation(registry)
    sim.apply(config_map("one")).wait(30)
    sim.delete("configmaps/one").wait(3600)
    before = len(calls)
    sim.wait(3600)
    assert len(calls) == before


MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "template", "labels": {"for": "example-1"}},
}


@pytest.mark.parametrize("after", ["example-2", None])
def test_who_was_named_before_is_looked_at(after: str | None) -> None:
    registry, calls = Registry(), list[str]()

    @fnop.reconcile("fnopexamples", registry=registry)
    def look(name: str, **_: Any) -> fnop.Desired:
        calls.append(name)
        return fnop.desired()

    @fnop.maps(
        "configmaps",
        to="fnopexamples",
        labels={"for": fnop.PRESENT},
        registry=registry,
    )
    def named(labels: fnop.Labels, **_: Any) -> str:
        return labels["for"]

    given = [example("example-1"), example("example-2"), MAP]
    sim = Simulation(registry, crds=DEFINITION, objects=given).settle()
    calls.clear()
    sim.edit("configmaps/template", metadata={"labels": {"for": after}}).settle()
    assert sorted(calls) == ["example-1", *([after] if after else [])]


def test_a_template_that_loses_its_label_is_none() -> None:
    folder = ROOT / "examples" / "20-tenants"
    sim = Simulation(folder / "example.py", crds=folder / "object.yaml").settle()

    def hard() -> dict[str, str]:
        found = sim.get("resourcequotas/tenant", namespace="default-example-1")
        assert found is not None
        return dict(found.spec["hard"])

    assert hard() == {"pods": "10", "requests.cpu": "4"}
    sim.edit("configmaps/small", metadata={"labels": {"tenant-template": None}})
    sim.settle()
    assert hard() == {"pods": "0"}
