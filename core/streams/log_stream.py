"""The log of one container, as a state machine.

| in       | event                                  | next
|----------|----------------------------------------|----------------------------------
| WAITING  | it is due, and a slot is free          | LOCATING, to begin with "now"
|          |                                        | READING, else
| LOCATING | the last line is known                 | WAITING, to read the next lines
| READING  | it ends, of a container that had ended | FINISHED, or the next instance
| READING  | it ends in any other way               | WAITING, to continue at the mark
| READING  | it does not begin at the mark          | WAITING, for the pod's status
| FINISHED | the container has begun again          | WAITING

The end of a stream does not mean that the container has ended: the reason can be the
connection, kubelet or log rotation. The API server ends its answer cleanly even if its
connection to kubelet breaks within a line (apiserver: StreamObject). So a log is
finished if it was opened after its container had ended, and two readings have ended at
the same place. Logs of deleted pods cannot be opened again: their held lines go to the
handlers.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from msgspec import Struct

from fnop.core.handlers.declare.log_selection import Begin
from fnop.core.seam.commands import FollowLog
from fnop.core.seam.inputs import StreamEnded
from fnop.core.streams.containers import Container
from fnop.core.values.backoff import backoff_seconds, heeding
from fnop.core.values.body import Body, Key
from fnop.core.values.log_lines import LogLine, LogMark, LogPlace
from fnop.core.values.now import Now
from fnop.effects.structs import replace

__all__ = [
    "LogKey",
    "LogPhase",
    "LogStream",
    "begun",
    "ended",
    "is_finished",
    "is_lost",
    "marked",
    "opened",
    "shown",
]

# A stream that was open for this many seconds was healthy.
_WELL = 5.0
# The last day that RFC 3339 can write (Unix seconds).
_LATEST = 253_402_214_400.0
# If a stream ends, the container may have ended, too. fnop awaits the pod's status for
# this long: a log that is opened earlier could belong to the next instance.
_STATUS_SECONDS = 10.0


class LogPhase(Enum):
    """The state of a log stream."""

    WAITING = "waiting"
    LOCATING = "locating"
    READING = "reading"
    FINISHED = "finished"


class LogKey(Struct, frozen=True):
    """The log of a container, for the handlers that read it in one way."""

    pod: Key
    uid: str
    container: str
    way: int


class LogStream(Struct, frozen=True):
    """The state of one log stream.

    `handlers` are the ids of the handlers that it serves. It reads the log of an
    `instance` of the container; `latest` is the instance that the pod shows. `id` is
    the number of the present stream, which was `opened_at` (monotonic), of an instance
    that then `had_ended`. `since` is the time when the lines before `begin` were first
    requested. With `is_held`, lines wait for their handlers, and fnop requests no more.
    """

    key: LogKey
    body: Body
    handlers: tuple[str, ...]
    instance: str
    latest: Container
    begin: Begin
    id: int = 0
    phase: LogPhase = LogPhase.WAITING
    mark: LogMark | None = None
    opened_at: float = 0.0
    had_ended: bool = False
    since: float | None = None
    failures: int = 0
    due: float = 0.0
    refusal: str | None = None
    is_held: bool = False
    # It did not begin at the mark.
    has_lost_place: bool = False
    # Its place at a clean end, and the lines that are complete if nothing more comes.
    until: LogPlace | None = None
    rest: tuple[LogLine, ...] = ()
    # The pod is gone: fnop awaits data on its way until it is `due`.
    is_gone: bool = False
    # Lines beyond the rate of a handler, and when they may be logged (monotonic).
    dropped: tuple[tuple[str, int], ...] = ()
    tell_at: float = 0.0
    # The kinds of warnings that were logged.
    warned: frozenset[str] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether the API server is asked for the log now."""
        return self.phase in (LogPhase.LOCATING, LogPhase.READING)

    @property
    def has_ended(self) -> bool:
        """Whether the instance writes nothing more."""
        return self.is_former or self.latest.has_ended

    @property
    def is_former(self) -> bool:
        """Whether it reads an instance before the present one."""
        return self.instance != self.latest.instance

    @property
    def label(self) -> str:
        """The pod and its container."""
        return f"{self.key.pod.name}/{self.key.container}"


def begun(
    key: LogKey,
    body: Body,
    handlers: tuple[str, ...],
    container: Container,
    begin: Begin,
) -> LogStream:
    """The stream of a container that is read from now on.

    An ended container writes nothing from now on. Unless it is read from now on, the
    previous instance comes first.
    """
    instance = container.instance if begin == "now" else container.previous
    instance = instance or container.instance
    stream = LogStream(key, body, handlers, instance, container, begin)
    is_over = begin == "now" and container.has_ended
    return replace(stream, phase=LogPhase.FINISHED) if is_over else stream


def opened(
    stream: LogStream, id: int, now: Now, *, silence_seconds: float, limit: int
) -> tuple[LogStream, FollowLog]:
    """Continue from the mark, or without one as `begin` says."""
    since = now.mono if stream.since is None else stream.since
    is_locating = stream.begin == "now" and stream.mark is None
    after = replace(
        stream,
        id=id,
        phase=LogPhase.LOCATING if is_locating else LogPhase.READING,
        opened_at=now.mono,
        had_ended=stream.has_ended,
        since=since,
        is_held=False,
    )
    seconds = moment = None
    if stream.mark is None and isinstance(stream.begin, datetime):
        seconds_of_unix = min(max(0.0, stream.begin.timestamp()), _LATEST)
        moment = int(seconds_of_unix * 1_000_000) * 1000
    elif stream.mark is None and isinstance(stream.begin, (int, float)):
        # Read the lines that were written meanwhile, too.
        seconds = max(1, round(stream.begin + now.mono - since))
    pod = stream.key.pod
    return after, FollowLog(
        stream=id,
        namespace=pod.namespace,
        name=pod.name,
        container=stream.key.container,
        handlers=() if is_locating else stream.handlers,
        follows=not (is_locating or after.had_ended),
        previous=stream.is_former,
        tail=1 if is_locating else None,
        seconds=seconds,
        moment=moment,
        after=stream.mark,
        silence_seconds=silence_seconds,
        limit=limit,
    )


