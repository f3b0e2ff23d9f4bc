"""Log streams of an operator in the simulated cluster.

They are read as on a real one: only as far as the operator takes the lines in.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import FollowLog
from fnop.core.seam.inputs import LogLines, StreamEnded
from fnop.core.streams.log_reader import LogReader
from fnop.core.values.now import Now
from fnop.interpreters.cluster import (
    Cluster,
    LogFollowed,
    log_followed,
    log_more,
    logged,
)
from fnop.interpreters.runtime.answers import refused
from fnop.interpreters.runtime.log_readers import (
    MARK_SECONDS,
    QUIET_SECONDS,
    last_inputs,
    lines_input,
    mark_input,
    reader_of,
)
from fnop.interpreters.runtime.protocol import ApiResponse
from fnop.interpreters.runtime.requests import log_request

__all__ = ["LOG_OF", "SimulatedLogs", "can_write_log", "source_of"]

# The prefix of the sources of logs.
LOG_OF = "the log of "

Arrives = Callable[[LogLines | StreamEnded, str], None]


def source_of(command: FollowLog) -> str:
    """The source of the inputs of a log, which arrive in their order."""
    return f"{LOG_OF}{command.namespace}/{command.name}/{command.container}"


def can_write_log(
    cluster: Cluster, namespace: str, name: str, container: str | None
) -> bool:
    """Whether the container exists and runs."""
    try:
        logged(cluster, namespace, name, container, "", 0.0)
    except ValueError:
        return False
    return True


@dataclass
class _Open:
    """An open log stream; it `waits` until the last lines are taken in."""

    source: str
    reader: LogReader
    followed: LogFollowed
    waits: bool = False
    is_over: bool = False
    # The last time (monotonic) at which the operator learned the position.
    told: float = 0.0
    # The time (monotonic) at which an event of several lines is complete, if nothing
    # more comes.
    quiet_at: float | None = None


class SimulatedLogs:
    """The open log streams; `arrives` gets their inputs, each with its source."""

    def __init__(self, arrives: Arrives) -> None:
        self._arrives = arrives
        self._open: dict[int, _Open] = {}
        # The logs whose next bytes are cut off in the middle.
        self._cuts: set[str] = set()

    def fork(self, arrives: Arrives) -> SimulatedLogs:
        """A copy that continues independently of this one."""
        fork = SimulatedLogs(arrives)
        fork._open = {number: deepcopy(each) for number, each in self._open.items()}
        fork._cuts = {*self._cuts}
        return fork

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def next_at(self) -> float | None:
        """The time (monotonic) at which a waiting multi-line event is complete."""
        found = (e.quiet_at for e in self._open.values() if not e.waits)
        return min((each for each in found if each is not None), default=None)

    def follow(
        self, command: FollowLog, program: Program, cluster: Cluster, now: Now
    ) -> None:
        """Open a log."""
        stream, source = command.stream, source_of(command)
        found = log_followed(cluster, log_request(command), now.wall)
        if isinstance(found, ApiResponse):
            self._arrives(refused(stream, found), source)
            return
        reader = reader_of(command, program)
        self._open[stream] = _Open(source, reader, found, told=now.mono)
        self._feed_log(stream, cluster)
        self._open[stream].is_over |= not command.follows
        self._tell(stream, now)

    def go_on(self, stream: int, now: Now) -> None:
        """Continue with the next lines, since the last ones are taken in."""
        if stream in self._open:
            self._open[stream].waits = False
            self._tell(stream, now)

    def feed(self, cluster: Cluster, now: Now) -> None:
        """Note that containers may have written something, or have ended."""
        for stream in tuple(self._open):
            self._feed_log(stream, cluster)
            self._tell(stream, now)

    def pass_time(self, now: Now) -> None:
        """Pass on the events of several lines that are complete by now."""
        for stream, each in tuple(self._open.items()):
            if each.quiet_at is not None and each.quiet_at <= now.mono:
                self._tell(stream, now)

    def close(self, stream: int) -> None:
        """Close a log."""
        self._open.pop(stream, None)

    def clear(self) -> None:
        """Forget all streams: no operator reads them any longer."""
        self._open.clear()

    def breaks(self, now: Now, source: str | None = None) -> None:
        """Break the connections of a log, or of all."""
        for stream, each in tuple(self._open.items()):
            if source in (None, each.source):
                self._end_log(stream, "unreachable", now)

    def cut(self, source: str) -> None:
        """Cut off a log in the middle of its next bytes, and end it in order.

        The API server does the same if its connection to kubelet breaks.
        """
        self._cuts.add(source)

    def _feed_log(self, stream: int, cluster: Cluster) -> None:
        each = self._open[stream]
        if each.is_over:
            return
        text, each.followed, each.is_over = log_more(cluster, each.followed)
        if not text:
            return
        data = text.encode()
        if each.source in self._cuts:
            self._cuts.discard(each.source)
            data, each.is_over = data[: len(data) // 2], True
        each.reader.feed(data)
        each.quiet_at = None

    def _tell(self, stream: int, now: Now) -> None:
        """Emit the next lines, or the end."""
        each = self._open[stream]
        if each.waits:
            return
        is_quiet = each.quiet_at is not None and each.quiet_at <= now.mono
        batch = each.reader.batch(now.mono, rests=is_quiet)
        if is_quiet or batch is not None:
            each.quiet_at = None
        if batch is not None:
            each.waits, each.told = True, now.mono
            self._arrives(lines_input(stream, batch), each.source)
        elif each.is_over or each.reader.is_elsewhere:
            self._end_log(stream, "eof", now)
            return
        elif now.mono - each.told >= MARK_SECONDS:
            each.told = now.mono
            self._arrives(mark_input(stream, each.reader), each.source)
        if each.reader.holds_event and each.quiet_at is None:
            each.quiet_at = now.mono + QUIET_SECONDS

    def _end_log(self, stream: int, reason: str, now: Now) -> None:
        each = self._open.pop(stream)
        end = StreamEnded(stream, reason)
        for found in last_inputs(end, each.reader, now.mono):
            self._arrives(found, each.source)
