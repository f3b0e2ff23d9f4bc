"""Several reconcile handlers of one object: its Synced condition, its children."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.reconcilers import (
    KIND,
    NAME,
    Both,
    Desiring,
    condition,
    config_map,
    data_of,
    secret,
    simulation,
)
from tests.simulations import example

ALL = "True", "AsDesired", "all is as desired"


def statuses(op: Both, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The object's status at each version from here on."""
    seen: list[str] = []

    @fnop.on.event(KIND, registry=op.registry)
    def spy(status: Any, **_: Any) -> None:
        seen.extend(each["status"] for each in status.get("conditions", ()))

    op.sim = simulation(op.registry)
    return seen


# ------------------------------------------------------------------------ Synced


def test_a_handler_that_writes_a_list_of_conditions_takes_none_of_it_away() -> None:
    """A merge patch replaces the list; the reconcile handler is not called again."""
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


def test_an_owner_that_does_not_match_any_more_is_not_said_to_be_synced() -> None:
    op = Desiring(config_map("one", a="1"), labels={"on": "yes"})
    owner = example()
    owner["metadata"]["labels"] = {"on": "yes"}
    op.sim.apply(owner).settle()
    op.sim.edit(NAME, metadata={"labels": {"on": None}}).settle()
    op.sim.edit("configmaps/one", data={"a": "2"}).settle()
    assert data_of(op.sim, "one") != {"a": "2"} or op.synced()[0] != "True"


def test_two_handlers_that_desire_one_child_do_not_write_without_end() -> None:
    """On a real API server 160 writes a second, and nothing in the log."""
    op = Desiring(config_map("one", a="1"))

    @fnop.reconcile(KIND, owns=["configmaps"], registry=op.registry, id="other")
    def other(**_: Any) -> fnop.Desired:
        return fnop.desired(config_map("one", b="2"))

    op.sim = simulation(op.registry)
    op.sim.apply(example())
    op.sim.wait(60)  # fails if no time passes
    assert len(op.calls) < 30


def test_two_handlers_that_desire_one_child_are_told() -> None:
    op = Desiring(config_map("one", a="1"))

    @fnop.reconcile(KIND, owns=["configmaps"], registry=op.registry, id="other")
    def other(**_: Any) -> fnop.Desired:
        return fnop.desired(config_map("one", a="2"))

    op.sim = simulation(op.registry)
    op.sim.apply(example()).wait(60)
    assert op.synced()[0] == "False"


def test_twins_are_told_though_one_names_its_namespace() -> None:
    op = Desiring(config_map("one", a="1"), config_map("one", "default", a="2"))
    op.sim.apply(example()).wait(30)
    status = op.sim[NAME].get("status", {})
    told = [each["status"] for each in status.get("conditions", ())]
    assert op.sim.errors or "False" in told


def test_synced_tells_of_each_handler() -> None:
    op, registry = Desiring(), Registry()

    @fnop.reconcile(KIND, registry=registry, id="failing")
    def failing(**_: Any) -> fnop.Desired:
        return fnop.desired(secret("not-owned"))

    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id="good")
    def good(**_: Any) -> fnop.Desired:
        return fnop.desired(config_map("one", a="1"))

    op.sim = simulation(registry)
    op.sim.apply(example()).wait(300)
    assert condition(op.sim, "Synced")[0] == "False"
    op.sim.edit("configmaps/one", data={"a": "2"}).wait(2)
    assert condition(op.sim, "Synced")[0] == "False"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "others", [fnop.UNCHANGED, ValueError("no zone"), config_map("two")]
)
@pytest.mark.parametrize(
    "own", [fnop.UNCHANGED, ValueError("no size"), fnop.PermanentError("no size")]
)
def test_what_several_tell_is_the_same_after_a_restart(
    own: Any, others: Any, reverse: bool
) -> None:
    op = Both(reverse=reverse)
    op.answers |= {"a": own, "b": others}
    op.begin().sim.wait(100)
    before = len(op.sim.writes)
    op.sim.restart().wait(100)
    assert [e for e in op.sim.writes[before:] if "/events" not in e] == []


def test_who_leaves_children_as_they_are_has_them_after_a_restart() -> None:
    op = Both()
    op.answers |= {"a": config_map("one", a="1"), "b": []}
    op.begin()
    op.answers |= {"a": fnop.UNCHANGED, "b": config_map("one", a="2")}
    op.touch(1).sim.restart().wait(60)
    assert data_of(op.sim, "one") == {"a": "1"}
    assert "is left to a" in op.synced[2]
