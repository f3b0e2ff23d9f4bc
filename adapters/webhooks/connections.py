"""The connections of a webhook server: how many there are, how long, how large.

aiohttp parses the requests. This bounds what a client may cost that is slow, silent or
one of very many; others are served meanwhile.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from logging import getLogger
from math import inf
from socket import socket
from typing import Any, NamedTuple

import orjson
from aiohttp import web

__all__ = ["BACKLOG", "Connection", "Limits", "Listener", "Refusal", "refused"]

log = getLogger("fnop.webhooks")

# The phases of a connection: it waits for a request, a head, a body, an answer.
IDLE, HEAD, BODY, ANSWER = "idle", "head", "body", "answer"
_WORTH = {HEAD: 0, BODY: 1, IDLE: 2, ANSWER: 3}
# The connections that may wait to be accepted.
BACKLOG = 1024
_REASONS: Mapping[int, str] = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Limits(NamedTuple):
    """The limits of what a client may cost; times are in seconds.

    A review has two objects, each of 3 MiB at most, as the API server reads no more.
    All bodies that are being read together may have `held` bytes. The API server closes
    its idle connections after 90 seconds: it should be the first to do so.
    """

    body: int = 7 * 1024 * 1024
    held: int = 64 * 1024 * 1024
    connections: int = 1_000
    handshake_seconds: float = 10.0
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 120.0
    farewell_seconds: float = 10.0

    def seconds(self, phase: str) -> float:
        """The seconds for which a connection may stay in a phase."""
        match phase:
            case "idle":
                return self.idle_seconds
            case "head":
                return self.head_seconds
            case _:  # `Listener.body_of` answers before
                return self.body_seconds + self.farewell_seconds


class Refusal(web.HTTPException):
    """An HTTP error whose body is a `Status`: the API server shows its message."""

    def __init__(self, status: int, message: str) -> None:
        self.status_code = status
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": _REASONS.get(status, "Unknown"),
            "code": status,
        }
        super().__init__(text=orjson.dumps(body).decode(), content_type=_JSON)
        self.args = (message,)


_JSON = "application/json"


def refused(status: int, message: str) -> web.Response:
    """The same as a response, after which the connection is closed."""
    found = Refusal(status, message)
    response = web.Response(status=status, body=found.body, content_type=_JSON)
    response.force_close()
    return response


class Connection(web.RequestHandler):
    """One client: it may not stay in one phase for too long."""

    def __init__(self, listener: Listener, server: web.Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._listener = listener
        self._ends = inf
        self.phase = IDLE

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.enter(HEAD)
        self._listener.joined(self)

    def connection_lost(self, error: BaseException | None) -> None:
        self._listener.connections.discard(self)
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self.phase == IDLE and data:
            self.enter(HEAD)
        super().data_received(data)

    def enter(self, phase: str) -> None:
        """The connection waits for something else from now on."""
        self.phase = phase
        self._ends = self._listener.time() + self._listener.limits.seconds(phase)

    def work(self) -> None:
        """Nothing is waited for: the request is here, and its answer is made."""
        self.phase, self._ends = ANSWER, inf

    @property
    def worth(self) -> tuple[int, float]:
        """The order in which connections are closed if there are too many.

        Those that have asked for nothing yet come first, and the oldest of them.
        """
        return _WORTH[self.phase], self._ends

    def look(self, now: float) -> None:
        """End the connection if it has been in its phase for too long."""
        if now < self._ends:
            return
        if self.phase == HEAD and self.transport is not None:
            self._ends = now + self._listener.limits.farewell_seconds
            self.phase = IDLE
            self.transport.write(_TOO_SLOW)
            self.close()
            self.transport.close()
        else:
            self.abort()

    def abort(self) -> None:
        """Close the connection without waiting for the client."""
        self._listener.connections.discard(self)
        transport = self.transport
        self.force_close()
        if transport is not None:
            transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what is no HTTP, in a sentence and without a log line.

        aiohttp's own shows a traceback of its parser.
        """
        if status >= 500:
            log.error("a review was not answered", exc_info=exc)
            return refused(500, "the webhook failed: see the log of the operator")
        return refused(status, "this is no HTTP request: " + _first_line(message))


_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 27\r\nConnection: close\r\n\r\nno request came in its time"
)


def _first_line(message: str | None) -> str:
    return (message or "it cannot be parsed").strip().split("\n")[0][:200].rstrip(": ")


Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener:
    """Listens on some sockets, and gives requests to a function."""

    def __init__(self, handler: Handler, limits: Limits) -> None:
        self.limits = limits
        self.connections: set[Connection] = set()
        self.held = 0  # bytes of bodies that are being read
        self._handler = handler
        self._servers: list[asyncio.Server] = []
        self._look: asyncio.TimerHandle | None = None

    async def start(
        self, sockets: Sequence[socket], context: ssl.SSLContext | None
    ) -> None:
        """Listen.  Raises `OSError`."""
        loop = asyncio.get_running_loop()
        self.time = loop.time
        self._server = web.Server(self._handle, handler_cancellation=True)
        limits = self.limits
        tls: dict[str, Any] = {}
        if context is not None:
            tls = {
                "ssl": context,
                "ssl_handshake_timeout": limits.handshake_seconds,
                "ssl_shutdown_timeout": limits.farewell_seconds,
            }
        for each in sockets:
            self._servers.append(
                await loop.create_server(
                    self._connection, sock=each, backlog=1024, **tls
                )
            )
        self._ring()

    def _connection(self) -> Connection:
        return Connection(
            self,
            self._server,
            loop=asyncio.get_running_loop(),
            access_log=None,
            auto_decompress=False,  # a few bytes could become very many
            keepalive_timeout=self.limits.idle_seconds,
            lingering_time=self.limits.farewell_seconds,
        )

    async def close(self) -> None:
        """Listen no more; requests that are under way are answered before."""
        if self._look is not None:
            self._look.cancel()
        for server in self._servers:
            server.close()
        if self._servers:
            self._server.pre_shutdown()
            await self._server.shutdown(self.limits.farewell_seconds)

    def joined(self, connection: Connection) -> None:
        """One more connection; if there are too many, one that waits is closed."""
        self.connections.add(connection)
        if len(self.connections) > self.limits.connections:
            others = (each for each in self.connections if each is not connection)
            least = min(others, key=lambda each: each.worth, default=connection)
            (connection if least.phase == ANSWER else least).abort()

    def _ring(self) -> None:
        """Look for connections whose time is over, and again after a while."""
        now = self.time()
        for each in [*self.connections]:
            each.look(now)
        limits = self.limits
        often = min(limits.head_seconds, limits.body_seconds, limits.idle_seconds) / 4
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(min(1.0, often), self._ring)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)
        try:
            return await self._handler(request)
        finally:
            connection.enter(IDLE)

    async def body_of(self, request: web.BaseRequest) -> bytes:
        """The body of a request.  Raises `Refusal` if it is too large or too late."""
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.enter(BODY)
        self._check(request.content_length or 0)
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # it is no part of the answer
        parts, length = [], 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for part in request.content.iter_any():
                    parts.append(part)
                    length += len(part)
                    self.held += len(part)
                    self._check(length)
        except TimeoutError:
            raise Refusal(408, "the body of the review did not come in time") from None
        finally:
            self.held -= length
            connection.work()
        return b"".join(parts)

    def _check(self, length: int) -> None:
        limits = self.limits
        if length > limits.body:
            raise Refusal(
                413,
                f"the body has more than {limits.body} bytes: no review of an object "
                "that the API server stores is so large",
            )
        if self.held > limits.held:
            raise Refusal(503, "too many reviews are being read; try again later")
