"""The operator's own condition in an object's status."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory import conditions
from fnop.core.memory.conditions import Condition, conditions_with
from fnop.core.values import now
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.simulations import (
    DEFINITION,
    Scenario,
    condition_of,
    example,
    example_handlers,
    manifests_of,
)

KIND = "fnopexamples"
TYPE = "fnop.dev/default"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def told(run: Scenario, kind: str = KIND, name: str = "example-1") -> Any:
    """The operator's condition on an object, or None."""
    found = run.get(kind, name)
    assert found is not None
    return condition_of(found, TYPE) or None


@pytest.mark.parametrize("module", [conditions, now])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def waiting(registry: Registry, role: Any = fnop.on.create, id: str = "wait") -> None:
    def wait(spec: Any, runtime: Any) -> Any:
        if runtime.total_seconds() < 30:
            return fnop.again(after=10, because="the instance is being provisioned")
        return None

    role(KIND, registry=registry, id=id)(wait)


def test_who_waits_says_so_in_one_write_and_without_a_traceback(
    registry: Registry,
) -> None:
    waiting(registry)
    run = Scenario(registry, [example(size=1)])
    run.settle(seconds=25)
    condition = told(run)
    assert condition["status"] == "False"
    assert condition["reason"] == "CreateWaiting"
    assert condition["message"] == "wait: the instance is being provisioned"
    assert condition["observedGeneration"] == 1
    assert run.writes == ["PATCH " + run.path(KIND, "example-1") + "/status"]
    assert all(say.exception is None for say in run.said)
    told_it = [s.level for s in run.said if "the instance is being" in s.message]
    assert told_it[0] == "info"
    assert set(told_it[1:]) == {"debug"}, "said once, and again to who looks closely"
    assert run.settle()
    assert told(run)["status"] == "True"
    assert told(run)["reason"] == "Succeeded"
    assert told(run)["message"] == ""


def test_who_never_waits_says_nothing(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> dict[str, Any]:
        return {"done": True}

    run = Scenario(registry, [example()])
    assert run.settle()
    assert told(run) is None


def test_a_failure_is_told_until_a_change_is_handled(registry: Registry) -> None:
    @fnop.on.update(KIND, registry=registry)
    @fnop.on.create(KIND, registry=registry)
    def check(spec: Any, **_: Any) -> None:
        if "size" not in spec:
            raise fnop.PermanentError("spec.size must be set")

    run = Scenario(registry, [example()])
    run.settle()
    failed = told(run)
    assert (failed["status"], failed["reason"]) == ("False", "CreateFailed")
    assert "spec.size must be set" in failed["message"]
    run.edit(KIND, spec={"size": 1})
    assert run.settle()
    assert told(run)["status"] == "True"


def test_a_restart_does_not_take_a_failure_back(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None:
        raise fnop.PermanentError("never")

    @fnop.on.resume(KIND, registry=registry)
    def resume(**_: Any) -> None:
        """Nothing."""

    run = Scenario(registry, [example()])
    run.settle()
    before = told(run)
    run.crash()
    run.settle()
    assert told(run) == before


def test_a_deletion_that_waits_says_why(registry: Registry) -> None:
    waiting(registry, fnop.on.delete)
    run = Scenario(registry, [example()])
    assert run.settle()
    run.delete(KIND)
    run.settle(seconds=15)
    assert told(run)["reason"] == "DeleteWaiting"
    assert run.settle()
    assert run.get(KIND) is None


def test_r29_the_transition_time_moves_only_with_the_status() -> None:
    one = Condition("False", "Waiting", "for a", 0.0)
    two = Condition("False", "Waiting", "for b", 9.0)
    three = Condition("True", "Succeeded", "", 20.0)
    first = conditions_with([], TYPE, one, "then")
    second = conditions_with(first, TYPE, two, "later")
    third = conditions_with(second, TYPE, three, "at last")
    times = [found[0]["lastTransitionTime"] for found in (first, second, third)]
    assert times == ["then", "then", "at last"]


def test_r29_other_conditions_stay_as_they_are(registry: Registry) -> None:
    others = [{"type": "Ready", "status": "True"}, {"type": "x.dev/y", "status": "?"}]

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> Any:
        return fnop.patch(status={"conditions": others})

    waiting(registry, id="second")
    run = Scenario(registry, [example()])
    assert run.settle(seconds=15) is False
    found = run.get(KIND)
    assert found is not None
    types = [each["type"] for each in found["status"]["conditions"]]
    assert types == ["Ready", "x.dev/y", TYPE]
    assert found["status"]["conditions"][:2] == others


def test_r29_a_rival_s_condition_is_not_overwritten(registry: Registry) -> None:
    """The write carries the version that the list of conditions was read from."""
    waiting(registry)
    run = Scenario(registry, [example()])
    while not any(request.method == "PATCH" for request in run.requests):
        run.take() if run.inbox else run.advance()
    (patch,) = [each for each in run.requests if each.method == "PATCH"]
    assert patch.body["metadata"]["resourceVersion"]


def test_a_schema_without_conditions_gets_none(registry: Registry) -> None:
    """A status that prunes them is tried once for each reported object."""
    closed: dict[str, Any] = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }
    schema = {"openAPIV3Schema": closed}
    version = {**DEFINITION["spec"]["versions"][0], "schema": schema}

    waiting(registry)
    run = Scenario(registry)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = DEFINITION["metadata"]["name"]
    change = {"spec": {"versions": [version]}}
    request = ApiRequest("PATCH", f"{path}/{name}", (), change, MERGE_PATCH)
    assert run.request(request).status == 200
    run.apply(example("one"))
    assert run.settle()
    assert told(run, name="one") is None
    before = len(run.writes)
    run.apply(example("two"))
    assert run.settle()
    assert told(run, name="two") is None
    assert len(run.writes) == before + 1, "only its state, in an annotation"


def test_kinds_of_kubernetes_get_none(registry: Registry) -> None:
    @fnop.on.create("configmaps", registry=registry)
    def create(**_: Any) -> None:
        raise fnop.PermanentError("never")

    run = Scenario(
        registry,
        [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "one", "namespace": "default"},
            }
        ],
    )
    run.settle()
    assert told(run, "configmaps", "one") is None


