"""Paces of controllers: on, off, stuck, slow."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Off", "On", "Pace", "Slow", "Stuck"]


@dataclass(frozen=True, slots=True)
class On:
    """The controller does its work at once: the pace at the start."""


@dataclass(frozen=True, slots=True)
class Off:
    """The controller is not there; when it comes back, it looks at every object."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """The controller's work piles up until it has another pace."""


@dataclass(frozen=True, slots=True)
class Slow:
    """The controller acts so many seconds after a reminder."""

    seconds: float


Pace = On | Off | Stuck | Slow
