"""Known defects of Kopf 1.44 that fnop does not have: one story for each.

`test_e36a_…` is the story of experiment E36a, in which Kopf failed. Others are numbered
as in the list of defects: `test_12_2_3_…` is the third race, `test_12_3_5_…` the fifth
way in which memory grew. A defect that cannot exist in a fold over plain values (a lost
task, a swallowed cancellation) is tested by its visible effect.

With the feature itself, for there is nothing to be wrong yet:

| defect | feature |
|---|---|
| E68, E69: split brain, ignored peers, dead keep-alive | peering |
| 12.2, item 4: handling begins before the peers are known | peering |
"""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.lifecycles import one_by_one
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import ListPage, Perform
from fnop.core.seam.inputs import StreamEnded
from fnop.core.values.errors import RegistrationError
from fnop.effects import Outcome, Patch, Refused, Unreachable
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.simulations import DEFINITION, example
from tests.stories import MARKER, Fate, Story, outside

KIND = "fnopexamples"
MAIN = "PATCH fnopexamples/example-1"
STATUS = "PATCH fnopexamples/example-1/status"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def diary() -> list[Any]:
    """The handlers' arguments, in order."""
    return []


def found(story: Story, name: str = "example-1") -> dict[str, Any]:
    body = story.get(KIND, name)
    assert body is not None
    return body


def after(diary: list[Any], name: str) -> list[Any]:
    """The notes of one handler."""
    return [rest for each, *rest in diary if each == name]


def unreachable_for(seconds: float) -> Fate:
    """The own writes fail for the first number of seconds."""

    def fate(story: Story, command: Perform) -> Outcome | None:
        if isinstance(command.effect, Patch) and story.clock.elapsed < seconds:
            return Unreachable("no answer")
        return None

    return fate


def gap(story: Story) -> Story:
    """The watch has missed something; the server has forgotten since when."""
    story.lose_events()
    for stream in story.streams.values():
        story.feed(StreamEnded(stream, "refused", 410, "too old"))
    return story


# ------------------------------------------------------------ 12.1: wrong results


@pytest.mark.parametrize("cause", ["create", "update"])
def test_e1_a_change_is_seen_by_those_who_were_done_before_it(
    registry: Registry, diary: list[Any], cause: str
) -> None:
    def done(spec: Any, **_: Any) -> None:
        diary.append(("done", spec["size"]))

    def slow(spec: Any) -> None:
        diary.append(("slow", spec["size"]))
        if len(after(diary, "slow")) < 3:
            raise fnop.TemporaryError("not yet", delay=10)

    fnop.on.update(KIND, registry=registry)(done)
    if cause == "create":
        fnop.on.create(KIND, registry=registry)(done)
    getattr(fnop.on, cause)(KIND, registry=registry)(slow)
    story = Story(registry, [example(size=1)])
    if cause == "update":
        story.settle()
        story.edit(KIND, spec={"size": 2})
    story.settle(seconds=5)
    story.edit(KIND, spec={"size": 3})
    assert story.settle()
    assert [3] in after(diary, "done")
    assert after(diary, "slow")[-1] == [3] or cause == "create"


@pytest.mark.parametrize("restarts", [False, True])
def test_e2_a_taken_back_change_leaves_nothing_to_the_next_one(
    registry: Registry, diary: list[Any], restarts: bool
) -> None:
    @fnop.on.update(KIND, registry=registry)
    def done(spec: Any, **_: Any) -> None:
        diary.append(("done", spec["size"]))

    @fnop.on.update(KIND, registry=registry)
    def slow(spec: Any, retry: int, **_: Any) -> None:
        diary.append(("slow", spec["size"], retry))
        if spec["size"] == 2:
            raise fnop.TemporaryError("not yet", delay=100)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.edit(KIND, spec={"size": 1}).settle(seconds=5)
    if restarts:
        story.crash()
    story.edit(KIND, spec={"size": 3}).settle(seconds=5)
    told = [("done", 2), ("slow", 2, 0), ("done", 1)]  # it has acted upon the 2
    assert diary == [*told, ("done", 3), ("slow", 3, 0)]


def test_e34_what_was_left_when_no_handler_matched_is_dropped(
    registry: Registry, diary: list[Any]
) -> None:
    """The attempts for one change do not use up the attempts for another one."""

    @fnop.on.update(KIND, registry=registry, retries=2, labels={"served": "yes"})
    def limited(spec: Any, retry: int, **_: Any) -> None:
        diary.append((spec["size"], retry))
        raise fnop.TemporaryError("not yet", delay=100)

    body = example(size=1)
    body["metadata"]["labels"] = {"served": "yes"}
    story = Story(registry, [body])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.edit(KIND, metadata={"labels": {"served": "no"}}).settle(seconds=5)
    labels = {"labels": {"served": "yes"}}
    story.edit(KIND, metadata=labels, spec={"size": 3}).settle(seconds=5)
    assert diary == [(2, 0), (3, 0)]


