"""Bugs that a restart of the operator repairs: they last until then."""

from __future__ import annotations

from typing import Any

import fnop
from bench.bugs.crds import crd, custom
from fnop import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import Action, apply, edit
from fnop.interpreters.simulation.externals import JobService, PutService

XS = "xs.example.com"
EDITED = apply(custom(size=1)), edit("xs/x", spec={"size": 2})


def config(name: str, **data: Any) -> dict[str, Any]:
    texts = {key: str(value) for key, value in data.items()}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": texts}


def explorer(registry: Registry, *script: Action, **more: Any) -> Explorer:
    return Explorer(Case(Program(registry.handlers), [crd()], script, **more))


def told(registry: Registry, *script: Action, **more: Any) -> list[str]:
    """The violations of the benign run, confirmed."""
    found = explorer(registry, *script, **more)
    return [
        f"{each.property}: {sentence}"
        for each in found.confirmed(found.benign)
        for sentence in each.details or (each.message,)
        if each.property not in ("idle", "heeds")
    ]


# ----------------------------------------------------------------------------- history


def sized(*roles: Any) -> Registry:
    """An operator that writes the size when handlers of these roles are called."""
    registry = Registry()

    async def show(name: str, spec: fnop.Spec, body: fnop.Body, **_: Any) -> None:
        await fnop.apply(fnop.owned(config(name, size=spec["size"]), body))

    for role in roles:
        role(XS, id="show", registry=registry)(show)
    # There is a handler of changes in any case: the default scripts edit something.
    fnop.on.update(XS, id="changed", registry=registry)(noted)
    fnop.on.create(XS, id="changed", registry=registry)(noted)
    return registry


def noted(spec: fnop.Spec, **_: Any) -> fnop.Effect:
    return fnop.patch(status={"size": spec["size"]})


def test_an_edit_that_only_a_restart_takes_in_is_told() -> None:
    found = told(sized(fnop.on.create, fnop.on.resume), *EDITED)
    assert (
        'history: after the edits configmaps/x data.size is "1" instead of "2", as '
        "after one creation, until the operator restarts"
    ) in found


def test_an_edit_that_is_taken_in_at_once_is_not() -> None:
    roles = fnop.on.create, fnop.on.resume, fnop.on.update
    assert told(sized(*roles), *EDITED) == []


# ------------------------------------------------------------------- the first restart


def test_a_child_that_only_the_restart_makes_is_told() -> None:
    found = told(sized(fnop.on.resume), apply(custom(size=1)))
    assert found == [
        "no_more_writes: configmaps/x is missing until the operator restarts; let "
        "handlers of creations and changes do what resuming does"
    ]


def keep(**_: Any) -> Any: ...


class Site(PutService):
    """A page for each key."""

    def keep(self, key: str) -> None:
        self.put(key)


class Visits(JobService):
    """A book of visits, which is never taken back."""

    def keep(self, key: str) -> None:
        self.submit(key)


def published(*roles: Any) -> Registry:
    registry = Registry()

    async def publish(name: str, **_: Any) -> None:
        await fnop.call(keep, key=name)

    for role in roles:
        role(XS, id="publish", registry=registry)(publish)
    return registry


def called(registry: Registry, model: Site | Visits) -> list[str]:
    calls = {f"{__name__}:keep": model.keep}
    return [
        each
        for each in told(registry, apply(custom(size=1)), calls=calls)
        if "restart" in each
    ]


def test_what_only_the_restart_makes_outside_is_told() -> None:
    (found,) = called(published(fnop.on.resume), Site())
    assert "Site (1) x is absent instead of {} until the operator restarts" in found
    assert called(published(fnop.on.create, fnop.on.resume), Site()) == []


def test_a_record_of_the_restart_is_about_the_past() -> None:
    assert called(published(fnop.on.resume), Visits()) == []


def counting(*, on_child: bool) -> Registry:
    """An operator that notes its restarts on the object, or on a child."""
    registry = Registry()

    @fnop.on.resume(XS, id="resumed", registry=registry)
    async def resumed(name: str, **_: Any) -> fnop.Effect:
        if on_child:
            where = fnop.target("configmaps", name=name)
            return fnop.patch(where, data={"resumed": "yes"})
        return fnop.patch(status={"seen": "resumed"})

    @fnop.on.create(XS, id="made", registry=registry)
    async def made(name: str, body: fnop.Body, **_: Any) -> None:
        await fnop.apply(fnop.owned(config(name), body))

    return registry


def test_what_an_object_says_of_restarts_is_no_defect() -> None:
    assert told(counting(on_child=False), apply(custom(size=1))) == []
    (found,) = told(counting(on_child=True), apply(custom(size=1)))
    assert "configmaps/x data is absent instead of" in found


# ---------------------------------------------------------------------------- same_end


def pair(*, looks: bool) -> Registry:
    """An operator of two children: one that `looks` makes both if the first is away.

    Resuming makes up for the second one, but not before the creation is handled.
    """
    registry = Registry()

    @fnop.on.create(XS, id="both", registry=registry)
    async def both(name: str, body: fnop.Body, **_: Any) -> None:
        if looks and await fnop.get("configmaps", name=f"{name}-a") is not None:
            return
        await fnop.apply(fnop.owned(config(f"{name}-a"), body))
        await fnop.apply(fnop.owned(config(f"{name}-b"), body))

    @fnop.on.resume(XS, id="again", registry=registry)
    async def again(name: str, body: fnop.Body, **_: Any) -> None:
        await fnop.apply(fnop.owned(config(f"{name}-b"), body))

    return registry


def crashed(registry: Registry) -> set[str]:
    """The consequences of all crashes, confirmed."""
    found = explorer(registry, apply(custom(size=1)))
    assert not found.benign.violations
    crashes = [each for each in found.singles() if each[0].kind.code == "F1"]
    return {
        str(violation)
        for schedule in crashes
        for violation in found.confirmed(found.tried(schedule))
    }


def test_what_a_crash_leaves_until_the_next_restart_is_told() -> None:
    (found,) = crashed(pair(looks=True))
    assert "configmaps/x-b is missing until the operator restarts" in found
    assert crashed(pair(looks=False)) == set()
