"""Trials: what a fault does, that forks change nothing, and that all is repeatable."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from bench.bugs.crds import crd, custom
from bench.sweep import cases_named
from fnop import Registry
from fnop.adapters.reports.check_report import as_lines
from fnop.adapters.testing.cases import cases_of, subjects_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.campaign import Campaign, Options
from fnop.interpreters.check.campaign.explore import (
    Case,
    Explorer,
    digest_of,
    prepared,
    sort_of,
)
from fnop.interpreters.check.properties.evidence import seen_by
from fnop.interpreters.check.state.kinds import Fault, Place, Site, in_words
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.state.scripts import script_from_json, script_to_json
from fnop.interpreters.check.state.worlds import objects_in
from fnop.interpreters.check.trials.catalogue import (
    BY_NAME,
    FAULTS,
    schedule_from_json,
    schedule_to_json,
)
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import Off
from fnop.interpreters.simulation.actions import SetPace, apply, delete, edit, wait
from fnop.interpreters.simulation.externals import PostService, PutService
from fnop.testing import crash
from tests.simulations import Scenario, example, example_handlers, manifests_of
from tests.thorough import examples

DEFINITION = manifests_of("01-minimal")[0]
NAME = "fnopexamples/example-1"


def case_of(registry: Registry, *script: Any, **more: Any) -> Case:
    program = Program(registry.handlers, Settings())
    return Case(program, (DEFINITION,), script, **more)


@cache
def children() -> Explorer:
    """An operator with a child, whose object is created, deleted, and created."""
    program = Program(example_handlers("02-children"), Settings())
    subjects = subjects_of(program, manifests_of("02-children"))
    *_, last = cases_of(program, subjects)
    return Explorer(last)


SINGLES = [each for (each,) in children().singles()]


def test_the_first_schedules_have_some_of_every_kind() -> None:
    """A small budget has the lost replies and the stale views of a large operator."""
    kinds = [each.kind.name for each in SINGLES]
    first = kinds[: 3 * len({*kinds})]
    assert {*first} == {*kinds}
    assert max(map(first.count, first)) <= 6
    sorts = [sort_of(each) for each in SINGLES]
    assert {*sorts[: len({*sorts})]} == {*sorts}


def test_a_listing_after_a_lost_watch_does_not_hold_up_a_write() -> None:
    """The live read expects a version that the new listing has left out already.

    Full sweeps found this: the write went on with the version of before, and was
    refused for ever.
    """
    case = max(
        cases_named("11-filtering"),
        key=lambda each: each.name == "create",
    )
    patched = "by_annotation, by_function, by_label"
    example = "fnopexamples/example-1"
    child = "configmaps/example-1-*"
    schedule = (
        Fault(BY_NAME["F8:touched"], Site(Place.OWN, patched, "patch", example)),
        Fault(BY_NAME["F11:crash"], Site(Place.WRITE, "child", "create", child)),
        Fault(BY_NAME["F6:gone"], Site(Place.EVENT, "", "MODIFIED", example)),
    )
    verdict = Explorer(case).tried(schedule)
    assert verdict.struck
    assert verdict.violations == ()


def test_manifests_that_are_named_twice_count_once() -> None:
    program = Program(example_handlers("02-children"), Settings())
    manifests = manifests_of("02-children")
    twice = [*manifests, *(dict(each) for each in manifests)]
    assert subjects_of(program, twice) == subjects_of(program, manifests)


def test_the_script_that_is_explored_deletes_and_recreates() -> None:
    assert [type(each).__name__ for each in children().case.script] == [
        *("Apply", "Delete", "Apply")
    ]
    assert children().benign.violations == ()
    assert len(SINGLES) > 100


@pytest.mark.parametrize("name", sorted({each.kind.name for each in SINGLES}))
def test_every_fault_comes_about_and_hurts_no_good_operator(name: str) -> None:
    for fault in SINGLES:
        if fault.kind.name == name:
            verdict = children().tried((fault,))
            assert verdict.struck, in_words((fault,))
            assert verdict.violations == (), in_words((fault,))


# These need a script, a call, a Deployment or former code that this operator has not.
_ELSEWHERE = {"F1:client", "F17:error", "F17:three errors", "F20:upgrade", "F15:former"}
_ELSEWHERE |= {"F8:remade"}  # it neither patches nor deletes others
_ELSEWHERE |= {"F15:failover", "F15:paused"}  # test_check_replicas.py
_ELSEWHERE |= {"F23:down", "F23:slow", "F23:former"}  # test_check_admission.py
_ELSEWHERE |= {"F24:break", "F24:cut", "F24:late", "F24:crash"}  # test_check_logs.py
# If nothing has changed since, it is the same as a crash after something.
_ELSEWHERE |= {"F1:before"}


def test_nearly_every_fault_of_the_table_is_tried() -> None:
    tried = {each.kind.name for each in SINGLES}
    assert set(BY_NAME) - tried <= _ELSEWHERE


@pytest.mark.parametrize("fault", SINGLES[::7], ids=str)
def test_a_schedule_has_one_end_from_a_fork_and_from_the_beginning(
    fault: Fault,
) -> None:
    explorer, schedule = children(), (fault,)
    limits = explorer.reference.limits
    whole = Trial(explorer.reference.scene, schedule, limits=limits).play()
    first, again = (explorer.trial_of(schedule).play() for _ in range(2))
    assert digest_of(seen_by(first)) == digest_of(seen_by(again))
    assert digest_of(seen_by(first)) == digest_of(seen_by(whole))


def test_an_index_that_fails_is_no_success() -> None:
    registry = fnop.Registry()

    @fnop.index("xs.example.com", registry=registry)
    def by_size(spec: fnop.Spec, **_: Any) -> dict[int, str]:
        return {spec["nosuch"]: ""}

    @fnop.on.create("xs.example.com", registry=registry)
    def made(by_size: Any = fnop.INDEX, **_: Any) -> dict[str, int]:
        return {"number": len(by_size)}

    case = Case(Program(registry.handlers), [crd()], (apply(custom(size=1)),))
    found = {e.property: e.message for e in Explorer(case).benign.violations}
    assert found["total"] == "by_size raises KeyError: 'nosuch'"


def test_a_trial_that_is_forked_at_any_turn_ends_alike() -> None:
    explorer = children()
    schedule = next((each,) for each in SINGLES if each.kind.name == "F2:action")
    trial, forks = Trial(explorer.reference.scene, schedule), []
    while trial.phase is not Phase.DONE:
        forks.append(trial.fork())
        trial.go_on()
    expected = digest_of(seen_by(trial))
    assert {digest_of(seen_by(each.play())) for each in forks[::5]} == {expected}


# ------------------------------------------------------------------ JSON

sites = st.builds(
    Site,
    st.sampled_from(Place),
    st.text(max_size=8),
    st.sampled_from(["create", "ADDED"]),
    st.text(max_size=12),
    st.integers(1, 9),
)
schedules = st.lists(
    st.builds(Fault, st.sampled_from(FAULTS), sites, st.text(max_size=4)), max_size=4
)


@settings(max_examples=examples(30))
@given(schedules)
def test_a_schedule_goes_through_json(schedule: list[Fault]) -> None:
    assert schedule_from_json(schedule_to_json(tuple(schedule))) == tuple(schedule)


@pytest.mark.parametrize(
    "broken", [[{}], [{"fault": "F99:x", "site": {}}], [7], [{"fault": "F1:after"}]]
)
def test_what_is_no_schedule_is_refused_in_a_sentence(broken: Any) -> None:
    with pytest.raises(ValueError, match=r"not a schedule of faults|there is no fault"):
        schedule_from_json(broken)


def test_a_script_goes_through_json() -> None:
    script = (
        apply(example(size=1)),
        edit(NAME, spec={"size": 2}),
        wait(3),
        delete(NAME, propagation="Foreground"),
    )
    assert script_from_json(script_to_json(script)) == script


# ------------------------------------------------------- what is found, and when


def child(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def found(
    explorer: Explorer, names: Collection[str] = tuple(BY_NAME)
) -> dict[str, set[str]]:
    """The properties that single faults of these names violate, with the names."""
    result: dict[str, set[str]] = {}
    singles = [each for each in explorer.singles() if each[0].kind.name in names]
    for schedule in [(), *singles]:
        verdict = explorer.tried(schedule) if schedule else explorer.benign
        for each in explorer.confirmed(verdict):
            name = schedule[0].kind.name if schedule else "benign"
            result.setdefault(each.property, set()).add(name)
    return result


def test_a_first_child_that_stands_for_both_is_found_by_a_crash() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def made(name: str, **_: Any) -> None:
        if await fnop.get("configmaps", name=f"{name}-a") is None:
            await fnop.adopt(child(f"{name}-a"))
            await fnop.adopt(child(f"{name}-b"))

    result = found(Explorer(case_of(registry, apply(example()))))
    assert "F1:after" in result["same_end"]
    assert "benign" not in result["same_end"]


def test_a_handler_that_changes_its_object_for_ever_does_not_settle() -> None:
    registry = Registry()

    @fnop.on.event("fnopexamples", registry=registry)
    def counted(status: fnop.Status, patch: fnop.Patch, **_: Any) -> None:
        patch.status["count"] = status.get("count", 0) + 1

    explorer = Explorer(case_of(registry, apply(example())))
    (violation,) = [
        each for each in explorer.benign.violations if each.property == "settles"
    ]
    assert "counted changes status.count" in violation.message


def test_a_child_that_is_another_one_at_each_call_does_not_settle() -> None:
    """Each round ends with a pause, and takes the same number of turns."""
    registry = Registry()

    @fnop.reconcile("fnopexamples", owns="configmaps", registry=registry)
    def restless(children: fnop.Children, **_: Any) -> fnop.Desired:
        found = children["configmaps"].get("one")
        turn = str(int(found["data"]["turn"]) + 1 if found else 1)
        manifest = {"apiVersion": "v1", "kind": "ConfigMap"}
        data = {"metadata": {"name": "one"}, "data": {"turn": turn}}
        return fnop.desired({**manifest, **data})

    trial = Trial(prepared(case_of(registry, apply(example())))).play()
    unrest = trial.journal.unsettled[Phase.SCRIPT]
    assert unrest.endless
    assert "restless changes data.turn of configmaps/one" in unrest.reason
    assert [*trial.journal.unsettled] == [Phase.SCRIPT]
    assert "the operator restarts" not in [each.what for each in trial.journal.story]


def test_a_phase_after_one_without_an_end_does_not_begin() -> None:
    """A loop after a fault starts when all is healed; no restart ends it."""
    registry = Registry()

    @fnop.on.create("fnopexamples", id="made", registry=registry)
    async def made(name: str, **_: Any) -> fnop.Effect | None:
        if await fnop.get("configmaps", name=f"{name}-a") is None:
            await fnop.adopt(child(f"{name}-a"))
            return None
        return fnop.patch(status={"count": 1})

    @fnop.on.event("fnopexamples", registry=registry)
    def counted(status: fnop.Status, patch: fnop.Patch, **_: Any) -> None:
        if status.get("count"):
            patch.status["count"] = status["count"] + 1

    case = case_of(registry, apply(example()))
    schedule = (crash.after("made", create="configmaps/example-1-a"),)
    explorer = Explorer(case)
    trial = explorer.trial_of(schedule).play()
    assert trial.struck
    assert [*trial.journal.unsettled] == [Phase.SCRIPT, Phase.HEALED]
    assert (
        trial.journal.ends[Phase.RESTARTED].cluster
        is trial.journal.ends[Phase.HEALED].cluster
    )
    assert {each.phase for each in trial.journal.writes} == {Phase.SCRIPT, Phase.HEALED}
    verdict = explorer.verdict_of(trial, schedule)
    (told,) = [each for each in verdict.violations if each.property == "settles"]
    assert "counted changes status.count" in told.message


def test_a_finalizer_list_that_is_overwritten_takes_back_a_rivals() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def held(name: str, **_: Any) -> None:
        found = await fnop.get("configmaps", name="shared")
        assert found is not None
        finalizers = [*(found.metadata.get("finalizers") or ()), "example.com/held"]
        await fnop.patch(found, metadata={"finalizers": finalizers})

    case = case_of(registry, apply(example()), given=(child("shared"),))
    assert "F8:held" in found(Explorer(case))["no_clobber"]


def test_a_status_that_depends_on_the_way_is_history() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    @fnop.on.update("fnopexamples", registry=registry)
    async def grown(
        name: str, body: fnop.Body, spec: fnop.Spec, old: Any, **_: Any
    ) -> None:
        most = max(spec["size"], ((old or {}).get("spec") or {}).get("size", 0))
        data = {**child(f"{name}-data"), "data": {"size": str(most)}}
        await fnop.apply(fnop.owned(data, body))

    script = apply(example(size=3)), edit(NAME, spec={"size": 1})
    explorer = Explorer(case_of(registry, *script))
    assert [each.property for each in explorer.benign.violations] == ["history"]
    declared = case_of(registry, *script, history=("configmaps/",))
    assert Explorer(declared).benign.violations == ()


def members(spec: fnop.Spec, name: str, **_: Any) -> fnop.Desired:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    pod = {"containers": [{"name": "db", "image": "db"}]}
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": spec["size"],
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
            "volumeClaimTemplates": [claim],
        },
    }
    return fnop.desired(stateful_set)


@pytest.mark.parametrize("history", [(), ("persistentvolumeclaims/",)])
def test_a_stuck_controller_makes_nothing_of_a_state_in_between(
    history: tuple[str, ...],
) -> None:
    """Volumes of deleted members stay; those that never came are missing.

    It is legal only if the author declares that these depend on the history.
    """
    registry = Registry()
    owns = ["statefulsets.apps"]
    fnop.reconcile("fnopexamples", owns=owns, registry=registry)(members)
    script = (
        apply(example(size=1)),
        edit(NAME, spec={"size": 2}),
        edit(NAME, spec={"size": 1}),
    )
    explorer = Explorer(case_of(registry, *script, history=history))
    stuck = Fault(BY_NAME["F14:stuck"], Site(Place.RUN, "", "", "statefulset"))
    verdict = explorer.tried((stuck,))
    assert verdict.struck
    told = [each.message for each in verdict.violations]
    missing = "persistentvolumeclaims/data-example-1-1 is missing"
    assert told == ([] if history else [missing])


@pytest.mark.parametrize("tidies", [True, False])
def test_what_a_stuck_controller_had_yet_to_make_may_be_missing_after_a_deletion(
    tidies: bool,
) -> None:
    """A volume outlives its set; one that never came is missing, which is not a loss.

    Objects that exist, but would not exist after any life, are reported as usual.
    """
    registry = Registry()
    owns = ["statefulsets.apps"]
    fnop.reconcile("fnopexamples", owns=owns, registry=registry)(members)

    @fnop.on.create("fnopexamples", registry=registry)
    async def mark(**_: Any) -> None:
        await fnop.create(child("mark"))

    @fnop.on.delete("fnopexamples", registry=registry)
    async def unmark(**_: Any) -> None:
        if tidies or await fnop.get("pvc", name="data-example-1-0") is not None:
            await fnop.delete("configmaps", name="mark")

    script = apply(example(size=1)), delete(NAME)
    explorer = Explorer(case_of(registry, *script))
    assert explorer.benign.violations == ()
    stuck = Fault(BY_NAME["F14:stuck"], Site(Place.RUN, "", "", "statefulset"))
    told = explorer.tried((stuck,)).violations
    left = {"no_orphans", "same_end"}
    assert {each.property for each in told} == (set() if tidies else left)
    assert all("configmaps/mark is" in each.message for each in told)


def rolled_out(kind: str, *, follows: bool = True) -> Case:
    """Two pods of a set; pods of another version than 1 never become ready."""
    registry = Registry()

    @fnop.reconcile("fnopexamples", owns=[kind], registry=registry)
    def pods(spec: fnop.Spec, name: str, children: Any, **_: Any) -> fnop.Desired:
        labels, size = {"app": name}, spec["size"]
        known = [*children[kind].values()]
        if known and not follows:
            size = known[0].spec["template"]["spec"]["containers"][0]["image"][3:]
        ready = "0s" if f"{size}" == "1" else "never"
        notes = {"simulated.fnop.dev/ready-after": ready}
        pod = {
            "metadata": {"labels": labels, "annotations": notes},
            "spec": {"containers": [{"name": "db", "image": f"db:{size}"}]},
        }
        wanted = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
        if kind == "statefulsets.apps":
            wanted["serviceName"] = name
        title = {"statefulsets.apps": "StatefulSet", "deployments.apps": "Deployment"}
        return fnop.desired(
            {
                "apiVersion": "apps/v1",
                "kind": title[kind],
                "metadata": {"name": name},
                "spec": wanted,
            }
        )

    return case_of(registry, apply(example(size=1)), edit(NAME, spec={"size": 2}))


SETS = ["statefulsets.apps", "deployments.apps"]


@pytest.mark.parametrize("kind", SETS)
def test_a_rollout_that_waits_keeps_pods_of_before(kind: str) -> None:
    """It is the cluster's way, and no history of the operator's."""
    explorer = Explorer(rolled_out(kind))
    assert explorer.benign.violations == ()
    late = [e for e in explorer.singles() if e[0].kind.name == "F18:backlog"]
    assert late
    for schedule in late:
        assert explorer.tried(schedule).violations == ()


@pytest.mark.parametrize("kind", SETS)
def test_how_many_pods_live_at_once_is_for_their_set_to_say(kind: str) -> None:
    """A slow rollout creates them one by one; after a backlog, all at once."""
    explorer = Explorer(rolled_out(kind))
    for fault in ("F18:backlog", "F13:after", "F14:stuck"):
        for verdict in single(explorer, fault):
            assert verdict.violations == ()


@pytest.mark.parametrize("kind", SETS)
def test_a_set_that_is_never_rolled_out_is_history(kind: str) -> None:
    (told,) = Explorer(rolled_out(kind, follows=False)).benign.violations
    assert told.property == "history"
    assert any(each.startswith(f"after the edits {kind}/") for each in told.details)


def made_then_edited(*, twice: bool = True) -> Explorer:
    """A user who edits the child of an object; it is made again, unless it is not."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def made(body: fnop.Body, retry: int, **_: Any) -> None:
        if twice or not retry:
            await fnop.adopt(child("shared"))

    script = apply(example()), edit("configmaps/shared", data={"colour": "red"})
    return Explorer(case_of(registry, *script))


