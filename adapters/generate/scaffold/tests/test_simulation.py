"""Stories, laws and faults: the operator in a simulated cluster, on virtual time."""

from pathlib import Path
from typing import Any

from fnop.testing import Simulation, create, delete, edit, explore, manifests
from hypothesis import given, settings

from __package__ import operator

ROOT = Path(__file__).parents[1]
CRD, SAMPLE = ROOT / "deploy/crd.yaml", ROOT / "example.yaml"
KIND = "__plural__.__group__"
EXAMPLE = f"{KIND}/example"
GOOD = {"Ready": "True", "Synced": "True"}


def conditions(sim: Simulation, where: str) -> dict[str, str]:
    return {each["type"]: each["status"] for each in sim[where].status["conditions"]}


def test_the_sample_is_created_scaled_and_deleted() -> None:
    sim = Simulation(operator, crds=CRD, objects=SAMPLE).settle()
    assert conditions(sim, EXAMPLE) == GOOD
    assert sim["deployments.apps/example"].status["readyReplicas"] == 2

    sim.edit(EXAMPLE, spec={"replicas": 3}).settle()
    assert conditions(sim, EXAMPLE) == GOOD
    assert sim[EXAMPLE].status["replicas"] == 3

    sim.delete(EXAMPLE).settle()
    assert sim.objects("deployments.apps") == sim.objects("services") == []
    assert sim.errors == []


def test_changes_by_hand_are_repaired() -> None:
    sim = Simulation(operator, crds=CRD, objects=SAMPLE).settle()
    sim.edit("deployments.apps/example", spec={"replicas": 7})
    sim.delete("services/example").settle()
    assert sim["deployments.apps/example"].spec["replicas"] == 2
    assert "services/example" in sim


@settings(max_examples=20, deadline=None)
@given(manifests(CRD, name="drawn"))
def test_every_valid_object_becomes_ready(body: dict[str, Any]) -> None:
    sim = Simulation(operator, crds=CRD).apply(body).settle()
    assert sim.settled
    assert sim.errors == []
    assert conditions(sim, f"{KIND}/drawn") == GOOD


def test_no_fault_changes_the_end() -> None:
    """A part of what `make check` tries: crashes, conflicts, lost replies."""
    body = {
        "apiVersion": "__group__/v1",
        "kind": "__Kind__",
        "metadata": {"name": "example"},
        "spec": {"image": "nginx", "replicas": 1},
    }
    scaled = edit(EXAMPLE, spec={"replicas": 2})
    script = create(body), scaled, delete(EXAMPLE)
    explore(operator, *script, crds=CRD, budget=80).must()
