"""The list and watch of one collection, as a state machine.

A stream lists a collection page by page, then watches it from the resourceVersion of
the list. It never ends by itself. After any end it resumes the watch from the last
version, or relists if that version has become unusable.

A server whose storage was restored from a backup counts its versions from there again.
A watch from a version that the server has yet to reach is open and silent. So a stream
that broke because the server was unavailable is `doubted`. Before fnop resumes it, it
lists one object to find the server's present version.

If the settings say so, the listing is `streamed`: a watch begins with the existing
objects, and continues with their changes. fnop asks a server without such watches for
pages.

Guarantees: an object that vanished while no watch was open is noticed at the end of the
next listing. Assumptions: within one stream the server sends changes in their order
(Kubernetes API concepts: "Efficient detection of changes").
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from fnop.core.api.resources import Resource, Selectors
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import ListPage, Watch
from fnop.core.seam.inputs import StreamEnded
from fnop.core.values.backoff import backoff_seconds, heeding
from fnop.core.values.body import is_behind
from fnop.core.values.now import Now
from fnop.effects.structs import replace

__all__ = [
    "Stream",
    "StreamKey",
    "StreamPhase",
    "StreamPurpose",
    "answered_version",
    "ended",
    "heard_at",
    "lacks_initial_events",
    "listed",
    "opened",
    "page",
]

StreamKey = tuple[str, str, str]  # resource key, namespace ("" for all), purpose

# If a watch ends this many times in a row within a second, without a line, its version
# cannot be served. The server does not say so.
_INSTANT = 1.0
_INSTANT_ENDS_MAX = 3
# A watch that was open for this many seconds was healthy: earlier failures are
# forgotten. A watch that has had a line may still be unhealthy: it may break off there
# again and again.
_WELL = 5.0
# After this many refusals in a row the version counts as unusable, whatever the server
# says. These statuses do not count: they say that the operator may not watch, or must
# come later.
_REFUSALS_MAX = 5
_NO_FAULT_OF_VERSION = (401, 403, 408, 429, 503, 504)
# The same for a streamed listing. A server that waits in vain until its cache is fresh
# enough answers 504.
_NO_FAULT_OF_STREAMING = (401, 403, 404, 408, 410, 429, 503)
# In the message of servers whose etcd has no progress notifications (HTTP 500).
_NO_PROGRESS = "required storage feature"


class StreamPhase(Enum):
    """The state of a stream."""

    LISTING = "listing"
    WATCHING = "watching"
    WAITING = "waiting"  # for the end of a backoff
    PAUSED = "paused"  # the operator is frozen


class StreamPurpose(Enum):
    """The reason why a collection is followed."""

    OBJECTS = ""  # for handlers
    KINDS = "kinds"  # to notice new and removed definitions
    NAMESPACES = "namespaces"  # to match patterns with
    PEERS = "peers"  # to see other operators, in peering objects


class Stream(Struct, frozen=True):
    """One collection that is listed and watched.

    `id` is the number of the present listing or watch; inputs with another id are late.
    `begun` is the step of the present listing's beginning. `listings` counts the
    listings that were begun, and `lists` the listings that were completed. The
    `failures` in a row, and whether the version has `expired`, are kept until a watch
    has been open for a while.
    """

    resource: Resource
    namespace: str | None
    selectors: Selectors = Selectors()
    id: int = 0
    phase: StreamPhase = StreamPhase.WAITING
    version: str | None = None
    begun: int = 0
    listings: int = 0
    lists: int = 0
    opened_at: float = 0.0
    heard: bool = False
    instant_ends: int = 0
    failures: int = 0
    expired: bool = False
    due: float = 0.0
    refusal: str | None = None
    # `before` is the version before the present listing; with `doubted` the server may
    # be behind the present version.
    before: str | None = None
    doubted: bool = False
    purpose: StreamPurpose = StreamPurpose.OBJECTS
    # The names in the present listing so far, if only names matter.
    names: frozenset[str] = frozenset()
    # No handler needs more of the objects than their metadata.
    metadata_only: bool = False
    # The present listing is the beginning of a watch; or the server does not support
    # that.
    streamed: bool = False
    in_pages: bool = False

    @property
    def key(self) -> StreamKey:
        return self.resource.key, self.namespace or "", self.purpose.value

    @property
    def label(self) -> str:
        """The kind and, unless it covers the whole cluster, the namespace."""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.label}{where}"

    @property
    def is_asking(self) -> bool:
        """Whether the present listing only asks for the server's present version."""
        return self.phase is StreamPhase.LISTING and self.version is not None


def opened(
    stream: Stream, id: int, step: int, now: Now, settings: Settings
) -> tuple[Stream, ListPage | Watch]:
    """Continue: watch from the stored version, or list without one."""
    phase = StreamPhase.WATCHING
    if stream.version is None or stream.doubted:
        phase = StreamPhase.LISTING
    after = replace(
        stream, id=id, phase=phase, opened_at=now.mono, heard=False, streamed=False
    )
    if stream.version is not None:
        if stream.doubted:
            return after, page(after, limit=1)
        return after, _watch_of(after, stream.version, settings)
    streamed = settings.initial_streaming and not stream.in_pages
    listing = replace(
        after,
        begun=step,
        listings=stream.listings + 1,
        names=frozenset(),
        streamed=streamed,
    )
    if streamed:
        return listing, _watch_of(listing, "", settings)
    return listing, page(listing, settings.list_page_limit)


