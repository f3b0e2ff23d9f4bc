"""A law: what holds for every object that the definition's schema lets through."""

from pathlib import Path
from typing import Any

import example
from hypothesis import given, settings

from fnop.testing import Simulation, manifests

CRD = Path(__file__).parent / "object.yaml"
KEY = {"apiVersion": "v1", "kind": "Secret"}


@settings(max_examples=20, deadline=None)
@given(manifests(CRD, name="drawn"))
def test_each_object_gets_its_volume_or_an_error(body: dict[str, Any]) -> None:
    sim = Simulation(example, crds=CRD)
    sim.apply({**KEY, "metadata": {"name": body["spec"].get("secret", "none")}})
    sim.apply(body).settle()
    assert sim.settled
    has_volume = sim.get("pvc/drawn-data") is not None
    assert has_volume != any("spec.size must be" in line for line in sim.errors)
