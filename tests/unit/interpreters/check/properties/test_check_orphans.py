"""Remains of a deleted object: their owners, and which of them are orphans."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import fnop
from fnop import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import Action, apply, delete, edit
from fnop.interpreters.simulation.externals import External, JobService, PutService
from tests.simulations import example, manifests_of

DEFINITION = manifests_of("01-minimal")[0]
NAME = "fnopexamples/example-1"
OTHER = {**example(), "metadata": {"name": "example-2"}}


def ensure(**_: Any) -> Any: ...


def drop(**_: Any) -> Any: ...


class Cloud(PutService):
    """A bucket for each key."""

    def ensure(self, key: str) -> str:
        self.put(key)
        return f"{key}.example.com"

    def drop(self, key: str) -> None:
        self.delete(key)


def told(
    registry: Registry, *script: Action, model: External | None = None, **more: Any
) -> list[str]:
    """The benign run's violations that say something of orphans."""
    cloud: Any = model or Cloud()
    calls = {f"{__name__}:{each}": getattr(cloud, each) for each in ("ensure", "drop")}
    program = Program(registry.handlers, Settings())
    case = Case(program, (DEFINITION,), script, calls=calls, **more)
    found = Explorer(case).benign.violations
    return [each.message for each in found if each.property == "no_orphans"]


def child(name: str, host: str = "") -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": "example"}}
    data = {"host": host}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


# ------------------------------------------------------------- within the cluster

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
HOLDERS: dict[str, dict[str, Any]] = {
    "nodes": NODE,
    "leases.coordination.k8s.io": {**LEASE, "metadata": {"name": "lease"}},
    "fnopexamples": example(),
}


@pytest.mark.parametrize("kind", HOLDERS)
@pytest.mark.parametrize("given", [False, True])
def test_who_lives_has_no_orphans(kind: str, given: bool) -> None:
    """Even an object of a kind that no world shows, and one that never changes."""
    registry = Registry()

    @fnop.on.event(kind, registry=registry)
    async def tell(name: str, type: str | None, **_: Any) -> None:
        if type == "DELETED":
            await fnop.delete("configmaps", name=f"{name}-host")
            await fnop.call(drop, key="a")
        else:
            host = await fnop.call(ensure, key="a")
            await fnop.apply(child(f"{name}-host", host), force=True)

    if given:
        assert told(registry, apply(child("other")), given=(HOLDERS[kind],)) == []
    else:
        assert told(registry, apply(HOLDERS[kind])) == []


@pytest.mark.parametrize("owned_by", ["job's object", "sibling", "nobody"])
def test_what_belongs_to_an_object_of_another_kind_is_no_orphan(owned_by: str) -> None:
    """A result outlives its job: it goes with the object that the job was for."""
    registry = Registry()

    @fnop.on.event("jobs.batch", registry=registry)
    async def done(name: str, type: str | None, **_: Any) -> None:
        if type == "DELETED":
            return
        result = child(f"{name}-result")
        if owned_by != "nobody":
            kind, owner = {
                "job's object": ("fnopexamples", "example-1"),
                "sibling": ("jobs.batch", "b"),
            }[owned_by]
            found = await fnop.get(kind, name=owner)
            assert found is not None
            result = {**fnop.owned(result, found)}
        await fnop.apply(result, force=True)

    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}}}
    jobs = [{**job, "metadata": {"name": each}} for each in ("b", "a")]
    script = apply(example()), apply(jobs[0]), apply(jobs[1]), delete("jobs.batch/a")
    left = ["configmaps/a-result is left, its object is gone"]
    found = told(registry, *script)
    assert [each.partition(" after")[0] for each in found[:1]] == (
        [] if owned_by == "job's object" else left
    )


