"""Rulings on writing state, in the simulated cluster.

Each test is a story in virtual time; `test_r22_…` is about ruling R22.
"""

from functools import partial
from typing import Any

import orjson
import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.core.seam.inputs import StreamEnded, WatchEvent
from fnop.core.values.body import Body
from fnop.effects import Create, Get, Outcome, Patch, Refused, Unknown, Unreachable
from fnop.testing import plan_of
from tests.simulations import example
from tests.stories import MARKER, Fate, Story, definition, outside

KIND = "fnopexamples"
MAIN = "PATCH fnopexamples/example-1"
STATUS = "PATCH fnopexamples/example-1/status"
STREAM = "fnopexamples.v1.fnop.dev"
OPEN: dict[str, Any] = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
}
# A schema that keeps a phase, and silently drops everything else.
CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"phase": {"type": "string"}},
}


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


class Diary(list[Any]):
    """The handlers' arguments, in order: tests may read them, handlers may not."""

    def of(self, name: str) -> list[Any]:
        return [rest for each, *rest in self if each == name]


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def sizes(registry: Registry, diary: Diary) -> Registry:
    """An operator that notes creations and updates, with what was before."""

    @fnop.on.create(KIND, registry=registry, id="create")
    def create(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        diary.append(("create", spec["size"]))
        return {"size": spec["size"]}

    @fnop.on.update(KIND, registry=registry, id="update")
    def update(old: Any, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        before = old["spec"]["size"] if old else None
        diary.append(("update", before, spec["size"]))
        return {"size": spec["size"]}

    return registry


def state_of(story: Story, name: str = "example-1", kind: str = KIND) -> Any:
    """The stored state of an object, at any place; None if it is missing."""
    found = story.get(kind, name)
    assert found is not None
    text = (found.get("status") or {}).get(MARKER)
    text = text or found["metadata"].get("annotations", {}).get(MARKER)
    return None if text is None else orjson.loads(text)


def carries_state(body: Any) -> bool:
    if not isinstance(body, dict):
        return False
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    return MARKER in (body.get("status") or {}) or MARKER in annotations


# ------------------------------------------------- R18: two values for one field


def test_r18_the_later_registration_wins_with_a_warning(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="one")
    def one(**_: Any) -> fnop.Effect:
        return fnop.patch(status={"phase": "One", "shared": 1})

    @fnop.on.create(KIND, registry=registry, id="two")
    def two(**_: Any) -> fnop.Effect:
        return fnop.patch(status={"phase": "Two", "shared": 1})

    story = Story(registry, [example()])
    assert story.settle()
    assert story.status() == {"phase": "Two", "shared": 1}
    assert story.sent == [STATUS]
    (warning,) = story.said_at("warning")
    assert "/status/phase" in warning
    assert "two" in warning


def test_r18_the_order_is_that_of_registration_and_not_of_the_ends(
    registry: Registry,
) -> None:
    """The first one takes longer: it asks the API server, and ends last."""

    @fnop.on.create(KIND, registry=registry, id="one")
    async def one(**_: Any) -> fnop.Effect:
        await fnop.get("configmaps", name="x")
        await fnop.get("configmaps", name="y")
        return fnop.patch(status={"phase": "One"})

    @fnop.on.create(KIND, registry=registry, id="two")
    def two(**_: Any) -> fnop.Effect:
        return fnop.patch(status={"phase": "Two"})

    story = Story(registry, [example()])
    assert story.settle()
    assert story.sent == [STATUS]
    assert story.status() == {"phase": "Two"}


def test_r18_equal_values_are_no_matter(registry: Registry) -> None:
    for name in ("one", "two"):

        @fnop.on.create(KIND, registry=registry, id=name)
        def handler(**_: Any) -> fnop.Effect:
            return fnop.patch(status={"phase": "Same"})

    story = Story(registry, [example()])
    assert story.settle()
    assert story.said_at("warning") == []


def test_r18_two_that_patch_each_other_wait_for_nobody(registry: Registry) -> None:
    """No change of either is lost, and no handler runs again (decision 0016)."""
    runs: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    async def greet(name: str, **_: Any) -> list[fnop.Effect]:
        runs.append(name)
        await fnop.get("configmaps", name="x")
        other = "example-2" if name == "example-1" else "example-1"
        target = fnop.Target(KIND, other)
        return [
            fnop.patch(target, status={"greeted_by": name}),
            fnop.patch(status={"greets": other}),
        ]

    one, two = example(), example()
    two["metadata"]["name"] = "example-2"
    story = Story(registry, [one, two])
    assert story.settle(seconds=60)
    assert sorted(runs) == ["example-1", "example-2"]
    for name, other in (("example-1", "example-2"), ("example-2", "example-1")):
        found = story.get(KIND, name)
        assert found is not None
        assert found["status"]["greets"] == other
        assert found["status"]["greeted_by"] == other
    assert story.said_at("warning") == []


def test_r18_a_write_to_another_object_waits_for_no_conversation_of_it(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def handle(name: str, **_: Any) -> fnop.Effect | None:
        if name == "example-1":
            await fnop.sleep(1000)
            return None
        return fnop.patch(fnop.Target(KIND, "example-1"), status={"told": True})

    story = Story(registry, [example()])
    story.settle(seconds=5)
    second = example()
    second["metadata"]["name"] = "example-2"
    story.apply(second)
    story.settle(seconds=5)
    assert story.status()["told"] is True
    assert story.clock.elapsed < 100


# ------------------------------------------------------ R19: when progress is written


def writes_after_first_attempt(registry: Registry, **spec: Any) -> list[str]:
    story = Story(registry, [example(**spec)])
    story.settle(seconds=1)
    return story.sent


@pytest.mark.parametrize(
    ("options", "delay", "stored"),
    [
        ({}, 5, False),
        ({}, 59, False),
        ({}, 60, True),
        ({}, 3600, True),
        ({"retries": 5}, 5, True),
        ({"timeout": 500}, 5, True),
        ({"backoff": 5}, None, False),
        ({"backoff": 61}, None, True),
    ],
    ids=str,
)
def test_r19_a_retry_is_written_when_a_restart_depends_on_it(
    registry: Registry, options: dict[str, Any], delay: float | None, stored: bool
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create", **options)
    def create(**_: Any) -> None:
        if delay is None:
            raise RuntimeError("an arbitrary error")
        raise fnop.TemporaryError("not yet", delay=delay)

    story = Story(registry, [example()])
    story.settle(seconds=1)
    assert story.sent == ([STATUS] if stored else [])
    if stored:
        progress = state_of(story)["progress"]["create"]
        assert progress["retries"] == 1
        assert "started" in progress
        assert "seen" not in state_of(story), "nothing has been handled yet"


def test_r19_a_retry_without_need_costs_no_write_however_often(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(retry: int, **_: Any) -> None:
        diary.append(("create", retry))
        if retry < 10:
            raise fnop.TemporaryError("not yet", delay=5)

    story = Story(registry, [example()])
    assert story.settle()
    assert story.clock.elapsed == 50
    assert [retry for _, retry in diary] == list(range(11))
    assert story.sent == [STATUS], "the one that says done"


def test_r19_of_several_handlers_the_finished_ones_are_written(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="done")
    def done(**_: Any) -> None:
        diary.append(("done",))

    @fnop.on.create(KIND, registry=registry, id="retrying")
    def retrying(**_: Any) -> None:
        diary.append(("retrying",))
        if len(diary.of("retrying")) < 4:
            raise fnop.TemporaryError("not yet", delay=5)

    story = Story(registry, [example()])
    story.settle(seconds=1)
    assert list(state_of(story)["progress"]) == ["done"]
    story.settle(seconds=6)
    assert story.sent == [STATUS], "further retries cost nothing"
    story.crash()
    assert story.settle()
    assert len(diary.of("done")) == 1
    assert story.sent == [STATUS, STATUS]
    assert "progress" not in state_of(story)


def test_r19_stored_limits_hold_across_restarts(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create", retries=4)
    def create(retry: int, **_: Any) -> None:
        diary.append(("create", retry))
        raise fnop.TemporaryError("not yet", delay=5)

    story = Story(registry, [example()])
    for _ in range(6):
        story.settle(seconds=6)
        story.crash()
    assert story.settle()
    assert [retry for _, retry in diary] == [0, 1, 2, 3]


def test_r19_a_stored_delay_holds_across_a_restart(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(retry: int, **_: Any) -> None:
        diary.append(("create", story.clock.elapsed))
        if retry == 0:
            raise fnop.TemporaryError("not yet", delay=100)

    story = Story(registry, [example()])
    story.settle(seconds=10)
    story.crash()
    assert story.settle()
    assert diary == [("create", 0.0), ("create", 100.0)]


# -------------------------------------------------------------- R20: order of writes


def test_r20_finalizer_children_own_write_and_the_removal_alone_and_last(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> list[fnop.Effect]:
        return [
            fnop.patch(labels={"a": "1"}, status={"phase": "Ready"}),
            fnop.adopt(config("child")),
            fnop.event("Created"),
        ]

    @fnop.on.delete(KIND, registry=registry, id="delete")
    def delete(**_: Any) -> list[fnop.Effect]:
        return [
            fnop.patch(status={"phase": "Ending"}),
            fnop.delete("configmaps", name="child"),
        ]

    story = Story(registry, [example()])
    assert story.settle()
    assert story.sent == [
        MAIN,
        "POST configmaps",
        "POST events",
        MAIN,
        STATUS,
    ]
    assert list(story.bodies[0][1]) == ["metadata"]
    assert story.bodies[0][1]["metadata"]["finalizers"] == [MARKER]
    assert carries_state(story.bodies[-1][1]), "the one that says done is the last"
    assert not any(carries_state(body) for _, body in story.bodies[:-1])

    begun = len(story.sent)
    assert story.delete(KIND).settle()
    assert story.sent[begun:] == ["DELETE configmaps/child", STATUS, MAIN]
    removal = story.bodies[-1][1]
    assert set(removal) == {"metadata"}
    assert set(removal["metadata"]) == {"finalizers", "resourceVersion"}
    assert story.get(KIND) is None


def test_r20_nothing_leaves_before_the_finalizer_is_shown(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> list[fnop.Effect]:
        diary.append(("create",))
        return [fnop.create(config("child"))]

    @fnop.on.delete(KIND, registry=registry, id="delete")
    def delete(**_: Any) -> None:
        pass

    def busy(story: Story, command: Perform) -> Outcome | None:
        if story.clock.elapsed < 10:
            return Unreachable("the server is busy")
        return None

    story = Story(registry, [example()])
    story.fate = busy
    story.settle(seconds=9)
    assert diary == []
    assert story.sent == []
    assert story.settle()
    assert story.sent == [MAIN, "POST configmaps", STATUS]


def test_r20_other_finalizers_stay_where_they_are(registry: Registry) -> None:
    @fnop.on.delete(KIND, registry=registry, id="delete")
    def delete(**_: Any) -> None:
        pass

    manifest = example()
    manifest["metadata"]["finalizers"] = ["example.com/one", "example.com/two"]
    story = Story(registry, [manifest])
    assert story.settle()
    assert story.bodies[0][1]["metadata"]["finalizers"] == [
        "example.com/one",
        "example.com/two",
        MARKER,
    ]
    assert story.delete(KIND).settle()
    found = story.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["example.com/one", "example.com/two"]
    assert story.settle()
    assert story.sent == [MAIN, MAIN]


def test_r20_a_rival_s_finalizer_is_not_overwritten(registry: Registry) -> None:
    """Lists are written whole: a resourceVersion guards them."""

    @fnop.on.delete(KIND, registry=registry, id="delete")
    def delete(**_: Any) -> None:
        pass

    def contested(story: Story, command: Perform) -> Outcome | None:
        if not story.requests and isinstance(command.effect, Patch):
            story.edit(KIND, metadata={"finalizers": ["example.com/rival"]})
        return None

    story = Story(registry, [example()])
    story.fate = contested
    assert story.settle()
    found = story.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["example.com/rival", MARKER]


# ------------------------------------------- R21: versions, and whose state it is


def test_r21_whatever_carries_state_carries_the_version_it_was_made_for(
    sizes: Registry,
) -> None:
    story = Story(sizes, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle()
    story.edit(KIND, spec={"size": 3}, metadata={"labels": {"a": "1"}}).settle()
    bearing = [body for _, body in story.bodies if carries_state(body)]
    assert len(bearing) == 3
    for body in bearing:
        assert body["metadata"]["resourceVersion"]


def test_r21_stored_state_names_the_object(sizes: Registry) -> None:
    story = Story(sizes, [example(size=1)])
    story.settle()
    found = story.get(KIND)
    assert found is not None
    assert state_of(story)["uid"] == found["metadata"]["uid"]


@pytest.mark.parametrize("home", ["status", "annotation"])
def test_r21_the_state_of_another_object_is_no_state(
    sizes: Registry, diary: Diary, home: str
) -> None:
    """As after a backup was restored, or a copy applied with all its annotations."""
    text = '{"seen":{"":"1:abc"},"uid":"another","v":1}'
    manifest = example(size=1)
    if home == "annotation":
        manifest["metadata"]["annotations"] = {MARKER: text}
    story = Story(sizes)
    story.settle()
    story.late_events = True
    story.apply(manifest)
    if home == "status":
        story.user_sets_status({MARKER: text})
    story.let_events_through()
    assert story.settle()
    assert diary == [("create", 1)]
    found = story.get(KIND)
    assert found is not None
    assert state_of(story)["uid"] == found["metadata"]["uid"]
    story.crash()
    assert story.settle()
    assert diary == [("create", 1)]


def test_r21_a_write_does_not_land_on_a_namesake(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        diary.append(("create", spec["size"]))
        return {"size": spec["size"]}

    def replaced(story: Story, command: Perform) -> Outcome | None:
        if not story.requests:
            story.late_events = True
            story.delete(KIND).apply(example(size=2))
        return None

    story = Story(registry, [example(size=1)])
    story.fate = replaced
    while story.advance(1.0):
        assert story.status().get("create") != {"size": 1}, "that was for another one"
    story.let_events_through()
    assert story.settle()
    assert diary == [("create", 1), ("create", 2)]
    assert story.status() == {"create": {"size": 2}}


def test_r21_nor_does_a_patch_without_state(registry: Registry, diary: Diary) -> None:
    """A deletion handler alone: nothing is remembered, and results still bind."""

    @fnop.on.event(KIND, registry=registry, id="spy")
    def spy(spec: dict[str, Any], type: str | None, **_: Any) -> fnop.Effect | None:
        if type == "DELETED":
            return None
        return fnop.patch(status={"size": spec["size"]})

    def replaced(story: Story, command: Perform) -> Outcome | None:
        if not story.requests:
            story.late_events = True
            story.delete(KIND).apply(example(size=2))
        return None

    story = Story(registry, [example(size=1)])
    story.fate = replaced
    while story.advance(1.0):
        assert story.status().get("size") != 1, "that was for another one"
    story.let_events_through()
    assert story.settle()
    assert story.status() == {"size": 2}


def test_r21_nor_does_the_patch_of_a_spy_that_was_slow(registry: Registry) -> None:
    """It looked at the one before; by now there is another one of its name."""

    @fnop.on.event(KIND, registry=registry, id="spy")
    async def spy(
        spec: dict[str, Any], type: str | None, **_: Any
    ) -> fnop.Effect | None:
        if type == "DELETED":
            return None
        await fnop.sleep(10)
        return fnop.patch(status={f"saw-{spec['size']}": True})

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    story.delete(KIND).apply(example(size=2))
    story.settle(seconds=100)
    assert story.status() == {"saw-2": True}


# ------------------------------------------------------ R22: conflict on a fused write


def rivals(*changes: dict[str, Any]) -> Fate:
    """Edit the object as another client, before each first write of the operator."""
    left = list(changes)

    def fate(story: Story, command: Perform) -> Outcome | None:
        if left and isinstance(command.effect, Patch):
            story.edit(KIND, **left.pop(0))
        return None

    return fate


def test_r22_a_rival_s_label_costs_a_request_and_not_a_run(
    sizes: Registry, diary: Diary
) -> None:
    story = Story(sizes, [example(size=1)])
    story.fate = rivals({"metadata": {"labels": {"rival": "1"}}})
    assert story.settle()
    assert diary.of("create") == [[1]]
    assert story.status()["create"] == {"size": 1}
    assert story.sent[:2] == [STATUS, STATUS]
    assert story.read_paths == ["fnopexamples/example-1"]
    found = story.get(KIND)
    assert found is not None
    assert found["metadata"]["labels"] == {"rival": "1"}


def test_r22_a_rival_s_change_of_spec_is_seen_as_an_update(
    sizes: Registry, diary: Diary
) -> None:
    story = Story(sizes, [example(size=1)])
    story.fate = rivals({"spec": {"size": 2}})
    assert story.settle()
    assert diary == [("create", 1), ("update", 1, 2)]
    assert story.status() == {"create": {"size": 1}, "update": {"size": 2}}
    story.crash()
    assert story.settle()
    assert len(diary) == 2


def test_r22_rivals_without_end_are_met_with_patience(
    sizes: Registry, diary: Diary
) -> None:
    story = Story(sizes, [example(size=1)])
    story.fate = rivals(
        *({"metadata": {"labels": {"rival": str(number)}}} for number in range(12))
    )
    assert story.settle()
    assert diary.of("create") == [[1]]
    assert story.status()["create"] == {"size": 1}
    assert story.clock.elapsed > 10, "not all of them at once"


def test_r22_json_operations_are_made_anew_on_the_fresh_object(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> fnop.Effect:
        diary.append(("create",))
        return fnop.patch(json=[{"op": "add", "path": "/spec/items/-", "value": "b"}])

    story = Story(registry, [example(items=["a"])])
    story.fate = rivals({"spec": {"items": ["a", "rival"]}})
    assert story.settle()
    found = story.get(KIND)
    assert found is not None
    assert found["spec"]["items"] == ["a", "rival", "b"]
    assert diary == [("create",)]


# --------------------------------------------------------- functions as patches


def test_r22_k_5_3_a_function_is_called_anew_with_the_fresh_object(
    registry: Registry, diary: Diary
) -> None:
    def add(body: dict[str, Any]) -> None:
        diary.append(("add", body["spec"]["items"][:]))
        body["spec"]["items"].append("b")
        body.setdefault("status", {})["count"] = len(body["spec"]["items"])

    @fnop.on.create(KIND, registry=registry, id="create")
    def create(patch: fnop.Patch, **_: Any) -> None:
        diary.append(("create",))
        patch.status["phase"] = "Adding"
        patch.fns.append(add)

    story = Story(registry, [example(items=["a"])])
    story.fate = rivals({"spec": {"items": ["a", "rival"]}})
    assert story.settle()
    found = story.get(KIND)
    assert found is not None
    assert found["spec"]["items"] == ["a", "rival", "b"]
    assert diary.of("create") == [[]]
    assert diary.of("add")[:2] == [[["a"]], [["a", "rival"]]]
    sent = [each.effect for _, each in story.trace.performed]
    patches = [each for each in sent if isinstance(each, Patch)]
    assert all("resourceVersion" in each.merge["metadata"] for each in patches)
    assert patches[0].merge["spec"] == {"items": ["a", "b"]}


def test_k_5_3_functions_come_after_fields_and_one_after_the_other(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(patch: fnop.Patch, **_: Any) -> None:
        patch.fns.append(lambda body: body["status"]["seen"].append("one"))
        patch.fns.append(partial(see, word="two"))
        patch.status["seen"] = ["field"]

    def see(body: dict[str, Any], word: str) -> None:
        body["status"]["seen"].append(word)

    story = Story(registry, [example()])
    assert story.settle()
    assert story.status()["seen"] == ["field", "one", "two"]
    assert story.sent == [STATUS]


def test_k_5_3_a_function_that_changes_nothing_costs_nothing(
    registry: Registry,
) -> None:
    @fnop.on.event(KIND, registry=registry)
    def look(patch: fnop.Patch, **_: Any) -> None:
        patch.fns.append(lambda body: body["metadata"].setdefault("labels", None))

    story = Story(registry, [example()])
    assert story.settle()
    assert story.sent == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda body: body["spec"]["missing"].append(1), "KeyError: 'missing'"),
        (lambda body: body.update(spec=object()), "object is not a JSON value"),
        (lambda body: body.update(metadata=None), "a patch must leave metadata"),
    ],
)
def test_k_5_3_a_function_that_fails_fails_the_attempt(
    registry: Registry, change: Any, problem: str
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create", retries=1)
    def create(patch: fnop.Patch, **_: Any) -> None:
        patch.fns.append(change)

    @fnop.on.create(KIND, registry=registry, id="other")
    def other(**_: Any) -> dict[str, Any]:
        return {"done": True}

    story = Story(registry, [example()])
    assert story.settle()
    assert story.machine.state.notes.failures == 1
    assert any(problem in line for line in story.said_at("error"))
    assert story.status()["other"] == {"done": True}


async def pausing(body: dict[str, Any]) -> None:
    """No function that can be called here."""


@pytest.mark.parametrize("change", [pausing, {"spec": {}}])
def test_k_5_3_what_is_no_plain_function_is_refused(
    registry: Registry, change: Any
) -> None:
    @fnop.on.create(KIND, registry=registry, retries=1)
    def create(patch: fnop.Patch, **_: Any) -> None:
        patch.fns.append(change)

    story = Story(registry, [example()])
    assert story.settle()
    assert any("patch.fns takes plain functions" in e for e in story.said_at("error"))


def test_k_5_3_a_plan_shows_what_a_function_changes(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(patch: fnop.Patch, **_: Any) -> None:
        patch.spec["size"] = 2
        patch.fns.append(lambda body: body["spec"].pop("old"))
        patch.fns.append(lambda body: body["spec"].setdefault("size", 5))

    plan = plan_of(create, example(old=1), registry=registry)
    assert plan.patched == {"spec": {"size": 2, "old": None}}


def test_r22_a_rival_s_write_of_the_same_field_loses(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> fnop.Effect:
        return fnop.patch(labels={"who": "operator"})

    story = Story(registry, [example()])
    story.fate = rivals({"metadata": {"labels": {"who": "rival"}}})
    assert story.settle()
    found = story.get(KIND)
    assert found is not None
    assert found["metadata"]["labels"] == {"who": "operator"}


def test_r22_a_write_that_reaches_nobody_is_repeated_and_the_handler_is_not(
    sizes: Registry, diary: Diary
) -> None:
    story = Story(sizes, [example(size=1)])
    story.fate = lambda story, _: (
        Unreachable("no network") if story.clock.elapsed < 100 else None
    )
    assert story.settle()
    assert diary == [("create", 1)]
    assert story.status() == {"create": {"size": 1}}
    assert len(story.said_at("warning")) in range(1, 5), "and the log is not flooded"


def test_r22_a_deletion_meanwhile_ends_the_write(sizes: Registry, diary: Diary) -> None:
    def deleted(story: Story, command: Perform) -> Outcome | None:
        if not story.requests:
            story.delete(KIND)
        return None

    story = Story(sizes, [example(size=1)])
    story.fate = deleted
    assert story.settle()
    assert not story.machine.state.objects.records
    assert story.machine.state.notes.failures == 0


# ------------------------------------------------------ writes that are refused


def refusing(*words: str) -> Fate:
    """A schema that does not take what has one of these words in it."""

    def fate(story: Story, command: Perform) -> Outcome | None:
        if isinstance(command.effect, Patch):
            text = orjson.dumps(command.effect.merge).decode()
            for word in words:
                if word in text:
                    return Refused(422, "that is no good", "Invalid")
        return None

    return fate


def test_a_patch_that_is_refused_fails_the_attempt_of_its_author(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="guilty", retries=2, backoff=5)
    def guilty(retry: int, **_: Any) -> fnop.Effect:
        diary.append(("guilty", retry))
        return fnop.patch(status={"phase": "Odd"})

    @fnop.on.create(KIND, registry=registry, id="innocent")
    def innocent(**_: Any) -> dict[str, Any]:
        diary.append(("innocent",))
        return {"done": True}

    story = Story(registry, [example()])
    story.fate = refusing('"phase":"Odd"')
    assert story.settle()
    assert diary == [("guilty", 0), ("innocent",), ("guilty", 1)]
    assert story.clock.elapsed == 5
    assert story.status() == {"innocent": {"done": True}}
    assert story.machine.state.notes.failures == 1
    assert any("that is no good" in line for line in story.said_at("error"))
    story.crash()
    assert story.settle()
    assert len(diary) == 3, "and that it failed for good is remembered"


def test_a_state_that_is_refused_everywhere_is_kept_in_memory(
    sizes: Registry, diary: Diary
) -> None:
    story = Story(sizes, [example(size=1)])
    story.fate = refusing('\\"seen\\"')
    story.settle(seconds=300)
    assert diary == [("create", 1)], "it is not run again for that"
    assert story.status()["create"] == {"size": 1}
    assert state_of(story) is None
    story.edit(KIND, spec={"size": 2}).settle(seconds=300)
    assert diary == [("create", 1), ("update", 1, 2)]
    story.fate = refusing()
    assert story.settle(), "and tried again, until it is taken"
    assert state_of(story)["seen"]
    assert len(diary) == 2


def test_a_patch_that_a_rival_makes_impossible_fails_its_author(
    registry: Registry, diary: Diary
) -> None:
    """The status request of the write meets a conflict, and then cannot be made."""

    @fnop.on.create(KIND, registry=registry, id="guilty", retries=2, backoff=5)
    def guilty(retry: int, **_: Any) -> list[fnop.Effect]:
        diary.append(("guilty", retry))
        step = {"op": "remove", "path": "/status/draft"}
        return [fnop.patch(labels={"seen": "yes"}), fnop.patch(json=[step])]

    story = Story(registry, [example(status={"draft": 1})])

    def rival(story: Story, command: Perform) -> Outcome | None:
        patch = command.effect
        if isinstance(patch, Patch) and patch.subresource and not meddled:
            meddled.append(True)
            story.edit(KIND, status={"draft": None})
        return None

    meddled: list[bool] = []
    story.fate = rival
    assert story.settle()
    assert diary == [("guilty", 0), ("guilty", 1)]
    assert any("guilty" in line for line in story.said_at("error"))


# ------------------------------------------- R23: awaited own patch, then the fused one


def conversation(registry: Registry, diary: Diary) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        diary.append(("begins", spec["size"]))
        shown = await fnop.patch(status={"phase": "Working"}, labels={"a": "1"})
        diary.append(("shown", shown.status["phase"], shown.labels["a"]))
        await fnop.sleep(10)
        diary.append(("ends",))
        return {"size": spec["size"]}


@pytest.mark.parametrize("late", [False, True], ids=["echo first", "answer first"])
def test_r23_the_fused_write_is_based_on_the_answer_of_the_awaited_one(
    registry: Registry, diary: Diary, late: bool
) -> None:
    conversation(registry, diary)
    story = Story(registry, [example(size=1)])
    story.settle(seconds=0)
    story.late_events = late
    while not diary:
        story.advance(1.0)
    for _ in range(20):
        story.settle(seconds=1)
        if late and story.events:
            story.let_events_through(1)
    story.let_events_through()
    assert story.settle()
    assert diary == [("begins", 1), ("shown", "Working", "1"), ("ends",)]
    assert story.sent == [MAIN, STATUS, STATUS]
    assert story.read_paths == [], "no conflict had to be resolved"
    assert story.status() == {"phase": "Working", "create": {"size": 1}}
    assert "phase" not in story.bodies[2][1]["status"], "that is there already"


def test_r23_it_is_so_without_any_pause_between_the_two(registry: Registry) -> None:
    """The watch has shown nothing yet: only the answer contains the base version."""

    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(**_: Any) -> dict[str, Any]:
        await fnop.patch(status={"phase": "Working"}, labels={"a": "1"})
        return {"done": True}

    story = Story(registry)
    story.settle()
    story.apply(example())
    story.late_events = True
    story.settle(seconds=1)
    story.let_events_through()
    assert story.settle()
    assert story.sent == [MAIN, STATUS, STATUS]
    assert story.read_paths == [], "no conflict had to be resolved"
    assert story.status() == {"phase": "Working", "create": {"done": True}}


def test_r23_repeated_after_a_crash_it_is_a_no_op(
    registry: Registry, diary: Diary
) -> None:
    conversation(registry, diary)
    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    found = story.get(KIND)
    assert found is not None
    version = found["metadata"]["resourceVersion"]
    story.crash()
    story.settle(seconds=5)
    again = story.get(KIND)
    assert again is not None
    assert again["metadata"]["resourceVersion"] == version
    assert story.settle()
    assert story.status() == {"phase": "Working", "create": {"size": 1}}


def test_r23_its_own_echo_is_no_update(registry: Registry, diary: Diary) -> None:
    conversation(registry, diary)

    @fnop.on.update(KIND, registry=registry, id="update", field="spec")
    def update(old: Any, new: Any, **_: Any) -> None:
        diary.append(("update", old, new))

    story = Story(registry, [example(size=1)])
    assert story.settle()
    assert diary.of("update") == []


# --------------------------------------------- R24: what ends waiting for an echo


def written(sizes: Registry) -> Story:
    """A story whose own write is done, and not shown by the watch yet."""
    story = Story(sizes)
    story.settle()
    story.apply(example(size=1))
    story.late_events = True
    story.settle(seconds=0.1)
    assert story.sent == [STATUS]
    assert len(story.events) == 1
    return story


def test_r24_the_version_ends_it(sizes: Registry, diary: Diary) -> None:
    story = written(sizes)
    story.edit(KIND, spec={"size": 2})
    story.settle(seconds=1)
    assert diary == [("create", 1)], "not before the echo"
    story.let_events_through(1)
    story.settle(seconds=0.1)
    assert story.sent == [STATUS]
    story.let_events_through()
    story.settle(seconds=0.1)
    assert diary == [("create", 1), ("update", 1, 2)]
    assert story.read_paths == []


def test_r24_an_older_event_ends_nothing_and_is_not_believed(
    sizes: Registry, diary: Diary
) -> None:
    story = Story(sizes)
    story.settle()
    story.apply(example(size=1))
    story.late_events = True
    story.edit(KIND, spec={"size": 2}).edit(KIND, spec={"size": 1})
    story.settle(seconds=0.1)
    assert state_of(story) is not None
    # Two edits of a user, and then the operator's own write.
    assert len(story.events) == 3
    story.let_events_through(1)
    story.settle(seconds=0.1)
    assert diary == [("create", 1)], "size 2 is history"
    story.let_events_through()
    assert story.settle()
    assert diary == [("create", 1)]


def test_r24_a_listing_begun_after_the_answer_ends_it(
    sizes: Registry, diary: Diary
) -> None:
    story = written(sizes)
    story.edit(KIND, spec={"size": 2})
    story.lose_events()
    story.feed(StreamEnded(story.streams[STREAM], "refused", 410, "too old"))
    story.settle(seconds=0.1)
    assert diary == [("create", 1), ("update", 1, 2)]
    assert story.read_paths == [], "no live read was needed"


def test_r24_a_listing_begun_before_the_answer_does_not(
    sizes: Registry, diary: Diary
) -> None:
    """Its items are older than the write, so they would show the object undone."""
    story = Story(sizes)
    story.settle()
    story.late_events = story.late_lists = True
    story.apply(example(size=1))
    story.feed(StreamEnded(story.streams[STREAM], "refused", 410, "too old"))
    story.settle(seconds=0.1)
    assert story.lists, "a listing that shows the object as it was created"
    before = tuple(story.lists)
    story.lists.clear()
    story.late_lists = False
    # The object becomes known, and is handled, before that listing arrives.
    number = story.streams[STREAM]
    story.feed(WatchEvent(number, "ADDED", Body(story.get(KIND))))
    story.settle(seconds=0.1)
    assert diary == [("create", 1)]
    assert story.sent == [STATUS]
    story.feed(*before)
    story.settle(seconds=0.1)
    assert diary == [("create", 1)]
    assert story.sent == [STATUS]
    story.lose_events()


def test_r24_a_later_version_ends_it(sizes: Registry, diary: Diary) -> None:
    """A listing lacks the written version if another one has come after it."""
    story = written(sizes)
    story.lose_events()
    story.edit(KIND, spec={"size": 2})
    story.lose_events()
    number = story.streams[STREAM]
    story.feed(WatchEvent(number, "MODIFIED", Body(story.get(KIND))))
    story.settle(seconds=0.1)
    assert diary == [("create", 1), ("update", 1, 2)]
    assert story.read_paths == [], "no live read was needed"


def test_r24_the_deletion_of_the_object_ends_it(sizes: Registry, diary: Diary) -> None:
    story = written(sizes)
    story.delete(KIND)
    story.events.popleft()  # the echo itself never comes
    story.let_events_through(1)
    story.settle(seconds=0.1)
    assert not story.machine.state.objects.records
    story.apply(example(size=7))
    story.let_events_through()
    story.settle(seconds=0.1)
    assert diary == [("create", 1), ("create", 7)]


def test_r24_an_answer_that_changed_nothing_is_its_own_echo(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(**_: Any) -> dict[str, Any]:
        await fnop.patch(spec={"size": 1})
        return {"done": True}

    story = Story(registry)
    story.settle()
    story.apply(example(size=1))
    story.late_events = True
    story.settle(seconds=1)
    assert story.sent == [MAIN, STATUS]
    assert story.sent_at == [0.0, 0.0], "nothing was waited for"


def test_r24_when_the_bound_passes_it_looks_and_never_acts_blindly(
    sizes: Registry, diary: Diary
) -> None:
    story = written(sizes)
    story.edit(KIND, spec={"size": 2})
    story.settle(seconds=4)
    assert diary == [("create", 1)]
    assert story.read_paths == []
    story.settle(seconds=2)
    assert story.read_paths[:1] == ["fnopexamples/example-1"]
    assert diary == [("create", 1), ("update", 1, 2)]


def test_r24_a_look_that_fails_is_repeated(sizes: Registry, diary: Diary) -> None:
    story = written(sizes)
    story.edit(KIND, spec={"size": 2})
    story.fate = lambda story, command: (
        Unreachable("no network") if story.clock.elapsed < 60 else None
    )
    story.settle(seconds=50)
    assert diary == [("create", 1)], "what is not known is not acted upon"
    story.settle(seconds=30)
    assert diary == [("create", 1), ("update", 1, 2)]


def test_r24_a_look_that_finds_nothing_forgets_the_object(
    sizes: Registry, diary: Diary
) -> None:
    story = written(sizes)
    story.delete(KIND)
    story.lose_events()
    story.settle(seconds=20)
    assert story.machine.state.objects.records, "one answer may be wrong"
    story.settle(seconds=100)
    assert diary == [("create", 1)]
    assert not story.machine.state.objects.records


def test_r24_no_timer_begins_for_an_object_that_is_said_to_be_gone() -> None:
    registry, runs = Registry(), []

    @fnop.timer(KIND, interval=20, finalizer=False, registry=registry, id="writes")
    def writes(now: Any, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"at": str(now)})

    @fnop.timer(KIND, interval=5, finalizer=False, registry=registry, id="ticks")
    def ticks(**_: Any) -> None:
        runs.append(1)

    story = Story(registry, [example()])
    story.wait(12)
    story.late_events = True
    story.delete(KIND)
    story.lose_events()
    story.wait(10)
    assert story.said_at("error") == []
    last = len(runs)
    story.wait(60)
    assert len(runs) == last, "a write has been told that the object is gone"
    story.wait(60)
    assert not story.machine.state.objects.records


def test_r24_a_look_that_finds_a_namesake_takes_it_for_one(
    sizes: Registry, diary: Diary
) -> None:
    story = written(sizes)
    story.delete(KIND).apply(example(size=7))
    story.settle(seconds=20)
    story.let_events_through()
    assert story.settle()
    assert diary == [("create", 1), ("create", 7)]
    assert story.status() == {"create": {"size": 7}}


# ------------------------------------------------------------ R25: the place of state


def test_r25_a_status_that_is_kept_holds_it_in_one_write(sizes: Registry) -> None:
    story = Story(sizes, [example(size=1)])
    assert story.settle()
    assert story.sent == [STATUS]
    found = story.get(KIND)
    assert found is not None
    assert MARKER in found["status"]
    assert "annotations" not in found["metadata"]


def test_r25_a_schema_that_prunes_it_costs_one_write_more_once(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(name: str, **_: Any) -> fnop.Effect:
        diary.append(("create", name))
        return fnop.patch(status={"phase": "Ready"})

    story = Story(registry, [example("a")], crd=definition(status=CLOSED))
    assert story.settle()
    assert story.sent == ["PATCH fnopexamples/a/status", "PATCH fnopexamples/a"]
    assert story.apply(example("b")).settle()
    # The kind is known by now: state on the main endpoint, and that is the last.
    assert story.sent[2:] == ["PATCH fnopexamples/b/status", "PATCH fnopexamples/b"]
    for name in "ab":
        found = story.get(KIND, name)
        assert found is not None
        assert found["status"] == {"phase": "Ready"}
        assert MARKER in found["metadata"]["annotations"]
    assert diary == [("create", "a"), ("create", "b")]
    story.crash()
    assert story.settle()
    assert len(diary) == 2
    assert len(story.sent) == 4


def test_r25_a_kind_known_to_prune_costs_no_more_writes_than_others(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> None:
        pass

    story = Story(registry, [example("a")], crd=definition(status=CLOSED))
    assert story.settle()
    assert story.apply(example("b")).settle()
    assert story.sent == ["PATCH fnopexamples/a", "PATCH fnopexamples/b"]


def test_r25_results_without_a_home_go_with_the_state_and_one_warning(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(name: str, **_: Any) -> dict[str, Any]:
        return {"name": name}

    manifests = [example("a"), example("b")]
    story = Story(registry, manifests, crd=definition(status=CLOSED))
    assert story.settle()
    for name in "ab":
        assert state_of(story, name)["results"] == {"create": {"name": name}}
    (warning,) = story.said_at("warning")
    assert "create" in warning
    assert MARKER in warning


def test_what_the_server_drops_of_a_handler_s_patch_is_told_once(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> Any:
        return fnop.patch(status={"phase": "Ready", "seen": {"by": 1, "not": None}})

    manifests = [example("a"), example("b")]
    story = Story(registry, manifests, crd=definition(status=CLOSED))
    assert story.settle()
    (warning,) = story.said_at("warning")
    assert "create writes /status/seen, which the API server does not keep" in warning


def test_r25_without_a_status_subresource_it_is_an_annotation_in_one_write(
    sizes: Registry, diary: Diary
) -> None:
    crd = definition(subresource=False)
    story = Story(sizes, [example(size=1)], crd=crd)
    assert story.settle()
    assert story.sent == [MAIN]
    found = story.get(KIND)
    assert found is not None
    assert found["status"] == {"create": {"size": 1}}
    assert MARKER in found["metadata"]["annotations"]
    story.crash()
    assert story.edit(KIND, spec={"size": 2}).settle()
    assert diary == [("create", 1), ("update", 1, 2)]


def test_r25_kinds_of_kubernetes_get_an_annotation(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create("pods", registry=registry, id="create")
    def create(**_: Any) -> dict[str, Any]:
        diary.append(("create",))
        return {"done": True}

    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    story = Story(registry, [pod])
    assert story.settle()
    assert story.sent == ["PATCH pods/p"]
    assert state_of(story, "p", "pods")["results"] == {"create": {"done": True}}
    assert len(story.said_at("warning")) == 1
    story.crash()
    assert story.settle()
    assert diary == [("create",)]


def test_r25_kinds_without_any_status_too(registry: Registry, diary: Diary) -> None:
    @fnop.on.create("configmaps", registry=registry, id="create", labels={"mine": "1"})
    def create(**_: Any) -> None:
        diary.append(("create",))

    manifest = config("one")
    manifest["metadata"] |= {"namespace": "default", "labels": {"mine": "1"}}
    story = Story(registry, [manifest])
    assert story.settle()
    assert story.sent == ["PATCH configmaps/one"]
    story.crash()
    assert story.settle()
    assert diary == [("create",)]


@pytest.mark.parametrize("found_in", ["status", "annotation"])
def test_r25_state_is_read_in_either_place(
    sizes: Registry, diary: Diary, found_in: str
) -> None:
    """The schema may have been opened or closed since it was written."""
    kept = found_in == "status"
    story = Story(sizes, [example(size=1)], crd=definition(status=OPEN))
    assert story.settle()
    if not kept:
        found = story.get(KIND)
        assert found is not None
        text = found["status"][MARKER]
        story.crash()
        story.user_sets_status({MARKER: None})
        story.edit(KIND, metadata={"annotations": {MARKER: text}})
    else:
        story.crash()
    assert story.settle()
    assert diary == [("create", 1)]
    assert story.edit(KIND, spec={"size": 2}).settle()
    assert diary == [("create", 1), ("update", 1, 2)]
    story.crash()
    assert story.settle()
    assert len(diary) == 2, "what was written last counts"


def test_r25_vanished_state_is_written_again(sizes: Registry, diary: Diary) -> None:
    story = Story(sizes, [example(size=1)])
    story.settle()
    before = state_of(story)
    story.user_sets_status({MARKER: None})
    assert state_of(story) is None
    assert story.settle()
    assert state_of(story) == before
    assert diary == [("create", 1)]


def test_r25_a_status_that_somebody_replaces_is_no_new_object(
    sizes: Registry, diary: Diary
) -> None:
    """Status is PUT whole by clients that do not know the field."""
    story = Story(sizes, [example(size=1)])
    story.settle()
    story.user_sets_status({MARKER: None, "create": None, "phase": "Mine"})
    story.edit(KIND, spec={"size": 2})
    assert story.settle()
    assert diary == [("create", 1), ("update", 1, 2)]
    assert story.status()["phase"] == "Mine"


@pytest.mark.parametrize(
    "text",
    ['{"v":99,"new":"form"}', "{", "[]", '{"v":1,"uid":"UID","seen":[1]}'],
    ids=["newer", "cut off", "something else", "malformed"],
)
def test_r25_state_that_cannot_be_read_is_left_and_is_no_creation(
    sizes: Registry, diary: Diary, text: str
) -> None:
    @fnop.on.resume(KIND, registry=sizes, id="resume")
    def resume(**_: Any) -> None:
        diary.append(("resume",))

    story = Story(sizes)
    story.settle()
    story.crash()
    created = story.apply(example(size=1)).get(KIND)
    assert created is not None
    text = text.replace("UID", created["metadata"]["uid"])
    story.edit(KIND, metadata={"annotations": {MARKER: text}})
    assert story.settle()
    assert diary == [("resume",)], "it was handled before; how is not known"
    assert any("cannot be read" in line for line in story.said_at("warning"))

    assert story.edit(KIND, spec={"size": 2}).settle()
    assert diary[1:] == [("update", 1, 2)], "what changes from now on is seen"
    story.crash()
    assert story.settle()
    found = story.get(KIND)
    assert found is not None
    assert found["metadata"]["annotations"][MARKER] == text
    assert MARKER not in found.get("status", {})
    assert diary.of("create") == []


# -------------------------------------------------------------- R28: unknown outcomes


def unknown(kind: type, *, applied: bool, times: int = 1) -> Fate:
    """The first requests of a kind are answered by silence."""
    left = [times]

    def fate(story: Story, command: Perform) -> Outcome | None:
        if not isinstance(command.effect, kind) or not left[0]:
            return None
        left[0] -= 1
        if applied:
            return story.applied_but_unknown(command)
        return Unknown("the connection broke")

    return fate


@pytest.mark.parametrize("applied", [True, False])
def test_r28_a_create_is_looked_for_before_its_author_is_answered(
    registry: Registry, diary: Diary, applied: bool
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(**_: Any) -> None:
        found = await fnop.create(config("one"))
        diary.append(("created", found.name))

    story = Story(registry, [example()])
    story.fate = unknown(Create, applied=applied)
    assert story.settle()
    assert diary == [("created", "one")]
    assert len(story.objects("configmaps")) == 1
    assert story.read_paths == ["configmaps/one"]


@pytest.mark.parametrize("applied", [True, False])
def test_r28_an_adopted_child_is_created_once(
    registry: Registry, diary: Diary, applied: bool
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> fnop.Effect:
        diary.append(("create",))
        return fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap"})

    story = Story(registry, [example()])
    story.fate = unknown(Create, applied=applied)
    assert story.settle()
    assert diary == [("create",)]
    assert len(story.objects("configmaps")) == 1


@pytest.mark.parametrize("applied", [True, False])
def test_r28_an_awaited_patch_is_looked_for(
    registry: Registry, diary: Diary, applied: bool
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(**_: Any) -> None:
        found = await fnop.patch(status={"phase": "Working"}, labels={"a": "1"})
        diary.append(("patched", found.status.get("phase"), found.labels.get("a")))

    story = Story(registry, [example()])
    story.fate = unknown(Patch, applied=applied)
    assert story.settle()
    assert diary == [("patched", "Working", "1")]
    assert story.status()["phase"] == "Working"


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("times", [1, 3, 10])
def test_r28_the_own_write_is_looked_for_and_no_handler_runs_again(
    sizes: Registry, diary: Diary, applied: bool, times: int
) -> None:
    story = Story(sizes, [example(size=1)])
    story.fate = unknown(Patch, applied=applied, times=times)
    assert story.settle()
    assert diary == [("create", 1)]
    assert story.status() == {"create": {"size": 1}}
    story.crash()
    assert story.settle()
    assert diary == [("create", 1)]


@pytest.mark.parametrize("applied", [True, False])
def test_r28_the_finalizer_too(registry: Registry, diary: Diary, applied: bool) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> None:
        diary.append(("create",))

    @fnop.on.delete(KIND, registry=registry, id="delete")
    def delete(**_: Any) -> None:
        diary.append(("delete",))

    story = Story(registry, [example()])
    story.fate = unknown(Patch, applied=applied)
    assert story.settle()
    story.fate = unknown(Patch, applied=applied)
    assert story.delete(KIND).settle()
    assert diary == [("create",), ("delete",)]
    assert story.get(KIND) is None


def test_r28_what_cannot_be_looked_up_is_not_answered(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(**_: Any) -> None:
        found = await fnop.create(config("one"))
        diary.append(("created", found.name, story.clock.elapsed))

    def broken(story: Story, command: Perform) -> Outcome | None:
        if isinstance(command.effect, Create):
            return story.applied_but_unknown(command)
        if isinstance(command.effect, Get) and story.clock.elapsed < 5:
            return Unreachable("no network")
        return None

    story = Story(registry, [example()])
    story.fate = broken
    assert story.settle()
    ((_, name, when),) = diary
    assert name == "one"
    assert when >= 5
    assert len(story.objects("configmaps")) == 1


def test_r28_a_call_may_be_unknown_and_its_author_is_told(
    registry: Registry, diary: Diary
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(**_: Any) -> None:
        try:
            await fnop.call(outside, token="t")
        except fnop.TemporaryError as problem:
            diary.append(("unknown", str(problem)))

    story = Story(registry, [example()])
    story.fate = lambda _story, _command: (
        None if isinstance(_command.effect, Patch) else Unknown("the worker died")
    )
    assert story.settle()
    assert diary == [("unknown", "the worker died")]
