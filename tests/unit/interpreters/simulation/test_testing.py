"""fnop.testing: the tools for authors' tests (decisions, stories, laws)."""

from __future__ import annotations

import doctest
import importlib
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import fnop
import fnop.testing
from fnop.adapters import testing
from fnop.adapters.testing import strategies
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.handlers.declare.signatures import names_in
from fnop.core.handlers.run.arguments import PROVIDERS
from fnop.effects import Event, Patch
from fnop.interpreters.cluster.schema.schema import compile_schema
from fnop.testing import (
    Off,
    On,
    Simulation,
    Slow,
    load,
    manifests,
    matches,
    plan_of,
    values_of_schema,
)
from tests.commands import pytest_of
from tests.thorough import examples

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "claims.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "claims", "kind": "Claim", "singular": "claim"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "string", "pattern": "^[0-9]+Gi$"},
                                    "mode": {"type": "string", "enum": ["a", "b"]},
                                    "parts": {
                                        "type": "array",
                                        "maxItems": 3,
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "weight": {
                                                    "type": "integer",
                                                    "minimum": 1,
                                                },
                                            },
                                        },
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


def claim(name: str = "c", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Claim",
        "metadata": {"name": name},
        "spec": spec,
    }


REGISTRY = Registry()


@fnop.on.create("claims", registry=REGISTRY)
def bind(spec: Any, patch: Any, **_: Any) -> Any:
    if "size" not in spec:
        raise fnop.PermanentError("spec.size must be set")
    patch.status["phase"] = "Binding"
    return [
        fnop.adopt(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "data": {"size": spec["size"]},
            }
        ),
        fnop.event("Binding", f"asking for {spec['size']}"),
    ]


@fnop.on.field("claims", field="spec.size", registry=REGISTRY)
def resize(old: Any, new: Any, patch: Any, logger: Any, **_: Any) -> None:
    logger.info(f"{old} -> {new}")
    patch.status["requested"] = new


@fnop.on.delete("claims", registry=REGISTRY)
def release(**_: Any) -> None: ...


# ----------------------------------------------------------------- a decision


def test_a_decision_that_fails() -> None:
    plan = plan_of(bind, claim(), registry=REGISTRY)
    assert plan.failed("spec.size must be set")
    assert not plan.succeeded
    assert list(plan) == []


def test_a_decision_that_succeeds() -> None:
    plan = plan_of(bind, claim(size="1Gi"), registry=REGISTRY)
    assert plan.succeeded
    assert [each.kind for each in plan] == ["Adopt", "Event", "Patch"]
    assert plan[0].child["data"]["size"] == "1Gi"
    assert plan.patched == {"status": {"phase": "Binding"}}
    assert len(plan.of(Patch)) == 1


def test_a_reconcile_handler_gets_its_children_and_says_what_it_desires() -> None:
    registry = Registry()

    @fnop.reconcile("things", owns=["services", "configmaps"], registry=registry)
    async def keep(
        name: str, children: fnop.Children, conditions: Any, **_: Any
    ) -> list[Any]:
        token = await fnop.random(4)
        map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        there = sorted(children["services"])
        ready = fnop.condition("Ready", bool(there), "Services", ",".join(there))
        wanted = fnop.desired({**map, "data": {"t": token.hex()}}, conditions=ready)
        return [wanted, fnop.event("Kept", f"{len(conditions)} conditions")]

    plan = plan_of(
        keep,
        {"status": {"conditions": [{"type": "Old"}]}},
        children={"services": [{"metadata": {"name": "web"}}]},
        answers=[bytes(4)],
        registry=registry,
    )
    assert plan.succeeded
    assert plan.desired is not None
    assert [each.label for each in plan.desired.children] == ["configmap/object"]
    assert plan.desired.children[0].manifest["data"] == {"t": "00000000"}
    assert plan.desired.conditions == (
        fnop.condition("Ready", True, "Services", "web"),
    )
    assert [each.message for each in plan.of(Event)] == ["1 conditions"]
    assert plan.patched == {}, "nobody has applied anything"


def test_children_that_are_not_owned_are_refused() -> None:
    registry = Registry()

    @fnop.reconcile("things", owns="services", registry=registry, id="keep")
    def keep(children: fnop.Children, **_: Any) -> None:
        raise fnop.PermanentError("no such size")

    assert plan_of(keep, {}, registry=registry).failed("no such size")
    with pytest.raises(TypeError, match="has 'pods', and keep owns 'services'"):
        plan_of(keep, {}, children={"pods": []}, registry=registry)


