"""A random user of the examples with reconcile handlers, in the simulated cluster.

The same on real servers: tests/cluster/reconciler_runs.py.
More seeds: FNOP_RECONCILER_RUNS=500.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from fnop.adapters.testing.models import models_for
from tests.reconciler_driver import GARDENS, SUBJECTS, Driver, Subject
from tests.simulated_world import SimulatedWorld
from tests.simulations import (
    ROOT,
    example_handlers,
    handlers_in,
    is_definition,
    manifests_of,
)

RUNS = int(os.environ.get("FNOP_RECONCILER_RUNS", "4"))
ACTIONS = 30
ALL = (*SUBJECTS.values(), GARDENS)
# Of gardens: namespaces are made by hand here.
BEDS = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default-beds"},
}


class RunWorld(SimulatedWorld):
    """A simulated cluster with the operator, and a name server with bad days."""

    def __init__(self, subject: Subject, seed: int) -> None:
        trouble = random.Random(seed)
        self.outside: dict[str, Any] = {}
        self.is_calm = False

        def put_records(owner: str, records: dict[str, str]) -> None:
            fate = "done" if self.is_calm else trouble.choice(["done", "lost", "late"])
            if fate != "lost":
                self.outside.pop(owner, None)
                if records:
                    self.outside[owner] = dict(records)
            if fate != "done":
                raise ConnectionError(f"the answer is {fate}")

        name = subject.example
        operator = ROOT / subject.operator
        given = subject.definitions or manifests_of(name)
        super().__init__(
            handlers_in(operator) if subject.operator else example_handlers(name),
            [each for each in given if is_definition(each)],
            calls=models_for({"put_records": put_records}),
            seed=str(seed),
        )
        if subject is GARDENS:
            self.create(BEDS)

    def pause(self, chance: random.Random) -> None:
        """Some steps in which no time passes, or some time."""
        if chance.random() < 0.6:
            for _ in range(chance.randrange(20)):
                self.run.advance(self.run.clock.elapsed)
        else:
            self.run.wait(chance.uniform(0, 20))

    def settle(self) -> None:
        self.is_calm = True
        super().settle()


@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.parametrize("subject", ALL, ids=lambda each: each.kind)
def test_whatever_happens_the_end_is_what_is_desired(
    subject: Subject, seed: int
) -> None:
    world = RunWorld(subject, seed)
    driver = Driver(subject, world, seed)
    driver.begin()
    for _ in range(ACTIONS):
        driver.act()
        world.pause(driver.chance)
    world.settle()
    told = "\n".join([*driver.story, *world.lines[-30:]])
    assert driver.wrong() == [], told
    driver.end()
    world.settle()
    assert driver.wrong() == [], told
