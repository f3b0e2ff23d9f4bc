"""A true status: of this generation, of this spec, and of the present objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fnop
from bench.bugs.crds import crd, custom
from fnop import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import Action, apply, edit

XS = "xs.example.com"
CREATED = (apply(custom(size=1, mode="a")),)
EDITED = (*CREATED, edit("xs/x", spec={"size": 2}))

Show = Callable[..., Any]


def told(
    registry: Registry, *script: Action, faults: tuple[str, ...] = ()
) -> list[str]:
    """The violations of the run without faults, and of runs with certain faults."""
    explorer = Explorer(Case(Program(registry.handlers), [crd()], script))
    verdicts = [explorer.benign]
    verdicts += [
        explorer.tried(each)
        for each in explorer.singles()
        if each[0].kind.name in faults
    ]
    found = [
        f"{each.property}: {sentence}"
        for verdict in verdicts
        for each in explorer.confirmed(verdict)
        for sentence in each.details or (each.message,)
    ]
    return [*dict.fromkeys(found)]


def shown(show: Show, *roles: Any) -> Registry:
    """An operator that says something of its object; a ConfigMap follows the spec."""
    registry = Registry()
    for role in roles:
        role(XS, id="show", registry=registry)(show)

    async def follow(name: str, spec: fnop.Spec, body: fnop.Body, **_: Any) -> None:
        data = {key: str(value) for key, value in spec.items()}
        meta = {"name": name}
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        await fnop.apply(fnop.owned({**child, "data": data}, body))

    for role in (fnop.on.create, fnop.on.update):
        role(XS, id="follow", registry=registry)(follow)
    return registry


BOTH = fnop.on.create, fnop.on.update

# ------------------------------------------------------------------------- generations


def observe(body: fnop.Body, **_: Any) -> fnop.Effect:
    generation = body["metadata"]["generation"]
    return fnop.patch(status={"observedGeneration": generation})


def condition(body: fnop.Body, **_: Any) -> fnop.Effect:
    generation = body["metadata"]["generation"]
    ready = {"type": "Synced", "status": "True", "observedGeneration": generation}
    return fnop.patch(status={"conditions": [ready]})


@pytest.mark.parametrize("show", [observe, condition])
def test_a_generation_that_is_never_observed_is_told(show: Show) -> None:
    found = told(shown(show, fnop.on.create), *EDITED)
    assert any("1 at rest, and is of generation 2" in each for each in found)
    assert told(shown(show, *BOTH), *EDITED) == []


def test_an_edit_that_the_operator_refuses_for_good_leaves_all_as_it_was() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="follow", registry=registry)
    @fnop.on.update(XS, id="follow", registry=registry)
    def follow(body: fnop.Body, **given: Any) -> list[fnop.Effect]:
        size, name = body["spec"]["size"], body["metadata"]["name"]
        if size > 1:
            raise fnop.PermanentError("it does not grow")
        meta, data = {"name": name}, {"size": str(size)}
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        return [
            fnop.apply(fnop.owned({**child, "data": data}, body)),
            observe(body, **given),
        ]

    assert told(registry, *EDITED) == []


# ----------------------------------------------------------------------- an edit ago


def plain(spec: fnop.Spec, **_: Any) -> fnop.Effect:
    return fnop.patch(status={"size": spec["size"]})


def listed(spec: fnop.Spec, **_: Any) -> fnop.Effect:
    members = [f"m-{number}" for number in range(spec["size"])]
    return fnop.patch(status={"members": members})


def message(spec: fnop.Spec, **_: Any) -> fnop.Effect:
    text = f"{spec['size']} members"
    synced = {"type": "Synced", "status": "True", "reason": "Done", "message": text}
    return fnop.patch(status={"conditions": [synced]})


def once(spec: fnop.Spec, status: fnop.Status, **_: Any) -> fnop.Effect | None:
    if "host" in status:
        return None
    return fnop.patch(status={"host": f"h-{spec['size']}"})


@pytest.mark.parametrize("show", [plain, message, listed])
def test_a_status_of_before_the_edit_is_told(show: Show) -> None:
    found = told(shown(show, fnop.on.create), *EDITED)
    assert found
    assert all("history: after the edits xs.example.com/x status." in e for e in found)
    assert told(shown(show, *BOTH), *EDITED) == []


def test_a_status_that_is_written_once_is_told() -> None:
    (found,) = told(shown(once, *BOTH), *EDITED)
    assert found == (
        'history: after the edits xs.example.com/x status.host is "h-1" instead of '
        '"h-2", as after one creation'
    )


def test_what_is_left_of_what_is_no_more_is_told() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="show", registry=registry)
    @fnop.on.update(XS, id="show", registry=registry)
    def show(spec: fnop.Spec, **_: Any) -> fnop.Effect | None:
        if spec["size"] > 1:
            return None  # it forgets to take the address back
        return fnop.patch(status={"address": "x.example.com"})

    (found,) = told(registry, *EDITED)
    assert 'status.address is "x.example.com" instead of absent' in found


def counted(status: fnop.Status, **_: Any) -> fnop.Effect:
    return fnop.patch(status={"writes": status.get("writes", 0) + 1})


def logged(spec: fnop.Spec, status: fnop.Status, **_: Any) -> fnop.Effect:
    known = status.get("sizes", [])
    return fnop.patch(status={"sizes": [*known, spec["size"]]})


def first(spec: fnop.Spec, status: fnop.Status, **_: Any) -> fnop.Effect:
    size = status.get("initialSize", spec["size"])
    return fnop.patch(status={"initialSize": size})


def previous(spec: fnop.Spec, status: fnop.Status, **_: Any) -> fnop.Effect:
    before = status.get("size")
    return fnop.patch(status={"size": spec["size"], "before": before or "nothing"})


def timed(now: Any, **_: Any) -> fnop.Effect:
    return fnop.patch(status={"updated": now.isoformat()})


def result(spec: fnop.Spec, **_: Any) -> dict[str, Any]:
    return {"size": spec["size"]}


@pytest.mark.parametrize("show", [counted, logged, first, previous, timed])
def test_what_tells_of_the_past_is_no_defect(show: Show) -> None:
    assert told(shown(show, *BOTH), *EDITED) == []


def test_the_result_of_a_creation_is_about_the_past() -> None:
    assert told(shown(result, fnop.on.create), *EDITED) == []


# ------------------------------------------------------------------------ what is there


def deployment(name: str, size: int) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "main", "image": "nginx"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": size,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": containers},
            },
        },
    }


def served(say: Callable[[int, int], Any], *, looks: bool) -> Registry:
    """An operator of a Deployment with a status that `say` makes of two numbers.

    They are the numbers of wanted and of ready pods. It `looks` for the ready ones, or
    supposes that all are.
    """
    registry = Registry()

    @fnop.reconcile(XS, owns=["deployments.apps"], id="serve", registry=registry)
    def serve(
        name: str, spec: fnop.Spec, children: fnop.Children, **_: Any
    ) -> fnop.Desired:
        size = spec["size"]
        known = children["deployments.apps"].get(name)
        ready = 0 if known is None else known.status.get("readyReplicas", 0)
        status = say(size, ready if looks else size)
        return fnop.desired(deployment(name, size), status=status)

    return registry


CLAIMS: dict[str, Callable[[int, int], Any]] = {
    "a number": lambda size, ready: {"readyReplicas": ready},
    "a phase": lambda size, ready: {
        "phase": "Ready" if ready >= size else "Progressing"
    },
    "a flag": lambda size, ready: {"ready": ready >= size},
    "a condition": lambda size, ready: {
        "conditions": [{"type": "Available", "status": str(ready >= size)}]
    },
}
STUCK = "F14:stuck", "F14:slow"


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_is_said_of_pods_that_are_not_ready_is_told(claim: str) -> None:
    found = told(served(CLAIMS[claim], looks=False), *CREATED, faults=STUCK)
    assert any("is stuck, and 0 of its pods are" in each for each in found)
    assert told(served(CLAIMS[claim], looks=True), *CREATED, faults=STUCK) == []


def test_a_number_that_is_read_too_early_is_told() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="serve", registry=registry)
    async def serve(name: str, body: fnop.Body, **_: Any) -> fnop.Effect:
        made = await fnop.apply(fnop.owned(deployment(name, 2), body))
        ready = made.get("status", {}).get("readyReplicas", 0)
        return fnop.patch(status={"readyReplicas": ready})

    assert told(registry, *CREATED) == [
        "honest_status: xs.example.com/x says readyReplicas 0 at rest, and the "
        "Deployment x says 2"
    ]


def test_what_a_status_says_of_others_is_no_claim() -> None:
    def say(size: int, ready: int) -> dict[str, Any]:
        ports = {"availablePorts": 97, "configState": "Ready"}
        return {"phase": "Applied", "unavailable": size - ready, **ports}

    assert told(served(say, looks=True), *CREATED, faults=STUCK) == []


def job(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox"}]
    template = {"spec": {"containers": containers, "restartPolicy": "Never"}}
    meta, spec = {"name": name}, {"template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def ran(*, looks: bool) -> Registry:
    registry = Registry()

    @fnop.reconcile(XS, owns=["jobs.batch"], id="run", registry=registry)
    def run(name: str, children: fnop.Children, **_: Any) -> fnop.Desired:
        known = children["jobs.batch"].get(name)
        done = bool(known and known.status.get("succeeded"))
        phase = "Succeeded" if done or not looks else "Started"
        return fnop.desired(job(name), status={"phase": phase})

    return registry


def test_a_job_that_has_not_ended_has_not_succeeded() -> None:
    found = told(ran(looks=False), *CREATED, faults=STUCK)
    assert any('phase="Succeeded" while the controller job' in each for each in found)
    assert told(ran(looks=True), *CREATED, faults=STUCK) == []
