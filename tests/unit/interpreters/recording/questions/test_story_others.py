"""The story: changes by others, why handlers are called, calls without effect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.adapters.recordings.story_report import story_lines
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.paths import parse_path
from fnop.interpreters.recording.model.contents import Contents
from fnop.interpreters.recording.model.excerpt import excerpt_of
from fnop.interpreters.recording.model.world import Own
from fnop.interpreters.recording.questions.busy import Busy, call_of
from fnop.interpreters.recording.questions.others import Others
from fnop.interpreters.recording.questions.story import Story
from tests.histories import OURS, History, config
from tests.pages import read_recording
from tests.recorded_examples import EXAMPLES, record
from tests.simulations import example
from tests.thorough import examples

KIND = "fnopexamples"
AT = {"wall": 0.0, "mono": 0.0}
ABOUT = "fnopexamples/default/example-1"


def keeping() -> Registry:
    """An operator with a child, and with fields of its own in the object's status."""
    registry = Registry()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id="keep")
    def keep(spec: Any, name: str, **_: Any) -> fnop.Desired:
        return fnop.desired(config(f"{name}-conf", n=str(spec["n"])), status=dict(spec))

    return registry


# ------------------------------------------------------------------- what others did


def test_an_edit_names_who_has_made_it_and_what() -> None:
    history = History(keeping())
    history.writes("alice", KIND, "example-1", spec={"n": 2, "more": "x"})
    assert history.told("other") == [
        f"{ABOUT} is changed by alice: spec.more added, spec.n"
    ]


def test_an_edit_of_a_child_is_in_the_story_of_its_owner() -> None:
    history = History(keeping())
    history.writes("alice", "configmaps", "example-1-conf", data={"n": "9", "k": "v"})
    (line,) = [each for each in history.lines() if each.sort == "other"]
    assert line.where == "default/example-1"
    assert line.text == (
        "configmaps/default/example-1-conf is changed by alice: data.k added, data.n"
    )


def test_deletions_are_told() -> None:
    history = History(keeping())
    history.deletes("configmaps", "example-1-conf").deletes(KIND)
    first, *rest = history.told("other")
    assert first == "configmaps/default/example-1-conf is deleted"
    assert f"{ABOUT} is deleted" in rest


def test_a_deletion_that_waits_for_a_finalizer_is_told_twice() -> None:
    registry = Registry()

    @fnop.on.delete(KIND, registry=registry)
    async def gone(**_: Any) -> None:
        await fnop.sleep(5)

    told = History(registry).deletes(KIND).told("other")
    assert told == [f"{ABOUT} is to be deleted", f"{ABOUT} is deleted"]


def test_what_the_operator_deletes_itself_is_no_deed_of_others() -> None:
    registry = Registry()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def keep(spec: Any, **_: Any) -> fnop.Desired:
        return fnop.desired(config("kept") if spec["n"] == 1 else None)

    history = History(registry)
    history.writes("alice", KIND, "example-1", spec={"n": 2})
    assert history.told("other") == [f"{ABOUT} is changed by alice: spec.n"]


def cleaning(*, named: bool) -> Registry:
    """An operator that makes a ConfigMap for each number, and deletes the one before.

    It deletes an object that it has read, or one by its name.
    """
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    async def clean(spec: Any, name: str, **_: Any) -> None:
        await fnop.adopt(config(f"{name}-{spec['n']}", n="1"))
        before = f"{name}-{spec['n'] - 1}"
        if named:
            await fnop.delete("configmaps", name=before, propagation="Foreground")
            return
        for each in await fnop.list("configmaps"):
            if each.name == before:
                await fnop.delete(each)

    @fnop.on.event("configmaps", registry=registry)
    def look(**_: Any) -> None:
        """Shows the recording what becomes of them."""

    return registry


@pytest.mark.parametrize("named", [False, True])
def test_no_deletion_of_the_operator_is_a_change_by_others(named: bool) -> None:
    """Neither one whose answer shows no object, nor the policy's finalizer."""
    history = History(cleaning(named=named))
    history.writes("alice", KIND, "example-1", spec={"n": 2})
    records = [without_shown(each) for each in history.records()]
    excerpt = excerpt_of(lambda: iter(records), manager=OURS)
    names = [(each.place.kind, each.place.name) for each in excerpt.changes]
    assert {*names} == {("FnopExample", "example-1")}
    assert history.told("other") == [f"{ABOUT} is changed by alice: spec.n"]


