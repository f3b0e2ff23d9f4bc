"""A stop: its duration while a server does not answer, and its messages."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.peers.lease import Candidate
from fnop.core.seam.commands import Exit
from fnop.effects import Outcome
from tests.simulations import example
from tests.stories import Story

NAMES = [f"e-{number}" for number in range(5)]


class Unanswered(Story):
    """While the server stands still, requests are sent and never answered."""

    stands_still = False

    def _answered(self, number: int, outcome: Outcome | None) -> None:
        if not self.stands_still:
            super()._answered(number, outcome)

    @property
    def ended_at(self) -> float:
        """When the operator ended, in virtual seconds."""
        (found,) = [
            now.mono
            for now, _, commands in self.trace.steps
            if any(isinstance(each, Exit) for each in commands)
        ]
        return found


def operator() -> Registry:
    registry = Registry()

    @fnop.on.update("fnopexamples", registry=registry, id="update")
    async def update(name: str, **_: Any) -> None:
        meta = {"name": name}
        await fnop.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})

    return registry


def served(**options: Any) -> Unanswered:
    candidate = Candidate("me", "default", "operator")
    settings = Settings(election=candidate, **options)
    story = Unanswered(operator(), map(example, NAMES), settings=settings)
    story.wait(20)
    return story


@pytest.mark.parametrize("grace", [5.0, 30.0])
def test_it_ends_within_the_grace_period_and_tells_what_it_awaits(grace: float) -> None:
    story = served(grace_period_seconds=grace)
    story.stands_still = True
    for name in NAMES:
        story.edit("fnopexamples", name, spec={"n": 2})
    story.wait(0.1)
    began = story.clock.elapsed
    story.stop("SIGTERM")
    story.wait(grace + 5)
    assert story.exit == Exit(0, "stopped")
    assert story.ended_at - began <= grace
    (line,) = [each for each in story.said_at("info") if "waits for" in each]
    assert line.startswith("stopping: waits for 5 requests: of update for fnopexamples")
    assert line.endswith(f", and 2 more, at most {grace * 0.7 - 1:.0f} s more")


def test_it_tells_nothing_where_the_server_answers() -> None:
    story = served()
    began = story.clock.elapsed
    story.stop("SIGTERM")
    story.wait(5)
    assert story.ended_at - began < 1
    assert not [each for each in story.said_at("info") if "waits for" in each]
