"""Children elsewhere that go before their owner, while the watch is late."""

from __future__ import annotations

import pytest

import fnop
from fnop.core.handlers.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.effects import Delete
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
def test_what_is_deleted_is_deleted_once_though_the_watch_is_late(stops: bool) -> None:
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
    run.wait(60)
    assert deletions(run) == 1
    run.let_events_through()
    assert run.settle()
    assert deletions(run) == 1
    assert run.get("fnopexamples") is None