def without_shown(record: dict[str, Any]) -> dict[str, Any]:
    """A record in which the answer to a deletion shows no object: many servers do so.

    Only answers to deletions show an object that is being deleted.
    """
    outcome = record["input"].get("outcome") or {}
    shown = outcome.get("object") or {}
    if "deletionTimestamp" not in (shown.get("metadata") or {}):
        return record
    less = {key: each for key, each in outcome.items() if key != "object"}
    return {**record, "input": {**record["input"], "outcome": less}}


def test_a_refused_deletion_is_none() -> None:
    own = Own()
    effect = {"is": "Delete", "uid": "u"}
    asked = {"do": "Perform", "id": 7, "effect": effect, "resource": "pods.v1."}
    own.add({**AT, "input": {"in": "Started"}, "commands": [asked]})
    assert own.deleted == {"u"}
    refused = {"in": "Answered", "id": 7, "outcome": {"is": "Conflict"}}
    own.add({**AT, "input": refused, "commands": []})
    assert own.deleted == set()


def test_a_child_has_a_story_before_its_owner_is_called_again() -> None:
    """A child that was never read is known by its owner reference."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def make(name: str, **_: Any) -> None:
        await fnop.adopt(config(f"{name}-conf", n="1"))

    @fnop.on.event("configmaps", registry=registry)
    def look(**_: Any) -> None:
        """Shows the recording what others write."""

    history = History(registry)
    history.writes("alice", "configmaps", "example-1-conf", data={"n": "9"})
    (line,) = [each for each in history.lines() if each.sort == "other"]
    assert (line.where, line.object) == (
        "default/example-1",
        "configmaps/default/example-1-conf",
    )
    assert line.text == f"{line.object} is changed by alice: data.n"


def test_the_story_of_a_child_has_the_requests_about_it() -> None:
    history = History(keeping())
    history.writes("alice", "configmaps", "example-1-conf", data={"n": "9"})
    child = contents_of(history).named("configmaps/example-1-conf")
    told = [*story_lines(history.lines(), child)]
    texts = [each.partition("[default/example-1]")[2].strip() for each in told]
    made, changed, restored = (each.partition(" ->")[0] for each in texts)
    assert made == restored == "Apply configmaps/default/example-1-conf, for keep"
    assert changed == "configmaps/default/example-1-conf is changed by alice: data.n"


def contents_of(history: History) -> Contents:
    """All that a recording is about."""
    found = Contents()
    for each in history.records():
        found.add(each)
    return found


def test_an_object_without_a_story_is_told(tmp_path: Path) -> None:
    from tests.commands import fnop as command

    path = record("19-database", tmp_path)
    about = ("--object", "configmaps/default/kube-root-ca.crt")
    done = command("replay", path, *about, folder=tmp_path)
    assert (done.status, done.out) == (0, "")
    assert "has no line about" in done.complaint
    nobody = command("replay", path, "--object", "namespaces/default", folder=tmp_path)
    assert nobody.status == 1
    assert "the recording shows no object" in nobody.complaint


def test_labels_are_told_as_why_takes_them() -> None:
    history = History(keeping())
    labels = {"app.kubernetes.io/part-of": "mall", "plain": "x"}
    history.writes("bob", KIND, "example-1", metadata={"labels": labels})
    (told,) = history.told("other")
    fields = "metadata.labels[app.kubernetes.io/part-of] added, metadata.labels.plain"
    assert told == f"{ABOUT} is changed by bob: {fields} added"
    (called,) = [e for e in history.told("call") if "changed:" in e and fields in e]
    for field in re.findall(r"metadata\S+", called.replace(",", "")):
        assert history.why("example-1", field) is not None, field
    assert parse_path("metadata.labels.plain")


def managed(version: str, n: str, manager: str) -> dict[str, Any]:
    """An input that shows a ConfigMap whose field has a manager."""
    entry = {"manager": manager, "fieldsV1": {"f:data": {"f:n": {}}}}
    found = config("c", n=n)
    found["metadata"] |= {"uid": "u", "resourceVersion": version}
    found["metadata"]["managedFields"] = [entry]
    return {"in": "WatchEvent", "stream": 1, "type": "MODIFIED", "body": found}


@pytest.mark.parametrize(
    ("manager", "told"),
    [
        ("alice", ["configmaps/default/c is changed by alice: data.n"]),
        (OURS, []),
    ],
)
def test_while_a_request_is_open_the_managers_decide(
    manager: str, told: list[str]
) -> None:
    """They name the author of a version shown before the answer to a request."""
    sent = {
        **{"do": "Perform", "id": 1, "resource": "configmaps.v1.", "name": "c"},
        **{"namespace": "default", "effect": {"is": "Apply", "manifest": config("c")}},
    }
    sent["effect"]["manifest"]["data"] = {"n": "2"}  # type: ignore[index]
    about = ["configmaps.v1.", "default", "c", "u", "1"]
    began = {"do": "Began", "attempt": 1, "handler": "keep", "object": about}
    others = Others(OURS)
    first = {**AT, "input": managed("1", "1", "bob"), "commands": [began, sent]}
    assert others.add(first) == []
    second = {**AT, "input": managed("2", "2", manager), "commands": []}
    assert [each.text for each in others.add(second)] == told


edits = st.one_of(
    st.tuples(st.just("object"), st.integers(0, 2)),
    st.tuples(st.just("child"), st.integers(0, 2)),
)


@settings(max_examples=examples(15))
@given(st.lists(edits, max_size=5))
def test_each_edit_of_others_is_told_once_and_none_of_the_operator(
    script: list[tuple[str, int]],
) -> None:
    history, n = History(keeping()), 1
    expected = []
    for what, number in script:
        if what == "object":
            history.writes("alice", KIND, "example-1", spec={"n": number})
            expected += [f"{ABOUT} is changed by alice: spec.n"] if number != n else []
            n = number
        else:
            child, data = "example-1-conf", {"n": f"other {number}"}
            history.writes("bob", "configmaps", child, data=data)
            expected.append(f"configmaps/default/{child} is changed by bob: data.n")
    assert history.told("other") == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_operator_alone_is_not_told_as_somebody_else(
    name: str, tmp_path: Path
) -> None:
    story = Story(manager=OURS)
    records = read_recording(record(name, tmp_path))[1]
    told = [line.text for each in records for line in story.add(each)]
    assert not [each for each in told if OURS in each and " is changed by " in each]


# ------------------------------------------------------------------- why it is called


def called(history: History, handler: str) -> list[str]:
    """The beginnings of a handler's calls, without the versions."""
    found = (each for each in history.told("call") if each.startswith(handler))
    return [re.sub(r".* is called(.*): version \d+", r"\1", each) for each in found]


