"""Mappings: whom an object names, and whom it has named."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.registry import Registry
from fnop.testing import Simulation
from tests.simulations import DEFINITION, ROOT, example

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