EARLY = ["F13:before", "F13:event", "F18:backlog"]


@pytest.mark.parametrize("name", EARLY)
def test_a_user_does_not_edit_what_has_not_been_made(name: str) -> None:
    explorer = made_then_edited()
    found = [each for each in explorer.singles() if each[0].kind.name == name]
    assert found
    for schedule in found:
        verdict = explorer.tried(schedule)
        assert (verdict.struck, verdict.violations) == (True, ())


def test_what_is_never_made_cannot_be_edited() -> None:
    explorer = made_then_edited(twice=False)
    verdicts = [
        explorer.tried(each)
        for each in explorer.singles()
        if each[0].kind.name == "F9:forbidden" and each[0].site.verb == "create"
    ]
    assert verdicts
    for verdict in verdicts:
        (told,) = verdict.violations
        assert told.message == "configmaps/shared is missing"
        assert "the user's action is refused: edit configmaps/shared" in told.details[1]


def test_what_an_author_expects_is_judged_at_each_rest() -> None:
    from fnop.interpreters.check.state.expectations import expect, expectations_in

    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    def nothing(logger: fnop.Logger, **_: Any) -> None:
        logger.info("it does not do what is expected")

    @expect("fnopexamples")
    def has_a_child(each: Any, world: Any) -> bool:
        return f"configmaps/{each.name}" in world

    expectations = expectations_in({"has_a_child": has_a_child})
    case = case_of(registry, apply(example()), expectations=expectations)
    (violation,) = Explorer(case).benign.violations
    assert violation.property == "matches"
    assert violation.message == "has_a_child does not hold for fnopexamples/example-1"


