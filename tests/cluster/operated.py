"""An operator that runs on a real API server until all is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from fnop.adapters.common.loading import handlers_of_file, resolve
from fnop.adapters.kubernetes.client import connect
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.interpreters.runtime.protocol import Api, ApiRequest, ApiResponse, WatchLine
from fnop.interpreters.runtime.run import Runner
from tests.cluster.envtest import ApiServer
from tests.patience import patience
from tests.simulations import ROOT

KEEPER = ROOT / "tests/cluster/operators/keeper.py"


class Recording:
    """An API that keeps the requests that went through it, and apart the watches."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.requests: list[ApiRequest] = []
        self.watches: list[ApiRequest] = []

    async def send(self, request: ApiRequest) -> ApiResponse:
        self.requests.append(request)
        return await self._api.send(request)

    def watch(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[WatchLine, None]:
        self.watches.append(request)
        return self._api.watch(request, silence_seconds=silence_seconds)

    async def close(self) -> None:
        await self._api.close()


def program_for(namespace: str) -> Program:
    return Program(handlers_of_file(KEEPER), Settings(namespaces=(namespace,)))


async def operated(
    api: ApiServer,
    namespace: str,
    done: Callable[[], bool],
    *,
    program: Program | None = None,
    requests: list[ApiRequest] | None = None,
    watches: list[ApiRequest] | None = None,
    kubeconfig: Path | None = None,
    on_say: Callable[[Say], None] | None = None,
) -> list[ApiRequest]:
    """Run the operator until all is done; its requests, but for the watches."""
    config = str(kubeconfig or api.kubeconfig)
    recording = Recording(await connect(kubeconfig=config, context=None))
    if requests is not None:
        recording.requests = requests
    if watches is not None:
        recording.watches = watches
    runner = Runner(
        program or program_for(namespace),
        recording,
        seed="run",
        resolve=resolve,
        random=bytes,
        on_say=on_say,
    )
    task = asyncio.create_task(runner.run())
    try:
        async with asyncio.timeout(patience(20)):
            while not await asyncio.to_thread(done):
                assert not task.done()
                await asyncio.sleep(0.1)
    finally:
        runner.stop("done")
        await task
        await recording.close()
    return recording.requests
