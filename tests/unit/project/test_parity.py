"""docs/reference/kopf*.md, the comparison with Kopf: complete, and its tests exist.

What no other test shows stands here, too: `test_k_1_28_…` is about row K-1.28.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import re
import sys
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import fnop
from fnop.adapters.cli import run as cli
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.runtime.protocol import ApiRequest
from fnop.testing import Simulation, plan_of
from tests.simulations import DEFINITION, ROOT, example
from tests.stories import Story

KIND = "fnopexamples"
PAGES = [
    ROOT / "docs" / "reference" / name
    for name in ("kopf.md", "kopf-state.md", "kopf-settings.md")
] + [ROOT / "docs" / "explanation" / "kopf.md"]
TEXT = "\n".join(each.read_text() for each in PAGES)
# Kopf's features by section: the numbers that there are.
NUMBERS = {
    "1": "1-13 20-36",
    "2": "1-11",
    "2b": "1-8",
    "3": "1-7",
    "4": "1-8",
    "5": "1-12 20-22 30-32 40-43",
    "6": "1-3",
    "7": "1 3-6 10-12 15-17 20-22",
    "8": "1-8 10-18 20-26",
    "9": "1-5",
    "10": "1-10",
    "12": "1-7 10-13 20-30",
    "17": "1-7 10-17 20-31 35-36",
}
VERDICTS = ("same", "better", "not yet")


class Row(NamedTuple):
    id: str
    what: str
    verdict: str
    shown: str


def ids() -> list[str]:
    """All rows that there have to be."""
    found = []
    for section, ranges in NUMBERS.items():
        for each in ranges.split():
            first, _, last = each.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            found += [f"K-{section}.{number}" for number in numbers]
    return found


def rows() -> list[Row]:
    lines = re.findall(r"^\| (K-.*) \|$", TEXT, re.MULTILINE)
    return [Row(*(cell.strip() for cell in line.split(" | "))) for line in lines]


@lru_cache
def functions_of(file: Path) -> frozenset[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(file.read_text()).body
    return frozenset(each.name for each in body if isinstance(each, functions))


def test_every_feature_is_there_once() -> None:
    assert sorted(row.id for row in rows()) == sorted(ids())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_a_row_says_what_is_so_and_where_it_is_shown(row: Row) -> None:
    verdict, _, reason = row.verdict.partition(": ")
    assert verdict in VERDICTS
    assert reason or verdict == "same", "how is it better, why is it not there yet?"
    assert len(row.what.split()) <= 12
    names = re.findall(r"`(tests/[^`]+)`", row.shown)
    pages = re.findall(r"\]\(([^)#]+)", row.shown)  # test_docs follows them
    assert names or pages or verdict == "not yet"
    for name in names:
        file, _, test = name.partition("::")
        assert test in functions_of(ROOT / file), f"{name} does not exist"


def test_the_settings_that_it_names_exist() -> None:
    named = re.findall(r"`Settings\.(\w+)`", TEXT)
    assert named
    assert set(named) <= {*fnop.Settings.__struct_fields__}


# ------------------------------------------------ 1: decorators and their options


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def diary() -> list[Any]:
    """The handlers' arguments, in order."""
    return []


def test_k_1_4_any_text_can_be_an_id(registry: Registry) -> None:
    name = "lambda:/a/b.py:<3> ü " + "x" * 100

    @fnop.on.create(KIND, registry=registry, id=name, retries=3)
    def create(retry: int, **_: Any) -> dict[str, int]:
        if retry < 1:
            raise fnop.TemporaryError("not yet", delay=100)
        return {"done": 1}

    story = Story(registry, [example()])
    story.settle(seconds=50)
    story.crash()
    assert story.settle()
    assert story.status() == {name: {"done": 1}}


