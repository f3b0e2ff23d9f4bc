"""Kinds of well-known projects, served by an operator with handlers of all sorts.

No server refuses a request that only the operator itself causes.

Handlers fail, wait, return results and desire children; none writes the status. So each
refused request is about the operator's own state, results or conditions. `make
definitions` fetches the packages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.adapters.common.loading import resolve
from fnop.adapters.kubernetes.client import connect
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.runtime.protocol import Api, ApiRequest, ApiResponse, WatchLine
from fnop.interpreters.runtime.run import Runner
from fnop.interpreters.simulation.scenario import ApplyProblem
from tests.cluster.crd_front import in_front_of
from tests.cluster.envtest import ApiServer
from tests.conformance.made_objects import samples
from tests.conformance.packaged import PACKAGES, Package, definitions_of
from tests.conformance.servers import DEFINITIONS, install, missing, running
from tests.patience import eventually, patience
from tests.simulations import Scenario

Json = dict[str, Any]

SPACE = "definitions"
MERGE = "application/merge-patch+json"
# The number of objects to try until the schema accepts one; every second one has
# faults.
TRIED = 80


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Kubernetes 1.36 without any definition."""
    if (reason := missing("1.36")) is not None:
        pytest.skip(reason)
    with running("1.36", tmp_path_factory.mktemp("operated")) as api:
        yield api


@dataclass
class Kind:
    """A version of a kind, and what has been called for its object."""

    definition: Json
    version: Json
    called: set[str] = field(default_factory=set)

    @property
    def key(self) -> str:
        spec = self.definition["spec"]
        return f"{spec['names']['plural']}.{self.version['name']}.{spec['group']}"

    @property
    def group(self) -> str:
        return f"{self.definition['spec']['group']}/{self.version['name']}"

    @property
    def inside(self) -> str:
        is_cluster = self.definition["spec"]["scope"] == "Cluster"
        return "" if is_cluster else f"/namespaces/{SPACE}"

    @property
    def path(self) -> str:
        spec = self.definition["spec"]
        return f"/apis/{self.group}{self.inside}/{spec['names']['plural']}"

    def objects(self) -> Iterator[Json]:
        """Objects without faults, which the schema may refuse for other reasons."""
        made = samples(self.definition, self.version, TRIED)
        for number, each in enumerate(made):
            if not number % 2:
                each.pop("status", None)
                if self.inside:
                    each["metadata"]["namespace"] = SPACE
                yield each

    def declare(self, registry: Registry) -> None:
        """Declare handlers of all sorts, some of which fail."""
        kind, label, called = self.key, self.key.replace(".", "-"), self.called

        @fnop.on.create(kind, registry=registry, id=f"create-{label}")
        def create(**_: Any) -> Any:
            called.add("create")
            return {"seen": True}

        @fnop.on.create(kind, registry=registry, id=f"refuse-{label}")
        def refuse(**_: Any) -> None:
            raise fnop.PermanentError("not now")

        @fnop.on.create(kind, registry=registry, id=f"wait-{label}")
        def wait(retry: int, **_: Any) -> None:
            if not retry:
                raise fnop.TemporaryError("later", delay=0.1)

        @fnop.on.field(kind, field="metadata", registry=registry, id=f"field-{label}")
        def changed(**_: Any) -> Any:
            return "a text"

        @fnop.on.update(kind, registry=registry, id=f"update-{label}")
        def update(**_: Any) -> Any:
            called.add("update")
            return [1, 2]

        @fnop.on.resume(kind, registry=registry, id=f"resume-{label}")
        def resume(**_: Any) -> Any:
            return {"resumed": True}

        @fnop.on.delete(kind, registry=registry, id=f"delete-{label}")
        def delete(**_: Any) -> None:
            called.add("delete")

        self._declare_repeated(registry)

    def _declare_repeated(self, registry: Registry) -> None:
        kind, label, called = self.key, self.key.replace(".", "-"), self.called

        @fnop.timer(kind, interval=600, registry=registry, id=f"timer-{label}")
        def tick(**_: Any) -> Any:
            return {"at": 1}

        @fnop.reconcile(kind, registry=registry, id=f"level-{label}")
        def level(**_: Any) -> Any:
            called.add("level")
            return fnop.desired([])

        @fnop.reconcile(kind, registry=registry, id=f"failing-{label}")
        def failing(retry: int, **_: Any) -> Any:
            if retry < 2:
                raise fnop.TemporaryError("not yet", delay=0.1)
            raise fnop.PermanentError("never")


def kinds_of(package: Package, folder: Path) -> list[Kind]:
    if not (folder / package.archive).exists():
        pytest.skip(f"{package.archive} could not be fetched")
    found: dict[str, Kind] = {}  # the package may have a kind in several releases
    for definition in definitions_of(package, folder):
        for version in definition["spec"]["versions"]:
            if version["served"]:
                kind = Kind(definition, version)
                found.setdefault(definition["metadata"]["name"], kind)
    return list(found.values())


