"""F1: the operator crashes, and starts again."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import Behaviour, Performed
from fnop.interpreters.check.state.kinds import (
    ASKED,
    CLIENT,
    EVENT,
    REST,
    SENT,
    Fault,
    FaultKind,
    Place,
    Site,
    Trait,
)
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.simulation.director import Crashed

__all__ = ["BEHAVIOUR"]


class Crash(Behaviour):
    """The process ends before or after a request, before an event, or at a rest.

    A new process reads what the former one has made, and fnop itself retries a read
    that the API server throttles: only a refused one reaches the handler.
    """

    kinds = (
        FaultKind(
            *("F1", "after", SENT, "crash after {site}", 10),
            Trait.CRASHES_AFTER | Trait.ONLY_CRASHES,
            likely_next=(
                ("F9:forbidden", Place.READ),
                ("F17:error", Place.CALL),
                ("F8:touched", Place.OWN),
                ("F8:touched", Place.WRITE),
            ),
        ),
        FaultKind(
            *("F1", "client", CLIENT, "crash after {site}", 15),
            Trait.CRASHES_AFTER | Trait.ONLY_CRASHES,
        ),
        FaultKind(
            *("F1", "before", ASKED, "crash before {site}", 20),
            Trait.CRASHES_BEFORE | Trait.ONLY_CRASHES,
        ),
        FaultKind(
            *("F1", "event", EVENT, "crash before {site}", 240),
            Trait.CRASHES_BEFORE | Trait.ONLY_CRASHES,
        ),
        FaultKind(
            *("F1", "rest", REST, "crash when all has come to rest after {site}", 310),
            Trait.CRASHES_BEFORE | Trait.ONLY_CRASHES,
            likely_next=(("F9:forbidden", Place.READ), ("F17:error", Place.CALL)),
        ),
    )

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """Crash, after the request if it is sent."""
        if fault.kind.has(Trait.CRASHES_AFTER):
            performed()
        raise Crashed

    def strike_event(self, state: TrialState, fault: Fault, source: str) -> None:
        """Crash before the event arrives."""
        state.run.crash()

    def strike_rest(self, state: TrialState, fault: Fault) -> bool:
        """Crash when everything has settled."""
        state.run.crash()
        return True


BEHAVIOUR = Crash()
