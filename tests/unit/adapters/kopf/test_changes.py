"""Changes that come while handlers are unfinished: they belong to one handling.

Kopf 1.45 detects a change against the last-handled configuration, which it writes when
all handlers have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fnop
from fnop import kopf
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.declaring.settings import PersistenceSettings
from fnop.adapters.kopf.running.states import KopfStates
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.storage import FormattedStorage
from fnop.core.peers.peers import Member, record_of
from fnop.core.seam.commands import Command, Interrupt
from fnop.core.state.lifecycle import Phase
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.peerings import PEERING_OBJECT, peering_definition
from tests.stories import Story
from tests.unit.adapters.kopf.simulated import KIND, Simulated, example, simulated

Diary = list[Any]


def edit(run: Simulated, **change: Any) -> Simulated:
    """Patch the object as a user; the operator has not reacted yet."""
    path = run.path("example-1")
    found = run.sim.request(ApiRequest("PATCH", path, (), change, MERGE_PATCH))
    assert found.status == 200, found
    return run


def test_an_edit_of_an_unfinished_creation_is_a_part_of_it(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="slow", registry=registry)
    def slow(retry: int, spec: kopf.Spec, **_: Any) -> None:
        diary.append(("slow", retry, spec.get("size")))
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=100)

    @kopf.on.create(KIND, id="quick", registry=registry)
    def quick(spec: kopf.Spec, **_: Any) -> None:
        diary.append(("quick", spec.get("size")))

    @kopf.on.update(KIND, id="updated", registry=registry)
    def updated(**_: Any) -> None:
        diary.append("updated")

    with simulated(registry) as run:
        run.apply(example(size=1)).settle(50)
        edit(run, spec={"size": 2}).settle(200)
        assert diary == [("slow", 0, 1), ("quick", 1), ("slow", 1, 2)]
        # The next change is an update, of the object as the creation has left it.
        run.edit(spec={"size": 3})
        assert diary[3:] == ["updated"]


@pytest.fixture
def resuming(
    registry: OperatorRegistry, diary: Diary
) -> Iterator[Callable[[], Simulated]]:
    """New processes of an operator whose resumption does not come to its end."""

    @kopf.on.resume(KIND, id="quick", registry=registry)
    @kopf.on.update(KIND, id="quick", registry=registry)
    def quick(reason: Any, **_: Any) -> None:
        diary.append(("quick", reason))

    @kopf.on.resume(KIND, id="slow", registry=registry)
    def slow(retry: int, reason: Any, spec: kopf.Spec, **_: Any) -> None:
        diary.append(("slow", reason, retry))
        if "size" in spec and spec["size"] < 3:
            raise kopf.TemporaryError("not yet", delay=100)

    with simulated(registry, example()) as run:
        run.edit(spec={"size": 1})

        def again() -> Simulated:
            diary.clear()
            run.sim.crash()
            return run.settle(50)

        yield again


def test_a_resumption_goes_on_in_the_next_process(
    resuming: Callable[[], Simulated], diary: Diary
) -> None:
    resuming()
    assert diary == [("quick", "resume"), ("slow", "resume", 0)]
    resuming().settle(60)
    assert diary == [("slow", "resume", 1)]


def test_an_edit_of_an_unfinished_resumption_is_a_part_of_it(
    resuming: Callable[[], Simulated], diary: Diary
) -> None:
    edit(resuming(), spec={"size": 3}).settle(200)
    assert diary == [("quick", "resume"), ("slow", "resume", 0), ("slow", "update", 1)]


def test_sub_handlers_of_a_resumption_go_on_in_an_update(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.resume(KIND, id="both", registry=registry)
    @kopf.on.update(KIND, id="both", registry=registry)
    def both(reason: Any, **_: Any) -> None:
        diary.append(("both", reason))

        @kopf.subhandler(id="part")
        def part(retry: int, **_: Any) -> None:
            diary.append(("part", retry))
            if retry == 0:
                raise kopf.TemporaryError("not yet", delay=100)

    with simulated(registry, example(size=1)) as run:
        diary.clear()
        run.sim.crash()
        edit(run.settle(50), spec={"size": 2}).settle(200)
    assert diary == [("both", "resume"), ("part", 0), ("both", "update"), ("part", 1)]
    told = "the resume is superseded by the update: 0 succeeded, 0 failed, 1 left"
    assert told in [each.message for each in run.said]


def test_a_field_of_an_unfinished_creation_is_handled_before_the_deletion(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.field(KIND, field="spec.size", id="sized", registry=registry)
    def sized(retry: int, reason: Any, **_: Any) -> None:
        diary.append((reason, retry))
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=100)

    # It holds the object, as deletion handlers do.
    kopf.timer(KIND, id="timed", interval=9_000, registry=registry)(lambda **_: None)
    with simulated(registry) as run:
        run.apply(example(size=1)).settle(50)
        run.sim.request(ApiRequest("DELETE", run.path("example-1")))
        run.settle(20)
        assert diary == [("create", 0)]
        assert run.get() is not None
        run.settle(200)
        assert diary == [("create", 0), ("delete", 1)]
        assert run.get() is None


def test_a_change_that_supersedes_another_is_told_once(
    registry: OperatorRegistry,
) -> None:
    @kopf.on.update(KIND, id="slow", registry=registry)
    def slow(**_: Any) -> None:
        raise kopf.TemporaryError("not yet", delay=1000)

    kopf.on.field(KIND, field="spec.size", id="sized", registry=registry)(
        lambda **_: None
    )

    @kopf.on.delete(KIND, id="leaves", registry=registry)
    def leaves(patch: kopf.Patch, **_: Any) -> None:
        patch.status["left"] = True

    with simulated(registry, example(size=1)) as run:
        edit(run, spec={"size": 2}).settle(50)
        run.sim.crash()
        run.settle(50).delete()
        assert run.get() is None
        told = [each.message for each in run.said if "superseded" in each.message]
        assert told == [
            "the update is superseded by the delete: 1 succeeded, 0 failed, 1 left"
        ]


def test_a_finished_handler_is_not_called_for_edits_of_the_same_handling(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="slow", registry=registry)
    def slow(retry: int, diff: Any, **_: Any) -> None:
        diary.append(("slow", retry, [each.new for each in diff]))
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=100)

    @kopf.on.update(KIND, id="quick", registry=registry)
    def quick(**_: Any) -> None:
        diary.append("quick")

    with simulated(registry, example(size=1)) as run:
        edit(run, spec={"size": 2}).settle(50)
        edit(run, spec={"size": 3}).settle(200)
        assert diary == [("slow", 0, [2]), "quick", ("slow", 1, [3])]


def test_a_change_that_is_reverted_meanwhile_is_over(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="slow", registry=registry)
    def slow(retry: int, **_: Any) -> None:
        diary.append(retry)
        raise kopf.TemporaryError("not yet", delay=100)

    with simulated(registry, example(size=1)) as run:
        edit(run, spec={"size": 2}).settle(50)
        edit(run, spec={"size": 1}).settle(500)
        assert diary == [0]
        names = {*run.get()["metadata"]["annotations"]}
        assert names == {"kopf.zalando.org/last-handled-configuration"}
        # Kopf logs the end of a change only if its handlers have finished it.
        assert not [e for e in run.said if ("handled", "update") in e.fields]


def test_the_next_handler_sees_what_the_one_before_has_written(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="first", registry=registry)
    def first(patch: kopf.Patch, **_: Any) -> None:
        diary.append("first")
        patch.metadata.annotations["first"] = "was here"

    @kopf.on.update(KIND, id="second", registry=registry)
    def second(annotations: Any, **_: Any) -> None:
        diary.append(("second", annotations.get("first")))

    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2})
        assert diary == [("first"), ("second", "was here")]


def test_attempts_are_counted_across_restarts(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="slow", registry=registry)
    def slow(retry: int, **_: Any) -> None:
        diary.append(retry)
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=10)

    with simulated(registry) as run:
        run.apply(example()).settle(15)
        cluster = run.sim.cluster
    assert diary == [0, 1]
    with simulated(registry, cluster=cluster) as run:
        assert diary[2:] == [2]


def test_an_object_that_no_handler_has_selected_is_new_when_one_does(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="updated", labels={"a": kopf.PRESENT}, registry=registry)
    def updated(**_: Any) -> None:
        diary.append("updated")

    @kopf.on.event(KIND, id="seen", registry=registry)
    def seen(**_: Any) -> None:
        """Be interested in all objects."""

    with simulated(registry, example()) as run:
        run.edit(metadata={"labels": {"a": "b"}})
        assert diary == []
        run.edit(spec={"size": 2})
        assert diary == ["updated"]


@pytest.mark.parametrize("is_held", [False, True])
def test_an_optional_handler_is_called_with_the_finalizer_alone(
    registry: OperatorRegistry, diary: Diary, is_held: bool
) -> None:
    @kopf.on.delete(KIND, id="optional", optional=True, registry=registry)
    def optional(**_: Any) -> None:
        diary.append("optional")

    if is_held:

        @kopf.on.delete(KIND, id="needed", registry=registry)
        def needed(**_: Any) -> None:
            diary.append("needed")

    with simulated(registry, example()) as run:
        own = run.get()["metadata"].get("finalizers") or []
        run.edit(metadata={"finalizers": [*own, "example.com/hold"]})
        run.delete()
        assert diary == (["optional", "needed"] if is_held else [])


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("storage", ["annotations", "status"])
def test_a_deletion_leaves_no_record_on_an_object_that_others_hold(
    registry: OperatorRegistry, diary: Diary, storage: str, is_held: bool
) -> None:
    @kopf.on.delete(KIND, id="first", registry=registry)
    def first(**_: Any) -> None:
        diary.append("first")

    @kopf.on.delete(KIND, id="second", registry=registry)
    def second(retry: int, **_: Any) -> None:
        diary.append(("second", retry))
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=100)

    settings = kopf.OperatorSettings()
    if storage == "status":
        settings.persistence.progress_storage = kopf.StatusProgressStorage()
    with simulated(registry, example(), settings=settings) as run:
        if is_held:
            own = run.get()["metadata"]["finalizers"]
            run.edit(metadata={"finalizers": [*own, "example.com/hold"]})
        run.delete()
        assert diary == ["first", ("second", 0), ("second", 1)]
        assert run.errors() == []
        found = run.get()
        if not is_held:
            assert found is None
            return
        assert found["metadata"]["finalizers"] == ["example.com/hold"]
        names = {*found["metadata"]["annotations"]}
        assert names == {"kopf.zalando.org/last-handled-configuration"}
        assert not ((found.get("status") or {}).get("kopf") or {}).get("progress")


# ------------------------------------------------------------------ calls under way


# A call that has succeeded with a result, as its process reports it.
END = {"value": {"made": 1}}


async def created(**_: Any) -> None: ...


class Kopfs(Story):
    """An operator by Kopf's rules; it notes whether it has cancelled a call."""

    interrupted = False

    def edit_of(self, patch: dict[str, Any]) -> ApiRequest:
        """A user's request to patch the object."""
        path = self.path(KIND, "example-1")
        return ApiRequest("PATCH", path, (), patch, MERGE_PATCH)

    def perform(self, command: Command) -> None:
        self.interrupted |= isinstance(command, Interrupt)
        super().perform(command)