@pytest.mark.parametrize("sharing", ["reads", "applies", "has its own"])
def test_what_a_living_object_needs_as_well_is_no_orphan(sharing: str) -> None:
    """Between looking and creating a call is made; the last one takes it away."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def need(name: str, **_: Any) -> None:
        if sharing == "applies":
            host = await fnop.call(ensure, key="common")
            await fnop.apply(child("common", host), force=True)
            return
        common = f"{name}-own" if sharing == "has its own" else "common"
        found = await fnop.get("configmaps", name=common)
        host = await fnop.call(ensure, key="common")
        if found is None:
            await fnop.create(child(common, host))

    @fnop.on.delete("fnopexamples", registry=registry)
    async def leave(**_: Any) -> None:
        others = [
            each
            for each in await fnop.list("fnopexamples")
            if "deletionTimestamp" not in each["metadata"]
        ]
        if not others:
            await fnop.call(drop, key="common")
            for each in await fnop.list("configmaps", labels={"app": "example"}):
                await fnop.delete(each)

    found = told(registry, apply(example()), apply(OTHER), delete(NAME))
    own = "configmaps/example-1-own is left, its object is gone"
    assert found[-1:] == ([own] if sharing == "has its own" else [])


# ------------------------------------------------------------ outside of the cluster


def served(*, drops: bool = True, own: bool = True) -> Registry:
    """An operator that makes a bucket for each object, or one for all of them."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def make(name: str, body: fnop.Body, **_: Any) -> None:
        host = await fnop.call(ensure, key=name if own else "all")
        await fnop.apply(fnop.owned(child(f"{name}-host", host), body), force=True)

    @fnop.on.delete("fnopexamples", registry=registry)
    async def unmake(name: str, **_: Any) -> None:
        await fnop.delete("configmaps", name=f"{name}-host")
        living = [
            each
            for each in await fnop.list("fnopexamples")
            if "deletionTimestamp" not in each["metadata"]
        ]
        if drops and (own or not living):
            await fnop.call(drop, key=name if own else "all")

    return registry


def explored(registry: Registry, model: Cloud | Backups) -> Explorer:
    """An explorer of a script that deletes the object; without faults all is well."""
    calls = {f"{__name__}:ensure": model.ensure, f"{__name__}:drop": model.drop}
    script = apply(example()), delete(NAME)
    program = Program(registry.handlers, Settings())
    found = Explorer(Case(program, (DEFINITION,), script, calls=calls))
    assert found.benign.violations == ()
    return found


DELETIONS: dict[str, tuple[Action, ...]] = {
    "a child": (apply(example()), delete("configmaps/example-1-host")),
    "another kind": (
        *(apply(example()), apply(child("other"))),
        delete("configmaps/other"),
    ),
    "all": (apply(example()), delete(NAME)),
    "nothing": (apply(example()),),
}


@pytest.mark.parametrize("script", DELETIONS)
@pytest.mark.parametrize("drops", [True, False])
def test_what_was_made_outside_goes_when_its_object_does(
    script: str, drops: bool
) -> None:
    """Deletions of others leave it; all objects are deleted after each script."""
    found = told(served(drops=drops), *DELETIONS[script])
    assert (found == []) is drops
    beginning = "what was made outside is as it was before the deletion, in "
    assert all(each.startswith(beginning) for each in found)
    assert all(": let a deletion handler take it away" in each for each in found)


@pytest.mark.parametrize("swallows", [True, False])
def test_what_a_fault_lets_a_deletion_handler_leave_outside_is_an_orphan(
    swallows: bool,
) -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def make(name: str, **_: Any) -> None:
        await fnop.call(ensure, key=name)

    @fnop.on.delete("fnopexamples", registry=registry)
    async def unmake(name: str, **_: Any) -> None:
        try:
            await fnop.call(drop, key=name)
        except fnop.CallFailed as problem:
            if "LookupError" not in str(problem) and not swallows:
                raise

    explorer = explored(registry, Cloud())
    failing = [each for each in explorer.singles() if each[0].site.target == "drop"]
    found = {
        (each.property, each.message)
        for schedule in failing
        for each in explorer.tried(schedule).violations
    }
    left = "Cloud (1) example-1 is {} instead of absent"
    told = {("same_end", left), ("no_orphans", f"its object is gone: {left}")}
    assert failing
    assert found == (told if swallows else set())


@pytest.mark.parametrize("drops", [True, False])
def test_what_is_shared_outside_stays_as_long_as_somebody_has_it(drops: bool) -> None:
    registry = served(drops=drops, own=False)
    found = told(registry, apply(example()), apply(OTHER), delete(NAME))
    assert (found == []) is drops


class Mail(External):
    """Letters that were sent: they cannot be taken back."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def ensure(self, key: str) -> str:
        self.sent.append(key)
        return key

    def drop(self, key: str) -> None:
        raise AssertionError("a letter cannot be taken back")


class Letters(Mail):
    keeps_records = True


@pytest.mark.parametrize("model", [Mail, Letters])
def test_what_stays_outside_on_purpose_is_said_by_its_model(model: type[Mail]) -> None:
    script = apply(example()), delete(NAME)
    found = told(served(drops=False), *script, model=model())
    assert (found == []) is model.keeps_records
    assert all("keeps_records" in each for each in found)


class Backups(JobService):
    """Work that is done once for an object, and that is asked about."""

    def ensure(self, key: str) -> str:
        return self.submit(key, token=key)

    def drop(self, id: str) -> bool:
        return bool(self.poll(id)["state"] == "succeeded")


def test_work_outside_that_has_begun_is_let_come_to_its_end() -> None:
    """However late it began: a user who goes on early finds the same end."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def make(name: str, **_: Any) -> None:
        id = await fnop.call(ensure, key=name)
        await fnop.sleep(60)
        if await fnop.call(drop, id=id):
            await fnop.create(child(f"{name}-host"))

    @fnop.on.delete("fnopexamples", registry=registry)
    async def unmake(name: str, **_: Any) -> None:
        await fnop.delete("configmaps", name=f"{name}-host")

    explorer = explored(registry, Backups())
    early = [each for each in explorer.singles() if each[0].kind.name == "F13:after"]
    assert early
    for schedule in early:
        assert explorer.tried(schedule).violations == ()


