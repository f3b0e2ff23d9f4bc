"""The simulated cluster in real time, for what only the event loop shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from fnop.adapters.common.loading import resolve
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json
from fnop.interpreters import cluster as simulated
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import (
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    WatchLine,
)
from fnop.interpreters.runtime.run import Runner
from tests.patience import patience, soon
from tests.simulations import DEFINITION, example

__all__ = ["LiveCluster", "LiveRun", "SpoiledCluster", "operating"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COLLECTION = "/apis/fnop.dev/v1/namespaces/default/fnopexamples"


class LiveCluster:
    """An `Api` in memory: its answers come at once, its watches stay open."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.cluster = simulated.empty_cluster(now=self.clock.now().wall)
        self.watches: list[tuple[ApiRequest, asyncio.Queue[WatchLine]]] = []

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object; it as it is then."""
        response = self.request(ApiRequest("POST", path, (), body))
        assert response.status == 201, response
        made: dict[str, Any] = response.body
        return made

    def define(self) -> None:
        """Serve the kind of the examples."""
        self.post(DEFINITIONS, DEFINITION)

    def request(self, request: ApiRequest) -> ApiResponse:
        now = self.clock.now().wall
        # What an operator holds is read-only; what a server gets is plain JSON.
        request = replace(request, body=thaw_json(request.body))
        self.cluster, response, events = simulated.answer(self.cluster, request, now)
        for event in events:
            for watch, lines in self.watches:
                seen = simulated.seen_by(watch, event, self.cluster.registry)
                if seen is not None:
                    lines.put_nowait(WatchLine(seen.type, seen.object))
        return response

    async def send(self, request: ApiRequest) -> ApiResponse:
        return self.request(request)

    async def watch(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[WatchLine, None]:
        found = simulated.backlog(self.cluster, request, self.clock.now().wall)
        assert not isinstance(found, ApiResponse), found
        lines: asyncio.Queue[WatchLine] = asyncio.Queue()
        watch = (request, lines)
        self.watches.append(watch)
        try:
            for event in found:
                yield WatchLine(event.type, event.object)
            while True:
                yield await lines.get()
        finally:
            self.watches.remove(watch)

    async def close(self) -> None:
        pass


class SpoiledCluster(LiveCluster):
    """One whose answers to an `Api`'s user can be spoiled; the requests are noted."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[ApiRequest] = []
        self.spoils: Callable[[ApiRequest], ApiResponse | None] = lambda request: None

    async def send(self, request: ApiRequest) -> ApiResponse:
        self.sent.append(request)
        return self.spoils(request) or self.request(request)


class LiveRun:
    """An operator on it, and its user."""

    def __init__(self, registry: Registry) -> None:
        self.api = LiveCluster()
        self.said: list[Say] = []
        self.runner = Runner(
            Program(registry.handlers),
            self.api,
            seed="0",
            resolve=resolve,
            random=bytes,
            on_say=self.said.append,
        )
        self.api.define()

    def create(
        self, manifest: dict[str, Any] | None = None, path: str = COLLECTION
    ) -> None:
        self.api.post(path, example() if manifest is None else manifest)

    def get(self) -> dict[str, Any] | None:
        found = self.api.request(ApiRequest("GET", f"{COLLECTION}/example-1"))
        return None if found.status == 404 else found.body

    def status(self) -> dict[str, Any]:
        found = self.get()
        return {} if found is None else found.get("status") or {}

    def edit(self, **change: Any) -> None:
        """A user's merge patch."""
        path = f"{COLLECTION}/example-1"
        found = self.api.request(ApiRequest("PATCH", path, (), change, MERGE_PATCH))
        assert found.status == 200, found

    def delete(self) -> None:
        response = self.api.request(ApiRequest("DELETE", f"{COLLECTION}/example-1"))
        assert response.status == 200, response

    @property
    def lines(self) -> list[str]:
        return [say.message for say in self.said]

    async def until(self, what: Callable[[], object]) -> None:
        """Wait until it is so."""
        await soon(what, every=0.002)


@asynccontextmanager
async def operating(
    registry: Registry, manifests: Iterable[dict[str, Any]] = ()
) -> AsyncIterator[LiveRun]:
    """An operator that runs for as long as the block, and is then stopped."""
    run = LiveRun(registry)
    for manifest in manifests:
        run.create(manifest)
    task = asyncio.create_task(run.runner.run())
    try:
        yield run
    finally:
        run.runner.stop("the test is over")
        async with asyncio.timeout(patience(20)):
            await task