def test_e64_a_timeout_begins_anew_with_another_change(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.update(KIND, registry=registry, timeout=60)
    def limited(spec: Any, runtime: Any, **_: Any) -> None:
        diary.append((spec["size"], runtime.total_seconds()))
        if spec["size"] == 2:
            raise fnop.TemporaryError("not yet", delay=50)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.edit(KIND, spec={"size": 1}).settle(seconds=1000)
    story.edit(KIND, spec={"size": 3})
    assert story.settle()
    assert diary == [(2, 0.0), (3, 0.0)]
    assert story.machine.state.notes.failures == 0


def test_e36a_the_success_of_an_update_is_none_of_the_deletion(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.update(KIND, registry=registry)
    @fnop.on.delete(KIND, registry=registry)
    def both(reason: str, **_: Any) -> None:
        diary.append(str(getattr(reason, "value", reason)))

    @fnop.on.update(KIND, registry=registry)
    def slow(**_: Any) -> None:
        raise fnop.TemporaryError("not yet", delay=1000)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle(seconds=5)
    story.delete(KIND).settle(seconds=5)
    assert diary == ["update", "delete"]
    assert story.get(KIND) is None


def test_e36b_the_success_of_a_resumption_is_none_of_an_update(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.resume(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    def both(spec: Any, **_: Any) -> None:
        diary.append(spec["size"])

    @fnop.on.resume(KIND, registry=registry)
    def slow(retry: int, **_: Any) -> None:
        if retry < 2:
            raise fnop.TemporaryError("not yet", delay=10)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.crash()
    story.settle(seconds=5)
    story.edit(KIND, spec={"size": 2})
    assert story.settle()
    assert diary == [1, 2]


def test_e10_a_patch_that_changes_nothing_does_not_lose_a_retry(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(patch: Any, **_: Any) -> None:
        diary.append("create")
        patch.status["phase"] = "Same"
        if len(diary) < 4:
            raise fnop.TemporaryError("not yet", delay=10)

    story = Story(registry, [example()])
    story.user_sets_status({"phase": "Same"})
    assert story.settle()
    assert diary == ["create"] * 4
    assert story.clock.elapsed == 30


def test_e44_a_spy_that_always_writes_the_same_starves_nobody(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.event(KIND, registry=registry)
    def spy(patch: Any, **_: Any) -> None:
        patch.status["phase"] = "Seen"

    @fnop.on.update(KIND, registry=registry)
    def update(spec: Any, **_: Any) -> None:
        diary.append(spec["size"])

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    for size in (2, 3, 4):
        story.edit(KIND, spec={"size": size}).settle(seconds=1.5)
    assert diary == [2, 3, 4]
    assert story.status() == {"phase": "Seen"}


def test_e72_operations_that_have_become_empty_hold_up_no_change(
    registry: Registry, diary: list[Any]
) -> None:
    """A rival does meanwhile what the handler wanted: nothing is left to write."""

    @fnop.on.event(KIND, registry=registry)
    def spy(spec: Any, **_: Any) -> Any:
        if spec.get("wanted") is None:
            return fnop.patch(json=[{"op": "add", "path": "/spec/wanted", "value": 1}])
        return None

    @fnop.on.update(KIND, registry=registry)
    def update(spec: Any, **_: Any) -> None:
        diary.append(dict(spec))

    story = Story(registry, [example(size=1, wanted=1)])
    story.settle()
    rivals = [{"wanted": 1}]

    def fate(story: Story, command: Perform) -> Outcome | None:
        if rivals and "spec" in (getattr(command.effect, "merge", None) or {}):
            story.edit(KIND, spec=rivals.pop())
        return None

    story.fate = fate
    story.edit(KIND, spec={"size": 2, "wanted": None})
    assert story.settle()
    assert rivals == []
    assert diary[-1] == {"size": 2, "wanted": 1}


def test_e9_one_invalid_change_blocks_neither_the_next_nor_the_deletion(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry, retries=2, backoff=1)
    def bad(**_: Any) -> fnop.Effect:
        wrong = {"op": "add", "path": "/metadata/labels", "value": {"a": "not valid!"}}
        return fnop.patch(json=[wrong])

    @fnop.on.update(KIND, registry=registry)
    def update(spec: Any, **_: Any) -> None:
        diary.append(("update", spec["size"]))

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        diary.append(("delete",))

    story = Story(registry, [example(size=1)])
    assert story.settle()
    assert story.machine.state.notes.failures == 1, "its author has failed, nobody else"
    story.edit(KIND, spec={"size": 2}).settle()
    story.delete(KIND).settle()
    assert diary == [("update", 2), ("delete",)]
    assert story.get(KIND) is None


def test_e11_a_write_that_fails_is_repeated_and_its_handlers_are_not(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> dict[str, Any]:
        diary.append("create")
        return {"done": True}

    story = Story(registry, [example()])
    story.fate = unreachable_for(100)
    assert story.settle()
    assert diary == ["create"]
    assert story.status() == {"create": {"done": True}}


def refused_at_first(story: Story, plural: str, times: int, status: int) -> None:
    """Listings of a kind are refused this number of times."""
    answer, left = story.request, [times]

    def request(request: ApiRequest) -> ApiResponse:
        listed = request.method == "GET" and request.path.endswith(f"/{plural}")
        if listed and left[0]:
            left[0] -= 1
            body = {"kind": "Status", "message": "no", "reason": "Forbidden"}
            return ApiResponse(status, {**body, "code": status})
        return answer(request)

    story.request = request  # type: ignore[method-assign]


@pytest.mark.parametrize("status", [403, 404, 500])
def test_e3_a_kind_whose_listing_fails_for_long_is_served_afterwards(
    registry: Registry, diary: list[Any], status: int
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> None:
        diary.append(name)

    @fnop.on.event("configmaps", registry=registry)
    def spy(**_: Any) -> None: ...

    story = Story(registry, [example()])
    refused_at_first(story, KIND, 20, status)
    story.settle(seconds=3600)
    assert diary == ["example-1"]


def test_e3_an_operator_that_may_see_nothing_ends_and_says_why(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    story = Story(registry, [example()])
    refused_at_first(story, KIND, 20, 403)
    story.settle(seconds=60)
    assert story.exit is not None
    assert story.exit.status == 1
    assert any("grant the verbs list and watch" in line for line in story.lines)


def test_e45_an_object_that_fails_unforeseen_does_not_end_the_watch_of_others(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry, when=lambda spec, **_: spec["size"] > 0)
    def create(name: str, **_: Any) -> None:
        diary.append(name)

    @fnop.on.delete(KIND, registry=registry, when=lambda spec, **_: spec["size"] > 0)
    def delete(name: str, **_: Any) -> None:
        diary.append(f"-{name}")

    story = Story(registry, [example("broken"), example("one", size=1)])
    story.settle(seconds=60)
    story.apply(example("two", size=2)).settle(seconds=60)
    story.delete(KIND, "one").settle(seconds=60)
    assert diary == ["one", "two", "-one"]


@pytest.mark.parametrize("status", [400, 403, 410, 500])
def test_e60_an_error_in_a_watch_is_never_its_end(
    registry: Registry, diary: list[Any], status: int
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> None:
        diary.append(name)

    story = Story(registry)
    story.settle(seconds=5)
    for _ in range(5):
        (stream,) = story.streams.values()
        story.feed(StreamEnded(stream, "refused", status, "an ERROR in the stream"))
        story.settle(seconds=300)
    story.apply(example()).settle(seconds=5)
    assert diary == ["example-1"]


def indexed(registry: Registry, diary: list[Any]) -> None:
    """An index of ConfigMaps, and a handler that looks at it."""

    @fnop.index("configmaps", registry=registry)
    def maps(name: str, **_: Any) -> dict[str, str]:
        return {name: name}

    @fnop.on.create(KIND, registry=registry)
    def create(maps: Any = fnop.INDEX, **_: Any) -> None:
        diary.append(sorted(each for each in maps if each != "kube-root-ca.crt"))


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def test_e8b_an_object_that_vanishes_before_it_is_indexed_holds_nobody_up(
    registry: Registry, diary: list[Any]
) -> None:
    indexed(registry, diary)
    story = Story(registry, [CONFIG, example()])
    story.late_lists = True
    story.settle(seconds=1)
    story.delete("configmaps", "a")
    story.let_lists_through()
    story.settle(seconds=60)
    assert len(diary) == 1
    assert story.ready


def test_e71_an_index_that_may_not_be_listed_holds_nobody_up_and_fills_later(
    registry: Registry, diary: list[Any]
) -> None:
    indexed(registry, diary)
    story = Story(registry, [CONFIG, example()])
    refused_at_first(story, "configmaps", 5, 403)
    story.settle(seconds=3600)
    story.apply(example("later")).settle(seconds=5)
    assert diary == [[], ["a"]]


def test_e18_what_is_deleted_in_a_gap_is_gone_everywhere(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.index(KIND, registry=registry)
    def sizes(name: str, spec: Any, **_: Any) -> dict[str, int]:
        return {name: spec["size"]}

    @fnop.daemon(KIND, registry=registry, finalizer=False)
    async def follow(name: str, stopped: Any, **_: Any) -> None:
        while not stopped:
            await fnop.sleep(10)
        diary.append((name, stopped.reason))

    @fnop.on.create("configmaps", registry=registry, labels={"look": fnop.PRESENT})
    def look(sizes: Any = fnop.INDEX, **_: Any) -> None:
        diary.append(sorted(sizes))

    story = Story(registry, [example("one", size=1), example("two", size=2)])
    story.settle(seconds=5)
    story.late_events = True
    story.delete(KIND, "one")
    gap(story).late_events = False
    story.settle(seconds=5)
    assert diary == [("one", "resource_deleted")]
    looking = {**CONFIG, "metadata": {"name": "look", "labels": {"look": "1"}}}
    story.apply(looking).settle(seconds=5)
    assert diary[1:] == [["two"]]


@pytest.mark.parametrize("finalizer", [True, False])
def test_e17_an_object_that_vanishes_at_once_leaves_no_daemon(
    registry: Registry, diary: list[Any], finalizer: bool
) -> None:
    """It goes before the finalizer is on it, so nothing announces its deletion."""

    @fnop.daemon(KIND, registry=registry, finalizer=finalizer)
    async def follow(stopped: Any, **_: Any) -> None:
        diary.append("begun")
        while not stopped:
            await fnop.sleep(10)
        diary.append("ended")

    story = Story(registry)
    story.settle(seconds=5)
    story.late_events = True
    story.apply(example()).delete(KIND)
    story.let_events_through().settle(seconds=5)
    assert diary in ([], ["begun", "ended"])
    assert len(story.machine.state.objects.records) == 0


def test_e21_the_finalizer_stays_until_a_daemon_has_ended(
    registry: Registry, diary: list[Any]
) -> None:
    """Even if a daemon stops because its filter no longer matches."""

    @fnop.daemon(KIND, registry=registry, when=lambda spec, **_: spec["on"])
    async def follow(stopped: Any, **_: Any) -> None:
        while not stopped:
            await fnop.sleep(100)
        await fnop.sleep(5)
        diary.append("tidied up")

    story = Story(registry, [example(on=True)])
    story.settle(seconds=5)
    assert found(story)["metadata"]["finalizers"] == [MARKER]
    story.edit(KIND, spec={"on": False}).settle(seconds=2)
    assert found(story)["metadata"]["finalizers"] == [MARKER]
    story.delete(KIND).settle(seconds=1)
    assert diary == []
    assert story.get(KIND) is not None, "it cannot vanish under its daemon"
    story.settle(seconds=10)
    assert diary == ["tidied up"]
    assert story.get(KIND) is None


@pytest.mark.parametrize("ends_by", ["deletion", "exit"])
def test_e4_a_timer_that_is_only_idle_freezes_nothing(
    registry: Registry, diary: list[Any], ends_by: str
) -> None:
    @fnop.timer(KIND, registry=registry, idle=5, finalizer=True)
    def tick(**_: Any) -> None:
        diary.append("tick")

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    story = Story(registry, [example()])
    story.settle(seconds=60)
    assert diary == ["tick"]
    if ends_by == "deletion":
        story.delete(KIND).settle(seconds=60)
        assert story.get(KIND) is None
    story.stop()
    assert story.settle(seconds=60)
    assert story.exit is not None
    assert story.exit.status == 0
    assert diary == ["tick"]


def test_e5_a_permanent_error_ends_a_timer(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.timer(KIND, registry=registry, interval=3)
    def tick(**_: Any) -> None:
        diary.append("tick")
        raise fnop.PermanentError("no more")

    story = Story(registry, [example()])
    story.settle(seconds=60)
    story.edit(KIND, spec={"size": 2}).settle(seconds=60)
    assert diary == ["tick"]


@pytest.mark.parametrize(
    "outcome", [Unreachable("500"), Refused(403, "no", "Forbidden")], ids=["500", "403"]
)
def test_e6_a_write_that_fails_ends_neither_timer_nor_daemon(
    registry: Registry, outcome: Outcome
) -> None:
    @fnop.timer(KIND, registry=registry, interval=10, backoff=10)
    def tick(status: Any, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"ticks": status.get("ticks", 0) + 1})

    @fnop.daemon(KIND, registry=registry, finalizer=False, backoff=10)
    async def follow(**_: Any) -> None:
        while True:
            view = await fnop.sleep(10)
            await fnop.patch(status={"turns": view.status.get("turns", 0) + 1})

    failures = [outcome] * 2
    story = Story(registry, [example()])
    story.fate = lambda story, command: (
        failures.pop() if failures and isinstance(command.effect, Patch) else None
    )
    story.settle(seconds=300)
    assert failures == []
    assert story.status()["ticks"] > 10
    assert story.status()["turns"] > 10


def test_e7_many_daemons_that_end_at_once_end_the_operator_in_order(
    registry: Registry, diary: list[Any]
) -> None:
    for number in range(4):

        @fnop.daemon(KIND, registry=registry, id=f"daemon-{number}")
        async def follow(name: str, stopped: Any, **_: Any) -> None:
            while not stopped:
                await fnop.sleep(10)
            diary.append((name, stopped.reason))

    story = Story(registry, [example(f"e{number}") for number in range(5)])
    story.settle(seconds=5)
    story.delete(KIND, "e0")
    story.stop()
    story.settle(seconds=60)
    assert story.exit is not None
    assert story.exit.status == 0
    assert len(diary) == 20
    assert {reason for _, reason in diary} <= {"resource_deleted", "operator_exiting"}


@pytest.mark.parametrize("finalizers", [["example.com/other"], [MARKER]])
def test_e12_an_optional_deletion_handler_runs_while_the_object_waits(
    registry: Registry, diary: list[Any], finalizers: list[str]
) -> None:
    @fnop.on.delete(KIND, registry=registry, optional=True)
    def delete(name: str, **_: Any) -> None:
        diary.append(name)

    body = example()
    body["metadata"]["finalizers"] = [*finalizers, "example.com/last"]
    story = Story(registry, [body])
    story.settle(seconds=5)
    story.delete(KIND).settle(seconds=5)
    assert diary == ["example-1"]
    story.edit(KIND, metadata={"finalizers": None}).settle()
    assert story.get(KIND) is None


def test_e13a_the_rounds_of_its_parts_do_not_use_up_a_parent_s_attempts(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry, retries=2, id="parent")
    def parent(**_: Any) -> None:
        for number in range(4):

            @fnop.subhandler(id=f"part-{number}")
            def part(retry: int, number: int = number, **_: Any) -> None:
                diary.append((number, retry))
                if retry < 2:
                    raise fnop.TemporaryError("not yet", delay=100)

    story = Story(registry, [example()])
    assert story.settle()
    assert sorted(diary) == [
        (number, retry) for number in range(4) for retry in range(3)
    ]
    assert story.machine.state.notes.failures == 0


def test_e13b_a_part_that_fails_for_good_is_no_success_of_its_parent(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="parent")
    def parent(**_: Any) -> None:
        @fnop.subhandler(id="part")
        def part(**_: Any) -> None:
            raise fnop.PermanentError("never")

    story = Story(registry, [example()])
    assert story.settle()
    assert story.machine.state.notes.failures >= 1
    (condition,) = found(story)["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "CreateFailed")


def test_e13b_a_parent_whose_part_has_failed_has_no_result(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="parent")
    def parent(**_: Any) -> dict[str, Any]:
        @fnop.subhandler(id="part")
        def part(**_: Any) -> None:
            raise fnop.PermanentError("never")

        return {"done": True}

    story = Story(registry, [example()])
    assert story.settle()
    assert "parent" not in story.status()


def test_e65_a_timeout_begins_with_the_first_attempt_of_its_handler(
    registry: Registry, diary: list[Any]
) -> None:
    """Not when it was queued behind a slow one."""

    @fnop.on.create(KIND, registry=registry)
    async def slow(**_: Any) -> None:
        diary.append("slow")
        await fnop.sleep(100)

    @fnop.on.create(KIND, registry=registry, timeout=10)
    def limited(runtime: Any, **_: Any) -> None:
        diary.append(runtime.total_seconds())

    story = Story(registry, [example()], settings=Settings(lifecycle=one_by_one))
    assert story.settle()
    assert diary == ["slow", 0.0]
    assert story.machine.state.notes.failures == 0


def annotated(**annotations: str) -> dict[str, Any]:
    body = example(size=1)
    body["metadata"]["annotations"] = {
        f"kopf.zalando.org/{name.replace('_', '-')}": text
        for name, text in annotations.items()
    }
    return body


@pytest.fixture
def sizes(registry: Registry, diary: list[Any]) -> Registry:
    """Handlers of all causes that note the size."""
    for role in ("create", "resume", "update", "delete", "event"):

        def note(spec: Any, role: str = role) -> None:
            if role != "event" or diary[-1:] != [("event", spec["size"])]:
                diary.append((role, spec["size"]))

        getattr(fnop.on, role)(KIND, registry=registry, id=role)(note)
    return registry


def test_e14_records_in_an_older_form_do_not_block_the_object(
    sizes: Registry, diary: list[Any]
) -> None:
    """A progress record whose moments have no time zone."""
    record = '{"started":"2020-01-01T00:00:00","purpose":"create","retries":1}'
    body = annotated(create=record)
    story = Story(sizes, [body], settings=Settings(takes_over="kopf.zalando.org"))
    assert story.settle()
    story.edit(KIND, spec={"size": 2}).settle()
    story.delete(KIND).settle()
    assert [each for each in diary if each[0] != "event"] == [
        ("create", 1),
        ("update", 2),
        ("delete", 2),
    ]
    assert story.get(KIND) is None


@pytest.mark.parametrize("takes_over", [None, "kopf.zalando.org"])
@pytest.mark.parametrize("text", ["{", "[]", "null", '"x"', '{"spec":'])
def test_e27_annotations_that_are_no_json_do_not_block_the_object(
    sizes: Registry, diary: list[Any], text: str, takes_over: str | None
) -> None:
    body = annotated(create=text, last_handled_configuration=text)
    body["metadata"]["annotations"][MARKER] = text
    story = Story(sizes, [body], settings=Settings(takes_over=takes_over))
    assert story.settle()
    assert ("event", 1) in diary, "spies see it all the same"
    story.edit(KIND, spec={"size": 2}).settle()
    assert ("update", 2) in diary
    story.delete(KIND).settle()
    assert ("delete", 2) in diary
    assert story.get(KIND) is None


@pytest.mark.parametrize(
    "finalizer", ["fnop.dev/other", "kopf.zalando.org/KopfFinalizerMarker"]
)
def test_e54_the_finalizer_of_another_operator_stays(
    registry: Registry, finalizer: str
) -> None:
    @fnop.on.event(KIND, registry=registry)
    def spy(**_: Any) -> None: ...

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    body = example()
    body["metadata"]["finalizers"] = [finalizer]
    story = Story(registry, [body])
    story.settle()
    story.delete(KIND).settle()
    assert found(story)["metadata"]["finalizers"] == [finalizer]


def test_e20_two_functions_of_one_id_are_refused(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, id="same")(lambda **_: None)
    with pytest.raises(RegistrationError, match="two handlers have the id 'same'"):
        fnop.on.create(KIND, registry=registry, id="same")(lambda **_: None)


def test_e15_a_callback_of_a_field_that_is_not_there_gets_none(
    registry: Registry, diary: list[Any]
) -> None:
    def is_wanted(value: Any) -> bool:
        diary.append(value)
        return value is None

    @fnop.on.create(KIND, registry=registry, field="spec.size", value=is_wanted)
    def create(**_: Any) -> None:
        diary.append("create")

    @fnop.on.create(KIND, registry=registry, labels={"tier": is_wanted})
    def labelled(**_: Any) -> None:
        diary.append("labelled")

    story = Story(registry, [example()])
    assert story.settle()
    seen = [each for each in diary if each not in ("create", "labelled")]
    assert set(seen) == {None}
    assert "labelled" in diary


# --------------------------------------------------- 12.2: races and missing guards


def test_12_2_1_two_processes_do_not_overwrite_each_other_s_state(
    registry: Registry, diary: list[Any]
) -> None:
    """An old process writes what it has decided after its successor has written."""

    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    def handle(spec: Any, **_: Any) -> None:
        diary.append(spec["size"])

    story = Story(registry, [example(size=1)])
    held: list[ApiRequest] = []
    answer = story.request

    def request(request: ApiRequest) -> ApiResponse:
        if request.method == "PATCH" and not held:
            held.append(request)
            return ApiResponse(503, {"kind": "Status", "message": "late"})
        return answer(request)

    story.request = request  # type: ignore[method-assign]
    story.settle(seconds=0)
    story.crash()
    story.settle(seconds=100)
    story.edit(KIND, spec={"size": 2}).settle(seconds=100)
    state = found(story)["status"][MARKER]
    assert held
    assert answer(held[0]).status == 409, "what was decided before is not written"
    assert found(story)["status"][MARKER] == state
    story.settle()
    assert diary[-1] == 2


def test_12_2_2_the_own_write_of_a_daemon_is_waited_for(
    registry: Registry, diary: list[Any]
) -> None:
    """Until it is shown, no handler is called with an earlier state."""

    @fnop.daemon(KIND, registry=registry, finalizer=False)
    async def follow(**_: Any) -> None:
        await fnop.sleep(10)
        await fnop.patch(status={"phase": "Ready"})
        diary.append("written")

    @fnop.timer(KIND, registry=registry, interval=1)
    def look(status: Any, **_: Any) -> None:
        diary.append(status.get("phase"))

    story = Story(registry, [example()])
    story.settle(seconds=9.5)
    story.late_events = True
    story.settle(seconds=3)
    story.let_events_through().settle(seconds=3)
    assert set(diary[: diary.index("written")]) == {None}
    assert set(diary[diary.index("written") + 1 :]) == {"Ready"}


def test_12_2_3_no_daemon_begins_before_the_finalizer_is_there(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.daemon(KIND, registry=registry)
    async def follow(body: Any, stopped: Any, **_: Any) -> None:
        diary.append(list(body["metadata"].get("finalizers", ())))
        while not stopped:
            await fnop.sleep(10)

    story = Story(registry, [example()])
    story.fate = unreachable_for(60)
    story.settle(seconds=50)
    assert diary == []
    story.settle(seconds=200)
    assert diary == [[MARKER]]


def test_12_2_5_a_watch_that_falls_silent_cancels_nobody(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, **_: Any) -> None:
        try:
            for _round in range(10):
                await fnop.sleep(10)
        except fnop.Cancelled:
            diary.append("cancelled")
            raise
        diary.append(name)

    story = Story(registry, [example()])
    for reason in ("silent", "eof", "undecodable") * 3:
        story.settle(seconds=10)
        (stream,) = story.streams.values()
        story.feed(StreamEnded(stream, reason))
    story.settle(seconds=60)
    assert diary == ["example-1"]


@pytest.mark.parametrize("first", ["the answer", "the stop"])
def test_12_2_6_a_stop_is_heard_at_the_moment_of_an_answer(
    registry: Registry, diary: list[Any], first: str
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        try:
            await fnop.call(outside)
            await fnop.sleep(1000)
        except fnop.Cancelled:
            diary.append("cancelled")
            raise

    story = Story(registry, [example()])
    story.late_calls = True
    story.settle(seconds=5)
    if first == "the answer":
        story.answer_call()
        story.stop()
    else:
        story.stop()
        story.answer_call()
    begin = story.clock.elapsed
    story.settle(seconds=300)
    assert story.exit is not None
    assert story.exit.status == 0
    assert story.clock.elapsed - begin < 60
    assert diary == ["cancelled"]


def test_12_2_7_a_kind_that_goes_and_comes_back_is_served_again(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> None:
        diary.append(name)

    @fnop.timer(KIND, registry=registry, interval=10)
    def tick(name: str, **_: Any) -> None:
        diary.append(f"tick {name}")

    story = Story(registry, [example("old")])
    story.settle(seconds=5)
    name = DEFINITION["metadata"]["name"]
    story.request(ApiRequest("DELETE", f"{CRDS}/{name}"))
    story.settle(seconds=300)
    ticks = diary.count("tick old")
    story.request(ApiRequest("POST", CRDS, (), DEFINITION))
    story.apply(example("new")).settle(seconds=300)
    assert diary.count("new") == 1
    assert "tick new" in diary
    assert ticks == 1, "what has gone with its kind is over"
    assert story.exit is None


def test_e75_a_superseded_cause_leaves_those_who_sleep_asleep(
    registry: Registry, diary: list[Any]
) -> None:
    """One that resumes for an hour is not called at once for an update is due."""

    @fnop.on.resume(KIND, registry=registry, retries=5)
    def slow(retry: int, **_: Any) -> None:
        diary.append(("slow", retry))
        raise fnop.TemporaryError("not yet", delay=3600)

    @fnop.on.update(KIND, registry=registry)
    def update(spec: Any, **_: Any) -> None:
        diary.append(("update", spec["size"]))

    story = Story(registry, [example(size=1)])
    story.settle()
    story.crash()
    story.settle(seconds=5)
    assert diary == [("slow", 0)]
    story.edit(KIND, spec={"size": 2})
    story.settle(seconds=60)
    assert diary == [("slow", 0), ("update", 2)]
    story.settle(seconds=3600)
    assert diary == [("slow", 0), ("update", 2), ("slow", 1)]


# --------------------------------------------------------- 12.3: memory that grows


def test_12_3_1_what_went_in_gaps_leaves_nothing_behind(registry: Registry) -> None:
    @fnop.index(KIND, registry=registry)
    def by_name(name: str, **_: Any) -> dict[str, str]:
        return {name: name}

    @fnop.daemon(KIND, registry=registry, finalizer=False)
    async def follow(**_: Any) -> None:
        while True:
            await fnop.sleep(1000)

    story = Story(registry)
    story.settle(seconds=1)
    for number in range(20):
        story.apply(example(f"e{number}")).settle(seconds=1)
        story.late_events = True
        story.delete(KIND, f"e{number}")
        gap(story).late_events = False
        story.settle(seconds=40)
    assert len(story.machine.state.objects.records) == 0
    assert not any(story.machine.state.objects.indices.values())


def test_12_3_2_a_hundred_edits_wait_as_one(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.update(KIND, registry=registry)
    async def update(spec: Any, **_: Any) -> None:
        diary.append(spec["size"])
        await fnop.sleep(100)

    story = Story(registry, [example(size=0)])
    story.settle()
    for size in range(1, 101):
        story.edit(KIND, spec={"size": size}).settle(seconds=0.1)
    (known,) = story.machine.state.objects.records.values()
    assert known.work is not None
    assert len(known.work.pending_events) == 0
    assert len(known.shown) < 50
    assert story.settle()
    assert diary == [1, 100]


def test_12_3_3_kubernetes_events_are_bounded(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        return [fnop.event("Noise", f"number {number}") for number in range(1000)]

    story = Story(registry, [example()])
    assert story.settle()
    assert story.sent.count("POST events") == 25
    assert story.machine.state.notes.failures == 0


def test_12_3_4_many_objects_do_not_mean_many_requests_at_a_time(
    registry: Registry, diary: list[Any]
) -> None:
    class Counting(Story):
        waiting = 0

        def perform(self, command: Any) -> None:
            self.waiting += isinstance(command, Perform)
            super().perform(command)

        def take(self, place: int = 0) -> Any:
            answered = getattr(self.inbox[0].input, "id", None)
            self.waiting -= answered is not None
            diary.append(self.waiting)
            return super().take(place)

    @fnop.on.create(KIND, registry=registry, id="create")
    def create(name: str, **_: Any) -> str:
        return name

    story = Counting(
        registry,
        [example(f"e{number}") for number in range(200)],
        settings=Settings(request_concurrency=7),
    )
    assert story.settle()
    assert len(story.sent) == 200
    assert max(diary) <= 7


def test_12_3_5_a_listing_comes_in_pages(registry: Registry, diary: list[Any]) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> None:
        diary.append(name)

    manifests = [example(f"e{number}") for number in range(5)]
    story = Story(registry, manifests, settings=Settings(list_page_limit=2))
    assert story.settle()
    assert sorted(diary) == ["e0", "e1", "e2", "e3", "e4"]
    pages = [
        command
        for _, _, commands in story.trace.steps
        for command in commands
        if isinstance(command, ListPage)
    ]
    assert [page.limit for page in pages] == [2, 2, 2]


def test_12_3_6_records_of_removed_handlers_do_not_stay(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="removed", retries=5)
    def removed(**_: Any) -> None:
        raise fnop.TemporaryError("not yet", delay=1000)

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert "removed" in found(story)["status"][MARKER]
    later = Registry()
    fnop.on.create(KIND, registry=later, id="other")(lambda **_: None)
    story.crash(Program(later.handlers, Settings()))
    assert story.settle()
    assert "removed" not in found(story)["status"][MARKER]


def test_12_3_7_what_is_remembered_of_an_object_is_small_whatever_its_size(
    registry: Registry, diary: list[Any]
) -> None:
    """Only who asks for `old` or `diff` has the essence kept; others a digest."""

    @fnop.on.update(KIND, registry=registry)
    def update(spec: Any, **_: Any) -> None:
        diary.append(len(spec["text"]))

    story = Story(registry, [example(text="x" * 300_000)])
    assert story.settle()
    assert len(found(story)["status"][MARKER]) < 500
    story.edit(KIND, spec={"text": "y" * 400_000})
    assert story.settle()
    assert diary == [400_000]
    assert story.machine.state.notes.failures == 0