@pytest.mark.parametrize("twice", [True, False])
def test_a_life_that_nobody_saw_leaves_no_records(twice: bool) -> None:
    """Each life has one job, if the operator sees it; another job has another cause."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def make(uid: str, retry: int, **_: Any) -> None:
        await fnop.call(ensure, key=f"{uid}-{retry}" if twice else uid)
        await fnop.adopt(child("host"))

    calls = {f"{__name__}:ensure": Backups().ensure}
    lives = apply(example()), delete(NAME)
    program = Program(registry.handlers, Settings())
    case = Case(program, (DEFINITION,), (*lives, *lives), calls=calls)
    explorer = Explorer(case)
    assert explorer.benign.violations == ()
    told = {
        each.message.partition(" ")[0]
        for schedule in explorer.singles()
        for each in explorer.tried(schedule).violations
        if each.property == "same_end" or not twice
    }
    assert told == ({"Backups"} if twice else set())


class Forgiving(Cloud):
    """A cloud that is not asked in vain to take away what is not there."""

    def drop(self, key: str) -> None:
        with suppress(LookupError):
            super().drop(key)


def test_a_crash_and_an_edit_forget_what_was_made_for_the_spec_before() -> None:
    """An operator is down while the user edits, and begins with the new spec.

    Without a crash the status names the objects to delete. Without an edit, or with a
    later one, it creates the same thing again.
    """
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    @fnop.on.update("fnopexamples", registry=registry)
    async def make(name: str, namespace: str, spec: Any, status: Any, **_: Any) -> None:
        key = f"{namespace}-{name}-{spec['duration']}"
        former = status.get("key")
        await fnop.call(ensure, key=key)
        if former and former != key:
            await fnop.call(drop, key=former)
        await fnop.patch(status={"key": key})

    @fnop.on.delete("fnopexamples", registry=registry)
    async def unmake(status: Any, **_: Any) -> None:
        await fnop.call(drop, key=status["key"])

    cloud = Forgiving()
    calls = {f"{__name__}:ensure": cloud.ensure, f"{__name__}:drop": cloud.drop}
    script = apply(example(duration="1m")), edit(NAME, spec={"duration": "2m"})
    program = Program(registry.handlers, Settings())
    explorer = Explorer(Case(program, (DEFINITION,), script, calls=calls))
    assert explorer.benign.violations == ()
    failing = {
        schedule[0].kind.name
        for schedule in explorer.singles()
        if explorer.tried(schedule).violations
    }
    assert failing == {"F3:crash"}


def test_what_a_user_does_after_the_script_is_told() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def make(name: str, **_: Any) -> None:
        await fnop.create(child(f"{name}-host"))

    program = Program(registry.handlers, Settings())
    explorer = Explorer(Case(program, (DEFINITION,), (apply(example()),)))
    (found,) = explorer.benign.violations
    assert found.property == "no_orphans"
    assert found.message.endswith("after `delete fnopexamples.fnop.dev/example-1-twin`")
    assert found.details == (
        found.message,
        "the script goes on: apply FnopExample example-1-twin; "
        "delete fnopexamples.fnop.dev/example-1-twin",
    )


@pytest.mark.parametrize("kind", ["fnopexamples", "configmaps"])
def test_a_deletion_handler_may_be_missing(kind: str) -> None:
    """An operator of a custom kind deletes the objects that it has created for its own.

    For a built-in kind, it may get events about objects that are not its concern.
    """
    registry = Registry()

    @fnop.on.create(kind, registry=registry)
    async def make(name: str, **_: Any) -> None:
        await fnop.call(ensure, key=name)

    objects = {"fnopexamples": example(), "configmaps": child("x")}
    script = apply(objects[kind]), delete(f"{kind}/{objects[kind]['metadata']['name']}")
    found = told(registry, *script)
    assert len(found) == (kind == "fnopexamples")
    assert all("let a deletion handler take it away" in each for each in found)
