"""Several reconcile handlers of one object: what they tell, and whose a child is."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.registry import Registry
from tests.reconcilers import (
    KIND,
    NAME,
    Both,
    Desiring,
    condition,
    config_map,
    data_of,
    simulation,
)
from tests.simulations import example

ALL = "True", "AsDesired", "all is as desired"


def statuses(op: Both, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the object tells at each version from here on."""
    seen: list[str] = []

    @fnop.on.event(KIND, registry=op.registry)
    def spy(status: Any, **_: Any) -> None:
        seen.extend(each["status"] for each in status.get("conditions", ()))

    op.sim = simulation(op.registry)
    return seen


# ------------------------------------------------------------------------ Synced


def test_a_handler_that_writes_a_list_of_conditions_takes_none_of_it_away() -> None:
    """A merge patch replaces the list, and nobody calls the reconcile handler again."""
    op = Both()

    @fnop.timer(KIND, interval=5, registry=op.registry)
    def lags(**_: Any) -> Any:
        lag = {"type": "Lag", "status": "False", "reason": "Idle", "message": ""}
        return fnop.patch(status={"conditions": [lag]})

    op.answers["a"] = [config_map("one")]
    op.sim = simulation(op.registry)
    op.begin()
    op.sim.wait(30)
    assert condition(op.sim, "Lag")[0] == "False"
    assert op.synced == ALL


@pytest.mark.parametrize("reverse", [False, True])
def test_all_that_fail_are_named_and_the_worst_is_the_reason(reverse: bool) -> None:
    op = Both(reverse=reverse)
    op.answers["a"] = ValueError("no size")
    op.answers["b"] = config_map("far", "no-such-namespace")
    op.begin()
    status, reason, message = op.synced
    assert (status, reason) == ("False", "HandlerFailed")
    assert message.startswith("a: ValueError: no size; b: configmap/no-such-namespace")
    op.answers["a"] = []
    op.touch(1)
    assert op.synced[:2] == ("False", "Failing")
    assert op.synced[2].startswith("b: ")
    op.answers["b"] = []
    op.touch(2)
    assert op.synced == ALL


