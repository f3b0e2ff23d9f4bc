"""F12: the operator's clock is wrong, or its steps are slow."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Behaviour
from fnop.interpreters.check.state.kinds import RUN, Fault, FaultKind
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


# The error of the clock, in seconds.
SKEW = 30.0


class Clock(Behaviour):
    """The clock is ahead or behind for the whole run; steps are slow until the end."""

    kinds = (
        FaultKind("F12", "slow", RUN, "each step takes a second", 360),
        FaultKind("F12", "ahead", RUN, "the operator's clock is 30 s ahead", 370),
        FaultKind("F12", "behind", RUN, "the operator's clock is 30 s behind", 380),
    )

    def begin(self, state: TrialState, fault: Fault) -> None:
        """Change the clock, or slow the steps down."""
        match fault.kind.mode:
            case "slow":
                state.in_force.is_slow = True
            case "ahead":
                state.run.skew = SKEW
            case _:
                state.run.skew = -SKEW

    def heal(self, state: TrialState) -> None:
        """Let steps take no time."""
        state.in_force.is_slow = False


BEHAVIOUR = Clock()
