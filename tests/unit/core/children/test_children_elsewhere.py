"""Children in other namespaces than their owner: created, owned and deleted."""

from __future__ import annotations

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import Perform
from fnop.effects import Delete
from tests.reconcilers import KIND, NAME, Desiring, config_map, data_of, simulation
from tests.simulations import example
from tests.stories import Story

CHILD = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "far", "namespace": "kube-public"},
}


def story() -> Story:
    registry = Registry()

    @fnop.reconcile("fnopexamples", owns="configmaps", registry=registry)
    def keep(**_: object) -> fnop.Desired:
        return fnop.desired(CHILD)

    found = Story(registry, [example()])
    assert found.settle()
    return found


def deletions(run: Story) -> int:
    return sum(each.startswith("DELETE") for each in run.sent)


def unseen(run: Story, command: Perform) -> None:
    """The watch shows nothing of a deletion, nor what comes after it."""
    run.late_events = run.late_events or isinstance(command.effect, Delete)


@pytest.mark.parametrize("stops", [False, True])
def test_a_deletion_is_repeated_seldom_though_the_watch_is_late(stops: bool) -> None:
    """The answer to it may be wrong, so it is repeated after growing pauses."""
    run = story()
    run.fate = unseen
    run.delete("fnopexamples")
    for _ in range(100):
        run.advance(run.clock.elapsed)
    assert deletions(run) == 1
    if stops:
        run.stop()
        run.wait(60)
        assert run.exit is not None
        return
    run.wait(600)
    repeated = deletions(run)
    assert 2 <= repeated <= 8
    run.let_events_through()
    assert run.settle()
    assert deletions(run) == repeated
    assert run.get("fnopexamples") is None


@pytest.mark.parametrize("deleted", [False, True])
def test_a_child_elsewhere_has_one_owner(deleted: bool) -> None:
    """The other object is not in sync; after the owner's deletion it has the child."""
    op = Desiring(config_map("shared", "kube-public", a="1"))
    op.sim.apply([example("example-1"), example("example-2")]).wait(60)
    child = op.sim.get("configmaps/shared", namespace="kube-public")
    assert child is not None
    owner = child["metadata"]["annotations"]["fnop.dev/owner"].split("/")[2]
    (other,) = {"example-1", "example-2"} - {owner}
    if deleted:
        op.sim.delete(f"{KIND}/{owner}").wait(120)
        assert data_of(op.sim, "shared", namespace="kube-public") == {"a": "1"}
    else:
        (synced,) = op.sim[f"{KIND}/{other}"].status["conditions"]
        assert synced["status"] == "False"


def test_an_owner_that_does_not_match_any_more_can_be_deleted() -> None:
    op = Desiring(config_map("far", "kube-public"), labels={"on": "yes"})
    owner = example()
    owner["metadata"]["labels"] = {"on": "yes"}
    op.sim.apply(owner).settle()
    op.sim.edit(NAME, metadata={"labels": {"on": None}}).settle()
    op.sim.delete(NAME).wait(600)
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "far", namespace="kube-public") is None


def test_a_child_in_a_namespace_that_is_not_served_is_told() -> None:
    op = Desiring(config_map("far", "kube-public"))
    here = Settings(namespaces=("default",))
    op.sim = simulation(op.registry, settings=here)
    op.sim.apply(example()).wait(30)
    status = op.synced()[0]
    op.sim.stop().delete(NAME)
    op.sim.restart().wait(60)
    is_left = data_of(op.sim, "far", namespace="kube-public") is not None
    assert op.sim.get(NAME) is None
    assert (status, is_left) == ("False", False)