def test_uses_of_the_clock_are_no_pure_decisions() -> None:
    import time

    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    def timed(patch: fnop.Patch, **_: Any) -> None:
        patch.status["at"] = str(time.time())  # noqa: TID251 (as authors may do)

    explorer = Explorer(case_of(registry, apply(example())))
    (violation,) = explorer.benign.violations
    assert violation.property == "pure"
    assert "timed calls time.time" in violation.message


def charge(**_: Any) -> None:
    """A function that the operator calls; a model answers it."""


@pytest.mark.parametrize("cleans_up", [True, False])
def test_what_was_made_outside_goes_with_its_object(cleans_up: bool) -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def made(name: str, **_: Any) -> None:
        await fnop.call(charge, key=name)

    @fnop.on.delete("fnopexamples", registry=registry)
    async def unmade(name: str, **_: Any) -> None:
        if cleans_up:
            await fnop.call(charge, key=name, gone=True)

    def model(self: PutService, key: str, gone: bool = False) -> None:
        if gone:
            self.delete(key)
        else:
            self.put(key)

    model.__name__ = "model"
    Service = type("Service", (PutService,), {"model": model})
    service = Service()
    calls = {f"{charge.__module__}:charge": service.model}
    case = case_of(registry, apply(example()), delete(NAME), calls=calls)
    found = [each.property for each in Explorer(case).benign.violations]
    assert found == ([] if cleans_up else ["no_orphans"])


