"""`fnop plan` for a simulated cluster: it shows what would happen, and does nothing."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

import fnop
from fnop.adapters.reports.plan_report import as_json, as_lines
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.effects.structs import replace
from fnop.interpreters.plan.changes import changes_of, notices_of
from fnop.interpreters.plan.dry_run import DryRunOnly
from fnop.interpreters.plan.facts import Place, Write
from fnop.interpreters.plan.planner import PlanProblem
from fnop.interpreters.plan.source import GetOnly
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.plans import (
    Served,
    due_of,
    labels,
    planned,
    planner_of,
    sent_as_planned,
)
from tests.simulations import (
    ROOT,
    Scenario,
    example,
    example_handlers,
    manifests_of,
)

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def keeper(registry: Registry) -> Registry:
    """An operator that keeps a config map for each example."""

    @fnop.reconcile(KIND, owns=["configmaps"], id="keep", registry=registry)
    def keep(name: str, namespace: str, spec: fnop.Spec, **_: Any) -> fnop.Desired:
        return fnop.desired(
            [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": namespace},
                    "data": {"size": str(spec["size"])},
                }
            ]
        )

    return registry


def source_of(run: Scenario, **options: Any) -> tuple[Served, float]:
    wall = run.clock.now().wall
    return Served(run.cluster, wall, **options), wall


def settled(registry: Registry, *manifests: dict[str, Any]) -> Scenario:
    """A cluster in which the operator has nothing left to do."""
    run = Scenario(registry, manifests)
    assert run.settle()
    return run


def test_exactly_what_has_drifted_is_shown(keeper: Registry) -> None:
    run = settled(keeper, *(example(f"e{n}", size=n) for n in range(30)))
    run.edit("configmaps", "e3", data={"size": "7"})
    run.edit(KIND, "e5", spec={"size": 50})
    run.delete("configmaps", "e8")
    served, wall = source_of(run)
    planner = planner_of(keeper, served, wall)
    plan = planned(planner)
    assert labels(plan, own=True) == {
        "fnopexamples.fnop.dev/e5 in default": "change",  # observedGeneration
        "configmaps/e3 in default": "change",
        "configmaps/e5 in default": "change",
        "configmaps/e8 in default": "create",
    }
    by_label = {each.place.label: each.fields for each in plan.changes}
    drifted = by_label["configmaps/e3 in default"]
    assert [*map(tuple, drifted)] == [("data.size", "7", "3", False)]
    assert ("data.size", "5", "50", False) in by_label["configmaps/e5 in default"]
    # The operator does that, and nothing else.
    again = Scenario(keeper)
    again.cluster, before = run.cluster, len(again.requests)
    assert again.settle()
    assert sent_as_planned(planner, again.requests[before:]) == []


def test_a_plan_sends_nothing_but_gets_and_changes_nothing(keeper: Registry) -> None:
    run = settled(keeper, example("a", size=1))
    run.edit(KIND, "a", spec={"size": 2})
    served, wall = source_of(run)
    plan = planned(planner_of(keeper, served, wall), 3)
    assert {each.method for each in served.requests} == {"GET"}
    assert served.cluster is run.cluster
    assert plan.reads == len(served.requests)
    footer = [*as_lines(plan)][-1]
    assert footer.endswith(f"0 writes sent, {plan.reads} reads.")
    assert footer.startswith("Plan: 0 to create, 2 to change, 0 to delete.")


def test_nothing_to_do_is_one_sentence(keeper: Registry) -> None:
    run = settled(keeper, example("a", size=1))
    served, wall = source_of(run)
    plan = planned(planner_of(keeper, served, wall))
    assert plan.is_empty
    assert [*as_lines(plan)] == [
        f"Nothing would change. 0 writes sent, {plan.reads} reads."
    ]


def test_the_transport_can_only_get() -> None:
    run = Scenario(Registry())
    served, _ = source_of(run)
    api = GetOnly(served)
    offered = {name for name in dir(api) if not name.startswith("_")}
    assert offered == {"get", "reads", "send"}
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(TypeError, match=f"a plan sends no {method}"):
            asyncio.run(api.send(ApiRequest(method, "/api/v1/namespaces/default")))
    assert served.requests == []
    assert api.reads == 0


def test_objects_are_restored_as_they_are(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.on.resume(KIND, registry=registry)
    def resume(body: fnop.Body, **_: Any) -> None:
        seen.append(json.loads(json.dumps(body)))

    run = settled(registry, example("a", size=1))
    present = run.get(KIND, "a")
    seen.clear()
    served, wall = source_of(run)
    planned(planner_of(registry, served, wall))
    assert seen[0] == present
    assert present is not None
    assert present["metadata"]["managedFields"]


def test_what_nobody_watches_is_read_when_it_is_asked_for(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, **_: Any) -> None:
        found = await fnop.get("configmaps", name="template")
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": found["data"],
        }
        await fnop.apply(manifest)

    template = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "template", "namespace": "default"},
        "data": {"a": "b"},
    }
    there = {**template, "metadata": {"name": "x", "namespace": "default"}}
    run = Scenario(registry, [template, {**there, "data": {"old": "1"}}])
    run.apply(*(example(name) for name in "xy"))
    served, wall = source_of(run)
    planner = planner_of(registry, served, wall)
    found = {each.place.label: each for each in planned(planner).changes}
    assert found["configmaps/x in default"].actions == ("change",)
    assert found["configmaps/y in default"].actions == ("create",)
    assert run.settle()
    assert sent_as_planned(planner, run.requests) == []


def price_of(name: str) -> int:
    raise AssertionError("it is called")


def test_calls_are_not_made_and_what_follows_is_not_known(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, patch: fnop.Patch, **_: Any) -> None:
        await fnop.apply(note("before"))
        patch.status["price"] = await fnop.call(price_of, name=name)
        await fnop.apply(note("after"))

    run = Scenario(registry, [example("a")])
    served, wall = source_of(run)
    plan = planned(planner_of(registry, served, wall))
    assert labels(plan) == {"configmaps/before in default": "create"}
    (call,) = plan.calls
    assert call.function.endswith(":price_of")
    assert not call.is_handler
    lines = "\n".join(as_lines(plan))
    assert "call price_of" in lines
    assert "test_plan.py:" in lines
    (told,) = as_json(plan)["calls"]
    assert told["object"]["name"] == "a"
    assert not plan.is_empty


def note(name: str, /, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def test_what_is_random_or_made_by_the_server_is_unknown(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, **_: Any) -> None:
        token = await fnop.random(8)
        made = await fnop.apply(note("one", name=name, token=f"<{token}>"))
        await fnop.apply(note("two", uid=made["metadata"]["uid"]))

    run = Scenario(registry, [example("a")])
    served, wall = source_of(run)
    planner = planner_of(registry, served, wall)
    plan = planned(planner)
    one, two = (
        next(each for each in as_json(plan)["changes"] if each["name"] == name)
        for name in ("one", "two")
    )
    assert one["after_unknown"]["data"] == {"token": True}
    assert one["after"]["data"] == {"name": "a"}
    assert one["after_unknown"]["metadata"]["uid"] is True
    assert two["after_unknown"]["data"] == {"uid": True}
    assert run.settle()
    assert sent_as_planned(planner, run.requests) == []


def test_of_a_secret_only_the_keys_are_shown(registry: Registry) -> None:
    planted = "correct horse battery staple"
    encoded = base64.b64encode(planted.encode()).decode()
    another = base64.b64encode(b"another long value").decode()

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        secret = {"apiVersion": "v1", "kind": "Secret"}
        meta = {"name": "s", "namespace": "default"}
        await fnop.apply({**secret, "metadata": meta, "stringData": {"k": planted}})

    old = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "data": {"k": another, "l": "eA=="},
    }
    run = Scenario(registry, [old, example("a")])
    served, wall = source_of(run)
    plan = planned(planner_of(registry, served, wall))
    text = json.dumps(as_json(plan)) + "\n".join(as_lines(plan, own=True))
    assert "data.k" in text
    for value in (planted, encoded, another, "eA=="):
        assert value not in text


def test_what_may_not_be_read_is_said(registry: Registry) -> None:
    @fnop.on.create(KIND, id="create", registry=registry)
    async def create(**_: Any) -> None:
        await fnop.apply(note("one"))

    @fnop.on.create("secrets", registry=registry)
    def secret(**_: Any) -> None:
        pass

    run = Scenario(registry, [example("a")])

    def refuses(request: ApiRequest) -> bool:
        return any(
            kind in request.path
            for kind in ("configmaps", "secrets", "customresource", "/namespaces?")
        ) or request.path.endswith("/api/v1/namespaces")

    served, wall = source_of(run, refuses=refuses)
    plan = planned(planner_of(registry, served, wall))
    assert {each.place.label for each in plan.unread} == {
        "configmaps/one in default",
        "secrets/*",
    }
    assert not plan.is_empty
    lines = "\n".join(as_lines(plan))
    assert "customresourcedefinitions.apiextensions.k8s.io cannot be read" in lines
    assert "secrets" in lines
    assert "configmaps/one in default is asked for by create" in lines
    assert labels(plan) == {}


def test_without_anything_to_read_there_is_no_plan(keeper: Registry) -> None:
    run = settled(keeper, example("a", size=1))

    def refuses(request: ApiRequest) -> bool:
        return "configmaps" in request.path or KIND in request.path

    served, wall = source_of(run, refuses=refuses)
    with pytest.raises(PlanProblem, match=r"nothing that .* can be read: you may not"):
        planned(planner_of(keeper, served, wall))


def test_later_rounds_follow_the_simulated_controllers(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns=["pods"], registry=registry)
    def keep(name: str, children: Any, **_: Any) -> fnop.Desired:
        pod = children["pods"].get(name, {})
        return fnop.desired(
            [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": name, "namespace": "default"},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                }
            ],
            status={"phase": pod.get("status", {}).get("phase", "None")},
        )

    run = Scenario(registry, [example("a")])
    served, wall = source_of(run)
    plan = planned(planner_of(registry, served, wall), 3)
    phases = [
        (each.round, field.new)
        for each in plan.changes
        for field in each.fields
        if field.path == "status.phase" and each.place.name == "a" and each.subject
        if each.place.kind == "FnopExample"
    ]
    assert phases[0] == (1, "Pending")
    assert phases[-1][0] > 1
    assert phases[-1][1] == "Running"
    lines = [*as_lines(plan)]
    assert lines[0] == "round 1"
    assert any(line.startswith("≈ round 2") for line in lines)


def test_what_somebody_changes_meanwhile_is_stale(keeper: Registry) -> None:
    run = settled(keeper, example("a", size=1), example("b", size=1))
    for name in "ab":
        run.edit("configmaps", name, data={"size": "7"})
    served, wall = source_of(run)
    number = len(
        _requests(keeper, Served(run.cluster, wall), wall)
    )  # the last two look again

    def meddle(served: Served) -> None:
        path = "/api/v1/namespaces/default/configmaps/b"
        body = {"data": {"size": "8"}}
        request = ApiRequest("PATCH", path, (), body, MERGE_PATCH)
        assert served.request(request).status == 200

    served.meanwhile[number - 2] = meddle
    plan = planned(planner_of(keeper, served, wall))
    assert [each.place.label for each in plan.stale] == ["configmaps/b in default"]
    assert "stale: configmaps/b in default: somebody has changed it" in "\n".join(
        as_lines(plan)
    )


def _requests(registry: Registry, served: Served, wall: float) -> list[ApiRequest]:
    planned(planner_of(registry, served, wall))
    return served.requests


def test_failures_are_told_once_each(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(spec: fnop.Spec, **_: Any) -> None:
        spec["missing"]

    run = Scenario(registry, [example("a"), example("b")])
    served, wall = source_of(run)
    plan = planned(planner_of(registry, served, wall))
    assert sorted(each.subject.name for each in plan.failures if each.subject) == [
        "a",
        "b",
    ]
    assert all(each.retried for each in plan.failures)


def keeps_a_service(registry: Registry, *ports: int) -> None:
    """Declare an operator whose Service has these ports, all of one name."""
    found = [{"name": "web", "port": each, "protocol": "TCP"} for each in ports]
    meta = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}

    @fnop.reconcile(KIND, owns="services", id="shop", registry=registry)
    def shop(**_: Any) -> fnop.Desired:
        return fnop.desired({**meta, "spec": {"ports": found}})


def test_what_is_done_otherwise_when_it_is_refused_is_no_failure(
    registry: Registry,
) -> None:
    """Another client's port has the same name: the list is set again."""
    keeps_a_service(registry, 80)
    run = settled(registry, example("a"))
    run.edit("services", "a", spec={"ports": [{"name": "web", "port": 81}]})
    served, wall = source_of(run)
    plan = planned(planner_of(registry, served, wall))
    assert plan.failures == ()
    assert labels(plan)["services/a in default"] == "change"


