"""The protocol of a Kubernetes API for interpreters: send a request, follow a watch.

Two parts speak this protocol: the client of a real cluster
(`fnop.adapters.kubernetes.client`) and the simulated cluster behind any of its doors.
It is deliberately small: paths and JSON, no kinds, no models.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

__all__ = [
    "Api",
    "ApiRequest",
    "ApiResponse",
    "Asked",
    "Logs",
    "MalformedBody",
    "StreamRefused",
    "StreamSilent",
    "StreamUndecodable",
    "Unreachable",
    "User",
    "WatchLine",
]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
# The annotation of the bookmark after the initial events of a watch.
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class User(Struct, frozen=True):
    """The sender of a request, as identified by authentication."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class MalformedBody(Struct, frozen=True):
    """A body that could not be parsed, and why: it is refused with 400.

    `excerpt` is its beginning as a server shows it. `number` is a number in it that is
    valid JSON, but too large for a computer. A server reports it only after it has
    checked the syntax.
    """

    message: str
    excerpt: str = "<empty>"
    number: str = ""


class ApiRequest(Struct, frozen=True):
    """One HTTP request to the API server, as data.

    `path` is the absolute path without the server, `query` ordered pairs. `body` is a
    parsed JSON value that must not change afterwards, None, or `MalformedBody`.
    `accept` and `agent` are the headers Accept and User-Agent. Without a `user`, no
    permission is checked.

    A request that has not begun `before` a monotonic time must not begin later, however
    long it waited for its turn. An `urgent` request does not wait for a turn, and waits
    for its answer only until that time. The client gives up a request that is not
    answered in full within `seconds`, if not before.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    agent: str = ""
    user: User | None = None
    before: float | None = None
    urgent: bool = False
    seconds: float | None = None


class ApiResponse(Struct, frozen=True):
    """The answer: HTTP status, parsed JSON body, Retry-After in seconds.

    `warnings` are the texts of `Warning` headers.
    """

    status: int
    body: Any
    retry_after_seconds: float | None = None
    warnings: tuple[str, ...] = ()


class WatchLine(Struct, frozen=True):
    """One line of a watch: its type, the parsed object, and the object's bytes.

    `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR (the object is then a Status).
    `raw` is the exact JSON text of the object if the transport has it. Objects that are
    kept for long are kept as bytes (a fifth of the parsed size).
    """

    type: str
    object: dict[str, Any]
    raw: bytes | None = None


class Unreachable(Exception):
    """Raised when no answer came; `sent` is whether the server may have acted."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class StreamRefused(Exception):
    """The server answered the watch with an HTTP error before its first line."""

    def __init__(
        self, status: int, message: str, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class StreamSilent(Exception):
    """Raised when no byte came for longer than the caller is willing to wait."""


class StreamUndecodable(Exception):
    """A line of the watch was not JSON, or not a watch event."""


class Asked(Protocol):
    """An API that answers requests: all that a reader needs of it."""

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Answer one request. Raises `Unreachable` when no answer came."""
        ...


class Api(Protocol):
    """A Kubernetes API, real or simulated."""

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Answer one request. Raises `Unreachable` when no answer came."""
        ...

    def watch(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[WatchLine, None]:
        """Follow one watch until the server ends it.

        Raises `StreamRefused`, `StreamSilent`, `StreamUndecodable`, or
        `Unreachable` when the connection cannot be made or breaks.
        """
        ...

    async def close(self) -> None:
        """Release connections and files."""
        ...


@runtime_checkable
class Logs(Protocol):
    """An API that also shows the logs of pods."""

    def follow(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        """Read the bytes of a log until the server ends it.

        Raises `StreamRefused`, `StreamSilent`, or `Unreachable` when the connection
        cannot be made or breaks.
        """
        ...