def shown(stream: LogStream, container: Container | None, body: Body) -> LogStream:
    """Return the stream after another version of the pod."""
    seen = replace(stream, body=body)
    if container is None or container == stream.latest:
        return seen
    had_ended = stream.has_ended
    seen = replace(seen, latest=container)
    if stream.phase is LogPhase.FINISHED:
        if container.instance == stream.instance:
            return seen
        return _next_instance(seen)
    if stream.instance not in (container.instance, container.previous):
        return _next_instance(seen)
    if seen.has_ended and not had_ended and stream.phase is LogPhase.WAITING:
        return replace(seen, due=0.0)
    return seen


def is_lost(before: LogStream, after: LogStream) -> bool:
    """Whether the end of a log is gone, as the container has restarted twice."""
    is_another = before.instance != after.instance
    return is_another and before.phase is not LogPhase.FINISHED


def is_finished(before: LogStream, after: LogStream) -> bool:
    """Whether the log of an instance was read to its end."""
    return after.phase is LogPhase.FINISHED or before.instance != after.instance


def _next_instance(stream: LogStream) -> LogStream:
    """Read the next instance from its first line, even if it was missed."""
    latest = stream.latest
    was_missed = latest.previous not in ("", stream.instance)
    return replace(
        stream,
        instance=latest.previous if was_missed else latest.instance,
        begin="start",
        mark=None,
        since=None,
        has_lost_place=False,
        until=None,
        rest=(),
        failures=0,
        phase=LogPhase.WAITING,
        due=0.0,
    )


def marked(stream: LogStream, mark: LogMark | None) -> LogStream:
    """Return the stream after lines: it continues from here."""
    if mark is None:
        return stream
    return replace(
        stream, mark=mark, has_lost_place=stream.has_lost_place and mark == stream.mark
    )


def ended(stream: LogStream, end: StreamEnded, now: Now, jitter: float) -> LogStream:
    """Return the stream after an end: finished, or to continue, maybe with backoff."""
    if stream.is_former and end.status in (400, 404):
        return _next_instance(stream)  # kubelet has dropped its log
    if end.reason == "elsewhere":
        return _handle_lost_place(stream, now)
    is_eof = end.reason == "eof"
    if is_eof and end.place is not None:
        if stream.phase is LogPhase.LOCATING and _is_located(stream, end.place):
            return _locate_end(stream, now)
        if stream.had_ended and end.place == stream.until:
            return _finish_stream(stream)
    failures = _failures_after(stream, end, now)
    wait = backoff_seconds(failures, jitter) if failures else 0.0
    if is_eof and stream.phase is LogPhase.READING and not stream.has_ended:
        wait = _STATUS_SECONDS
    return replace(
        stream,
        phase=LogPhase.WAITING,
        failures=failures,
        until=end.place if is_eof else None,
        rest=end.rest,
        due=now.mono + heeding(end.retry_after_seconds, wait),
        refusal=end.message if end.status in (401, 403) else None,
    )


def _is_located(stream: LogStream, place: LogPlace) -> bool:
    """Whether the end of the log is known.

    One whole line is enough; with less, another look must show the same.
    """
    return bool(place.mark and not place.held) or place == stream.until


def _failures_after(stream: LogStream, end: StreamEnded, now: Now) -> int:
    """The number of failures in a row, after this end."""
    was_well = now.mono - stream.opened_at >= _WELL
    is_certain = end.reason == "eof" and end.place is not None
    looks_again = is_certain and stream.until is None
    failures = 0 if was_well else stream.failures
    is_well = end.reason in ("eof", "silent") and (was_well or looks_again)
    return failures if is_well else failures + 1


def _finish_stream(stream: LogStream) -> LogStream:
    finished = replace(
        stream,
        phase=LogPhase.FINISHED,
        failures=0,
        refusal=None,
        is_held=False,
        rest=(),
    )
    return _next_instance(finished) if stream.is_former else finished


def _locate_end(stream: LogStream, now: Now) -> LogStream:
    """Return the stream with its last line known; an empty log starts over."""
    waiting = replace(
        stream, phase=LogPhase.WAITING, due=now.mono, failures=0, until=None, rest=()
    )
    if stream.mark is None:
        return replace(waiting, begin="start")
    return replace(waiting, mark=stream.mark._replace(seen=None))


def _handle_lost_place(stream: LogStream, now: Now) -> LogStream:
    """Return the stream after a log that did not begin at the mark.

    It is the next instance's log, as the pod's status will show. Or kubelet has rotated
    it: then the stream continues by time.
    """
    if not stream.has_lost_place:
        due = now.mono + _STATUS_SECONDS
        return replace(stream, phase=LogPhase.WAITING, has_lost_place=True, due=due)
    mark = None if stream.mark is None else stream.mark._replace(seen=None)
    return replace(
        stream, phase=LogPhase.WAITING, has_lost_place=False, mark=mark, due=now.mono
    )