def by_kopfs_rules(registry: Registry, *manifests: Any, **options: Any) -> Kopfs:
    fields = tuple(each.field for each in registry.handlers if each.field)
    states = KopfStates(PersistenceSettings(), lambda *_: fields, registry.handlers)
    settings = Settings(
        storage=FormattedStorage(states),
        conditions=False,
        drain_seconds=2.0,
        **options,
    )
    return Kopfs(registry, manifests, settings=settings)


@pytest.fixture
def story(diary: Diary) -> Kopfs:
    """An operator whose creation handler has been called."""
    registry = Registry()

    fnop.on.create(KIND, registry=registry, impure=True)(created)

    @fnop.on.delete(KIND, registry=registry)
    def deleted(status: Any, **_: Any) -> None:
        diary.append(("deleted", dict(status)))

    story = by_kopfs_rules(registry, example())
    story.late_calls = True
    story.settle(seconds=5)
    assert len(story.called) == 1
    return story


def test_a_call_ends_before_the_deletion_of_its_object_is_handled(
    story: Kopfs, diary: Diary
) -> None:
    story.delete(KIND).settle(seconds=50)
    assert not story.interrupted
    assert diary == []
    story.answer_call(END).settle(seconds=50)
    assert diary == [("deleted", {"created": {"made": 1}})]
    assert story.get(KIND) is None


