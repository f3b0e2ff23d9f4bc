"""The simulated cluster behind HTTP/1.1: requests in, answers, watches and logs out.

This module only translates: `fnop.interpreters.cluster` decides the meaning of
requests. httptools (the parser of Node.js) parses the bytes. With it the server is
ready in half the time, and answers up to twice as often, as with aiohttp.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from http import HTTPStatus
from math import inf
from typing import Any, Protocol
from urllib.parse import parse_qsl

import httptools
import orjson
from msgspec import Struct

from fnop.adapters.common.plain import one_line
from fnop.adapters.kubernetes.transports import cut
from fnop.adapters.serving.api_bodies import LIMIT_BYTES, PROTOBUF, body_of, too_large
from fnop.adapters.serving.api_limits import (
    CONNECTIONS_MAX,
    HEAD_BYTES,
    HELD_BYTES,
    ConnectionLimits,
    plain_refusal,
    stranger,
    timed_out,
    too_many,
)
from fnop.adapters.serving.cluster_host import (
    Following,
    Host,
    frame,
    internal_error,
    log,
)
from fnop.interpreters.cluster import StoredEvent, is_log_follow, is_watch
from fnop.interpreters.cluster.api.discovery import content_type as media_of
from fnop.interpreters.runtime.protocol import (
    JSON,
    ApiRequest,
    ApiResponse,
    MalformedBody,
    User,
)

__all__ = ["Authenticator", "Credentials", "HttpServer"]

# A larger body is not even read to its end.
PATIENCE_BYTES = 64 * 1024 * 1024
# The backlog at which the server ends a watch with a slow client.
LATE_EVENTS, LATE_BYTES = 10_000, 16 * 1024 * 1024
BUFFER_BYTES = 256 * 1024
BOOKMARK_SECONDS = 60.0  # kube-apiserver: about a minute
WATCH_SECONDS = 1800  # --min-request-timeout: up to twice as long, at random
LAST_CHUNK = b"0\r\n\r\n"
TOO_LONG = plain_refusal("431 Request Header Fields Too Large")
NO_HOST = plain_refusal("400 Bad Request: missing required Host header")
# The last part of a request that a client has sent.
IDLE, HEAD, BODY = "idle", "head", "body"


class Credentials(Struct, frozen=True):
    """The identity that a client claims, before it is authenticated."""

    authorization: str | None
    certificate: dict[str, object] | None
    impersonate: tuple[tuple[str, str], ...]


class Authenticator(Protocol):
    """Authentication of requests; None stands for a user who may do everything."""

    def __call__(self, given: Credentials) -> User | ApiResponse | None: ...


# ----------------------------------------------------------------- answers


def _stream_head(media: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
        b"Cache-Control: no-cache, private\r\nTransfer-Encoding: chunked\r\n\r\n"
    ) % media


_WATCH_HEAD, _LOG_HEAD = _stream_head(JSON.encode()), _stream_head(b"text/plain")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


_HEADS: dict[tuple[int, str], bytes] = {}


def _response_head(status: int, content_type: str) -> bytes:
    found = _HEADS.get((status, content_type))
    if found is None:
        found = _HEADS[status, content_type] = (
            f"HTTP/1.1 {status} {_phrase(status)}\r\nContent-Type: {content_type}\r\n"
            "Cache-Control: no-cache, private\r\nContent-Length: "
        ).encode("latin-1")
    return found


def encoded(
    response: ApiResponse, content_type: str = JSON, *, closing: bool = False
) -> tuple[bytes, bytes]:
    r"""An answer as the bytes of its head and of its body.

    JSON ends with a newline, as Go's encoder writes it: clients concatenate such
    bodies.

    >>> encoded(ApiResponse(200, {}))[1]
    b'{}\n'
    >>> encoded(ApiResponse(200, {"b": {"d": 1, "c": 2}, "a": 3}))[1]
    b'{"a":3,"b":{"c":2,"d":1}}\n'
    """
    body = response.body
    if isinstance(body, bytes):
        content = body
    elif isinstance(body, str):
        content = body.encode()
    elif content_type.startswith("application/yaml"):
        content = _yaml(body)
    else:
        content = orjson.dumps(
            # A real API server sorts the keys of maps and of custom objects, too.
            body,
            option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS,
        )
    head = b"%s%d\r\n" % (_response_head(response.status, content_type), len(content))
    if response.warnings:
        for text in response.warnings:
            head += f"Warning: 299 - {_quoted_string(text)}\r\n".encode()
    if response.retry_after_seconds is not None:
        head += b"Retry-After: %d\r\n" % max(1, round(response.retry_after_seconds))
    if closing:
        head += b"Connection: close\r\n"
    return head + b"\r\n", content


def _yaml(body: Any) -> bytes:
    from fnop.adapters.common.manifests import dump_yaml

    return dump_yaml([body]).encode()


def _quoted_string(text: str) -> str:
    """A warning's text as an HTTP quoted string; nothing can end the header early."""
    plain = one_line(" ".join(text.split()))
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --------------------------------------------------------------- a connection


