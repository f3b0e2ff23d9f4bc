"""The server of admission webhooks: HTTPS by aiohttp, for the API server.

Its constructor and its protocol are the same as in Kopf's class of that name. So
tunnels written for Kopf's class run unchanged.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlunsplit

import orjson
from aiohttp import web

from fnop.adapters.webhooks.addresses import hosts_of
from fnop.adapters.webhooks.answering import ASKED, Asked
from fnop.adapters.webhooks.certificates import (
    Certificates,
    Complaints,
    Files,
    Own,
    Served,
    Store,
    StrPath,
    content_of,
    context_with,
    named_hosts,
)
from fnop.adapters.webhooks.connections import Limits, Listener, Refusal
from fnop.adapters.webhooks.protocol import WebhookClientConfig, WebhookFn
from fnop.adapters.webhooks.trust import refusal_of
from fnop.core.admission.certificates import Lifetimes
from fnop.core.values.errors import text_of
from fnop.interpreters.runtime.clock import Clock, SystemClock

__all__ = ["WebhookServer", "reachable_address", "sockets_at"]

log = getLogger("fnop.webhooks")

HEALTH = ("/healthz", "/livez", "/readyz")
# The number of warnings about names that clients use but the certificate lacks.
STRANGERS_MAX = 10


class WebhookServer:
    """Serves the admission handlers of an operator over HTTPS.

    - `addr`, `port`: the address to listen on; by default all interfaces, any free
      port.
    - `host`: the name in the URL of the webhooks, by default the address; `path`: the
      beginning of their path.
    - `certfile`, `pkeyfile`, `password`: its certificate, which is read again when it
      changes. Without them fnop makes an authority and a certificate, for `host`,
      `addr` and `extra_sans`, and renews them; it needs `fnop[tls]`.
    - `cadata`, `cafile`: the authorities by which the API server verifies the files;
      `cadump`: a file to write them to.
    - `verify_mode`, `verify_cafile`, `verify_capath`, `verify_cadata`: the verification
      of client certificates (`ssl.SSLContext.load_verify_locations`).
    - `context`: TLS settings of one's own; `insecure`: HTTP, for tunnels.
    - `file_check_interval`: the seconds between two looks at the files.

    For example, for a service with the target port 9443:

        @fnop.on.startup()
        def configure(settings, **_):
            server = fnop.WebhookServer(port=9443, host="claims.operators.svc")
            return settings.replace(
                admission_server=server, admission_managed=settings.domain
            )
    """

    DEFAULT_HOST: ClassVar[str | None] = None
    limits: ClassVar[Limits] = Limits()
    lifetimes: ClassVar[Lifetimes] = Lifetimes()
    clock: ClassVar[Clock] = SystemClock()

    def __init__(
        self,
        *,
        addr: str | None = None,
        port: int | None = None,
        path: str | None = None,
        host: str | None = None,
        cadata: bytes | None = None,
        cafile: StrPath | None = None,
        cadump: StrPath | None = None,
        context: ssl.SSLContext | None = None,
        insecure: bool = False,
        certfile: StrPath | None = None,
        pkeyfile: StrPath | None = None,
        password: str | None = None,
        extra_sans: Iterable[str] = (),
        verify_mode: ssl.VerifyMode | None = None,
        verify_cafile: StrPath | None = None,
        verify_capath: StrPath | None = None,
        verify_cadata: str | bytes | None = None,
        file_check_interval: float = 60.0,
    ) -> None:
        self.addr = addr
        self.port = port
        self.path = path
        self.host = host
        self.cadata = cadata
        self.cafile = cafile
        self.cadump = cadump
        self.context = context
        self.insecure = insecure
        self.certfile = certfile
        self.pkeyfile = pkeyfile
        self.password = password
        self.extra_sans = extra_sans
        self.verify_mode = verify_mode
        self.verify_cafile = verify_cafile
        self.verify_capath = verify_capath
        self.verify_cadata = verify_cadata
        self.file_check_interval = file_check_interval
        # If replicas share their authority: set by the operator that runs the server.
        self.store: Store | None = None
        self._open: list[_Serving] = []

    async def __call__(self, fn: WebhookFn) -> AsyncIterator[WebhookClientConfig]:
        """Serve, and yield the client configuration, again whenever it has changed."""
        serving = _Serving(self, fn)
        self._open.append(serving)
        try:
            await serving.start()
            while True:
                served = await serving.changed()
                yield serving.config(served)
                # The consumer requests more: it has taken the last one.
                serving.published(served)
        finally:
            await serving.close()
            with suppress(ValueError):
                self._open.remove(serving)

    def distrust(self, client: WebhookClientConfig) -> str:
        """The reason why the API server would refuse the certificate; or "".

        `client` is its configuration for calling this server.
        """
        return self._open[-1].distrust(client) if self._open else ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A subclass that iterates over `super().__call__` does not close that.
        while self._open:
            await self._open.pop().close()


class _Serving:
    """One run of a server: its sockets, its certificate, and its consumers."""

    def __init__(self, server: WebhookServer, fn: WebhookFn) -> None:
        if server.insecure and server.context is not None:
            raise ValueError("insecure=True takes no context=: leave out one of them")
        self._server = server
        self._fn = fn
        self._prefix = f"/{(server.path or '').strip('/')}".rstrip("/")
        addr = reachable_address(server.addr)
        self._host = server.host or server.DEFAULT_HOST or addr
        self._names = named_hosts((self._host, addr, *server.extra_sans))
        self._certificates = _certificates_of(server, self._names)
        self._listener = Listener(self._answer, server.limits)
        self._port = 0
        self._context: ssl.SSLContext | None = None
        self._served = Served.nothing()
        self._clients = ""  # the authorities that verify clients
        self._complaints = Complaints()
        self._complaints_of_clients = Complaints()
        self._changes: asyncio.Queue[Served] = asyncio.Queue()
        # The last bundle, and the time when it was yielded, until the consumer requests
        # more.
        self._offered: tuple[Served, float] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._strangers: set[str] = set()
        # The last trial of a certificate on a client, and the reason of a refusal.
        self._tried: tuple[Served, bytes, str] | None = None
        self._refusal = ""

    # -------------------------------------------------------- start and end

    async def start(self) -> None:
        """Listen, and keep the certificate.

        Raises `OSError` and `ValueError` with a sentence about the missing part.
        """
        base = None
        if self._certificates is not None:
            await self._look_at_last()
            base = self._context
            if base is not None and self._server.context is None:
                base.sni_callback = self._choose
        else:
            self._changes.put_nowait(self._served._replace(bundle=self._given_bundle()))
        sockets = sockets_at(self._server.addr, self._server.port)
        self._port = sockets[0].getsockname()[1]
        await self._listener.start(sockets, base)
        log.debug("webhooks are served at %s", self.url)
        if self._certificates is not None:
            self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Answer requests in flight, and stop listening."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        await self._listener.close()

    # -------------------------------------------------------- the certificate

    async def changed(self) -> Served:
        """Wait for a new bundle to publish."""
        served = await self._changes.get()
        while not self._changes.empty():
            served = self._changes.get_nowait()
        return served

    def config(self, served: Served) -> WebhookClientConfig:
        """The client configuration for reaching this server."""
        self._offered = served, self._now
        found = WebhookClientConfig(url=self.url)
        if served.bundle:
            found["caBundle"] = base64.b64encode(served.bundle).decode()
            if self._server.cadump is not None:
                Path(self._server.cadump).write_bytes(served.bundle)
        return found

    def distrust(self, client: WebhookClientConfig) -> str:
        """The reason why a client with the right authorities refuses the certificate.

        Behind another URL there may be a tunnel, with another certificate.
        """
        bundle = base64.b64decode(client.get("caBundle") or "")
        host, *_ = hosts_of(client) or ("",)
        is_elsewhere = client.get("url") is not None and host != self._host
        if self._certificates is None or not bundle or not host or is_elsewhere:
            return ""
        asked = self._served, bundle, host
        if asked != self._tried:
            self._tried, self._refusal = asked, refusal_of(*asked)
        return self._refusal

    def _given_bundle(self) -> bytes:
        """The authorities of the proxy that ends TLS in front of an HTTP server."""
        server = self._server
        if server.cadata is not None or server.cafile is None:
            return server.cadata or b""
        return content_of(server.cafile)

    def published(self, served: Served) -> None:
        """Note that clients now know the bundle."""
        self._offered = None
        if self._certificates is not None:
            self._certificates.publish(served.authorities, self._now)

    @property
    def _now(self) -> float:
        return self._server.clock.now().wall

    @property
    def url(self) -> str:
        """The URL of the webhooks, without their names."""
        scheme, usual = ("http", 80) if self._server.insecure else ("https", 443)
        host = f"[{self._host}]" if ":" in self._host else self._host
        place = host if self._port == usual else f"{host}:{self._port}"
        return urlunsplit((scheme, place, self._prefix, "", ""))

    async def _keep(self) -> None:
        """Check from time to time what is due about certificates."""
        life = self._server.lifetimes.leaf
        while True:
            await asyncio.sleep(min(self._server.file_check_interval, life / 10))
            try:
                await self._look()
                self._complaints.say("")
            except (OSError, ValueError) as problem:
                self._complaints.say(
                    f"the certificate of the webhooks stays: {problem}"
                )
            except Exception:
                log.exception("the certificate of the webhooks was not looked at")

    async def _look_at_last(self) -> None:
        """Check for the first certificate, until those who share it can be reached."""
        while True:
            try:
                return await self._look()
            except ConnectionError as problem:
                self._complaints.say(f"the webhooks are not served yet: {problem}")
            await asyncio.sleep(min(self._server.file_check_interval, 1.0))

    async def _look(self) -> None:
        assert self._certificates is not None, "it serves HTTPS"
        # A consumer that never returns must not block a certificate permanently.
        if self._offered is not None:
            offered, at = self._offered
            if at + self._certificates.overlap <= self._now:
                self.published(offered)
        served = await self._certificates.at(self._now)
        clients = self._authorities_of_clients()
        before, known = self._served, self._clients
        if (served.pair, clients) != (before.pair, known) or self._context is None:
            self._context = context_with(served, self._settings(clients))
        self._served, self._clients = served, clients
        if served.bundle != before.bundle:
            self._changes.put_nowait(served)

    def _authorities_of_clients(self) -> str:
        """The content of `verify_cafile`; if it is broken, the former content."""
        path = self._server.verify_cafile
        if path is None:
            return ""
        try:
            found = content_of(path).decode("ascii", "replace")
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=found)
            self._complaints_of_clients.say("")
            return found
        except (OSError, ValueError) as problem:
            text = f"{path} has no authorities of clients: {text_of(problem)}"
            if not self._clients:
                raise ValueError(text) from None
            self._complaints_of_clients.say(f"{text}; the previous ones stay in use")
            return self._clients

    def _settings(self, clients: str) -> ssl.SSLContext:
        """TLS settings without a certificate: the user's own context, or a new one."""
        server = self._server
        context = server.context
        if context is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.set_alpn_protocols(["http/1.1"])
        if server.verify_mode is not None:
            context.verify_mode = server.verify_mode
        data = server.verify_cadata
        if isinstance(data, bytes) and b"-----BEGIN" in data:
            data = data.decode("ascii", "replace")
        if not (clients or server.verify_capath or data):
            return context
        try:
            if clients:
                context.load_verify_locations(cadata=clients)
            if server.verify_capath or data:
                context.load_verify_locations(capath=server.verify_capath, cadata=data)
        except (OSError, ValueError) as problem:
            where = "verify_cadata=" if data else server.verify_capath
            text = f"{where} has no authorities of clients: {text_of(problem)}"
            raise ValueError(text) from None
        if context.verify_mode == ssl.CERT_NONE:
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _choose(
        self,
        connection: ssl.SSLObject | ssl.SSLSocket,
        name: str | None,
        base: ssl.SSLContext,
    ) -> None:
        """Choose the present certificate for a new handshake.

        Each certificate gets new settings: one with another kind of key would be added
        to the old one in the same settings.
        """
        if self._context is not None and self._context is not base:
            connection.context = self._context
        if name and self._served.names and not _is_among(name, self._served.names):
            self._warn(name)

    def _warn(self, name: str) -> None:
        if name in self._strangers or len(self._strangers) >= STRANGERS_MAX:
            return
        self._strangers.add(name)
        log.warning(
            "a client asks for the webhooks of %a, and the certificate is that of %s: "
            "give the server host=, or extra_sans= with this name",
            name[:100],
            ", ".join(sorted(self._served.names)),
        )

    # -------------------------------------------------------- requests

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        asked = Asked(request.query.get("timeout"))
        if request.method in ("GET", "HEAD") and request.path.endswith(HEALTH):
            return web.Response(text="ok")
        webhook = self._webhook(request.path)
        if request.method != "POST":
            raise Refusal(405, "an AdmissionReview is sent by POST")
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise Refusal(415, "an AdmissionReview is sent as JSON, without encoding")
        review = _parse_body(await self._listener.body_of(request))
        ASKED.set(asked)
        headers, transport = request.headers, request.transport
        peer = transport.get_extra_info("peercert") if transport else None
        try:
            async with asyncio.timeout_at(asked.ends) as time:
                found = await self._fn(
                    review,
                    webhook=webhook,
                    headers={str(name): each for name, each in headers.items()},
                    sslpeer=peer or {},
                )
            return web.Response(
                body=orjson.dumps(found), content_type="application/json"
            )
        except web.HTTPException:
            raise
        except RecursionError:  # the author's code handles this error itself
            raise Refusal(400, _TOO_DEEP) from None
        except Exception as problem:
            if isinstance(problem, TimeoutError) and time.expired():
                seconds = f"{asked.timeout:g} s"
                raise Refusal(504, f"there was no answer within {seconds}") from None
            log.exception("a review was not answered")
            text = "the webhook failed: see the log of the operator"
            raise Refusal(500, text) from None

    def _webhook(self, path: str) -> str:
        """The last part of a path: the name of a webhook, or the id of a handler."""
        before, rest = path[: len(self._prefix)], path[len(self._prefix) :]
        if before != self._prefix or not rest.startswith("/"):
            raise Refusal(404, f"there are no webhooks here, but at {self._prefix}/")
        return rest[1:]


