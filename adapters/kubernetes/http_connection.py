"""One HTTP/1.1 connection to the API server: a request, then its response.

llhttp parses the responses, by httptools. A connection has one exchange at a time. Its
timer is set once and moves only when it rings, because requests are many and timeouts
are few.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

__all__ = ["Broken", "Connection", "Head"]

# The limit for the head of a response, with its informational ones before.
HEAD_BYTES = 2**16


class Broken(Exception):
    """The connection broke, or its bytes are not HTTP; the cause may be an `OSError`.

    `answered` is whether anything of the response has come.
    """

    def __init__(self, text: str, *, answered: bool) -> None:
        super().__init__(text)
        self.answered = answered


class Head(NamedTuple):
    """The parts of a response's head that callers need."""

    status: int
    content_type: str = ""
    retry_after: str | None = None
    reason: str = ""


class Connection(asyncio.Protocol):
    """A connection that sends one request at a time, and reads its response."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = HttpResponseParser(self)
        self._is_open = False
        self._alarm: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.idle_since = 0.0
        self._begin(None, has_body=True)
        self._is_complete = True  # there is no exchange yet

    def _begin(self, buffer_bytes: int | None, *, has_body: bool) -> None:
        """Prepare for the response to one request."""
        self._buffer_bytes, self._has_body = buffer_bytes, has_body
        self._heads_bytes = 0
        self._headers: dict[bytes, bytes] = {}
        self._reason = b""
        self._head: Head | None = None
        self._chunks: list[bytes] = []
        self._held = 0
        self._is_complete = self._is_reusable = self._is_paused = False
        self._problem: Exception | None = None

    # ------------------------------------------------------------------ for callers

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._is_open

    @property
    def is_streaming(self) -> bool:
        """Whether the response is taken as it comes, such as a watch."""
        return self._buffer_bytes is not None and not self._is_complete

    @property
    def is_reusable(self) -> bool:
        """Whether the exchange is over, and another request may follow."""
        return (
            self._is_reusable
            and self._is_complete
            and self._is_open
            # A server may answer before it has read the whole request.
            and not self.transport.get_write_buffer_size()
        )

    @property
    def transport(self) -> asyncio.Transport:
        """The transport below.  Raises `ConnectionResetError` if it is closed."""
        if self._transport is None:
            raise ConnectionResetError("the connection was closed")
        return self._transport

    async def exchange(
        self, request: bytes, deadline: float | None, *, has_body: bool = True
    ) -> tuple[Head, bytes]:
        """Send a request, and return the whole response.

        Raises `Broken`, and `TimeoutError` after the deadline, in the loop's time. With
        `has_body` false the response is its head, as with HEAD and CONNECT.
        """
        self._begin(None, has_body=has_body)
        self._send(request)
        while not self._is_complete:
            await self._wait(deadline)
        assert self._head is not None
        chunks = self._chunks
        return self._head, chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def begin_stream(self, request: bytes, buffer_bytes: int) -> Head:
        """Send a request, and return the head of its response.

        While more than `buffer_bytes` wait to be taken, nothing is read.
        """
        self._begin(buffer_bytes, has_body=True)
        self._send(request)
        while self._head is None:
            await self._wait(None)
        return self._head

    async def chunks(self, silence_seconds: float) -> AsyncIterator[bytes]:
        """The rest of the body as it comes.

        Raises `Broken`, and `TimeoutError` if nothing comes for
        `silence_seconds`.
        """
        while True:
            if self._chunks:
                taken, self._chunks, self._held = self._chunks, [], 0
                if self._is_paused:
                    self._is_paused = False
                    if self._is_open:
                        self.transport.resume_reading()
                yield taken[0] if len(taken) == 1 else b"".join(taken)
            elif self._is_complete:
                return
            else:
                await self._wait(self._loop.time() + silence_seconds)

    def abort(self) -> None:
        """Close the connection at once; nothing more is sent or read."""
        self._is_open = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._transport is not None:
            # Python 3.11.0 to 3.11.2: a TLS transport that was closed twice fails.
            with suppress(AttributeError):
                self._transport.abort()

    # --------------------------------------------------------------- the exchange

    def _send(self, request: bytes) -> None:
        if not self._is_open or self._transport is None:
            raise Broken("it was closed before the request", answered=False)
        self._transport.write(request)

    async def _wait(self, deadline: float | None) -> None:
        """Wait for the next part of the response; a wait that ends early aborts."""
        if self._problem is None:
            self._set_deadline(deadline)
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except BaseException:
                self.abort()
                raise
            finally:
                self._waiter = self._deadline = None
        if self._problem is not None:
            raise self._problem

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, problem: Exception) -> None:
        if not self._is_complete and self._problem is None:
            self._problem = problem
            self._wake()
        self.abort()

    def _break(self, text: str, cause: BaseException | None = None) -> None:
        problem = Broken(text, answered=self._heads_bytes > 0)
        problem.__cause__ = cause
        self._fail(problem)

    def _set_deadline(self, deadline: float | None) -> None:
        """End the wait at this time; an alarm that rings earlier is set again then."""
        self._deadline = deadline
        if deadline is None:
            return
        if self._alarm is not None:
            if self._alarm.when() <= deadline:
                return
            self._alarm.cancel()
        self._alarm = self._loop.call_at(deadline, self._ring)

    def _ring(self) -> None:
        self._alarm, deadline = None, self._deadline
        if deadline is None:
            return
        if self._loop.time() < deadline:
            self._set_deadline(deadline)
        else:
            self._fail(TimeoutError())

    # ------------------------------------------------------------ asyncio's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._is_open = True

    def data_received(self, data: bytes) -> None:
        if self._is_complete:
            self._is_reusable = False  # no request has asked for this
            self.abort()
            return
        if self._head is None:
            self._heads_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._break("it switched to another protocol")
        except HttpParserError as problem:
            self._is_reusable = False
            self._break(f"the response is not HTTP: {problem}", None)
        else:
            if self._head is None and self._heads_bytes > HEAD_BYTES:
                self._break(f"the head of the response exceeds {HEAD_BYTES} bytes")

    def eof_received(self) -> None:
        self._is_open = False  # the transport closes itself

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        self._transport = None
        if exc is None and self._head is not None and self._ends_with_connection():
            self._complete(reusable=False)
        elif not self._is_complete:
            where = "before" if self._head is None else "in the middle of"
            self._break(f"it was closed {where} the response", exc)
        self.abort()
        del self._parser  # it refers to this object, in a circle

    def _ends_with_connection(self) -> bool:
        chunked = b"chunked" in self._headers.get(b"transfer-encoding", b"").lower()
        return not chunked and b"content-length" not in self._headers

    # ------------------------------------------------------------ httptools' callbacks

    def on_message_begin(self) -> None:
        if self._is_complete:
            self._is_reusable = False  # a second response

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:  # else it is a trailer
            self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._is_complete or 100 <= status < 200:
            return
        headers = self._headers
        retry_after = headers.get(b"retry-after")
        self._head = Head(
            status,
            headers.get(b"content-type", b"").decode("latin-1"),
            None if retry_after is None else retry_after.decode("latin-1"),
            self._reason.decode("latin-1"),
        )
        if not self._has_body:
            self._complete(reusable=False)
        elif self._buffer_bytes is not None:
            self._wake()

    def on_body(self, body: bytes) -> None:
        if self._is_complete:
            return
        self._chunks.append(body)
        if self._buffer_bytes is None:
            return
        self._held += len(body)
        self._wake()
        if self._held > self._buffer_bytes and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._head is None:  # an informational response (RFC 9110: 15.2)
            self._headers, self._reason = {}, b""
        elif not self._is_complete:
            self._complete(reusable=self._parser.should_keep_alive())

    def _complete(self, *, reusable: bool) -> None:
        if not self._is_complete:
            self._is_complete, self._is_reusable = True, reusable
            self._wake()