def page(stream: Stream, limit: int, token: str | None = None) -> ListPage:
    """The command to list the first page, or the page of a token."""
    return ListPage(
        stream.id,
        stream.resource,
        stream.namespace,
        limit,
        token,
        stream.selectors,
        stream.metadata_only,
    )


def _watch_of(stream: Stream, version: str, settings: Settings) -> Watch:
    return Watch(
        stream.id,
        stream.resource,
        stream.namespace,
        version,
        settings.watch_timeout_seconds,
        settings.watch_silence_seconds,
        stream.selectors,
        stream.metadata_only,
    )


def listed(stream: Stream, version: str) -> Stream:
    """Return the stream after a complete listing: it watches from that version."""
    return replace(
        stream,
        phase=StreamPhase.WATCHING if stream.streamed else StreamPhase.WAITING,
        version=version,
        lists=stream.lists + 1,
        due=0.0,
        refusal=None,
        before=None,
    )


def answered_version(stream: Stream, version: str) -> Stream:
    """Return the stream after the server's version is known: resumed, or relisted.

    It relists if the server's version is older than the stream's own.

    >>> pods = Resource("", "v1", "pods", "Pod")
    >>> answered_version(Stream(pods, None, version="7", doubted=True), "9").version
    '7'
    >>> older = answered_version(Stream(pods, None, version="7", doubted=True), "5")
    >>> older.version is None
    True
    """
    return replace(
        stream,
        phase=StreamPhase.WAITING,
        version=None if is_behind(version, stream.version) else stream.version,
        doubted=False,
        due=0.0,
    )


def heard_at(stream: Stream, version: str) -> Stream:
    """Return the stream after a watch line: it will resume from this version."""
    return replace(stream, version=version, heard=True, instant_ends=0)


def ended(stream: Stream, end: StreamEnded, now: Now, jitter: float) -> Stream:
    """Return the stream after an end: it resumes or relists, at once or with backoff.

    410 means that the version is too old to resume from. After an undecodable line the
    stream relists, since the same line would come again.
    """
    is_watching = stream.phase is StreamPhase.WATCHING
    watched = now.mono - stream.opened_at if is_watching else 0.0
    was_well = watched >= _WELL
    instant = is_watching and end.reason == "eof" and watched < _INSTANT
    instant_ends = stream.instant_ends + 1 if instant and not stream.heard else 0
    failed = instant or end.reason not in ("eof", "silent")
    before = 0 if was_well else stream.failures
    failures = before + 1 if failed else 0
    expired, was_expired = end.status == 410, stream.expired and not was_well
    # An expired version is not a server failure: relist at once, but not in a loop.
    at_once = not failed or (expired and not was_expired)
    wait = 0.0 if at_once else backoff_seconds(failures, jitter)
    ended = replace(
        stream,
        phase=StreamPhase.WAITING,
        failures=failures,
        expired=expired or was_expired,
        instant_ends=instant_ends % _INSTANT_ENDS_MAX,
        due=now.mono + heeding(end.retry_after_seconds, wait),
        refusal=end.message if end.status in (401, 403) else None,
    )
    if _must_relist(stream, end, failures, instant_ends):
        last = stream.version or stream.before
        return replace(ended, version=None, before=last, doubted=False)
    return replace(ended, before=None, doubted=stream.doubted or _was_away(end))


def _must_relist(
    stream: Stream, end: StreamEnded, failures: int, instant_ends: int
) -> bool:
    """Whether the stream lists again instead of resuming from its version."""
    return not stream.is_asking and (
        stream.phase is StreamPhase.LISTING
        or end.reason == "undecodable"
        or instant_ends >= _INSTANT_ENDS_MAX
        or (end.reason == "refused" and _blames_version(end.status, failures))
    )


def lacks_initial_events(stream: Stream, end: StreamEnded) -> bool:
    """Whether a streamed listing shows that the server has no streaming lists.

    A server that knows them, but has them turned off, refuses them as invalid. Older
    servers refuse the accompanying option, or ignore both and never end the listing. If
    they fail for another reason, such as an old etcd, they do so again and again.
    """
    if not (stream.streamed and stream.phase is StreamPhase.LISTING):
        return False
    if end.reason != "refused":
        return end.reason in ("eof", "silent")
    if end.status in (400, 422) or _NO_PROGRESS in end.message:
        return True
    is_failing = end.status not in _NO_FAULT_OF_STREAMING
    return is_failing and stream.failures + 1 >= _REFUSALS_MAX


def _was_away(end: StreamEnded) -> bool:
    """Whether the server was unavailable or failing: its storage may have changed."""
    return end.reason == "unreachable" or (end.status or 0) >= 500


def _blames_version(status: int | None, failures: int) -> bool:
    """Whether to relist after a refused watch, since its version may be the reason."""
    if status in _NO_FAULT_OF_VERSION:
        return False
    said_so = status is not None and 400 <= status < 500
    return said_so or failures >= _REFUSALS_MAX
