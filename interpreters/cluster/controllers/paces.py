"""The paces of the cluster's controllers: how willing each is to work."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Off", "On", "Pace", "Slow", "Stuck"]


@dataclass(frozen=True, slots=True)
class On:
    """The controller does its work at once: the pace at the beginning.

    For example:

        sim.pace("kubelet", On())
    """


@dataclass(frozen=True, slots=True)
class Off:
    """The controller is not there; once back, it looks at everything, as after a start.

    For example:

        sim.pace("garbage", Off())
    """


@dataclass(frozen=True, slots=True)
class Stuck:
    """The controller does nothing; its work piles up, and is done once it is not stuck.

    For example:

        sim.pace("deployment", Stuck())
    """


@dataclass(frozen=True, slots=True)
class Slow:
    """The controller acts some `seconds` after each thing that it has to do.

    For example:

        sim.pace("kubelet", Slow(30))
    """

    seconds: float


Pace = On | Off | Stuck | Slow