def test_what_fnop_can_ask_in_no_valid_way_is_a_failure(registry: Registry) -> None:
    keeps_a_service(registry, 80, 82)
    served, wall = source_of(Scenario(registry, [example("a")]))
    plan = planned(planner_of(registry, served, wall))
    assert any('Duplicate value: "web"' in each.message for each in plan.failures)


def test_an_index_that_fails_is_told(keeper: Registry) -> None:
    """The plan for other objects may depend on missing entries."""

    @fnop.index(KIND, registry=keeper)
    def by_field(spec: fnop.Spec, name: str, **_: Any) -> dict[str, str]:
        return {spec["field"]: name}

    run = Scenario(Registry(), [example("e", size=1), example("f", field="x", size=1)])
    plan = planned(planner_of(keeper, *source_of(run)))
    (failure,) = plan.failures
    assert failure.message == "KeyError: 'field'"
    assert [each.handler for each in failure.sources] == ["by_field"]
    assert failure.subject is not None
    assert failure.subject.name == "e"


def test_events_are_told_once_each(registry: Registry) -> None:
    """A daemon lets time pass: a warning about each attempt would be an Event."""

    @fnop.reconcile(KIND, owns=["secrets"], id="keep", registry=registry)
    def keep(name: str, **_: Any) -> fnop.Desired:
        kind = {"apiVersion": "v1", "kind": "Secret"}
        return fnop.desired([{**kind, "metadata": {"name": name}}])

    @fnop.daemon(KIND, id="look", registry=registry)
    async def look(stopped: Any, **_: Any) -> None:
        number = 0
        while not stopped:
            await fnop.sleep(3)
            number += 1
            await fnop.patch(status={"number": number})

    run = Scenario(registry, [example("a"), example("b")])
    served, wall = source_of(run, refuses=lambda request: "/secrets" in request.path)
    posting = Settings(posting_level="warning")
    plan = planned(planner_of(registry, served, wall, posting), 3)
    events = [each for each in plan.events if "keep failed" in each.message]
    assert sorted(each.subject.name for each in events if each.subject) == ["a", "b"]
    assert all(each.times > 1 for each in events)
    told = [each for each in as_lines(plan) if "! Event Warning Logging" in each]
    assert len(told) == 2
    assert all(f", {each.times} times" in told[0] for each in events[:1])
    (found, _) = as_json(plan)["events"]
    assert (found["times"], found["again"]) == (events[0].times, [*events[0].again])


