"""The times in a recording: read in one place, and formatted in one place.

A recording is untrusted: its times may not be numbers, or may not be valid times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.core.values.now import Now, wall_time

__all__ = ["clock", "moment", "stamp"]

# The year 1 and the year 10000, as Unix times: the range of a calendar, and a bit less.
_FIRST, _LAST = -62_135_596_800.0 + 86_400, 253_402_300_800.0 - 86_400


def moment(record: Mapping[str, Any]) -> Now:
    """The time of a record; raises `ValueError` if it is not a time.

    >>> moment({"wall": 1.5, "mono": 0})
    Now(wall=1.5, mono=0)
    """
    wall, mono = record["wall"], record["mono"]
    if not (_is_number(wall) and _is_number(mono)):
        raise ValueError("its time is not a number")
    if not _FIRST <= wall <= _LAST:
        raise ValueError("its time is in no year from 1 to 9999")
    return Now(wall, mono)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def clock(wall: float) -> str:
    """The time of day of a recorded time (UTC).

    >>> clock(0.25)
    '00:00:00.250'
    """
    return wall_time(wall).strftime("%H:%M:%S.%f")[:-3]


def stamp(wall: float) -> str:
    """The date and the time of day of a recorded time.

    >>> stamp(0.25)
    '1970-01-01 00:00:00 UTC'
    """
    return wall_time(wall).strftime("%Y-%m-%d %H:%M:%S UTC")