def test_a_call_ends_although_its_object_is_gone(story: Kopfs, diary: Diary) -> None:
    story.request(story.edit_of({"metadata": {"finalizers": None}}))
    story.delete(KIND).settle(seconds=50)
    assert not story.interrupted
    story.answer_call(END).settle(seconds=50)
    assert diary == []
    assert not story.said_at("error")


@pytest.mark.parametrize("seconds", [1.0, 1.9])
def test_a_stop_stores_the_end_of_a_call_that_comes_in_time(
    story: Kopfs, seconds: float
) -> None:
    story.stop()
    story.settle(seconds=seconds)
    assert not story.interrupted
    story.answer_call(END).settle(seconds=50)
    assert story.exit is not None
    assert story.status() == {"created": {"made": 1}}


# ------------------------------------------------------------ pauses of peering


PEERING = "/apis/kopf.dev/v1/clusterkopfpeerings/default"


def peers(story: Kopfs, **priorities: int | None) -> Kopfs:
    """Other operators come with their priorities, or go."""
    wall = story.clock.now().wall
    records = {
        name: None if priority is None else record_of(priority, 3600, wall)
        for name, priority in priorities.items()
    }
    request = ApiRequest("PATCH", PEERING, (), {"status": records}, MERGE_PATCH)
    assert story.request(request).status == 200
    story.settle(seconds=5)
    return story