def test_a_handler_of_a_field_gets_both_values() -> None:
    plan = plan_of(resize, claim(size="2Gi"), old=claim(size="1Gi"), registry=REGISTRY)
    assert plan.patched == {"status": {"requested": "2Gi"}}
    assert [line.message for line in plan.lines] == ["1Gi -> 2Gi"]


def test_a_conversation_gets_its_answers() -> None:
    async def provision(spec: Any, uid: str) -> dict[str, Any]:
        secret = await fnop.get("secrets", name=spec["secret"])
        if secret is None:
            raise fnop.TemporaryError("no secret yet", delay=5)
        await fnop.sleep(10)
        view = await fnop.patch(status={"phase": "Provisioned"})
        return {"user": secret["data"]["user"], "phase": view.status["phase"]}

    asked = fnop.get("secrets", name="s")
    body = claim(secret="s")
    plan = plan_of(provision, body, answers={asked: None})
    assert plan.retries_after == 5
    assert not plan.failed()

    registry = Registry()
    limited: Any = fnop.on.create("claims", timeout=5, registry=registry)
    plan = plan_of(limited(provision), body, answers={asked: None}, registry=registry)
    assert plan.retries_after is None, "its timeout comes first"

    plan = plan_of(provision, body, answers={asked: {"data": {"user": "me"}}})
    assert plan.result == {"user": "me", "phase": "Provisioned"}
    assert [each.kind for each in plan] == ["Get", "Sleep", "Patch"]

    plan = plan_of(provision, body, answers=[fnop.Refused(403, "Forbidden", "no")])
    assert "no" in str(plan.failure)
    assert plan.retries_after == 1


def test_an_effect_without_an_answer_is_named() -> None:
    async def look(**_: Any) -> None:
        await fnop.get("secrets", name="s")

    with pytest.raises(AssertionError, match=r"look awaits Get.* no answer"):
        plan_of(look, claim())
    other = fnop.get("secrets", name="other")
    with pytest.raises(AssertionError, match=r"look awaits .*, but for Get.*'other'"):
        plan_of(look, claim(), answers={other: None})


def test_answers_can_be_computed() -> None:
    async def count(**_: Any) -> int:
        return len(await fnop.list("pods")) + len(await fnop.list("nodes"))

    plan = plan_of(count, claim(), answers=lambda effect: [{}] * len(effect.resource))
    assert plan.result == len("pods") + len("nodes")


def test_again_and_memo_and_parts() -> None:
    def wait(memo: Any) -> Any:
        fnop.register(release, id="part")
        return [fnop.remember(tries=memo["tries"] + 1), fnop.again(10, "not yet")]

    plan = plan_of(wait, claim(), memo={"tries": 1})
    assert plan.again is not None
    assert plan.retries_after == 10
    assert plan.memo == {"tries": 2}
    assert plan.children == ("part",)


def test_a_part_can_be_looked_at_as_well() -> None:
    def whole(spec: Any, **_: Any) -> None:
        for size in spec["sizes"]:

            async def place(name: str, size: int = size, **_: Any) -> dict[str, Any]:
                fnop.register(release, id="deeper")
                return {"name": name, "found": await fnop.get("pods", name=f"p{size}")}

            fnop.register(place, id=f"x/{size}", backoff=7)

    plan = plan_of(whole, claim(sizes=[1, 2]))
    assert plan.children == ("x/1", "x/2")
    part = plan.part("x/2", answers={fnop.get("pods", name="p2"): None})
    assert part.result == {"name": "c", "found": None}
    assert part.children == ("deeper",)
    assert part.part("deeper").succeeded
    assert plan.part("x/1", [ValueError("no")]).retries_after == 7
    with pytest.raises(KeyError, match="'x'; declared are: x/1, x/2"):
        plan.part("x")


def test_of_several_decorators_the_usual_one_is_meant() -> None:
    registry = Registry()

    @fnop.on.resume("claims", registry=registry)
    @fnop.on.update("claims", registry=registry)
    @fnop.on.create("claims", registry=registry)
    @fnop.on.delete("claims", registry=registry)
    def handle(reason: str, **_: Any) -> str:
        return reason

    def reason_of(**given: Any) -> Any:
        return plan_of(handle, claim(size="1Gi"), registry=registry, **given).result

    assert reason_of() == "create"
    assert reason_of(old=claim(size="2Gi")) == "update"
    assert reason_of(reason="resume") == "resume"
    assert reason_of(reason="delete") == "delete"


