"""An API server that does not know, for a moment, what it has: nothing is lost by it.

One that has just started answers 404 for kinds that it has not read yet, and a live
read may be answered so for an object that is there.
"""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.commands import Command, Fetch, Perform
from fnop.core.inputs import Answered, StreamEnded
from fnop.core.registry import Registry
from fnop.effects import Get, Missing, Outcome, Patch
from tests.simulations import example
from tests.stories import Story

KIND = "fnopexamples"
NOT_SERVED = Missing("404 page not found", unserved=True)


@pytest.fixture
def registry() -> Registry:
    return Registry()


class Once:
    """Conflicts with the first patch, and the read that follows is answered so."""

    def __init__(self, answer: Outcome) -> None:
        self.answer = answer
        self.patched = self.read = False

    def __call__(self, story: Story, command: Perform) -> Outcome | None:
        match command.effect:
            case Patch() if not self.patched:
                self.patched = True
                story.edit(KIND, metadata={"labels": {"by": "another"}})
            case Get() if not self.read:
                self.read = True
                return self.answer
        return None


@pytest.mark.parametrize("answer", [Missing("not found"), NOT_SERVED])
@pytest.mark.parametrize("late", [False, True])
def test_what_was_to_be_written_is_not_lost_with_a_false_answer(
    registry: Registry, answer: Outcome, late: bool
) -> None:
    called: list[str] = []

    @fnop.on.create(KIND, registry=registry, id="one")
    def one(patch: Any, **_: Any) -> str:
        called.append("one")
        patch.spec["one"] = 1
        patch.status["seen"] = "done"
        return "result"

    @fnop.on.create(KIND, registry=registry)
    def two(**_: Any) -> None:
        called.append("two")

    story = Story(registry, [example(n=0)])
    story.fate = Once(answer)
    story.late_events = late
    story.wait(30)
    story.let_events_through()
    assert story.settle()
    assert called == ["one", "two"]
    found = story.get(KIND)
    assert found is not None
    assert found["spec"]["one"] == 1
    assert found["status"]["one"] == "result"
    assert found["status"]["seen"] == "done"


class Restarting(Story):
    """An API server that serves its definitions not yet, while it is `down`."""

    down = False

    def perform(self, command: Command) -> None:
        match command:
            case Fetch(id, path) if self.down and "fnop.dev" in path:
                self._inbox.append(Answered(id, NOT_SERVED))
            case _:
                super().perform(command)

    def _outcome(self, command: Perform) -> Outcome:
        return NOT_SERVED if self.down else super()._outcome(command)

    def restart(self) -> None:
        """The watch breaks, and finds nothing there; kinds are looked for."""
        self.down = True
        for key, stream in self.streams.items():
            if KIND in key:
                self.feed(StreamEnded(stream, "eof"))
        state = self.machine.state
        self.machine.state = state._replace(survey=state.survey._replace(due=0.0))
        self.wait(0.5)
        for key, stream in self.streams.items():
            if KIND in key:
                self.feed(StreamEnded(stream, "refused", 404, "404 page not found"))
        self.wait(8)
        self.down = False


def test_a_group_that_is_not_served_for_a_moment_begins_nothing_anew(
    registry: Registry,
) -> None:
    called: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        called.append("create")
        return fnop.remember(number=7)

    @fnop.on.update(KIND, registry=registry)
    async def update(memo: Any, **_: Any) -> None:
        called.append(f"update {memo.get('number')}")
        await fnop.patch(status={"reached": True})

    @fnop.daemon(KIND, registry=registry)
    async def daemon(stopped: Any, **_: Any) -> None:
        called.append("daemon begins")
        while not stopped:
            await fnop.sleep(3)
        called.append("daemon ends")

    story = Restarting(registry, [example(n=0)])
    story.wait(5)
    assert sorted(called) == ["create", "daemon begins"]
    story.restart()
    story.edit(KIND, spec={"n": 1})
    story.wait(30)
    assert called[2:] == ["update 7"]
    assert story.status()["reached"] is True
    assert not any("no more" in say.message for say in story.said)


def test_a_kind_that_stays_away_is_served_no_more(registry: Registry) -> None:
    ended: list[str] = []

    @fnop.daemon(KIND, registry=registry)
    async def daemon(stopped: Any, **_: Any) -> None:
        await stopped.wait()
        ended.append("daemon")

    story = Restarting(registry, [example(n=0)])
    story.wait(5)
    story.restart()
    story.down = True
    story.wait(30)
    assert any(each.message.endswith("no more: it is not there") for each in story.said)
    assert ended == ["daemon"]
