"""Log lines of attempts: "succeeded" comes only when all of it is written."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.effects import Outcome, Patch, Unreachable
from tests.simulations import example
from tests.stories import Story, definition

KIND = "fnopexamples"
STRICT = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "x-kubernetes-preserve-unknown-fields": True,
}


@pytest.fixture
def registry() -> Registry:
    return Registry()


def told(story: Story, name: str) -> list[str]:
    """The lines about a handler's end, in order."""
    return [
        say.message
        for say in story.said
        if (say.handler == name and say.took is not None) or "refused" in say.message
    ]


def succeeded(story: Story, name: str) -> list[str]:
    return [line for line in story.lines if line.endswith(f"handler {name} succeeded")]


def patching(patch: Any, **_: Any) -> None:
    patch.status["count"] = "many"


def planning(**_: Any) -> fnop.Effect:
    return fnop.patch(status={"count": "many"})


def resulting(**_: Any) -> dict[str, Any]:
    return {"count": 1}


@pytest.mark.parametrize("handler", [patching, planning])
@pytest.mark.parametrize("declare", [fnop.on.create, fnop.timer])
def test_who_writes_what_is_refused_is_not_said_to_have_succeeded(
    registry: Registry, declare: Any, handler: Any
) -> None:
    retrying = {} if declare is fnop.timer else {"retries": 2}
    declare(KIND, registry=registry, id="writes", **retrying)(handler)
    story = Story(registry, [example(n=0)], crd=definition(status=STRICT))
    story.settle(seconds=50)
    assert any("refused" in line for line in story.said_at("error"))
    assert not succeeded(story, "writes")


def test_a_result_that_is_refused_is_no_success(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, id="count", retries=1)(resulting)
    story = Story(registry, [example(n=0)], crd=definition(status=STRICT))
    assert story.settle()
    assert any("refused" in line for line in story.said_at("error"))
    assert not succeeded(story, "count")


class Away:
    """The API server takes no change of the object for a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, story: Story, command: Perform) -> Outcome | None:
        if story.clock.elapsed < self.seconds and isinstance(command.effect, Patch):
            return Unreachable("503: not now")
        return None


@pytest.mark.parametrize("declare", [fnop.on.create, fnop.timer])
@pytest.mark.parametrize("storage", [fnop.AutoStorage(), fnop.AnnotationStorage()])
def test_a_success_is_told_once_and_when_it_is_written(
    registry: Registry, declare: Any, storage: Any
) -> None:
    def writes(patch: Any, **_: Any) -> dict[str, Any]:
        patch.status["seen"] = "yes"
        patch.metadata.labels["seen"] = "yes"
        return {"result": 1}

    declare(KIND, registry=registry, id="writes")(writes)
    settings = fnop.Settings(storage=storage)
    story = Story(registry, [example(n=0)], settings=settings)
    story.fate = Away(30)
    story.settle(seconds=20)
    assert not succeeded(story, "writes")
    assert story.settle()
    assert len(succeeded(story, "writes")) == 1


def test_who_writes_nothing_is_not_waited_for(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="quiet")
    def quiet(**_: Any) -> None: ...

    @fnop.on.create(KIND, registry=registry, id="writes")
    def writes(patch: Any, **_: Any) -> None:
        patch.status["seen"] = "yes"

    story = Story(registry, [example(n=0)])
    story.fate = Away(30)
    story.settle(seconds=20)
    assert len(succeeded(story, "quiet")) == 1
    assert not succeeded(story, "writes")
    assert story.settle()
    assert len(succeeded(story, "quiet")) == len(succeeded(story, "writes")) == 1


def test_the_guilty_one_fails_and_the_others_have_succeeded(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, id="guilty", retries=1)(patching)

    @fnop.on.create(KIND, registry=registry, id="innocent")
    def innocent(patch: Any, **_: Any) -> None:
        patch.status["seen"] = "yes"

    story = Story(registry, [example(n=0)], crd=definition(status=STRICT))
    assert story.settle()
    assert not succeeded(story, "guilty")
    assert len(succeeded(story, "innocent")) == 1
    found = story.get(KIND)
    assert found is not None
    assert found["status"]["seen"] == "yes"


def test_a_retry_that_is_taken_is_told(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="writes", backoff=1)
    def writes(retry: int, patch: Any, **_: Any) -> None:
        patch.status["count"] = retry if retry else "many"

    story = Story(registry, [example(n=0)], crd=definition(status=STRICT))
    assert story.settle()
    assert len(succeeded(story, "writes")) == 1
    assert "refused" in told(story, "writes")[0]
    assert told(story, "writes")[-1].endswith("succeeded")


@pytest.mark.parametrize("deletes_itself", [True, False])
def test_who_has_nowhere_left_to_write_to_has_succeeded(
    registry: Registry, deletes_itself: bool
) -> None:
    @fnop.on.create(KIND, registry=registry, id="writes")
    async def writes(name: str, patch: Any, **_: Any) -> None:
        patch.status["seen"] = "yes"
        if deletes_itself:
            await fnop.delete(KIND, name=name)
        await fnop.sleep(5)

    story = Story(registry, [example(n=0)])
    story.settle(seconds=2)
    if not deletes_itself:
        story.delete(KIND)
    story.settle(seconds=60)
    assert story.get(KIND) is None
    assert not story.said_at("error")


@pytest.mark.parametrize("outlives", [True, False])
def test_a_deletion_handler_that_writes_is_told_once(
    registry: Registry, outlives: bool
) -> None:
    @fnop.on.delete(KIND, registry=registry, id="tidies")
    def tidies(patch: Any, **_: Any) -> dict[str, Any]:
        patch.status["tidy"] = "yes"
        return {"result": 1}

    body = example(n=0)
    if outlives:
        body["metadata"]["finalizers"] = ["example.com/other"]
    story = Story(registry, [body])
    assert story.settle()
    story.delete(KIND)
    assert story.settle()
    assert len(succeeded(story, "tidies")) == 1