@pytest.mark.parametrize("namespaced", [True, False])
def test_an_object_has_what_objects_of_its_kind_have(namespaced: bool) -> None:
    def look(namespace: Any, body: Any) -> Any:
        return {"namespace": namespace, "kind": body["kind"]}

    resource = fnop.Resource("a.dev", "v1", "as", "A", namespaced=namespaced)
    plan = plan_of(look, {"spec": {}}, resource=resource)
    where = "default" if namespaced else None
    assert plan.result == {"namespace": where, "kind": "A"}


def test_a_lost_effect_is_a_failure() -> None:
    def forget(**_: Any) -> None:
        fnop.event("Lost", "nobody returns it")

    assert "has no effect" in str(plan_of(forget, claim()).failure)


INDICES = Registry()


@fnop.index("pods", registry=INDICES)
def pods_by_app(labels: Any, name: str, **_: Any) -> Any:
    return {labels["app"]: name}


@fnop.on.create("claims", registry=INDICES)
def count(spec: Any, pods_by_app: fnop.Index[str, str] = fnop.INDEX, **_: Any) -> Any:
    return {"pods": pods_by_app.get(spec["app"], ()), "apps": list(pods_by_app)}


def test_a_handler_gets_the_indices_that_it_asks_for() -> None:
    given = {"web": ["b", "a"], "db": ["c"], "none": []}
    body = claim(app="web")
    plan = plan_of(count, body, registry=INDICES, indices={"pods_by_app": given})
    # As from a cluster: tuples in the order of the objects, and no key without any.
    assert plan.result == {"pods": ["b", "a"], "apps": ["db", "web"]}


def test_what_an_index_holds_is_read_only() -> None:
    def change(pods: Any) -> None:
        pods["web"][0]["name"] = "other"

    found = {"pods": {"web": [{"name": "a"}]}}
    plan = plan_of(change, claim(), indices=found)
    assert "read-only" in str(plan.failure)


def test_an_index_that_is_not_given_is_named() -> None:
    with pytest.raises(AssertionError, match=r"count asks for the index 'pods_by_app'"):
        plan_of(count, claim(app="web"), registry=INDICES)
    given = {"pods_by_app": {"web": "a"}}
    with pytest.raises(TypeError, match=r"give \['a'\]"):
        plan_of(count, claim(app="web"), registry=INDICES, indices=given)


def test_effects_with_equal_contents_are_one_key() -> None:
    one, other = (fnop.patch(status={"a": [1, {"b": 2}]}) for _ in range(2))
    assert {one: 1}[other] == 1


# -------------------------------------------------------------------- a story


def test_a_story() -> None:
    sim = Simulation(REGISTRY, crds=CRD)
    sim.apply(claim(size="1Gi")).settle()
    assert sim.settled
    assert sim["claims/c"].status["phase"] == "Binding"
    assert [
        each["data"]
        for each in sim.objects("configmaps")
        if "data" in each and "size" in each["data"]
    ] == [{"size": "1Gi"}]
    assert [each["reason"] for each in sim.events("claims/c")] == ["Binding"]

    sim.edit("claims/c", spec={"size": "2Gi"}).settle()
    assert sim["claims/c"].status["requested"] == "2Gi"
    assert sim.elapsed < timedelta(minutes=1)

    sim.delete("claims/c").settle()
    assert "claims/c" not in sim
    assert sim.errors == []
    assert any(line.startswith("PATCH ") for line in sim.writes)


def test_apply_twice_changes_what_is_there() -> None:
    sim = Simulation(REGISTRY, crds=CRD).apply(claim(size="1Gi"))
    sim.apply(claim(size="2Gi", mode="a"))
    assert sim["claims/c"].spec == {"size": "2Gi", "mode": "a"}


def test_a_field_that_the_kind_does_not_have_is_refused() -> None:
    sim = Simulation(REGISTRY, crds=CRD)
    misspelt = {**claim("d", size="1Gi"), "sepc": {}}
    with pytest.raises(AssertionError, match=r'error: unknown field "sepc"$'):
        sim.apply(misspelt)
    sim.apply(claim(size="1Gi"))
    for changes in ({"spc": {"size": "2Gi"}}, {"metadata": {"label": {"a": "b"}}}):
        with pytest.raises(AssertionError, match=r"unknown field \"[a-z.]+\"$"):
            sim.edit("claims/c", **changes)
    assert sim["claims/c"].spec == {"size": "1Gi"}