PACKAGED = pytest.mark.parametrize("package", PACKAGES, ids=lambda each: str(each.name))


@PACKAGED
def test_nothing_of_the_operators_own_is_refused(
    package: Package, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in kinds_of(package, folder):
        registry = Registry()
        kind.declare(registry)
        settings = Settings(namespaces=(SPACE,))
        run = Scenario(registry, [namespace(), kind.definition], settings=settings)
        refused = refusals(run, monkeypatch)
        made = first_taken(run, kind)
        if made is None:
            print(f"no object of {kind.key} was valid")
            continue
        refused.clear()
        run.settle(seconds=5)
        name = f"{kind.path}/{made['metadata']['name']}"
        change = {"metadata": {"annotations": {"changed": "yes"}}}
        sent = ApiRequest("PATCH", name, (), change, MERGE)
        assert run.request(sent).status == 200
        run.settle(seconds=5)
        assert run.request(ApiRequest("DELETE", name)).status == 200
        run.settle(seconds=5)
        assert run.request(ApiRequest("GET", name)).status == 404, run.lines
        assert kind.called == {"create", "level", "update", "delete"}
        assert refused == [], run.lines


def namespace() -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}


def refusals(run: Scenario, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that are refused from now on."""
    request, refused = run.request, list[str]()

    def asked(sent: ApiRequest) -> ApiResponse:
        response = request(sent)
        if response.status in (400, 422):
            refused.append(f"{sent.method} {sent.path} {sent.body} {response.body}")
        return response

    monkeypatch.setattr(run, "request", asked)
    return refused


def first_taken(run: Scenario, kind: Kind) -> Json | None:
    for each in kind.objects():
        try:
            run.apply(each)
        except ApplyProblem:
            continue
        return each
    return None


class Judged:
    """An API that keeps the requests which the server has refused."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.refused: list[str] = []

    async def send(self, request: ApiRequest) -> ApiResponse:
        response = await self._api.send(request)
        if response.status in (400, 422):
            self.refused.append(f"{request.method} {request.path} {response.body}")
        return response

    def watch(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[WatchLine, None]:
        return self._api.watch(request, silence_seconds=silence_seconds)

    async def close(self) -> None:
        await self._api.close()


@PACKAGED
def test_nothing_is_refused_by_a_real_server(
    package: Package, folder: Path, real: ApiServer, tmp_path: Path
) -> None:
    kinds, registry, paths = kinds_of(package, folder), Registry(), {}
    for kind in kinds:
        kind.declare(registry)
        install(real, (kind.definition,))
        for each in kind.objects():
            if real.raw("POST", kind.path, each)[0] == 201:
                paths[kind.key] = f"{kind.path}/{each['metadata']['name']}"
                break
    kinds = [each for each in kinds if each.key in paths]
    print(f"{package.name} {package.version}: {len(kinds)} kinds")
    assert kinds

    def all_have(*called: str) -> bool:
        return all(each.called.issuperset(called) for each in kinds)

    async def played(kubeconfig: Path) -> list[str]:
        api = Judged(await connect(kubeconfig=str(kubeconfig), context=None))
        program = Program(registry.handlers, Settings(namespaces=(SPACE,)))
        runner = Runner(program, api, seed="run", resolve=resolve, random=bytes)
        task = asyncio.create_task(runner.run())
        try:
            async with asyncio.timeout(patience(60)):
                await until(lambda: all_have("create", "level"), task)
                for path in paths.values():
                    change = {"metadata": {"annotations": {"changed": "yes"}}}
                    await asyncio.to_thread(real.raw, "PATCH", path, change, MERGE)
                await until(lambda: all_have("update"), task)
                for path in paths.values():
                    await asyncio.to_thread(real.raw, "DELETE", path)
                await until(lambda: all_are_gone(real, paths), task)
        finally:
            runner.stop("done")
            await task
            await api.close()
        return api.refused

    versions = dict.fromkeys(("apiextensions.k8s.io/v1", *(e.group for e in kinds)))
    with in_front_of(real.url, tmp_path, versions) as kubeconfig:
        assert asyncio.run(played(kubeconfig)) == []
    assert all_have("delete")
    for kind in kinds:
        path = f"{DEFINITIONS}/{kind.definition['metadata']['name']}"
        real.raw("DELETE", path)
        eventually(lambda path=path: real.raw("GET", path)[0] == 404)  # type: ignore[misc]


async def until(condition: Callable[[], bool], task: asyncio.Task[Any]) -> None:
    while not await asyncio.to_thread(condition):
        assert not task.done()
        await asyncio.sleep(0.1)


def all_are_gone(real: ApiServer, paths: dict[str, str]) -> bool:
    return all(real.raw("GET", path)[0] == 404 for path in paths.values())
