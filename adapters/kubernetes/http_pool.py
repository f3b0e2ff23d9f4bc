"""The connections to one API server, kept for further requests.

A connection goes to the server itself or through a proxy. Names with several addresses
are tried as in RFC 8305. The pool has no limit: watches would occupy its slots
permanently.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from typing import Any

import aiohappyeyeballs

from fnop.adapters.kubernetes.addresses import Address
from fnop.adapters.kubernetes.http_connection import Broken, Connection, Head
from fnop.adapters.kubernetes.proxies import ProxyRefuses, ProxyUnreachable
from fnop.core.values.errors import text_of

__all__ = ["CannotConnect", "ConnectTimeout", "Pool", "basic_header"]

# The longest time that a connection waits for another request.
IDLE_SECONDS = 15.0
# The time after which the next address of a name is tried as well (RFC 8305).
_NEXT_ADDRESS_SECONDS = 0.25
# The methods that are sent again if a kept connection has just been closed: as in Go,
# those that change nothing. Any other one may have arrived, and counts as lost.
_SENT_AGAIN = ("GET", "HEAD", "OPTIONS")


class CannotConnect(Exception):
    """There is no connection to the server; its cause is an `OSError`."""


class ConnectTimeout(Exception):
    """There is no connection to the server within the time for it, in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no connection within {seconds:g} seconds")
        self.seconds = seconds


class Pool:
    """The connections to a server, with TLS if there is a `context`."""

    def __init__(
        self,
        server: Address,
        context: ssl.SSLContext | None,
        proxy: Address | None = None,
    ) -> None:
        self._server, self._context, self._proxy = server, context, proxy
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self._cleaning: asyncio.TimerHandle | None = None
        self._is_retired = False

    async def send(
        self, method: str, request: bytes, *, seconds: float, connect_seconds: float
    ) -> tuple[Head, bytes]:
        """Send a request, and return the whole response.

        Raises `CannotConnect`, `ConnectTimeout`, `ProxyUnreachable` or `ProxyRefuses`
        if nothing was sent, otherwise `Broken` or `TimeoutError`.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            kept = self._take()
            connection = kept or await self._open(min(seconds, connect_seconds))
            try:
                return await connection.exchange(
                    request, deadline, has_body=method != "HEAD"
                )
            except Broken as problem:
                if kept is None or problem.answered or method not in _SENT_AGAIN:
                    raise
            finally:
                self.give_back(connection)

    async def begin_stream(
        self, request: bytes, *, connect_seconds: float, buffer_bytes: int
    ) -> tuple[Head, Connection]:
        """Send a request with GET; its body follows by `Connection.chunks`.

        The caller gives the connection back. Raises the same as `send`.
        """
        while True:
            kept = self._take()
            connection = kept or await self._open(connect_seconds)
            try:
                return await connection.begin_stream(request, buffer_bytes), connection
            except BaseException as problem:
                self.give_back(connection)
                stale = isinstance(problem, Broken) and not problem.answered
                if kept is None or not stale:
                    raise

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose response is complete, and close any other one."""
        self._used.discard(connection)
        if self._is_retired or not connection.is_reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._cleaning is None:
            self._cleaning = loop.call_later(IDLE_SECONDS, self._clean)

    def retire(self) -> None:
        """Keep no connection any more: another pool replaces this one.

        Requests at work still get their responses. Streams would go on with the old
        credentials, so they end.
        """
        self._is_retired = True
        self._close_idle()
        for each in self._used:
            if each.is_streaming:
                each.abort()

    async def close(self) -> None:
        """Close all connections at once, also those at work."""
        self._close_idle()
        for each in self._used:
            each.abort()
        # Connections that were aborted end in the next turns of the loop.
        for _ in range(2):
            await asyncio.sleep(0)

    # --------------------------------------------------------------------- keeping

    def _close_idle(self) -> None:
        if self._cleaning is not None:
            self._cleaning.cancel()
            self._cleaning = None
        for each in self._idle:
            each.abort()
        self._idle.clear()

    def _take(self) -> Connection | None:
        """A kept connection, the one that was used last; None if there is none."""
        while self._idle:
            found = self._idle.pop()
            if found.is_open and not self._is_too_old(found):
                self._used.add(found)
                return found
            found.abort()
        return None

    def _is_too_old(self, connection: Connection) -> bool:
        now = asyncio.get_running_loop().time()
        return now - connection.idle_since > IDLE_SECONDS

    def _clean(self) -> None:
        """Close the connections that have been idle for too long."""
        self._cleaning = None
        for each in self._idle:
            if self._is_too_old(each):
                each.abort()
        self._idle = [each for each in self._idle if each.is_open]
        if self._idle:
            loop = asyncio.get_running_loop()
            self._cleaning = loop.call_later(IDLE_SECONDS, self._clean)

    # --------------------------------------------------------------------- opening

    async def _open(self, seconds: float) -> Connection:
        """Connect to the server, through the proxy if there is one."""
        try:
            async with asyncio.timeout(seconds):
                found = await self._connected()
        except TimeoutError as problem:
            raise ConnectTimeout(seconds) from problem
        except OSError as problem:
            raise CannotConnect(text_of(problem)) from problem
        self._used.add(found)
        return found

    async def _connected(self) -> Connection:
        server, proxy = self._server, self._proxy
        if proxy is None:
            return await _reached(server, self._context)
        if proxy.scheme in ("http", "https"):
            context = self._context if proxy.scheme == "https" else None
            try:
                found = await _reached(proxy, context or _default(proxy))
            except TimeoutError:
                raise
            except OSError as problem:
                raise ProxyUnreachable(text_of(problem)) from problem
            if self._context is None:
                return found
            return await _tunnelled(found, server, proxy, self._context)
        from fnop.adapters.kubernetes.socks import socket_through

        through = await socket_through(proxy, server.host, server.port)
        return await _wrapped(through, server, self._context)


