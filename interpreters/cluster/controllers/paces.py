"""The paces of the cluster's controllers: how soon each of them works."""

from __future__ import annotations

from fnop.effects.frozen import frozen

__all__ = ["Off", "On", "Pace", "Slow", "Stuck"]


@frozen
class On:
    """The controller does its work at once: the initial pace.

    For example:

        sim.pace("kubelet", On())
    """


@frozen
class Off:
    """The controller does not run; once back, it looks at everything, as after a start.

    For example:

        sim.pace("garbage", Off())
    """


@frozen
class Stuck:
    """The controller does nothing; its work accumulates until it is no longer stuck.

    For example:

        sim.pace("deployment", Stuck())
    """


@frozen
class Slow:
    """The controller acts `seconds` after each reminder.

    For example:

        sim.pace("kubelet", Slow(30))
    """

    seconds: float


Pace = On | Off | Stuck | Slow