@pytest.fixture
def member(diary: Diary) -> Kopfs:
    """An operator with peers, whose creation handler has been called."""
    registry = Registry()
    fnop.on.create(KIND, registry=registry, impure=True)(created)

    @fnop.on.update(KIND, registry=registry)
    def updated(spec: Any, **_: Any) -> None:
        diary.append(("updated", spec["size"]))

    objects = [peering_definition(), PEERING_OBJECT, example(size=1)]
    story = by_kopfs_rules(registry, *objects, peering=Member("me"))
    story.late_calls = True
    story.settle(seconds=5)
    assert len(story.called) == 1
    return story


def phase(story: Kopfs) -> Phase:
    return story.machine.state.lifecycle.phase


def test_a_pause_of_peering_stores_the_end_of_a_call(
    member: Kopfs, diary: Diary
) -> None:
    peers(member, boss=100)
    assert phase(member) is Phase.FROZEN
    member.request(member.edit_of({"spec": {"size": 2}}))
    member.settle(seconds=500)
    assert not member.interrupted
    member.answer_call(END).settle(seconds=5)
    assert member.status() == {"created": {"made": 1}}
    assert diary == []
    peers(member, boss=None).settle(seconds=50)
    assert phase(member) is Phase.SERVING
    assert not member.called
    assert diary == [("updated", 2)]


def test_a_call_may_end_after_a_pause(member: Kopfs, diary: Diary) -> None:
    peers(member, boss=100)
    peers(member, boss=None).settle(seconds=50)
    member.answer_call(END).settle(seconds=50)
    assert member.status() == {"created": {"made": 1}}
    assert not member.called


def test_a_stop_in_a_pause_cancels_a_call_that_goes_on(member: Kopfs) -> None:
    peers(member, boss=100).stop()
    member.settle(seconds=2.1)
    assert member.interrupted
    member.settle(seconds=50)
    assert member.exit is not None


def test_a_pause_stores_the_last_changes_of_a_daemon() -> None:
    registry = Registry()
    fnop.daemon(KIND, registry=registry, impure=True, cancellation_backoff=1e6)(created)
    objects = [peering_definition(), PEERING_OBJECT, example()]
    story = by_kopfs_rules(registry, *objects, peering=Member("me"))
    story.late_calls = True
    story.settle(seconds=5)
    peers(story, boss=100)
    assert story.interrupted
    story.answer_call(END).settle(seconds=5)
    assert phase(story) is Phase.FROZEN
    assert story.status() == {"created": {"made": 1}}
    assert not story.called
    peers(story, boss=None)
    assert len(story.called) == 1


def test_a_pause_cancels_a_pure_handler(diary: Diary) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> Any:
        diary.append("begun")
        await fnop.sleep(60)
        return fnop.patch(status={"done": True})

    objects = [peering_definition(), PEERING_OBJECT, example()]
    story = by_kopfs_rules(registry, *objects, peering=Member("me"))
    story.settle(seconds=5)
    peers(story, boss=100).settle(seconds=100)
    assert (diary, story.status()) == (["begun"], {})
    peers(story, boss=None).settle(seconds=100)
    assert (diary, story.status()) == (["begun"] * 2, {"done": True})


def test_a_stop_cancels_a_call_that_goes_on(story: Kopfs) -> None:
    story.stop()
    story.settle(seconds=2.1)
    assert story.interrupted
    story.settle(seconds=50)
    assert story.exit is not None
    assert story.status() == {}


