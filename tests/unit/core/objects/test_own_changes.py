"""Handlers that change their own object: retries hold, and loops are slowed down."""

from itertools import pairwise
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Command, Perform
from fnop.core.seam.inputs import Answered
from fnop.core.values.pace import LOOP_CHANGES
from tests.example_scenarios import MARKER
from tests.simulations import example
from tests.stories import Story

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


class LateAnswers(Story):
    """The watch shows each write before its answer is there."""

    def perform(self, command: Command) -> None:
        super().perform(command)
        early = [each for each in self.inbox if not isinstance(each.input, Answered)]
        late = [each for each in self.inbox if isinstance(each.input, Answered)]
        self.inbox.clear()
        self.inbox.extend([*early, *late])


class Attempts:
    """A handler that changes its object at each attempt, and fails."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.at: list[float] = []
        self.retries: list[int] = []
        self.story: Story | None = None

    async def handle(self, retry: int, patch: Any, **_: Any) -> None:
        assert self.story is not None
        self.at.append(self.story.clock.elapsed)
        self.retries.append(retry)
        labels = {"attempt": str(len(self.at))}
        if self.way == "writer":
            patch.metadata.labels.update(labels)
        else:
            await fnop.patch(metadata={"labels": labels})
        raise fnop.TemporaryError("not yet", delay=5)

    @property
    def pauses(self) -> list[float]:
        return [round(later - earlier) for earlier, later in pairwise(self.at)]


@pytest.mark.parametrize("world", [Story, LateAnswers])
@pytest.mark.parametrize("way", ["writer", "awaited"])
@pytest.mark.parametrize("event", ["create", "update", "field"])
def test_a_failing_handler_that_changes_its_object_is_retried_as_it_says(
    registry: Registry, world: type[Story], way: str, event: str
) -> None:
    attempts = Attempts(way)
    match event:
        case "create":
            fnop.on.create(KIND, registry=registry, retries=4)(attempts.handle)
        case "update":
            fnop.on.update(KIND, registry=registry, retries=4)(attempts.handle)
        case _:
            field = "metadata.labels"
            fnop.on.field(KIND, field=field, registry=registry, retries=4)(
                attempts.handle
            )
    attempts.story = world(registry, [example(n=0)])
    assert attempts.story.settle()
    if event != "create":
        attempts.story.edit(KIND, spec={"n": 1}, metadata={"labels": {"a": "b"}})
        assert attempts.story.settle()
    assert attempts.retries == [0, 1, 2, 3]
    assert attempts.pauses == [5, 5, 5]


def test_its_retries_outlive_a_restart(registry: Registry) -> None:
    attempts = Attempts("writer")
    fnop.on.update(KIND, registry=registry, retries=4)(attempts.handle)
    attempts.story = story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1})
    story.settle(seconds=7)
    story.crash()
    assert story.settle()
    assert attempts.retries == [0, 1, 2, 3]


def test_what_somebody_else_changes_meanwhile_is_handled_at_once(
    registry: Registry,
) -> None:
    attempts = Attempts("writer")
    fnop.on.update(KIND, registry=registry, retries=4)(attempts.handle)
    attempts.story = story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1})
    story.settle(seconds=7)
    story.edit(KIND, spec={"n": 2})
    assert story.settle()
    assert attempts.retries == [0, 1, 0, 1, 2, 3]


def counting(registry: Registry) -> list[int]:
    """An update handler that counts its calls on the object itself."""
    calls: list[int] = []

    @fnop.on.update(KIND, registry=registry, id="count")
    def count(patch: Any, **_: Any) -> None:
        calls.append(1)
        patch.metadata.annotations["count"] = str(len(calls))

    return calls


def test_a_loop_of_a_handler_with_itself_is_told_once_and_slowed_down(
    registry: Registry,
) -> None:
    calls = counting(registry)
    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1})
    story.settle(seconds=1000)
    assert LOOP_CHANGES < len(calls) < LOOP_CHANGES + 25
    (line,) = story.said_at("warning")
    assert "count changes /metadata/annotations/count whenever it is" in line
    before = len(calls)
    story.edit(KIND, spec={"n": 2})  # what others change is handled at once
    story.settle(seconds=1)
    assert len(calls) >= before + LOOP_CHANGES
    assert len(story.said_at("warning")) == 1
    story.delete(KIND)
    assert story.settle()
    assert story.get(KIND) is None


def test_two_objects_that_change_each_other_are_slowed_down(registry: Registry) -> None:
    calls: list[str] = []

    @fnop.on.update(KIND, registry=registry)
    def count(name: str, **_: Any) -> fnop.Effect:
        calls.append(name)
        other = "b" if name == "a" else "a"
        annotations = {"count": str(len(calls))}
        return fnop.patch(
            fnop.target(KIND, name=other), metadata={"annotations": annotations}
        )

    story = Story(registry, [example("a", n=0), example("b", n=0)])
    assert story.settle()
    story.edit(KIND, "a", spec={"n": 1})
    story.settle(seconds=1000)
    assert len(calls) < 2 * LOOP_CHANGES + 60
    assert any("count changes /metadata" in each for each in story.said_at("warning"))


def test_a_spy_that_writes_what_it_looks_at_is_slowed_down(registry: Registry) -> None:
    calls: list[int] = []

    @fnop.on.event(KIND, registry=registry, id="spy")
    def spy(patch: Any, **_: Any) -> None:
        calls.append(1)
        patch.status["count"] = len(calls)

    story = Story(registry, [example(n=0)])
    story.settle(seconds=1000)
    assert LOOP_CHANGES < len(calls) < LOOP_CHANGES + 25
    (line,) = story.said_at("warning")
    assert line.startswith("spy changes /status/count whenever it is called, and is ")
    assert "let it write only what differs; a handler of events is called for" in line
    assert "ignored_fields" not in line


def looped(registry: Registry, *edits: dict[str, Any]) -> list[str]:
    """The operator's log lines about loops, when an object is changed."""
    story = Story(registry, [example(n=0)])
    story.settle(seconds=30)
    for spec in edits or ({"n": 1},):
        story.edit(KIND, spec=spec)
        story.settle(seconds=300)
    return [each for each in story.said_at("warning") if "in a row" in each]


