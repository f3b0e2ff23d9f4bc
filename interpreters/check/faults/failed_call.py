"""F17: a call outside of the API server fails."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import (
    Ahead,
    Behaviour,
    Performed,
    failed,
)
from fnop.interpreters.check.state.kinds import CALL, Fault, FaultKind, Site, Trait
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class FailedCall(Behaviour):
    """The connection is refused, once or three times."""

    kinds = (
        FaultKind("F17", "error", CALL, "{site} fails, and does nothing", 390),
        FaultKind(
            *("F17", "three errors", CALL, "{site} fails three times", 400),
            Trait.REPEATS,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether the call may fail: no whole handler does, without its own code."""
        return not ahead.lives

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """Let the call fail, without a consequence outside."""
        return failed(command, ConnectionError("connection refused"))


BEHAVIOUR = FailedCall()