def test_an_object_that_is_not_there_is_named_with_those_that_are() -> None:
    sim = Simulation(REGISTRY, crds=CRD)
    with pytest.raises(KeyError) as missing:
        sim["claims/c"]
    assert str(missing.value) == (
        "there is no claims/c in default; of claims there is none; the operator has "
        "not run yet: settle()"
    )
    sim.apply([claim("a", size="1Gi"), claim("b", size="1Gi")]).settle()
    with pytest.raises(KeyError, match="of claims there is a in default, b in default"):
        sim["claims/c"]
    assert sim.get("claims/c") is None
    assert "claims/c" not in sim
    assert "claims/a" in sim


def test_objects_of_another_namespace_are_told_apart() -> None:
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    there = claim(size="2Gi")
    there["metadata"]["namespace"] = "other"
    sim = Simulation(REGISTRY, crds=CRD, objects=[other, claim(size="1Gi"), there])
    sim.edit("claims/c", namespace="other", spec={"mode": "b"}).settle()
    assert sim["claims/c"].spec == {"size": "1Gi"}
    found = sim.get("claims/c", namespace="other")
    assert found is not None
    assert found.spec == {"size": "2Gi", "mode": "b"}
    sim.delete("claims/c", namespace="other").settle()
    assert [each.namespace for each in sim.objects("claims")] == ["default"]


def test_time_passes_when_it_is_told_to() -> None:
    registry, ticks = Registry(), []

    @fnop.timer("claims", interval=10, registry=registry)
    def tick(now: Any, **_: Any) -> None:
        ticks.append(now)

    sim = Simulation(registry, crds=CRD, objects=claim(size="1Gi"))
    sim.wait(timedelta(seconds=35))
    assert len(ticks) == 4
    assert sim.elapsed == timedelta(seconds=35)
    sim.restart().wait(1)
    assert len(ticks) == 5


@pytest.mark.parametrize("with_timer", [False, True])
def test_a_kind_that_is_defined_later_is_served(with_timer: bool) -> None:
    registry, names = Registry(), []

    @fnop.on.create("claims", registry=registry)
    def created(name: str, **_: Any) -> None:
        names.append(name)

    if with_timer:

        @fnop.timer("configmaps", interval=30, registry=registry)
        def tick(**_: Any) -> None: ...

    sim = Simulation(registry).settle()
    assert sim.settled
    assert any("serves no 'claims' yet" in line for line in sim.log)
    sim.apply(CRD).settle()
    assert sim.settled
    assert "serving claims.example.com" in sim.log
    sim.apply(claim("a", size="1Gi")).settle()
    assert names == ["a"]
    # Also together with its objects, and however long it has been missing.
    late = Simulation(registry)
    late.wait(timedelta(hours=1))
    late.apply([CRD, claim("b", size="1Gi")]).settle()
    assert names == ["a", "b"]
    assert late.elapsed < timedelta(hours=1, minutes=1)


def test_a_kind_that_is_defined_later_is_served_while_time_passes() -> None:
    registry, names = Registry(), []

    @fnop.on.create("claims", registry=registry)
    def created(name: str, **_: Any) -> None:
        names.append(name)

    sim = Simulation(registry).settle()
    sim.apply([CRD, claim(size="1Gi")]).wait(60)
    assert names == ["c"]
    assert sim.elapsed == timedelta(seconds=60)


def failing(registry: Registry, role: str) -> None:
    """A handler with a slip in it: at the start, of an object, in a part or a plan."""

    def fails(**_: Any) -> None:
        raise NameError("name 'owner' is not defined")

    def whole(**_: Any) -> None:
        fnop.register(fails, id="part")

    def plan(**_: Any) -> fnop.Effect:
        return fnop.patch(fnop.target("pods", name="nobody"), labels={"a": "b"})

    if role == "startup":
        fnop.on.startup(registry=registry)(fails)
    else:
        handlers: Any = {"whole": fails, "part": whole, "plan": plan}
        fnop.on.create("claims", registry=registry)(handlers[role])


@pytest.mark.parametrize("role", ["startup", "whole", "part", "plan"])
def test_who_fails_for_ever_is_not_waited_for_a_week(role: str) -> None:
    registry = Registry()
    failing(registry, role)

    @fnop.timer("claims", interval=50, registry=registry)
    def tick(**_: Any) -> None: ...

    sim = Simulation(registry, crds=CRD, objects=claim(size="1Gi")).settle()
    assert not sim.settled
    assert sim.elapsed < timedelta(hours=1)
    assert 20 <= len(sim.errors) < 25


