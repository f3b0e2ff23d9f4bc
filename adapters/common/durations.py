"""Durations on the command line."""

from __future__ import annotations

import re

import click

__all__ = ["duration"]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(text: str) -> float:
    """Seconds, or numbers with units.

    >>> duration("90"), duration("1h30m")
    (90.0, 5400.0)
    """
    if not re.fullmatch(r"(\d+(\.\d+)?[smhd]?)+", text.strip()):
        raise click.BadParameter(
            f"{text!r} is not a duration; write 90, 90s, 15m or 1h30m"
        )
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
