"""Lines of a container's log, and the place reached in reading it.

The API server adds the time to each line if requested (`timestamps`). It begins a log
at a time in whole seconds (`sinceTime`). So an interrupted stream gets lines a second
time, and a mark counts them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from fnop.effects.regexes import regex

__all__ = [
    "NANOS",
    "LogLine",
    "LogMark",
    "LogPlace",
    "nanoseconds_of",
    "second_of",
    "text_of_time",
]

NANOS = 1_000_000_000
# RFC 3339, as kubelet writes times: with nine digits, in its node's time zone.
_TIME = regex(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[-+]\d\d:\d\d)")


class LogLine(NamedTuple):
    """One event of a log, for one handler: a line, or several that belong together.

    `time` is the time of its first line, in nanoseconds of Unix time.
    """

    handler: str
    time: int
    text: str


class LogMark(NamedTuple):
    """The place that reading a log has reached.

    `seen` counts the lines with a time in `second` (Unix time) or later, in the order
    of the log. `first` is the time of the first of them, `last` the latest time of all
    (nanoseconds). If `seen` is None, all lines up to `last` were seen.
    """

    second: int
    seen: int | None
    first: int
    last: int


class LogPlace(NamedTuple):
    """The place at the end of a reading: after its lines, and `held` bytes more.

    These bytes begin a line. The mark is None if there was no line. `missing` counts
    the lines that were seen before and did not come again, for example after a
    rotation.
    """

    mark: LogMark | None
    held: int
    missing: int = 0


@lru_cache(maxsize=64)
def second_of(text: str) -> int:
    """The Unix time of whole seconds such as `2026-01-31T12:00:00+01:00`.

    >>> second_of("1970-01-01T01:00:01+01:00")
    1
    """
    return int(datetime.fromisoformat(text).timestamp())


def nanoseconds_of(text: str) -> int | None:
    """The Unix time of an RFC 3339 text, in nanoseconds; None for any other text.

    >>> nanoseconds_of("1970-01-01T00:00:01.5Z"), nanoseconds_of("soon")
    (1500000000, None)
    """
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    try:
        second = second_of(found[1] + found[3])
    except ValueError:  # no such day or hour
        return None
    return second * NANOS + int((found[2] or "").ljust(9, "0"))


def text_of_time(nanoseconds: int) -> str:
    """The RFC 3339 text of a time, in UTC.

    >>> text_of_time(1_500_000_000)
    '1970-01-01T00:00:01.500000000Z'
    """
    second, rest = divmod(nanoseconds, NANOS)
    moment = datetime.fromtimestamp(second, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
