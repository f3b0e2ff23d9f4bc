"""The schedules of timers and daemons: the times of their next runs.

All times are monotonic seconds. Cron expressions are about the wall clock (in UTC), and
fnop converts their times.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct

from fnop.core.handlers.declare.filters import Callback
from fnop.core.values.now import Now

__all__ = [
    "INTERVAL_SECONDS_MIN",
    "Schedule",
    "checked_cron",
    "due_at",
    "first_run",
    "next_run",
]


# The shortest interval, so that other objects get their turn between two runs.
INTERVAL_SECONDS_MIN = 0.05


class Schedule(Struct, frozen=True):
    """The schedule of a timer's runs, or of a daemon's start; durations are in seconds.

    `interval` counts from the end of a run to the start of the next, or, when `sharp`,
    along a grid from its start. `idle` is the time during which the object must not
    have changed. `cron` is an expression such as `*/5 * * * *`. `interval` and
    `initial_delay` may be functions of the object's arguments.
    """

    interval: float | Callback | None = None
    sharp: bool = False
    idle: float | None = None
    cron: str | None = None
    initial_delay: float | Callback = 0.0


def first_run(schedule: Schedule, now: Now, initial_delay: float) -> float:
    """The earliest time of the first run.

    >>> first_run(Schedule(interval=60), Now(1000.0, 50.0), 5.0)
    55.0
    """
    start = now.mono + initial_delay
    return (
        start
        if schedule.cron is None
        else max(start, _next_cron_run(schedule.cron, now))
    )


def next_run(
    schedule: Schedule, interval: float | None, now: Now, began: float
) -> float | None:
    """The earliest time of the next run, after one that began at `began` and ends now.

    `interval` is the schedule's own, or the result of its function. None means never;
    for a timer with `idle` alone, not before a change of its object.

    >>> next_run(Schedule(), 5, Now(1000.0, 50.0), 48.0)
    55.0
    >>> next_run(Schedule(sharp=True), 5, Now(1000.0, 50.0), 48.0)
    53.0
    """
    if schedule.cron is not None:
        return _next_cron_run(schedule.cron, now)
    if interval is None:
        return None
    interval = max(interval, INTERVAL_SECONDS_MIN)
    if not schedule.sharp:
        return now.mono + interval
    passed = (now.mono - began) // interval + 1
    return began + passed * interval


def due_at(
    schedule: Schedule, start: float | None, began: float | None, changed: float
) -> float | None:
    """The time of a run that may start at `start`; `changed` is the last change.

    >>> due_at(Schedule(idle=10), None, 50.0, changed=45.0) is None
    True
    >>> due_at(Schedule(idle=10), None, 50.0, changed=53.0)
    63.0
    """
    if schedule.idle is None:
        return start
    if start is None and (began is None or changed < began):
        return None
    return max(start or 0.0, changed + schedule.idle)


def _next_cron_run(expression: str, now: Now) -> float:
    return now.mono + max(0.0, _next_moment(expression, int(now.wall)) - now.wall)


@lru_cache(maxsize=1024)
def _next_moment(expression: str, second: int) -> float:
    from cronsim import CronSim  # only operators with such timers need it

    found: datetime = next(CronSim(expression, datetime.fromtimestamp(second, UTC)))
    return found.timestamp()


def checked_cron(expression: str) -> str:
    """Return a cron expression; raise `ValueError` for an invalid one.

    >>> checked_cron("*/5 * * * *")
    '*/5 * * * *'
    """
    from cronsim import CronSim, CronSimError

    try:
        CronSim(expression, datetime.fromtimestamp(0, UTC))
    except CronSimError as problem:
        raise ValueError(
            f"{expression!r} is not a cron expression: {problem}"
        ) from None
    return expression
