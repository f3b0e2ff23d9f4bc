"""An operator's lists, watches, logs and documents of discovery in a simulation.

The API server may be away for a while: it then answers nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Protocol

from fnop.core.api.discovery import ROOTS
from fnop.core.seam.commands import (
    CloseStream,
    Fetch,
    FollowLog,
    ListPage,
    MoreLines,
    Watch,
)
from fnop.core.seam.inputs import Answered, StreamEnded
from fnop.effects import Unreachable
from fnop.effects.structs import replace
from fnop.interpreters import cluster as simulated
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, User
from fnop.interpreters.runtime.requests import fetch_request, list_request
from fnop.interpreters.simulation.documents import fetched
from fnop.interpreters.simulation.logs import SimulatedLogs, source_of
from fnop.interpreters.simulation.watches import Inbox, SimulatedWatches

__all__ = ["AWAY", "Reads"]

AWAY = Unreachable("the API server does not answer")

Read = Fetch | ListPage | Watch | FollowLog | MoreLines | CloseStream


class Run(Protocol):
    """The parts of a simulated run that its reads need."""

    inbox: Inbox
    clock: VirtualClock
    machine: Machine
    account: User | None

    @property
    def cluster(self) -> simulated.Cluster:
        """The cluster that is read."""
        ...

    def request(self, request: ApiRequest) -> ApiResponse:
        """Send a request to the cluster."""
        ...


class Reads:
    """The open reads of one process; the run's inbox gets what they read."""

    __slots__ = ("_back_at", "_run", "_surveyed", "logs", "watches")

    def __init__(self, run: Run) -> None:
        # A run owns this object, and is freed at once when its last user drops it.
        self._run: Run = weakref.proxy(run)
        self.watches = SimulatedWatches(run.inbox)
        self.logs = SimulatedLogs(run.inbox.add)
        # The time until which the API server does not answer the operator.
        self._back_at = 0.0
        # The kinds that the cluster had when the operator last looked for them.
        self._surveyed: object = None

    def fork(self, run: Run) -> Reads:
        """The same reads for a run that continues independently."""
        fork = Reads.__new__(Reads)
        fork._run = weakref.proxy(run)
        fork.watches = self.watches.fork(run.inbox)
        fork.logs = self.logs.fork(run.inbox.add)
        fork._back_at, fork._surveyed = self._back_at, self._surveyed
        return fork

    @property
    def knows_kinds(self) -> bool:
        """Whether the operator has looked for kinds since they last changed."""
        return self._run.cluster.registry is self._surveyed

    # ------------------------------------------------------------ the commands

    def execute(self, command: Read) -> None:
        """Begin, continue or end a read."""
        match command:
            case Fetch():
                self._fetch(command)
            case ListPage():
                self._list(command)
            case Watch():
                self._watch(command)
            case FollowLog():
                self._follow_log(command)
            case MoreLines(stream):
                self.logs.go_on(stream, self._run.clock.now())
            case CloseStream(stream):
                self.logs.close(stream)
                self.watches.close(stream)

    def _fetch(self, command: Fetch) -> None:
        if command.path in ROOTS:
            self._surveyed = self._run.cluster.registry
        if self.is_away:
            self._run.inbox.add(Answered(command.id, AWAY))
            return
        response = self._run.request(fetch_request(command))
        self._run.inbox.add(Answered(command.id, fetched(command.path, response)))

    def _list(self, command: ListPage) -> None:
        if self.is_away:
            self.watches.reject(command, StreamEnded(command.stream, "unreachable"))
            return
        request = list_request(command)
        if self._run.account is not None:
            request = replace(request, user=self._run.account)
        self.watches.list(command, self._run.request(request))

    def _watch(self, command: Watch) -> None:
        if self.is_away:
            self.watches.reject(command, StreamEnded(command.stream, "unreachable"))
            return
        run = self._run
        self.watches.open(command, run.cluster, run.clock, run.account)

    def _follow_log(self, command: FollowLog) -> None:
        run = self._run
        if self.is_away:
            end = StreamEnded(command.stream, "unreachable")
            run.inbox.add(end, source_of(command))
            return
        self.logs.follow(command, run.machine.program, run.cluster, run.clock.now())

    # ------------------------------------------------------- changes, and outages

    def deliver(self, events: Iterable[simulated.StoredEvent]) -> None:
        """Send the changes of the cluster to the reads that see them."""
        run = self._run
        self.watches.deliver(events, run.cluster, run.clock)
        if self.logs:
            self.logs.feed(run.cluster, run.clock.now())

    def clear(self) -> None:
        """Forget all reads: no operator follows them any longer."""
        self.watches.clear()
        self.logs.clear()

    def restart_server(self) -> None:
        """Break all reads, as the end of the API server's process does."""
        for source in sorted(self.watches.sources):
            self.watches.breaks(source, reason="unreachable")
        self.logs.breaks(self._run.clock.now())

    def stop_server(self, seconds: float) -> None:
        """Make the API server not answer the operator for this virtual time."""
        self._back_at = self._run.clock.elapsed + seconds
        self.restart_server()

    @property
    def is_away(self) -> bool:
        """Whether the API server does not answer the operator now."""
        return self._run.clock.elapsed < self._back_at
