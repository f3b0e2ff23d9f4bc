"""Time as data: it comes with every input, so the core does not read a clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

__all__ = ["Now", "parse_time", "wall_seconds", "wall_text", "wall_time"]


class Now(NamedTuple):
    """One moment on two clocks, in seconds.

    Deadlines are in `mono`, which never jumps. Stored or shown times are in `wall`,
    Unix time.
    """

    wall: float
    mono: float


def wall_time(wall: float) -> datetime:
    """A moment as an aware UTC datetime, as handlers receive it."""
    return datetime.fromtimestamp(wall, UTC)


def wall_text(wall: float) -> str:
    """A moment as RFC 3339 with microseconds.

    >>> wall_text(0)
    '1970-01-01T00:00:00.000000Z'
    """
    return wall_time(wall).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def wall_seconds(wall: float) -> str:
    """A moment in whole seconds, as Kubernetes writes most times (`metav1.Time`).

    >>> wall_seconds(1.9)
    '1970-01-01T00:00:01Z'
    """
    return wall_time(wall).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> float:
    """The Unix time of an ISO 8601 text; without an offset it is UTC.

    Raises `ValueError` for anything else.

    >>> parse_time(wall_text(1.5))
    1.5
    """
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