def test_a_handler_of_a_field_is_not_told_to_ignore_it(registry: Registry) -> None:
    @fnop.on.field(KIND, field="spec.n", registry=registry, id="count")
    def count(new: Any, patch: Any, **_: Any) -> None:
        patch.spec["n"] = (new or 0) + 1

    (line,) = looped(registry)
    assert "count/spec.n changes /spec/n whenever it is called, and is " in line
    assert line.endswith("let it write only what differs")


def test_two_that_follow_each_other_are_told_in_good_english(
    registry: Registry,
) -> None:
    @fnop.on.field(KIND, field="spec.n", registry=registry, id="one")
    def one(new: Any, patch: Any, **_: Any) -> None:
        patch.spec["m"] = new

    @fnop.on.field(KIND, field="spec.m", registry=registry, id="two")
    def two(new: Any, patch: Any, **_: Any) -> None:
        patch.spec["n"] = (new or 0) + 1

    (line,) = looped(registry)
    assert line.startswith(
        "one/spec.n and two/spec.m change /spec/m, /spec/n whenever they are called, "
        "and are called for that: "
    )
    assert line.endswith("let them write only what differs")


def test_who_writes_beside_a_loop_is_not_blamed(registry: Registry) -> None:
    counting(registry)

    @fnop.on.update(KIND, registry=registry)
    def seen(meta: Any, patch: Any, **_: Any) -> None:
        patch.status["seen"] = meta.get("generation")

    @fnop.on.update(KIND, registry=registry)
    def once(patch: Any, **_: Any) -> None:
        patch.spec["seen"] = True

    (line,) = looped(registry)
    assert line.startswith("count changes /metadata/annotations/count whenever it is")
    assert line.endswith("or name the field in ignored_fields=")


def test_a_chain_that_ends_is_no_loop(registry: Registry) -> None:
    def link(number: int) -> None:
        @fnop.on.field(
            KIND, field=f"spec.f{number}", registry=registry, id=f"l{number}"
        )
        def follow(new: Any, patch: Any, **_: Any) -> None:
            if new is not None:
                patch.spec[f"f{number + 1}"] = new

    for number in range(LOOP_CHANGES + 5):
        link(number)
    assert looped(registry, {"f0": 1}) == []


