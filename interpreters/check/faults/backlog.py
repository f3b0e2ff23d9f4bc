"""F18: the operator starts when the script is over."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Behaviour
from fnop.interpreters.check.state.kinds import RUN, Fault, FaultKind, Trait
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.simulation.admission import has_admission

__all__ = ["BEHAVIOUR"]


class Backlog(Behaviour):
    """Nothing reaches the operator before the user has done everything."""

    kinds = (
        FaultKind(
            "F18",
            "backlog",
            RUN,
            "the operator starts after all of it",
            460,
            Trait.MERGES | Trait.STARTS_LATE,
        ),
    )

    def begin(self, state: TrialState, fault: Fault) -> None:
        """Keep everything from the operator; its webhooks are not registered yet."""
        state.in_force.is_backlog = True
        state.journal.reviews.are_skipped = has_admission(state.scene.program)

    def heal(self, state: TrialState) -> None:
        """Let the operator start."""
        state.in_force.is_backlog = False


BEHAVIOUR = Backlog()
