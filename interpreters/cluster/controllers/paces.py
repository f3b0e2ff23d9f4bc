"""The paces of the cluster's controllers: how soon each of them works."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Off", "On", "Pace", "Slow", "Stuck"]


class On(Struct, frozen=True):
    """The controller does its work at once: the initial pace.

    For example:

        sim.pace("kubelet", On())
    """


class Off(Struct, frozen=True):
    """The controller does not run; once back, it looks at everything, as after a start.

    For example:

        sim.pace("garbage", Off())
    """


class Stuck(Struct, frozen=True):
    """The controller does nothing; its work accumulates until it is no longer stuck.

    For example:

        sim.pace("deployment", Stuck())
    """


class Slow(Struct, frozen=True):
    """The controller acts `seconds` after each reminder.

    For example:

        sim.pace("kubelet", Slow(30))
    """

    seconds: float


Pace = On | Off | Stuck | Slow
