"""The logs of containers, as kubelet keeps them.

A log belongs to one instance of a container. The present instance and the one before it
have a log. Logs of older instances, and of deleted pods, are dropped.

A log has at most `LINES_MAX` lines. If one more comes, the older half is dropped.
kubelet rotates files in the same way, and answers only with the latest file.
"""

from __future__ import annotations

from typing import NamedTuple

from immutables import Map
from msgspec import Struct
from pyrsistent import PVector, pvector

from fnop.effects.structs import replace

__all__ = ["LINES_MAX", "Line", "Log", "Logs", "PodLogs", "extended", "instance"]

LINES_MAX = 10_000
TICK = 1_000  # nanoseconds between two lines, at least


class Line(NamedTuple):
    """A time in Unix nanoseconds, and the text that was written then.

    Only its last character can be a newline. Without one, the next line continues it.
    """

    time: int
    text: str


NO_LINES: PVector[Line] = pvector()


class Log(Struct, frozen=True):
    """The log of one instance of a container, identified by `restarts`."""

    restarts: int
    lines: PVector[Line] = NO_LINES
    # The number of lines that were dropped before these.
    dropped: int = 0
    # The time of the last line, also of the instance before.
    last: int = 0
    # The part of the pod's annotation that the stub of a kubelet has written so far.
    annotated: str = ""


class Logs(NamedTuple):
    """The logs of a container: of its present instance, and of the one before."""

    present: Log
    former: Log | None = None


# By the name of the container; a cluster has these by the uid of the pod.
PodLogs = Map[str, Logs]


def instance(logs: Logs | None, restarts: int) -> Log | None:
    """The log of one instance of a container, if it still exists.

    >>> instance(Logs(Log(2), Log(1)), 1)
    Log(restarts=1, lines=pvector([]), dropped=0, last=0, annotated='')
    """
    for log in logs or ():
        if log is not None and log.restarts == restarts:
            return log
    return None


def extended(log: Log, text: str, now: float) -> Log:
    r"""The log with more text, each new line at a time of its own.

    >>> log = extended(Log(0), "one\ntwo", 0.5)
    >>> [tuple(line) for line in log.lines]
    [(500000000, 'one\n'), (500001000, 'two')]
    """
    first = max(round(now * 1_000_000) * 1_000, log.last + TICK)
    pieces = [f"{piece}\n" for piece in text.split("\n")]
    pieces[-1] = pieces[-1][:-1]
    new = [
        Line(first + number * TICK, piece)
        for number, piece in enumerate(filter(None, pieces))
    ]
    if not new:
        return log
    lines, dropped = log.lines.extend(new), log.dropped
    while len(lines) > LINES_MAX:
        half = len(lines) // 2
        lines, dropped = pvector([*lines][half:]), dropped + half
    return replace(log, lines=lines, dropped=dropped, last=new[-1].time)
