"""F7: every kind is listed again."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Behaviour
from fnop.interpreters.check.state.kinds import REST, Fault, FaultKind
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class ListedAgain(Behaviour):
    """All watches end with 410, so the operator lists every kind again."""

    kinds = (
        FaultKind("F7", "again", REST, "every kind is listed anew after {site}", 340),
    )

    def strike_rest(self, state: TrialState, fault: Fault) -> bool:
        """Break all watches."""
        for source in sorted({*state.run.reads.watches.kinds}):
            state.run.reads.watches.breaks(source, 410)
        return True


BEHAVIOUR = ListedAgain()