def test_an_event_of_another_text_is_another_one() -> None:
    def reported(round: int, message: str) -> Write:
        place = Place("v1", "Event", "events", "default", "e")
        body = {"type": "Warning", "reason": "Logging", "message": message}
        rest = ("POST", "/x", (), body, "json", None, body, 201)
        return Write(round, place, "h", None, *rest)

    texts = ("h failed, again in 1 s: no", "h failed, again in 66.9 s: no")
    writes = [reported(1, texts[0]), reported(1, texts[1]), reported(3, texts[0])]
    (one,) = notices_of(writes, ())
    assert (one.message, one.round, one.again, one.times) == (texts[0], 1, (3,), 3)
    assert len(notices_of([*writes, reported(1, "h failed for good")], ())) == 2


def test_what_is_unknown_of_a_list_is_told_without_the_operator_s_own_items() -> None:
    settings = Settings("a")

    def written(moment: str) -> Write:
        own = {"type": settings.marker, "status": "False"}

        def body(ready: str, since: str) -> dict[str, Any]:
            condition = {"type": "Ready", "status": ready, "lastTransitionTime": since}
            meta = {"name": "x", "finalizers": [settings.finalizers[0], "theirs"]}
            return {"metadata": meta, "status": {"conditions": [own, condition]}}

        place = Place("v1", "X", "xs", "default", "x")
        write = Write(1, place, "h", None, "PATCH", "/x", (), {}, "", None, None, 200)
        return replace(write, before=body("True", "0"), after=body("False", moment))

    (change,) = changes_of(
        [written("1")], [written("2")], (), settings, lambda *both: both
    )
    assert [(each.path, each.unknown) for each in change.fields] == [
        ("status.conditions[0].lastTransitionTime", True),
        ("status.conditions[0].status", False),
    ]


