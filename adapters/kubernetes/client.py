"""The Kubernetes API of a real cluster: raw bytes in and out, no models.

Credentials are renewed if they expire, if their files change, or if the server or its
TLS no longer accepts them.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from fnop.adapters.common.bodies import written
from fnop.adapters.common.deep_json import loads
from fnop.adapters.kubernetes.accounts import named_by
from fnop.adapters.kubernetes.addresses import Address, parsed
from fnop.adapters.kubernetes.http_connection import Broken, Connection, Head
from fnop.adapters.kubernetes.http_pool import (
    CannotConnect,
    ConnectTimeout,
    Pool,
    basic_header,
)
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

__all__ = ["ConfigurationProblem", "KubernetesApi", "authorization_of", "connect"]

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
# Large enough for the biggest object (etcd's limit is 1.5 MB) in one go.
_READ_BUFFER = 2**21
# Bytes of a log that are held, at most twice, until the operator takes its lines.
_LOG_BUFFER = 2**16
_SHOWN_TEXT = 1000
_SHOWN_PAGE = 200
# The longest advice: a number with very many digits would become infinity, which a
# recording cannot hold.
_ADVICE_MAX_SECONDS = 1e9

_HEADERS = (
    # Within a network, compressing large lists costs both sides more than it saves.
    ("Accept-Encoding", "identity"),
    ("User-Agent", "fnop"),
)


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
        self._request_seconds = request_seconds
        self._transport = _Transport(info)
        self._read, self._looked_at = _stamps(source.files), self._clock.now().mono
        self._problem: str | None = None
        # The pool has no limit: watches would occupy its slots permanently.
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
        seconds = self._seconds_of(request)
        try:
            if request.urgent:
                head, text, _ = await self._open(request, seconds)
            else:
                async with self._slots:
                    await self._wait_for_rate()
                    head, text, _ = await self._open(request, seconds)
                    self._answered(head.status)
        except _FAILURES as problem:
            raise self._unreachable_error(problem, seconds) from problem
        return _answer(self.server, head, text)

    def _seconds_of(self, request: ApiRequest) -> float:
        """The time for a request; an urgent one ends when its answer is useless."""
        seconds = self._request_seconds
        if request.seconds is not None:
            seconds = min(seconds, request.seconds)
        if request.urgent and request.before is not None:
            left = request.before - SystemClock().now().mono
            seconds = min(seconds, max(0.001, left))
        return seconds

    async def watch(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[WatchLine, None]:
        """Follow one watch until the server ends it.

        Raises `StreamRefused`, `StreamSilent`, `StreamUndecodable`, or `Unreachable` if
        the connection cannot be made or breaks.
        """
        now = asyncio.get_running_loop().time
        with self._telling_breaks(silence_seconds):
            async with self._stream(request, silence_seconds) as connection:
                unfinished: list[bytes] = []
                heard = now()
                async for chunk in connection.chunks(silence_seconds):
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
            async with self._stream(request, silence_seconds, _LOG_BUFFER) as found:
                async for chunk in found.chunks(silence_seconds):
                    yield chunk

    @contextmanager
    def _telling_breaks(self, silence_seconds: float) -> Iterator[None]:
        """Raise `StreamSilent`, or `Unreachable`, if a stream breaks."""
        try:
            yield
        except TimeoutError as problem:
            text = f"nothing came for {silence_seconds:g} seconds"
            raise StreamSilent(text) from problem
        except _FAILURES as problem:
            raise self._unreachable_error(problem) from problem

    @asynccontextmanager
    async def _stream(
        self, request: ApiRequest, silence_seconds: float, buffer: int = _READ_BUFFER
    ) -> AsyncIterator[Connection]:
        """A watch, or a log, that the server has agreed to.  Raises `StreamRefused`."""
        async with asyncio.timeout(silence_seconds):
            await self._wait_for_rate()
            head, text, stream = await self._open(request, silence_seconds, buffer)
            self._answered(head.status)
        if stream is None:
            answer = _answer(self.server, head, text)
            message, advice = message_of(answer), answer.retry_after_seconds
            raise StreamRefused(answer.status, message, advice)
        try:
            yield stream.connection
        finally:
            stream.pool.give_back(stream.connection)

    async def close(self) -> None:
        """Release the connections."""
        await self._transport.close()

    def _unreachable_error(
        self, problem: BaseException, seconds: float = REQUEST_SECONDS
    ) -> Unreachable:
        """Return why no answer came, and whether the request may have arrived."""
        server, proxy = self.server, self._transport.proxy
        through = "" if proxy is None else f" through the proxy {proxy}"
        if isinstance(problem, ConnectTimeout):
            within = f"within {problem.seconds:.3g} seconds"
            text = f"cannot connect to {server}{through} {within}"
            return Unreachable(text, sent=False)
        if isinstance(problem, ProxyUnreachable):
            text = f"the proxy {proxy} cannot be reached: {_reason(problem)}"
            return Unreachable(text, sent=False)
        if isinstance(problem, ProxyRefuses):
            why = _reason(problem)
            text = f"the proxy {proxy} refuses to connect to {server}: {why}"
            return Unreachable(text, sent=False)
        if isinstance(problem, CannotConnect):
            text = f"cannot connect to {server}{through}: {_reason(problem)}"
            return Unreachable(text, sent=False)
        if isinstance(problem, TimeoutError):
            text = f"{server} did not answer within {seconds:.3g} seconds"
            return Unreachable(text, sent=True)
        text = f"the connection to {server} broke: {_reason(problem)}"
        return Unreachable(text, sent=True)

    async def _open(
        self, request: ApiRequest, seconds: float, buffer: int | None = None
    ) -> _Reply:
        """Send it, and again after a 401 if new credentials may help."""
        _check_time(request)
        await self._follow()
        transport, info = self._transport, self._transport.info
        try:
            reply = await transport.open(request, seconds, buffer)
        except (CannotConnect, Broken) as problem:
            if not _is_of_tls(problem):
                raise
            # An authority, or the own certificate, may have been replaced.
            await self._renew(info)
            if self._transport is transport:
                raise
            _check_time(request)
            return await self._transport.open(request, seconds, buffer)
        if reply.head.status != 401 or _is_denied(reply.text):
            return reply
        if not await self._renew(info):
            if self._problem is not None:
                raise Unreachable(self._problem, sent=False)
            return reply
        _check_time(request)
        return await self._transport.open(request, seconds, buffer)

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
            old.pool.retire()
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


class _Stream(NamedTuple):
    """A response that is read as it comes; then its connection is given back."""

    pool: Pool
    connection: Connection


class _Reply(NamedTuple):
    """A response: its head, and its text, or the stream of its body."""

    head: Head
    text: bytes
    stream: _Stream | None = None


class _Transport:
    """The connections of a login, with its TLS settings, its proxy and its headers."""

    def __init__(self, info: ConnectionInfo) -> None:
        self._read = _stamps(files_of(info))
        server = _address(info.server, "the server")
        # A query has no effect; like kubectl, fnop drops it.
        address = info.server.partition("?")[0].partition("#")[0].rstrip("/")
        scheme, _, rest = address.partition("://")
        rest = rest.rpartition("@")[2]
        self.server: str = quote(f"{scheme}://{rest}", safe="/:@[]%!$&'()*+,;=~")
        self._user: str | None = None
        if server.user or server.password:
            self._user = basic_header(server.user or "", server.password or "")
        found = info.proxy_url or proxy_for(server, os.environ)
        proxy = _address(found, "the proxy") if found else None
        self.proxy = None if found is None else shown_address(found)
        if proxy is not None and proxy.scheme not in SCHEMES:
            raise ConfigurationProblem(
                f"the proxy {self.proxy} has an unknown scheme; write one "
                f"of {', '.join(SCHEMES)}"
            )
        try:
            # Reading the certificates of all authorities takes as long as everything
            # else.
            context = tls_context(info) if server.scheme == "https" else None
        except CertificateProblem as problem:
            raise ConfigurationProblem(
                f"the certificates for {self.server} cannot be used: {problem}"
            ) from problem
        self.pool = Pool(server, context, proxy)
        # The beginning of a request's target, and the headers that all requests share.
        self._target = quote(server.path, safe="/:@[]%!$&'()*+,;=~")
        self._lines = [("Host", server.authority), *_HEADERS]
        if context is None and proxy is not None and proxy.scheme in ("http", "https"):
            self._target = self.server
            if proxy.user or proxy.password:
                user = basic_header(proxy.user or "", proxy.password or "")
                self._lines.append(("Proxy-Authorization", user))
        self.info = info

    @property
    def info(self) -> ConnectionInfo:
        """The login whose credentials requests have."""
        return self._info

    @info.setter
    def info(self, info: ConnectionInfo) -> None:
        lines = [*self._lines]
        # As in Go: a user in the address has priority over all others.
        authorization = self._user or authorization_of(info)
        if authorization is not None:
            lines.append(("Authorization", authorization))
        if info.impersonate is not None:
            lines += info.impersonate.headers
        for name, value in lines:
            if _CONTROL.search(value):
                raise ConfigurationProblem(
                    f"the credentials for {self.server} have a line's end, or another "
                    f"character that the header {name} cannot have"
                )
        self._shared = "".join(f"{name}: {value}\r\n" for name, value in lines)
        self._info = info

    @property
    def is_outdated(self) -> bool:
        """Whether a file behind the connection has changed."""
        return _stamps(files_of(self.info)) != self._read

    async def open(
        self, request: ApiRequest, seconds: float, buffer: int | None
    ) -> _Reply:
        """Send the request; with a `buffer`, return the stream of a good response."""
        method, written_request = request.method, self._written(request)
        connect_seconds = min(CONNECT_SECONDS, seconds)
        if buffer is None:
            return _Reply(
                *await self.pool.send(
                    method,
                    written_request,
                    seconds=seconds,
                    connect_seconds=connect_seconds,
                )
            )
        head, connection = await self.pool.begin_stream(
            written_request, connect_seconds=connect_seconds, buffer_bytes=buffer
        )
        if head.status == 200:
            return _Reply(head, b"", _Stream(self.pool, connection))
        try:
            chunks = [each async for each in connection.chunks(seconds)]
        finally:
            self.pool.give_back(connection)
        return _Reply(head, b"".join(chunks))

    def _written(self, request: ApiRequest) -> bytes:
        """The bytes of a request (RFC 9112)."""
        query = f"?{_encoded(request.query)}" if request.query else ""
        line = f"{request.method} {self._target}{request.path}{query}"
        forms = request.accept, request.content_type
        if _CONTROL.search(line) or any(_CONTROL.search(each) for each in forms):
            raise ValueError(f"no request can have such characters: {line!r}")
        body, length = b"", ""
        if request.body is not None:
            body = written(request.content_type, request.body)
        if body or request.method in _WITH_BODY:
            length = f"Content-Length: {len(body)}\r\n"
        head = (
            f"{line} HTTP/1.1\r\n{self._shared}Accept: {request.accept}\r\n"
            f"Content-Type: {request.content_type}\r\n{length}\r\n"
        )
        return head.encode() + body

    async def close(self) -> None:
        await self.pool.close()


def authorization_of(info: ConnectionInfo) -> str | None:
    """The value of the header Authorization; None for other credentials.

    >>> authorization_of(ConnectionInfo(server="https://a", token="t"))
    'Bearer t'
    """
    if info.token is not None:
        return f"{info.scheme or 'Bearer'} {info.token}".strip()
    if info.username is None:
        return None
    return basic_header(info.username, info.password or "")


# --------------------------------------------------------------------- requests

_FAILURES = (
    *(CannotConnect, ConnectTimeout, Broken, TimeoutError),
    *(ProxyUnreachable, ProxyRefuses),
)
# The methods whose requests have a length even without a body (RFC 9110: 8.6).
_WITH_BODY = ("PATCH", "POST", "PUT")
# Characters that would end a line, or that no line of a request can have.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
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


def _is_of_tls(problem: CannotConnect | Broken) -> bool:
    """Whether one side does not trust the other.

    A proxy in between raises the same errors as TLS itself.
    """
    cause = problem.__cause__
    if isinstance(problem, CannotConnect):
        return isinstance(cause, ssl.SSLError)
    return _alert_of(problem) is not None


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


def _address(text: str, what: str) -> Address:
    """Parse the address of a server.  Raises `ConfigurationProblem`."""
    try:
        return parsed(text)
    except ValueError as problem:
        raise ConfigurationProblem(
            f"{what} {text!r} is not an address ({text_of(problem)}); write "
            "https://host:port, and in a user name or password %2F for /, %23 for #"
        ) from None


def _reason(problem: BaseException) -> str:
    """The cause in the words of the system, without addresses of Python objects."""
    cause = problem.__cause__ or problem
    if (alert := _alert_of(cause)) is not None:
        return f"the server does not take the client certificate: {alert}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        text = getattr(cause, "verify_message", "") or text_of(cause)
        return text + _CERTIFICATES.get(getattr(cause, "verify_code", 0), "")
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


def _answer(server: str, head: Head, text: bytes) -> ApiResponse:
    """The response, its JSON parsed; errors in another form become a `Status`.

    Raises `Unreachable` for a success that is not JSON. Then something in between
    answered, and an empty page must not be taken for an empty list.
    """
    try:
        body = loads(text)
    except ValueError as problem:
        plain = head.content_type.partition(";")[0].strip().lower() == "text/plain"
        if head.status < 300 and not plain:
            what = _excerpt_of(text)[:100]
            message = f"{server} did not answer in JSON but with {what!r}"
            raise Unreachable(message, sent=True) from problem
        body = _status(head.status, text)
    return ApiResponse(head.status, body, _retry_after(head, body))


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


def _retry_after(head: Head, body: Any) -> float | None:
    """The server's advice in seconds, from the header or from its `Status`."""
    given = head.retry_after
    if given is not None and given.isdecimal():
        return min(float(given), _ADVICE_MAX_SECONDS)
    details = body.get("details") if isinstance(body, dict) else None
    if head.status < 400 or not isinstance(details, dict):
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