def test_a_filter_of_a_field_knows_the_value_from_before_a_restart(
    diary: Diary,
) -> None:
    registry = Registry()
    absent: Any = {"value": fnop.ABSENT, "registry": registry}

    @fnop.on.create(KIND, field="spec.ring", registry=registry)
    def made(**_: Any) -> None:
        diary.append("made")

    @fnop.on.resume(KIND, field="spec.ring", id="resumed", **absent)
    @fnop.on.delete(KIND, field="spec.ring", id="deleted", **absent)
    def never(**_: Any) -> None:
        diary.append("never")

    story = by_kopfs_rules(registry, example(ring=True))
    story.settle(seconds=50)
    assert diary == ["made"]
    story.crash()
    story.settle(seconds=50)
    story.request(ApiRequest("DELETE", story.path(KIND, "example-1")))
    story.settle(seconds=50)
    assert diary == ["made"]


def test_a_daemon_does_not_run_for_what_the_object_was_before_a_restart(
    diary: Diary,
) -> None:
    registry = Registry()

    @fnop.daemon(KIND, field="spec.ring", value=True, registry=registry)
    async def ring(**_: Any) -> None:
        diary.append("ring")

    @fnop.on.update(KIND, registry=registry)
    def updated(old: Any, **_: Any) -> None:
        diary.append(("updated", old["spec"]))

    story = by_kopfs_rules(registry, example(ring=True))
    story.settle(seconds=50)
    assert diary == ["ring"]
    story.request(story.edit_of({"spec": {"ring": None}}))
    story.crash()
    story.settle(seconds=50)
    assert diary == ["ring", ("updated", {"ring": True})]


@pytest.mark.parametrize("field", ["metadata.annotations", "status"])
def test_the_state_is_no_part_of_a_field_that_holds_it(
    registry: OperatorRegistry, diary: Diary, field: str
) -> None:
    @kopf.on.field(KIND, id="follows", field=field, registry=registry)
    def follows(old: Any, new: Any, **_: Any) -> None:
        diary.append((old, new))

    @kopf.on.update(KIND, id="updated", registry=registry)
    def updated(retry: int, **_: Any) -> None:
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=1)

    settings = kopf.OperatorSettings()
    if field == "status":
        persistence = settings.persistence
        persistence.progress_storage = kopf.StatusProgressStorage()
        persistence.diffbase_storage = kopf.StatusDiffBaseStorage()
    with simulated(registry, example(size=1), settings=settings) as run:
        run.edit(spec={"size": 2}).settle(10)
        assert diary == []
        value = {"mine": "1"}
        path = run.path("example-1")
        change: dict[str, Any] = {"metadata": {"annotations": value}}
        if field == "status":
            path, change = f"{path}/status", {"status": value}
        run.sim.request(ApiRequest("PATCH", path, (), change, MERGE_PATCH))
        run.settle(10)
        assert diary == [(None, value)]


def test_the_result_of_a_daemon_counts_if_it_ends_at_once(
    registry: OperatorRegistry, diary: Diary
) -> None:
    options: Any = {"labels": {"on": "yes"}, "cancellation_timeout": 1}

    @kopf.daemon(KIND, id="follows", registry=registry, **options)
    async def follows(patch: kopf.Patch, stopped: Any, **_: Any) -> str:
        diary.append("began")
        await stopped
        patch.status["written"] = True
        return "ended"

    manifest = example()
    manifest["metadata"]["labels"] = {"on": "yes"}
    with simulated(registry, manifest) as run:
        run.edit(metadata={"labels": {"on": "no"}}).settle(10)
        assert diary == ["began"]
        assert run.status() == {"follows": "ended", "written": True}


def test_a_change_is_kept_while_a_filter_raises(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def is_wanted(spec: kopf.Spec, **_: Any) -> bool:
        if spec.get("broken"):
            raise ValueError("broken")
        return True

    @kopf.on.update(KIND, id="filtered", when=is_wanted, registry=registry)
    def filtered(spec: kopf.Spec, **_: Any) -> None:
        diary.append(("filtered", spec["size"]))

    @kopf.on.update(KIND, id="other", registry=registry)
    def other(old: Any, **_: Any) -> None:
        diary.append(("other", old["spec"]["size"]))

    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2, "broken": True}).settle(100)
        assert diary == []
        run.edit(spec={"broken": None}).settle(100)
        assert diary == [("filtered", 2), ("other", 1)]