def test_a_requeue_is_the_reason_of_a_call() -> None:
    registry = Registry()

    @fnop.maps("configmaps", to=KIND, registry=registry, id="users")
    def users(name: str, **_: Any) -> list[str]:
        return ["default/example-1"] if name == "shared" else []

    @fnop.reconcile(KIND, registry=registry, id="keep")
    def keep(**_: Any) -> fnop.Desired:
        return fnop.desired()

    history = History(registry, config("shared", n="1"), example(n=1))
    history.writes("alice", "configmaps", "shared", data={"n": "2"})
    *_, last = called(history, "keep")
    assert re.fullmatch(
        r", requeued by users for default/shared at #\d+(, #\d+)?", last
    )


def test_a_mapping_is_called_for_the_object_as_it_was_before() -> None:
    registry = keeping()

    @fnop.maps("configmaps", to=KIND, registry=registry, id="users")
    def users(name: str, **_: Any) -> str | None:
        return "example-1" if name == "template" else None

    history = History(registry, config("template", a="1"), example(n=1))
    history.writes("alice", "configmaps", "template", data={"a": "2"})
    told = [each for each in history.lines() if each.where == "default/template"]
    first, former, present = (each.text for each in told if each.sort == "call")
    version = first.rpartition(" ")[2]
    assert former == f"users is called for MODIFIED: version {version}, the former one"
    assert present.endswith(", changed: data.a")


def test_an_event_handler_that_is_called_late_is_called_for_no_former_object() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def made(**_: Any) -> None:
        for number in range(3):
            await fnop.patch(status={"number": number})

    @fnop.on.event(KIND, registry=registry, id="seen")
    async def seen(**_: Any) -> None:
        await fnop.sleep(5)

    told = History(registry).told("call")
    assert sum("seen is called for MODIFIED: version" in each for each in told) >= 3
    assert not any("the former one" in each for each in told)


def test_a_wish_to_be_called_again_is_the_reason_of_a_call() -> None:
    registry = Registry()

    @fnop.reconcile(KIND, registry=registry, id="keep")
    def keep(now: Any, **_: Any) -> Any:
        return fnop.desired(), fnop.again(20)

    history = History(registry)
    history.run.wait(25)
    _, second, *_ = called(history, "keep")
    assert re.fullmatch(r", again, as it asked at #\d+", second)


def test_a_call_before_that_time_has_another_reason() -> None:
    registry = Registry()

    @fnop.reconcile(KIND, registry=registry, id="keep")
    def keep(**_: Any) -> Any:
        return fnop.desired(), fnop.again(3600)

    history = History(registry).writes("alice", KIND, "example-1", spec={"n": 2})
    assert ", changed: spec.n" in called(history, "keep")


