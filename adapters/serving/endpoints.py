"""Small HTTP servers next to an operator, for monitoring."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from msgspec import Struct

from fnop.adapters.kubernetes.kubeconfig import ConfigurationProblem

__all__ = ["Endpoint", "HttpAnswer", "PageFunction", "endpoint_of", "serving"]


class Endpoint(Struct, frozen=True):
    """An address to listen on, and a path."""

    host: str
    port: int
    path: str

    def at(self, path: str) -> Endpoint:
        """Another path of the same server."""
        return Endpoint(self.host, self.port, path)


class HttpAnswer(Struct, frozen=True):
    """Status, body and Content-Type."""

    status: int
    body: bytes
    content_type: str = "application/json"


# A function that answers a GET, given its parameters and its headers.
PageFunction = Callable[[Mapping[str, str], Mapping[str, str]], Awaitable[HttpAnswer]]


def endpoint_of(url: str, path: str) -> Endpoint:
    """Read an address; `path` is the default path.

    Raises `ConfigurationProblem`.

    >>> endpoint_of("http://0.0.0.0:8080", "/healthz")
    Endpoint(host='0.0.0.0', port=8080, path='/healthz')
    >>> endpoint_of("http://:8080/live", "/healthz").host
    'localhost'
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "localhost", parts.port
    except ValueError as problem:
        raise ConfigurationProblem(f"{url!r} is not an address: {problem}") from None
    if parts.scheme != "http":
        raise ConfigurationProblem(
            f"{url!r} is not an http address; write http://0.0.0.0:8080{path}"
        )
    return Endpoint(host, 80 if port is None else port, parts.path.rstrip("/") or path)


@asynccontextmanager
async def serving(pages: Mapping[Endpoint, PageFunction]) -> AsyncIterator[None]:
    """Serve these pages during the block; pages of one port share a server.

    Raises `ConfigurationProblem` if it cannot listen.
    """
    by_port: dict[tuple[str, int], dict[str, PageFunction]] = {}
    for endpoint, page in pages.items():
        by_port.setdefault((endpoint.host, endpoint.port), {})[endpoint.path] = page
    servers = []
    try:
        for (host, port), found in by_port.items():
            servers.append(await _start_server(host, port, found))
        yield
    finally:
        for server in servers:
            await server.cleanup()


# Callers only use `runner.cleanup()`; its type is aiohttp.web's.
async def _start_server(host: str, port: int, pages: Mapping[str, PageFunction]):  # type: ignore[no-untyped-def]
    from aiohttp import web

    app = web.Application()
    for path, page in pages.items():
        app.router.add_get(path, _handler(page))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as problem:
        await runner.cleanup()
        why = os.strerror(problem.errno) if problem.errno else str(problem)
        raise ConfigurationProblem(f"cannot listen at {host}:{port}: {why}") from None
    return runner


def _handler(page: PageFunction):  # type: ignore[no-untyped-def]
    from aiohttp import web

    async def handle(request: web.Request) -> web.Response:
        answer = await page(request.query, request.headers)
        return web.Response(
            status=answer.status,
            body=answer.body,
            headers={"Content-Type": answer.content_type, "Cache-Control": "no-store"},
        )

    return handle
