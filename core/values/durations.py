"""Durations as texts: `1h30m`, of Go and of the format `duration` in schemas."""

from __future__ import annotations

import re

__all__ = ["duration"]

_SECONDS = {
    **dict.fromkeys(("ns", "nano", "nanosecond"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "micro", "microsecond"), 1e-6),
    **dict.fromkeys(("ms", "milli", "millisecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("m", "min", "minute"), 60.0),
    **dict.fromkeys(("h", "hr", "hour"), 3600.0),
    **dict.fromkeys(("d", "day"), 86_400.0),
    **dict.fromkeys(("w", "wk", "week"), 604_800.0),
}
_PART = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([A-Za-zµμ]+)")


def duration(text: str) -> float:
    """The seconds that a duration stands for.

    It is one of Go (`time.ParseDuration`), or with days, weeks and spelled-out units,
    as the format `duration` has them (go-openapi/strfmt). Raises `ValueError`.

    >>> duration("1h30m"), duration("2 days"), duration("-1.5s"), duration("0")
    (5400.0, 172800.0, -1.5, 0.0)
    >>> duration("soon")
    Traceback (most recent call last):
    ValueError: 'soon' is no duration; write such as 1h30m
    """
    bare = text.strip()
    sign = -1.0 if bare.startswith("-") else 1.0
    rest = bare[1:] if bare[:1] in ("-", "+") else bare
    if rest == "0":
        return 0.0
    total, place = 0.0, 0
    while found := _PART.match(rest, place):
        number, unit = found.groups()
        seconds = _SECONDS.get(unit.lower()) or _SECONDS.get(unit.lower().rstrip("s"))
        if seconds is None:
            break
        total, place = total + float(number) * seconds, found.end()
    if place == 0 or place != len(rest):
        raise ValueError(f"{text!r:.60} is no duration; write such as 1h30m")
    return sign * total
