"""Open the streams of logs, and pass their inputs on to the pods."""

from __future__ import annotations

from fnop.core.objects.store.log_reading import take_end, take_lines, takes_more
from fnop.core.seam.commands import CloseStream
from fnop.core.seam.inputs import LogLines, StreamEnded
from fnop.core.state.context import Context
from fnop.core.state.lifecycle import Phase
from fnop.core.state.turn import Turn
from fnop.core.streams.log_stream import LogPhase, opened
from fnop.effects.structs import replace

__all__ = ["follow_logs", "logs_due", "on_log_ended", "on_log_lines"]

# The delay before opening a log while lines of its pod still wait for handlers.
BUSY_SECONDS = 1.0


def follow_logs(turn: Turn) -> None:
    """Open the logs that are due, up to the limit of open streams.

    While no handler may be called, fnop reads no log. Later it resumes at the log's
    mark.
    """
    if not _calls_handlers(turn):
        if len(turn.logs.numbers):
            _pause_logs(turn)
        return
    while _has_place(turn):
        key, queue = turn.logs.queue.take(turn.now.mono)
        if key is None:
            return
        waiting = turn.logs.read[key]
        if not takes_more(Context(turn, key.pod)):
            later = replace(waiting, due=turn.now.mono + BUSY_SECONDS)
            turn.logs = turn.logs.waits(later)
            continue
        settings, number = turn.settings, turn.next_serial()
        stream, command = opened(
            waiting,
            number,
            turn.now,
            silence_seconds=settings.log_silence_seconds,
            limit=settings.log_line_bytes,
        )
        turn.logs = replace(turn.logs, queue=queue).put(stream)
        turn.emit(command)
    if len(turn.logs.queue):
        most = turn.settings.log_streams
        turn.warn_once(
            "log streams",
            f"more than {most} logs are to be read (log_streams); those of the other "
            "containers wait until one ends: select fewer pods, or allow more",
        )


def logs_due(turn: Turn) -> float | None:
    """The time to open the next log (monotonic); None if no stream is free."""
    if not (_calls_handlers(turn) and _has_place(turn)):
        return None
    return turn.logs.queue.next_due()


def _calls_handlers(turn: Turn) -> bool:
    life = turn.lifecycle
    return life.phase is Phase.SERVING and life.frozen is None


def _has_place(turn: Turn) -> bool:
    return len(turn.logs.numbers) < turn.settings.log_streams


def _pause_logs(turn: Turn) -> None:
    for number, key in turn.logs.numbers.items():
        stream = turn.logs.read[key]
        turn.emit(CloseStream(number))
        if stream.is_gone:
            turn.logs = turn.logs.drop(stream)
        else:
            later = replace(stream, phase=LogPhase.WAITING, due=turn.now.mono)
            turn.logs = turn.logs.waits(later)


def on_log_lines(turn: Turn, lines: LogLines) -> None:
    """Take lines in; drop lines of a stream that is already closed."""
    stream = turn.logs.of(lines.stream)
    if stream is not None:
        take_lines(Context(turn, stream.key.pod), stream, lines)


def on_log_ended(turn: Turn, end: StreamEnded) -> None:
    """Take in the end of a log stream."""
    stream = turn.logs.of(end.stream)
    if stream is not None:
        take_end(Context(turn, stream.key.pod), stream, end)
