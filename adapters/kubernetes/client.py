"""The Kubernetes API of a real cluster: raw bytes in and out, no models.

Credentials are renewed if they expire, if their files change, or if the server or its
TLS no longer accepts them.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from fnop.adapters.common.bodies import written
from fnop.adapters.common.deep_json import loads
from fnop.adapters.kubernetes.accounts import named_by
from fnop.adapters.kubernetes.kubeconfig import (
    ConfigurationProblem,
    Impersonating,
    Logins,
    find_source,
)
from fnop.adapters.kubernetes.proxies import (
    SCHEMES,
    ProxyRefuses,
    ProxyUnreachable,
    proxy_for,
)
from fnop.adapters.kubernetes.tls import CertificateProblem, files_of, tls_context
from fnop.adapters.kubernetes.transports import cut
from fnop.core.handlers.declare.connection import (
    ConnectionInfo,
    Impersonation,
    shown_address,
)
from fnop.core.values.backoff import Allowance, drawn, put_back
from fnop.core.values.errors import text_of
from fnop.effects.structs import replace
from fnop.interpreters.runtime.answers import is_denial, message_of
from fnop.interpreters.runtime.clock import Clock, SystemClock
from fnop.interpreters.runtime.protocol import (
    ApiRequest,
    ApiResponse,
    StreamRefused,
    StreamSilent,
    StreamUndecodable,
    Unreachable,
    WatchLine,
)

__all__ = ["ConfigurationProblem", "KubernetesApi", "connect"]

REQUEST_SECONDS = 60.0
CONNECT_SECONDS = 10.0
# The shortest interval between renewals of rejected credentials.
RENEWAL_SECONDS = 5.0
# A plugin that must return new credentials may have to send requests itself.
LOGIN_SECONDS = 60.0
# The interval at which the files of a login are checked: kubelet and others replace
# them.
FILES_SECONDS = 10.0
# The limit for failing requests, for all objects and streams together: more requests do
# not help a server in trouble.
_FAILING_PER_SECOND, _FAILING_BURST = 20.0, 100.0
FAREWELL_SECONDS = 0.1
# Large enough for the biggest object (etcd's limit is 1.5 MB) in one go.
_READ_BUFFER = 2**21
# Bytes of a log that are held, at most twice, until the operator takes its lines.
_LOG_BUFFER = 2**16
_SHOWN_TEXT = 1000
_SHOWN_PAGE = 200
# The longest advice: a number with very many digits would become infinity, which a
# recording cannot hold.
_ADVICE_MAX_SECONDS = 1e9

_HEADERS = {
    # Within a network, compressing large lists costs both sides more than it saves.
    "Accept-Encoding": "identity",
    "User-Agent": "fnop",
}


async def connect(
    *,
    kubeconfig: str | None,
    context: str | None,
    impersonate: Impersonation | None = None,
    concurrency: int = 32,
    request_seconds: float = REQUEST_SECONDS,
    requests_per_second: float | None = None,
    source: Logins | None = None,
    clock: Clock | None = None,
) -> KubernetesApi:
    """Return the API of the cluster in the user's configuration, without a request yet.

    `concurrency` limits the requests in flight; watches and urgent ones do not count. A
    request without a full answer after `request_seconds` is given up.
    `requests_per_second` limits the rate, with a burst of two seconds' worth; failing
    requests have a lower limit in any case. Urgent requests wait for neither. A
    `source` of credentials replaces the kubeconfig; they expire by the `clock`, and may
    `impersonate` another user. Raises `ConfigurationProblem`.
    """
    if source is None:
        source = find_source(kubeconfig, context)
    if impersonate is not None:
        source = Impersonating(source, impersonate)
    return KubernetesApi(
        source,
        await source.login(),
        concurrency=concurrency,
        request_seconds=request_seconds,
        requests_per_second=requests_per_second,
        clock=clock,
    )


class KubernetesApi:
    """The `Api` of a real cluster."""

    def __init__(
        self,
        source: Logins,
        info: ConnectionInfo,
        *,
        concurrency: int,
        request_seconds: float = REQUEST_SECONDS,
        requests_per_second: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._source, self._clock = source, clock or SystemClock()
        connect_seconds = min(CONNECT_SECONDS, request_seconds)
        self._timeout = aiohttp.ClientTimeout(
            total=request_seconds, sock_connect=connect_seconds
        )
        self._transport = _Transport(info)
        self._read, self._looked_at = _stamps(source.files), self._clock.now().mono
        self._problem: str | None = None
        # The connector has no limit: watches would occupy its slots permanently.
        self._slots = asyncio.Semaphore(concurrency)
        burst = max(_FAILING_BURST, 2.0 * concurrency)
        self._failing = Allowance(_FAILING_PER_SECOND, burst, burst)
        self._rate: Allowance | None = None
        if requests_per_second is not None:
            burst = max(1.0, 2 * requests_per_second)
            self._rate = Allowance(requests_per_second, burst, burst)
        self._renewal = asyncio.Lock()
        self._renewed_at = float("-inf")

    @property
    def server(self) -> str:
        """The address of the API server, without a user."""
        return self._transport.server

    @property
    def default_namespace(self) -> str | None:
        """The namespace of the context or of the service account, if it has one."""
        return self._transport.info.default_namespace

    @property
    def account(self) -> str:
        """The user that the credentials name; "" if they do not contain it."""
        return named_by(self._transport.info)

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Return the answer to one request. Raises `Unreachable` if no answer came."""
        timeout = self._timeout_of(request)
        try:
            if request.urgent:
                response, text = await self._send_and_read(request, timeout)
            else:
                async with self._slots:
                    await self._wait_for_rate()
                    response, text = await self._send_and_read(request, timeout)
                    self._answered(response.status)
        except _FAILURES as problem:
            raise self._unreachable_error(problem, timeout) from problem
        return _answer(self.server, response, text)

    async def _send_and_read(
        self, request: ApiRequest, timeout: aiohttp.ClientTimeout
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        response = await self._open_response(request, timeout)
        with _hanging_up(response):
            return response, await response.read()

    def _timeout_of(self, request: ApiRequest) -> aiohttp.ClientTimeout:
        """The timeout of a request; an urgent one ends when its answer is useless."""
        given, limits = self._timeout, [request.seconds]
        if request.urgent and request.before is not None:
            left = request.before - SystemClock().now().mono
            limits.append(max(0.001, left))  # 0 means no timeout
        bounds = [each for each in (given.total, *limits) if each is not None]
        total = min(bounds, default=None)
        if total == given.total:
            return given
        return aiohttp.ClientTimeout(total=total, sock_connect=given.sock_connect)

    async def watch(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[WatchLine, None]:
        """Follow one watch until the server ends it.

        Raises `StreamRefused`, `StreamSilent`, `StreamUndecodable`, or `Unreachable` if
        the connection cannot be made or breaks.
        """
        now = asyncio.get_running_loop().time
        with self._telling_breaks(silence_seconds):
            response = await self._begin_stream(request, silence_seconds)
            with _hanging_up(response):
                unfinished: list[bytes] = []
                heard = now()
                async for chunk in response.content.iter_any():
                    for line in _whole_lines(unfinished, chunk):
                        yield _watch_line(line)
                        heard = now()
                    if now() - heard > silence_seconds:
                        raise TimeoutError  # bytes arrive, but no line

    async def follow(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        """Read the bytes of a log until the server ends it.

        Raises `StreamRefused`, `StreamSilent`, or `Unreachable` if the connection
        cannot be made or breaks.
        """
        with self._telling_breaks(silence_seconds):
            response = await self._begin_stream(request, silence_seconds, _LOG_BUFFER)
            with _hanging_up(response):
                async for chunk in response.content.iter_any():
                    yield chunk

    @contextmanager
    def _telling_breaks(self, silence_seconds: float) -> Iterator[None]:
        """Raise `StreamSilent`, or `Unreachable`, if a stream breaks."""
        try:
            yield
        except aiohttp.ConnectionTimeoutError as problem:
            raise self._unreachable_error(problem) from problem
        except TimeoutError as problem:
            text = f"nothing came for {silence_seconds:g} seconds"
            raise StreamSilent(text) from problem
        except _FAILURES as problem:
            raise self._unreachable_error(problem) from problem

    async def _begin_stream(
        self,
        request: ApiRequest,
        silence_seconds: float,
        read_buffer: int = _READ_BUFFER,
    ) -> aiohttp.ClientResponse:
        """A watch, or a log, that the server has agreed to.  Raises `StreamRefused`."""
        timeout = aiohttp.ClientTimeout(
            total=None,
            sock_connect=self._timeout.sock_connect,
            sock_read=silence_seconds,
        )
        async with asyncio.timeout(silence_seconds):
            await self._wait_for_rate()
            response = await self._open_response(request, timeout, read_buffer)
            self._answered(response.status)
            if response.status == 200:
                return response
            with _hanging_up(response):
                answer = _answer(self.server, response, await response.read())
        text, advice = message_of(answer), answer.retry_after_seconds
        raise StreamRefused(answer.status, text, advice)

    async def close(self) -> None:
        """Release the connections."""
        await self._transport.close()

    def _unreachable_error(
        self, problem: BaseException, timeout: aiohttp.ClientTimeout | None = None
    ) -> Unreachable:
        """Return why no answer came, and whether the request may have arrived."""
        server, proxy = self.server, self._transport.proxy
        through = "" if proxy is None else f" through the proxy {proxy}"
        if isinstance(problem, aiohttp.ConnectionTimeoutError):
            seconds = self._timeout.sock_connect
            text = f"cannot connect to {server}{through} within {seconds:g} seconds"
            return Unreachable(text, sent=False)
        if isinstance(problem, _PROXY_UNREACHABLE):
            text = f"the proxy {proxy} cannot be reached: {_reason(problem)}"
            return Unreachable(text, sent=False)
        if isinstance(problem, _PROXY_REFUSES):
            why = _reason(problem)
            text = f"the proxy {proxy} refuses to connect to {server}: {why}"
            return Unreachable(text, sent=False)
        if isinstance(problem, _NO_CONNECTION):
            text = f"cannot connect to {server}{through}: {_reason(problem)}"
            return Unreachable(text, sent=False)
        if isinstance(problem, TimeoutError):
            seconds = (timeout or self._timeout).total
            text = f"{server} did not answer within {seconds:.3g} seconds"
            return Unreachable(text, sent=True)
        text = f"the connection to {server} broke: {_reason(problem)}"
        return Unreachable(text, sent=True)

    async def _open_response(
        self,
        request: ApiRequest,
        timeout: aiohttp.ClientTimeout,
        read_buffer: int = _READ_BUFFER,
    ) -> aiohttp.ClientResponse:
        """Send it, and again after a 401 if new credentials may help."""
        _check_time(request)
        await self._follow()
        transport, info = self._transport, self._transport.info
        try:
            response = await transport.open(request, timeout, read_buffer)
        except _OF_TLS as problem:
            if not isinstance(problem, _UNTRUSTED) and _alert_of(problem) is None:
                raise
            # An authority, or the own certificate, may have been replaced.
            await self._renew(info)
            if self._transport is transport:
                raise
            _check_time(request)
            return await self._transport.open(request, timeout, read_buffer)
        if response.status != 401:
            return response
        text = await response.read()  # it stays with the response
        if _is_denied(text):
            return response
        if not await self._renew(info):
            if self._problem is not None:
                raise Unreachable(self._problem, sent=False)
            return response
        _check_time(request)
        return await self._transport.open(request, timeout, read_buffer)

    async def _follow(self) -> None:
        """Log in again if the credentials have expired, or their files have changed.

        If that fails, the server judges the old ones: its clock may differ.
        """
        now, transport = self._clock.now(), self._transport
        is_due = transport.info.has_expired(now.wall)
        if not is_due and now.mono - self._looked_at >= FILES_SECONDS:
            self._looked_at = now.mono
            is_due = _stamps(self._source.files) != self._read or transport.is_outdated
        if is_due:
            try:
                await self._renew(transport.info)
            except Unreachable as problem:
                self._problem = str(problem)

    async def _wait_for_rate(self) -> None:
        """Wait until one more request may be sent."""
        now = asyncio.get_running_loop().time()
        self._failing, wait = drawn(self._failing, now)
        if self._rate is not None:
            self._rate, other = drawn(self._rate, now)
            wait = max(wait, other)
        if wait:
            await asyncio.sleep(wait)

    def _answered(self, status: int) -> None:
        """Take note of the end of a request; only failures count."""
        if status < 500 and status not in (401, 429):
            self._failing = put_back(self._failing)

    async def _renew(self, rejected: ConnectionInfo) -> bool:
        """Log in again; whether there are new credentials to try.

        Many requests may be rejected at once: the first one renews for all.
        """
        async with self._renewal:
            if self._transport.info is not rejected:
                return True
            now = self._clock.now()
            if now.mono - self._renewed_at < RENEWAL_SECONDS:
                return False
            self._renewed_at, self._problem = now.mono, None
            was = "have expired" if rejected.has_expired(now.wall) else "were rejected"
            try:
                async with asyncio.timeout(LOGIN_SECONDS):
                    info = await self._source.login()
                await self._adopt(info)
            except TimeoutError as problem:
                text = f"new credentials did not come within {LOGIN_SECONDS:g} seconds"
                raise Unreachable(text, sent=False) from problem
            except ConfigurationProblem as problem:
                text = f"the credentials {was} and cannot be renewed: {problem}"
                raise Unreachable(text, sent=False) from problem
            self._read = _stamps(self._source.files)
            return True

    async def _adopt(self, info: ConnectionInfo) -> None:
        old = self._transport
        if _connection_of(info) != _connection_of(old.info) or old.is_outdated:
            self._transport = _Transport(info)
            await old.close()
        else:
            old.info = info  # tokens travel with requests: connections may stay


def _is_denied(text: bytes) -> bool:
    """Whether an answer is a webhook's denial, with any status."""
    try:
        return is_denial(loads(text))
    except ValueError:
        return False


def _connection_of(info: ConnectionInfo) -> ConnectionInfo:
    """The settings of a connection: everything but the headers of its requests."""
    none: dict[str, Any] = dict.fromkeys(
        ("token", "scheme", "username", "password", "expiration", "impersonate")
    )
    return replace(info, **none, priority=0, default_namespace=None)


def _stamps(files: Iterable[Path]) -> tuple[object, ...]:
    """The marks of files, which differ for different files; kubelet replaces links."""
    found: list[object] = []
    for each in files:
        try:
            known = each.stat()
        except OSError:
            found.append(None)
        else:
            found.append((known.st_ino, known.st_mtime_ns, known.st_size))
    return tuple(found)


class _Transport:
    """An aiohttp session with the TLS settings, and the proxy, of a connection."""

    def __init__(self, info: ConnectionInfo) -> None:
        self.info = info
        self._read = _stamps(files_of(info))
        # Before anything is opened that would have to be closed.
        server = _address(info.server, "the server")
        # A query has no effect; like kubectl, fnop drops it.
        server = server.with_query(None).with_fragment(None)
        address = info.server.partition("?")[0].partition("#")[0].rstrip("/")
        self.server: str = quote(address, safe="/:@[]%!$&'()*+,;=~")
        self._user: str | None = None
        if server.user or server.password:
            self._user = _basic_header(server.user or "", server.password or "")
            self.server = str(server.with_user(None)).rstrip("/")
        found = info.proxy_url or proxy_for(server, os.environ)
        proxy = _address(found, "the proxy") if found else None
        self.proxy = None if proxy is None else shown_address(str(proxy))
        try:
            # Reading the certificates of all authorities takes as long as everything
            # else.
            context = tls_context(info) if server.scheme == "https" else None
        except CertificateProblem as problem:
            raise ConfigurationProblem(
                f"the certificates for {self.server} cannot be used: {problem}"
            ) from problem
        self._session = aiohttp.ClientSession(
            connector=_connector(proxy, context),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._interrupted = False
        self._options: dict[str, Any] = {"allow_redirects": False}
        if proxy is not None and proxy.scheme in ("http", "https"):
            self._options["proxy"] = proxy
            if proxy.user or proxy.password:
                # UTF-8 as in Go; aiohttp itself would write Latin-1.
                user = _basic_header(proxy.user or "", proxy.password or "")
                self._options["proxy"] = proxy.with_user(None)
                self._options["proxy_headers"] = {"Authorization": user}

    @property
    def is_outdated(self) -> bool:
        """Whether a file behind the connection has changed."""
        return _stamps(files_of(self.info)) != self._read

    async def open(
        self,
        request: ApiRequest,
        timeout: aiohttp.ClientTimeout,
        read_buffer: int = _READ_BUFFER,
    ) -> aiohttp.ClientResponse:
        """Send the request; return the response, with its body still unread."""
        headers = CIMultiDict(_HEADERS)
        headers["Accept"] = request.accept
        headers["Content-Type"] = request.content_type
        # As in Go: a user in the address has priority over all others.
        authorization = self._user or _authorization(self.info)
        if authorization is not None:
            headers["Authorization"] = authorization
        if self.info.impersonate is not None:
            headers.extend(self.info.impersonate.headers)
        query = f"?{_encoded(request.query)}" if request.query else ""
        try:
            return await self._session.request(
                request.method,
                URL(f"{self.server}{request.path}{query}", encoded=True),
                data=None
                if request.body is None
                else written(request.content_type, request.body),
                headers=headers,
                timeout=timeout,
                read_bufsize=read_buffer,
                **self._options,
            )
        except BaseException:
            self._interrupted = True
            raise

    async def close(self) -> None:
        await self._session.close()
        # Aborted connections end in the next turn of the loop. Connections of
        # interrupted requests still close their TLS, and no code can wait for that.
        await asyncio.sleep(FAREWELL_SECONDS if self._interrupted else 0)


def _authorization(info: ConnectionInfo) -> str | None:
    if info.token is not None:
        return f"{info.scheme or 'Bearer'} {info.token}".strip()
    return (
        None
        if info.username is None
        else _basic_header(info.username, info.password or "")
    )


def _basic_header(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def _connector(
    proxy: URL | None, context: ssl.SSLContext | None
) -> aiohttp.TCPConnector:
    """A connector without a limit of its own.  Raises `ConfigurationProblem`."""
    secure: Any = True if context is None else context
    if proxy is None or proxy.scheme in ("http", "https"):
        return aiohttp.TCPConnector(limit=0, ssl=secure)
    if proxy.scheme not in SCHEMES:
        raise ConfigurationProblem(
            f"the proxy {shown_address(str(proxy))} has an unknown scheme; write one "
            f"of {', '.join(SCHEMES)}"
        )
    from fnop.adapters.kubernetes.socks import socks_connector

    return socks_connector(proxy, secure)


@contextmanager
def _hanging_up(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Free the connection; abort it if it is in the middle of a response.

    A clean closing can take longer than the loop lives.
    """
    try:
        yield
    finally:
        connection = response.connection
        if connection is not None:
            cut(connection.transport)
        response.close()


# --------------------------------------------------------------------- requests

_FAILURES = (
    *(aiohttp.ClientError, TimeoutError, OSError),
    *(ProxyUnreachable, ProxyRefuses),
)
_PROXY_UNREACHABLE = (aiohttp.ClientProxyConnectionError, ProxyUnreachable)
_PROXY_REFUSES = (aiohttp.ClientHttpProxyError, ProxyRefuses)
# These errors mean that no request has left.
_NO_CONNECTION = (
    aiohttp.ClientConnectorError,
    aiohttp.InvalidURL,
    ssl.SSLCertVerificationError,
)
# One side does not trust the other. A proxy in between raises the same errors as TLS
# itself.
_UNTRUSTED = (
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ClientConnectorSSLError,
    ssl.SSLError,
)
_OF_TLS = (*_UNTRUSTED, aiohttp.ClientOSError)
# The alert about the own certificate. With TLS 1.3 a server sends it after the
# handshake, so that later sending seems to break.
_ALERTS = re.compile("_ALERT_(?:.*CERTIFICATE.*|UNKNOWN_CA|ACCESS_DENIED)$")


def _alert_of(problem: BaseException) -> str | None:
    """The server's judgement of the own certificate, if that is the problem."""
    cause = problem if isinstance(problem, ssl.SSLError) else problem.__cause__
    reason = (cause.reason or "") if isinstance(cause, ssl.SSLError) else ""
    if _ALERTS.search(reason) is None:
        return None
    return reason.partition("_ALERT_")[2].replace("_", " ").lower()


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


def _address(text: str, what: str) -> URL:
    """Parse the address of a server.  Raises `ConfigurationProblem`."""
    try:
        return URL(text)
    except ValueError as problem:
        raise ConfigurationProblem(
            f"{what} {text!r} is not an address ({text_of(problem)}); write "
            "https://host:port, and in a user name or password %2F for /, %23 for #"
        ) from None


def _reason(problem: BaseException) -> str:
    """The cause in the words of the system, without addresses of Python objects."""
    if isinstance(problem, aiohttp.ClientHttpProxyError):
        return f"HTTP {problem.status} {problem.message}"
    cause = getattr(problem, "os_error", None) or problem
    if (alert := _alert_of(cause)) is not None:
        return f"the server does not take the client certificate: {alert}"
    certificate = getattr(problem, "certificate_error", None)
    if certificate is None and isinstance(problem, ssl.SSLCertVerificationError):
        certificate = problem
    if certificate is not None:
        text = getattr(certificate, "verify_message", "") or text_of(certificate)
        return text + _CERTIFICATES.get(getattr(certificate, "verify_code", 0), "")
    number = getattr(cause, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number)
    return getattr(cause, "strerror", None) or text_of(cause) or type(cause).__name__


_UNKNOWN_AUTHORITY = (
    " (put the certificate of the server's authority into the kubeconfig, as "
    "certificate-authority-data of the cluster)"
)
_OTHER_NAME = (
    " (name the server in the kubeconfig as its certificate does, by server, or by "
    "tls-server-name of the cluster)"
)
# The remedies for OpenSSL's verification errors (openssl-verification-options).
_CERTIFICATES = {
    18: _UNKNOWN_AUTHORITY,
    19: _UNKNOWN_AUTHORITY,
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    62: _OTHER_NAME,
    64: _OTHER_NAME,
}


def _answer(server: str, response: aiohttp.ClientResponse, text: bytes) -> ApiResponse:
    """The response, its JSON parsed; errors in another form become a `Status`.

    Raises `Unreachable` for a success that is not JSON. Then something in between
    answered, and an empty page must not be taken for an empty list.
    """
    try:
        body = loads(text)
    except ValueError as problem:
        plain = response.content_type == "text/plain"
        if response.status < 300 and not plain:
            what = _excerpt_of(text)[:100]
            message = f"{server} did not answer in JSON but with {what!r}"
            raise Unreachable(message, sent=True) from problem
        body = _status(response.status, text)
    return ApiResponse(response.status, body, _retry_after(response, body))


def _status(code: int, text: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Success" if code < 300 else "Failure",
        "message": _page(text) if text.lstrip()[:1] == b"<" else _excerpt_of(text),
        "code": code,
    }


def _page(text: bytes) -> str:
    """Describe a web page in one line; an API server answers in JSON or plain text."""
    said = " ".join(_excerpt_of(text).split())[:_SHOWN_PAGE]
    return (
        "a page has come that no API server sends, so look at the proxies and load "
        f"balancers in between; it says {said!r}"
    )


def _excerpt_of(text: bytes) -> str:
    return text[:_SHOWN_TEXT].decode(errors="replace").strip()


def _retry_after(response: aiohttp.ClientResponse, body: Any) -> float | None:
    """The server's advice in seconds, from the header or from its `Status`."""
    given = response.headers.get("Retry-After")
    if given is not None and given.isdecimal():
        return min(float(given), _ADVICE_MAX_SECONDS)
    details = body.get("details") if isinstance(body, dict) else None
    if response.status < 400 or not isinstance(details, dict):
        return None
    seconds = details.get("retryAfterSeconds")
    if not isinstance(seconds, int) or seconds <= 0:
        return None
    return float(min(seconds, _ADVICE_MAX_SECONDS))


def _check_time(request: ApiRequest) -> None:
    """Refuse to send a request after its deadline: a lease may have ended."""
    if request.before is not None and SystemClock().now().mono >= request.before:
        raise Unreachable("not sent: the time for it has passed", sent=False)


# ---------------------------------------------------------------------- watches


def _whole_lines(unfinished: list[bytes], chunk: bytes) -> Iterator[bytes]:
    """The lines that this chunk completes; the rest waits in `unfinished`.

    >>> pieces = [b"a"]
    >>> [*_whole_lines(pieces, b"b\\ncd\\ne")], pieces
    ([b'ab', b'cd'], [b'e'])
    """
    *lines, tail = chunk.split(b"\n")
    if lines:
        unfinished.append(lines[0])
        lines[0] = b"".join(unfinished)
        unfinished.clear()
    if tail:
        unfinished.append(tail)
    return (line for line in lines if line)


_TYPE, _OBJECT = b'{"type":"', b'","object":'


def _watch_line(line: bytes) -> WatchLine:
    """Split a watch line; keep the bytes of the object if they can be cut out."""
    end = line.find(b'"', len(_TYPE))
    if line.startswith(_TYPE) and line.startswith(_OBJECT, end):
        raw = line[end + len(_OBJECT) : -1]
        try:
            return WatchLine(line[len(_TYPE) : end].decode(), orjson.loads(raw), raw)
        except ValueError:
            pass  # more fields, too deep, or not JSON at all: parse the whole line
    try:
        event = loads(line, around=1)
        return WatchLine(event["type"], event["object"])
    except (ValueError, KeyError, TypeError) as problem:
        raise StreamUndecodable(
            f"no watch event: {_excerpt_of(line)[:100]!r}"
        ) from problem
