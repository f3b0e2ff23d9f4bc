"""A simulated cluster that lives: it answers, its watches follow, its time goes on.

No sockets here: who follows a watch is anybody that takes frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from logging import getLogger
from typing import Any, Protocol

import orjson

from fnop.interpreters import cluster as simulated
from fnop.interpreters.clock import Clock
from fnop.interpreters.cluster import Cluster, StoredEvent
from fnop.interpreters.cluster.kinds import storage_of
from fnop.interpreters.cluster.request import route_of
from fnop.interpreters.cluster.status import failure
from fnop.interpreters.protocol import ApiRequest, ApiResponse

__all__ = ["Follower", "Following", "Host", "frame", "internal_error", "is_watch"]

log = getLogger("fnop.cluster")

DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
# Work of controllers that is not due at a known moment is looked after this often.
TICK_SECONDS = 0.5

Place = tuple[tuple[str, str], str | None]  # resource, namespace or all of them


class Follower(Protocol):
    """Who reads a watch."""

    def take(self, line: bytes) -> None:
        """One more event, framed; it must not block."""

    def end(self) -> None:
        """The watch is over."""


@dataclass(eq=False, slots=True)
class View:
    """What equal watches show; each event is made ready once for all of them."""

    request: ApiRequest
    followers: dict[Follower, None] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Following:
    """An open watch: what it begins with, and how it ends."""

    request: ApiRequest
    backlog: Iterator[bytes]
    place: Place
    key: tuple[Any, ...]


def frame(type: str, obj: dict[str, Any]) -> bytes:
    """One event as a line of JSON in an HTTP chunk of its own.

    >>> frame("ADDED", {})
    b'1d\\r\\n{"type":"ADDED","object":{}}\\n\\r\\n'
    """
    line = b'{"type":"%s","object":%s}\n' % (type.encode(), orjson.dumps(obj))
    return b"%x\r\n%s\r\n" % (len(line), line)


def is_watch(request: ApiRequest) -> bool:
    """Whether a request asks for a watch: any value but 0 and false says so.

    >>> is_watch(ApiRequest("GET", "/api/v1/pods", (("watch", "1"),)))
    True
    """
    if request.method != "GET":
        return False
    # Go: Convert_Slice_string_To_bool; the first value of a name counts.
    said = next((value for name, value in request.query if name == "watch"), "0")
    return said.lower() not in ("0", "false") or is_old_watch(request.path)


@lru_cache(maxsize=1024)
def is_old_watch(path: str) -> bool:
    """The paths that are watches by themselves, as of old.

    >>> is_old_watch("/api/v1/watch/pods"), is_old_watch("/api/v1/pods/watch")
    (True, False)
    """
    parts = path.split("/", 5)
    return "watch" in (parts[3:4] if parts[1] == "api" else parts[4:5])


class Host:
    """The one place where the cluster's value changes, in an event loop."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.cluster = cluster
        self._clock = clock
        self._views: dict[Place, dict[tuple[Any, ...], View]] = {}
        self._wake: asyncio.Handle | None = None

    @property
    def now(self) -> float:
        """The wall clock in Unix seconds."""
        return self._clock.now().wall

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return sum(
            len(view.followers)
            for views in self._views.values()
            for view in views.values()
        )

    def answer(self, request: ApiRequest) -> ApiResponse:
        """Answer a request that is no watch."""
        try:
            self.cluster, response, events = simulated.answer(
                self.cluster, request, self._clock.now().wall
            )
        except Exception:
            log.exception("%s %s was not answered", request.method, request.path)
            return internal_error()
        if events:
            self._written(events)
        return response

    # -------------------------------------------------------------- watches

    def follow(
        self, request: ApiRequest, follower: Follower
    ) -> ApiResponse | Following:
        """Open a watch: what it begins with, or why it is refused.

        The follower gets all later events until it is forgotten.
        """
        try:
            found = simulated.backlog(self.cluster, request)
        except Exception:
            log.exception("the watch of %s was not answered", request.path)
            return internal_error()
        if isinstance(found, ApiResponse):
            return found
        route = route_of(request.path)
        assert route is not None  # it has a backlog
        place = (storage_of(route.group, route.plural), route.namespace)
        key = (request.path, request.accept, _shaping(request.query))
        view = self._views.setdefault(place, {}).setdefault(key, View(request))
        view.followers[follower] = None
        lines = (frame(event.type, event.object) for event in found)
        return Following(request, lines, place, key)

    def forget(self, following: Following, follower: Follower) -> None:
        """Nobody reads this watch any more."""
        views = self._views.get(following.place, {})
        view = views.get(following.key)
        if view is None or view.followers.pop(follower, self) is self:
            return
        if not view.followers:
            del views[following.key]
            if not views:
                del self._views[following.place]

    def _publish(self, events: Iterable[StoredEvent]) -> None:
        for event in events:
            lines: dict[tuple[str, int], bytes] = {}
            for place in {(event.resource, event.namespace), (event.resource, None)}:
                for view in [*self._views.get(place, {}).values()]:
                    self._show(view, event, lines)
            if event.resource == DEFINITIONS and event.type == "DELETED":
                self._end_unserved()

    def _show(
        self, view: View, event: StoredEvent, lines: dict[tuple[str, int], bytes]
    ) -> None:
        seen = simulated.seen_by(view.request, event)
        if seen is None:
            return
        # An event looks the same to most views: it is the same object then.
        key = (seen.type, id(seen.object))
        line = lines.get(key)
        if line is None:
            line = frame(seen.type, seen.object)
            if seen.object is event.object:
                lines[key] = line
        for follower in [*view.followers]:
            follower.take(line)

    def _end_unserved(self) -> None:
        """A definition is gone, and with it the watches of its kind."""
        for views in [*self._views.values()]:
            for view in [*views.values()]:
                if not self._is_served(view.request.path):
                    for follower in [*view.followers]:
                        follower.end()

    def _is_served(self, path: str) -> bool:
        route = route_of(path)
        if route is None:
            return False
        place = (route.group, route.version, route.plural)
        return place in self.cluster.registry.by_path

    # ---------------------------------------------------------- controllers

    def start(self) -> None:
        """Let the controllers look at what is there already."""
        self._schedule()

    def stop(self) -> None:
        """Let time stand still."""
        if self._wake is not None:
            self._wake.cancel()

    def _written(self, events: tuple[StoredEvent, ...]) -> None:
        if self._views:
            self._publish(events)
        self._schedule()

    def _schedule(self) -> None:
        """See to it that the controllers get their turn, requests in between."""
        delay = self._due()
        if delay is None:
            return
        if self._wake is not None:
            self._wake.cancel()
        loop = asyncio.get_running_loop()
        self._wake = (
            loop.call_later(delay, self._tick) if delay else loop.call_soon(self._tick)
        )

    def _due(self) -> float | None:
        return 0.0 if self.cluster.agenda else None

    def _tick(self) -> None:
        self._wake = None
        try:
            self.cluster, events = simulated.tick(self.cluster, self._clock.now().wall)
        except Exception:
            log.exception("the controllers failed")
            return
        if events:
            self._publish(events)
        self._schedule()


# What of a watch's query shapes its events, as opposed to where it begins and ends.
_SHAPING = ("labelSelector", "fieldSelector", "includeObject")


def _shaping(query: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in query if pair[0] in _SHAPING)


def internal_error() -> ApiResponse:
    """500, for mistakes of ours."""
    message = "Internal error occurred: see the log of fnop cluster"
    return failure(500, "InternalError", message).response