def service(name: str, *ports: int) -> dict[str, Any]:
    found = [{"name": "web", "port": each, "protocol": "TCP"} for each in ports]
    meta = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
    return {**meta, "spec": {"ports": found}}


def refused_when_edited(*ports: int) -> list[str]:
    """The reported refusals of an operator whose Service a user edits."""
    registry = Registry()

    @fnop.reconcile("fnopexamples", owns="services", registry=registry)
    def shop(name: str, **_: Any) -> fnop.Desired:
        return fnop.desired(service(name, *ports))

    edited = edit("services/example-1", spec=service("", 81)["spec"])
    found = Explorer(case_of(registry, apply(example()), edited)).benign.violations
    return [each.message for each in found if each.property == "no_refused_writes"]


def test_what_fnop_asks_otherwise_when_it_is_refused_is_no_fault_of_the_author() -> (
    None
):
    """Another client's ports are not valid next to ours: the list is set again."""
    assert refused_when_edited(80) == []


def test_what_fnop_can_ask_in_no_valid_way_is_refused() -> None:
    (message,) = refused_when_edited(80, 82)
    assert 'Duplicate value: "web"' in message


def record(**_: Any) -> str:
    """A function that the operator calls; a model answers it."""
    raise NotImplementedError


class Records(PostService):
    """A service whose entries are made by a token, and are updated then."""

    keeps_records = True

    def keep(self, token: str, size: int, *, id: str | None = None) -> str:
        if id is not None:
            return str(self.update(id, {"size": size})["id"])
        return str(self.create({"size": size}, token=token)["id"])


