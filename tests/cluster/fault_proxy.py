"""A proxy between an operator and the API server that fails to order.

The operator speaks plain HTTP to it, on 127.0.0.1; it speaks to the real server as the
admin.  What goes wrong is a value: a `Fault` says which requests it strikes, and its
action what becomes of them.  Faults are armed and disarmed while the operator runs, and
every request is written down.

An action that has silenced a connection holds on to it for good, also when the fault is
over: finding that out is up to the client.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, MutableSequence, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from fnop.adapters.kubernetes.transports import cut
from tests.cluster.envtest import ApiServer, admin_tls

__all__ = [
    "Action",
    "Answer",
    "Cut",
    "Drip",
    "Dropped",
    "Edited",
    "Exchange",
    "Fault",
    "FaultProxy",
    "HangUp",
    "Late",
    "Record",
    "Reset",
    "Say",
    "Shredded",
    "Silence",
    "Upstream",
    "error_line",
    "proxying",
    "refusal",
]

# Said by a hop about its own connection; each side has its own.
_HOP_BY_HOP = frozenset(
    (
        *("connection", "keep-alive", "transfer-encoding", "content-length", "host"),
        *("content-encoding", "te", "upgrade"),
    )
)
_HEAD_BYTES_MAX = 2**16


# ------------------------------------------------------------------- the upstream


class Upstream:
    """The real API server, asked as the admin."""

    def __init__(self, api: ApiServer) -> None:
        self.url = api.url
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=admin_tls(api.pki)),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
        )

    async def open(
        self, method: str, target: str, body: bytes, headers: dict[str, str]
    ) -> aiohttp.ClientResponse:
        """Send a request; its response, the body yet to be read."""
        return await self._session.request(
            method,
            URL(f"{self.url}{target}", encoded=True),
            data=body or None,
            headers=headers,
            allow_redirects=False,
        )

    async def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> tuple[int, Any]:
        """One request past every fault, for those who play the user."""
        data = b"" if body is None else json.dumps(body).encode()
        headers = {
            "Content-Type": content_type,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        async with await self.open(method, target, data, headers) as response:
            text = await response.read()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text.decode()

    async def close(self) -> None:
        await self._session.close()


# ---------------------------------------------------------------- what is written down


@dataclass
class Record:
    """A request as it came; `fault` names the action that struck it.

    `at` is in monotonic seconds.  `answered` is the HTTP status of the API server, None
    if it was not asked or has not answered.
    """

    at: float
    method: str
    target: str
    body: bytes
    fault: str | None = None
    answered: int | None = None

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> str:
        return urlsplit(self.target).query

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.query


# --------------------------------------------------------------------- what goes wrong


class Action(Protocol):
    """The effect on a request, or on an open watch."""

    async def __call__(self, exchange: Exchange) -> None: ...


@dataclass(frozen=True)
class Fault:
    """Strikes requests that fit: all but the first `skip`, at most `times`.

    `path` and `query` are searched as regular expressions; `watch` None fits both.
    """

    action: Action
    method: str = ""
    path: str = ""
    query: str = ""
    watch: bool | None = None
    skip: int = 0
    times: int | None = None

    def fits(self, record: Record) -> bool:
        return (
            self.method in ("", record.method)
            and self.watch in (None, record.is_watch)
            and re.search(self.path, record.path) is not None
            and re.search(self.query, record.query) is not None
        )


class Exchange:
    """One request and the connection for its answer."""

    def __init__(
        self,
        proxy: FaultProxy,
        record: Record,
        headers: dict[str, str],
        writer: asyncio.StreamWriter,
    ) -> None:
        self.record = record
        self._proxy = proxy
        self._headers = headers
        self._writer = writer
        self.is_begun = False
        self.is_over = False

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[aiohttp.ClientResponse]:
        """Let the API server have the request; its response."""
        record = self.record
        response = await self._proxy.upstream.open(
            record.method, record.target, record.body, self._headers
        )
        record.answered = response.status
        try:
            yield response
        finally:
            response.close()

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """Return its whole body, which listeners to the API server get, too."""
        body = await response.read()
        self._proxy.heard(self.record, body)
        return body

    async def answer(
        self, status: int, headers: dict[str, str], body: bytes, sent: int | None = None
    ) -> None:
        """Send the whole answer, or only this number of its promised bytes."""
        self._head(status, {**headers, "Content-Length": str(len(body))})
        self._writer.write(body[:sent])
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        """A piece of a body of unknown length; the first one begins it."""
        if not self.is_begun:
            headers = {"Content-Type": "application/json"}
            self._head(200, {**headers, "Transfer-Encoding": "chunked"})
        if data:
            self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        """The end of such a body, as it should be."""
        await self.chunk(b"")
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def hang_up(self) -> None:
        """Close the connection politely, wherever it is."""
        self.is_over = True
        with suppress(ConnectionError):
            await self._writer.drain()
        self._writer.close()

    def reset(self) -> None:
        """Close the connection with a reset."""
        self.is_over = True
        connection: socket.socket = self._writer.get_extra_info("socket")
        linger = struct.pack("ii", 1, 0)
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        cut(self._writer.transport)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.is_begun = True
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        head = f"HTTP/1.1 {status} Status\r\n{''.join(lines)}\r\n"
        self._writer.write(head.encode("latin-1"))


def _passed_on(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {
        name: value
        for name, value in response.headers.items()
        if name.lower() not in _HOP_BY_HOP
    }


@dataclass(frozen=True)
class Answer:
    """An answer that is not the API server's, which is only asked if it `applies`."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    applies: bool = False

    async def __call__(self, exchange: Exchange) -> None:
        if self.applies:
            async with exchange.asked() as response:
                await exchange.read(response)
        await exchange.answer(self.status, dict(self.headers), self.body)


