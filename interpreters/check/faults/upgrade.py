"""F20: the former code runs first, and is replaced."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Ahead, Behaviour
from fnop.interpreters.check.state.kinds import REST, Fault, FaultKind, Trait
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class Upgrade(Behaviour):
    """The former code of the operator runs up to a rest, and then the new code."""

    kinds = (
        FaultKind(
            "F20",
            "upgrade",
            REST,
            "the former code runs up to {site}, and is replaced there",
            500,
            Trait.MERGES | Trait.FROM_THE_START | Trait.UPGRADES,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether there is a former code, and it has had something to do."""
        return ahead.former and visit.place > 0

    def strike_rest(self, state: TrialState, fault: Fault) -> bool:
        """Replace the former code."""
        state.run.crash(state.scene.program)
        return True


BEHAVIOUR = Upgrade()
