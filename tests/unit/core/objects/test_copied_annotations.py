"""State in annotations that others copy, restore, or write over."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.operator.uninstalling import next_removal
from fnop.core.values.body import Body
from fnop.testing import Simulation

STATE = "fnop.dev/default"
APPS = ("deployments", "replicasets")


def operator(calls: Counter[tuple[str, str]]) -> Registry:
    registry = Registry()
    for kind in (*APPS, "configmaps"):

        @fnop.on.create(kind, registry=registry, id="create")
        @fnop.on.update(kind, registry=registry, id="update")
        def handle(name: str, reason: str, **_: Any) -> None:
            if name != "kube-root-ca.crt":
                calls[name, reason] += 1

    return registry


def deployment(**annotations: str) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "web", "image": "web:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "annotations": annotations},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container]},
            },
        },
    }


def annotations_of(sim: Simulation, name: str) -> dict[str, str]:
    found = sim.get(name)
    assert found is not None
    return dict(found["metadata"].get("annotations", {}))


def copied(sim: Simulation, source: str, target: str) -> None:
    """Another controller copies all annotations, as deployments do to ReplicaSets."""
    sim.edit(target, metadata={"annotations": annotations_of(sim, source)})


def test_a_deployment_and_its_replica_sets_are_handled_once() -> None:
    calls: Counter[tuple[str, str]] = Counter()
    sim = Simulation(operator(calls), objects=[deployment()]).settle()
    (replica_set,) = sim.objects("replicasets")
    name = f"replicasets/{replica_set.name}"
    for _ in range(3):
        copied(sim, "deployments/web", name)
        sim.settle()
    sim.restart().settle()
    copied(sim, "deployments/web", name)
    sim.settle()
    # The update comes from the controller, which annotates the revision.
    made = {("web", "create"): 1, ("web", "update"): 1}
    assert dict(calls) == made | {(replica_set.name, "create"): 1}


@pytest.mark.parametrize("restarts", [False, True])
def test_the_state_of_another_object_replaces_none(restarts: bool) -> None:
    """As of a manifest that was exported, and is applied under another name."""
    calls: Counter[tuple[str, str]] = Counter()
    sim = Simulation(operator(calls), objects=config_maps()).settle()
    for _ in range(3):
        copied(sim, "configmaps/a", "configmaps/b")
        sim.settle()
        if restarts:
            sim.restart().settle()
    assert dict(calls) == {("a", "create"): 1, ("b", "create"): 1}
    sim.edit("configmaps/b", data={"x": "1"}).settle()
    assert calls["b", "update"] == 1


def test_what_was_copied_goes_when_the_operator_is_uninstalled() -> None:
    sim = Simulation(operator(Counter()), objects=config_maps()).settle()
    copied(sim, "configmaps/a", "configmaps/b")
    sim.settle()
    found = annotations_of(sim, "configmaps/b")
    assert len(found) == 2
    assert STATE in found
    body = Body(dict(sim["configmaps/b"]))
    removal = next_removal(body, CONFIG_MAPS, Settings())
    assert removal is not None
    _, patch = removal
    assert patch["metadata"]["annotations"] == dict.fromkeys(found)


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def config_maps() -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        for name in "ab"
    ]