def test_what_was_updated_outside_is_as_after_one_creation() -> None:
    """The values first sent with a token are not visible anywhere."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    @fnop.on.update("fnopexamples", registry=registry)
    async def kept(uid: str, spec: Any, status: Any, patch: Any, **_: Any) -> None:
        known = status.get("id")
        made = await fnop.call(record, token=uid, size=spec["size"], id=known)
        patch.status["id"] = made

    calls = {f"{record.__module__}:record": Records("rec").keep}
    script = apply(example(size=1)), edit(NAME, spec={"size": 2})
    explorer = Explorer(case_of(registry, *script, calls=calls))
    assert explorer.benign.violations == ()


def test_what_timers_do_outside_depends_on_when_they_do_it() -> None:
    """Another moment is another slot, and no second thing."""
    registry = Registry()

    @fnop.timer("fnopexamples", interval=600, registry=registry)
    async def backup(name: str, now: Any, **_: Any) -> None:
        await fnop.call(charge, key=f"{name}-{now:%H%M}")

    class Backups(PutService):
        keeps_records = True

        def made(self, key: str) -> None:
            self.put(key)

    calls = {f"{charge.__module__}:charge": Backups().made}
    assert found(Explorer(case_of(registry, apply(example()), calls=calls))) == {}


@cache
def forgetting(
    pace: float | None, *, daemon: bool = False, names: frozenset[str] | None = None
) -> dict[str, set[str]]:
    """The violations of an operator that may forget what it has rented.

    A timer that has nothing to do with that is called every `pace` seconds.
    """
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def rented(name: str, patch: Any, **_: Any) -> None:
        patch.status["id"] = await fnop.call(record, name=name)

    @fnop.on.delete("fnopexamples", registry=registry)
    async def given_back(status: Any, **_: Any) -> None:
        if "id" in status:
            await fnop.call(charge, id=status["id"])

    def look(labels: Any, **_: Any) -> fnop.Effect | None:
        return fnop.event("Looked") if labels.get("look") else None

    async def follow(labels: Any, **_: Any) -> fnop.Effect | None:
        await fnop.sleep(600)
        return look(labels)

    if daemon:
        fnop.daemon("configmaps", registry=registry)(follow)
    elif pace is not None:
        fnop.timer("configmaps", interval=pace, registry=registry)(look)

    class Rentals(PostService):
        def rent(self, name: str) -> str:
            return str(self.create({"name": name})["id"])

        def give_back(self, id: str) -> None:
            self.delete(id)

    rentals = Rentals()
    module = record.__module__
    calls = {f"{module}:record": rentals.rent, f"{module}:charge": rentals.give_back}
    script = apply(example()), delete(NAME)
    explorer = Explorer(case_of(registry, *script, calls=calls))
    return found(explorer, names or tuple(BY_NAME))


def test_a_timer_that_leaves_what_is_outside_alone_hides_no_fault() -> None:
    expected = forgetting(None)
    assert {"no_orphans", "creates_once"} & expected.keys()
    names = frozenset().union(*expected.values())
    assert forgetting(600, names=names) == expected


def test_who_may_begin_something_at_any_time_is_no_measure() -> None:
    """A daemon may do so after an hour, and a slow timer next to a quick one, too."""
    names = frozenset(forgetting(None)["no_orphans"])
    assert "no_orphans" not in forgetting(None, daemon=True, names=names)


def annotating(
    *, timer: bool, names: Collection[str] = tuple(BY_NAME)
) -> dict[str, set[str]]:
    """The violations of an operator that goes round with itself after an edit."""
    registry = Registry()

    @fnop.on.update("fnopexamples", registry=registry)
    async def seen(retry: int, now: Any, patch: Any, **_: Any) -> None:
        patch.metadata.annotations["seen"] = now.isoformat()

    if timer:

        @fnop.timer("configmaps", interval=600, registry=registry)
        def look(**_: Any) -> None:
            """Looks, and does nothing."""

    script = apply(example(size=1)), edit(NAME, spec={"size": 2})
    return found(Explorer(case_of(registry, *script)), names)


def test_a_timer_hides_no_handler_that_writes_without_end() -> None:
    names = ("F12:slow", "F1:after", "F3:gap")
    expected = annotating(timer=False, names=names)
    assert expected["bounded_work"] == {"F12:slow"}
    assert annotating(timer=True, names=names).items() >= expected.items()


def test_the_status_that_a_user_writes_is_part_of_what_is_created_at_once() -> None:
    registry = Registry()

    @fnop.on.field("fnopexamples", field="status.ready", registry=registry)
    async def kept(name: str, new: Any, **_: Any) -> None:
        if new:
            meta = {"name": name}
            await fnop.adopt(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
            )

    script = apply(example()), edit(NAME, status={"ready": True})
    assert Explorer(case_of(registry, *script)).benign.violations == ()


def jobs_of_slots(slot: Any, *, kept: int | None, once: bool = False) -> Explorer:
    """An operator whose timer makes a Job for each slot of time, and keeps the last.

    With `once` each of its processes makes one Job more.
    """
    registry = Registry()

    def job(name: str, uid: str, image: str) -> dict[str, Any]:
        container = {"name": "c", "image": image}
        pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        meta = {"name": name, "labels": {"of": uid}}
        kind = {"apiVersion": "batch/v1", "kind": "Job"}
        return {**kind, "metadata": meta, "spec": {"template": pod}}

    @fnop.timer("fnopexamples", interval=600, registry=registry)
    async def tick(
        name: str, uid: str, spec: Any, memo: Any, now: Any, **_: Any
    ) -> fnop.Effect | None:
        image = f"image:{spec['size']}"
        if once and "begun" not in memo:
            await fnop.adopt(job(f"{name}-begun-{slot(now)}", "x", image))
            return fnop.remember(begun=True)
        await fnop.adopt(job(f"{name}-{slot(now)}", uid, image))
        if kept is None:
            return None
        found = await fnop.list("jobs.batch", labels={"of": uid})
        for each in sorted(found, key=lambda each: each["metadata"]["name"])[:-kept]:
            await fnop.delete(each, propagation="Background")
        return None

    @fnop.on.update("fnopexamples", registry=registry)
    def changed(**_: Any) -> dict[str, bool]:
        return {"changed": True}

    script = apply(example(size=1)), edit(NAME, spec={"size": 2})
    return Explorer(case_of(registry, *script))


SLOTS = {
    "number": lambda now: int(now.timestamp()) // 600,
    "seconds": lambda now: int(now.timestamp()) // 600 * 600,
    "date": lambda now: f"{now:%Y-%m-%d-%H}{now.minute // 10}0",
}


@pytest.mark.parametrize("kept", [2, None])
@pytest.mark.parametrize("slot", SLOTS.values(), ids=SLOTS)
def test_what_has_the_time_in_its_name_comes_and_goes_with_time(
    slot: Any, kept: int | None
) -> None:
    explorer = jobs_of_slots(slot, kept=kept)
    assert explorer.benign.violations == ()
    faults = ("F1:after", "F1:rest", "F12:slow", "F3:gap")
    verdicts = [e for name in faults for e in single(explorer, name)[:2]]
    assert {each.struck for each in verdicts} == {True}
    assert [each.violations for each in verdicts] == [()] * len(verdicts)


def test_what_only_a_restart_makes_is_told_though_the_time_is_in_its_name() -> None:
    explorer = jobs_of_slots(SLOTS["number"], kept=2, once=True)
    told = {each.property: each.message for each in explorer.benign.violations}
    assert "create jobs/example-1-begun-" in told["no_more_writes"]
    assert "create jobs/example-1-294" not in told["no_more_writes"]


def single(explorer: Explorer, name: str, verb: str = "") -> Any:
    """The verdicts of the single faults of one name, at sites of one verb."""
    return [
        explorer.tried(schedule)
        for schedule in explorer.singles()
        if schedule[0].kind.name == name and schedule[0].site.verb.startswith(verb)
    ]


@pytest.mark.parametrize("by_name", [True, False])
def test_what_only_has_the_name_of_what_was_seen_is_another(by_name: bool) -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def tidy(**_: Any) -> None:
        found = await fnop.get("configmaps", name="old")
        if found is not None and by_name:
            await fnop.delete("configmaps", name="old")
        elif found is not None:
            await fnop.delete(found)

    case = case_of(registry, apply(example()), given=(child("old"),))
    (verdict,) = single(Explorer(case), "F8:remade")
    assert verdict.struck
    names = {each.property for each in verdict.violations}
    assert names == ({"right_object"} if by_name else set())


def test_a_deletion_that_names_a_uid_is_of_the_object_that_has_it() -> None:
    """The handler has seen it by a watch: the reply that it had was of another one."""
    registry = Registry()

    owns = ["namespaces", "clusterroles"]

    @fnop.reconcile("fnopexamples", id="spaces", owns=owns, registry=registry)
    def spaces(name: str, **_: Any) -> fnop.Desired:
        kinds = [("Namespace", f"{name}-a"), ("ClusterRole", name)]
        groups = {"Namespace": "v1", "ClusterRole": "rbac.authorization.k8s.io/v1"}
        return fnop.desired(
            [
                {"apiVersion": groups[kind], "kind": kind, "metadata": {"name": each}}
                for kind, each in kinds
            ]
        )

    case = case_of(registry, apply(example()), delete(NAME))
    late = Site(Place.WRITE, "spaces", "apply", "namespaces/example-1-a")
    held = Site(Place.EVENT, "", "ADDED", "clusterroles/example-1")
    schedule = (
        Fault(BY_NAME["F11:zombie"], late),
        Fault(BY_NAME["F3:gap"], held),
    )
    explorer = Explorer(case)
    trial = explorer.trial_of(schedule).play()
    deleted = [
        each.uid
        for each in trial.journal.writes
        if str(each.site).startswith("`delete")
    ]
    assert explorer.verdict_of(trial, schedule).violations == ()
    assert len({*deleted}) == 3  # the late request has created one of them again


def test_who_never_looked_means_whatever_has_the_name() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def tidy(**_: Any) -> None:
        await fnop.delete("configmaps", name="old")

    case = case_of(registry, apply(example()), given=(child("old"),))
    (verdict,) = single(Explorer(case), "F8:remade")
    assert verdict.violations == ()


def test_a_handler_without_any_effect_is_idle() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def forgets(name: str, **_: Any) -> None:
        found = await fnop.get("configmaps", name=name)
        size = 0 if found is None else len(found)
        str(size)  # an assertion would be rewritten by pytest

    @fnop.on.create("fnopexamples", registry=registry)
    async def waits_for_more(spec: fnop.Spec, **_: Any) -> None:
        if spec.get("size", 0) > 100:
            await fnop.adopt(child("large"))

    @fnop.on.create("fnopexamples", registry=registry)
    async def waits_on_one_line(name: str, **_: Any) -> None:
        others = await fnop.list("fnopexamples")
        await fnop.delete("configmaps", name=name) if not others else None

    @fnop.on.create("fnopexamples", registry=registry)
    def tells(logger: fnop.Logger, **_: Any) -> None:
        logger.info("hello")

    @fnop.on.create("fnopexamples", registry=registry)
    def shows(patch: fnop.Patch, **_: Any) -> None:
        patch.status["seen"] = None

    @fnop.on.create("fnopexamples", registry=registry)
    def divides(**_: Any) -> None:
        parted()

    def parted() -> None:
        @fnop.subhandler(id="part")
        def part(**_: Any) -> int:
            return 1

    violations = Explorer(case_of(registry, apply(example()))).benign.violations
    (violation,) = violations
    assert violation.property == "idle"
    assert violation.message.endswith("forgets does nothing, in whatever state")


def test_a_timer_that_has_failed_is_not_at_rest_before_its_next_try() -> None:
    """The user goes on when it has succeeded, and not in between."""
    registry = Registry()

    @fnop.timer("fnopexamples", interval=10, registry=registry)
    async def collect(spec: fnop.Spec, **_: Any) -> None:
        found = await fnop.get("configmaps", name="old")
        if found is not None and spec["size"] == 2:
            await fnop.delete(found)

    script = (
        apply(example(size=1)),
        edit(NAME, spec={"size": 2}),
        edit(NAME, spec={"size": 3}),
    )
    explorer = Explorer(case_of(registry, *script, given=(child("old"),)))
    (verdict,) = single(explorer, "F9:forbidden", "delete")
    assert verdict.struck
    assert verdict.violations == ()


def test_the_first_restart_may_have_a_change_to_handle() -> None:
    """A write only by resuming comes with the second restart, and stays."""
    registry = Registry()

    @fnop.on.resume("fnopexamples", registry=registry)
    @fnop.on.create("fnopexamples", registry=registry)
    def known(reason: fnop.Reason, patch: fnop.Patch, **_: Any) -> None:
        patch.status["seen"] = reason

    @fnop.on.update("fnopexamples", registry=registry)
    def changed(diff: fnop.Diff, patch: fnop.Patch, **_: Any) -> None:
        patch.status["changed"] = len(diff)

    script = (
        apply(example(size=1)),
        edit(NAME, spec={"size": 2}),
        edit(NAME, spec={"size": 1}),
    )
    explorer = Explorer(case_of(registry, *script))
    singles: dict[str, list[Fault]] = {name: [] for name in BY_NAME}
    for (each,) in explorer.singles():
        singles[each.kind.name].append(each)
    late = [each for each in singles["F11:crash"] if "changed" in each.site.handler]
    schedules = [*product(singles["F1:after"][:1], late, singles["F2:action"])]
    trials = [explorer.trial_of(each).play() for each in schedules]
    verdicts = map(explorer.verdict_of, trials, schedules)
    assert [each.violations for each in verdicts] == [()] * len(trials)
    assert any(Phase.LAST in each.journal.ends for each in trials)


def test_a_handler_may_use_up_its_attempts() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", retries=3, registry=registry)
    async def announce(name: str, **_: Any) -> None:
        await fnop.call(charge, key=name)
        await fnop.adopt(child(name))

    class Service(PutService):
        def made(self, key: str) -> None:
            self.put(key)

    calls = {f"{charge.__module__}:charge": Service().made}
    explorer = Explorer(case_of(registry, apply(example()), calls=calls))
    verdicts = single(explorer, "F17:three errors")
    assert verdicts
    assert [each.violations for each in verdicts] == [()] * len(verdicts)


def test_a_life_that_nobody_saw_leaves_no_traces() -> None:
    """An operator that was down sees the end alone, as if nothing had been before."""
    registry = Registry()

    @fnop.timer("fnopexamples", interval=60, registry=registry)
    async def take(**_: Any) -> None:
        found = await fnop.get("configmaps", name="old")
        if found is not None:
            await fnop.delete(found)

    case = case_of(registry, apply(example()), delete(NAME), given=(child("old"),))
    explorer = Explorer(case)
    (verdict,) = single(explorer, "F18:backlog")
    assert verdict.violations == ()
    assert explorer.trial_of(verdict.schedule).play().journal.writes == []


def test_a_daemon_that_is_always_due_keeps_nobody_waiting() -> None:
    """If each step takes as long as its pause, others have their turn as well."""
    registry = Registry()

    @fnop.daemon("fnopexamples", registry=registry)
    async def busy(**_: Any) -> None:
        while True:
            await fnop.get("configmaps", name="any")
            await fnop.sleep(1)

    @fnop.daemon("fnopexamples", initial_delay=1, registry=registry)
    async def once(**_: Any) -> dict[str, int]:
        await fnop.sleep(1)
        return {"done": 1}

    @fnop.on.update("fnopexamples", registry=registry)
    async def changed(spec: fnop.Spec, **_: Any) -> dict[str, int]:
        return {"size": spec["size"]}

    script = (
        apply(example(size=1)),
        wait(10),
        edit(NAME, spec={"size": 2}),
        delete(NAME),
    )
    for length in (2, 3, 4):
        explorer = Explorer(case_of(registry, *script[:length]))
        (verdict,) = single(explorer, "F12:slow")
        assert verdict.violations == ()


def test_an_error_of_the_simulator_loses_one_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explorer = children()
    campaign = Campaign([explorer.case], Options(budget=3))
    tasks = campaign.tasks()[1:]

    def broken(schedule: Any) -> Any:
        raise KeyError("finalizers")

    monkeypatch.setattr(campaign.explorers[0], "tried", broken)
    report = campaign.report(campaign.run(tasks), tasks)
    assert report.unknown == 3
    assert report.broken[0] == "KeyError: 'finalizers'"
    assert any("the simulator itself fails" in line for line in as_lines(report, ()))


def test_an_upgrade_is_tried_where_there_is_former_code() -> None:
    """The former code has kept what it did in a field that this one does not know."""
    former, later = Registry(), Registry()

    @fnop.on.create("fnopexamples", registry=former)
    async def made(name: str, **_: Any) -> None:
        await fnop.adopt(child(f"{name}-old"))

    @fnop.on.create("fnopexamples", registry=later)
    async def made_(name: str, **_: Any) -> None:
        await fnop.adopt(child(f"{name}-new"))

    program = Program(former.handlers, Settings())
    case = case_of(later, apply(example()), former=program)
    result = found(Explorer(case))
    assert "F20:upgrade" in result["same_end"]


def test_an_attempt_that_fails_may_be_noted_each_time() -> None:
    """It counts against `retries=`, also after a restart."""
    registry = Registry()

    @fnop.on.create("fnopexamples", retries=60, registry=registry)
    async def make(**_: Any) -> None:
        try:
            await fnop.get("configmaps", name="given")
        except fnop.Refused as problem:
            raise fnop.TemporaryError(str(problem), delay=0.1) from None

    explorer = Explorer(case_of(registry, apply(example())))
    (refused,) = next(
        each
        for each in explorer.singles()
        if each[0].kind.name == "F22:forbidden" and each[0].site.verb == "get"
    )
    later = [refused.site._replace(nth=10 * number + 1) for number in range(4)]
    verdict = explorer.tried(tuple(replace(refused, site=each) for each in later))
    assert verdict.struck
    assert verdict.violations == ()


def test_restored_objects_are_in_a_cluster_of_the_pace_of_the_script() -> None:
    """A pod that a kubelet has bound before it is off would never go."""
    registry = Registry()

    @fnop.on.create("xs.example.com", registry=registry)
    async def made(name: str, **_: Any) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
        await fnop.create(
            {**pod, "spec": {"containers": [{"name": "c", "image": "c"}]}}
        )

    run = Scenario(Registry(), [crd(), custom(size=1)])
    there = run.get("xs", "x")
    assert there is not None
    script = (SetPace("kubelet", Off()), edit("xs/x", spec={"size": 2}))
    case = Case(Program(registry.handlers), [crd()], script, restored=[there])
    scene = prepared(case)
    changed = objects_in(Trial(scene).play().run.cluster, scene.bare)
    (found,) = (body for resource, body in changed if resource == ("", "pods"))
    assert "nodeName" not in found["spec"]