class Incoming(Struct, frozen=True):
    """One request as it was read."""

    request: ApiRequest | ApiResponse  # or its refusal
    head_only: bool
    closing: bool


class Connection(asyncio.Protocol):
    """One client: its requests one after the other, or its watch or log."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._stream: ClientStream | None = None
        # The task that has a request reviewed by webhooks.
        self._review: asyncio.Task[ApiResponse] | None = None
        self._waiting: deque[Incoming] = deque()
        self._is_paused = False
        self._is_spoiled = False
        self._is_over = False
        self._ends = inf  # when it has been in its state for too long
        self._unread = 0  # bytes, if more than a few
        self._held = 0  # bytes of an incomplete body, or of a late stream
        self._begin()

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(BUFFER_BYTES)
        self._certificate = transport.get_extra_info("peercert") or None
        self._parser = httptools.HttpRequestParser(self)
        self._set_deadline(ConnectionLimits.head)
        self._server.joined(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        self._waiting.clear()
        if self._review is not None:
            self._review.cancel()  # its result is no longer needed
        if self._stream is not None:
            self._stream.forget()
            self._stream = None
        self._server.held -= self._held + self._unread
        self._held = self._unread = 0

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._stream is not None:
            self._is_spoiled = True  # no requests while a stream is open
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.close()  # the rest belongs to another protocol
        except httptools.HttpParserCallbackError as problem:
            # Not the client's fault: an error in the server's own callbacks.
            log.error("a request failed", exc_info=problem.__context__)
            self._give_up(b"".join(encoded(internal_error(), closing=True)))
        except httptools.HttpParserError:
            self._give_up(plain_refusal("400 Bad Request"))
        if self._phase == HEAD:  # the parser keeps incomplete input
            self._fed_bytes += len(data)
            if self._fed_bytes > HEAD_BYTES + BUFFER_BYTES:
                self._give_up(TOO_LONG)

    def pause_writing(self) -> None:
        self._is_paused = True
        self._unread = self._transport.get_write_buffer_size()
        self._server.held += self._unread
        if self._stream is None:
            self._transport.pause_reading()
            self._set_deadline(ConnectionLimits.request)

    def resume_writing(self) -> None:
        self._is_paused = False
        self._server.held -= self._unread
        self._unread = 0
        if self._stream is not None:
            self._stream.drain()
            return
        self._set_deadline(
            ConnectionLimits.idle if self._phase == IDLE else ConnectionLimits.request
        )
        self._catch_up()
        if not self._is_paused:
            self._transport.resume_reading()

    # The parser's side.

    def _begin(self) -> None:
        self._phase = IDLE
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._hosts = 0
        self._impersonate: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._head_bytes = self._fed_bytes = 0
        self._refusal: ApiResponse | None = None

    def on_message_begin(self) -> None:
        self._phase = HEAD
        self._set_deadline(ConnectionLimits.head)

    def on_url(self, part: bytes) -> None:
        self._target += part
        self._head_bytes += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._head_bytes += len(name) + len(value) + 4
        self._hosts += name == b"host"
        if name.startswith(b"impersonate-"):
            self._impersonate.append((name.decode("latin-1"), value.decode("latin-1")))
        else:
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        self._phase = BODY
        self._set_deadline(ConnectionLimits.request)
        if self._head_bytes > HEAD_BYTES:
            self._give_up(TOO_LONG)
        elif self._hosts > 1:
            self._give_up(plain_refusal("400 Bad Request"))
        elif not self._hosts and self._parser.get_http_version() == "1.1":
            self._give_up(NO_HOST)
        elif self._server.is_local:
            self._refusal = stranger(self._headers)
        if self._is_over or self._refusal is not None:
            return
        if self._headers.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, part: bytes) -> None:
        self._body_bytes += len(part)
        if self._body_bytes > PATIENCE_BYTES:
            self._give_up(b"".join(encoded(too_large(), closing=True)))
        if self._refusal is None:
            self._refusal = self._too_much()
        if self._refusal is None:
            self._body.append(part)
            self.hold(len(part))
        else:
            self._let_go()

    def _too_much(self) -> ApiResponse | None:
        if self._body_bytes > LIMIT_BYTES:
            return too_large()
        return too_many() if self._server.is_full else None

    def hold(self, count: int) -> bool:
        """Count bytes held for this client; return whether all hold too many."""
        self._held += count
        self._server.held += count
        return self._server.is_full

    def _let_go(self) -> None:
        self._body.clear()
        self.hold(-self._held)

    def on_message_complete(self) -> None:
        if self._is_over:
            return
        parser = self._parser
        method = parser.get_method().decode("latin-1")
        incoming = Incoming(
            self._request(method),
            method == "HEAD",
            not parser.should_keep_alive() or parser.should_upgrade(),
        )
        self._let_go()
        self._begin()
        self._set_deadline(ConnectionLimits.idle)
        if self._is_paused or self._waiting or self._review is not None:
            self._waiting.append(incoming)
        elif self._stream is None and not self._transport.is_closing():
            self._respond(incoming)

    def _request(self, method: str) -> ApiRequest | ApiResponse:
        headers = self._headers
        if self._refusal is not None:
            return self._refusal
        user = None
        if self._server.login is not None:
            authorization = headers.get(b"authorization")
            who = self._server.login(
                Credentials(
                    None if authorization is None else authorization.decode("latin-1"),
                    self._certificate,
                    tuple(self._impersonate),
                )
            )
            if isinstance(who, ApiResponse):
                return who
            user = who
        path, _, query = self._target.decode("latin-1").partition("?")
        content_type, body = self._content()
        return ApiRequest(
            method,
            path,
            tuple(parse_qsl(query, keep_blank_values=True)) if query else (),
            body,
            content_type,
            headers.get(b"accept", b"").decode("latin-1") or JSON,
            headers.get(b"user-agent", b"").decode("latin-1"),
            user,
        )

    def _content(self) -> tuple[str, Any]:
        """The content type of a body and its value; protobuf is converted to JSON."""
        text = self._headers.get(b"content-type", b"").decode("latin-1")
        content_type = text.partition(";")[0].strip().lower() or JSON
        if not self._body:
            return content_type, None
        body = body_of(content_type, b"".join(self._body))
        if content_type == PROTOBUF and not isinstance(body, MalformedBody):
            content_type = JSON
        return content_type, body

    # The server's side.

    def _respond(self, incoming: Incoming) -> None:
        request = incoming.request
        response: ApiResponse | asyncio.Task[ApiResponse]
        if isinstance(request, ApiResponse):
            response = request
        elif self._server.is_full:
            response = too_many()
        elif is_watch(request) or is_log_follow(request):
            sort = ClientWatch if is_watch(request) else ClientLog
            stream = sort(self, self._transport, self._server.host)
            self._stream = stream
            refused = stream.open(request)
            if refused is None:
                self._is_spoiled |= incoming.closing
                self._keep_stream(stream)
                return
            self._stream = None
            response = refused
        else:
            response = self._server.host.answer(request)
        if isinstance(response, asyncio.Task):
            self._await(incoming, response)
        else:
            self._send(incoming, response)

    def _keep_stream(self, stream: ClientStream) -> None:
        """Keep a stream until it ends."""
        if not stream.is_over:
            self._ends = inf
            return
        self._stream = None
        if self._is_spoiled:
            self._transport.close()

    def _await(self, incoming: Incoming, review: asyncio.Task[ApiResponse]) -> None:
        """Send the answer after webhooks have reviewed the request; others wait."""
        self._review = review
        self._ends = inf

        def done(task: asyncio.Task[ApiResponse]) -> None:
            self._review = None
            if task.cancelled() or self._transport.is_closing():
                return
            self._set_deadline(ConnectionLimits.idle)
            self._send(incoming, task.result())
            self._catch_up()

        review.add_done_callback(done)

    def _catch_up(self) -> None:
        """Answer the waiting requests as long as the client reads."""
        while self._waiting and not self._is_busy:
            self._respond(self._waiting.popleft())

    @property
    def _is_busy(self) -> bool:
        """Whether another request has to wait."""
        is_shown = self._stream is not None
        return self._is_paused or is_shown or self._review is not None

    def _send(self, incoming: Incoming, response: ApiResponse) -> None:
        request = incoming.request
        closing, media = incoming.closing, JSON
        if isinstance(request, ApiRequest):
            media = media_of(request, response)
        head, content = encoded(response, media, closing=closing)
        self._transport.write(head if incoming.head_only else head + content)
        if closing:
            self._transport.close()

    def _give_up(self, answer: bytes) -> None:
        """Send the last answer; a client that is still sending gets time to read it."""
        if self._is_over or self._transport.is_closing():
            return
        self._is_over = True
        self._let_go()
        self._transport.write(answer)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.pause_reading()
        loop = asyncio.get_running_loop()
        loop.call_later(ConnectionLimits.farewell, self._transport.abort)

    def turn_away(self) -> None:
        """Refuse the connection: there are too many."""
        self._give_up(b"".join(encoded(too_many(), closing=True)))

    def _set_deadline(self, seconds: float) -> None:
        """Set the deadline by which the connection has to change its state."""
        self._ends = self._server.time() + seconds

    @property
    def idle_until(self) -> float:
        """The time at which an idle connection ends; infinite while it has work."""
        is_idle = self._phase == IDLE and not self._is_paused and not self._is_over
        return self._ends if is_idle else inf

    def look(self, now: float) -> None:
        """End the connection if it has been in one state for too long."""
        if now < self._ends:
            return
        if self._is_paused:
            cut(self._transport)
        elif self._phase == HEAD:
            self._give_up(plain_refusal("400 Bad Request"))
        elif self._phase == BODY:
            self._give_up(b"".join(encoded(timed_out(), closing=True)))
        else:
            self._transport.close()

    def close(self) -> None:
        """End it in order: its stream first."""
        if self._stream is not None:
            self._stream.end()
        self._transport.close()

    def hurry(self) -> None:
        """Limit the time for the rest of a stream as for any answer."""
        self._set_deadline(ConnectionLimits.request)

    def stream_ended(self) -> None:
        """The stream is complete; the next request may come on this connection."""
        self._stream = None
        self._set_deadline(ConnectionLimits.idle)
        if self._is_spoiled:
            self._transport.close()
        elif self._is_paused:
            self._transport.pause_reading()
            self._set_deadline(ConnectionLimits.request)

    @property
    def is_paused(self) -> bool:
        """Whether the client reads more slowly than the server writes."""
        return self._is_paused


class ClientStream:
    """One client's watch or log: lines out; a client that reads too late is cut off."""

    def __init__(
        self, connection: Connection, transport: asyncio.Transport, host: Host
    ) -> None:
        self.is_over = False
        self._connection = connection
        self._transport = transport
        self._host = host
        self._late: deque[bytes] = deque()
        self._late_bytes = 0

    def open(self, request: ApiRequest) -> ApiResponse | None:
        """Begin; return the refusal if any."""
        raise NotImplementedError

    def take(self, line: bytes) -> None:
        """Show one more line, at once if the client keeps up."""
        if self._keeps_up():
            self._transport.write(line)
            return
        self._late.append(line)
        self._late_bytes += len(line)
        too_much = self._connection.hold(len(line))
        if len(self._late) > LATE_EVENTS or self._late_bytes > LATE_BYTES or too_much:
            # Like the real server's watch cache: end a watch that is too slow.
            self.forget()
            cut(self._transport)

    def _keeps_up(self) -> bool:
        return not self._late and not self._connection.is_paused

    def drain(self) -> None:
        """Write the backlog as long as the client reads it."""
        while self._late and not self._connection.is_paused:
            line = self._late.popleft()
            self._late_bytes -= len(line)
            self._connection.hold(-len(line))
            self._transport.write(line)

    def end(self) -> None:
        """End the stream in order, with everything written so far."""
        if self.is_over:
            return
        self.forget()
        self._transport.write(LAST_CHUNK)
        self._connection.stream_ended()

    def forget(self) -> None:
        """Remove a stream without a reader."""
        self.is_over = True
        self._late.clear()
        self._connection.hold(-self._late_bytes)
        self._late_bytes = 0


