"""Durations as texts: `1h30m`, in Go's syntax and in the schema format `duration`."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["duration"]

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 604_800 * 10**9,
}
# The units of Go, and its two letters for micro.
_GO = {name: _NANOSECONDS[name] for name in ("ns", "us", "ms", "s", "m", "h")}
_GO |= dict.fromkeys(("µs", "μs"), _GO["us"])
_GO_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
# The schema's format also accepts a unit by one of these names, or by a word that
# begins with the last of them.
_NAMES = {
    "ns": ("ns", "nano"),
    "us": ("us", "µs", "micro"),
    "ms": ("ms", "milli"),
    "s": ("s", "sec"),
    "m": ("m", "min"),
    "h": ("h", "hr", "hour"),
    "d": ("d", "day"),
    "w": ("w", "wk", "week"),
}
_PART = re.compile(r"([0-9]+)[ \t\n\f\r]*([A-Za-zµ]+)")
_INT_MAX = 2**63 - 1


def duration(text: str) -> float:
    """The seconds of a duration text, as the format `duration` reads it.

    It may be one of Go's durations (`time.ParseDuration`). In any other text, only the
    whole numbers before a known unit count (kube-openapi: strfmt.ParseDuration). Raises
    `ValueError` for a text without these.

    >>> duration("1h30m"), duration("2 days"), duration("-1.5s"), duration("0")
    (5400.0, 172800.0, -1.5, 0.0)
    >>> duration("P3D"), duration("PT5M")
    (259200.0, 300.0)
    >>> duration("soon")
    Traceback (most recent call last):
    ValueError: 'soon' is not a duration; write such as 1h30m
    """
    found = _parse_go_duration(text)
    if found is None:
        parts = [*_nanoseconds_of_parts(text)]
        if not parts:
            raise ValueError(f"{text!r:.60} is not a duration; write such as 1h30m")
        found = sum(parts)
    return found / 10**9


def _parse_go_duration(text: str) -> int | None:
    """The nanoseconds of a duration as Go writes it; None for other texts."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, place = 0, 0
    while found := _GO_PART.match(rest, place):
        whole, fraction, unit = found.groups()
        if unit not in _GO or not (whole or fraction):
            return None
        size = _GO[unit]
        total += int(whole or 0) * size
        total += int(fraction or 0) * size // 10 ** len(fraction or "")
        place = found.end()
    is_negative = text.startswith("-")
    if place == 0 or place != len(rest) or total > _INT_MAX + is_negative:
        return None
    return -total if is_negative else total


def _nanoseconds_of_parts(text: str) -> Iterator[int]:
    """The nanoseconds of each number with a unit; huge ones raise `ValueError`."""
    for number, word in _PART.findall(text):
        number = number.lstrip("0") or "0"
        if len(number) > len(str(_INT_MAX)) or int(number) > _INT_MAX:
            raise ValueError(
                f"{text!r:.60} is not a duration: {number:.30} is too large"
            )
        unit = word.lower()
        for name, known in _NAMES.items():
            if unit in known or unit.startswith(known[-1]):
                yield int(number) * _NANOSECONDS[name]
