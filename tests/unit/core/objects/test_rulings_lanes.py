"""Rulings on serial work, causes and changes during work, in the simulated cluster.

Each test is a story in virtual time; `test_r14_…` is about ruling R14.
"""

from collections.abc import Iterator
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.objects.attempt import attempts
from fnop.core.seam.inputs import Answered, StreamEnded
from fnop.effects import Answer
from tests.simulations import example
from tests.stories import Story, outside

KIND = "fnopexamples"
MAIN = "PATCH fnopexamples/example-1"
STATUS = "PATCH fnopexamples/example-1/status"


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


class Diary(list[Any]):
    """The handlers' arguments, in order: tests may read them, handlers may not."""

    def of(self, name: str) -> list[Any]:
        return [rest for each, *rest in self if each == name]

    @property
    def names(self) -> list[str]:
        return [each[0] for each in self]


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def diary() -> Diary:
    return Diary()


# ------------------------------------------------------------ R4: order of a plan


def test_r4_other_objects_in_plan_order_and_own_patches_in_the_last_write(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        return [
            fnop.patch(status={"a": 1}),
            fnop.create(config("one")),
            fnop.patch(labels={"b": "2"}),
            fnop.create(config("two")),
            fnop.patch(status={"c": 3}),
            fnop.delete("configmaps", name="one"),
        ]

    story = Story(registry, [example()])
    assert story.settle()
    assert story.sent == [
        "POST configmaps",
        "POST configmaps",
        "DELETE configmaps/one",
        MAIN,
        STATUS,
    ]
    assert [body["metadata"]["name"] for _, body in story.bodies[:2]] == ["one", "two"]
    assert story.bodies[3][1]["metadata"]["labels"] == {"b": "2"}
    assert story.status() == {"a": 1, "c": 3}


def test_r4_a_sleep_delays_what_follows_and_runs_nothing_again(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        diary.append(("create",))
        return [
            fnop.create(config("one")),
            fnop.sleep(10),
            fnop.create(config("two")),
            fnop.patch(status={"done": True}),
        ]

    story = Story(registry, [example()])
    story.settle(seconds=9)
    assert story.sent == ["POST configmaps"]
    story.settle(seconds=2)
    assert story.sent == ["POST configmaps", "POST configmaps", STATUS]
    assert story.sent_at == [0.0, 10.0, 10.0]
    assert story.settle()
    assert diary.names == ["create"]
    assert story.status() == {"done": True}


def test_r4_only_again_runs_a_handler_again(registry: Registry, diary: Diary) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(status: dict[str, Any], retry: int, **_: Any) -> Any:
        diary.append(("create", retry))
        if len(diary) < 3:
            return fnop.again(after=10)
        return fnop.patch(status={"ready": True})

    story = Story(registry, [example()])
    story.settle(seconds=9)
    assert len(diary) == 1
    assert story.settle()
    assert story.clock.elapsed == 20
    # R5: waiting is not a failure, so it does not count as an attempt.
    assert diary == [("create", 0), ("create", 0), ("create", 0)]
    assert story.sent == [STATUS]


def test_r4_an_awaited_own_patch_is_written_at_once(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> Any:
        await fnop.patch(status={"phase": "Working"})
        await fnop.sleep(10)
        return fnop.patch(status={"phase": "Ready"})

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert story.status() == {"phase": "Working"}
    assert story.settle()
    assert story.status() == {"phase": "Ready"}
    assert story.sent == [STATUS, STATUS]


def test_r4_a_refused_effect_fails_the_attempt_and_the_rest_is_not_done(
    registry: Registry,
) -> None:
    refused = config("refused") | {"data": {"no key of data": "1"}}

    @fnop.on.create(KIND, registry=registry, retries=1)
    def create(**_: Any) -> list[fnop.Effect]:
        return [
            fnop.create(config("one")),
            fnop.create(refused),
            fnop.create(config("two")),
            fnop.patch(status={"done": True}),
        ]

    story = Story(registry, [example()])
    assert story.settle()
    assert [each["metadata"]["name"] for each in story.objects("configmaps")] == ["one"]
    assert "done" not in story.status()
    assert story.machine.state.notes.failures == 1


# -------------------------------------------------------------- R14: a pass ends


def test_r14_what_succeeded_is_written_without_waiting_for_the_slowest(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="slow")
    async def slow(**_: Any) -> dict[str, Any]:
        diary.append(("slow",))
        await fnop.sleep(100)
        return {"done": True}

    @fnop.on.create(KIND, registry=registry, id="quick")
    def quick(**_: Any) -> dict[str, Any]:
        diary.append(("quick",))
        return {"done": True}

    story = Story(registry, [example()])
    story.settle(seconds=1)
    assert story.status() == {"quick": {"done": True}}
    assert story.sent == [STATUS]
    assert story.settle()
    assert story.status() == {"quick": {"done": True}, "slow": {"done": True}}
    assert story.sent == [STATUS, STATUS], "and each result only once"
    assert "quick" not in story.bodies[1][1]["status"]
    assert diary.names == ["slow", "quick"]


def test_r14_a_call_is_waited_for_by_nobody_else(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="slow")
    async def slow(**_: Any) -> Any:
        return {"answer": await fnop.call(outside)}

    @fnop.on.create(KIND, registry=registry, id="quick")
    def quick(**_: Any) -> dict[str, Any]:
        return {"done": True}

    story = Story(registry, [example()])
    story.late_calls = True
    story.settle(seconds=1)
    assert story.status() == {"quick": {"done": True}}
    assert story.answer_call(5).settle()
    assert story.status() == {"quick": {"done": True}, "slow": {"answer": 5}}


def test_r14_quick_requests_are_waited_for_so_that_the_write_is_one(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def asking(**_: Any) -> Any:
        found = await fnop.get("configmaps", name="one")
        return {"found": found is not None}

    @fnop.on.create(KIND, registry=registry)
    def quick(**_: Any) -> dict[str, Any]:
        return {"done": True}

    story = Story(registry, [example()])
    assert story.settle()
    assert story.sent == [STATUS]


def test_r14_a_failing_handler_does_not_hold_up_the_others(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def failing(retry: int, **_: Any) -> None:
        diary.append(("failing", retry))
        if retry < 2:
            raise fnop.TemporaryError("not yet", delay=10)

    @fnop.on.create(KIND, registry=registry, id="quick")
    def quick(**_: Any) -> dict[str, Any]:
        diary.append(("quick",))
        return {"done": True}

    story = Story(registry, [example()])
    story.settle(seconds=1)
    assert story.status() == {"quick": {"done": True}}
    assert story.settle()
    assert story.clock.elapsed == 20
    assert diary.names == ["failing", "quick", "failing", "failing"]


# ----------------------------------------------- R15: the object changes meanwhile


def test_r15_a_conversation_keeps_its_view_and_the_edit_arrives_as_an_update(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        view = await fnop.sleep(10)
        diary.append(("create", spec["size"], view.spec["size"]))
        return {"size": spec["size"]}

    @fnop.on.update(KIND, registry=registry, id="update")
    def update(old: Any, new: Any, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        diary.append(("update", old["spec"], new["spec"]))
        return {"size": spec["size"]}

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    story.edit(KIND, spec={"size": 2})
    assert story.settle()
    assert diary == [("create", 1, 2), ("update", {"size": 1}, {"size": 2})]
    assert story.status() == {"create": {"size": 1}, "update": {"size": 2}}
    story.crash()
    assert story.settle()
    assert len(diary) == 2, "and that is remembered"


def test_r15_edits_during_a_conversation_are_merged_into_one_update(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        await fnop.sleep(10)

    @fnop.on.update(KIND, registry=registry)
    def update(old: Any, new: Any, **_: Any) -> None:
        diary.append(("update", old["spec"]["size"], new["spec"]["size"]))

    story = Story(registry, [example(size=1)])
    for size in (2, 3, 4):
        story.settle(seconds=2)
        story.edit(KIND, spec={"size": size})
    assert story.settle()
    assert diary == [("update", 1, 4)]


def test_r15_an_update_that_converses_is_followed_by_the_next_one(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.update(KIND, registry=registry)
    async def update(old: Any, new: Any, **_: Any) -> None:
        await fnop.sleep(10)
        diary.append(("update", old["spec"]["size"], new["spec"]["size"]))

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.edit(KIND, spec={"size": 3}).settle()
    assert diary == [("update", 1, 2), ("update", 2, 3)]


def test_r15_an_edit_that_is_taken_back_is_no_update(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        await fnop.sleep(10)

    @fnop.on.update(KIND, registry=registry)
    def update(new: Any, **_: Any) -> None:
        diary.append(("update",))

    story = Story(registry, [example(size=1)])
    story.settle(seconds=2)
    story.edit(KIND, spec={"size": 2})
    story.settle(seconds=2)
    story.edit(KIND, spec={"size": 1})
    assert story.settle()
    assert diary == []


def test_r15_a_succeeded_creation_is_never_repeated_while_another_retries(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def done(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("done", spec["size"]))

    @fnop.on.create(KIND, registry=registry)
    def retrying(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("retrying", spec["size"]))
        if len(diary.of("retrying")) < 3:
            raise fnop.TemporaryError("not yet", delay=10)

    @fnop.on.update(KIND, registry=registry)
    def update(old: Any, new: Any, **_: Any) -> None:
        diary.append(("update", old["spec"]["size"], new["spec"]["size"]))

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    story.edit(KIND, spec={"size": 2})
    assert story.settle()
    assert diary.of("done") == [[1]]
    # A restarted handler gets the fresh view.
    assert diary.of("retrying")[0] == [1]
    assert diary.of("retrying")[-1] == [2]
    # What the succeeded one has not seen arrives as an update.
    assert diary.of("update") == [[1, 2]]
    assert diary.names[-1] == "update"


def test_r15_not_even_after_a_restart(registry: Registry, diary: Diary) -> None:
    @fnop.on.create(KIND, registry=registry)
    def done(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("done", spec["size"]))

    @fnop.on.create(KIND, registry=registry)
    def retrying(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("retrying", spec["size"]))
        if len(diary.of("retrying")) < 3:
            raise fnop.TemporaryError("not yet", delay=10)

    @fnop.on.update(KIND, registry=registry)
    def update(old: Any, new: Any, **_: Any) -> None:
        diary.append(("update", old["spec"]["size"], new["spec"]["size"]))

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    story.edit(KIND, spec={"size": 2})
    story.crash()
    assert story.settle()
    assert diary.of("done") == [[1]]
    assert diary.of("update") == [[1, 2]]


# ------------------------------------------------ R16: deletion during a conversation


def test_r16_a_deletion_cuts_sleeps_and_comes_after_the_conversation(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(logger: Any, **_: Any) -> None:
        try:
            await fnop.sleep(1000)
            await fnop.create(config("late"))
        except fnop.Cancelled:
            diary.append(("cancelled",))
            logger.info("tidied up")
            raise

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        diary.append(("delete",))

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert story.sent == [MAIN]
    story.delete(KIND)
    assert story.settle()
    assert story.clock.elapsed == 5
    assert diary.names == ["cancelled", "delete"]
    assert "tidied up" in story.lines
    assert story.sent == [MAIN, MAIN], "the finalizer, and nothing but it"
    assert story.bodies[-1][1]["metadata"]["finalizers"] in ([], None)
    assert story.get(KIND) is None
    assert story.objects("configmaps") == []


def test_r16_a_cancellation_need_not_be_caught(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> Iterator[fnop.Effect]:
        try:
            yield fnop.sleep(1000)
        finally:
            diary.append(("finally",))

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        diary.append(("delete",))

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert story.delete(KIND).settle()
    assert diary.names == ["finally", "delete"]
    assert story.get(KIND) is None


def test_r16_an_effect_in_finally_is_refused_with_the_remedy(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        try:
            await fnop.sleep(1000)
        finally:
            await fnop.create(config("late"))

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert story.delete(KIND).settle()
    assert story.objects("configmaps") == []
    assert any("clean up in an on.delete handler" in line for line in story.lines)
    assert story.get(KIND) is None


def test_r16_the_rest_of_a_plan_is_not_done(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        return [fnop.sleep(1000), fnop.create(config("late")), fnop.patch(labels={})]

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert story.delete(KIND).settle()
    assert story.objects("configmaps") == []


@pytest.mark.parametrize(("answered_after", "begins_at"), [(20.0, 25.0), (None, 65.0)])
def test_r16_outstanding_calls_are_waited_for_up_to_a_deadline(
    registry: Registry, diary: Diary, answered_after: float | None, begins_at: float
) -> None:
    story: Story

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        try:
            await fnop.call(outside)
        finally:
            diary.append(("create", story.clock.elapsed))

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        diary.append(("delete", story.clock.elapsed))

    story = Story(registry, [example()])
    story.late_calls = True
    story.settle(seconds=5)
    story.delete(KIND)
    if answered_after is not None:
        story.settle(seconds=answered_after)
        assert diary.names == ["create"]
        story.answer_call()
    story.settle(seconds=120)
    assert diary == [("create", 5.0), ("delete", begins_at)]
    assert story.get(KIND) is None


def test_r16_a_deletion_while_a_handler_retries(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None:
        diary.append(("create",))
        raise fnop.TemporaryError("not yet", delay=100)

    @fnop.on.delete(KIND, registry=registry)
    def delete(retry: int, **_: Any) -> None:
        diary.append(("delete", retry))

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert story.delete(KIND).settle()
    assert story.clock.elapsed == 5
    assert diary == [("create",), ("delete", 0)]
    assert story.get(KIND) is None


def test_r16_an_object_that_vanishes_ends_its_conversation(
    registry: Registry, diary: Diary
) -> None:
    """No finalizer holds it: it is gone at once."""

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        try:
            await fnop.sleep(1000)
        except fnop.Cancelled:
            diary.append(("cancelled",))
            raise

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert story.delete(KIND).settle()
    assert story.clock.elapsed == 5
    assert diary.names == ["cancelled"]
    assert story.sent == []
    assert not story.machine.state.objects.records


def test_r16_its_namesake_is_another_object(registry: Registry, diary: Diary) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        diary.append(("create", spec["size"]))
        try:
            await fnop.sleep(10)
        except fnop.Cancelled:
            diary.append(("cancelled", spec["size"]))
            raise
        return {"size": spec["size"]}

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    story.late_events = True
    story.delete(KIND)
    story.apply(example(size=2))
    story.let_events_through()
    assert story.settle()
    assert story.clock.elapsed == 15
    assert diary == [("create", 1), ("cancelled", 1), ("create", 2)]
    assert story.status() == {"create": {"size": 2}}


# ----------------------------------------------------- R17: own changes are changes


def test_r17_an_own_change_of_spec_or_labels_is_seen_by_on_update(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.patch(spec={"size": 5}, labels={"sized": "yes"})

    @fnop.on.update(KIND, registry=registry)
    def update(diff: Any, **_: Any) -> None:
        diary.append(("update", sorted(".".join(item.field) for item in diff)))

    story = Story(registry, [example(size=1)])
    assert story.settle()
    assert diary == [("update", ["metadata", "spec.size"])]


def test_r17_an_own_change_of_status_is_none(registry: Registry, diary: Diary) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.patch(status={"a": 1}, annotations={"fnop.dev/note": "x"})

    @fnop.on.update(KIND, registry=registry)
    def update(diff: Any, **_: Any) -> None:
        diary.append(("update", diff))

    story = Story(registry, [example(size=1)])
    assert story.settle()
    assert diary == []


# --------------------------------- progress is bound to what it is for (E1 … E65)


def test_e1_a_change_reaches_handlers_that_had_finished_with_the_one_before(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.update(KIND, registry=registry)
    def done(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("done", spec["size"]))

    @fnop.on.update(KIND, registry=registry)
    def retrying(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("retrying", spec["size"]))
        if len(diary.of("retrying")) < 3:
            raise fnop.TemporaryError("not yet", delay=10)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.edit(KIND, spec={"size": 3}).settle()
    assert diary.of("done") == [[2], [3]]
    assert diary.of("retrying")[-1] == [3]


def test_e1_the_same_across_a_restart(registry: Registry, diary: Diary) -> None:
    @fnop.on.update(KIND, registry=registry)
    def done(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("done", spec["size"]))

    @fnop.on.update(KIND, registry=registry)
    def retrying(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("retrying", spec["size"]))
        if len(diary.of("retrying")) < 3:
            raise fnop.TemporaryError("not yet", delay=10)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.crash()
    story.settle(seconds=1)
    assert diary.of("done") == [[2]], "it is done for this change"
    story.edit(KIND, spec={"size": 3}).settle()
    assert diary.of("done") == [[2], [3]]


@pytest.mark.parametrize("delay", [50, 500], ids=["unstored", "stored"])
@pytest.mark.parametrize("again", [2, 3], ids=["the same value", "another value"])
@pytest.mark.parametrize("restarts", [False, True], ids=["", "restart"])
def test_e2_a_reverted_change_leaves_neither_success_nor_counters_nor_delays(
    registry: Registry, diary: Diary, delay: float, again: int, restarts: bool
) -> None:
    @fnop.on.update(KIND, registry=registry)
    def done(spec: dict[str, Any], **_: Any) -> None:
        diary.append(("done", spec["size"]))

    @fnop.on.update(KIND, registry=registry, retries=2)
    def retrying(spec: dict[str, Any], retry: int, **_: Any) -> None:
        diary.append(("retrying", spec["size"], retry))
        raise fnop.TemporaryError("not yet", delay=delay)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.edit(KIND, spec={"size": 1}).settle(seconds=5)
    if restarts:
        story.crash()
        story.settle(seconds=1)
    # A successful handler is called about the reversal; one without a success has
    # nothing to undo.
    assert diary == [("done", 2), ("retrying", 2, 0), ("done", 1)]
    story.edit(KIND, spec={"size": again}).settle(seconds=5)
    assert diary[3:] == [("done", again), ("retrying", again, 0)]


def test_e2_a_single_handler_begins_anew_too(registry: Registry, diary: Diary) -> None:
    """Nothing was stored for it: what is in memory must be dropped as well."""

    @fnop.on.update(KIND, registry=registry)
    def retrying(spec: dict[str, Any], retry: int, **_: Any) -> None:
        diary.append(("retrying", spec["size"], retry))
        raise fnop.TemporaryError("not yet", delay=50)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.edit(KIND, spec={"size": 1}).settle(seconds=5)
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    assert diary == [("retrying", 2, 0), ("retrying", 2, 0)]


def test_e36a_the_success_of_an_update_is_no_success_of_a_deletion(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.update(KIND, registry=registry)
    @fnop.on.delete(KIND, registry=registry)
    def both(reason: str, **_: Any) -> None:
        diary.append(("both", str(getattr(reason, "value", reason))))

    @fnop.on.update(KIND, registry=registry)
    def retrying(**_: Any) -> None:
        raise fnop.TemporaryError("not yet", delay=1000)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.delete(KIND).settle(seconds=5)
    assert diary == [("both", "update"), ("both", "delete")]
    assert story.get(KIND) is None


def test_e36b_the_success_of_a_resumption_is_no_success_of_an_update(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.resume(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    def both(reason: str, spec: dict[str, Any], **_: Any) -> None:
        word = str(getattr(reason, "value", reason))
        diary.append(("both", word, spec["size"]))

    @fnop.on.resume(KIND, registry=registry)
    def retrying(**_: Any) -> None:
        diary.append(("retrying",))
        if len(diary.of("retrying")) < 3:
            raise fnop.TemporaryError("not yet", delay=10)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.crash()
    story.settle(seconds=5)
    assert diary.of("both") == [["resume", 1]]
    story.edit(KIND, spec={"size": 2}).settle()
    assert diary.of("both") == [["resume", 1], ["update", 2]]
    assert len(diary.of("retrying")) == 3, "and it is still brought to its end"


def test_r13_a_waiting_call_holds_no_slot(registry: Registry, diary: Diary) -> None:
    """One slot, one object that waits for a call: the other one is served."""

    @fnop.on.create(KIND, registry=registry, timeout=10, labels={"turn": "second"})
    def limited(runtime: Any, **_: Any) -> None:
        diary.append(("limited", runtime.total_seconds()))

    @fnop.on.create(KIND, registry=registry, labels={"turn": "first"})
    async def slow(**_: Any) -> None:
        await fnop.call(outside)

    story = Story(registry, settings=Settings(request_concurrency=1))
    story.late_calls = True
    for turn in ("first", "second"):
        manifest = example(turn)
        manifest["metadata"]["labels"] = {"turn": turn}
        story.apply(manifest)
    story.settle(seconds=100)
    assert diary == [("limited", 0.0)]
    story.answer_call()
    assert story.settle()
    assert diary == [("limited", 0.0)]


def test_e65_a_timeout_counts_from_the_first_attempt(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, timeout=25)
    def limited(runtime: Any, **_: Any) -> None:
        diary.append(("limited", runtime.total_seconds()))
        raise fnop.TemporaryError("not yet", delay=10)

    story = Story(registry, [example()])
    assert story.settle()
    assert [seconds for _, seconds in diary] == [0.0, 10.0, 20.0]
    assert story.clock.elapsed == 25, "it ends at its deadline, and not before"


def test_a_timeout_stops_a_conversation_that_waits(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, timeout=25)
    async def limited(**_: Any) -> None:
        diary.append(("begins",))
        try:
            await fnop.sleep(1000)
        finally:
            diary.append(("ends",))

    story = Story(registry, [example()])
    assert story.settle()
    assert story.clock.elapsed == 25
    assert diary.names == ["begins", "ends"]
    assert story.machine.state.notes.failures == 1


# ----------------------------------------------------------------- R13: lanes


def test_r13_one_attempt_of_a_handler_and_object_at_a_time(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    async def both(name: str, spec: dict[str, Any], **_: Any) -> None:
        diary.append((name, "begins", spec["size"]))
        await fnop.sleep(10)
        diary.append((name, "ends", spec["size"]))

    story = Story(registry, [example("one", size=1), example("two", size=1)])
    story.settle(seconds=5)
    story.edit(KIND, "one", spec={"size": 2})
    assert story.settle()
    assert diary.of("one") == [["begins", 1], ["ends", 1], ["begins", 2], ["ends", 2]]
    assert diary.of("two") == [["begins", 1], ["ends", 1]]
    assert story.clock.elapsed == 20, "objects do not wait for each other"


def test_r13_waiting_conversations_hold_no_slots(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> dict[str, Any]:
        await fnop.sleep(10)
        return {"done": True}

    names = [f"example-{number}" for number in range(5)]
    story = Story(
        registry, map(example, names), settings=Settings(request_concurrency=1)
    )
    assert story.settle()
    assert story.clock.elapsed == 10
    assert all(story.status(name) for name in names)


# ------------------------------------------- what a gap in the watch has swallowed


def test_r31_a_deletion_that_nobody_watched_is_noticed_by_the_next_listing(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(name: str, **_: Any) -> None:
        try:
            await fnop.sleep(1000)
        except fnop.Cancelled:
            diary.append(("cancelled", name))
            raise

    @fnop.on.event(KIND, registry=registry, id="spy")
    def spy(type: str | None, name: str, **_: Any) -> None:
        diary.append((str(type), name))

    story = Story(registry, [example("one"), example("two")])
    story.settle(seconds=5)
    story.late_events = True
    story.delete(KIND, "one")
    story.lose_events()
    story.settle(seconds=5)
    assert diary.of("cancelled") == []
    (stream,) = story.streams.values()
    story.feed(StreamEnded(stream, "refused", 410, "too old"))
    story.settle(seconds=5)
    assert diary.of("cancelled") == [["one"]]
    assert diary.of("DELETED") == [["one"]]
    assert [key.name for key in story.machine.state.objects.records] == ["two"]


def test_r31_changes_that_nobody_watched_are_handled_after_the_next_listing(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.update(KIND, registry=registry, id="update")
    def update(old: Any, new: Any, **_: Any) -> None:
        diary.append(("update", old["spec"]["size"], new["spec"]["size"]))

    @fnop.on.delete(KIND, registry=registry, id="delete")
    def delete(**_: Any) -> None:
        diary.append(("delete",))

    story = Story(registry, [example(size=1)])
    story.settle()
    story.late_events = True
    story.edit(KIND, spec={"size": 2}).edit(KIND, spec={"size": 3})
    story.lose_events()
    (stream,) = story.streams.values()
    story.feed(StreamEnded(stream, "undecodable"))
    story.settle(seconds=60)
    assert diary == [("update", 1, 3)]
    story.delete(KIND)
    story.lose_events()
    (stream,) = story.streams.values()
    story.feed(StreamEnded(stream, "refused", 410, "too old"))
    story.settle(seconds=60)
    assert diary == [("update", 1, 3), ("delete",)]
    assert story.get(KIND) is None


def test_r31_a_namesake_made_in_the_gap_is_another_object(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        diary.append(("create", spec["size"]))
        try:
            await fnop.sleep(100)
        finally:
            diary.append(("ends", spec["size"]))
        return {"size": spec["size"]}

    @fnop.on.event(KIND, registry=registry, id="spy")
    def spy(type: str | None, spec: dict[str, Any], **_: Any) -> None:
        if type == "DELETED":
            diary.append(("deleted", spec["size"]))

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    story.late_events = True
    story.delete(KIND).apply(example(size=2))
    story.lose_events()
    (stream,) = story.streams.values()
    story.feed(StreamEnded(stream, "refused", 410, "too old"))
    story.settle(seconds=20)
    assert diary.of("create") == [[1], [2]]
    assert diary.of("deleted") == [[1]], "that it went is seen, though nobody watched"
    assert diary.of("ends") == [[1]], "what was about it is over"
    story.let_events_through()
    assert story.settle()
    assert diary.of("ends") == [[1], [2]]
    assert story.status() == {"create": {"size": 2}}


# ---------------------------------------------------- R12: journals live in memory


def test_r12_a_conversation_that_grows_without_end_begins_anew(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "JOURNAL_ENTRIES_MAX", 10)

    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(**_: Any) -> None:
        while True:
            await fnop.get("configmaps", name="none")

    story = Story(registry, [example()])
    story.settle(seconds=2.5)
    ends = [line for line in story.lines if "too long to be remembered" in line]
    assert len(ends) == 3
    assert len(story.read_paths) in range(30, 37), "three times ten, or eleven"
    assert story.machine.state.notes.failures == 0


def test_r12_after_a_crash_a_handler_begins_at_its_start(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(**_: Any) -> None:
        diary.append(("begins",))
        await fnop.sleep(10)
        diary.append(("ends",))

    story = Story(registry, [example()])
    story.settle(seconds=5)
    story.crash()
    assert story.settle()
    assert diary.names == ["begins", "begins", "ends"]
    assert story.clock.elapsed == 15


def test_late_answers_of_nobody_s_are_ignored(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> dict[str, Any]:
        return {"done": True}

    story = Story(registry, [example()])
    story.settle()
    before = len(story.requests)
    story.feed(Answered(999, Answer(1)), Answered(2, Answer(1)))
    assert story.settle()
    assert len(story.requests) == before
