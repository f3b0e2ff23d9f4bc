"""What users found when they attacked reconcile handlers once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import pytest

import fnop
from fnop.core.api.resources import Resource
from fnop.core.children.applying import _unkept
from fnop.core.children.marks import ChildSet
from fnop.core.children.planning import Keeper, Planned
from fnop.core.children.synchronise import synchronise
from fnop.core.children.told import Told
from fnop.core.handlers.registry import Registry
from fnop.core.handlers.settings import Settings
from fnop.core.objects.events import event_manifest
from fnop.core.seam.commands import Subject
from fnop.core.values.body import Body, Key
from fnop.core.values.now import Now
from fnop.core.values.pace import ROLLOUT_CHANGES
from fnop.effects import Get
from fnop.testing import Simulation
from tests.reconcilers import (
    KIND,
    Both,
    Desiring,
    config_map,
    data_of,
    keeping,
    secret,
    simulation,
)
from tests.simulations import example

# ------------------------------------------------------------- on Kubernetes 1.20


def test_an_event_about_a_cluster_scoped_object_is_one_that_old_servers_take() -> None:
    """Those before 1.21 refuse it in `default` if it has `eventTime`."""
    now, settings = Now(0.0, 0.0), Settings()
    manifests = [
        event_manifest(
            fnop.event("Repaired", "it"),
            Subject("namespaces.v1.", place, "n", "u", "Namespace", "v1"),
            settings,
            now,
            "x",
        )
        for place in (None, "default")
    ]
    assert [each["metadata"]["namespace"] for each in manifests] == ["default"] * 2
    assert ["eventTime" in each for each in manifests] == [False, True]


# ---------------------------------------------------- Synced of handlers beside others


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "others", [fnop.UNCHANGED, ValueError("no zone"), config_map("two")]
)
@pytest.mark.parametrize(
    "own", [fnop.UNCHANGED, ValueError("no size"), fnop.PermanentError("no size")]
)
def test_what_several_tell_is_the_same_after_a_restart(
    own: Any, others: Any, reverse: bool
) -> None:
    op = Both(reverse=reverse)
    op.answers |= {"a": own, "b": others}
    op.begin().sim.wait(100)
    before = len(op.sim.writes)
    op.sim.restart().wait(100)
    assert [e for e in op.sim.writes[before:] if "/events" not in e] == []


def test_who_leaves_children_as_they_are_has_them_after_a_restart() -> None:
    op = Both()
    op.answers |= {"a": config_map("one", a="1"), "b": []}
    op.begin()
    op.answers |= {"a": fnop.UNCHANGED, "b": config_map("one", a="2")}
    op.touch(1).sim.restart().wait(60)
    assert data_of(op.sim, "one") == {"a": "1"}
    assert "is left to a" in op.synced[2]


# ---------------------------------------------- the live read of an owner that goes


@contextmanager
def reading_owners(answer: Any) -> Iterator[None]:
    """Live reads of owners are answered with this, or fail with it."""

    def answered(*given: Any) -> Any:
        talk = synchronise(*given)
        step = partial(next, talk)
        while True:
            try:
                effect = step()
            except StopIteration as end:
                return end.value
            try:
                if not isinstance(effect, Get):
                    step = partial(talk.send, (yield effect))
                elif isinstance(answer, Exception):
                    step = partial(talk.throw, answer)
                else:
                    step = partial(talk.send, answer)
            except Exception as problem:
                step = partial(talk.throw, problem)

    with mock.patch("fnop.core.handlers.invocation.synchronise", answered):
        yield


def test_a_child_of_an_owner_that_goes_is_not_made_at_a_later_call_either() -> None:
    """The garbage collector deletes one after the other, and each event is a call."""
    op = Desiring(*(config_map(name, a="1") for name in ("one", "two"))).begin()
    with reading_owners(None):
        op.sim.delete("configmaps/one").wait(1)
        assert op.synced()[1] == "Pending"
        op.sim.edit("configmaps/two", data={"theirs": "x"}).wait(1)
        op.sim.delete("configmaps/two").wait(1)
        assert data_of(op.sim, "one") is None
        assert data_of(op.sim, "two") is None


def test_a_handler_that_fails_meanwhile_knows_its_children_still() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    with reading_owners(None):
        op.answer = iter(lambda: 1 / 0, None)  # it fails when it is looked at
        op.sim.delete("configmaps/one").wait(1)
        assert op.synced()[1] == "HandlerFailed"
        op.answer = None
        op.sim.wait(60)
        assert data_of(op.sim, "one") is None


def test_a_failing_read_of_the_owner_holds_up_no_other_child() -> None:
    op = Desiring(*(config_map(name, a="1") for name in ("one", "two"))).begin()
    with reading_owners(fnop.TemporaryError("answered 500")):
        op.sim.delete("configmaps/one")
        op.sim.edit("configmaps/two", data={"a": "theirs"}).wait(20)
        assert data_of(op.sim, "two") == {"a": "1"}
        assert data_of(op.sim, "one") is None
        status, reason, message = op.synced()
        assert (status, reason) == ("False", "Failing")
        assert "answered 500" in message
    op.sim.wait(120)
    assert data_of(op.sim, "one") == {"a": "1"}


# ------------------------------------------------------------------------- pacing

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


# ----------------------------------------------------------------------- mappings


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


@pytest.mark.parametrize(("desired", "told"), [({}, []), ({"a": "1"}, [("data.a",)])])
def test_an_empty_mapping_beside_keys_of_others_is_no_reason_to_warn(
    desired: dict[str, str], told: list[tuple[str, ...]]
) -> None:
    """As Kubernetes answers: the mapping is not ours, for others have keys in it."""
    manifest = config_map("one", **desired)
    key = Key("configmaps.v1.", "default", "one")
    resource = Resource("", "v1", "configmaps", "ConfigMap")
    planned = Planned(fnop.child(manifest), "configmap/one", key, resource, "x", False)
    keeper = Keeper(Body({}), resource, ChildSet("me", "s", "u"), True, False, 0.0)
    meta = {**manifest["metadata"], "resourceVersion": "2", "managedFields": []}
    after = {**manifest, "metadata": meta, "data": {"theirs": "1"}}
    found = Told({})
    _unkept(planned, manifest, after, keeper, found)
    assert [each.fields for each in found.unkept] == told
    assert key in found.checked
