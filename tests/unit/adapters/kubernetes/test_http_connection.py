"""Responses, however their bytes arrive; and connections that are kept, or not."""

from __future__ import annotations

import asyncio
import doctest
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.kubernetes import http_connection, http_pool
from fnop.adapters.kubernetes.addresses import parsed
from fnop.adapters.kubernetes.http_connection import Broken, Connection, Head
from fnop.adapters.kubernetes.http_pool import CannotConnect, Pool
from tests.patience import patience
from tests.thorough import examples

JSON = "application/json"
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LENGTH += b"Content-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED += b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\n"
CHUNKED += b"Content-Type: text/plain\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\nhello"
CONTINUE = b"HTTP/1.1 100 Continue\r\nContent-Type: no/type\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
HELLO = Head(200, JSON, None, "OK"), b"hello"

# The bytes of a response, whether the server closes then, what it is, and whether the
# connection may be used again.
WHOLE: dict[str, tuple[bytes, bool, tuple[Head, bytes], bool]] = {
    "length": (LENGTH, False, HELLO, True),
    "chunks, and a trailer": (CHUNKED, False, HELLO, True),
    "until it is closed": (UNTIL_CLOSED, True, HELLO, False),
    "informational ones before": (CONTINUE + HINTS + LENGTH, False, HELLO, True),
    "close": (
        LENGTH.replace(b"\r\n", b"\r\nConnection: close\r\n", 1),
        False,
        HELLO,
        False,
    ),
    "HTTP/1.0": (LENGTH.replace(b"HTTP/1.1", b"HTTP/1.0"), False, HELLO, False),
    "204": (
        b"HTTP/1.1 204 No Content\r\n\r\n",
        False,
        (Head(204, "", None, "No Content"), b""),
        True,
    ),
    "304": (
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        False,
        (Head(304, "", None, "Not Modified"), b""),
        True,
    ),
    "no reason, and advice": (
        b"HTTP/1.1 429 \r\nRETRY-AFTER: 7\r\nContent-Length: 0\r\n\r\n",
        False,
        (Head(429, "", "7", ""), b""),
        True,
    ),
    "a second response": (LENGTH + LENGTH, False, HELLO, False),
    "more than its length": (LENGTH + b"!", False, HELLO, False),
}