class ClientWatch(ClientStream):
    """One client's watch: the backlog, then each event, and bookmarks."""

    is_fresh = True

    def open(self, request: ApiRequest) -> ApiResponse | None:
        """Begin; return the refusal if any."""
        found = self._host.follow(request, self)
        if isinstance(found, ApiResponse):
            return found
        self._following: Following = found
        self._backlog: Iterator[StoredEvent] | None = found.backlog
        self._transport.write(_WATCH_HEAD)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds_of(request), self._time_is_up)
        self._reminder = loop.call_later(BOOKMARK_SECONDS, self._remind)
        self.drain()
        return None

    def take(self, line: bytes) -> None:
        """Show one more event, at once if the client keeps up."""
        self.is_fresh = False
        super().take(line)

    def _keeps_up(self) -> bool:
        return self._backlog is None and super()._keeps_up()

    def drain(self) -> None:
        """Write the backlog as long as the client reads it."""
        while self._backlog is not None and not self._connection.is_paused:
            event = next(self._backlog, None)
            if event is None:
                self._backlog = None
                break
            self.is_fresh = False
            self._transport.write(frame(event.type, event.object))
            if event.type == "ERROR":
                self.end()
                return
        super().drain()

    def _remind(self) -> None:
        line = self._host.bookmark(self._following)
        if line is not None:
            self.take(line)
            loop = asyncio.get_running_loop()
            self._reminder = loop.call_later(BOOKMARK_SECONDS, self._remind)

    def _time_is_up(self) -> None:
        line = self._host.bookmark(self._following)
        if line is not None and self._backlog is None and not self._late:
            self._transport.write(line)
        self.end()

    def forget(self) -> None:
        """Remove a watch without a reader."""
        super().forget()
        self._timer.cancel()
        self._reminder.cancel()
        self._backlog = None
        self._host.forget(self._following, self)


