"""Definitions that change in the simulated cluster: scenarios of real servers, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from tests.definition_scenarios import (
    CRDS,
    GROUP,
    KIND_SCENARIOS,
    MERGE,
    OPERATOR,
    PLURAL,
    SCENARIOS,
    World,
    create,
    define,
    edit,
    path_to,
)
from tests.simulated_world import SimulatedWorld
from tests.simulations import handlers_in


class DefinitionsWorld(SimulatedWorld):
    """A cluster without the kinds; the operator begins when it is asked to."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, namespaces: tuple[str, ...] | None
    ) -> None:
        super().__init__()
        self._patch, self._settings = monkeypatch, Settings(namespaces=namespaces)

    def begin(self, *names: str, calls: str = "changes") -> None:
        self._patch.setenv("PROBES", ",".join(names))
        self._patch.setenv("CALLS", calls)
        self.run.crash(Program(handlers_in(OPERATOR), self._settings))


@pytest.mark.parametrize("namespaces", [None, ("default",), ("def*",)], ids=str)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_definitions_change(
    scenario: Callable[[World], None],
    namespaces: tuple[str, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario(DefinitionsWorld(monkeypatch, namespaces))


@pytest.mark.parametrize("scenario", KIND_SCENARIOS, ids=lambda each: each.__name__)
def test_kinds_themselves_are_told(
    scenario: Callable[[World], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario(DefinitionsWorld(monkeypatch, None))


# ------------------------------------------------------- what is known of the objects


@pytest.fixture
def registry() -> Registry:
    return Registry()


PATH = f"{CRDS}/{PLURAL}.{GROUP}"


def switch(world: SimulatedWorld, served: str) -> None:
    """Serve this version alone, without any time that passes."""
    status, found = world.raw("GET", PATH)
    assert status == 200
    versions = [
        {**each, "served": each["name"] == served} for each in found["spec"]["versions"]
    ]
    change = {"spec": {"versions": versions}}
    assert world.raw("PATCH", PATH, change, MERGE)[0] == 200


def watched(registry: Registry) -> SimulatedWorld:
    """A world with an object in two versions, and an operator that serves v1."""
    world = SimulatedWorld()
    define(world, "v1", "v1beta1")
    create(world, "v1", "a")
    world.start(registry.handlers)
    world.settle()
    return world


def test_an_object_that_goes_meanwhile_is_missed(registry: Registry) -> None:
    seen: list[tuple[str | None, str]] = []

    @fnop.on.event(PLURAL, registry=registry)
    def see(type: str | None, body: Any, **_: Any) -> None:
        seen.append((type, body["metadata"]["name"]))

    world = watched(registry)
    create(world, "v1", "b")
    world.settle()
    assert seen == [(None, "a"), ("ADDED", "b")]
    switch(world, "v1beta1")
    assert world.raw("DELETE", path_to(world, "v1beta1", "a"))[0] == 200
    world.settle()
    world.calm()
    assert sorted(seen[2:], key=str) == [("DELETED", "a"), (None, "b")]


def test_an_index_is_never_empty(registry: Registry) -> None:
    sizes: list[int] = []
    versions: list[str] = []

    @fnop.index(PLURAL, registry=registry)
    def probes(name: str, body: Any, **_: Any) -> dict[str, int]:
        versions.append(body["apiVersion"].rpartition("/")[2])
        return {name: 1}

    @fnop.on.event("configmaps", registry=registry)
    def see(probes: Any = fnop.INDEX, **_: Any) -> None:
        sizes.append(len(probes))

    world = watched(registry)
    place = "/api/v1/namespaces/default/configmaps"
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    switch(world, "v1beta1")
    for number in range(40):
        body = {**head, "metadata": {"name": f"map-{number}"}}
        assert world.raw("POST", place, body)[0] == 201
        world.run.wait(0.05)
    assert len(sizes) > 40
    assert set(sizes) == {1}
    assert versions == ["v1", "v1beta1"]


def test_a_daemon_begins_again_in_the_other_version(registry: Registry) -> None:
    ran: list[str] = []

    @fnop.daemon(PLURAL, registry=registry)
    async def run(body: Any, stopped: Any, **_: Any) -> None:
        version = body["apiVersion"].rpartition("/")[2]
        ran.append(f"{version} begins")
        while not stopped:
            await fnop.sleep(1)
            ran.append(version)

    world = watched(registry)
    world.run.wait(3)
    assert set(ran) == {"v1 begins", "v1"}
    switch(world, "v1beta1")
    world.run.wait(5)
    at = ran.index("v1beta1 begins")
    assert set(ran[at + 1 :]) == {"v1beta1"}


def test_what_could_not_be_written_is_not_done_again(registry: Registry) -> None:
    """The handler has succeeded when its version goes, and the write finds nothing."""
    done: list[str] = []
    world: SimulatedWorld

    @fnop.on.update(PLURAL, registry=registry)
    @fnop.on.create(PLURAL, registry=registry)
    def see(body: Any, **_: Any) -> None:
        done.append(body["apiVersion"].rpartition("/")[2])
        if len(done) == 2:
            switch(world, "v1beta1")

    world = watched(registry)
    edit(world, "v1", "a", 2)
    world.settle()
    world.calm()
    found = world.raw("GET", path_to(world, "v1beta1", "a"))[1]
    assert found["spec"] == {"size": 2}
    assert done == ["v1", "v1"]
    edit(world, "v1beta1", "a", 3)
    world.settle()
    assert done == ["v1", "v1", "v1beta1"]


def test_a_child_is_the_same_in_another_version(registry: Registry) -> None:
    served = ["v1"]

    @fnop.reconcile("others", owns=PLURAL, registry=registry)
    def keep(**_: Any) -> fnop.Desired:
        head = {"apiVersion": f"{GROUP}/{served[-1]}", "kind": "Probe"}
        return fnop.desired([{**head, "metadata": {"name": "kid"}}])

    world = SimulatedWorld()
    define(world, "v1", "v1beta1")
    define(world, "v1", plural="others", kind="Other")
    owner = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Other",
        "metadata": {"name": "o"},
    }
    path = f"/apis/{GROUP}/v1/namespaces/default/others"
    assert world.raw("POST", path, owner)[0] == 201
    world.start(registry.handlers)
    world.settle()
    before = world.raw("GET", path_to(world, "v1", "kid"))[1]
    served.append("v1beta1")
    switch(world, "v1beta1")
    world.run.wait(5)
    after = world.raw("GET", path_to(world, "v1beta1", "kid"))[1]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    [children] = world.run.state.objects.family.children.values()
    assert [each.resource for each in children] == [f"{PLURAL}.v1beta1.{GROUP}"]
    assert world.raw("DELETE", path_to(world, "v1beta1", "kid"))[0] == 200
    world.settle()
    anew = world.raw("GET", path_to(world, "v1beta1", "kid"))[1]
    assert anew["metadata"]["uid"] != before["metadata"]["uid"]
