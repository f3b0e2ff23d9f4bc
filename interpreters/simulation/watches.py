"""Watches of an operator in the simulated cluster, and the inbox for their lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.seam.commands import ListPage, Watch
from fnop.core.seam.inputs import (
    Bookmark,
    Input,
    ListDone,
    ListItem,
    StreamEnded,
    WatchEvent,
)
from fnop.core.values.body import Body
from fnop.effects.structs import replace
from fnop.interpreters import cluster as simulated
from fnop.interpreters.runtime.answers import (
    BodyOf,
    page_inputs,
    refused,
    watch_input,
)
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, User
from fnop.interpreters.runtime.requests import watch_request

__all__ = ["Delivery", "Inbox", "SimulatedWatches"]

_LINES = (WatchEvent, Bookmark, ListItem, ListDone)


class Delivery(NamedTuple):
    """An input on its way to the operator.

    `source` is the key of the kind whose listing or watch it belongs to, or "" for
    answers, alarms and signals. Inputs of one source arrive in their order.
    """

    source: str
    input: Input


class Inbox(deque[Delivery]):
    """The inputs on their way to the operator, in the order of their arrival."""

    def add(self, input: Input, source: str = "") -> None:
        """Add an input at the end."""
        self.append(Delivery(source, input))

    def take(self, place: int) -> Input:
        """Remove the input at this position, and return it."""
        found = self[place].input
        del self[place]
        return found

    def lose_lines(self, stream: int) -> None:
        """Remove the lines of a watch."""
        rest = [each for each in self if not _is_line_of(each.input, stream)]
        self.clear()
        self.extend(rest)


def _is_line_of(input: Input, stream: int) -> bool:
    return isinstance(input, _LINES) and input.stream == stream


class _Watched(Struct, frozen=True):
    """An open watch: its request, and the cluster at the last look at its kind.

    Its `initial` lines are the items of a list.
    """

    request: ApiRequest
    opened: simulated.Cluster
    resource: Resource
    initial: bool


class SimulatedWatches:
    """The listings and watches of one process; the inbox gets their lines."""

    __slots__ = ("_inbox", "_kinds", "_open", "body_of")

    def __init__(self, inbox: Inbox, body_of: BodyOf = Body) -> None:
        self._inbox = inbox
        # Makes the body of an object that the cluster has stored.
        self.body_of = body_of
        self._open: dict[int, _Watched] = {}
        # The kinds of all listings and watches, by their keys.
        self._kinds: dict[int, str] = {}

    def fork(self, inbox: Inbox) -> SimulatedWatches:
        """A copy that continues independently of this one."""
        fork = SimulatedWatches(inbox, self.body_of)
        fork._open, fork._kinds = {**self._open}, {**self._kinds}
        return fork

    @property
    def kinds(self) -> Iterable[str]:
        """The kinds that the operator watches, by their keys."""
        return {self._kinds[each] for each in self._open}

    @property
    def sources(self) -> Iterable[str]:
        """The kinds that the operator lists or watches, by their keys."""
        return {*self._kinds.values()}

    def list(self, command: ListPage, response: ApiResponse) -> None:
        """Send the items of a page of a list."""
        source = self._kinds[command.stream] = command.resource.key
        for each in page_inputs(command, response, body_of=self.body_of):
            self._inbox.add(each, source)

    def open(
        self,
        command: Watch,
        cluster: simulated.Cluster,
        clock: VirtualClock,
        user: User | None = None,
    ) -> None:
        """Open a watch, and send the lines that the cluster already has."""
        request = watch_request(command)
        if user is not None:
            request = replace(request, user=user)
        found = simulated.backlog(cluster, request)
        if isinstance(found, ApiResponse):
            self.reject(command, refused(command.stream, found))
            return
        self._kinds[command.stream] = command.resource.key
        self._open[command.stream] = _Watched(
            *(request, cluster, command.resource),
            initial=not command.version,
        )
        for event in found:
            self._send_line(command.stream, event, cluster, clock)

    def reject(self, command: ListPage | Watch, end: StreamEnded) -> None:
        """End a listing or a watch at once."""
        source = self._kinds[command.stream] = command.resource.key
        self._inbox.add(end, source)

    def close(self, stream: int) -> None:
        """Forget a listing or a watch that the operator closes."""
        self._open.pop(stream, None)
        self._kinds.pop(stream, None)

    def clear(self) -> None:
        """Forget all listings and watches."""
        self._open.clear()
        self._kinds.clear()

    def breaks(
        self, source: str, status: int | None = None, reason: str = "eof"
    ) -> None:
        """Break the watches of a kind; their undelivered lines are lost.

        With a `status` such as 410 (Gone) the server ends them with that error.
        Otherwise the connection closes in order, or is lost ("unreachable").
        """
        for stream in [each for each in self._open if self._kinds[each] == source]:
            del self._open[stream]
            self._inbox.lose_lines(stream)
            if status is None:
                end = StreamEnded(stream, reason)
            else:
                end = StreamEnded(stream, "refused", status, "too old resource version")
            self._inbox.add(end, source)

    def deliver(
        self,
        events: Iterable[simulated.StoredEvent],
        cluster: simulated.Cluster,
        clock: VirtualClock,
    ) -> None:
        """Send the changes of a cluster to the watches that see them."""
        registry = cluster.registry
        for event in events:
            for stream, watched in tuple(self._open.items()):
                seen = simulated.seen_by(watched.request, event, registry)
                if seen is not None:
                    self._send_line(stream, seen, cluster, clock)
        self._end_unserved(cluster)

    def _end_unserved(self, cluster: simulated.Cluster) -> None:
        """End the watches of kinds whose definition is deleted, or has been written."""
        for stream, watched in tuple(self._open.items()):
            request, opened = watched.request, watched.opened
            if opened.registry is cluster.registry:
                continue
            if simulated.is_served(cluster, request, opened):
                self._open[stream] = replace(watched, opened=cluster)
            else:
                del self._open[stream]
                self._inbox.add(StreamEnded(stream, "eof"), self._kinds[stream])

    def _send_line(
        self,
        stream: int,
        event: simulated.StoredEvent,
        cluster: simulated.Cluster,
        clock: VirtualClock,
    ) -> None:
        """Send a line of a watch; the line that ends it is the last."""
        watched = self._open.get(stream)
        if watched is None:
            return
        wall, request = clock.now().wall, watched.request
        shown = simulated.presented(cluster, request, event, wall)
        if shown is None:
            return
        line = watch_input(
            *(stream, event.type, shown.object, None, watched.resource),
            initial=watched.initial,
            body_of=self.body_of,
        )
        if isinstance(line, StreamEnded):
            del self._open[stream]
        elif isinstance(line, ListDone):
            self._open[stream] = replace(watched, initial=False)
        self._inbox.add(line, self._kinds[stream])
