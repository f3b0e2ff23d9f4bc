"""API servers that answer 404 for what is there: nothing is lost.

One that has just started answers 404 for kinds that it has not read yet, and a live
read may be answered so for an object that is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.core.seam.inputs import StreamEnded
from fnop.effects import Get, Missing, Outcome, Patch
from fnop.effects.structs import replace
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.discoveries import FORMS, Server
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
    form = FORMS[0]

    def request(self, request: ApiRequest) -> ApiResponse:
        server = Server(super().request, self.form)
        server.unserved = "fnop.dev" if self.down else None
        return server(request)

    def _outcome(self, command: Perform) -> Outcome | None:
        return NOT_SERVED if self.down else super()._outcome(command)

    def restart(self) -> None:
        """The watch breaks, and finds nothing there; kinds are looked for."""
        self.down = True
        for key, stream in self.streams.items():
            if KIND in key:
                self.feed(StreamEnded(stream, "eof"))
        state = self.machine.state
        self.machine.state = replace(state, survey=replace(state.survey, due=0.0))
        self.wait(0.5)
        for key, stream in self.streams.items():
            if KIND in key:
                self.feed(StreamEnded(stream, "refused", 404, "404 page not found"))
        self.wait(8)
        self.down = False


@pytest.mark.parametrize("form", FORMS)
def test_a_group_that_is_not_served_for_a_moment_begins_nothing_anew(
    form: str, registry: Registry
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
    story.form = form
    story.wait(5)
    assert sorted(called) == ["create", "daemon begins"]
    story.restart()
    story.edit(KIND, spec={"n": 1})
    story.wait(30)
    assert called[2:] == ["update 7"]
    assert story.status()["reached"] is True
    assert not any("no more" in say.message for say in story.said)


@pytest.mark.parametrize("form", FORMS)
def test_a_kind_that_stays_away_is_served_no_more(
    form: str, registry: Registry
) -> None:
    ended: list[str] = []

    @fnop.daemon(KIND, registry=registry)
    async def daemon(stopped: Any, **_: Any) -> None:
        await stopped.wait()
        ended.append("daemon")

    story = Restarting(registry, [example(n=0)])
    story.form = form
    story.wait(5)
    story.restart()
    story.down = True
    story.wait(30)
    assert any(
        each.message.endswith(": the API server has it no more") for each in story.said
    )
    assert ended == ["daemon"]


# ------------------------------- kinds of which it is not known whether they are served


class Unread(Story):
    """A group of the API server cannot be read for a while."""

    form = FORMS[0]
    until = 0.0

    def request(self, request: ApiRequest) -> ApiResponse:
        server = Server(super().request, self.form)
        server.unread = "apps" if self.clock.elapsed < self.until else None
        return server(request)


def deployment(name: str | None = "web") -> dict[str, Any]:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name} if name else {},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod},
    }


CONTAINER = {"name": "c", "image": "i"}
ASKS: dict[str, Callable[[], fnop.Effect]] = {
    "apply": lambda: fnop.apply(deployment()),
    "create": lambda: fnop.create(deployment()),
    "adopt": lambda: fnop.adopt(deployment()),
    "adopt without a name": lambda: fnop.adopt(deployment(None)),
    "get": lambda: fnop.get("deployments", name="web"),
    "list": lambda: fnop.list("deployments"),
}


def conversing(registry: Registry, ask: Callable[[], Any], **options: Any) -> list[int]:
    attempts: list[int] = []

    @fnop.on.create(KIND, registry=registry, id="asks", **options)
    async def handler(retry: int, **_: Any) -> str:
        await ask()
        attempts.append(retry)
        return "done"

    return attempts


def planning(registry: Registry, ask: Callable[[], Any], **options: Any) -> list[int]:
    attempts: list[int] = []

    @fnop.on.create(KIND, registry=registry, id="asks", **options)
    def handler(retry: int, **_: Any) -> list[fnop.Effect]:
        attempts.append(retry)
        return [ask(), fnop.result("done")]

    return attempts


WAYS = [
    (way, ask)
    for way in (conversing, planning)
    for ask in ASKS
    if way is conversing or ask not in ("get", "list")  # reads are not plans
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("way", "ask"), WAYS)
def test_an_effect_waits_until_it_is_known_whether_its_kind_is_served(
    registry: Registry, way: Any, ask: str, form: str
) -> None:
    """It was not even sent: that does not fail, and uses up no attempt."""
    attempts = way(registry, ASKS[ask], retries=1)
    story = Unread(registry, [example(n=0)])
    story.form, story.until = form, 40.0
    assert story.settle()
    assert attempts == [0]
    found = story.get(KIND)
    assert found is not None
    assert found["status"]["asks"] == "done"
    assert not story.said_at("error")
    assert any(
        "which is tried again: it is not known yet whether the API server" in line
        for line in story.said_at("warning")
    )
    made = [] if ask in ("get", "list") else ["web"]
    names = [each["metadata"]["name"] for each in story.objects("deployments")]
    assert len(names) == len(made)


@pytest.mark.parametrize("way", [conversing, planning])
def test_a_timeout_ends_the_wait_for_a_kind(registry: Registry, way: Any) -> None:
    way(registry, ASKS["create"], timeout=20)
    story = Unread(registry, [example(n=0)])
    story.until = 400.0
    story.settle(seconds=60)
    (line,) = story.said_at("error")
    assert "not done within 20 s" in line


@pytest.mark.parametrize("way", [conversing, planning])
def test_a_kind_that_turns_out_not_to_be_served_is_refused_then(
    registry: Registry, way: Any
) -> None:
    mistyped = fnop.target("deploymentz", name="web")
    way(registry, lambda: fnop.delete(mistyped), retries=1)
    story = Unread(registry, [example(n=0)])
    story.until = 40.0
    assert story.settle()
    (line,) = story.said_at("error")
    assert "did you mean 'deployments.apps'" in line


def test_who_crashes_while_a_kind_is_not_known_asks_again(registry: Registry) -> None:
    attempts = conversing(registry, ASKS["create"], retries=1)
    story = Unread(registry, [example(n=0)])
    story.until = 40.0
    story.settle(seconds=20)
    story.crash()
    assert story.settle()
    assert attempts == [0]
    assert len(story.objects("deployments")) == 1