def connect(**_: Any) -> None:
    raise AssertionError("it is called")


def test_impure_startup_handlers_hold_nothing_up(keeper: Registry) -> None:
    fnop.on.startup(registry=keeper, impure=True)(connect)
    run = Scenario(keeper, [example("a", size=1)])
    served, wall = source_of(run)
    plan = planned(planner_of(keeper, served, wall))
    assert labels(plan)["configmaps/a in default"] == "create"
    assert [each.handler for each in plan.calls] == ["connect"]


def by_kopf(name: str, handled: Any = None, **records: Any) -> dict[str, Any]:
    """An example as a Kopf operator leaves it, with records of its handlers."""
    found = example(name, size=1)
    notes = {f"{KOPF}/{key}": json.dumps(each) for key, each in records.items()}
    if handled is not None:
        notes[f"{KOPF}/last-handled-configuration"] = json.dumps({"spec": handled})
    found["metadata"]["annotations"] = notes
    found["metadata"]["finalizers"] = [f"{KOPF}/KopfFinalizerMarker"]
    return found


KOPF = "kopf.zalando.org"
RETRIED = {"started": "2026-01-01T00:00:00", "purpose": "create", "retries": 1}
SUCCEEDED = {"started": "2026-01-01T00:00:00", "purpose": "update", "success": True}
LAST_ELSEWHERE = {"example.com/last-handled-configuration": "{}"}