def test_a_timer_that_always_writes_is_not_waited_for_a_week() -> None:
    registry = Registry()

    @fnop.timer("claims", interval=30, registry=registry)
    def count(status: Any, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"count": status.get("count", 0) + 1})

    sim = Simulation(registry, crds=CRD, objects=claim(size="1Gi")).settle()
    assert not sim.settled
    assert timedelta(hours=1) < sim.elapsed < timedelta(hours=3)
    assert sim["claims/c"].status["count"] > 100


def test_others_are_waited_for_beside_who_fails_for_ever() -> None:
    registry = Registry()
    failing(registry, "whole")

    @fnop.on.create("claims", labels={"slow": "yes"}, registry=registry)
    async def slow(**_: Any) -> fnop.Effect:
        for minutes in (30, 60, 30):
            await fnop.sleep(60 * minutes)
        return fnop.patch(status={"phase": "Done"})

    late: dict[str, Any] = claim("late", size="1Gi")
    late["metadata"]["labels"] = {"slow": "yes"}
    sim = Simulation(registry, crds=CRD, objects=[claim(size="1Gi"), late]).settle()
    assert not sim.settled
    assert sim["claims/late"].status["phase"] == "Done"


@pytest.mark.parametrize("expected", [True, False])
def test_what_an_author_foresees_is_waited_for(expected: bool) -> None:
    registry, calls = Registry(), []

    @fnop.on.create("claims", backoff=60, registry=registry)
    def patient(**_: Any) -> None:
        calls.append(1)
        if len(calls) <= 100:
            if expected:
                raise fnop.TemporaryError("not yet", delay=60)
            # Another error each time does not mean that there will always be one.
            raise ConnectionError(f"attempt {len(calls)}")

    sim = Simulation(registry, crds=CRD, objects=claim(size="1Gi")).settle()
    assert sim.settled
    assert len(calls) == 101


def test_a_missing_kind_is_told_once_however_long_it_is_missing() -> None:
    registry = Registry()

    @fnop.on.create("claims", registry=registry)
    def created(**_: Any) -> None: ...

    sim = Simulation(registry).settle()
    lines = len(sim.log)
    sim.wait(timedelta(hours=1)).settle()
    assert sim.elapsed == timedelta(hours=1)
    assert len(sim.log) == lines


def test_controllers_are_as_willing_as_the_test_says() -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    sim = Simulation(REGISTRY, crds=CRD).pace("kubelet", Off()).apply(pod).settle()
    assert sim["pods/p"].status["phase"] == "Pending"
    assert sim.pace("kubelet", On()).settle()["pods/p"].status["phase"] == "Running"
    pod["metadata"] = {"name": "slow"}
    sim.pace("kubelet", Slow(30)).apply(pod).wait(29)
    assert sim["pods/slow"].status["phase"] == "Pending"
    assert sim.settle()["pods/slow"].status["phase"] == "Running"
    with pytest.raises(ValueError, match="there is no controller"):
        sim.pace("unicorn", Off())


def test_the_cluster_goes_on_without_the_operator() -> None:
    sim = Simulation(REGISTRY, crds=CRD)
    sim.apply(claim(size="1Gi")).settle().stop()
    sim.edit("claims/c", metadata={"finalizers": None})
    sim.delete("claims/c").settle()
    assert sim.settled
    assert [each for each in sim.objects("configmaps") if "size" in each["data"]] == []
    writes = sim.writes
    sim.apply(claim(size="2Gi")).settle()
    assert sim.writes == writes
    sim.restart().settle()
    assert sim["claims/c"].status["requested"] == "2Gi"


def test_a_refused_object_is_the_tests_own_fault() -> None:
    sim = Simulation(REGISTRY, crds=CRD)
    with pytest.raises(AssertionError, match=r"spec\.size"):
        sim.apply(claim(size="much"))
    with pytest.raises(AssertionError, match="give its definition"):
        sim.apply({**claim(), "kind": "Unicorn"})
    with pytest.raises(AssertionError, match="kind/name"):
        sim.get("claims")


@pytest.mark.parametrize(
    ("duration", "error", "words"),
    [
        (-1, ValueError, "the time to wait must be a number of seconds from 0"),
        (timedelta(seconds=-1), ValueError, "the time to wait must be"),
        (float("nan"), ValueError, "the time to wait must be"),
        ("5s", TypeError, "the time to wait must be a number of seconds, not '5s'"),
        (None, TypeError, "the time to wait must be a number of seconds, not None"),
    ],
)
def test_what_is_no_time_is_refused(
    duration: Any, error: type[Exception], words: str
) -> None:
    sim = Simulation(REGISTRY, crds=CRD)
    with pytest.raises(error, match=words):
        sim.wait(duration)