class ClientLog(ClientStream):
    """One client's log: all its text, even if the client reads the end of it later."""

    _is_ending = False

    def open(self, request: ApiRequest) -> ApiResponse | None:
        """Begin; return the refusal if any."""
        refused = self._host.follow_log(request, self)
        if refused is None:
            self._transport.write(_LOG_HEAD)
            self._host.show_log(self)
        return refused

    def drain(self) -> None:
        """Write the backlog, and end a log if its container has ended meanwhile."""
        super().drain()
        if self._is_ending and not self._late:
            super().end()

    def end(self) -> None:
        """End the stream when the client has read the waiting text."""
        if not self._late:
            super().end()
        elif not self._is_ending:
            self._is_ending = True
            self._host.forget_log(self)
            self._connection.hurry()

    def forget(self) -> None:
        """Remove a log without a reader."""
        super().forget()
        self._host.forget_log(self)


def seconds_of(request: ApiRequest) -> float:
    """The longest time that a watch lasts, in seconds.

    >>> seconds_of(ApiRequest("GET", "/", (("timeoutSeconds", "5"),)))
    5
    """
    text = next((v for name, v in request.query if name == "timeoutSeconds"), "")
    if text.isdecimal() and len(text) < 10 and int(text) > 0:
        return int(text)
    return WATCH_SECONDS * (1 + random.random())