_TOO_DEEP = "the review is nested too deeply: it may have some hundred levels"


def _parse_body(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        why = f"the body is not JSON: {problem}"
        if "depth" in str(problem) or "ecursion" in str(problem):
            why = _TOO_DEEP
        raise Refusal(400, why) from None


def _certificates_of(
    server: WebhookServer, names: tuple[str, ...]
) -> Certificates | None:
    """The source of a server's certificates; None if it serves HTTP."""
    if server.insecure:
        return None
    if server.certfile is None:
        return Own(names, server.lifetimes, server.store)
    return Files(
        server.certfile,
        server.pkeyfile or server.certfile,
        server.cadata if server.cadata is not None else server.cafile,
        server.password,
        # Replicas may get new files only at their next check.
        2 * server.file_check_interval,
    )


def reachable_address(addr: str | None) -> str:
    """The address at which a wildcard address is reached.

    >>> [*map(reachable_address, (None, "0.0.0.0", "::", "10.0.0.1"))]
    ['localhost', '127.0.0.1', '::1', '10.0.0.1']
    """
    if not addr:
        return "localhost"
    try:
        address = ipaddress.ip_address(addr)
    except ValueError:
        return addr
    if not address.is_unspecified:
        return addr
    return "127.0.0.1" if address.version == 4 else "::1"


def _is_among(name: str, names: frozenset[str]) -> bool:
    """Whether a certificate with these names is valid for a name (RFC 6125).

    >>> _is_among("a.ns.svc", frozenset({"*.ns.svc"})), _is_among("b", frozenset("a"))
    (True, False)
    """
    plain = name.rstrip(".").lower()
    parent = plain.partition(".")[2]
    return plain in names or f"*.{parent}" in names


def sockets_at(addr: str | None, port: int | None) -> list[socket.socket]:
    """Sockets that listen on an address, all on one port; None means any.

    Raises `OSError` with a sentence.
    """
    try:
        if not addr:
            return [_socket_anywhere(port or 0)]
        found: list[socket.socket] = []
        for family, *_, place in socket.getaddrinfo(
            addr, port or 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            chosen = found[0].getsockname()[1] if found else place[1]
            try:
                each = socket.create_server((place[0], chosen), family=family)
            except OSError:
                if not found:
                    raise
            else:
                found.append(each)
        return found
    except OSError as problem:
        where = f"{addr or '*'}:{port or 0}"
        why = problem.strerror or text_of(problem)
        raise OSError(f"webhooks cannot be served at {where}: {why}") from None


def _socket_anywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("::", port), family=socket.AF_INET6, dualstack_ipv6=True
        )
    return socket.create_server(("", port))
