"""Log streams as inputs of the operator: each reader, and the inputs that it makes."""

from __future__ import annotations

from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import FollowLog
from fnop.core.seam.inputs import LogLines, StreamEnded
from fnop.core.streams.log_reader import Batch, LogReader, Sieve
from fnop.effects.structs import replace

__all__ = [
    "MARK_SECONDS",
    "QUIET_SECONDS",
    "last_inputs",
    "lines_input",
    "mark_input",
    "reader_of",
]

# An event of several lines is complete if nothing more comes for this long.
QUIET_SECONDS = 1.0
# The operator learns a log's progress once in this time, even if no handler wants its
# lines.
MARK_SECONDS = 60.0


def reader_of(command: FollowLog, program: Program) -> LogReader:
    """The reader of a log, for the handlers that the command names."""
    selections = [
        (each.id, each.log)
        for each in program.handlers
        if each.log is not None and each.id in command.handlers
    ]
    return LogReader(
        tuple(Sieve(name, log.regex, log.rate) for name, log in selections),
        limit=command.limit,
        multiline=selections[0][1].multiline if selections else False,
        after=command.after,
        not_before=command.moment,
    )


def lines_input(stream: int, batch: Batch) -> LogLines:
    """The input for a batch of lines."""
    return LogLines(
        stream, batch.lines, batch.mark, batch.dropped, batch.cut, batch.remark
    )


def mark_input(stream: int, reader: LogReader) -> LogLines:
    """The input that reports how far a log was read."""
    return LogLines(stream, (), reader.mark)


def last_inputs(
    end: StreamEnded, reader: LogReader, now: float
) -> tuple[LogLines, StreamEnded]:
    """The inputs at the end of a stream: the last position, and why it has ended."""
    reason = "elsewhere" if reader.is_elsewhere else end.reason
    read, place, rest = mark_input(end.stream, reader), reader.place, reader.rest(now)
    message = end.message or reader.remark
    told = replace(end, reason=reason, message=message, place=place, rest=rest)
    return read, told
