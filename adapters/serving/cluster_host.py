"""A live simulated cluster: it answers requests, serves watches, and its time runs.

It uses no sockets: any object that takes frames can follow a watch or a log.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from logging import getLogger
from typing import Any, Protocol

import orjson

from fnop.effects.structs import replace
from fnop.interpreters import cluster as simulated
from fnop.interpreters.cluster import (
    Ask,
    Cluster,
    LogFollowed,
    Question,
    Replies,
    Reply,
    StoredEvent,
    Unanswered,
    unreached,
)
from fnop.interpreters.cluster.kinds.kinds import storage_of
from fnop.interpreters.cluster.requests.request import route_of
from fnop.interpreters.cluster.values.status import failure
from fnop.interpreters.runtime.clock import Clock
from fnop.interpreters.runtime.protocol import JSON, ApiRequest, ApiResponse

__all__ = [
    "Caller",
    "Follower",
    "Following",
    "Host",
    "LogFollower",
    "frame",
    "internal_error",
]

log = getLogger("fnop.cluster")

# The pause of idle controllers, and the longest pause of any.
IDLE_SECONDS, FAR_SECONDS = 0.01, 3600.0

PODS = ("", "pods")

# Calls an admission webhook.
Caller = Callable[[Question], Awaitable[Reply]]
CollectionKey = tuple[tuple[str, str], str | None]  # resource, namespace or all of them


class Follower(Protocol):
    """The reader of a watch."""

    @property
    def is_fresh(self) -> bool:
        """Whether no event has been shown yet."""

    def take(self, line: bytes) -> None:
        """Take one more event, framed; it must not block."""

    def end(self) -> None:
        """Handle the end of the watch."""


class LogFollower(Protocol):
    """The reader of a log."""

    def take(self, line: bytes) -> None:
        """Take more text, framed; it must not block."""

    def end(self) -> None:
        """Handle the end of the log."""


@dataclass(eq=False, slots=True)
class SharedWatch:
    """The common view of equal watches; each event is encoded once for all of them."""

    request: ApiRequest
    opened: Cluster
    followers: dict[Follower, None] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Following:
    """An open watch: its backlog, and the way to end it."""

    request: ApiRequest
    backlog: Iterator[StoredEvent]
    place: CollectionKey
    key: tuple[Any, ...]


def frame(type: str, obj: dict[str, Any]) -> bytes:
    """One event as a line of JSON in an HTTP chunk of its own.

    >>> frame("ADDED", {})
    b'1d\\r\\n{"type":"ADDED","object":{}}\\n\\r\\n'
    """
    text = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
    return _chunk(b'{"type":"%s","object":%s}\n' % (type.encode(), text))


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


_OLD = re.compile(r"(/api/[^/]+|/apis/[^/]+/[^/]+)/watch(/.+)")


def place_of(path: str) -> CollectionKey | None:
    """The subject of a watch: a resource, and a namespace (or all namespaces).

    >>> place_of("/api/v1/watch/namespaces/n/pods")
    (('', 'pods'), 'n')
    """
    old = _OLD.fullmatch(path)
    route = route_of(old[1] + old[2] if old else path)
    if route is None:
        return None
    return (storage_of(route.group, route.plural), route.namespace)


class Host:
    """The owner of the cluster's value, which changes only here, in an event loop.

    Without a `call`, admission webhooks are unreachable.
    """

    def __init__(
        self, cluster: Cluster, clock: Clock, call: Caller | None = None
    ) -> None:
        self.cluster = cluster
        self._clock = clock
        self._call = call
        self._views: dict[CollectionKey, dict[tuple[Any, ...], SharedWatch]] = {}
        self._logs: dict[LogFollower, LogFollowed] = {}
        self._shown = cluster  # the state that the readers of logs have seen
        self._registry = cluster.registry
        self._wake: asyncio.Handle | None = None

    @property
    def now(self) -> float:
        """The wall clock in Unix seconds."""
        return self._clock.now().wall

    @property
    def watches(self) -> int:
        """The number of open watches."""
        return sum(
            len(view.followers)
            for views in self._views.values()
            for view in views.values()
        )

    def answer(self, request: ApiRequest) -> ApiResponse | asyncio.Task[ApiResponse]:
        """Answer a request other than a watch; first call its webhooks, if any."""
        moment = self.now
        if self._call is None:
            return self._answered(request, moment, unreached)
        replies = Replies()
        try:
            return self._answered(request, moment, replies)
        except Unanswered as problem:
            reviewed = self._answer_with_reviews(
                request, moment, replies, self._call, problem.question
            )
            return asyncio.get_running_loop().create_task(reviewed)

    async def _answer_with_reviews(
        self,
        request: ApiRequest,
        moment: float,
        replies: Replies,
        call: Caller,
        question: Question,
    ) -> ApiResponse:
        """Call webhook after webhook until the request can be answered.

        The host answers other requests meanwhile. An answer always refers to the
        present cluster.
        """
        while True:
            replies.learn(question, await call(question))
            try:
                return self._answered(request, moment, replies)
            except Unanswered as problem:
                question = problem.question

    def _answered(self, request: ApiRequest, moment: float, ask: Ask) -> ApiResponse:
        try:
            self.cluster, response, events = simulated.answer(
                self.cluster, request, moment, ask
            )
        except Unanswered:
            raise
        except Exception:
            log.exception("%s %s was not answered", request.method, request.path)
            return internal_error()
        if events:
            self._handle_events(events)
        return response

    # -------------------------------------------------------------- watches

    def follow(
        self, request: ApiRequest, follower: Follower
    ) -> ApiResponse | Following:
        """Open a watch; return its backlog, or the reason for its refusal.

        The follower gets all later events until it is forgotten.
        """
        try:
            found = simulated.backlog(self.cluster, request, self.now)
        except Exception:
            log.exception("the watch of %s was not answered", request.path)
            return internal_error()
        place = place_of(request.path)
        if isinstance(found, ApiResponse):
            return found
        assert place is not None  # it has a backlog
        shaping = tuple(pair for pair in request.query if self._shapes(*pair))
        key = (request.path, request.accept, shaping)
        view = self._views.setdefault(place, {}).get(key)
        if view is None:
            view = self._views[place][key] = SharedWatch(
                replace(request, query=shaping), self.cluster
            )
        view.followers[follower] = None
        return Following(request, iter(found), place, key)

    def _shapes(self, name: str, value: str) -> bool:
        """Whether a parameter of a watch affects how it shows later events."""
        if name == "resourceVersion":  # a future one does
            return value.isdecimal() and int(value) > self.cluster.version
        return name not in _PASSING

    def forget(self, following: Following, follower: Follower) -> None:
        """Remove a watch without a reader."""
        views = self._views.get(following.place, {})
        view = views.get(following.key)
        if view is None or follower not in view.followers:
            return
        del view.followers[follower]
        if not view.followers:
            del views[following.key]
            if not views:
                del self._views[following.place]

    def bookmark(self, following: Following) -> bytes | None:
        """The version that the watch has reached, if it asks for bookmarks."""
        event = simulated.bookmark(self.cluster, following.request, self.now)
        return None if event is None else frame(event.type, event.object)

    def _publish(self, events: Iterable[StoredEvent]) -> None:
        for event in events:
            lines: dict[tuple[str, int], bytes] = {}
            for place in {(event.resource, event.namespace), (event.resource, None)}:
                for view in [*self._views.get(place, {}).values()]:
                    self._show(view, event, lines)

    def _show(
        self, view: SharedWatch, event: StoredEvent, lines: dict[tuple[str, int], bytes]
    ) -> None:
        request = view.request
        seen = simulated.seen_by(request, event, self.cluster.registry)
        if seen is None:
            return
        if request.accept != JSON:
            self._show_formed(view, seen)
            return
        # An event looks the same in most views: then it is the same object.
        key = (seen.type, id(seen.object))
        line = lines.get(key)
        if line is None:
            line = frame(seen.type, seen.object)
            if seen.object is event.object:
                lines[key] = line
        for follower in [*view.followers]:
            follower.take(line)

    def _show_formed(self, view: SharedWatch, seen: StoredEvent) -> None:
        """Show tables and the like; a stream's first table has the headers."""
        # A follower that has taken a line is no longer fresh: group them before.
        groups = [
            (headed, [each for each in view.followers if each.is_fresh == headed])
            for headed in (True, False)
        ]
        for headed, followers in groups:
            if not followers:
                continue
            shown = simulated.presented(
                self.cluster, view.request, seen, self.now, headed=headed
            )
            if shown is not None:
                line = frame(shown.type, shown.object)
                for follower in followers:
                    follower.take(line)

    def _end_unserved(self) -> None:
        """End the watches of a kind whose definition is deleted, remade or changed."""
        for views in [*self._views.values()]:
            for view in [*views.values()]:
                if not simulated.is_served(self.cluster, view.request, view.opened):
                    for follower in [*view.followers]:
                        follower.end()

    # ----------------------------------------------------------------- logs

    def follow_log(
        self, request: ApiRequest, follower: LogFollower
    ) -> ApiResponse | None:
        """Open a log, or return the refusal. `show_log` shows the existing lines."""
        try:
            found = simulated.log_followed(self.cluster, request, self.now)
        except Exception:
            log.exception("the log of %s was not answered", request.path)
            return internal_error()
        if isinstance(found, ApiResponse):
            return found
        self._logs[follower] = found
        return None

    def show_log(self, follower: LogFollower) -> None:
        """Show a follower the text that it has not seen, and end it with its log."""
        followed = self._logs.get(follower)
        if followed is None:
            return  # it has been cut off
        text, followed, is_over = simulated.log_more(self.cluster, followed)
        self._logs[follower] = followed
        if text:
            follower.take(_chunk(text.encode(errors="replace")))
        if is_over and follower in self._logs:
            follower.end()

    def forget_log(self, follower: LogFollower) -> None:
        """Remove the reader of a log."""
        self._logs.pop(follower, None)

    def write_log(
        self, namespace: str, name: str, container: str | None, text: str
    ) -> None:
        """Let a container write lines.  Raises ValueError if it cannot."""
        self.cluster = simulated.logged(
            self.cluster, namespace, name, container, text, self.now
        )
        self._show_logs()

    def _show_logs(self) -> None:
        """Show the readers of logs their changes."""
        before, now = self._shown, self.cluster
        self._shown = now
        if now.logs is before.logs and now.shelves.get(PODS) is before.shelves.get(
            PODS
        ):
            return
        for follower in [*self._logs]:
            self.show_log(follower)

    # ---------------------------------------------------------- controllers

    def start(self) -> None:
        """Let the controllers process the objects that exist already."""
        self._schedule()

    def stop(self) -> None:
        """Stop the time."""
        if self._wake is not None:
            self._wake.cancel()

    def _handle_events(self, events: tuple[StoredEvent, ...]) -> None:
        self._publish_events(events)
        self._schedule()

    def _publish_events(self, events: tuple[StoredEvent, ...]) -> None:
        if self._views:
            self._publish(events)
        if self.cluster.registry is not self._registry:
            self._registry = self.cluster.registry
            self._end_unserved()
        self._show_logs()

    def _schedule(self, at_least: float = 0.0) -> None:
        """Schedule the controllers' turns, with requests in between."""
        due = simulated.due(self.cluster)
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if due is None:
            return
        delay = max(due - self.now, at_least)
        loop = asyncio.get_running_loop()
        if delay > 0:
            self._wake = loop.call_later(min(delay, FAR_SECONDS), self._tick)
        else:
            self._wake = loop.call_soon(self._tick)

    def _tick(self) -> None:
        self._wake = None
        try:
            self.cluster, events = simulated.tick(self.cluster, self.now)
        except Exception:
            log.exception("the controllers failed")
            return
        if events:
            self._publish_events(events)
        else:
            self._show_logs()  # containers write without changing any object
        # A controller that is due but does nothing must not keep the loop busy.
        self._schedule(0.0 if events else IDLE_SECONDS)


# The query parameters that limit a watch; they do not change its content.
_PASSING = frozenset(
    (
        "watch",
        "timeoutSeconds",
        "allowWatchBookmarks",
        "resourceVersionMatch",
        "sendInitialEvents",
        "limit",
    )
)


def internal_error() -> ApiResponse:
    """500, for errors in the server."""
    message = "Internal error occurred: see the log of fnop cluster"
    return failure(500, "InternalError", message).response
