"""Requests and handlers that are repeated: creations and additions happen once.

The reply of a request may be lost, and a handler may fail after some of its effects and
be called again.
"""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.effects import Create, Outcome, Patch
from tests.simulations import example
from tests.stories import Story

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def config(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data,
    }


class LostReplies:
    """Each kind of write loses its first replies, after or before it is done."""

    def __init__(self, times: int, *, done: bool = True, others: bool = False) -> None:
        self.left = times
        self.done = done
        self.others = others

    def __call__(self, story: Story, command: Perform) -> Outcome | None:
        if not isinstance(command.effect, (Patch, Create)) or not self.left:
            return None
        self.left -= 1
        if self.others:
            story.fate = lambda story, command: None
            found = story.get(KIND)
            assert found is not None
            story.edit(KIND, spec={"items": [*found["spec"]["items"], "theirs"]})
            story.fate = self
        if self.done:
            return story.applied_but_unknown(command)
        story.sent_at.pop()
        return fnop.effects.outcomes.Unknown("the connection broke")


def add(item: str) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/spec/items/-", "value": item}]


def awaited(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="adds")
    async def adds(**_: Any) -> None:
        await fnop.patch(json=add("ours"))


def planned(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="adds")
    def adds(**_: Any) -> fnop.Effect:
        return fnop.patch(json=add("ours"))


def function(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="adds")
    def adds(patch: Any, **_: Any) -> None:
        patch.fns.append(lambda body: body["spec"]["items"].append("ours"))


def spied(registry: Registry) -> None:
    @fnop.on.event("configmaps", registry=registry, labels={"adds": "yes"}, id="adds")
    async def adds(type: Any, **_: Any) -> None:
        if type is None:
            target = fnop.target(KIND, name="example-1", namespace="default")
            await fnop.patch(target, json=add("ours"))


WAYS = [awaited, planned, function, spied]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_what_is_added_is_there_once_whichever_replies_are_lost(
    registry: Registry, way: Any, done: bool, others: bool, times: int
) -> None:
    way(registry)
    labelled = config("adds")
    labelled["metadata"] |= {"labels": {"adds": "yes"}, "namespace": "default"}
    story = Story(registry, [example(items=["first"]), labelled])
    story.fate = LostReplies(times, done=done, others=others)
    assert story.settle()
    found = story.get(KIND)
    assert found is not None
    items = found["spec"]["items"]
    assert items.count("ours") == 1, items
    assert items.count("theirs") == (times if others else 0), items


@pytest.mark.parametrize("crash", [False, True])
def test_a_creation_may_be_repeated(registry: Registry, crash: bool) -> None:
    """The attempt fails later, or the operator ends; the handler is called again."""
    attempts: list[int] = []

    @fnop.on.create(KIND, registry=registry)
    async def create(retry: int, **_: Any) -> str:
        made = await fnop.create(config("child", a="1"))
        attempts.append(retry)
        if len(attempts) < 3:
            raise fnop.TemporaryError("the first error", delay=5)
        return str(made.metadata.name)

    story = Story(registry, [example(n=0)])
    story.settle(seconds=1)
    if crash:
        story.crash()
    assert story.settle()
    assert len(attempts) == 3
    assert len(story.objects("configmaps")) == 1
    assert not any("exists" in line for line in story.lines)


def test_a_creation_of_the_same_name_by_somebody_else_is_a_conflict(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, retries=1)
    def create(**_: Any) -> fnop.Effect:
        return fnop.create(config("child", a="1"))

    theirs = config("child", a="1")
    theirs["metadata"]["namespace"] = "default"
    story = Story(registry, [theirs, example("one", n=0), example("two", n=0)])
    assert story.settle()
    text = "Create configmaps/child: ConfigMap child exists and is not created by this"
    assert sum(text in line for line in story.said_at("error")) == 2


def test_two_objects_that_create_one_name_are_told(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, retries=1, id="create")
    def create(**_: Any) -> fnop.Effect:
        return fnop.create(config("child"))

    story = Story(registry, [example("one", n=0), example("two", n=0)])
    assert story.settle()
    assert len(story.objects("configmaps")) == 1
    assert len(story.said_at("error")) == 1


def test_a_function_that_fails_is_not_called_for_ever(registry: Registry) -> None:
    called: list[int] = []

    @fnop.on.create(KIND, registry=registry)
    async def create(patch: Any, **_: Any) -> None:
        await fnop.get("configmaps", name="absent")
        called.append(1)
        patch.fns.append(lambda body: body["spec"]["absent"].append(1))

    story = Story(registry, [example(n=0)])
    assert story.settle()
    assert len(called) == 1
    (line,) = story.said_at("error")
    assert "failed for good" in line
    assert "KeyError" in line


# ----------------------------------------------- one name, created twice by one attempt


async def conversing(**_: Any) -> None:
    await fnop.create(config("child", a="1"))
    await fnop.create(config("child", a="2"))


def planning(**_: Any) -> Any:
    return fnop.create([config("child", a="1"), config("child", a="2")])


@pytest.mark.parametrize("handler", [conversing, planning])
@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_two_objects_of_one_name_are_a_conflict_told_to_the_handler(
    registry: Registry, handler: Any, lost: int
) -> None:
    fnop.on.create(KIND, registry=registry, retries=1)(handler)
    story = Story(registry, [example(n=0)])
    story.fate = LostReplies(lost)
    assert story.settle()
    (made,) = story.objects("configmaps")
    assert made["data"] == {"a": "1"}
    (line,) = story.said_at("error")
    assert (
        "ConfigMap child has been created before by this attempt, from another manifest"
        in line
    )


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_what_an_attempt_has_deleted_it_may_create_anew(
    registry: Registry, lost: int
) -> None:
    @fnop.on.create(KIND, registry=registry, retries=1)
    async def handler(**_: Any) -> None:
        await fnop.create(config("child", a="1"))
        await fnop.delete("configmaps", name="child")
        await fnop.create(config("child", a="2"))

    story = Story(registry, [example(n=0)])
    story.fate = LostReplies(lost)
    assert story.settle()
    assert not story.said_at("error")
    (made,) = story.objects("configmaps")
    assert made["data"] == {"a": "2"}


def test_what_is_created_twice_from_one_manifest_is_there_once(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, retries=1)
    def handler(**_: Any) -> Any:
        return fnop.create([config("child", a="1"), config("child", a="1")])

    story = Story(registry, [example(n=0)])
    assert story.settle()
    assert not story.said_at("error")
    assert len(story.objects("configmaps")) == 1


def test_the_next_attempt_may_create_it_otherwise(registry: Registry) -> None:
    """An object that an earlier attempt has created exists, and is left unchanged."""

    @fnop.on.create(KIND, registry=registry)
    async def handler(retry: int, **_: Any) -> None:
        await fnop.create(config("child", attempt=str(retry)))
        if retry == 0:
            raise fnop.TemporaryError("not yet", delay=1)

    story = Story(registry, [example(n=0)])
    assert story.settle()
    assert not story.said_at("error")
    (made,) = story.objects("configmaps")
    assert made["data"] == {"attempt": "0"}