def test_a_successor_of_kopf_is_told_which_handlers_are_called(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, id="create", registry=registry)
    @fnop.on.update(KIND, id="update", registry=registry)
    @fnop.on.resume(KIND, id="resume", registry=registry)
    def handle(**_: Any) -> None:
        pass

    moved = example("moved")
    moved["metadata"]["annotations"] = LAST_ELSEWHERE
    objects = (
        by_kopf("handled", {"size": 1}),
        by_kopf("edited", {"size": 2}),
        by_kopf("tried", create=RETRIED),
        by_kopf("updated", {"size": 2}, update=SUCCEEDED),
        example("new"),
        moved,
    )
    served, wall = source_of(Scenario(registry, objects))
    settings = Settings(takes_over=KOPF)
    plan = planned(planner_of(registry, served, wall, settings), takeover=True)
    assert due_of(plan) == {
        ("again", "create", "create", "moved"),
        ("again", "update", "update", "updated"),
        ("retry", "create", "create", "tried"),
        ("first", "create", "create", "new"),
        ("first", "update", "update", "edited"),
        *(("start", "", "resume", e) for e in ("handled", "edited", "updated")),
    }
    found = as_json(plan)
    assert [e["objects"][0]["name"] for e in found["takeover"]] == ["moved", "updated"]
    whys = [each["why"] for each in found["due"]]
    assert [*dict.fromkeys(whys)] == ["again", "retry", "first", "start"]
    text = "\n".join(as_lines(plan))
    for words in (
        "would be called again for the update of fnopexamples.fnop.dev/updated",
        "would be retried for the creation of fnopexamples.fnop.dev/tried",
        "for the creation of fnopexamples.fnop.dev/new in default, not handled before",
        "is called at each start, for fnopexamples.fnop.dev/",
        "these calls may lead to others, which are not known",
    ):
        assert words in text
    with pytest.raises(PlanProblem, match="takes_over="):
        planned(planner_of(registry, served, wall), takeover=True)


