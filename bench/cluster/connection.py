"""One keep-alive connection with minimal cost.

The load and the servers share two cores: a heavier client would measure itself.
"""

import asyncio
import ssl
from dataclasses import dataclass
from typing import TypeVar, cast
from urllib.parse import urlsplit

import orjson

from bench.client import Json

HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Target:
    """The address of a server, with the credentials of its admin."""

    url: str
    tls: ssl.SSLContext | None
    token: str | None = None

    async def open(self) -> "Connection":
        """Connect; raises OSError."""
        return await self.connect(Connection)

    async def connect(self, kind: "type[C]") -> "C":
        """Connect, with a connection of this kind; raises OSError."""
        where = urlsplit(self.url)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: kind(where.netloc, self.token),
            where.hostname or "127.0.0.1",
            where.port or 443,
            ssl=self.tls,
        )
        return connection


class Connection(asyncio.Protocol):
    """Sends one request at a time; the answer's body is bytes."""

    def __init__(self, host: str, token: str | None) -> None:
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = f"Host: {host}\r\nAccept: application/json\r\n{authorization}"
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports share no class with asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError("closed"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._answer is None or self._answer.done():
            return
        parsed = parse(self._buffer)
        if parsed is not None:
            self._buffer.clear()
            self._answer.set_result(parsed)

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = "application/json",
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body of the answer."""
        head = (
            f"{method} {path} HTTP/1.1\r\n{self._head}Content-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(head.encode() + body)
        return await self._answer

    async def json(self, method: str, path: str, body: Json | None = None) -> Json:
        """The parsed answer; raises RuntimeError if it is not a success."""
        data = b"" if body is None else orjson.dumps(body)
        status, content = await self.send(method, path, data)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {content[:300]!r}")
        found: Json = orjson.loads(content)
        return found

    def close(self) -> None:
        self._transport.close()


C = TypeVar("C", bound=Connection)


def parse(buffer: bytes | bytearray) -> tuple[int, bytes] | None:
    """Status and body of an HTTP answer, or None while it is not complete.

    >>> parse(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    (200, b'ok')
    >>> parse(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
    ...       b"2\\r\\nok\\r\\n0\\r\\n\\r\\n")
    (200, b'ok')
    >>> parse(b"HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\nok") is None
    True
    """
    end = buffer.find(HEAD_END)
    if end < 0:
        return None
    head = bytes(buffer[:end]).lower()
    status, start = int(head[9:12]), end + len(HEAD_END)
    if b"transfer-encoding: chunked" in head:
        if not buffer.endswith(b"0\r\n\r\n"):
            return None
        body = unchunked(bytes(buffer[start:]))
        return None if body is None else (status, body)
    length = head.find(b"content-length:")
    size = int(head[length + 15 :].partition(b"\r\n")[0]) if length >= 0 else 0
    return (status, bytes(buffer[start:])) if len(buffer) - start >= size else None


def unchunked(raw: bytes) -> bytes | None:
    """The content of a chunked body, or None if its end is missing.

    >>> unchunked(b"2\\r\\nok\\r\\n0\\r\\n\\r\\n")
    b'ok'
    """
    parts: list[bytes] = []
    place = 0
    while (line := raw.find(b"\r\n", place)) >= 0:
        size = int(raw[place:line].partition(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(raw[line + 2 : line + 2 + size])
        place = line + 2 + size + 2
    return None
