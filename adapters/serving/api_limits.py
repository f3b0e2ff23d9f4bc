"""The limits of the simulated API server: clients, sizes, times.

Times and sizes are kube-apiserver's, if it has any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fnop.interpreters.cluster.values.status import failure
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = [
    "CONNECTIONS_MAX",
    "HEAD_BYTES",
    "HELD_BYTES",
    "ConnectionLimits",
    "plain_refusal",
    "stranger",
    "timed_out",
    "too_many",
]

HEAD_BYTES = 1024 * 1024 + 4096  # http.DefaultMaxHeaderBytes, and Go's margin
CONNECTIONS_MAX = 2_000
# Bytes of incomplete request bodies and of unread answers, in total.
HELD_BYTES = 256 * 1024 * 1024


class ConnectionLimits:
    """The seconds after which an idle connection is closed, by its state."""

    idle = 90.0  # http.Server.IdleTimeout
    head = 32.0  # http.Server.ReadHeaderTimeout
    request = 60.0  # --request-timeout: for a body, and until an answer is read
    farewell = 0.5  # Go's rstAvoidanceDelay
    look = 1.0  # the interval of looking for expired connections


# ------------------------------------------------------------------ from whom

_LOOPBACK = r"(localhost|127(\.\d{1,3}){3}|\[::1\])\.?(:\d{1,5})?"
_HOST = re.compile(_LOOPBACK, re.IGNORECASE)
_ORIGIN = re.compile(rf"https?://{_LOOPBACK}", re.IGNORECASE)


def stranger(headers: Mapping[bytes, bytes]) -> ApiResponse | None:
    """Why a request is not from this machine; None if it may be.

    A client of a port on this machine may be a page in its browser. If the page's name
    resolves to this machine (DNS rebinding), `Host` shows the name. If the page is of
    another site, `Origin` shows that or, if the browser omits it, `Sec-Fetch-Site`.

    >>> stranger({b"host": b"127.0.0.1:8001", b"origin": b"http://localhost:3000"})
    >>> stranger({b"host": b"evil.example"}).status
    403
    """
    host, origin = _text(headers, b"host"), _text(headers, b"origin")
    if host is not None and not _HOST.fullmatch(host):
        return _forbidden_response(f"the host {host!a}")
    if origin is not None:
        return (
            None
            if _ORIGIN.fullmatch(origin)
            else _forbidden_response(f"a page of {origin!a}")
        )
    if _text(headers, b"sec-fetch-site") == "cross-site":
        return _forbidden_response("a page of another site")
    return None


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1").strip()


def _forbidden_response(whom: str) -> ApiResponse:
    message = (
        f"without --tls the cluster answers requests to and from localhost alone, "
        f"not {whom[:200]}"
    )
    return failure(403, "Forbidden", message).response


# ------------------------------------------------------------------- how much


def too_many() -> ApiResponse:
    """429: it holds enough for now."""
    message = "Too many requests, please try again later."
    refusal = failure(429, "TooManyRequests", message).response
    return ApiResponse(refusal.status, refusal.body, retry_after_seconds=1.0)


def timed_out() -> ApiResponse:
    """504: the body of a request has not arrived."""
    message = "Timeout: request did not complete within the allotted timeout"
    return failure(504, "Timeout", message).response


def plain_refusal(status: str) -> bytes:
    """The whole answer to a malformed request, as Go's server sends it.

    >>> plain_refusal("400 Bad Request").splitlines()[0]
    b'HTTP/1.1 400 Bad Request'
    """
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Connection: close\r\n\r\n{status}"
    ).encode("latin-1")