def test_a_conversation_that_writes_much_is_no_loop(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def build(**_: Any) -> None:
        for number in range(3 * LOOP_CHANGES):
            await fnop.patch(spec={"step": number})

    @fnop.on.update(KIND, registry=registry)
    def look(**_: Any) -> None:
        """Is called for what the other one writes, and writes nothing."""

    assert looped(registry) == []


def test_a_timer_is_not_called_for_what_it_changes(registry: Registry) -> None:
    @fnop.timer(KIND, interval=1, registry=registry, id="tick")
    def tick(spec: Any, patch: Any, **_: Any) -> None:
        patch.spec["n"] = spec["n"] + 1

    @fnop.on.update(KIND, registry=registry)
    def look(**_: Any) -> None:
        """Is called for what the timer writes."""

    (line,) = looped(registry)
    assert line.startswith(
        "tick changes /spec/n again and again, and others are called for that: "
    )


class Rival(Story):
    """Another operator of the same name, with other handlers: it undoes each write."""

    present = True

    def perform(self, command: Command) -> None:
        super().perform(command)
        if self.present and isinstance(command, Perform):
            merge = getattr(command.effect, "merge", None) or {}
            finalizers = merge.get("metadata", {}).get("finalizers")
            if finalizers is not None:
                undone: list[str] = [] if finalizers else [MARKER]
                self.edit(KIND, metadata={"finalizers": undone})


@pytest.mark.parametrize("handles_deletions", [True, False])
def test_two_operators_of_one_name_do_not_undo_each_other_without_end(
    handles_deletions: bool, registry: Registry
) -> None:
    """One of them handles deletions, as during a rollout that brings or takes that."""
    updates: list[int] = []

    @fnop.on.update(KIND, registry=registry)
    def update(spec: Any, **_: Any) -> None:
        updates.append(spec["n"])

    if handles_deletions:

        @fnop.on.delete(KIND, registry=registry)
        def end(**_: Any) -> None: ...

    story = Rival(registry, [example(n=0)])
    if not handles_deletions:
        story.edit(KIND, metadata={"finalizers": [MARKER]})
    began = len(story.sent_at)
    story.wait(1000)
    assert LOOP_CHANGES < len(story.sent_at) - began < LOOP_CHANGES + 30
    (line,) = story.said_at("warning")
    assert f"undone this operator's change of the finalizer {MARKER}" in line
    if not handles_deletions:  # nothing has to be held for it
        story.edit(KIND, spec={"n": 1})
        story.wait(61)
        assert updates == [1]
    story.present = False
    story.wait(61)
    found = story.get(KIND)
    assert found is not None
    assert found["metadata"].get("finalizers", []) == [MARKER] * handles_deletions
    story.delete(KIND)
    assert story.settle()
    assert story.get(KIND) is None


def test_who_ends_what_it_begins_is_no_loop(registry: Registry) -> None:
    calls: list[int] = []

    @fnop.on.update(KIND, registry=registry)
    def up_to_eight(spec: Any, patch: Any, **_: Any) -> None:
        calls.append(spec["n"])
        if spec["n"] < 8:
            patch.spec["n"] = spec["n"] + 1

    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1})
    assert story.settle()
    assert calls == [1, 2, 3, 4, 5, 6, 7, 8]
    assert story.said_at("warning") == []
    assert story.clock.elapsed < 100


@pytest.mark.parametrize("way", ["by its name", "by apply"])
def test_its_own_object_may_be_named_as_any_other(registry: Registry, way: str) -> None:
    attempts: list[int] = []

    @fnop.on.create(KIND, registry=registry, retries=4, backoff=5)
    async def create(name: str, body: Any, retry: int, **_: Any) -> None:
        attempts.append(retry)
        labels = {"attempt": str(len(attempts))}
        if way == "by its name":
            target = fnop.target(KIND, name=name)
            await fnop.patch(target, metadata={"labels": labels})
        else:
            meta = {"name": name, "labels": labels}
            own = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
            await fnop.apply({**own, "metadata": meta}, force=True)
        raise ValueError("not yet")

    story = Story(registry, [example(n=0)])
    assert story.settle()
    assert attempts == [0, 1, 2, 3]


def test_what_others_of_the_operator_write_leaves_retries_alone(
    registry: Registry,
) -> None:
    """Two that fail and write, and a timer that does: each keeps to its retries."""
    attempts: dict[str, list[int]] = {"one": [], "two": []}

    def failing(name: str) -> Any:
        def handle(patch: Any, retry: int, **_: Any) -> None:
            attempts[name].append(retry)
            patch.metadata.labels[name] = str(len(attempts[name]))
            raise ValueError("not yet")

        return handle

    for name in attempts:
        decorate = fnop.on.update(
            KIND, registry=registry, id=name, retries=3, backoff=9
        )
        decorate(failing(name))

    @fnop.timer(KIND, registry=registry, interval=4)
    async def beat(now: Any, **_: Any) -> None:
        await fnop.patch(metadata={"labels": {"beat": now.strftime("%H-%M-%S")}})

    story = Story(registry, [example(n=0)])
    story.wait(3)
    story.edit(KIND, spec={"n": 1})
    story.wait(30)
    assert attempts["one"][:3] == [0, 1, 2]
    assert attempts["two"][:3] == [0, 1, 2]


@pytest.mark.parametrize("own", [True, False])
def test_a_failure_for_good_stays_told(registry: Registry, own: bool) -> None:
    @fnop.on.update(KIND, registry=registry)
    def update(patch: Any, **_: Any) -> None:
        if own:
            patch.spec["tried"] = True
        raise fnop.PermanentError("never")

    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1})
    assert story.settle()
    found = story.get(KIND)
    assert found is not None
    (condition,) = found["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "UpdateFailed")
