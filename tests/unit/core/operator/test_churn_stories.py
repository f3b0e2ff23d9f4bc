"""Findings of `make churn`, as stories in the simulated cluster."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.core.seam.inputs import StreamEnded
from fnop.effects import Outcome, Patch, Unreachable
from tests.simulations import example
from tests.stories import Story

KIND = "fnopexamples"
STREAM = "fnopexamples.v1.fnop.dev"


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_field_that_is_handled_is_not_handled_again_at_the_end(
    registry: Registry, restarted: bool
) -> None:
    """Another handler of the same update was still at work when the end came."""
    diary: list[str] = []

    @fnop.on.field(KIND, field="spec.other", registry=registry)
    def field(new: Any, **_: Any) -> None:
        diary.append(f"field {new}")

    @fnop.on.update(KIND, registry=registry)
    def update(**_: Any) -> None:
        diary.append("update")
        raise fnop.TemporaryError("not yet", delay=100)

    @fnop.on.delete(KIND, registry=registry)
    def delete(retry: int, **_: Any) -> None:
        diary.append("delete")
        if not retry:
            raise fnop.TemporaryError("not yet", delay=200)

    story = Story(registry, [example(other=1)])
    story.settle(seconds=5)
    story.edit(KIND, spec={"other": 2})
    story.settle(seconds=5)
    assert diary == ["field 1", "field 2", "update"]
    story.delete(KIND)
    story.settle(seconds=5)
    if restarted:
        story.crash()
    story.settle(seconds=300)
    assert story.get(KIND) is None
    assert [each for each in diary if each.startswith("field")] == [
        "field 1",
        "field 2",
    ]
    assert diary.count("delete") >= 2


def test_a_listing_from_before_the_end_ends_nothing_again(registry: Registry) -> None:
    """The answer that ends the last finalizer has the version from before."""
    ends: list[str] = []

    @fnop.on.delete(KIND, registry=registry)
    def delete(name: str, **_: Any) -> None:
        ends.append(name)

    story = Story(registry, [example()])
    story.settle(seconds=5)
    away = True

    def unreachable(story: Story, command: Perform) -> Outcome | None:
        is_patch = isinstance(command.effect, Patch)
        return Unreachable("the API server is away") if away and is_patch else None

    story.fate = unreachable
    story.delete(KIND)
    story.settle(seconds=1)
    assert ends == ["example-1"]
    # It is listed again while it waits for its end, and that takes a while.
    story.late_events = story.late_lists = True
    story.feed(StreamEnded(story.streams[STREAM], "refused", 410, "too old"))
    story.settle(seconds=1)
    assert story.lists
    away = False
    story.settle(seconds=60)
    assert story.get(KIND) is None
    story.let_lists_through()
    story.settle(seconds=5)
    story.let_events_through()
    story.settle(seconds=60)
    assert ends == ["example-1"]
    assert not story.machine.state.objects.records


@pytest.mark.parametrize("field", [False, True])
def test_a_kill_before_the_finalizer_s_removal_repeats_no_success(
    registry: Registry, field: bool
) -> None:
    """The handlers' patch and the finalizer's removal are two writes."""
    diary: list[str] = []

    if field:

        @fnop.on.field(KIND, field="spec.other", registry=registry)
        def observed(new: Any, **_: Any) -> list[fnop.Effect]:
            diary.append(f"field {new}")
            return [fnop.patch(metadata={"annotations": {"example.com/a": str(new)}})]

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> list[fnop.Effect]:
        diary.append("delete")
        return [fnop.patch(metadata={"labels": {"ends": "true"}})]

    story = Story(registry, [example(other=1)])
    story.settle(seconds=5)
    held = True

    def refused(story: Story, command: Perform) -> Outcome | None:
        effect = command.effect
        patched = effect.merge if isinstance(effect, Patch) else None
        removes = "finalizers" in (patched or {}).get("metadata", {})
        return Unreachable("the API server is away") if held and removes else None

    story.fate = refused
    story.edit(KIND, spec={"other": 2}).delete(KIND)
    story.settle(seconds=5)
    assert "delete" in diary
    story.crash()
    held = False
    story.settle(seconds=300)
    assert story.get(KIND) is None
    assert diary.count("delete") == 1
    assert len(diary) == len(set(diary))
