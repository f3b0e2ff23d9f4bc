"""Streaming lists on real API servers: one that has them, and one that has not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.cluster import crd_server
from tests.cluster.crd_front import in_front_of
from tests.cluster.envtest import ApiServer
from tests.cluster.operated import operated
from tests.cluster.operating import serve
from tests.patience import eventually
from tests.simulations import DEFINITION, example

KIND = "fnopexamples"
# Their pages would be several.
PAGE, MANY = 3, 8
NAMES = [f"a{number}" for number in range(MANY)]


class Place(NamedTuple):
    """A namespace of a server that serves the kind, with objects in it."""

    api: ApiServer
    kubeconfig: Path
    namespace: str

    @property
    def path(self) -> str:
        return f"/apis/fnop.dev/v1/namespaces/{self.namespace}/{KIND}"

    def create(self, name: str) -> bool:
        body = example(name, size=1)
        body["metadata"]["namespace"] = self.namespace
        return self.api.raw("POST", self.path, body)[0] == 201


def filled(api: ApiServer, kubeconfig: Path, namespace: str) -> Place:
    place = Place(api, kubeconfig, namespace)
    serve(api, DEFINITION)
    eventually(lambda: place.create(NAMES[0]))
    assert all(map(place.create, NAMES[1:]))
    return place


@pytest.fixture(scope="module")
def crds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ApiServer, Path]]:
    """The server of custom kinds, of Kubernetes 1.36, and a kubeconfig for it."""
    if (reason := crd_server.missing()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("crds")
    with (
        crd_server.running(tmp_path_factory.mktemp("server")) as api,
        in_front_of(api.url, folder) as kubeconfig,
    ):
        yield api, kubeconfig


@pytest.fixture
def current(crds: tuple[ApiServer, Path], request: pytest.FixtureRequest) -> Place:
    namespace = request.node.name.replace("_", "-")[:63].strip("-")
    return filled(*crds, namespace)


@pytest.fixture
def former(apiserver: ApiServer, namespace: str) -> Place:
    """The whole server, of Kubernetes 1.20."""
    return filled(apiserver, apiserver.kubeconfig, namespace)


class Ran(NamedTuple):
    """The questions about the collection, in two lists, and the log."""

    watches: list[str]
    pages: list[ApiRequest]
    said: list[Say]

    def lines(self, level: str) -> list[str]:
        return [each.message for each in self.said if each.level == level]


def ran(place: Place, registry: Registry, done: Callable[[], bool]) -> Ran:
    """Run an operator with streaming lists until all is done."""
    requests, watches, said = list[ApiRequest](), list[ApiRequest](), list[Say]()
    spaces = (place.namespace,)
    settings = Settings(namespaces=spaces, initial_streaming=True, list_page_limit=PAGE)
    asyncio.run(
        operated(
            place.api,
            place.namespace,
            done,
            program=Program(registry.handlers, settings),
            requests=requests,
            watches=watches,
            kubeconfig=place.kubeconfig,
            on_say=said.append,
        )
    )
    asked = [dict(each.query) for each in watches if each.path == place.path]
    begun = ["begin" if "sendInitialEvents" in each else "watch" for each in asked]
    pages = [e for e in requests if e.path == place.path and e.method == "GET"]
    return Ran(begun, pages, said)


def handled(place: Place) -> Ran:
    """An operator that sees all objects, then a later one, then how one goes."""
    registry, seen, done = Registry(), list[str](), set[str]()

    @fnop.index(KIND, registry=registry)
    def index(name: str, **_: Any) -> Any:
        return {"all": name}

    @fnop.on.event(KIND, registry=registry)
    def see(type: str | None, name: str, index: Any = fnop.INDEX, **_: Any) -> None:
        seen.append(f"{type} {name}")
        if len(seen) == 1:
            assert len(index["all"]) == MANY, "it is full before"

    def is_done() -> bool:
        if len(seen) >= MANY and not done:
            done.add("changes")
            assert place.create("later")
            assert place.api.raw("DELETE", f"{place.path}/{NAMES[0]}")[0] == 200
        return {"ADDED later", f"DELETED {NAMES[0]}"} <= {*seen}

    found = ran(place, registry, is_done)
    assert sorted(seen[:MANY]) == [f"None {name}" for name in NAMES]
    assert sorted(seen[MANY:]) == ["ADDED later", f"DELETED {NAMES[0]}"]
    assert not found.lines("warning") + found.lines("error")
    return found


def test_a_server_that_has_them_is_asked_for_no_page(current: Place) -> None:
    found = handled(current)
    assert (found.watches, found.pages) == (["begin"], [])
    assert not any("does not stream" in line for line in found.lines("info"))


def test_a_server_that_has_none_is_asked_for_pages(former: Place) -> None:
    found = handled(former)
    assert found.watches == ["begin", "watch"]
    assert len(found.pages) == 3
    told = [line for line in found.lines("info") if "does not stream" in line]
    assert told == [
        "the API server does not stream the list of fnopexamples: it is listed page "
        "by page"
    ]


def test_fields_that_it_does_not_know_are_dropped_before(current: Place) -> None:
    registry, seen = Registry(), set[str]()

    @fnop.index(KIND, fields={"spec.size": "1"}, registry=registry)
    def sized(name: str, **_: Any) -> None:
        seen.add(name)

    found = ran(current, registry, lambda: len(seen) == MANY)
    assert (found.watches, found.pages) == (["begin", "begin"], [])
    assert not found.lines("warning") + found.lines("error")
    assert len([e for e in found.lines("info") if "does not select" in e]) == 1