def test_a_failure_is_the_reason_of_another_attempt() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, backoff=1, id="make")
    def make(retry: int, **_: Any) -> None:
        if not retry:
            raise RuntimeError("not yet")

    first, second = called(History(registry), "make")
    assert first == " for create"
    assert re.fullmatch(
        r" for create, attempt 2, again after its failure at #\d+", second
    )


def test_the_time_is_the_reason_of_a_timer() -> None:
    registry = Registry()

    @fnop.timer(KIND, interval=20, registry=registry, id="beat")
    def beat(status: Any, patch: Any, **_: Any) -> None:
        patch.status["beats"] = status.get("beats", 0) + 1

    history = History(registry, rests=False)
    history.run.wait(70)
    _, *later = called(history, "beat")
    assert len(later) > 1
    assert {*later} == {", its time has come"}


def test_a_changed_child_is_the_reason_of_a_call() -> None:
    history = History(keeping())
    history.writes("alice", "configmaps", "example-1-conf", data={"n": "9"})
    found = called(history, "keep")
    assert ", changed children: configmaps/example-1-conf" in found


def test_another_process_is_a_reason() -> None:
    history = History(keeping())
    history.run.crash()
    assert history.run.settle()
    assert any("the first call of this process" in e for e in called(history, "keep"))


# ------------------------------------------------------------------- without the rest


def test_calls_that_end_with_nothing_are_left_out() -> None:
    registry = Registry()

    @fnop.on.event(KIND, registry=registry, id="look")
    def look(**_: Any) -> None: ...

    @fnop.daemon(KIND, registry=registry, id="wait")
    async def wait(**_: Any) -> None:
        await fnop.sleep(3600)

    @fnop.on.create(KIND, registry=registry, id="make")
    def make(patch: Any, **_: Any) -> None:
        patch.status["made"] = True

    @fnop.on.create(KIND, registry=registry, id="warn", retries=1)
    def fail(**_: Any) -> None:
        raise fnop.PermanentError("no")

    history = History(registry)
    history.writes("alice", KIND, "example-1", spec={"n": 2})
    busy = Busy()
    for each in history.records():
        busy.add(each)
    lines = history.lines()
    told = "\n".join(story_lines(lines, None, busy.calls))
    assert "make is called for create" in told
    assert "warn is called for create" in told
    assert "failed for good: PermanentError: no" in told
    assert "is changed by alice: spec.n" in told
    assert "look is called" not in told
    assert "wait is called" not in told
    assert "Sleep" not in told
    whole = "\n".join(story_lines(lines, None))
    assert "look is called" in whole
    assert "asks for Sleep" in whole


@pytest.mark.parametrize("name", EXAMPLES)
def test_calls_that_are_left_out_have_ended_with_nothing(
    name: str, tmp_path: Path
) -> None:
    records, busy, story = read_recording(record(name, tmp_path))[1], Busy(), Story()
    for each in records:
        busy.add(each)
    lines = [line for each in records for line in story.add(each)]
    quiet = [
        each
        for each in lines
        if each.attempt is not None and call_of(each.attempt) not in busy.calls
    ]
    ends = {each.text for each in quiet if each.sort == "end"}
    assert ends <= {"ends", "ends, all is as desired"}
    assert not [each for each in quiet if each.sort == "say"]
    calls = {call_of(each.attempt) for each in lines if each.attempt is not None}
    assert busy.calls <= calls


def test_the_option_is_for_the_story(tmp_path: Path) -> None:
    from tests.commands import fnop as command

    path = record("19-database", tmp_path)
    done = command("replay", path, "--changes-only", folder=tmp_path)
    assert done.status == 0
    assert "ends, all is as desired" not in done.out
    assert "Apply statefulsets/default/example-1" in done.out
    (tmp_path / "op.py").write_text("import fnop\n")
    for more in (("op.py",), ("--object", "example-1", "--why", "status")):
        done = command("replay", path, "--changes-only", *more, folder=tmp_path)
        assert done.status == 2
        assert "--changes-only goes with the story" in done.complaint


# ------------------------------------------------------------------- gaps


def test_missing_steps_are_told() -> None:
    records = History(keeping()).records()
    middle = len(records) // 2
    story = Story()
    given = [*records[:middle], {"gap": 3}, *records[middle:]]
    lines = [line for each in given for line in story.add(each)]
    (gap,) = [each for each in lines if each.sort == "gap"]
    assert gap.text == "3 steps could not be recorded"
    assert gap.step == middle + 3