def test_they_can_be_switched_off(registry: Registry) -> None:
    waiting(registry)
    run = Scenario(registry, [example()], settings=Settings(conditions=False))
    assert run.settle()
    assert told(run) is None


def test_a_failed_part_is_its_parent_s_to_judge() -> None:
    """07-subhandlers: a failed child of a successful parent is not a failure."""
    manifests = manifests_of("07-subhandlers")
    run = Scenario(example_handlers("07-subhandlers"), manifests)
    run.settle()
    assert told(run) is None


# ------------------------------------------------ which generation a condition is about


def _awaits(spec: Any) -> Any:
    async def handler(**_: Any) -> Any:
        await fnop.patch(spec=spec)
        raise fnop.PermanentError("no disk")

    return handler


def _accumulates(spec: Any) -> Any:
    def handler(patch: Any, **_: Any) -> Any:
        patch.spec.update(spec)
        raise fnop.PermanentError("no disk")

    return handler


def _with_status(spec: Any) -> Any:
    def handler(patch: Any, **_: Any) -> Any:
        patch.spec.update(spec)
        patch.fns.append(lambda body: body.setdefault("status", {}).update(n=1))
        raise fnop.PermanentError("no disk")

    return handler


def _waits(spec: Any) -> Any:
    def handler(**_: Any) -> Any:
        return [fnop.patch(spec=spec), fnop.again(1000, because="no disk")]

    return handler


def _applies(spec: Any) -> Any:
    async def handler(**_: Any) -> Any:
        await fnop.apply({**example(), "spec": spec})
        raise fnop.PermanentError("no disk")

    return handler


STORAGES: dict[str, Any] = {
    "status": fnop.AutoStorage(),
    "annotations": fnop.AnnotationStorage(),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    "make", [_awaits, _accumulates, _with_status, _waits, _applies]
)
def test_a_condition_is_about_the_generation_that_its_own_handler_has_made(
    registry: Registry, make: Any, storage: str
) -> None:
    fnop.on.create(KIND, registry=registry, id="make")(make({"made": 1}))
    settings = Settings(storage=STORAGES[storage])
    run = Scenario(registry, [example(size=1)], settings=settings)
    run.settle(seconds=100)
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["generation"] == 2
    assert told(run)["observedGeneration"] == 2
    assert "no disk" in told(run)["message"]
    run.settle(seconds=100)
    assert told(run)["observedGeneration"] == 2


def test_what_somebody_else_changes_meanwhile_is_not_handled_yet(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def make(**_: Any) -> None:
        await fnop.sleep(10)
        await fnop.patch(spec={"made": 1})
        raise fnop.PermanentError("no disk")

    run = Scenario(registry, [example(size=1)])
    run.settle(seconds=5)
    run.edit(KIND, spec={"size": 2})
    run.settle(seconds=5.5)
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["generation"] == 3
    assert told(run) is None or told(run)["observedGeneration"] == 1


@pytest.mark.parametrize("storage", STORAGES)
def test_the_same_failure_of_another_generation_says_so(
    registry: Registry, storage: str
) -> None:
    @fnop.on.update(KIND, registry=registry, id="check")
    @fnop.on.create(KIND, registry=registry, id="check")
    def check(**_: Any) -> None:
        raise fnop.PermanentError("no disk")

    settings = Settings(storage=STORAGES[storage])
    run = Scenario(registry, [example(size=1)], settings=settings)
    for size in (2, 3, 4):
        run.edit(KIND, spec={"size": size})
        assert run.settle()
        found = run.get(KIND)
        assert found is not None
        assert told(run)["observedGeneration"] == found["metadata"]["generation"]
    written = len(run.writes)
    run.crash()
    assert run.settle()
    assert len(run.writes) == written, "nothing is news after a restart"


READY = {
    "type": "Ready",
    "status": "False",
    "reason": "Timer",
    "message": "not yet",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize("way", ["patch argument", "plan", "awaited"])
def test_who_writes_conditions_of_his_own_leaves_the_operator_s(
    registry: Registry, way: str
) -> None:
    """A merge patch replaces a list; it was not meant against what it does not name."""

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None:
        raise fnop.PermanentError("quota exceeded")

    @fnop.timer(KIND, interval=60, initial_delay=60, registry=registry)
    async def timer(patch: Any, **_: Any) -> Any:
        match way:
            case "patch argument":
                patch.status["conditions"] = [READY]
            case "plan":
                return fnop.patch(status={"conditions": [READY]})
            case _:
                await fnop.patch(status={"conditions": [READY]})
        return None

    run = Scenario(registry, [example()])
    run.settle(seconds=200)
    found = run.get(KIND)
    assert found is not None
    types = [each["type"] for each in found["status"]["conditions"]]
    assert sorted(types) == ["Ready", TYPE]
    assert told(run)["reason"] == "CreateFailed"
