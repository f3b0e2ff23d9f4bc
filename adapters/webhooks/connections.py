"""The connections of a webhook server: limits of number, time, and size.

aiohttp parses the requests. This module limits the cost of a client that is slow,
silent or one of very many. The server serves the others meanwhile.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from logging import getLogger
from math import inf
from socket import socket
from typing import Any, cast

import orjson
from aiohttp import web
from msgspec import Struct

from fnop.adapters.kubernetes.transports import cut
from fnop.adapters.webhooks.certificates import Complaints

__all__ = ["BACKLOG", "Connection", "Limits", "Listener", "Refusal", "refused"]

log = getLogger("fnop.webhooks")

# The phases of a connection: it waits for a request, a head, a body, an answer.
IDLE, HEAD, BODY, ANSWER = "idle", "head", "body", "answer"
_WORTH = {HEAD: 0, BODY: 1, IDLE: 2, ANSWER: 3}
# The number of connections that may wait to be accepted.
BACKLOG = 1024
# The seconds that clients have to close their side at the end.
PARTING_SECONDS = 1.0
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


class Limits(Struct, frozen=True):
    """The limits of a client's cost; times are in seconds.

    A review has two objects. etcd stores 1.5 MiB of each at most, and the API server
    writes `<`, `>` and `&` as six bytes each. All bodies being read together may have
    `held` bytes; beyond that the largest is given up. The API server closes its idle
    connections after 90 seconds: it should be the first to do so.
    """

    body: int = 20 * 1024 * 1024
    held: int = 64 * 1024 * 1024
    connections: int = 500
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
    """One client, which may not stay in one phase for too long."""

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
        self._listener.lost()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self.phase == IDLE and data:
            self.enter(HEAD)
        super().data_received(data)

    def enter(self, phase: str) -> None:
        """Enter another phase: the connection now waits for something else."""
        self.phase = phase
        self._ends = self._listener.time() + self._listener.limits.seconds(phase)

    def work(self) -> None:
        """Enter the phase of work: the request is here, and its answer is due."""
        self.phase, self._ends = ANSWER, inf

    @property
    def worth(self) -> tuple[int, float]:
        """The order in which connections are closed if there are too many.

        Those without any request come first, the oldest among them first.
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
        cut(transport)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to input that is not HTTP, in a sentence and without a log line.

        aiohttp's own answer shows a traceback of its parser.
        """
        if status >= 500:
            log.error("a review was not answered", exc_info=exc)
            return refused(500, "the webhook failed: see the log of the operator")
        return refused(status, "this is not an HTTP request: " + _first_line(message))


_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 27\r\nConnection: close\r\n\r\nno request came in its time"
)


def _first_line(message: str | None) -> str:
    return (message or "it cannot be parsed").strip().split("\n")[0][:200].rstrip(": ")


class Greeting(asyncio.Protocol):
    """A connection until its TLS handshake is done.

    asyncio reports it only then; but connections that never come so far have a cost,
    too.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.early: list[bytes] = []
        self.is_lost = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.pause_reading()  # the handshake reads
        self._listener.greet(self)

    def data_received(self, data: bytes) -> None:
        self.early.append(data)  # until the end of the handshake

    def connection_lost(self, error: BaseException | None) -> None:
        self.is_lost = True


Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener:
    """Listen on some sockets, and pass requests to a function."""

    def __init__(self, handler: Handler, limits: Limits) -> None:
        self.limits = limits
        self.connections: set[Connection] = set()
        self._too_large, self._too_many = Complaints(), Complaints()
        # The bytes of the bodies that are being read.
        self._bodies: dict[Connection, int] = {}
        # Unfinished handshakes, the oldest first.
        self._greetings: dict[Greeting, asyncio.Task[None]] = {}
        self._handler = handler
        self._servers: list[asyncio.Server] = []
        self._look: asyncio.TimerHandle | None = None
        self._left = asyncio.Event()

    async def start(
        self, sockets: Sequence[socket], context: ssl.SSLContext | None
    ) -> None:
        """Listen.  Raises `OSError`."""
        loop = asyncio.get_running_loop()
        self.time = loop.time
        self._server = web.Server(self._handle, handler_cancellation=True)
        self._context = context

        def made() -> asyncio.Protocol:
            return self._connection() if context is None else Greeting(self)

        for each in sockets:
            server = await loop.create_server(made, sock=each, backlog=BACKLOG)
            self._servers.append(server)
        self._check_timeouts()

    def greet(self, greeting: Greeting) -> None:
        """Begin the handshake of a connection."""
        task = asyncio.get_running_loop().create_task(self._greet(greeting))
        self._greetings[greeting] = task
        task.add_done_callback(lambda _: self._greetings.pop(greeting, None))
        self._make_room(None)

    async def _greet(self, greeting: Greeting) -> None:
        limits, transport = self.limits, greeting.transport
        assert self._context is not None, "without TLS there is no handshake"
        assert transport is not None, "it is made"
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                greeting,
                self._context,
                server_side=True,
                ssl_handshake_timeout=limits.handshake_seconds,
                ssl_shutdown_timeout=limits.farewell_seconds,
            )
        except OSError:  # no TLS, or not in time: TLS itself informs the client
            return
        if secured is None or greeting.is_lost:
            return
        self._greetings.pop(greeting, None)
        connection = self._connection()
        secured.set_protocol(connection)
        connection.connection_made(secured)
        for data in greeting.early:
            connection.data_received(data)

    def _forget(self, greeting: Greeting) -> asyncio.Task[None]:
        """Give up a handshake."""
        task = self._greetings.pop(greeting)
        task.cancel()
        cut(greeting.transport)
        return task

    def _connection(self) -> Connection:
        return Connection(
            self,
            self._server,
            loop=asyncio.get_running_loop(),
            access_log=None,
            auto_decompress=False,  # a few bytes could expand into very many
            keepalive_timeout=self.limits.idle_seconds,
            lingering_time=self.limits.farewell_seconds,
        )

    async def close(self) -> None:
        """Stop listening; first answer the requests in flight."""
        if self._look is not None:
            self._look.cancel()
        for server in self._servers:
            server.close()
        greetings = [self._forget(each) for each in [*self._greetings]]
        await asyncio.gather(*greetings, return_exceptions=True)
        if self._servers:
            self._server.pre_shutdown()
            await self._server.shutdown(self.limits.farewell_seconds)
        await self._wait_until_closed()

    async def _wait_until_closed(self) -> None:
        """Wait until the connections are closed, and abort those that do not close.

        TLS sends a closing alert, and waits for the client's.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(PARTING_SECONDS):
                while self.connections:
                    self._left.clear()
                    await self._left.wait()
        for each in [*self.connections]:
            each.abort()
        for _ in range(2):  # transports end in the next turns of the loop
            await asyncio.sleep(0)

    def lost(self) -> None:
        """Take note of a closed connection."""
        self._left.set()

    def joined(self, connection: Connection) -> None:
        """Take one more connection in."""
        self.connections.add(connection)
        self._make_room(connection)

    def _make_room(self, newest: Connection | None) -> None:
        """If there are too many connections, close one of those that wait."""
        if len(self._greetings) + len(self.connections) <= self.limits.connections:
            return
        if len(self._greetings) > 1:
            self._forget(next(iter(self._greetings)))
            return
        others = (each for each in self.connections if each is not newest)
        least = min(others, key=lambda each: each.worth, default=newest)
        if least is not None and least.phase == ANSWER:
            least = newest
        if least is not None:
            least.abort()

    def _check_timeouts(self) -> None:
        """Look for connections whose time is over, and repeat that after a while."""
        now = self.time()
        for each in [*self.connections]:
            each.look(now)
        limits = self.limits
        often = min(limits.head_seconds, limits.body_seconds, limits.idle_seconds) / 4
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(min(1.0, often), self._check_timeouts)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)
        try:
            return await self._handler(request)
        finally:
            connection.enter(IDLE)

    async def body_of(self, request: web.BaseRequest) -> bytes:
        """The body of a request.

        Raises `Refusal` if it is too large or too late, or the connection was closed to
        make room.
        """
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.enter(BODY)
        self._check(request.content_length or 0)
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # it does not belong to the answer
        parts, length = [], 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for part in request.content.iter_any():
                    parts.append(part)
                    length += len(part)
                    self._check(length)
                    self._bodies[connection] = length
                    self._limit_bodies(connection)
        except TimeoutError:
            raise Refusal(408, "the body of the review did not come in time") from None
        except (ConnectionError, RuntimeError):  # aiohttp: `Connection closed.`
            if connection.transport is not None:
                raise
            raise Refusal(503, "the connection was closed") from None
        finally:
            self._bodies.pop(connection, None)
            connection.work()
        return b"".join(parts)

    def _check(self, length: int) -> None:
        limits = self.limits
        if length > limits.body:
            text = f"the body has more than {limits.body} bytes"
            self._too_large.say(
                f"a review is refused, so its write may be, too: {text}"
            )
            raise Refusal(413, text)

    def _limit_bodies(self, connection: Connection) -> None:
        """Close the connection with the largest body if all bodies exceed the limit.

        Otherwise a few slow clients with large bodies would lock out all others. Raises
        `Refusal` if this connection has the largest body.
        """
        while sum(self._bodies.values()) > self.limits.held:
            largest = max(self._bodies, key=self._bodies.__getitem__)
            self._too_many.say(
                "reviews are given up, as too many large ones come at once; let only "
                "the API server reach this port"
            )
            if largest is connection:
                raise Refusal(503, "too many reviews are being read; try again later")
            del self._bodies[largest]
            largest.abort()
