"""Paces of controllers: on, off, stuck, slow."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Off", "On", "Pace", "Slow", "Stuck"]


@dataclass(frozen=True, slots=True)
class On:
    """It does its work at once: how every controller begins."""


@dataclass(frozen=True, slots=True)
class Off:
    """It is not there.  When it comes, it looks at everything, as after a start."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Its work piles up, and is done when it is stuck no longer."""


@dataclass(frozen=True, slots=True)
class Slow:
    """It acts so many seconds after it was reminded."""

    seconds: float


Pace = On | Off | Stuck | Slow