@dataclass(frozen=True)
class Reset:
    """The connection breaks before an answer, or in the middle of one."""

    async def __call__(self, exchange: Exchange) -> None:
        exchange.reset()


@dataclass(frozen=True)
class HangUp:
    """The connection is closed before an answer, or in the middle of one."""

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.hang_up()


@dataclass(frozen=True)
class Silence:
    """Nothing comes, and nothing ends."""

    async def __call__(self, exchange: Exchange) -> None:
        await asyncio.Event().wait()


@dataclass(frozen=True)
class Dropped:
    """The API server acts on the request; then something happens to its answer."""

    then: Action

    async def __call__(self, exchange: Exchange) -> None:
        async with exchange.asked() as response:
            await exchange.read(response)
        await self.then(exchange)


@dataclass(frozen=True)
class Late:
    """The API server acts on the request; its answer comes later."""

    seconds: float

    async def __call__(self, exchange: Exchange) -> None:
        async with exchange.asked() as response:
            body = await exchange.read(response)
            await asyncio.sleep(self.seconds)
            await exchange.answer(response.status, _passed_on(response), body)


@dataclass(frozen=True)
class Cut:
    """The answer breaks off behind a part of its body."""

    part: float = 0.5
    then: Action = HangUp()

    async def __call__(self, exchange: Exchange) -> None:
        async with exchange.asked() as response:
            body = await exchange.read(response)
            sent = int(len(body) * self.part)
            await exchange.answer(response.status, _passed_on(response), body, sent)
        await self.then(exchange)


@dataclass(frozen=True)
class Say:
    """A stream of these pieces, or these pieces next, and then an end, or another."""

    pieces: tuple[bytes, ...] = ()
    then: Action | None = None

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.chunk(b"")
        for piece in self.pieces:
            await exchange.chunk(piece)
        await (self.then(exchange) if self.then else exchange.end())


@dataclass(frozen=True)
class Edited:
    """The API server's own answer; the lines of a watch as `edit` gives them.

    Behind `lines` lines, if there is such a number, `then` is what happens.
    """

    edit: Callable[[bytes], Sequence[bytes]] = lambda line: (line,)
    lines: int | None = None
    then: Action = HangUp()

    async def __call__(self, exchange: Exchange) -> None:
        async with exchange.asked() as response:
            if not exchange.record.is_watch or response.status != 200:
                body = await exchange.read(response)
                await exchange.answer(response.status, _passed_on(response), body)
                return
            await exchange.chunk(b"")
            seen = 0
            async for line in _lines(response):
                for piece in self.edit(line):
                    await exchange.chunk(piece)
                seen += 1
                if seen == self.lines:
                    await self.then(exchange)
                    return
        await exchange.end()


def Shredded() -> Edited:
    """Each byte of a watch is a chunk of its own."""
    return Edited(lambda line: [line[at : at + 1] for at in range(len(line))])


@dataclass(frozen=True)
class Drip:
    """Bytes come and come, and no line is ever complete."""

    every: float = 0.1

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.chunk(b'{"type":"MODIFIED","object":{"kind":"')
        while True:
            await exchange.chunk(b"x")
            await asyncio.sleep(self.every)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    rest = b""
    async for data in response.content.iter_any():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line + b"\n"


