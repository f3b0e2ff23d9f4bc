"""An HTTP server that answers each request as a test says."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fnop.adapters.serving.certificates import Authority, server_context
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import ApiRequest

GET = ApiRequest("GET", "/x")


@dataclass(frozen=True)
class Seen:
    """A request as the server saw it."""

    line: str
    headers: dict[str, str]
    connection: int


Script = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    head = {"content-type": "application/json", "content-length": str(len(body))}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}\r\n" for name, value in (head | given).items()]
    return f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode() + body


@cache
def _secure() -> ssl.SSLContext:
    authority = Authority(SystemClock().now().wall)
    return server_context(authority, authority.for_server(("127.0.0.1",)))


@asynccontextmanager
async def server(
    script: Script, *, secure: bool = False
) -> AsyncIterator[tuple[str, list[Seen]]]:
    """A server that answers each request by the script; its address, and its requests.

    A `secure` one uses TLS, as kubeconfigs with credentials require.
    """
    seen: list[Seen] = []
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        number = len(connections)
        while head := await next_head(reader):
            line, *rest = head.decode().split("\r\n")
            headers = dict(each.lower().split(": ", 1) for each in rest if each)
            await reader.readexactly(int(headers.get("content-length", "0")))
            seen.append(Seen(line, headers, number))
            await script(seen[-1], writer)

    context = _secure() if secure else None
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if secure else 'http'}://127.0.0.1:{port}", seen
    finally:
        listening.close()
        for writer in connections:
            writer.transport.abort()
        await listening.wait_closed()
        await asyncio.sleep(0)


async def next_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def write_kubeconfig(
    folder: Path, url: str, user: dict[str, Any] | None = None, **context: Any
) -> str:
    """A kubeconfig of two contexts; the server's certificate is not verified."""
    cluster = {"server": url, "insecure-skip-tls-verify": True}
    config = {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", **context}},
            {"name": "there", "context": {"cluster": "c", "user": "u"}},
        ],
        "users": [{"name": "u", "user": user or {}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return str(file)
