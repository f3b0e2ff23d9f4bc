"""Single decisions, and a story in the simulated cluster."""

from pathlib import Path
from typing import Any

import pytest

from fnop.testing import Simulation, load, review

HERE = Path(__file__).parent
example = load(HERE / "example.py")


def site(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "fnop.dev/v1",
        "kind": "Site",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"host": "a.example.org", "size": 1, **spec},
    }


def test_a_site_is_completed_and_then_left_alone() -> None:
    new = site(host="A.example.org")
    del new["spec"]["size"]
    decision = review(example, None, new)
    assert decision.object == site()
    assert review(example, None, decision.object).patch == ()


@pytest.mark.parametrize(("before", "after", "allowed"), [(1, 2, True), (2, 1, False)])
def test_a_site_does_not_shrink(before: int, after: int, allowed: bool) -> None:
    decision = review(example, site(size=before), site(size=after))
    assert decision.allowed is allowed
    assert decision.message == ("" if allowed else "a site must not shrink")


def test_a_host_belongs_to_one_site() -> None:
    sim = Simulation(example, crds=HERE / "object.yaml").settle()
    with pytest.raises(AssertionError, match="the host belongs to default/example-1"):
        sim.apply(site(host="www.example.org"))
    sim.delete("sites/example-1").settle().apply(site(host="www.example.org"))


def test_a_site_is_kept_as_long_as_it_says_so() -> None:
    sim = Simulation(example, crds=HERE / "object.yaml").settle()
    sim.edit("sites/example-1", metadata={"labels": {"keep": "true"}})
    with pytest.raises(AssertionError, match="remove its label `keep`"):
        sim.delete("sites/example-1")
    sim.edit("sites/example-1", metadata={"labels": None})
    assert "sites/example-1" not in sim.delete("sites/example-1").settle()