def refusal(code: int, reason: str, **details: Any) -> bytes:
    """A `Status` as the API server words it."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    told = {"message": f"to order: {reason}", "reason": reason, "code": code}
    return json.dumps({**status, **told, **details}).encode()


def error_line(code: int, reason: str) -> bytes:
    """The line with which the API server ends a watch that it cannot continue."""
    return b'{"type":"ERROR","object":%s}\n' % refusal(code, reason)


# ------------------------------------------------------------------------ the proxy


@dataclass
class _Counted:
    fault: Fault
    fitting: int = 0
    struck: int = 0


@dataclass
class _Under:
    """An exchange under way, and what it is busy with."""

    exchange: Exchange
    task: asyncio.Task[None]
    struck_by: Action | None = None


@dataclass
class FaultProxy:
    """Listens on a port of its own; made by `proxying`."""

    upstream: Upstream
    records: MutableSequence[Record] = field(default_factory=list)
    # Gets the API server's answers except for watches, even if they get lost.
    heard: Callable[[Record, bytes], None] = lambda record, body: None
    port: int = 0
    _armed: list[_Counted] = field(default_factory=list)
    _under_way: list[_Under] = field(default_factory=list)
    _connections: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kubeconfig(self, folder: Path) -> Path:
        """A kubeconfig that leads here."""
        config = {
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        }
        file = folder / f"kubeconfig-{self.port}"
        file.write_text(json.dumps(config))
        return file

    # ------------------------------------------------------------------ to order

    def arm(self, *faults: Fault) -> None:
        """From now on these faults strike; the first one that fits does."""
        self._armed += map(_Counted, faults)

    def disarm(self) -> None:
        """Let no fault strike from now on; silenced connections stay silent."""
        self._armed.clear()

    @property
    def struck(self) -> int:
        """The number of times that the armed faults have struck."""
        return sum(each.struck for each in self._armed)

    def strike(self, action: Action, *, watch: bool | None = None) -> int:
        """Do this to what is under way; how much that was."""
        struck = 0
        for each in self._under_way:
            if watch in (None, each.exchange.record.is_watch):
                each.struck_by = action
                each.task.cancel()
                struck += 1
        return struck

    async def refuse(self) -> None:
        """End all connections and refuse new ones, until `listen`."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def listen(self) -> None:
        """Take connections, on the same port as ever."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._connected, "127.0.0.1", self.port, limit=_HEAD_BYTES_MAX
            )
            self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        await self.refuse()

    # --------------------------------------------------------------- connections

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the test is over
        finally:
            self._connections.discard(task)
            if not writer.transport.is_closing():
                cut(writer.transport)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        early = b""
        while True:
            head = early + await reader.readuntil(b"\r\n\r\n")
            first, *rest = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ")
            headers = dict(each.split(": ", 1) for each in rest if each)
            length = int(_value(headers, "content-length") or 0)
            body = await reader.readexactly(length)
            record = Record(time.monotonic(), method, target, body)
            self.records.append(record)
            kept = {k: v for k, v in headers.items() if k.lower() not in _HOP_BY_HOP}
            exchange = Exchange(self, record, kept, writer)
            early = await self._answered(exchange, reader)
            if exchange.is_over:
                return

    async def _answered(
        self, exchange: Exchange, reader: asyncio.StreamReader
    ) -> bytes:
        """Play the exchange while the client listens; what it says next already."""
        listening = asyncio.create_task(reader.read(1))
        action = self._action_for(exchange.record)
        under = _Under(exchange, asyncio.create_task(self._play(exchange, action)))
        self._under_way.append(under)
        try:
            while True:
                tasks: set[asyncio.Task[Any]] = {under.task, listening}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if under.task.done() and under.struck_by is not None:
                    action, under.struck_by = under.struck_by, None
                    under.task = asyncio.create_task(self._play(exchange, action))
                elif under.task.done():
                    await under.task
                    return listening.result() if listening.done() else b""
                elif not listening.result():
                    raise ConnectionResetError
                else:
                    raise AssertionError("a request before the answer to the last one")
        finally:
            self._under_way.remove(under)
            for task in (under.task, listening):
                task.cancel()
            await asyncio.gather(under.task, listening, return_exceptions=True)

    async def _play(self, exchange: Exchange, action: Action | None) -> None:
        if action is not None:
            exchange.record.fault = repr(action)[:80]
        try:
            await (action or Edited())(exchange)
        except (aiohttp.ClientError, TimeoutError):
            exchange.reset()  # the API server itself is away

    def _action_for(self, record: Record) -> Action | None:
        for each in self._armed:
            fault = each.fault
            if not fault.fits(record):
                continue
            each.fitting += 1
            within = fault.times is None or each.struck < fault.times
            if each.fitting > fault.skip and within:
                each.struck += 1
                return fault.action
        return None


def _value(headers: dict[str, str], name: str) -> str | None:
    return next((v for k, v in headers.items() if k.lower() == name), None)


@asynccontextmanager
async def proxying(upstream: Upstream) -> AsyncIterator[FaultProxy]:
    """A proxy that listens for as long as the block."""
    proxy = FaultProxy(upstream)
    await proxy.listen()
    try:
        yield proxy
    finally:
        await proxy.close()