@pytest.mark.parametrize("given", ["x", [("spec", {})], 5])
def test_what_is_no_object_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="body is to be an object as a mapping, not "):
        plan_of(bind, given, registry=REGISTRY)
    with pytest.raises(TypeError, match="old is to be an object as a mapping, not "):
        plan_of(bind, claim(size="1Gi"), old=given, registry=REGISTRY)
    with pytest.raises(TypeError, match="body is to be an object as a mapping, not "):
        matches(bind, given, registry=REGISTRY)


CHANGE_ARGUMENTS = sorted(
    PROVIDERS.keys()
    - {"downtime"}
    - {"activity", "settings", "event", "type", "stopped", "children", "conditions"}
    - (names_in(fnop.AdmissionHandler) - names_in(fnop.ChangeHandler))
    - (names_in(fnop.LogHandler) - names_in(fnop.ChangeHandler))
)


OF_NO_OBJECT = {"logger", "patch", "memo", "param", "retry", "started", "runtime"}
OF_NO_OBJECT |= {"now", "resource", "reason", "old"}


@pytest.mark.parametrize("name", [*CHANGE_ARGUMENTS, "**kwargs"])
def test_an_object_is_asked_for_where_it_is_needed(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def asks({name}): ...", scope)
    asks = scope["asks"]
    assert plan_of(asks, claim()).succeeded
    if name in OF_NO_OBJECT:
        assert plan_of(asks).succeeded
        return
    with pytest.raises(TypeError) as problem:
        plan_of(asks)
    said = str(problem.value)
    assert f"asks asks for {name}, and there is no object; give it" in said


def test_the_object_may_be_left_out_only_where_nothing_is_made_of_it() -> None:
    with pytest.raises(TypeError, match="bind asks for spec, and there is no object"):
        plan_of(bind, registry=REGISTRY)
    assert plan_of(asks_once, answers=[b"abcd"]).succeeded


async def asks_once(**_: Any) -> Any:
    return (await fnop.random(4)).hex()


def test_answers_that_nothing_has_asked_for_are_told() -> None:
    said = "asks_once has ended, and nothing has asked for 2 answers: 5, 'x'"
    with pytest.raises(AssertionError, match=said):
        plan_of(asks_once, claim(), answers=[b"abcd", 5, "x"])
    assert plan_of(asks_once, claim(), answers=[b"abcd"]).result == b"abcd".hex()
    failed = plan_of(asks_once, claim(), answers=[fnop.PermanentError("no"), 5])
    assert failed.failed("no"), "what comes after a failure is not asked for"


MISTAKEN = """
import fnop

@fnop.on.create("claims", retries="x")
def mistaken(**_): ...
"""


@pytest.mark.parametrize(
    "test", [MISTAKEN, "from fnop.testing import load\nload('operator.py')"]
)
def test_pytest_shows_the_author_s_lines_of_a_mistake_at_registration(
    test: str, tmp_path: Path
) -> None:
    (tmp_path / "operator.py").write_text(MISTAKEN)
    (tmp_path / "test_it.py").write_text(
        "def test_it():\n" + "\n".join(f"    {each}" for each in test.splitlines())
    )
    done = pytest_of("test_it.py", folder=tmp_path)
    assert done.status == 1, done
    assert "@fnop.on.create: retries= must be a number of attempts" in done.out
    for ours in ("check_options", "declaring.py", "exec_module"):
        assert ours not in done.out


# ------------------------------------------------------------ files and modules

FILE = """
import fnop

def ping(host):
    raise OSError("there is no network")

@fnop.on.create("claims", errors=fnop.ErrorsMode.PERMANENT, retries=3)
async def create(name, **_):
    return {"pong": await fnop.call(ping, host=name)}
"""


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Path]]:
    """Writes an operator's file under a name."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}

    def write(name: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FILE)
        return file

    with default_registry.set_aside():
        yield write
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_file_of_any_name_can_be_tested(folder: Callable[[str], Path]) -> None:
    file = folder("operator.py")
    operator = load(file)
    plan = plan_of(operator.create, claim(), answers=[OSError("gone")])
    assert plan.failed("gone"), "errors= is what the decorator says"
    for named in (file, operator):
        sim = Simulation(named, crds=CRD, calls={operator.ping: lambda host: host})
        sim.apply(claim(size="1Gi")).settle()
        assert sim["claims/c"].status["create"] == {"pong": "c"}
    assert load(file) is operator
    assert default_registry.handlers == ()


def test_a_model_is_for_a_file_and_for_its_module(
    folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder("pinging.py")
    monkeypatch.syspath_prepend(str(file.parent))
    pinging = importlib.import_module("pinging")
    for named, asked in ((file, pinging), (pinging, load(file))):
        sim = Simulation(named, crds=CRD, calls={asked.ping: lambda host: host})
        sim.apply(claim(size="1Gi")).settle()
        assert sim["claims/c"].status["create"] == {"pong": "c"}


def test_a_package_has_the_handlers_of_its_modules(
    folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder("pinger/handlers.py")
    (file.parent / "__init__.py").write_text("from pinger import handlers")
    monkeypatch.syspath_prepend(str(file.parent.parent))
    package = importlib.import_module("pinger")
    sim = Simulation(package, crds=CRD, calls={package.handlers.ping: str})
    with pytest.raises(AssertionError, match="json declares no handlers"):
        Simulation(importlib.import_module("json"))
    sim.apply(claim(size="1Gi")).settle()
    assert len(sim.errors) == 1, "str takes no host="


# ---------------------------------------------------------------------- a law


@settings(max_examples=examples(15))
@given(manifests(CRD, kind="Claim"))
def test_a_law_in_ten_lines(body: dict[str, Any]) -> None:
    sim = Simulation(REGISTRY, crds=CRD).apply(body).settle()
    assert sim.settled
    assert not sim.errors


EVERY: dict[str, Any] = {
    "type": "object",
    "required": ["a", "e"],
    "properties": {
        "a": {"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 9},
        "b": {"type": "number", "minimum": -1, "maximum": 1},
        "c": {"type": "string", "minLength": 2, "maxLength": 5},
        "d": {"type": "string", "nullable": True, "format": "date-time"},
        "e": {"x-kubernetes-int-or-string": True},
        "f": {
            "type": "array",
            "items": {"type": "string", "maxLength": 3},
            "x-kubernetes-list-type": "set",
            "minItems": 1,
        },
        "g": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "h": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "i": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "j": {"type": "integer", "multipleOf": 5},
        "k": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
            "oneOf": [{"required": ["x"]}, {"required": ["y"]}],
        },
    },
}


@settings(max_examples=100)
@given(values_of_schema(EVERY))
def test_what_is_drawn_is_valid_and_stays_as_it_is(value: Any) -> None:
    schema = compile_schema(EVERY)
    assert schema is not None
    assert list(schema.faults(value, None)) == []


@pytest.mark.parametrize(
    ("given_crd", "kind", "sentence"),
    [
        (CRD, "Unicorn", "name one kind"),
        ({"kind": "Pod"}, None, "name one kind"),
    ],
)
def test_a_definition_that_is_not_there_is_named(
    given_crd: dict[str, Any], kind: str | None, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        manifests(given_crd, kind)


def test_who_has_no_hypothesis_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(testing, "strategies")
    monkeypatch.delitem(sys.modules, "fnop.adapters.testing.strategies")
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    sentence = r"not installed: pip install 'fnop\[testing\]'"
    with pytest.raises(ModuleNotFoundError, match=sentence):
        fnop.testing.manifests  # noqa: B018


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(strategies).failed == 0


# -------------------------------------------------------------------- filters


def test_matches_asks_the_filters_of_a_handler() -> None:
    registry = Registry()

    @fnop.on.update(
        "things",
        labels={"app": fnop.PRESENT},
        field="spec.size",
        new=lambda value: value > 1,
        when=lambda reason, memo, **_: reason == "update" and not memo.get("done"),
        registry=registry,
    )
    def grown(**_: Any) -> None: ...

    def asked(size: int, **options: Any) -> bool:
        body = {"metadata": {"labels": {"app": "a"}}, "spec": {"size": size}}
        old = {"spec": {"size": 0}}
        return matches(grown, body, **{"old": old, "registry": registry, **options})

    assert asked(2)
    assert not asked(1)
    assert not asked(2, memo={"done": True})
    assert not asked(2, reason="create")
    assert not matches(grown, {"spec": {"size": 2}}, registry=registry)


@pytest.mark.parametrize("decorator", [fnop.on.event, fnop.timer, fnop.on.create])
def test_matches_takes_indices_by_their_names(decorator: Any) -> None:
    registry = Registry()

    @fnop.index("pods", registry=registry)
    def pods(name: str, **_: Any) -> dict[str, int]:
        return {name: 1}

    def known(**_: Any) -> None: ...

    def is_known(name: str, pods: Any = fnop.INDEX, **_: Any) -> bool:
        return name in pods

    decorator("things", when=is_known, registry=registry)(known)

    body = {"metadata": {"name": "a"}}
    assert matches(known, body, indices={"pods": {"a": [1]}}, registry=registry)
    assert not matches(known, body, indices={"pods": {}}, registry=registry)
    with pytest.raises(AssertionError, match="known asks for the index 'pods'"):
        matches(known, body, registry=registry)


def test_matches_needs_the_indices_of_filters_alone() -> None:
    registry = Registry()

    @fnop.index("pods", registry=registry)
    def pods(name: str, **_: Any) -> dict[str, int]:
        return {name: 1}

    @fnop.on.create("things", labels={"a": "b"}, registry=registry)
    def known(pods: Any = fnop.INDEX, **_: Any) -> None: ...

    assert matches(known, {"metadata": {"labels": {"a": "b"}}}, registry=registry)
    assert not matches(known, {}, registry=registry)


def test_a_plan_ignores_the_fields_that_the_operator_ignores() -> None:
    def changed(diff: fnop.Diff, **_: Any) -> list[Any]:
        raise fnop.PermanentError(repr([(each.field, each.new) for each in diff]))

    plan = plan_of(
        changed,
        {"spec": {"size": 2, "replicas": 2}},
        old={"spec": {"size": 1, "replicas": 1}},
        reason="update",
        settings=fnop.Settings(ignored_fields=("spec.replicas",)),
    )
    assert plan.failed("[(('spec', 'size'), 2)]")


def test_matches_raises_what_a_filter_raises() -> None:
    registry = Registry()

    @fnop.on.create(
        "things", when=lambda spec, **_: spec["size"] > 1, registry=registry
    )
    def sized(**_: Any) -> None: ...

    with pytest.raises(KeyError, match="size"):
        matches(sized, {}, registry=registry)


# ------------------------------------------------------------- answers, as in a run


def test_a_sleep_is_answered_by_a_view_of_the_object() -> None:
    async def wait(name: str, **_: Any) -> Any:
        first = await fnop.sleep(10)
        second = await fnop.sleep(10)
        assert first.name == second.name == name
        return fnop.result([first.spec["size"], second.spec["size"], first.uid])

    uid = plan_of(lambda uid, **_: uid, claim(size=1)).result
    plan = plan_of(wait, claim(size=1), answers=[{"spec": {"size": 2}}])
    assert plan.result == [2, 2, uid], plan.failure
    asked = {fnop.sleep(10): {"spec": {"size": 3}}}
    assert plan_of(wait, claim(size=1), answers=asked).result == [3, 3, uid]


def test_a_patch_of_another_object_needs_no_answer() -> None:
    async def change(namespace: str, **_: Any) -> Any:
        target = fnop.target("configmaps", name="other", uid="u-1")
        found = await fnop.patch(target, data={"a": "1", "b": None})
        assert isinstance(found, fnop.View)
        assert found.metadata.namespace == namespace
        return {"name": found.name, "uid": found.uid, "data": found["data"]}

    expected = {"name": "other", "uid": "u-1", "data": {"a": "1"}}
    plan = plan_of(change, claim())
    assert plan.result == expected, plan.failure
    answer = {"metadata": {"name": "x", "uid": "y", "namespace": "default"}, "data": {}}
    plan = plan_of(change, claim(), answers=[answer])
    assert plan.result == {"name": "x", "uid": "y", "data": {}}, plan.failure


def test_operations_on_another_object_need_an_answer_where_they_need_the_object() -> (
    None
):
    async def change(**_: Any) -> Any:
        target = fnop.target("configmaps", name="other")
        step = {"op": "add", "path": "/data/a", "value": "1"}
        return dict((await fnop.patch(target, json=[step]))["data"])

    with pytest.raises(AssertionError, match=r"change awaits Patch.* no answer"):
        plan_of(change, claim())
    assert plan_of(change, claim(), answers=[{"data": {"a": "1"}}]).result == {"a": "1"}


def test_operations_on_the_handled_object_change_it() -> None:
    async def change(**_: Any) -> Any:
        step = {"op": "replace", "path": "/spec/size", "value": 2}
        view = await fnop.patch(json=[step])
        later = await fnop.sleep(1)
        with pytest.raises(fnop.Refused) as refused:
            await fnop.patch(json=[{**step, "path": "/spec/none"}])
        sizes = [view.spec["size"], later.spec["size"]]
        return fnop.result([*sizes, refused.value.status])

    plan = plan_of(change, claim(size=1))
    assert plan.result == [2, 2, 422], plan.failure