def test_k_1_20_a_startup_handler_is_tried_again_before_anything_else(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.startup(registry=registry, backoff=60)
    def startup(retry: int, **_: Any) -> None:
        diary.append(f"startup {retry}")
        if retry < 2:
            raise ValueError("not yet")

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None:
        diary.append("create")

    story = Story(registry, [example()])
    assert story.settle()
    assert diary == ["startup 0", "startup 1", "startup 2", "create"]
    assert story.clock.elapsed == 120


@pytest.mark.parametrize("fails", [False, True])
def test_k_1_21_cleanup_follows_a_startup_that_has_succeeded(
    registry: Registry, diary: list[Any], fails: bool
) -> None:
    @fnop.on.startup(registry=registry)
    def startup(**_: Any) -> None:
        if fails:
            raise fnop.PermanentError("never")

    @fnop.on.cleanup(registry=registry)
    def cleanup(**_: Any) -> None:
        diary.append("cleanup")

    story = Story(registry, [example()])
    story.settle(seconds=5)
    story.stop()
    story.settle(seconds=60)
    assert story.exit is not None
    assert (story.exit.status, diary) == ((1, []) if fails else (0, ["cleanup"]))


def test_k_1_27_an_optional_deletion_handler_runs_beside_others(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.delete(KIND, registry=registry, optional=True)
    def optional(**_: Any) -> None:
        diary.append("optional")

    @fnop.on.delete(KIND, registry=registry)
    def needed(**_: Any) -> None:
        diary.append("needed")

    story = Story(registry, [example()])
    story.settle()
    story.delete(KIND).settle()
    assert diary == ["optional", "needed"]


@pytest.mark.parametrize("needs", [True, False], ids=["needed", "optional"])
@pytest.mark.parametrize("held_by", ["others", "grace"])
def test_k_1_27_an_optional_deletion_handler_is_called_once_while_others_hold_it(
    registry: Registry, diary: list[Any], held_by: str, needs: bool
) -> None:
    @fnop.on.delete("pods", registry=registry, optional=True)
    def optional(**_: Any) -> None:
        diary.append("optional")

    if needs:

        @fnop.on.delete("pods", registry=registry)
        def needed(**_: Any) -> None:
            diary.append("needed")

    meta = {"name": "p", "annotations": {"simulated.fnop.dev/stop-after": "20s"}}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    if held_by == "others":
        pod["metadata"]["finalizers"] = ["example.com/other"]
    sim = Simulation(registry, objects=pod).settle()
    sim.delete("pods/p").wait(10)
    assert "pods/p" in sim
    sim.wait(60)
    assert ("pods/p" in sim) == (held_by == "others")
    assert diary == ["optional", "needed"][: 1 + needs]


def test_k_1_28_resuming_is_once_in_a_process_and_never_part_of_a_creation(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    @fnop.on.resume(KIND, registry=registry)
    def all_of_them(reason: Any, **_: Any) -> None:
        diary.append(f"all {reason.value}")

    @fnop.on.resume(KIND, registry=registry)
    def resume(reason: Any, **_: Any) -> None:
        diary.append(f"resume {reason.value}")

    @fnop.on.resume(KIND, registry=registry, deleted=True)
    def deleted(reason: Any, **_: Any) -> None:
        diary.append(f"deleted {reason.value}")

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        diary.append("delete")
        if diary.count("delete") == 1:
            raise fnop.TemporaryError("not yet", delay=1)

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle()
    assert diary == ["all create", "all update"]
    diary.clear()
    story.crash()
    story.settle()
    story.edit(KIND, spec={"size": 3}).settle()
    resumed = ["all resume", "resume resume", "deleted resume"]
    assert diary == [*resumed, "all update"]
    diary.clear()
    story.late_events = True
    story.edit(KIND, spec={"size": 4})
    story.crash()
    story.late_events = False
    story.settle()
    mixed = ["all update", "resume update", "deleted update"]
    assert sorted(diary) == sorted(mixed), "one call of each, for one cause"
    diary.clear()
    story.delete(KIND).settle(seconds=0)
    story.crash()
    assert story.settle()
    assert sorted(diary) == ["delete", "delete", "deleted delete"]


def test_k_1_29_a_field_appears_with_a_new_object_and_changes_with_an_update(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.field(KIND, registry=registry, field="spec.size")
    def field(reason: Any, old: Any, new: Any, diff: Any, **_: Any) -> None:
        (item,) = diff
        diary.append((reason.value, old, new, item.op, item.field))

    story = Story(registry, [example(size=1)])
    story.settle()
    story.edit(KIND, spec={"other": 1}).settle()
    story.edit(KIND, spec={"size": None}).settle()
    assert diary == [("create", None, 1, "add", ()), ("update", 1, None, "remove", ())]


# ------------------------------------------------------- 2: kinds, 2b: filters

OTHERS: dict[str, Any] = copy.deepcopy(DEFINITION)
OTHERS["metadata"]["name"] = "others.fnop.dev"
OTHERS["spec"]["names"] = {"kind": "Other", "plural": "others", "singular": "other"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_k_2_7_who_names_several_kinds_with_one_word_gets_none_and_a_warning(
    registry: Registry, diary: list[Any]
) -> None:
    second = copy.deepcopy(DEFINITION)
    second["metadata"]["name"] = "fnopexamples.example.com"
    second["spec"]["group"] = "example.com"

    @fnop.on.event(KIND, registry=registry)
    def unclear(**_: Any) -> None:
        diary.append("unclear")

    @fnop.on.event(f"{KIND}.fnop.dev", registry=registry)
    def clear(**_: Any) -> None:
        diary.append("clear")

    story = Story(registry, settings=fnop.Settings(wait_for_kinds=True))
    story.request(ApiRequest("POST", CRDS, (), second))
    story.settle(seconds=1)
    path = f"/apis/fnop.dev/v1/namespaces/default/{KIND}"
    assert story.request(ApiRequest("POST", path, (), example())).status == 201
    story.settle(seconds=5)
    assert diary == ["clear"]
    assert any("is ambiguous" in line for line in story.said_at("warning"))


def test_k_2_8_a_kind_that_appears_later_is_served(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create("others", registry=registry)
    def create(name: str, **_: Any) -> None:
        diary.append(name)

    story = Story(registry)
    story.settle()
    assert any("serves no 'others' yet" in line for line in story.said_at("warning"))
    story.request(ApiRequest("POST", CRDS, (), OTHERS))
    story.apply({**example("late"), "kind": "Other"})
    story.clock.advance_to(story.clock.elapsed + 60)
    story.settle()
    assert diary == ["late"]


@pytest.mark.parametrize("decorator", ["update", "field"])
def test_k_2b_3_the_removal_of_a_field_is_a_change_of_it(
    registry: Registry, diary: list[Any], decorator: str
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    def removed(new: Any) -> None:
        diary.append(new)

    getattr(fnop.on, decorator)(KIND, registry=registry, field="spec.a")(removed)
    story = Story(registry, [example(a=1)])
    story.settle()
    diary.clear()
    story.edit(KIND, spec={"a": None})
    assert story.settle()
    assert diary == [None]


@pytest.mark.parametrize(
    ("filters", "called"),
    [
        # Which of: x→y, absent→y, x→absent, another field with x, and without.
        ({}, "12345"),
        ({"field": "spec.a"}, "123"),
        ({"field": "spec.a", "value": "x"}, "13"),
        ({"field": "spec.a", "value": "y"}, "12"),
        ({"field": "spec.a", "value": fnop.PRESENT}, "123"),
        ({"field": "spec.a", "value": fnop.ABSENT}, "23"),
        ({"field": "spec.a", "old": "x"}, "13"),
        ({"field": "spec.a", "new": "y"}, "12"),
        ({"field": "spec.a", "old": fnop.ABSENT, "new": fnop.PRESENT}, "2"),
        ({"field": "spec.a", "old": fnop.PRESENT, "new": fnop.ABSENT}, "3"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_k_2b_3_filters_of_a_field_look_at_both_sides_of_a_change(
    registry: Registry, diary: list[Any], filters: dict[str, Any], called: str
) -> None:
    edits: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "1": ({"a": "x"}, {"a": "y"}),
        "2": ({}, {"a": "y"}),
        "3": ({"a": "x"}, {"a": None}),
        "4": ({"a": "x"}, {"b": 1}),
        "5": ({}, {"b": 1}),
    }

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    @fnop.on.update(KIND, registry=registry, **filters)
    def update(name: str, **_: Any) -> None:
        diary.append(name.removeprefix("e"))

    story = Story(
        registry, [example(f"e{k}", **spec) for k, (spec, _) in edits.items()]
    )
    story.settle()
    for name, (_, change) in edits.items():
        story.edit(KIND, f"e{name}", spec=change)
    assert story.settle()
    assert "".join(sorted(diary)) == called


@pytest.mark.parametrize(
    ("value", "called"), [(fnop.PRESENT, []), (fnop.ABSENT, ["create"])]
)
def test_k_2b_3_null_is_absent_as_it_is_in_differences(
    registry: Registry, diary: list[Any], value: Any, called: list[str]
) -> None:
    @fnop.on.create(KIND, registry=registry, field="spec.a", value=value)
    def create(**_: Any) -> None:
        diary.append("create")

    story = Story(registry, [example(a=None)])
    assert story.settle()
    assert diary == called


def test_k_2b_6_what_no_handler_is_for_is_not_touched_until_one_is(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry, labels={"served": "yes"})
    def create(**_: Any) -> None:
        diary.append("create")

    @fnop.on.delete(KIND, registry=registry, labels={"served": "yes"})
    def delete(**_: Any) -> None:
        diary.append("delete")

    story = Story(registry, [example(size=1)])
    story.settle()
    assert (story.sent, story.lines) == ([], [])
    story.edit(KIND, metadata={"labels": {"served": "yes"}}).settle()
    assert diary == ["create"]


def test_k_2b_8_labels_are_those_of_now(registry: Registry, diary: list[Any]) -> None:
    @fnop.on.update(KIND, registry=registry, labels={"served": "yes"})
    def update(spec: Any, **_: Any) -> None:
        diary.append(spec["size"])

    body = example(size=1)
    body["metadata"]["labels"] = {"served": "yes"}
    story = Story(registry, [body])
    story.settle()
    story.edit(KIND, spec={"size": 2}).settle()
    no_more = {"labels": {"served": "no"}}
    story.edit(KIND, metadata=no_more, spec={"size": 3}).settle()
    assert diary == [2]


def test_k_2b_4_callbacks_are_asked_last(registry: Registry) -> None:
    def never(**_: Any) -> bool:
        raise AssertionError("the labels do not fit already")

    fnop.on.create(KIND, registry=registry, id="a", labels={"a": "b"}, when=never)(
        lambda **_: None
    )
    story = Story(registry, [example()])
    assert story.settle()
    assert story.lines == []


# ------------------------------------------------ 3 and 5: arguments and results


def test_k_3_3_what_is_absent_is_none_or_empty() -> None:
    def handler(
        name: Any,
        namespace: Any,
        uid: Any,
        spec: Any,
        status: Any,
        labels: Any,
        **_: Any,
    ) -> Any:
        return {
            "none": [name, namespace, uid],
            "empty": [len(spec), len(status), len(labels)],
        }

    registry = Registry()
    fnop.on.create(KIND, registry=registry, id="h")(handler)
    wide = fnop.Resource("fnop.dev", "v1", KIND, "FnopExample", namespaced=False)
    for body in ({}, {"spec": None, "status": None, "metadata": {"labels": None}}):
        plan = plan_of(handler, body, registry=registry, resource=wide)
        assert plan.result is not None
        assert plan.result["none"][1] is None
        assert plan.result["empty"] == [0, 0, 0]


def test_k_5_11_who_has_no_patch(registry: Registry) -> None:
    def handler(patch: Any, **_: Any) -> None: ...

    for decorate in (fnop.on.startup(registry=registry), fnop.index(KIND, id="a")):
        with pytest.raises(fnop.RegistrationError, match="unknown argument 'patch'"):
            decorate(handler)  # type: ignore[type-var]


def test_k_5_20_results_go_to_the_status_whoever_has_them(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="create", field="spec.size")
    def create(patch: Any, **_: Any) -> dict[str, int]:
        patch.status["create/spec.size"] = {"a": 1}
        return {"b": 2}

    @fnop.on.event(KIND, registry=registry, id="event")
    def event(**_: Any) -> dict[str, int]:
        return {"seen": 1}

    @fnop.timer(KIND, registry=registry, id="timer")
    def timer(**_: Any) -> int:
        return 5

    @fnop.daemon(KIND, registry=registry, id="daemon")
    async def daemon(**_: Any) -> str:
        return "over"

    story = Story(registry, [example(size=1)])
    assert story.settle()
    assert story.status() == {
        "create/spec.size": {"a": 1, "b": 2},
        "event": {"seen": 1},
        "timer": 5,
        "daemon": "over",
    }


# ------------------------------ 7 to 10, and 17: command, state, children, Events, time


def test_k_7_4_uvloop_is_used_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: dict[str, Any] = {"run": object()}
    monkeypatch.setitem(sys.modules, "uvloop", SimpleNamespace(**runs))
    assert cli._loop_runner() is runs["run"]
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert cli._loop_runner() is asyncio.run


def test_k_8_17_a_field_of_one_handler_is_no_change_for_another(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.update(KIND, registry=registry)
    def update(**_: Any) -> None:
        diary.append("update")

    @fnop.on.field(KIND, registry=registry, field="status.phase")
    def field(new: Any, **_: Any) -> None:
        diary.append(new)

    story = Story(registry, [example()])
    story.settle()
    story.user_sets_status({"phase": "Ready"})
    assert story.settle()
    assert diary == ["Ready"]


def test_k_9_3_none_is_no_name_and_no_label() -> None:
    child: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod"}
    nothing: Any = None
    for name in (nothing, ""):
        with pytest.raises(ValueError, match="harmonize_naming needs a name"):
            fnop.harmonize_naming(child, name)
    with pytest.raises(TypeError):
        fnop.label(child, nothing)
    assert fnop.adjust_namespace(child, None) == child


def test_k_9_4_a_cluster_scoped_owner_gives_no_namespace() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}}
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod"}
    assert "namespace" not in fnop.owned(pod, owner)["metadata"]
    pod["metadata"] = {"namespace": "own"}
    assert fnop.owned(pod, owner)["metadata"]["namespace"] == "own"


def test_k_10_2_a_startup_handler_cannot_report_and_does_not_fail(
    registry: Registry,
) -> None:
    @fnop.on.startup(registry=registry)
    def startup(**_: Any) -> fnop.Effect:
        return fnop.event("Up")

    @fnop.on.event(KIND, registry=registry)
    def spy(**_: Any) -> None: ...

    story = Story(registry, [example()])
    assert story.settle()
    assert story.exit is None
    assert any("cannot be reported here" in line for line in story.said_at("warning"))


def test_k_10_4_what_an_event_says(registry: Registry) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        about = fnop.target("configmaps", name="a")
        return [fnop.warn("Odd", "look"), fnop.event("Seen", about=about)]

    story = Story(registry, [other, example()])
    assert story.settle()
    events = {each["reason"]: each for each in story.objects("events.v1.")}
    odd = events["Odd"]
    assert (odd["type"], odd["message"], odd["count"]) == ("Warning", "look", 1)
    assert odd["source"]["component"] == odd["reportingComponent"] == "fnop.dev/default"
    assert odd["reportingInstance"] == "default"
    assert odd["action"]
    assert odd["metadata"]["namespace"] == "default"
    assert odd["involvedObject"]["uid"] == story.objects(KIND)[0]["metadata"]["uid"]
    assert odd["firstTimestamp"] == odd["lastTimestamp"]
    assert events["Seen"]["involvedObject"]["kind"] == "ConfigMap"
    assert events["Seen"]["type"] == "Normal"


def test_k_10_5_a_long_message_is_cut_in_its_middle(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.event("Long", "a" * 2000 + "z" * 2000)

    story = Story(registry, [example()])
    assert story.settle()
    (event,) = story.objects("events.v1.")
    assert len(event["message"]) <= 1024
    assert re.fullmatch(r"a+\.\.\.z+", event["message"])


def test_k_10_6_no_event_is_reported_about_an_event(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.event("Created")

    @fnop.on.event("events.v1.", registry=registry)
    def spy(body: Any, **_: Any) -> fnop.Effect:
        diary.append(body["reason"])
        return fnop.event("Seen")

    @fnop.on.update(KIND, registry=registry)
    async def update(**_: Any) -> fnop.Effect:
        (found,) = await fnop.list("events.v1.")
        return fnop.event("Told", about=found)

    story = Story(registry, [example(a=1)])
    assert story.settle()
    assert story.edit(KIND, spec={"a": 2}).settle()
    assert [each["reason"] for each in story.objects("events.v1.")] == ["Created"]
    assert diary == ["Created"]
    assert story.said_at("error") == []


def test_k_10_7_events_of_cluster_scoped_objects_are_in_default(
    registry: Registry,
) -> None:
    @fnop.on.create("namespaces", registry=registry)
    def create(name: str, **_: Any) -> Any:
        return fnop.event("Seen") if name == "kube-system" else None

    story = Story(registry)
    assert story.settle()
    (event,) = story.objects("events.v1.")
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"]["name"] == "kube-system"


def test_k_17_13_nothing_is_polled(registry: Registry) -> None:
    with pytest.raises(fnop.RegistrationError, match="no option cancellation_polling="):
        fnop.daemon(
            KIND,
            registry=registry,
            cancellation_polling=10,  # type: ignore[call-arg]
        )


def test_k_17_2_a_day_of_waiting_costs_no_request(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(retry: int, **_: Any) -> None:
        diary.append(retry)
        if not retry:
            raise fnop.TemporaryError("tomorrow", delay=86_400)

    story = Story(registry, [example()])
    story.settle(seconds=1)
    sent = len(story.requests)
    story.settle(seconds=86_000)
    assert len(story.requests) == sent
    assert story.settle()
    assert diary == [0, 1]


def test_k_17_36_nothing_runs_again_between_the_last_finalizer_and_the_end(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        diary.append("delete")

    body = example(size=1)
    body["metadata"]["finalizers"] = ["example.com/other"]
    story = Story(registry, [body])
    story.settle()
    story.delete(KIND).settle()
    story.edit(KIND, spec={"size": 2}).settle()
    story.edit(KIND, metadata={"labels": {"a": "b"}}).settle()
    assert diary == ["delete"]
    story.edit(KIND, metadata={"finalizers": None}).settle()
    assert story.get(KIND) is None
    assert diary == ["delete"]
