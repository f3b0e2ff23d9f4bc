"""`fnop plan` reports a missing plan, unknown parts, and failures."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.adapters.reports.plan_report import as_json, as_lines
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.interpreters.plan.facts import Plan
from fnop.interpreters.plan.planner import PlanProblem
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.plans import Served, labels, planned, planner_of
from tests.simulations import DEFINITION, Scenario, example

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def plan_of(
    registry: Registry,
    run: Scenario,
    rounds: int = 1,
    settings: Settings | None = None,
    **options: Any,
) -> Plan:
    wall = run.clock.now().wall
    dry_run = options.pop("dry_run", False)
    served = Served(run.cluster, wall, **options)
    planner = planner_of(registry, served, wall, settings)
    return planned(planner, rounds, dry_run=dry_run)


def size_of(registry: Registry) -> Registry:
    @fnop.on.create(KIND, registry=registry)
    def create(spec: fnop.Spec, patch: fnop.Patch, **_: Any) -> None:
        patch.status["size"] = spec["size"]

    return registry


# ------------------------------------------------------------------- no plan at all


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (fnop.PermanentError("no config"), "for good: PermanentError: no config"),
        (RuntimeError("no config"), "each time: RuntimeError: no config"),
    ],
)
def test_an_operator_that_does_not_start_has_no_plan(
    registry: Registry, error: Exception, how: str
) -> None:
    @fnop.on.startup(id="configure", registry=size_of(registry))
    def configure(**_: Any) -> None:
        raise error

    run = Scenario(registry, [example("a", size=1)])
    words = f"the operator would not serve: startup handler configure fails {how}"
    with pytest.raises(PlanProblem) as problem:
        plan_of(registry, run)
    assert str(problem.value) == words


def test_a_start_that_fails_at_first_is_told_and_the_plan_goes_on(
    registry: Registry,
) -> None:
    @fnop.on.startup(registry=size_of(registry))
    def configure(retry: int, **_: Any) -> None:
        if retry < 2:
            raise fnop.TemporaryError("not yet", delay=1)

    plan = plan_of(registry, Scenario(registry, [example("a", size=1)]))
    assert labels(plan) == {"fnopexamples.fnop.dev/a in default": "change"}
    (failure,) = plan.failures
    assert (failure.message, failure.subject) == ("TemporaryError: not yet", None)
    assert plan.failing == 1


def outside(**_: Any) -> int:
    raise AssertionError("it is called")


def test_a_start_that_waits_for_a_call_is_not_known(registry: Registry) -> None:
    @fnop.on.startup(registry=size_of(registry), timeout=5)
    async def configure(**_: Any) -> None:
        await fnop.call(outside)

    plan = plan_of(registry, Scenario(registry, [example("a", size=1)]))
    assert len(plan.calls) == 1
    assert not plan.is_empty
    assert any("the startup handlers wait" in each for each in plan.notes)


def without_kinds(*selectors: str) -> Registry:
    """An operator that looks at config maps for objects of these kinds."""
    registry = Registry()

    @fnop.index("configmaps", registry=registry)
    def templates(name: str, **_: Any) -> dict[str, str]:
        return {name: name}

    for selector in selectors:

        @fnop.reconcile(selector, id=selector, registry=registry)
        def keep(**_: Any) -> fnop.Desired:
            return fnop.desired([])

    @fnop.maps("configmaps", to=selectors[0], registry=registry)
    def mapped(**_: Any) -> list[str]:
        return []

    return registry


def test_an_operator_whose_kinds_are_all_missing_has_no_plan() -> None:
    registry = without_kinds("widgets", "others.example.com")
    with pytest.raises(PlanProblem, match="the operator would not serve: ") as problem:
        plan_of(registry, Scenario(Registry()))
    for kind in ("widgets", "others.example.com"):
        assert f"so {kind} is not called" in str(problem.value)


def test_an_operator_with_a_mistyped_kind_has_no_plan() -> None:
    registry = without_kinds("fnopexample2s", KIND)
    with pytest.raises(PlanProblem, match=f"did you mean '{KIND}.fnop.dev'"):
        plan_of(registry, Scenario(Registry()))


def test_an_operator_that_lacks_one_kind_of_two_has_a_plan() -> None:
    registry = without_kinds(KIND, "others.example.com")
    plan = plan_of(registry, Scenario(Registry(), [example("a")]))
    assert any("serves no 'others.example.com' yet" in each for each in plan.notes)


def test_an_operator_that_only_starts_has_a_plan(registry: Registry) -> None:
    @fnop.on.startup(registry=registry)
    async def configure(**_: Any) -> None:
        await fnop.apply(note("made"))

    plan = plan_of(registry, Scenario(Registry()))
    assert labels(plan) == {"configmaps/made in default": "create"}
    assert plan.notes == ()


def note(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_kind_that_the_operator_defines_itself_has_no_objects_yet(
    registry: Registry,
) -> None:
    definition = {
        **DEFINITION,
        "metadata": {"name": "gadgets.fnop.dev"},
        "spec": {
            **DEFINITION["spec"],
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
        },
    }

    @fnop.on.startup(registry=registry)
    async def define(**_: Any) -> None:
        await fnop.apply(definition)

    @fnop.on.create("gadgets", registry=registry)
    def create(patch: fnop.Patch, **_: Any) -> None:
        patch.status["made"] = True

    plan = plan_of(registry, Scenario(Registry()), 2)
    assert plan.unread == ()
    made = "customresourcedefinitions.apiextensions.k8s.io/gadgets.fnop.dev"
    assert labels(plan) == {made: "create"}


def test_a_selected_namespace_that_does_not_exist_is_told(registry: Registry) -> None:
    size_of(registry)
    run = Scenario(registry, [example("a", size=1)])

    def notes(*names: str, **options: Any) -> tuple[str, ...]:
        settings = Settings(namespaces=names)
        plan = plan_of(registry, run, settings=settings, **options)
        assert set(plan.absent) <= set(plan.notes)
        assert not (plan.absent and plan.is_empty)
        return plan.notes

    assert notes("default") == ()
    assert notes("default", "nope") == ("the namespace nope does not exist",)
    assert notes("nope-*") == ("no namespace fits nope-*",)
    assert plan_of(registry, run, settings=Settings(namespaces=("nope",))).absent

    def of_namespaces(request: ApiRequest) -> bool:
        return "/namespaces" in request.path and request.path.count("/") <= 4

    def of_all(request: ApiRequest) -> bool:
        return request.path == "/api/v1/namespaces"

    told = "the namespace nope does not exist"
    assert told in notes("nope", "default", refuses=of_all)
    (only,) = notes("nope", refuses=of_namespaces)
    assert only.startswith("namespaces cannot be read")


# -------------------------------------------------------------------- what is unknown


def test_a_handler_that_fails_is_something_that_is_not_known(
    registry: Registry,
) -> None:
    @fnop.on.event(KIND, registry=registry)
    def seen(**_: Any) -> None:
        raise fnop.PermanentError("no")

    plan = plan_of(registry, Scenario(registry, [example("a")]))
    assert plan.changes == ()
    assert plan.failing == 1
    assert not plan.is_empty
    assert [*as_lines(plan)][-1].startswith(
        "Plan: 0 to create, 0 to change, 0 to delete, 1 failing."
    )


def test_an_operator_that_does_not_come_to_rest_is_not_known() -> None:
    assert Plan().is_empty
    assert not Plan(is_restless=True).is_empty


# ------------------------------------------------------------------ what fails, once


def test_a_child_that_is_refused_is_one_failure(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns=["services"], id="keep", registry=registry)
    def keep(name: str, spec: fnop.Spec, **_: Any) -> fnop.Desired:
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
        ports = [{"name": "web", "port": spec["port"]}]
        return fnop.desired([{**service, "spec": {"ports": ports}}])

    things = [example("good", port=80), example("bad", port=99_999_999)]
    plan = plan_of(registry, Scenario(registry, things), 3)
    (failure,) = plan.failures
    assert failure.subject is not None
    assert failure.subject.name == "bad"
    assert 'Service "bad" is invalid' in failure.message
    assert failure.again
    assert plan.failing == 1
    lines = [*as_lines(plan)]
    (told,) = (each for each in lines if each.startswith("  x "))
    rounds = " and ".join(map(str, failure.again))
    assert f"again in round{'s' if len(failure.again) > 1 else ''} {rounds}" in told
    assert as_json(plan)["failures"][0]["again"] == [*failure.again]
    assert ", 1 failing." in lines[-1]
    for number in failure.again:
        at = lines.index(
            f"≈ round {number}, if controllers do what the simulated ones did"
        )
        assert lines[at + 1] != "  nothing"


def test_a_refusal_that_the_author_catches_is_told(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        body = example("UPPER")
        try:
            await fnop.apply(body)
        except fnop.Refused:
            await fnop.apply(note("lower"))

    plan = plan_of(registry, Scenario(registry, [example("a")]))
    (failure,) = plan.failures
    assert "of fnopexamples.fnop.dev/UPPER in default is refused: " in failure.message
    assert plan.failing == 1


def test_other_words_of_one_handler_are_told_and_counted_once(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, backoff=30, registry=registry)
    def create(retry: int, **_: Any) -> None:
        raise RuntimeError(f"attempt {retry}")

    plan = plan_of(registry, Scenario(registry, [example("a")]), 3)
    assert [each.message for each in plan.failures] == [
        f"RuntimeError: attempt {retry}" for retry in range(3)
    ]
    assert plan.failing == 1


# ---------------------------------------------------------------- what is refused


def test_what_the_server_refuses_is_counted_foreseen_or_not(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, spec: fnop.Spec, **_: Any) -> None:
        await fnop.apply(note(name, **spec["data"]))

    data = {"size": "1"}
    things = [example(name, data=data) for name in ("a", "b")]
    run = Scenario(registry, [*things, example("UPPER", data=data)][:2])
    run.apply(example("c", data={"not a key": "1"}))

    def refuses(request: ApiRequest) -> bool:
        return request.path.endswith("/configmaps/b") and request.method != "GET"

    plan = plan_of(registry, run, dry_run=True, refuses=refuses)
    assert plan.tried is not None
    refused = {each.place.name: each.refusal for each in plan.tried if each.refusal}
    assert refused.keys() == {"b", "c"}
    assert refused["b"] == "you may not"
    assert "not a key" in refused["c"]
    assert plan.refused == 2
    assert plan_of(registry, run).refused == 0


def test_what_the_server_takes_against_the_simulated_one_is_told(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        await fnop.apply(note("c", **{"not a key": "1"}))

    run = Scenario(registry, [example("a")])
    wall = run.clock.now().wall
    served = Served(run.cluster, wall)
    send = served.send

    async def lenient(request: ApiRequest) -> ApiResponse:
        response = await send(request)
        if request.method != "GET" and "/configmaps/" in request.path:
            return ApiResponse(201, note("c", **{"not a key": "1"}))
        return response

    served.send = lenient  # type: ignore[method-assign]
    plan = planned(planner_of(registry, served, wall), dry_run=True)
    assert plan.tried is not None
    assert [
        (field.path, field.new)
        for each in plan.tried
        if each.place.name == "c"
        for field in each.fields
    ] == [("data.not a key", "1")]


def stateful(size: int) -> dict[str, Any]:
    """A stateful set, and by its size the field that cannot be changed."""
    labels = {"app": "db"}
    pod = {"containers": [{"name": "db", "image": "db:1"}]}
    storage = {"requests": {"storage": f"{size}Gi"}}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": storage},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "volumeClaimTemplates": [claim],
        },
    }


def test_a_replacement_is_an_update_if_the_server_stores_one(
    registry: Registry,
) -> None:
    @fnop.reconcile(KIND, id="keep", registry=registry, owns=["statefulsets.apps"])
    def keep(spec: fnop.Spec, **_: Any) -> Any:
        child = fnop.child(stateful(spec["size"]), on_immutable="replace")
        return fnop.desired(child)

    run = Scenario(registry, [example("a", size=1)])
    assert run.settle()
    run.edit(KIND, "a", spec={"size": 2})
    plan = plan_of(registry, run, dry_run=True)
    label = "statefulsets.apps/db in default"
    assert labels(plan)[label] == "delete+create"  # this server refuses it, too
    assert plan.refused == 1

    wall = run.clock.now().wall
    served = Served(run.cluster, wall)
    send = served.send

    async def lenient(request: ApiRequest) -> ApiResponse:
        response = await send(request)
        if response.status != 422:
            return response
        live = run.get("statefulsets", "db")
        assert live is not None
        spec = {**live["spec"], **stateful(2)["spec"]}
        return ApiResponse(200, {**live, "spec": spec})

    served.send = lenient  # type: ignore[method-assign]
    plan = planned(planner_of(registry, served, wall), 2, dry_run=True)
    assert labels(plan)[label] == "change"
    assert plan.count("delete") == plan.refused == 0
    (change,) = (each for each in plan.changes if each.place.label == label)
    assert [each.handler for each in change.sources] == ["keep"]
    assert change.unknown is False
    (note,) = (each for each in plan.notes if label in each)
    assert "accepts the request that the simulated one refuses" in note
    assert any(line.startswith(f"  ~ {label}") for line in as_lines(plan))
