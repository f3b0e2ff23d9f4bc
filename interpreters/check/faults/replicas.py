"""F15: several processes of the operator."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import Ahead, Behaviour, Performed
from fnop.interpreters.check.state.kinds import (
    RUN,
    SENT,
    Fault,
    FaultKind,
    Site,
    Trait,
)
from fnop.interpreters.check.state.processes import begin_second
from fnop.interpreters.check.state.records import Absence, Visit
from fnop.interpreters.check.state.resting import rest_anew
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.simulation.director import Crashed

__all__ = ["BEHAVIOUR"]


class Replicas(Behaviour):
    """The leader dies or stands still, or a second process works beside the first."""

    kinds = (
        FaultKind(
            "F15",
            "failover",
            SENT,
            "the leader dies after {site}, and the replica that stood by leads",
            290,
        ),
        FaultKind(
            "F15",
            "paused",
            SENT,
            "the leader stands still after {site}, until the replica that stood by "
            "works in its place",
            300,
        ),
        FaultKind(
            "F15",
            "former",
            RUN,
            "the former code runs beside this one",
            510,
            Trait.MERGES | Trait.SPECIAL,
        ),
        FaultKind(
            "F15",
            "two",
            RUN,
            "a second process of the operator runs beside the first",
            530,
            Trait.MERGES | Trait.SPECIAL,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether one of several processes leads."""
        return ahead.elected

    def targets(self, kind: FaultKind, ahead: Ahead) -> tuple[str, ...]:
        """The mode, if there is such a program."""
        if ahead.lives or (kind.mode == "former" and not ahead.former):
            return ()
        return (kind.mode,)

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """Let the leader stop, for good or for a while."""
        outcome = performed()
        state.absence = Absence.ASLEEP if fault.kind.mode == "paused" else Absence.DEAD
        state.successions += 1
        begin_second(state, state.scene.former or state.scene.program)
        rest_anew(state)
        if state.absence is Absence.ASLEEP:
            return outcome
        raise Crashed

    def begin(self, state: TrialState, fault: Fault) -> None:
        """Let a second process begin."""
        scene = state.scene
        former = scene.former if fault.kind.mode == "former" else None
        begin_second(state, former or scene.program)

    def heal(self, state: TrialState) -> None:
        """Let the first process work alone."""
        if state.second is not None:
            state.run.draws.drawn += state.second.draws.drawn
        state.second = None
        state.absence = Absence.NONE


BEHAVIOUR = Replicas()
