"""The examples in the simulated cluster do what they say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.example_scenarios import STORIES, Expectation, Story, unmet
from tests.simulations import Scenario, example_handlers


class SimulatedWorld:
    """A scenario as a world; "a while" is until nothing is left to do."""

    def __init__(self, example: str) -> None:
        self._run = Scenario(example_handlers(example))

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        return self._run.get(kind, name)

    def objects(self, kind: str) -> list[dict[str, Any]]:
        return self._run.objects(kind)

    @property
    def lines(self) -> list[str]:
        return self._run.lines

    def create(self, manifest: dict[str, Any]) -> None:
        self._run.apply(manifest)

    def edit(self, kind: str, name: str, change: dict[str, Any]) -> None:
        self._run.edit(kind, name, **change)

    def delete(self, kind: str, name: str) -> None:
        self._run.delete(kind, name)

    def restart(self) -> None:
        self._run.stop()
        assert self._run.settle()
        assert self._run.exit is not None
        self._run.crash()

    def expect(self, expectations: tuple[Expectation, ...]) -> None:
        assert self._run.settle()
        assert unmet(expectations, self) == [], self.lines


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.example)
def test_the_example_does_what_it_says(story: Story) -> None:
    world = SimulatedWorld(story.example)
    for step in story.steps:
        step.does(world)
        world.expect(step.expected)
