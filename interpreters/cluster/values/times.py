"""Times in texts of clients, as Go's time.Parse reads RFC 3339."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date

from fnop.interpreters.cluster.values.status import Refusal, bad_request, quoted

__all__ = ["query_time"]

LAYOUT = "2006-01-02T15:04:05Z07:00"
# The parts of the layout: Go's name, the pattern, and our name.
PARTS = (
    ("2006", r"([0-9][0-9]{3})", "year"),
    ("-", "-", ""),
    ("01", r"([0-9]{2})", "month"),
    ("-", "-", ""),
    ("02", r"([0-9]{2})", "day"),
    ("T", "T", ""),
    ("15", r"([0-9]{1,2})", "hour"),
    (":", ":", ""),
    ("04", r"([0-9]{2})", "minute"),
    (":", ":", ""),
    # It accepts a fraction that the layout does not have.
    ("05", r"([0-9]{2})(?:[.,][0-9]+)?", "second"),
    ("Z07:00", r"(Z|[+-][0-9]{2}:[0-9]{2})", "offset"),
)
LEAST = {"month": 1}
MOST = {"month": 12, "hour": 23, "minute": 59, "second": 59}
# The Gregorian calendar repeats itself.
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097
EPOCH_DAY = date(1970, 1, 1).toordinal()


def query_time(text: str) -> int:
    """The whole Unix seconds of a time in a query; its fraction is dropped.

    Raises the refusal of a text that is not in RFC 3339.

    >>> query_time("1970-01-01T01:00:07.9+01:00")
    7
    """
    found: dict[str, str] = {}
    rest = text
    for layout, pattern, name in PARTS:
        match = re.match(pattern, rest)
        if match is None:
            why = f"cannot parse {quoted(rest)} as {quoted(layout)}"
            raise _bad_time(text, f" as {quoted(LAYOUT)}: {why}")
        rest = rest[match.end() :]
        if name:
            found[name] = match[1]
            _check(text, name, match[1])
    if rest:
        raise _bad_time(text, f": extra text: {quoted(rest)}")
    parts = {name: int(found[name]) for name in found if name != "offset"}
    year, month, day = parts["year"], parts["month"], parts["day"]
    cycles, similar = year // CYCLE_YEARS - 5, year % CYCLE_YEARS + 2000
    if not 1 <= day <= monthrange(similar, month)[1]:
        raise _bad_time(text, ": day out of range")
    days = date(similar, month, day).toordinal() - EPOCH_DAY + cycles * CYCLE_DAYS
    minutes = (days * 24 + parts["hour"]) * 60 + parts["minute"]
    return (minutes - _offset(found["offset"])) * 60 + parts["second"]


def _check(text: str, name: str, digits: str) -> None:
    if name == "offset":
        if digits != "Z" and (int(digits[1:3]) > 24 or int(digits[4:]) > 60):
            part = "hour" if int(digits[1:3]) > 24 else "minute"
            raise _bad_time(text, f": time zone offset {part} out of range")
    elif not LEAST.get(name, 0) <= int(digits) <= MOST.get(name, 9999):
        raise _bad_time(text, f": {name} out of range")


def _offset(zone: str) -> int:
    """The minutes by which a zone is ahead of UTC."""
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:])
    return minutes if zone[0] == "+" else -minutes


def _bad_time(text: str, why: str) -> Refusal:
    return bad_request(f"parsing time {quoted(text)}{why}")
