"""F13: the user goes on before the operator is ready."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import Ahead, Behaviour, Performed
from fnop.interpreters.check.state.kinds import (
    ASKED,
    EVENT,
    SENT,
    Fault,
    FaultKind,
    Site,
    Trait,
)
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.check.state.user import go_on

__all__ = ["BEHAVIOUR"]


class UserGoesOn(Behaviour):
    """The user does the next action while the operator is still at work."""

    kinds = (
        FaultKind(
            *("F13", "before", ASKED, "the user goes on before {site}", 150),
            Trait.MERGES,
        ),
        FaultKind(
            *("F13", "after", SENT, "the user goes on after {site}", 160),
            Trait.MERGES,
        ),
        FaultKind(
            *("F13", "event", EVENT, "the user goes on before {site}", 170),
            Trait.MERGES,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether the user has a next action."""
        return ahead.actions > visit.place

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """Let the user go on before or after the request."""
        if fault.kind.mode == "before":
            go_on(state)
            return performed()
        outcome = performed()
        go_on(state)
        return outcome

    def strike_event(self, state: TrialState, fault: Fault, source: str) -> None:
        """Let the user go on before the event arrives."""
        go_on(state)


BEHAVIOUR = UserGoesOn()
