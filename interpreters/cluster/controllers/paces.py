"""The paces of the cluster's controllers: how soon each of them works."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Off", "On", "Pace", "Slow", "Stuck"]


@dataclass(frozen=True, slots=True)
class On:
    """The controller does its work at once: the initial pace.

    For example:

        sim.pace("kubelet", On())
    """


@dataclass(frozen=True, slots=True)
class Off:
    """The controller does not run; once back, it looks at everything, as after a start.

    For example:

        sim.pace("garbage", Off())
    """


@dataclass(frozen=True, slots=True)
class Stuck:
    """The controller does nothing; its work accumulates until it is no longer stuck.

    For example:

        sim.pace("deployment", Stuck())
    """


@dataclass(frozen=True, slots=True)
class Slow:
    """The controller acts `seconds` after each reminder.

    For example:

        sim.pace("kubelet", Slow(30))
    """

    seconds: float


Pace = On | Off | Stuck | Slow
