"""Ages of objects in tables."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from fnop.interpreters.cluster.values.objects import Object

__all__ = ["UNKNOWN", "age", "created", "human_duration", "seconds_of"]

UNKNOWN = "<unknown>"


def human_duration(seconds: float) -> str:
    """A duration in two units at most (`k8s.io/apimachinery/pkg/util/duration`).

    >>> [human_duration(n) for n in (-1.5, 90, 300, 4000, 30_000, 700_000, 1e8)]
    ['0s', '90s', '5m', '66m', '8h', '8d', '3y62d']
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    for limit, value, unit, rest, part in (
        (minutes < 10, minutes, "m", whole % 60, "s"),
        (minutes < 180, minutes, "m", 0, ""),
        (hours < 8, hours, "h", minutes % 60, "m"),
        (hours < 48, hours, "h", 0, ""),
        (hours < 192, days, "d", hours % 24, "h"),
        (days < 730, days, "d", 0, ""),
        (days < 2920, days // 365, "y", days % 365, "d"),
    ):
        if limit:
            return f"{value}{unit}{rest}{part}" if rest else f"{value}{unit}"
    return f"{days // 365}y"


@lru_cache(maxsize=4096)
def seconds_of(moment: str) -> float | None:
    """A moment in Unix seconds, or None if it is not a time."""
    if len(moment) < 20 or moment[10] not in "Tt":
        return None
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None


def age(moment: Any, now: float) -> str:
    """The time since a moment, as tables show it."""
    seconds = seconds_of(moment) if isinstance(moment, str) and moment else None
    return UNKNOWN if seconds is None else human_duration(now - seconds)


def created(obj: Object, now: float) -> str:
    """The age of an object."""
    return age(obj["metadata"].get("creationTimestamp"), now)