# ------------------------------------------------------------------ the server


# The number of connections waiting to be accepted: watches are opened in bursts.
BACKLOG = 1024


class HttpServer:
    """Listen on one address and serve one host."""

    def __init__(self, host: Host, login: Authenticator | None = None) -> None:
        self.host = host
        self.login = login
        self.connections: set[Connection] = set()
        self.is_local = True
        self.held = 0  # bytes of incomplete bodies, and of unread answers
        self._server: asyncio.Server | None = None
        self._reminder: asyncio.TimerHandle | None = None

    async def start(
        self, address: str, port: int, tls: ssl.SSLContext | None = None
    ) -> int:
        """Listen; return the port, which the system chooses for 0. Raises OSError.

        Without TLS it answers only requests to and from loopback names.
        """
        loop = asyncio.get_running_loop()
        self.time = loop.time
        self.is_local = tls is None
        made: Callable[[], asyncio.Protocol] = lambda: Connection(self)  # noqa: E731
        self._server = await loop.create_server(
            made, address, port, ssl=tls, backlog=BACKLOG
        )
        self.host.start()
        self._look()
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """End all watches and connections, and stop listening."""
        self.host.stop()
        if self._reminder is not None:
            self._reminder.cancel()
        if self._server is None:
            return
        self._server.close()
        for connection in [*self.connections]:
            connection.close()
        await asyncio.sleep(0)  # send the last bytes

    @property
    def is_full(self) -> bool:
        """Whether clients that do not read hold the maximum of bytes."""
        return self.held > HELD_BYTES

    def joined(self, connection: Connection) -> None:
        """Take in one more connection; if there are too many, drop another one."""
        self.connections.add(connection)
        if len(self.connections) <= CONNECTIONS_MAX:
            return
        others = (each for each in self.connections if each is not connection)
        oldest = min(others, key=lambda each: each.idle_until)
        if oldest.idle_until < inf:
            self.connections.discard(oldest)
            oldest.close()
        else:
            connection.turn_away()

    def _look(self) -> None:
        now = self.time()
        for connection in [*self.connections]:
            connection.look(now)
        loop = asyncio.get_running_loop()
        self._reminder = loop.call_later(ConnectionLimits.look, self._look)
