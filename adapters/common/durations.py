"""Durations on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

__all__ = ["duration", "seconds_in"]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = r"(\d+(?:\.\d+)?)"
_PART = rf"{_NUMBER}(ms|[smhd])"


def duration(
    *, least: float = 0, more_than: float = -1, is_whole: bool = False
) -> Callable[[object], float]:
    """The type of an option that is a duration: its value is in seconds.

    The duration has at least `least` seconds, and more than `more_than`. With
    `is_whole`, it is a whole number of seconds, and the value is an int.
    """

    def duration(given: object) -> float:  # click shows its name, in capitals
        try:
            found = seconds_in(str(given))
        except ValueError as problem:
            raise click.BadParameter(str(problem)) from None
        if found <= more_than:
            raise click.BadParameter(f"{given} is not more than {more_than:g}s")
        if found < least:
            raise click.BadParameter(f"{given} is less than {least:g}s")
        if not is_whole:
            return found
        if not found.is_integer():
            raise click.BadParameter(f"{given} is not a whole number of seconds")
        return int(found)

    return duration


def seconds_in(text: str) -> float:
    """The seconds of a duration: a number of them, or numbers with units.

    Raises `ValueError` for other texts.

    >>> seconds_in("90"), seconds_in("1h30m"), seconds_in("500ms")
    (90.0, 5400.0, 0.5)
    """
    if re.fullmatch(_NUMBER, text):
        return float(text)
    if not re.fullmatch(f"({_PART})+", text):
        raise ValueError(f"{text!r} is not a duration; write 90, 90s, 15m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
