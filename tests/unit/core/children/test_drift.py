"""Children that others change or delete are repaired; fields that no server keeps."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import fnop
from fnop.core.api.resources import Resource
from fnop.core.children.applying import _note_unkept
from fnop.core.children.drift import Drift
from fnop.core.children.findings import Told
from fnop.core.children.marks import ChildSet
from fnop.core.children.planning import Keeper, Planned
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.core.values.body import Body, Key
from fnop.effects import Apply, Outcome
from tests.reconcilers import NAME, Desiring, config_map, data_of, simulation
from tests.simulations import Scenario, example
from tests.stories import Story

THING = yaml.safe_load(
    """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.e.com}
spec:
  group: e.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              any: {x-kubernetes-preserve-unknown-fields: true}
"""
)


def test_drift_in_a_field_of_a_free_form_is_repaired() -> None:
    thing = {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    op = Desiring({**thing, "spec": {"any": {"x": {"y": 1}}}}, owns="things.e.com")
    op.sim.apply(THING)
    op.begin()
    op.sim.edit("things/t", spec={"any": {"x": {"y": 2}}}).settle()
    assert op.sim["things/t"]["spec"] == {"any": {"x": {"y": 1}}}


@pytest.mark.parametrize("moves_on", [False, True])
def test_a_former_manifest_that_lands_late_is_undone(moves_on: bool) -> None:
    """A write whose reply was lost, a former leader, or a former release."""
    op, former = Desiring(config_map("one", a="1")), list[Any]()

    @fnop.on.event("configmaps", registry=op.registry)
    def land(name: str, **_: Any) -> Any:
        return fnop.apply(former[0], force=True) if name == "trigger" else None

    op.sim = simulation(op.registry)
    op.begin()
    live = op.sim["configmaps/one"]
    marks = ("name", "namespace", "labels", "annotations", "ownerReferences")
    meta = {key: live["metadata"][key] for key in marks}
    former.append({**live, "metadata": meta})
    op.desire(config_map("one", a="2"))
    assert data_of(op.sim, "one") == {"a": "2"}
    op.sim.apply(config_map("trigger")).settle()
    if moves_on:  # not even the next call sees it
        op.sim.edit(NAME, metadata={"labels": {"any": "change"}}).settle()
    assert data_of(op.sim, "one") == {"a": "2"}


def test_what_a_server_does_not_keep_is_told_once() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    }
    op = Desiring(service, owns="services")
    op.more = {"again": 5}
    op.sim.apply(example()).wait(60)
    assert len([each for each in op.sim.log if "does not keep" in each]) == 1


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
    _note_unkept(planned, Drift(manifest), after, keeper, found)
    assert [each.fields for each in found.unkept] == told
    assert (key in found.checked) is bool(told), "nothing is lost of an empty mapping"


def service(port: int = 80) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": port, "protocol": "TCP"}], "selector": {"a": "b"}},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    }


def unkept(op: Desiring) -> list[str]:
    return [each for each in op.sim.log if "does not keep" in each]


def test_what_is_not_kept_is_applied_once_and_told_again_for_another_manifest() -> None:
    op = Desiring(service(), owns="services")
    op.more = {"again": 5}
    writes = op.writes()
    op.sim.apply(example()).wait(60)
    assert [*writes] == ["PATCH services/s"]
    (line,) = unkept(op)
    assert "keep desires status.loadBalancer" in line
    op.wanted = [service(81)]
    op.sim.edit(NAME, spec={"round": 1}).wait(60)
    assert [*writes] == ["PATCH services/s"] * 2 + []
    assert len(unkept(op)) == 2


def test_drift_beside_what_is_not_kept_is_repaired() -> None:
    op = Desiring(service(), owns="services")
    op.sim.apply(example()).wait(5)
    op.sim.edit("services/s", spec={"selector": {"a": "theirs"}}).wait(5)
    assert op.sim["services/s"]["spec"]["selector"] == {"a": "b"}
    events = op.sim.events()
    (told,) = [each["message"] for each in events if each["reason"] == "Repaired"]
    assert told.startswith("service/s: spec.selector.a, changed by")
    assert len(unkept(op)) == 1


CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}}


class Deleting:
    """A client that deletes the child as soon as it exists, once."""

    def __init__(self) -> None:
        self.is_done = False

    def __call__(self, run: Story, command: Perform) -> Outcome | None:
        if self.is_done or not isinstance(command.effect, Apply):
            return None
        self.is_done = True
        outcome = Scenario._outcome(run, command)
        run.delete("configmaps", "child")  # the watch shows both before the answer
        return outcome


def test_it_is_made_anew() -> None:
    registry = Registry()

    @fnop.reconcile("fnopexamples", owns="configmaps", registry=registry)
    def keep(**_: object) -> fnop.Desired:
        return fnop.desired(CHILD)

    run = Story(registry)
    run.fate = Deleting()
    run.apply(example())
    assert run.settle(), run.unsettled
    assert run.get("configmaps", "child") is not None
    run.edit("fnopexamples", spec={"more": 1})
    assert run.settle(), run.unsettled
    assert run.get("configmaps", "child") is not None
