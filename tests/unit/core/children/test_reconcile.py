"""Reconcile handlers: when they are called, and what becomes of their children."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from fnop.testing import External
from tests.reconcilers import (
    KIND,
    NAME,
    Desiring,
    condition,
    config_map,
    data_of,
    simulation,
)
from tests.simulations import Scenario, example

# ------------------------------------------------------------------ what is desired


def test_what_is_desired_is_applied_once() -> None:
    op = Desiring(config_map("one", a="1"), config_map("two", a="2"))
    writes = op.writes()
    op.begin()
    assert [*writes] == ["PATCH configmaps/one", "PATCH configmaps/two"]
    assert data_of(op.sim, "one") == {"a": "1"}
    assert op.synced() == ("True", "AsDesired", "all is as desired")
    owners = op.sim.get("configmaps/one").metadata["ownerReferences"]  # type: ignore[union-attr]
    assert [(each["kind"], each["controller"]) for each in owners] == [
        ("FnopExample", True)
    ]


@pytest.mark.parametrize(
    "error", [ValueError("no size"), fnop.TemporaryError("not yet", delay=1)]
)
def test_a_handler_that_fails_tells_it_on_the_object_until_it_succeeds(
    error: Exception,
) -> None:
    registry = Registry()
    errors = [error, error, None]

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def keep(**_: Any) -> fnop.Desired:
        problem = errors.pop(0) if len(errors) > 1 else None
        if problem is not None:
            raise problem
        return fnop.desired(config_map("one"))

    sim = simulation(registry)
    sim.apply(example()).wait(0.1)
    told = f"{type(error).__name__}: {error}"
    assert condition(sim, "Synced") == ("False", "HandlerFailed", told)
    before = len(sim.writes)
    while len(errors) > 1:
        assert sim.writes[before:] == [], "the object tells it already"
        sim.wait(0.1)
    sim.settle()
    assert condition(sim, "Synced") == ("True", "AsDesired", "all is as desired")


def test_a_handler_that_fails_for_good_tells_it_on_the_object() -> None:
    registry = Registry()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def keep(**_: Any) -> fnop.Desired:
        raise fnop.PermanentError("no such size")

    sim = simulation(registry)
    sim.apply(example()).settle()
    told = "False", "HandlerFailed", "PermanentError: no such size"
    assert condition(sim, "Synced") == told


def test_at_rest_nothing_is_asked_for_even_after_a_restart() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    before = len(op.sim.writes)
    op.sim.restart().settle()
    assert op.sim.writes[before:] == []


def test_what_is_not_desired_any_more_is_deleted() -> None:
    op = Desiring(config_map("one"), config_map("two")).begin()
    writes = op.writes()
    op.desire(config_map("one"))
    assert [*writes] == ["DELETE configmaps/two"]
    assert data_of(op.sim, "two") is None


def test_a_field_that_is_not_desired_any_more_is_removed() -> None:
    op = Desiring(config_map("one", a="1", b="2")).begin()
    op.desire(config_map("one", a="1"))
    assert data_of(op.sim, "one") == {"a": "1"}


def test_a_field_that_somebody_changes_is_repaired_with_one_write() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    writes = op.writes()
    op.sim.edit("configmaps/one", data={"a": "other"}).settle()
    assert [*writes] == ["PATCH configmaps/one"]
    assert data_of(op.sim, "one") == {"a": "1"}
    told = [each["message"] for each in op.sim.events() if each["reason"] == "Repaired"]
    assert len(told) == 1
    assert told[0].startswith("configmap/one: data.a, changed by ")


def test_a_field_that_somebody_adds_is_theirs() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    writes = op.writes()
    op.sim.edit("configmaps/one", data={"theirs": "x"}).settle()
    assert [*writes] == []
    op.desire(config_map("one", a="2"))
    assert data_of(op.sim, "one") == {"a": "2", "theirs": "x"}


def test_a_deleted_child_is_made_anew() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    op.sim.delete("configmaps/one").settle()
    assert data_of(op.sim, "one") == {"a": "1"}
    told = [each["message"] for each in op.sim.events() if each["reason"] == "Repaired"]
    assert told == ["configmap/one, which was deleted"]
    assert "repaired configmap/one, which was deleted" in op.sim.log


def test_children_go_with_their_object_without_a_finalizer() -> None:
    op = Desiring(config_map("one")).begin()
    assert not op.sim.get(NAME).metadata.get("finalizers")  # type: ignore[union-attr]
    writes = op.writes()
    op.sim.delete(NAME).settle()
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "one") is None
    assert [*writes] == []


def test_none_leaves_a_child_and_a_field_out() -> None:
    manifest = config_map("one", a="1")
    manifest["metadata"]["annotations"] = None
    op = Desiring(None, manifest).begin()
    op.sim.settle()
    assert data_of(op.sim, "one") == {"a": "1"}
    assert op.synced()[0] == "True"


# --------------------------------------------------------------- what belongs to others


def test_an_object_that_nobody_owns_is_not_taken_over_unless_asked_for() -> None:
    op = Desiring(config_map("one", a="1"))
    op.sim.apply(config_map("one", theirs="x")).settle()
    op.seconds = 60.0
    op.begin()
    status, reason, message = op.synced()
    assert (status, reason) == ("False", "Failing")
    assert "configmap/one exists, and nobody owns it; adopt=True" in message
    assert data_of(op.sim, "one") == {"theirs": "x"}
    op.desire(fnop.child(config_map("one", a="1"), adopt=True))
    assert data_of(op.sim, "one") == {"theirs": "x", "a": "1"}
    assert op.synced()[0] == "True"


def test_another_controllers_object_is_never_taken_over() -> None:
    op = Desiring(fnop.child(config_map("one"), adopt=True))
    owner = {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u"}
    theirs = config_map("one")
    op.sim.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    owner["uid"] = op.sim.get("secrets/s").metadata.uid  # type: ignore[union-attr]
    theirs["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    op.sim.apply(theirs).settle()
    op.seconds = 60.0
    op.begin()
    assert op.synced()[2] == "configmap/one exists, and belongs to Secret s"


def test_what_another_handler_made_for_the_object_is_not_deleted() -> None:
    op = Desiring()

    @fnop.on.create(KIND, registry=op.registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.adopt(config_map("other"))

    op.sim = simulation(op.registry)
    op.begin()
    op.touch()
    assert data_of(op.sim, "other") is not None


def test_without_force_fields_of_others_are_told_and_left() -> None:
    op = Desiring(fnop.child(config_map("one", a="1"), force=False)).begin()
    op.sim.edit("configmaps/one", data={"a": "theirs"}).wait(60)
    status, _, message = op.synced()
    assert status == "False"
    assert "conflict" in message.lower()
    assert data_of(op.sim, "one") == {"a": "theirs"}


# ----------------------------------------------------------------------- options


def test_a_kept_child_is_let_go() -> None:
    kept = fnop.child(config_map("one", a="1"), keep=True)
    op = Desiring(kept).begin()
    op.desire()
    assert data_of(op.sim, "one") == {"a": "1"}
    labels = op.sim.get("configmaps/one").metadata.get("labels")  # type: ignore[union-attr]
    assert not labels


def test_a_kept_child_outlives_its_object() -> None:
    op = Desiring(fnop.child(config_map("one", a="1"), keep=True)).begin()
    op.sim.delete(NAME).settle()
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "one") == {"a": "1"}


def test_children_come_in_an_order_and_after_others() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]},
    }
    late = fnop.child(config_map("late"), after="service/s")
    op = Desiring(late, service, config_map("early"), owns=["configmaps", "services"])
    writes = op.writes()
    op.begin()
    assert [*writes] == [
        "PATCH configmaps/early",
        "PATCH services/s",
        "PATCH configmaps/late",
    ]


def test_a_failing_child_stops_only_those_after_it() -> None:
    wrong = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 0}]},
    }
    late = fnop.child(config_map("late"), after=["service/s"])
    op = Desiring(wrong, late, config_map("one"), owns=["configmaps", "services"])
    op.seconds = 60.0
    op.begin()
    status, reason, message = op.synced()
    assert (status, reason) == ("False", "Failing")
    assert "service/s" in message
    assert data_of(op.sim, "one") is not None
    assert data_of(op.sim, "late") is None


def test_a_field_that_cannot_be_changed_is_told_or_the_child_is_replaced() -> None:
    def secret(value: str, **options: Any) -> Any:
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s"},
            "immutable": True,
            "stringData": {"key": value},
        }
        return fnop.child(manifest, **options)

    op = Desiring(secret("one"), owns=["secrets"]).begin()
    uid = op.sim.get("secrets/s").metadata.uid  # type: ignore[union-attr]
    op.seconds = 60.0
    op.desire(secret("two"))
    assert "on_immutable='replace'" in op.synced()[2]
    op.desire(secret("two", on_immutable="replace"))
    found = op.sim.get("secrets/s")
    assert found is not None
    assert found.metadata.uid != uid
    assert found["data"] == {"key": "dHdv"}
    assert op.synced()[0] == "True"


def test_children_in_other_namespaces_are_deleted_before_their_object() -> None:
    far = config_map("far", "kube-public", a="1")
    op = Desiring(far).begin()
    assert data_of(op.sim, "far", namespace="kube-public") == {"a": "1"}
    assert op.sim.get(NAME).metadata["finalizers"]  # type: ignore[union-attr]
    assert [*op.calls[-1]["children"]["configmaps"]] == ["kube-public/far"]
    op.sim.restart().settle()
    writes = op.writes()
    op.sim.delete(NAME).settle()
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "far", namespace="kube-public") is None
    assert [*writes] == ["DELETE configmaps/far", "PATCH fnopexamples/example-1"]


def test_the_finalizer_goes_with_the_last_child_elsewhere() -> None:
    op = Desiring(config_map("far", "kube-public")).begin()
    op.desire(config_map("near"))
    assert not op.sim.get(NAME).metadata.get("finalizers")  # type: ignore[union-attr]
    assert data_of(op.sim, "far", namespace="kube-public") is None


def test_a_kind_that_is_not_owned_is_told() -> None:
    op = Desiring({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    op.seconds = 60.0
    op.begin()
    assert "secret/s owns= does not name Secret of v1" in op.synced()[2]


# --------------------------------------------------------------- when it is called


def test_it_gets_its_children_and_conditions() -> None:
    op = Desiring(config_map("one", a="1"))
    op.more = {"conditions": fnop.condition("Ready", False, "Starting", "soon")}
    op.begin()
    op.touch()
    last = op.calls[-1]
    assert last["children"]["configmaps"]["one"]["data"] == {"a": "1"}
    assert last["conditions"]["Ready"]["reason"] == "Starting"
    assert "reason" not in last
    assert "old" not in last


def test_a_change_of_status_alone_is_no_call_and_one_of_a_child_is() -> None:
    op = Desiring(config_map("one")).begin()
    calls = len(op.calls)
    op.sim.edit(NAME, status={"theirs": "x"}).settle()
    assert len(op.calls) == calls
    op.sim.edit("configmaps/one", metadata={"labels": {"x": "y"}}).settle()
    assert len(op.calls) == calls + 1


def test_again_and_resync_call_it_without_a_change() -> None:
    op = Desiring(resync=100).begin()
    calls = len(op.calls)
    op.sim.wait(250)
    assert len(op.calls) in (calls + 2, calls + 3)
    op.more = {"again": 10}
    op.touch()
    calls = len(op.calls)
    op.sim.wait(35)
    assert len(op.calls) == calls + 3


def test_failures_are_tried_again_after_growing_times_and_a_change_resets_them() -> (
    None
):
    registry, calls = Registry(), list[int]()

    @fnop.reconcile(KIND, registry=registry)
    def fail(retry: int, spec: Any, **_: Any) -> fnop.Desired:
        calls.append(retry)
        if spec.get("good"):
            return fnop.desired(status={"good": True})
        raise RuntimeError("no")

    sim = simulation(registry)
    sim.apply(example())
    sim.wait(40)
    assert calls == [0, 1, 2, 3, 4, 5]
    sim.edit(NAME, spec={"other": 1})
    sim.wait(0.5)
    assert calls[6:] == [0]
    sim.edit(NAME, spec={"good": True}).settle()
    assert calls[-1] == 0
    assert sim.get(NAME).status["good"] is True  # type: ignore[union-attr]


def test_it_is_not_called_beside_handlers_of_changes() -> None:
    registry, order = Registry(), list[str]()

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        order.append("create begins")
        await fnop.get("configmaps", name="any")
        order.append("create ends")

    @fnop.reconcile(KIND, registry=registry, owns="configmaps")
    async def keep(**_: Any) -> fnop.Desired:
        order.append("keep begins")
        await fnop.get("configmaps", name="any")
        order.append("keep ends")
        return fnop.desired(config_map("one"))

    simulation(registry).apply(example()).settle()
    begins = order[::2]
    assert [each.replace("begins", "ends") for each in begins] == order[1::2]
    assert begins[0] == "create begins"


def test_while_handlers_of_changes_are_under_way_it_is_not_tried_again_and_again() -> (
    None
):
    registry, steps = Registry(), list[Any]()

    @fnop.reconcile("fnopexamples", registry=registry)
    def desiring(**_: Any) -> Any:
        return fnop.desired(status={"reconciled": True})

    @fnop.on.update("fnopexamples", registry=registry)
    async def waits(**_: Any) -> None:
        await fnop.sleep(100)

    class Counting:
        def observe(self, now: Any, *step: Any) -> None:
            steps.append(now)

    sim = Scenario(registry, observers=[Counting()])
    sim.apply(example("x", a=1))
    assert sim.settle()
    before = len(steps)
    sim.edit("fnopexamples", "x", spec={"a": 2})
    assert sim.settle()
    assert sim.clock.elapsed >= 100
    assert len(steps) - before < 20
    assert [each.message for each in sim.said if each.level == "warning"] == []


def test_a_mapping_calls_it_for_another_object_without_a_write() -> None:
    op = Desiring()

    @fnop.index(KIND, registry=op.registry)
    def by_template(spec: Any, name: str, **_: Any) -> Any:
        return {spec.get("template"): name}

    @fnop.maps("configmaps", to=KIND, registry=op.registry)
    def users(name: str, by_template: Any = fnop.INDEX, **_: Any) -> Any:
        return by_template.get(name, ())

    op.sim = simulation(op.registry)
    op.begin(template="base")
    op.sim.apply(config_map("other")).settle()
    calls, writes = len(op.calls), op.writes()
    op.sim.apply(config_map("base", a="1")).settle()
    assert len(op.calls) == calls + 1
    op.sim.delete("configmaps/base").settle()
    assert len(op.calls) == calls + 2
    assert [*writes] == []


def test_an_effect_calls_it_again() -> None:
    op = Desiring()

    @fnop.on.update("configmaps", registry=op.registry)
    def updated(**_: Any) -> fnop.Effect:
        return fnop.requeue(KIND, name="example-1")

    op.sim = simulation(op.registry)
    op.sim.apply(config_map("any", a="1"))
    op.begin()
    calls = len(op.calls)
    op.sim.edit("configmaps/any", data={"a": "2"}).settle()
    assert len(op.calls) == calls + 1


def test_a_handler_that_awaits_calls_outside() -> None:
    class Prices(External):
        def price(self, item: str) -> int:
            return len(item)

        def digest(self) -> list[str]:
            return []

    registry = Registry()

    @fnop.reconcile(KIND, registry=registry, owns="configmaps")
    async def keep(**_: Any) -> Any:
        found = await fnop.call(price_of, item="pen")
        return [fnop.event("Priced", str(found)), fnop.desired(config_map("c", p="1"))]

    sim = simulation(
        registry,
        calls={"tests.unit.core.children.test_reconcile:price_of": Prices().price},
    )
    sim.apply(example()).settle()
    assert data_of(sim, "c") == {"p": "1"}
    assert [each["message"] for each in sim.events()] == ["3"]


def price_of(item: str) -> int:
    raise AssertionError("it is called outside")


# ----------------------------------------------------------------------------- status


def test_conditions_are_merged_by_their_types() -> None:
    op = Desiring()
    op.more = {"conditions": [fnop.condition("Ready", False, "Starting", "0 of 1")]}
    op.begin()
    theirs = {
        "type": "Theirs",
        "status": "True",
        "reason": "Said",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    found = op.sim.get(NAME)
    assert found is not None
    op.sim.edit(NAME, status={"conditions": [*found.status["conditions"], theirs]})
    op.sim.wait(60)
    op.more = {"conditions": [fnop.condition("Ready", True, "Started")]}
    op.touch()
    kept = op.sim.get(NAME)
    assert kept is not None
    by_type = {each["type"]: each for each in kept.status["conditions"]}
    assert by_type["Theirs"] == theirs
    assert by_type["Ready"]["status"] == "True"
    assert by_type["Ready"]["observedGeneration"] == kept.metadata["generation"]
    assert (
        by_type["Ready"]["lastTransitionTime"] > by_type["Synced"]["lastTransitionTime"]
    )


def test_status_is_merged() -> None:
    op = Desiring()
    op.more = {"status": {"endpoint": "a"}}
    op.begin()
    op.sim.edit(NAME, status={"theirs": 1}).settle()
    op.more = {"status": {"endpoint": "b"}}
    op.touch()
    found = op.sim.get(NAME)
    assert found is not None
    assert (found.status["endpoint"], found.status["theirs"]) == ("b", 1)


# --------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"owns": [fnop.EVERYTHING]}, "owns= names each kind by a text"),
        ({"resync": -1}, "resync="),
        ({"own": "pods"}, "did you mean owns="),
        ({"impure": True}, "no option impure="),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], told: str) -> None:
    with pytest.raises(RegistrationError, match=told):
        fnop.reconcile(KIND, registry=Registry(), **options)(lambda **_: None)


def test_a_mapping_needs_a_kind_and_answers_names() -> None:
    with pytest.raises(RegistrationError, match="needs to=, such as to='databases'"):
        fnop.maps("pods", registry=Registry())  # type: ignore[call-arg]
    registry = Registry()
    fnop.maps("configmaps", to=KIND, registry=registry, id="wrong")(lambda **_: [1])
    sim = simulation(registry)
    sim.apply(config_map("one")).settle()
    assert any("a mapping answers names" in each for each in sim.errors)


def test_desired_is_no_answer_of_other_handlers() -> None:
    registry = Registry()
    fnop.on.create(KIND, registry=registry, id="wrong", retries=1)(  # type: ignore[type-var]
        lambda **_: fnop.desired()
    )
    sim = simulation(registry)
    sim.apply(example()).settle()
    assert any("the answer of a @fnop.reconcile handler" in each for each in sim.errors)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: fnop.desired([config_map("a"), config_map("a")]), "desired twice"),
        (lambda: fnop.desired({"kind": "ConfigMap"}), "no apiVersion"),
        (lambda: fnop.condition("Ready", "yes"), "True, False or None"),  # type: ignore[arg-type]
        (lambda: fnop.condition("Ready", True, "two words"), "one word"),
        (lambda: fnop.child(config_map("a"), after="b"), "kind/name"),
        (lambda: fnop.child(config_map("a"), on_immutable="no"), "'fail' or 'replace'"),  # type: ignore[arg-type]
        (lambda: fnop.desired(again=-1), "again="),
    ],
)
def test_what_cannot_be_desired(make: Any, told: str) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        make()


def test_a_child_that_the_server_fails_for_stops_no_other_one() -> None:
    # Server-side apply answers a value of a wrong type with 500.
    wrong = config_map("a-wrong")
    wrong["data"] = {"a": 1}
    op = Desiring(wrong, config_map("one", a="1"), config_map("two"))
    op.seconds = 60.0
    op.begin()
    assert data_of(op.sim, "one") == {"a": "1"}
    status, reason, message = op.synced()
    assert (status, reason) == ("False", "Failing")
    assert message.startswith("configmap/a-wrong ")
    op.desire(config_map("one", a="2"))
    assert data_of(op.sim, "one") == {"a": "2"}
    assert data_of(op.sim, "two") is None
    assert op.synced()[0] == "True"


def ports(**first: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"name": "sql", "port": 5432, **first}]},
    }


def test_a_list_that_somebody_has_made_another_is_set_anew() -> None:
    op = Desiring(ports(), owns="services").begin()
    theirs = [{"name": "sql", "port": 1}]
    op.sim.edit("services/s", spec={"ports": theirs}).settle()
    found = op.sim.get("services/s")
    assert found is not None
    assert [each["port"] for each in found.spec["ports"]] == [5432]
    assert op.synced()[0] == "True"
    op.desire({**ports(), "spec": {"ports": [{"name": "http", "port": 80}]}})
    found = op.sim.get("services/s")
    assert found is not None
    assert [each["port"] for each in found.spec["ports"]] == [80]


def test_fields_of_a_child_that_was_created_before_can_be_removed() -> None:
    op = Desiring()

    @fnop.on.create(KIND, registry=op.registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.adopt(config_map("one", a="1", b="2"))

    op.sim = simulation(op.registry)
    op.begin()
    assert data_of(op.sim, "one") == {"a": "1", "b": "2"}
    op.desire(config_map("one", a="1"))
    assert data_of(op.sim, "one") == {"a": "1"}
    assert op.synced()[0] == "True"


def test_what_the_garbage_collector_leaves_is_deleted_when_its_owner_is_gone() -> None:
    far, kept = config_map("far", "kube-public"), config_map("kept", "kube-public")
    op = Desiring(far, fnop.child(kept, keep=True), config_map("near")).begin()
    # A user removes the finalizer, and the object is deleted.
    op.sim.stop()
    op.sim.edit(NAME, metadata={"finalizers": None}).delete(NAME).settle()
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "far", namespace="kube-public") is not None
    op.sim.restart().settle()
    assert data_of(op.sim, "far", namespace="kube-public") is None
    assert data_of(op.sim, "kept", namespace="kube-public") is not None


def test_what_appears_for_an_owner_that_is_gone_is_deleted() -> None:
    op = Desiring(config_map("far", "kube-public")).begin()
    found = op.sim.get("configmaps/far", namespace="kube-public")
    assert found is not None
    late = {**found, "metadata": {**found["metadata"]}}
    for name in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        del late["metadata"][name]
    op.sim.delete(NAME).settle()
    assert data_of(op.sim, "far", namespace="kube-public") is None
    op.sim.apply(late).settle()  # as a request that was on its way
    assert data_of(op.sim, "far", namespace="kube-public") is None


def test_who_changes_its_own_object_at_each_call_is_slowed_down_and_told() -> None:
    registry, calls = Registry(), list[float]()

    @fnop.reconcile(KIND, registry=registry)
    def count(spec: Any, now: Any, **_: Any) -> Any:
        calls.append(now.timestamp())
        return [fnop.patch(spec={"n": spec.get("n", 0) + 1}), fnop.desired()]

    sim = simulation(registry)
    sim.apply(example())
    sim.wait(100)
    assert len(calls) < 25
    told = [each for each in sim.log if "again and again" in each or "in a row" in each]
    assert len(told) == 1
    assert "count changes /spec/n" in told[0]


def test_who_is_undone_by_another_each_time_is_slowed_down_and_tells() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    calls = len(op.calls)
    for number in range(60):
        op.sim.edit("configmaps/one", data={"a": f"theirs {number}"})
        op.sim.wait(0.5)
    assert len(op.calls) - calls < 40
    told = [each for each in op.sim.log if "repairs configmap/one data.a" in each]
    assert len(told) == 1
    op.sim.wait(120)
    assert data_of(op.sim, "one") == {"a": "1"}


@pytest.mark.parametrize("place", ["", "kube-public"])
def test_a_deletion_does_not_wait_for_the_next_call(place: str) -> None:
    op = Desiring(config_map("one", place))
    op.more = {"again": 10_000_000}

    @fnop.on.delete(KIND, registry=op.registry)
    def deleted(**_: Any) -> None: ...

    op.sim = simulation(op.registry)
    op.sim.apply(example())
    op.sim.wait(10)
    op.sim.delete(NAME)
    op.sim.wait(10)
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "one", namespace=place or "default") is None


def test_a_child_whose_owner_somebody_takes_away_is_owned_again() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    op.sim.edit("configmaps/one", metadata={"ownerReferences": None}).settle()
    assert op.synced()[0] == "True"
    found = op.sim.get("configmaps/one")
    assert found is not None
    assert len(found.metadata["ownerReferences"]) == 1
    op.desire()
    assert data_of(op.sim, "one") is None


@pytest.mark.parametrize("is_down", [False, True])
def test_a_handler_is_shown_a_child_whose_owner_somebody_takes_away(
    is_down: bool,
) -> None:
    """Otherwise it would recreate data that only the child has, such as a password."""
    op = Desiring(config_map("one", a="1")).begin()
    calls = len(op.calls)
    if is_down:
        op.sim.stop()
    op.sim.edit("configmaps/one", metadata={"ownerReferences": None})
    if is_down:
        op.sim.restart()
    op.sim.settle()
    shown = [[*each["children"]["configmaps"]] for each in op.calls[calls:]]
    assert shown
    assert all(each == ["one"] for each in shown)
    found = op.sim.get("configmaps/one")
    assert found is not None
    assert len(found.metadata["ownerReferences"]) == 1


def test_what_somebody_has_taken_from_its_owner_is_not_deleted() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    op.sim.stop()
    op.wanted = []
    op.sim.edit("configmaps/one", metadata={"ownerReferences": None})
    op.sim.restart().settle()
    assert op.synced()[0] == "True"
    assert data_of(op.sim, "one") == {"a": "1"}


def test_orphans_of_an_owner_are_let_go() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    op.sim.delete(NAME, propagation="Orphan").settle()
    found = op.sim.get("configmaps/one")
    assert found is not None
    assert not found.metadata.get("ownerReferences")


def test_what_a_former_owner_has_kept_is_taken_over_where_that_is_asked_for() -> None:
    kept = fnop.child(config_map("one", a="1"), keep=True)
    op = Desiring(kept).begin()
    op.sim.delete(NAME).settle()
    op.seconds = 60.0
    op.sim.apply(example()).wait(op.seconds)
    assert "was kept from a former owner of this name" in op.synced()[2]
    op.desire(fnop.child(config_map("one", a="1"), keep=True, adopt=True))
    assert op.synced()[0] == "True"
    assert [*op.calls[-1]["children"]["configmaps"]] == ["one"]


def test_a_manifest_of_another_version_is_told_which_one_is_owned() -> None:
    budget = {"apiVersion": "apps/v1beta1", "kind": "Deployment"}
    op = Desiring({**budget, "metadata": {"name": "d"}}, owns="deployments.apps")
    op.sim.apply(example()).wait(5)
    assert op.synced()[2] == (
        "deployment/d is of apps/v1beta1, but Deployment is owned as apps/v1; "
        "owns='deployments.v1beta1.apps' means the former"
    )


# --------------------------------------------------------------- left as they are


def test_children_are_left_as_they_are_where_the_handler_says_so() -> None:
    op = Desiring(config_map("one", a="1"), config_map("far", "kube-public")).begin()
    op.wanted, op.answer = [], fnop.UNCHANGED
    op.more = {"conditions": fnop.condition("Ready", False, "SpecInvalid", "no size")}
    writes = op.writes()
    op.touch()
    op.sim.edit("configmaps/one", data={"a": "2"}).settle()
    op.sim.restart().settle()
    assert [*writes] == []
    assert data_of(op.sim, "one") == {"a": "2"}
    assert data_of(op.sim, "far", namespace="kube-public") == {}
    assert condition(op.sim, "Ready") == ("False", "SpecInvalid", "no size")
    told = "the handler leaves its children as they are"
    assert op.synced() == ("Unknown", "LeftUnchanged", told)
    op.answer, op.more = None, {}
    op.desire(config_map("one", a="1"))
    assert data_of(op.sim, "one") == {"a": "1"}
    assert data_of(op.sim, "far", namespace="kube-public") is None
    assert op.synced()[0] == "True"


def test_children_that_are_left_as_they_are_go_with_their_object() -> None:
    op = Desiring(config_map("near"), config_map("far", "kube-public")).begin()
    op.answer = fnop.UNCHANGED
    op.touch()
    op.sim.restart().settle()
    op.sim.delete(NAME).settle()
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "near") is None
    assert data_of(op.sim, "far", namespace="kube-public") is None


def test_resync_calls_a_handler_that_has_failed_for_good() -> None:
    registry, calls = Registry(), list[int]()

    @fnop.reconcile(KIND, registry=registry, resync=100)
    def keep(**_: Any) -> fnop.Desired:
        calls.append(1)
        raise fnop.PermanentError("no such size")

    sim = simulation(registry)
    sim.apply(example()).wait(350)
    assert len(calls) == 4


def test_after_finds_a_child_that_names_its_namespace() -> None:
    wrong = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"ports": [{"port": 0}]},
    }
    late = fnop.child(config_map("late"), after="service/s")
    op = Desiring(wrong, late, owns=["configmaps", "services"])
    op.sim.apply(example()).wait(30)
    assert data_of(op.sim, "late") is None


@pytest.mark.parametrize("before", ["service/misspelt", "configmap/late"])
def test_after_that_cannot_be_is_told(before: str) -> None:
    op = Desiring(fnop.child(config_map("late"), after=before))
    op.sim.apply(example()).wait(30)
    assert op.sim.errors or op.synced()[0] == "False"