def _default(proxy: Address) -> ssl.SSLContext | None:
    """The settings for a proxy with TLS in front of a server without."""
    return ssl.create_default_context() if proxy.scheme == "https" else None


async def _reached(address: Address, context: ssl.SSLContext | None) -> Connection:
    """A connection to one of a name's addresses."""
    loop = asyncio.get_running_loop()
    infos = await _resolved(address)
    # As uvloop has no such option of `create_connection`.
    connected = await aiohappyeyeballs.start_connection(
        infos, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, interleave=1, loop=loop
    )
    return await _wrapped(connected, address, context)


async def _resolved(address: Address) -> list[Any]:
    """The addresses of a name; an IP address needs no resolver, and so no thread."""
    of: dict[str, Any] = {"type": socket.SOCK_STREAM, "proto": socket.IPPROTO_TCP}
    host, port = address.host, address.port
    try:
        return socket.getaddrinfo(host, port, **of, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, **of)


async def _wrapped(
    connected: socket.socket, address: Address, context: ssl.SSLContext | None
) -> Connection:
    _, found = await asyncio.get_running_loop().create_connection(
        Connection,
        sock=connected,
        ssl=context,
        server_hostname=None if context is None else address.host,
    )
    return found


async def _tunnelled(
    outer: Connection, server: Address, proxy: Address, context: ssl.SSLContext
) -> Connection:
    """A connection with TLS through a proxy (RFC 9110: CONNECT)."""
    host = server.endpoint
    lines = [f"CONNECT {host} HTTP/1.1", f"Host: {host}", "User-Agent: fnop"]
    if proxy.user or proxy.password:
        user = basic_header(proxy.user or "", proxy.password or "")
        lines.append(f"Proxy-Authorization: {user}")
    request = "\r\n".join([*lines, "", ""]).encode()
    try:
        head, _ = await outer.exchange(request, None, has_body=False)
        if head.status != 200:
            raise ProxyRefuses(f"HTTP {head.status} {head.reason}".rstrip())
        inner = Connection()
        transport = await asyncio.get_running_loop().start_tls(
            outer.transport, inner, context, server_hostname=server.host
        )
        if transport is None:
            raise ConnectionResetError("the proxy closed the connection")
    except Broken as problem:
        outer.abort()
        raise ProxyUnreachable(text_of(problem)) from problem
    except BaseException:
        outer.abort()
        raise
    inner.connection_made(transport)
    return inner


def basic_header(user: str, password: str) -> str:
    """The value of Authorization for a user (RFC 7617), in UTF-8 as in Go.

    >>> basic_header("me", "pw")
    'Basic bWU6cHc='
    """
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