@pytest.mark.parametrize("reverse", [False, True])
def test_who_is_content_does_not_tell_so_before_the_others(
    reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    op = Both(reverse=reverse)
    op.answers |= {"a": config_map("one"), "b": ValueError("no size")}
    seen = statuses(op, monkeypatch)
    op.begin().sim.restart().wait(30)
    op.touch(1)
    assert seen
    assert {*seen} == {"False"}


def test_at_rest_nothing_is_asked_for_even_after_a_restart() -> None:
    op = Both()
    op.answers |= {"a": config_map("one"), "b": config_map("two")}
    op.begin()
    assert op.synced == ALL
    before = len(op.sim.writes)
    op.sim.restart().wait(30)
    assert op.sim.writes[before:] == []


def test_a_generation_is_told_when_all_have_seen_it() -> None:
    op = Both()
    op.answers |= {"a": config_map("one"), "b": config_map("two")}
    op.begin()
    before = len(op.sim.writes)
    op.touch(1)
    (told,) = [each for each in op.sim[NAME].status["conditions"]]
    assert told["observedGeneration"] == op.sim[NAME].metadata["generation"]
    assert len([e for e in op.sim.writes[before:] if e.endswith("/status")]) == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_a_handler_that_desires_nothing_hides_nobody(reverse: bool) -> None:
    op = Both(reverse=reverse)
    op.answers["a"] = config_map("one")
    op.begin()
    assert op.synced == ALL
    op.answers["a"] = config_map("far", "no-such-namespace")
    op.touch(1)
    assert op.synced[0] == "False"


def test_who_has_failed_and_desires_nothing_has_not_failed_any_more() -> None:
    op = Desiring()
    answers: list[Any] = [ValueError("not yet"), None]
    registry = Registry()

    @fnop.reconcile(KIND, registry=registry)
    def keep(**_: Any) -> None:
        problem = answers.pop(0) if len(answers) > 1 else None
        if problem is not None:
            raise problem

    op.sim = simulation(registry)
    op.sim.apply(example()).wait(0.1)
    assert op.synced()[1] == "HandlerFailed"
    op.sim.wait(30)
    assert op.synced() == ALL


def test_a_condition_of_somebody_else_is_left_alone() -> None:
    theirs = {
        "type": "Synced",
        "status": "False",
        "reason": "ReconcileError",
        "message": "theirs",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    registry = Registry()
    fnop.reconcile(KIND, registry=registry, id="none")(lambda **_: None)
    sim = simulation(registry)
    sim.apply(example())
    sim.edit(NAME, status={"conditions": [theirs]}).wait(30)
    assert sim[NAME].status["conditions"] == [theirs]


def test_who_does_not_match_any_more_fails_no_more() -> None:
    op = Both(labels={"on": "yes"})
    op.answers |= {"a": config_map("one"), "b": ValueError("no size")}
    owner = example()
    owner["metadata"]["labels"] = {"on": "yes"}
    op.sim.apply(owner).wait(5)
    assert op.synced[0] == "False"
    op.sim.edit(NAME, metadata={"labels": {"on": None}}).wait(5)
    assert op.synced == ALL


def test_who_has_timed_out_is_not_hidden() -> None:
    op = Both(timeout=10)
    op.answers |= {"a": config_map("one"), "b": ValueError("no size")}
    op.begin().sim.wait(300)
    op.sim.edit("configmaps/one", data={"theirs": "x"}).wait(5)
    assert op.synced[0] == "False"


# -------------------------------------------------------------- a child of two handlers


def test_a_child_that_two_desire_is_of_one_and_both_are_named() -> None:
    op = Both()
    op.answers |= {"a": config_map("one", a="1"), "b": config_map("one", a="2")}
    op.begin().sim.wait(60)
    assert data_of(op.sim, "one") == {"a": "1"}
    status, _, message = op.synced
    assert status == "False"
    assert "the handlers a and b" in message
    before = len(op.sim.writes)
    op.sim.wait(600)
    assert op.sim.writes[before:] == [], "it is told, and nobody writes"
    op.answers["a"] = []
    op.touch(1)
    assert op.synced == ALL
    assert data_of(op.sim, "one") == {"a": "2"}


@pytest.mark.parametrize("reverse", [False, True])
def test_a_child_that_passes_from_one_handler_to_the_other_stays(reverse: bool) -> None:
    op = Both(reverse=reverse)
    one = config_map("one", a="1")
    op.answers["a"] = lambda spec, **_: one if spec["by"] == "a" else []
    op.answers["b"] = lambda spec, **_: one if spec["by"] == "b" else []
    op.begin(by="a")
    made = op.sim["configmaps/one"].metadata["uid"]
    found = [made]
    for by in ("b", "a"):
        op.sim.edit(NAME, spec={"by": by}).wait(30)
        assert op.synced == ALL
        assert data_of(op.sim, "one") == {"a": "1"}
        found.append(op.sim["configmaps/one"].metadata["uid"])
    # Who is called first takes it over, or has let it go before the other one.
    later = 1 if reverse else 2
    assert found[later] == found[later - 1]


def test_children_of_two_handlers_are_kept_side_by_side() -> None:
    op = Both()
    op.answers |= {"a": config_map("one", a="1"), "b": config_map("two", a="2")}
    op.begin()
    assert op.synced == ALL
    op.answers["a"] = []
    op.touch(1)
    assert data_of(op.sim, "one") is None
    assert data_of(op.sim, "two") == {"a": "2"}


# --------------------------------------------------------------------------- twins


def test_twins_are_named_and_others_are_made() -> None:
    twins = config_map("one", a="1"), config_map("one", "default", a="2")
    op = Desiring(*twins, config_map("two"))
    op.sim.apply(example()).wait(30)
    status, _, message = op.synced()
    assert status == "False"
    both = "is desired twice, as configmap/one and configmap/default/one"
    assert both in message
    assert data_of(op.sim, "one") is None
    assert data_of(op.sim, "two") is not None


def test_a_child_that_gets_a_twin_stays_as_it_is() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    op.wanted = [config_map("one", a="2"), config_map("one", "default", a="3")]
    op.sim.edit(NAME, spec={"round": 1}).wait(30)
    assert data_of(op.sim, "one") == {"a": "1"}
    assert op.synced()[0] == "False"


def test_one_name_in_two_namespaces_is_no_twin() -> None:
    op = Desiring(config_map("one", a="1"), config_map("one", "kube-public", a="2"))
    op.sim.apply(example()).wait(30)
    assert data_of(op.sim, "one") == {"a": "1"}
    assert data_of(op.sim, "one", namespace="kube-public") == {"a": "2"}


# ------------------------------------------------------- what no API server keeps


def service(port: int = 80) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": port, "protocol": "TCP"}], "selector": {"a": "b"}},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    }


def unkept(op: Desiring) -> list[str]:
    return [each for each in op.sim.log if "does not keep" in each]


def test_what_is_not_kept_is_applied_once_and_told_again_for_another_manifest() -> None:
    op = Desiring(service(), owns="services")
    op.more = {"again": 5}
    writes = op.writes()
    op.sim.apply(example()).wait(60)
    assert [*writes] == ["PATCH services/s"]
    (line,) = unkept(op)
    assert "keep desires status.loadBalancer" in line
    op.wanted = [service(81)]
    op.sim.edit(NAME, spec={"round": 1}).wait(60)
    assert [*writes] == ["PATCH services/s"] * 2 + []
    assert len(unkept(op)) == 2


def test_drift_beside_what_is_not_kept_is_repaired() -> None:
    op = Desiring(service(), owns="services")
    op.sim.apply(example()).wait(5)
    op.sim.edit("services/s", spec={"selector": {"a": "theirs"}}).wait(5)
    assert op.sim["services/s"]["spec"]["selector"] == {"a": "b"}
    events = op.sim.events()
    (told,) = [each["message"] for each in events if each["reason"] == "Repaired"]
    assert told.startswith("service/s: spec.selector.a, changed by")
    assert len(unkept(op)) == 1


# ------------------------------------------------- a handler that selects it no more


def selective(
    labels: dict[str, str], *wanted: Any, id: str, registry: Registry
) -> None:
    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id=id, labels=labels)
    def keep(**_: Any) -> fnop.Desired:
        return fnop.desired(wanted)


def labelled(**labels: str) -> dict[str, Any]:
    found = example()
    found["metadata"]["labels"] = labels
    return found


@pytest.mark.parametrize("restarts", [False, True])
def test_who_does_not_select_it_any_more_tells_so(restarts: bool) -> None:
    registry = Registry()
    wanted = config_map("one", a="1"), config_map("far", "kube-public")
    selective({"on": "yes"}, *wanted, id="keep", registry=registry)
    sim = simulation(registry)
    sim.apply(labelled(on="yes")).settle()
    if restarts:
        sim.stop()
    sim.edit(NAME, metadata={"labels": {"on": None}})
    if restarts:
        sim.restart()
    sim.settle()
    status, reason, message = condition(sim, "Synced")
    assert (status, reason) == ("Unknown", "NotSelected")
    assert message.startswith("the object does not fit the filters of keep any more")
    assert data_of(sim, "far", namespace="kube-public") is not None
    before = len(sim.writes)
    sim.restart().settle()
    assert sim.writes[before:] == []
    sim.edit(NAME, metadata={"labels": {"on": "yes"}}).settle()
    assert condition(sim, "Synced")[0] == "True"
    sim.edit(NAME, metadata={"labels": {"on": None}}).settle()
    sim.delete(NAME).settle()
    assert sim.get(NAME) is None
    assert data_of(sim, "far", namespace="kube-public") is None


def test_another_handler_may_take_its_place() -> None:
    registry = Registry()
    selective({"mode": "a"}, config_map("one"), id="first", registry=registry)
    selective({"mode": "b"}, config_map("two"), id="second", registry=registry)
    sim = simulation(registry)
    sim.apply(labelled(mode="a")).settle()
    sim.edit(NAME, metadata={"labels": {"mode": "b"}}).settle()
    assert condition(sim, "Synced")[0] == "True"
    assert data_of(sim, "one") == {}


def test_a_failing_call_does_not_let_the_object_go() -> None:
    op = Desiring(config_map("far", "kube-public")).begin()
    op.answer = 5  # raises: a number cannot be desired
    op.touch()
    finalizers = op.sim[NAME].metadata.get("finalizers")
    assert finalizers == ["fnop.dev/default"]
