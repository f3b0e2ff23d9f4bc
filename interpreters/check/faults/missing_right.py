"""F22: a right is missing for a while."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import Behaviour, Performed, forbidden
from fnop.interpreters.check.state.kinds import REQUEST, Fault, FaultKind, Site, Trait
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


# The number of requests that are refused while a right is missing.
FORBIDDEN = 10


class MissingRight(Behaviour):
    """Requests of one verb for one object are refused, ten times or until a rest."""

    kinds = (
        FaultKind(
            "F22",
            "forbidden",
            REQUEST,
            "{site} and its like are refused ten times",
            490,
            Trait.DENIES,
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
        """Refuse the request, and those like it from now on."""
        state.in_force.forbidden[site.verb, site.target] = FORBIDDEN - 1
        return forbidden(site)

    def refuses(self, state: TrialState, site: Site) -> Outcome | None:
        """Refuse a request like that, as long as the right is missing."""
        left, like = state.in_force.forbidden, (site.verb, site.target)
        if left.get(like, 0) <= 0:
            return None
        left[like] -= 1
        return forbidden(site)

    def release(self, state: TrialState) -> bool:
        """Give the right back; whether it was missing."""
        was_missing = any(state.in_force.forbidden.values())
        if was_missing:
            state.in_force.forbidden.clear()
        return was_missing

    def heal(self, state: TrialState) -> None:
        """Give the right back."""
        state.in_force.forbidden.clear()


BEHAVIOUR = MissingRight()