class Wire(asyncio.Transport):
    """A transport that a test plays the server of."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.is_paused, self.is_aborted = b"", False, False

    def write(self, data: Any) -> None:
        self.sent += data

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0


def connected() -> tuple[Connection, Wire]:
    connection, wire = Connection(), Wire()
    connection.connection_made(wire)
    return connection, wire


async def played(
    pieces: list[bytes], *, closes: bool
) -> tuple[tuple[Head, bytes], bool]:
    """The response in these pieces, and whether the connection may be used again."""
    connection, _ = connected()
    task = asyncio.ensure_future(connection.exchange(b"request", None))
    await asyncio.sleep(0)
    for piece in pieces:
        connection.data_received(piece)
    if closes:
        connection.eof_received()
        connection.connection_lost(None)
    try:
        return await task, connection.is_reusable
    finally:
        connection.abort()


@pytest.mark.parametrize("case", WHOLE)
async def test_a_response_may_be_cut_anywhere(case: str) -> None:
    raw, closes, answer, reusable = WHOLE[case]
    for at in range(len(raw)):
        pieces = [each for each in (raw[:at], raw[at:]) if each]
        assert await played(pieces, closes=closes) == (answer, reusable), at


@settings(max_examples=examples(60))
@given(case=st.sampled_from(sorted(WHOLE)), data=st.data())
def test_however_it_is_cut_it_is_the_same(case: str, data: st.DataObject) -> None:
    raw, closes, answer, reusable = WHOLE[case]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1))))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    found = asyncio.run(played(pieces, closes=closes))
    assert found == (answer, reusable)


BROKEN = {
    "nothing": (b"", "closed before the response", False),
    "half a head": (LENGTH[:20], "closed before the response", True),
    "an informational one alone": (CONTINUE, "closed before the response", True),
    "less than its length": (LENGTH[:-1], "closed in the middle of", True),
    "chunks without an end": (CHUNKED[:-30], "closed in the middle of", True),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.9\r\n", "is not HTTP", True),
    "two lengths": (
        LENGTH.replace(b"\r\n\r\n", b"\r\nContent-Length: 6\r\n\r\n"),
        "is not HTTP",
        True,
    ),
    "a length and chunks": (
        CHUNKED.replace(b"\r\n", b"\r\nContent-Length: 5\r\n", 1),
        "is not HTTP",
        True,
    ),
    "a chunk of no size": (CHUNKED.replace(b"2;x=y", b"x"), "is not HTTP", True),
    "another protocol": (
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "another protocol",
        True,
    ),
    "a head without an end": (
        LENGTH[:-9] + b"\r\nX: " + b"y" * 2**17,
        "exceeds 65536 bytes",
        True,
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_part_is_never_taken_for_a_response(case: str) -> None:
    raw, text, answered = BROKEN[case]
    with pytest.raises(Broken, match=text) as problem:
        await played([raw], closes=True)
    assert problem.value.answered is answered


async def test_a_response_may_have_no_body_by_its_request() -> None:
    connection, _ = connected()
    task = asyncio.ensure_future(connection.exchange(b"HEAD", None, has_body=False))
    await asyncio.sleep(0)
    connection.data_received(LENGTH[:-5])
    assert await task == (HELLO[0], b"")
    assert not connection.is_reusable


async def test_a_stream_that_is_not_read_fills_no_memory() -> None:
    connection, wire = connected()
    task = asyncio.ensure_future(connection.begin_stream(b"GET", 10))
    await asyncio.sleep(0)
    connection.data_received(CHUNKED[: CHUNKED.index(b"2;x=y")])
    assert (await task).status == 200
    connection.data_received(b"6\r\nabcdef\r\n")
    assert not wire.is_paused
    connection.data_received(b"6\r\nghijkl\r\n")
    assert wire.is_paused
    chunks = connection.chunks(patience(5))
    assert await anext(chunks) == b"abcdefghijkl"
    assert not wire.is_paused
    connection.data_received(b"1\r\nm\r\n0\r\n\r\n")
    assert [each async for each in chunks] == [b"m"]
    assert connection.is_reusable
    connection.abort()


async def test_a_stream_that_breaks_shows_first_all_that_came() -> None:
    connection, _ = connected()
    task = asyncio.ensure_future(connection.begin_stream(b"GET", 100))
    await asyncio.sleep(0)
    connection.data_received(CHUNKED[: CHUNKED.index(b"3\r\n")])
    await task
    connection.connection_lost(ConnectionResetError(104, "reset"))
    chunks = connection.chunks(patience(5))
    assert await anext(chunks) == b"he"
    with pytest.raises(Broken) as problem:
        await anext(chunks)
    assert isinstance(problem.value.__cause__, ConnectionResetError)


@pytest.mark.parametrize("end", ["cancelled", "too late"])
async def test_an_exchange_that_is_given_up_closes_its_connection(end: str) -> None:
    connection, wire = connected()
    now = asyncio.get_running_loop().time()
    deadline = now if end == "too late" else None
    task = asyncio.ensure_future(connection.exchange(b"GET", deadline))
    await asyncio.sleep(0)
    if end == "cancelled":
        task.cancel()
    with pytest.raises((asyncio.CancelledError, TimeoutError)):
        await task
    assert wire.is_aborted
    assert not connection.is_reusable


async def test_a_timer_rings_for_the_request_at_work_alone() -> None:
    """The alarm of an earlier request is still set, and moves on."""
    connection, _ = connected()
    loop = asyncio.get_running_loop()
    for seconds in (0.02, patience(5)):
        deadline = loop.time() + seconds
        task = asyncio.ensure_future(connection.exchange(b"GET", deadline))
        await asyncio.sleep(0.03 if seconds > 1 else 0)
        connection.data_received(LENGTH)
        assert await task == HELLO
    connection.abort()


async def test_bytes_that_nobody_has_asked_for_end_a_kept_connection() -> None:
    connection, wire = connected()
    task = asyncio.ensure_future(connection.exchange(b"GET", None))
    await asyncio.sleep(0)
    connection.data_received(LENGTH)
    await task
    assert connection.is_reusable
    connection.data_received(LENGTH)
    assert wire.is_aborted
    assert not connection.is_reusable


# ------------------------------------------------------------------ the pool

Serve = Callable[[int, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def pool(
    serve: Serve, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[Pool, list[int]]]:
    """A pool, and the numbers of the connections that its server has had."""
    numbers: list[int] = []
    writers: list[asyncio.StreamWriter] = []

    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        numbers.append(len(numbers))
        writers.append(writer)
        await serve(numbers[-1], reader, writer)

    listening = await asyncio.start_server(begin, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    found = Pool(parsed(f"http://{host}:{port}"), None)
    try:
        yield found, numbers
    finally:
        await found.close()
        listening.close()
        for each in writers:
            each.transport.abort()
        await listening.wait_closed()
        await asyncio.sleep(0)


async def sent(pool: Pool, method: str) -> tuple[Head, bytes]:
    request = f"{method} / HTTP/1.1\r\n\r\n".encode()
    return await pool.send(
        method, request, seconds=patience(5), connect_seconds=patience(5)
    )


async def once(
    number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one request of each connection; close it at the next one."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(LENGTH)
    await reader.read(1)
    writer.transport.abort()


async def test_a_kept_connection_that_was_closed_is_replaced_for_reads() -> None:
    async with pool(once) as (found, numbers):
        assert [await sent(found, "GET") for _ in range(3)] == [HELLO] * 3
        assert numbers == [0, 1, 2]


async def test_a_change_is_never_sent_twice() -> None:
    async with pool(once) as (found, numbers):
        for method in ("PATCH", "POST", "PUT", "DELETE"):
            assert await sent(found, method) == HELLO
            with pytest.raises(Broken) as problem:
                await sent(found, method)
            assert not problem.value.answered
        assert len(numbers) == 4


async def test_a_new_connection_that_breaks_is_not_replaced() -> None:
    async def hang_up(
        number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async with pool(hang_up) as (found, numbers):
        with pytest.raises(Broken):
            await sent(found, "GET")
        assert numbers == [0]


async def kept(
    number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    while not reader.at_eof():
        try:
            await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        writer.write(LENGTH)


async def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_pool, "IDLE_SECONDS", 0.0)
    async with pool(kept) as (found, numbers):
        for _ in range(2):
            await sent(found, "PATCH")
            await asyncio.sleep(0.001)
        assert numbers == [0, 1]


async def test_streams_and_requests_share_connections() -> None:
    async with pool(kept) as (found, numbers):
        for _ in range(2):
            head, connection = await found.begin_stream(
                b"GET / HTTP/1.1\r\n\r\n",
                connect_seconds=patience(5),
                buffer_bytes=100,
            )
            body = [each async for each in connection.chunks(patience(5))]
            assert (head, b"".join(body)) == HELLO
            found.give_back(connection)
            await sent(found, "PATCH")
        assert numbers == [0]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_name_is_resolved_in_a_thread_and_an_address_is_not(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    loop, resolved = asyncio.get_running_loop(), []
    resolve = loop.getaddrinfo

    async def getaddrinfo(host: Any, *given: Any, **options: Any) -> Any:
        resolved.append(host)
        return await resolve(host, *given, **options)

    async with pool(kept, host) as (found, _):
        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        assert await sent(found, "GET") == HELLO
    assert resolved == ["localhost"] * (host == "localhost")


async def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    found = Pool(parsed("http://127.0.0.1:1"), None)
    with pytest.raises(CannotConnect) as problem:
        await sent(found, "PATCH")
    assert isinstance(problem.value.__cause__, ConnectionRefusedError)
    await found.close()


def test_the_examples_hold() -> None:
    assert doctest.testmod(http_connection).failed == 0
    assert doctest.testmod(http_pool).failed == 0
