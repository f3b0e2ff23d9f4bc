"""F3: the operator is down while the user goes on."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import Ahead, Behaviour, Performed
from fnop.interpreters.check.state.kinds import (
    REST,
    SENT,
    Fault,
    FaultKind,
    Site,
    Trait,
)
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.simulation.director import Crashed

__all__ = ["BEHAVIOUR"]


class Down(Behaviour):
    """The operator crashes, and starts again after one or two actions of the user."""

    kinds = (
        FaultKind(
            "F3",
            "crash",
            SENT,
            "crash after {site}, and down while the user goes on",
            180,
            Trait.MERGES | Trait.CRASHES_AFTER,
        ),
        FaultKind(
            "F3",
            "down",
            REST,
            "the operator is down from the rest after {site} on, while the user goes "
            "on",
            320,
            Trait.MERGES,
        ),
        FaultKind(
            "F3",
            "down twice",
            REST,
            "the operator is down from the rest after {site} on, for two actions of "
            "the user",
            330,
            Trait.MERGES,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether the user has enough actions left."""
        return ahead.actions - visit.place >= _actions_of(kind)

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """Crash after the request, and stay down."""
        performed()
        state.in_force.down = 1
        raise Crashed

    def strike_rest(self, state: TrialState, fault: Fault) -> bool:
        """Stop when everything has settled."""
        state.run.crash()
        state.in_force.down = _actions_of(fault.kind)
        return False

    def heal(self, state: TrialState) -> None:
        """Start again."""
        state.in_force.down = 0


def _actions_of(kind: FaultKind) -> int:
    """The number of the user's actions for which the operator is down."""
    return 2 if kind.mode == "down twice" else 1


BEHAVIOUR = Down()
