"""F10: a reply is lost."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import (
    Ahead,
    Behaviour,
    Performed,
    unanswered,
)
from fnop.interpreters.check.state.kinds import SENT, Fault, FaultKind, Place, Site
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class LostReply(Behaviour):
    """The request is applied without a reply, or is lost itself.

    A request whose reply was lost is sent again, and meets its own effect.
    """

    kinds = (
        FaultKind(
            *("F10", "applied", SENT, "{site} is applied, and its reply is lost", 30),
            likely_next=(("F1:after", Place.WRITE), ("F1:after", Place.CALL)),
        ),
        FaultKind(
            "F10", "lost", SENT, "{site} is lost on its way, without a reply", 40
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether the reply may be lost: no reply of a whole handler is."""
        return not (ahead.lives and visit.site.place is Place.CALL)

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """Give no reply."""
        if fault.kind.mode == "applied":
            performed()
        return unanswered(command)


BEHAVIOUR = LostReply()