@pytest.mark.parametrize("purpose", ["create", "update"])
def test_records_that_nobody_reads_are_of_handlers_that_are_called_again(
    registry: Registry, purpose: str
) -> None:
    def handle(**_: Any) -> None:
        pass

    for reason, declare in {"create": fnop.on.create, "update": fnop.on.update}.items():
        declare(KIND, id=f"done/{reason}", registry=registry)(handle)
        declare(KIND, id=f"fresh/{reason}", registry=registry)(handle)
    found = example("x", size=1) if purpose == "create" else by_kopf("x", {"size": 2})
    record = json.dumps({"purpose": purpose, "success": True, "retries": 1})
    notes = found["metadata"].setdefault("annotations", {})
    notes[f"former.example.com/done.{purpose}"] = record
    served, wall = source_of(Scenario(registry, [found]))
    settings = Settings(takes_over=KOPF)
    plan = planned(planner_of(registry, served, wall, settings), takeover=True)
    assert due_of(plan) == {
        ("again", purpose, f"done/{purpose}", "x"),
        ("first", purpose, f"fresh/{purpose}", "x"),
    }


def test_where_nothing_is_called_again_the_report_says_so(registry: Registry) -> None:
    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> None:
        pass

    served, wall = source_of(Scenario(registry, [by_kopf("handled", {"size": 1})]))
    settings = Settings(takes_over=KOPF)
    plan = planned(planner_of(registry, served, wall, settings), takeover=True)
    assert (plan.due, plan.again) == ((), ())
    assert "  takeover: no handler would be called again" in [*as_lines(plan)]


def test_what_may_not_be_listed_may_be_handled_again(registry: Registry) -> None:
    for kind in (KIND, "pods"):

        @fnop.on.create(kind, id=kind, registry=registry)
        def create(**_: Any) -> None:
            pass

    run = Scenario(registry, [example("new")])
    served, wall = source_of(run, refuses=lambda asked: asked.path.endswith("/pods"))
    settings = Settings(takes_over=KOPF)
    plan = planned(planner_of(registry, served, wall, settings), takeover=True)
    assert [each.label for each in plan.unlisted] == ["pods/*"]
    text = "\n".join(as_lines(plan))
    assert "takeover: not known for pods/*, which cannot be read" in text
    assert "called again" not in text


def test_the_json_has_a_format_and_the_line_of_each_handler(keeper: Registry) -> None:
    run = Scenario(keeper, [example("a", size=1)])
    served, wall = source_of(run)
    found = as_json(planned(planner_of(keeper, served, wall)))
    assert found["format"] == 1
    (change,) = (each for each in found["changes"] if each["kind"] == "ConfigMap")
    assert change["actions"] == ["create"]
    assert change["handler"] == "keep"
    file, _, line = change["line"].rpartition(":")
    assert file.endswith("test_plan.py")
    with open(file) as text:
        assert "@fnop.reconcile" in text.read().splitlines()[int(line) - 1]
    assert change["before"] is None
    assert change["round"] == 1
    assert found["writes"] == 0
    json.dumps(found)


def test_a_dry_run_asks_the_server_and_keeps_nothing(keeper: Registry) -> None:
    run = settled(keeper, *(example(name, size=1) for name in "abc"))
    run.edit("configmaps", "a", data={"size": "7"})
    run.delete("configmaps", "b")
    run.delete("configmaps", "c")

    def refuses(request: ApiRequest) -> bool:
        return request.path.endswith("/configmaps/c") and request.method != "GET"

    served, wall = source_of(run, refuses=refuses)
    plan = planned(planner_of(keeper, served, wall), dry_run=True)
    assert served.cluster is run.cluster
    asked = [each for each in served.requests if each.method != "GET"]
    assert len(asked) == plan.tries == 3
    assert all(("dryRun", "All") in each.query for each in asked)
    assert plan.tried is not None
    assert [(each.place.name, each.refusal) for each in plan.tried] == [
        ("c", "you may not")
    ]
    lines = [*as_lines(plan)]
    assert "  dry run: configmaps/c in default is refused: you may not" in lines
    assert lines[-1].endswith(f"0 writes sent, 3 dry runs, {plan.reads} reads.")
    assert as_json(plan)["dry_run"][0]["refusal"] == "you may not"


