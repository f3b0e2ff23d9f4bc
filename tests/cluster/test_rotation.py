"""Certificates and tokens that are rotated under an operator that runs.

The API server is a real one, behind a front that ends TLS with its own certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fnop
from fnop.adapters.common.loading import resolve
from fnop.adapters.kubernetes.client import connect
from fnop.adapters.kubernetes.transports import cut
from fnop.adapters.serving.certificates import Authority, server_context
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.run import Runner
from tests.cluster.envtest import ADMIN_TOKEN, ApiServer
from tests.patience import soon

NOW = SystemClock().now().wall


class Front:
    """Ends TLS in front of an API server; of a new authority each time it is opened."""

    def __init__(self, url: str, bundle: Path) -> None:
        self.place = urlsplit(url)
        self.bundle = bundle
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        authority = Authority(NOW)
        pair = authority.for_server(("127.0.0.1",))
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=server_context(authority, pair)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self.bundle.write_bytes(authority.certificate)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for each in self._open:
            cut(each.transport)
        await self._server.wait_closed()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        anyone = ssl._create_unverified_context()
        there = await asyncio.open_connection(
            self.place.hostname, self.place.port, ssl=anyone
        )
        self._open += [writer, there[1]]
        await asyncio.gather(_pass(reader, there[1]), _pass(there[0], writer))


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()


def kubeconfig(front: Front, folder: Path) -> str:
    server = f"https://127.0.0.1:{front.port}"
    cluster = {"server": server, "certificate-authority": str(front.bundle)}
    user = {"tokenFile": str(folder / "token")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": user}],
    }
    file = folder / "config"
    file.write_text(json.dumps(document))
    return str(file)


@asynccontextmanager
async def running(program: Program, file: str) -> AsyncIterator[None]:
    api = await connect(kubeconfig=file, context=None)
    runner = Runner(program, api, seed="run", resolve=resolve, random=bytes)
    task = asyncio.create_task(runner.run())
    try:
        yield
    finally:
        runner.stop("done")
        await task
        await api.close()


async def test_an_operator_goes_on(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    registry, handled = Registry(), list[str]()

    @fnop.on.create("configmaps", labels={"mine": "yes"}, registry=registry)
    def create(name: str, **_: Any) -> None:
        handled.append(name)

    async def make(name: str) -> None:
        meta = {"name": name, "labels": {"mine": "yes"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        status, answer = await asyncio.to_thread(apiserver.raw, "POST", path, body)
        assert status == 201, answer

    def is_handled(name: str) -> Callable[[], bool]:
        return lambda: name in handled

    token = tmp_path / "token"
    token.write_text(ADMIN_TOKEN)
    front = Front(apiserver.url, tmp_path / "ca.crt")
    await front.open()
    program = Program(registry.handlers, Settings(namespaces=(namespace,)))
    try:
        async with running(program, kubeconfig(front, tmp_path)):
            await make("before")
            await soon(is_handled("before"))
            await front.close()
            await front.open()
            await make("of-another-authority")
            await soon(is_handled("of-another-authority"), 60)
            token.write_text("unknown")
            await front.close()
            await front.open()
            await make("by-nobody")
            token.write_text(ADMIN_TOKEN)
            await soon(is_handled("by-nobody"), 60)
    finally:
        await front.close()
    assert sorted(handled) == ["before", "by-nobody", "of-another-authority"]
