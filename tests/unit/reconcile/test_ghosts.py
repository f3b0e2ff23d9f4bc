"""A child that was deleted before the answer to its creation has come."""

from __future__ import annotations

import fnop
from fnop.core.handlers.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.effects import Apply, Outcome
from tests.simulations import Scenario, example
from tests.stories import Story

CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}}


class Deleting:
    """Somebody who deletes the child as soon as it is there, once."""

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
