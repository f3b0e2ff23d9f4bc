"""The logs of one pod: decide which to read, and pass their lines to the handlers.

After a pod is deleted, fnop reads its open logs to their end for a while, because the
last lines may still arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from fnop.core.handlers.declare.filters import Callback
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.log_selection import Begin, LogSelection, begin_of
from fnop.core.handlers.run.arguments import filter_arguments
from fnop.core.objects.decide.selecting_events import (
    log_handler_reads,
    pod_situation,
    wanted_events,
)
from fnop.core.seam.commands import CloseStream, MoreLines
from fnop.core.seam.inputs import LogLines, StreamEnded
from fnop.core.state.context import Context
from fnop.core.state.record import IDLE, ObjectRecord, PendingEvent
from fnop.core.streams.containers import Container, containers_of
from fnop.core.streams.log_stream import (
    LogKey,
    LogPhase,
    LogStream,
    begun,
    ended,
    is_finished,
    is_lost,
    marked,
    shown,
)
from fnop.core.values.body import Body
from fnop.core.values.errors import described
from fnop.core.values.log_lines import LogLine
from fnop.effects.structs import replace

__all__ = ["go_on", "read_logs", "take_end", "take_lines", "takes_more"]

# After a pod is deleted, its open logs may continue for this many seconds.
LAST_SECONDS = 30.0
# fnop reads no further lines of a pod while this many wait for their handlers.
WAITING_LINES = 100
# The seconds between two log lines about dropped lines beyond a rate.
TELL_SECONDS = 60.0


class _Wanted(Struct, frozen=True):
    """A container's log that handlers want; they read it in one way."""

    container: Container
    handlers: tuple[Handler, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(each.id for each in self.handlers)


# -------------------------------------------------------------- which logs are read


def read_logs(
    context: Context,
    type: str | None,
    pod: Body,
    former: Body | None,
    *,
    is_listed: bool,
) -> None:
    """Read the logs of a pod that handlers want, after a version of it was seen.

    If a container has begun since the `former` version, its log is read from the first
    line. If the watch has added the pod, containers may have begun before it was
    selected. A pod that a later listing shows is new. No log of a deleted pod is
    opened.
    """
    if type == "DELETED":
        _leave_pod(context)
        return
    containers = containers_of(pod)
    wanted, ways = _logs_to_read(context, pod, containers)
    present = {each.name for each in containers}
    known = {each.key: each for each in context.turn.logs.of_pod(context.key)}
    for key, stream in known.items():
        if key.uid != pod.uid:
            _leave_stream(context, stream)
        elif key not in wanted and (key.way not in ways or key.container in present):
            _close_stream(context, stream)
    is_new = former is None and type is None and not is_listed
    begun_before = _begun_containers(pod if former is None else former)
    for key, found in wanted.items():
        if (before := known.get(key)) is not None:
            _show_pod(context, before, found, pod)
            continue
        if is_new or key.container not in begun_before:
            begin: Begin | None = "start"
        else:
            begin = _begin_of_log(context, found.handlers[0], pod)
        if begin is not None:
            new = begun(key, pod, found.ids, found.container, begin)
            _begin_stream(context, new)


def _begin_stream(context: Context, stream: LogStream) -> None:
    """Keep a new stream; it is opened now, if anything of its log is wanted."""
    if stream.phase is LogPhase.FINISHED:
        context.turn.logs = context.turn.logs.put(stream)
    else:
        _wait_for_log(context, replace(stream, due=context.now.mono))


def _begun_containers(former: Body) -> frozenset[str]:
    """The names of the containers that had begun."""
    return frozenset(each.name for each in containers_of(former))


def _logs_to_read(
    context: Context, pod: Body, containers: tuple[Container, ...]
) -> tuple[dict[LogKey, _Wanted], frozenset[int]]:
    """The logs to read, each with the handlers that share one stream of it.

    The result also holds how handlers read this pod, because the status may lack a
    container for a moment.
    """
    found: dict[LogKey, _Wanted] = {}
    handlers, reading = context.kind.log_handlers, set[int]()
    ways = [_selection_of(each) for each in handlers]
    for handler, own in zip(handlers, ways, strict=True):
        if not log_handler_reads(context, handler, pod):
            continue
        way = next(at for at, e in enumerate(ways) if e is own or e.shares(own))
        reading.add(way)
        for container in containers:
            if own.takes(container.name):
                key = LogKey(context.key, pod.uid, container.name, way)
                others = found[key].handlers if key in found else ()
                found[key] = _Wanted(container, (*others, handler))
    return found, frozenset(reading)


def _selection_of(handler: Handler) -> LogSelection:
    assert handler.log is not None, "log handlers have one"
    return handler.log


def _begin_of_log(context: Context, handler: Handler, pod: Body) -> Begin | None:
    """The lines of a running container that are read first; None after an error."""
    since = _selection_of(handler).since
    if not isinstance(since, Callback):
        return since
    situation = pod_situation(context, handler, pod)
    try:
        arguments = filter_arguments(situation, since.wants, since.rest)
        return begin_of(since.call((), arguments))
    except BaseException as problem:
        text = described(problem)
        context.say_of(
            handler,
            "error",
            f"does not read this log, for the function in its since= failed: {text}",
            body=pod,
            error=text,
            exception=problem,
        )
        return None


def _show_pod(context: Context, stream: LogStream, wanted: _Wanted, pod: Body) -> None:
    """Take in another version of the pod."""
    after = replace(shown(stream, wanted.container, pod), is_gone=False)
    ids = tuple(each.id for each in wanted.handlers)
    if after.handlers != ids:
        after = replace(after, handlers=ids)
        if after.is_open:  # the open one serves the handlers before
            after = replace(after, phase=LogPhase.WAITING, due=context.now.mono)
    if is_lost(stream, after):
        _take_lines(context, stream, stream.rest)
        _warn_lost_end(context, stream)
    if stream.is_open and not after.is_open:
        context.turn.emit(CloseStream(stream.id))
    if after.phase is LogPhase.WAITING and after != replace(stream, body=pod):
        _wait_for_log(context, after)
    else:
        context.turn.logs = context.turn.logs.put(after)


def _warn_lost_end(context: Context, stream: LogStream, why: str = "") -> None:
    why = why or "kubelet keeps it no more"
    what = f"the end of a log of container {stream.key.container} is lost"
    context.say("warning", f"{what}: {why}")


def _wait_for_log(context: Context, stream: LogStream) -> None:
    context.turn.logs = context.turn.logs.waits(stream)


def _close_stream(context: Context, stream: LogStream) -> None:
    if stream.is_open:
        context.turn.emit(CloseStream(stream.id))
    context.turn.logs = context.turn.logs.drop(stream)


def _leave_pod(context: Context) -> None:
    for each in context.turn.logs.of_pod(context.key):
        _leave_stream(context, each)


def _leave_stream(context: Context, stream: LogStream) -> None:
    if not stream.is_open:
        _take_lines(context, stream, stream.rest)
        _close_stream(context, stream)
    elif not stream.is_gone:
        until = context.now.mono + LAST_SECONDS
        gone = replace(stream, is_gone=True, due=until)
        context.turn.logs = context.turn.logs.put(gone)
        context.due(until)


# ----------------------------------------------------------------------- the lines


def take_lines(context: Context, stream: LogStream, found: LogLines) -> None:
    """Take lines in; drop lines that `when=` declines."""
    if found.remark:
        stream = _warn_once_per_log(
            context, stream, "remark", f"kubelet says: {found.remark}"
        )
    if found.cut:
        limit = context.settings.log_line_bytes
        text = f"lines are cut behind {limit} bytes (log_line_bytes)"
        stream = _warn_once_per_log(context, stream, "cut", text)
    stream = _count_dropped_lines(context, marked(stream, found.mark), found.dropped)
    _take_lines(context, stream, found.lines)
    context.turn.logs = context.turn.logs.put(replace(stream, is_held=True))
    go_on(context)


def _warn_once_per_log(
    context: Context, stream: LogStream, sort: str, text: str
) -> LogStream:
    """Return the stream after a warning, given once for each log and sort."""
    if sort in stream.warned:
        return stream
    context.say("warning", f"log of container {stream.key.container}: {text}")
    return replace(stream, warned=stream.warned | {sort})


def _take_lines(context: Context, stream: LogStream, lines: Iterable[LogLine]) -> None:
    """Let lines wait for their handlers."""
    record = context.record
    if record is None or not context.is_served:
        return
    fresh = wanted_events(
        context, record, _events_of_lines(context, record, stream, lines)
    )
    if fresh:
        work = record.work or IDLE
        work = replace(work, pending_events=(*work.pending_events, *fresh))
        context.put(replace(record, work=work))
        context.due()


def _events_of_lines(
    context: Context,
    record: ObjectRecord,
    stream: LogStream,
    lines: Iterable[LogLine],
) -> Iterator[PendingEvent]:
    """Yield lines as events for their handlers, about the pod as it is known."""
    handlers = {each.id: each for each in context.kind.log_handlers}
    pod = record.body if record.body.uid == stream.key.uid else stream.body
    for line in lines:
        handler = handlers.get(line.handler)
        if handler is not None:
            container = stream.key.container
            yield PendingEvent(handler, None, pod, line=line, container=container)


def go_on(context: Context) -> None:
    """Ask for more lines if few wait, and close late logs of deleted pods."""
    streams = context.turn.logs.of_pod(context.key)
    if not streams:
        return
    may_read = takes_more(context)
    for stream in streams:
        if stream.is_gone and stream.due <= context.now.mono:
            _close_stream(context, stream)
        elif stream.is_held and may_read:
            context.turn.emit(MoreLines(stream.id))
            context.turn.logs = context.turn.logs.put(replace(stream, is_held=False))


def takes_more(context: Context) -> bool:
    """Whether few enough lines of a pod wait for their handlers."""
    record = context.record
    work = (None if record is None else record.work) or IDLE
    waiting = sum(each.line is not None for each in work.pending_events)
    return waiting < WAITING_LINES


def _count_dropped_lines(
    context: Context, stream: LogStream, dropped: tuple[tuple[str, int], ...]
) -> LogStream:
    """Return the stream after lines beyond a rate, which fnop logs once a minute."""
    if not dropped:
        return stream
    counts = dict(stream.dropped)
    for handler, number in dropped:
        counts[handler] = counts.get(handler, 0) + number
    stream = replace(stream, dropped=tuple(sorted(counts.items())))
    if context.now.mono < stream.tell_at:
        return stream
    return tell_dropped(context, stream)


def tell_dropped(context: Context, stream: LogStream) -> LogStream:
    """Return the stream after logging how many lines were beyond a rate."""
    handlers = {each.id: each for each in context.kind.log_handlers}
    for name, number in stream.dropped:
        handler = handlers.get(name)
        if handler is not None:
            rate = f"{_selection_of(handler).rate:g}"
            context.say_of(
                handler,
                "warning",
                f"left out {number} lines of container {stream.key.container}: they "
                f"were more than {rate} a second (rate=)",
            )
    return replace(stream, dropped=(), tell_at=context.now.mono + TELL_SECONDS)


def take_end(context: Context, stream: LogStream, end: StreamEnded) -> None:
    """Handle the end of a log stream: finish it, or open it again later."""
    if stream.dropped and context.is_served:
        stream = tell_dropped(context, stream)
    if stream.is_gone:
        _take_lines(context, stream, end.rest)
        context.turn.logs = context.turn.logs.drop(stream)
        context.due()
        return
    after = ended(stream, end, context.now, context.turn.jitter())
    if end.reason == "eof" and is_finished(stream, after):
        _take_lines(context, stream, end.rest)
        if end.place is not None and end.place.missing:
            _warn_lost_end(context, stream, end.message)
    elif is_lost(stream, after):
        _warn_lost_end(context, stream, end.message)
    if after.refusal and not stream.refusal:
        remedy = "grant the verb get on pods/log to this operator"
        context.warn_once(
            f"log refused {stream.key.pod.namespace}",
            f"may not read the log of {stream.label}: {after.refusal}; {remedy}",
        )
    elif after.failures == 5 and not after.refusal:
        text = f"the log of {stream.label} cannot be read: {end.reason} {end.message}"
        context.say("warning", text.rstrip())
    if after.phase is LogPhase.FINISHED:
        context.turn.logs = context.turn.logs.put(after)
    else:
        _wait_for_log(context, after)
