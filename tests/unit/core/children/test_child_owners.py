"""The owners of children: orphans, copies, and the objects of strangers."""

from __future__ import annotations

import pytest

import fnop
from tests.reconcilers import KIND, NAME, Desiring, config_map, data_of
from tests.simulations import example


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("near", "default"),
        ("far", "kube-public"),
    ],
)
def test_orphaned_children_stay(name: str, place: str) -> None:
    op = Desiring(config_map("near"), config_map("far", "kube-public")).begin()
    op.sim.delete(NAME, propagation="Orphan").settle()
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, name, namespace=place) is not None


def test_an_orphaned_child_is_not_taken_over_by_a_stranger() -> None:
    op = Desiring(config_map("shared", a="1")).begin()
    op.sim.delete(NAME, propagation="Orphan").settle()
    op.sim.edit("configmaps/shared", data={"a": "precious"})
    op.sim.apply(example("stranger")).wait(30)
    assert data_of(op.sim, "shared") == {"a": "precious"}


def test_a_copy_that_somebody_makes_of_a_child_is_not_deleted() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    original = op.sim.get("configmaps/one")
    assert original is not None
    meta = {**original["metadata"], "name": "one-backup"}
    for name in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        del meta[name]
    op.sim.apply({**original, "metadata": meta}).settle()
    assert data_of(op.sim, "one-backup") == {"a": "1"}


def test_an_object_is_not_its_own_child() -> None:
    itself = fnop.child(example("example-1", size=3), adopt=True)
    op = Desiring(itself, owns=[KIND])
    op.sim.apply(example()).wait(30)
    assert not op.sim[NAME].metadata.get("ownerReferences")
