"""`fnop check`: a deletion that takes away one of two things outside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import fnop
from fnop import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import Action, apply, delete, edit
from fnop.interpreters.simulation.externals import External, PostService, PutService
from tests.reconcilers import KIND, NAME
from tests.simulations import DEFINITION, example

Operator = Callable[[Registry], None]


def ensure(**_: Any) -> Any: ...


def drop(**_: Any) -> Any: ...


def note(**_: Any) -> Any: ...


class Zone(PutService):
    def ensure(self, key: str) -> None:
        self.put(key)

    def drop(self, key: str) -> None:
        with suppress(LookupError):
            self.delete(key)


class Rented(PostService):
    """Things whose ids the service makes."""

    def ensure(self, key: str) -> str:
        found = self.find(key=key)
        return str(
            found[0]["id"] if found else self.create({}, tags={"key": key})["id"]
        )

    def drop(self, key: str) -> None:
        for each in self.find(key=key):
            self.delete(each["id"])


class Cloud(External):
    """Two sorts of things in one model, and a list of what has happened."""

    def __init__(self) -> None:
        self.users: dict[str, bool] = {}
        self.buckets: list[str] = []
        self.log: list[str] = []
        self.names: dict[str, str] = {}

    def ensure(self, key: str) -> None:
        self.log.append(f"ensure {key}")
        self.names[key] = key
        if key.endswith("user"):
            self.users[key] = True
        elif key not in self.buckets:
            self.buckets.append(key)

    def drop(self, key: str) -> None:
        self.log.append(f"drop {key}")
        self.users.pop(key, None)
        if key in self.buckets:
            self.buckets.remove(key)


def found(
    operator: Operator,
    model: Any,
    *script: Action,
    other: Any = None,
    **spec: Any,
) -> list[str]:
    registry = Registry()
    operator(registry)
    calls = {
        f"{__name__}:ensure": model.ensure,
        f"{__name__}:drop": model.drop,
        f"{__name__}:note": (other or model).ensure,
    }
    if other is not None and hasattr(other, "drop"):
        calls[f"{__name__}:unused"] = other.drop
    program = Program(registry.handlers, Settings())
    script = script or (apply(example(**spec)),)
    violations = Explorer(Case(program, (DEFINITION,), script, calls=calls)).benign
    return [e.message for e in violations.violations if e.property == "no_orphans"]


def two(*dropped: str) -> Operator:
    """An operator that makes a bucket and a user, and takes away some of these."""

    def operator(registry: Registry) -> None:
        @fnop.on.create(KIND, registry=registry)
        async def make(name: str, **_: Any) -> None:
            await fnop.call(ensure, key=f"{name}-bucket")
            await fnop.call(ensure, key=f"{name}-user")

        @fnop.on.delete(KIND, registry=registry)
        async def unmake(name: str, **_: Any) -> None:
            for each in dropped:
                await fnop.call(drop, key=f"{name}-{each}")

    return operator


@pytest.mark.parametrize(
    ("model", "where"),
    [
        (Zone, "Zone (1) has example-1-user"),
        (Rented, "Rented (1) has <thing key=example-1-user #1>"),
        (Cloud, "Cloud (1) users has example-1-user"),
    ],
)
@pytest.mark.parametrize("script", [(), (apply(example()), delete(NAME))])
def test_a_thing_that_a_deletion_forgets_is_an_orphan(
    model: Callable[[], Any], where: str, script: tuple[Action, ...]
) -> None:
    (message, *_) = found(two("bucket"), model(), *script)
    assert message.startswith(f"{where}, which was made before the deletion")
    assert "let the deletion handler take away all that was made" in message
    assert found(two("bucket", "user"), model(), *script) == []


class Archive(PutService):
    """Its content stays: nothing removes it."""

    def ensure(self, key: str) -> None:
        self.put(key)


def noting(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def make(name: str, **_: Any) -> None:
        await fnop.call(ensure, key=name)
        await fnop.call(note, key=f"{name}-note")

    @fnop.on.delete(KIND, registry=registry)
    async def unmake(name: str, **_: Any) -> None:
        await fnop.call(drop, key=name)


def test_what_lies_in_another_system_is_an_orphan_if_it_can_be_taken_away() -> None:
    (message,) = found(noting, Zone(), other=Zone())
    assert message.startswith("Zone (2) has example-1-note, ")
    assert found(noting, Zone(), other=Archive()) == []


def test_what_the_user_lets_stay_is_no_orphan() -> None:
    assert found(two("bucket"), Zone(), deletionPolicy="Retain") == []


def renaming(*, keeps: bool) -> Operator:
    def operator(registry: Registry) -> None:
        @fnop.on.create(KIND, registry=registry)
        @fnop.on.update(KIND, registry=registry)
        async def make(spec: fnop.Spec, status: fnop.Status, **_: Any) -> None:
            key, former = str(spec["duration"]), status.get("key")
            await fnop.call(ensure, key=key)
            if former not in (None, key) and not keeps:
                await fnop.call(drop, key=former)
            await fnop.patch(status={"key": key})

        @fnop.on.delete(KIND, registry=registry)
        async def unmake(spec: fnop.Spec, **_: Any) -> None:
            await fnop.call(drop, key=spec["duration"])

    return operator


@pytest.mark.parametrize("keeps", [True, False])
def test_a_thing_under_a_former_name_is_an_orphan(keeps: bool) -> None:
    script = apply(example(duration="1m")), edit(NAME, spec={"duration": "2m"})
    messages = found(renaming(keeps=keeps), Zone(), *script)
    assert [each.partition(",")[0] for each in messages] == (
        ["Zone (1) has 1m"] if keeps else []
    )


# --------------------------------------------------------------- within the cluster


def placing(*, keeps: bool, where: str) -> Operator:
    """An operator whose objects nothing owns, and are named by the spec."""

    def named(name: str, key: Any) -> dict[str, Any]:
        made = {**BODIES[where], "metadata": {"name": f"{name}-{key}"}}
        if where == "configmaps":
            made["metadata"]["namespace"] = "kube-system"
        return made

    def operator(registry: Registry) -> None:
        @fnop.on.create(KIND, registry=registry)
        @fnop.on.update(KIND, registry=registry)
        async def make(
            name: str, spec: fnop.Spec, status: fnop.Status, **_: Any
        ) -> None:
            key, former = str(spec["duration"]), status.get("key")
            await fnop.apply(named(name, key), force=True)
            if former not in (None, key) and not keeps:
                await fnop.delete(named(name, former))
            await fnop.patch(status={"key": key})

        @fnop.on.delete(KIND, registry=registry)
        async def unmake(name: str, spec: fnop.Spec, **_: Any) -> None:
            await fnop.delete(named(name, spec["duration"]))

    return operator


BODIES: dict[str, dict[str, Any]] = {
    "configmaps": {"apiVersion": "v1", "kind": "ConfigMap"},
    "clusterroles": {
        **{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"},
        "rules": [],
    },
}


@pytest.mark.parametrize("where", BODIES)
@pytest.mark.parametrize("keeps", [True, False])
def test_an_object_under_a_former_name_is_an_orphan(where: str, keeps: bool) -> None:
    script = apply(example(duration="1m")), edit(NAME, spec={"duration": "2m"})
    messages = found(placing(keeps=keeps, where=where), Zone(), *script)
    assert any("example-1-1m" in each for each in messages) is keeps
    assert keeps or messages == []