def test_a_dry_run_shows_what_the_server_stores_otherwise(keeper: Registry) -> None:
    run = settled(keeper, example("a", size=1))
    run.delete("configmaps", "a")
    served, wall = source_of(run)

    def labelling(send: Any) -> Any:
        async def labelled(request: ApiRequest) -> Any:
            response = await send(request)
            if request.method != "GET":
                response.body["metadata"].setdefault("labels", {})["by"] = "admission"
            return response

        return labelled

    served.send = labelling(served.send)  # type: ignore[method-assign]
    plan = planned(planner_of(keeper, served, wall), dry_run=True)
    assert plan.tried is not None
    (only,) = plan.tried
    assert [*map(tuple, only.fields)] == [
        ("metadata.labels.by", None, "admission", False)
    ]


def test_a_deletion_that_is_tried_deletes_nothing() -> None:
    run = Scenario(Registry(), [note("one")])
    served, _ = source_of(run)
    place = Place("v1", "ConfigMap", "configmaps", "default", "one")
    path = "/api/v1/namespaces/default/configmaps/one"
    for body in (None, {"kind": "DeleteOptions", "apiVersion": "v1"}):
        kind = "application/json"
        write = Write(
            *(1, place, "", None, "DELETE", path, (), body, kind, None, None, 200)
        )
        response = asyncio.run(DryRunOnly(served).ask(write))
        assert response.status == 200
    assert served.cluster is run.cluster


def bill(**_: Any) -> None:
    raise AssertionError("it is called")


def test_impure_handlers_and_daemons_are_not_run(registry: Registry) -> None:
    fnop.on.create(KIND, id="bill", registry=registry, impure=True)(bill)
    fnop.daemon(KIND, id="follow", registry=registry, impure=True)(bill)

    @fnop.on.create(KIND, registry=registry)
    def other(patch: fnop.Patch, **_: Any) -> None:
        patch.status["other"] = True

    run = Scenario(registry, [example("a")])
    served, wall = source_of(run)
    plan = planned(planner_of(registry, served, wall), 3)
    found = as_json(plan)["calls"]
    assert sorted(each["handler"] for each in found) == ["bill", "follow"]
    assert all(each["impure_handler"] and each["after_unknown"] for each in found)
    text = "\n".join(as_lines(plan))
    assert "? handler bill (" in text
    assert "known after call bill" in text


EXAMPLES_TOLD = sorted(
    each.parent.name
    for each in (ROOT / "examples").glob("[0-9]*/object.yaml")
    if (each.parent / "example.py").exists()
)


@pytest.mark.parametrize("name", EXAMPLES_TOLD)
def test_all_that_is_planned_of_an_example_is_done(name: str) -> None:
    handlers = example_handlers(name)
    run = Scenario(handlers, manifests_of(name))
    served, wall = source_of(run)
    planner = planner_of(handlers, served, wall)
    plan = planned(planner, 3)
    assert not plan.is_empty or plan.failures
    assert served.cluster is run.cluster
    assert {each.method for each in served.requests} == {"GET"}
    run.settle(seconds=2)
    # It goes on for longer, and makes the calls.
    differing = sent_as_planned(planner, run.requests)
    assert [each for each in differing if each.startswith("not sent")] == []
    json.dumps(as_json(plan))
    assert [*as_lines(plan, own=True)]


def test_what_is_read_late_takes_nothing_back(registry: Registry) -> None:
    """A listing shows what the rehearsal has changed since as it was before."""

    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, patch: fnop.Patch, **_: Any) -> None:
        if name == "first":
            await fnop.apply(note("changed", a="new"))
            await fnop.get("secrets", name="second")
            found = await fnop.get("configmaps", name="changed")
            patch.status["found"] = found["data"]
        else:
            await fnop.get("secrets", name="first")
            await fnop.apply(note(name, a="b"))

    others = [f"e{number}" for number in range(6)]
    run = Scenario(registry, [note("changed", old="1")])
    run.apply(*map(example, ("first", *others)))
    served, wall = source_of(run)
    planner = planner_of(registry, served, wall)
    plan = planned(planner)
    lists = [e for e in served.requests if e.path.endswith("/default/configmaps")]
    assert lists
    (first,) = (each for each in plan.changes if each.place.name == "first")
    assert [each.new for each in first.fields if each.path == "status.found.a"] == [
        "new"
    ]
    assert run.settle()
    assert sent_as_planned(planner, run.requests) == []
