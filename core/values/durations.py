"""Durations as people read them."""

from __future__ import annotations

__all__ = ["ago", "span"]


def span(seconds: float) -> str:
    """A duration in at most two units, as kubectl prints it.

    >>> span(0.4), span(12), span(95), span(7300), span(200_000), span(-5)
    ('0s', '12s', '95s', '2h', '2d7h', '0s')
    """
    left = max(0, int(min(seconds, 1e12)))
    if left < 120:
        return f"{left}s"
    if left < 600:
        return f"{left // 60}m{left % 60}s" if left % 60 else f"{left // 60}m"
    if left < 3 * 3600:
        hours, minutes = divmod(left // 60, 60)
        if not hours:
            return f"{minutes}m"
        return f"{hours}h{minutes}m" if minutes > 1 else f"{hours}h"
    if left < 48 * 3600:
        return f"{left // 3600}h"
    days, hours = divmod(left // 3600, 24)
    return f"{days}d{hours}h" if hours and days < 8 else f"{days}d"


def ago(at: float | None, wall: float) -> str:
    """The time elapsed since `at`, in words; "an unknown time" for None.

    >>> ago(100.0, 160.0), ago(None, 0.0), ago(200.0, 160.0)
    ('60s ago', 'an unknown time', '0s ago')
    """
    return "an unknown time" if at is None else f"{span(wall - at)} ago"
