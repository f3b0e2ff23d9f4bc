"""F23: the API server does not reach the operator's webhooks."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Ahead, Behaviour
from fnop.interpreters.check.state.kinds import REST, RUN, Fault, FaultKind, Trait
from fnop.interpreters.check.state.records import Hold, Visit
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class UnreachedWebhooks(Behaviour):
    """The webhooks are down, or answer too late, or the former code answers."""

    kinds = (
        FaultKind(
            "F23",
            "down",
            REST,
            "the operator's webhooks are not reached after {site}, until the user's "
            "next action has been tried",
            470,
        ),
        FaultKind(
            "F23",
            "slow",
            REST,
            "the operator's webhooks answer too late after {site}, until the user's "
            "next action has been tried",
            480,
        ),
        FaultKind(
            "F23",
            "former",
            RUN,
            "the former code answers every other review of a write",
            520,
            Trait.MERGES | Trait.SPECIAL,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether there are webhooks, and a next action of the user."""
        return ahead.reviews and ahead.actions > visit.place

    def targets(self, kind: FaultKind, ahead: Ahead) -> tuple[str, ...]:
        """The mode, if there are webhooks, and a former code."""
        return (kind.mode,) if ahead.former and ahead.reviews else ()

    def strike_rest(self, state: TrialState, fault: Fault) -> bool:
        """Begin the time without webhooks."""
        state.in_force.outage = Hold(fault.kind.mode, state.user.place)
        return False

    def begin(self, state: TrialState, fault: Fault) -> None:
        """Let the former code answer every other review."""
        state.in_force.is_shared = state.journal.reviews.are_skipped = True

    def release(self, state: TrialState) -> bool:
        """Let webhooks be reached when an action has been tried without them."""
        outage = state.in_force.outage
        if outage is None or not (state.is_over or state.user.place > outage.since):
            return False
        state.in_force.outage = None
        return True

    def heal(self, state: TrialState) -> None:
        """Let webhooks be reached, and the new code alone answer."""
        state.in_force.outage, state.in_force.is_shared = None, False


BEHAVIOUR = UnreachedWebhooks()
