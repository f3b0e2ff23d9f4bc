"""F2, F3: a watch is late, and may skip what it has not shown."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Ahead, Behaviour
from fnop.interpreters.check.state.kinds import EVENT, Fault, FaultKind, Trait
from fnop.interpreters.check.state.records import Hold, Visit
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class HeldWatch(Behaviour):
    """The events of one kind are held back until a rest, or until an action settles."""

    kinds = (
        FaultKind(
            *("F2", "rest", EVENT, "the watch is late from {site} on, until rest", 190)
        ),
        FaultKind(
            "F2",
            "action",
            EVENT,
            "the watch is late from {site} on, until the user's next action has "
            "settled",
            200,
            Trait.MERGES,
        ),
        FaultKind(
            "F3",
            "gap",
            EVENT,
            "the watch is late from {site} on, until the user's next action has "
            "settled; then it is answered with 410, and what it had not shown stays "
            "unseen",
            210,
            Trait.MERGES,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether the user has a next action, if the watch is late until then."""
        return kind.mode == "rest" or ahead.actions > visit.place

    def strike_event(self, state: TrialState, fault: Fault, source: str) -> None:
        """Hold the events back from now on."""
        state.in_force.holds[source] = Hold(fault.kind.mode, state.user.place)

    def release(self, state: TrialState) -> bool:
        """Deliver the events of watches, and the lines of logs, that were late."""
        holds, is_released = state.in_force.holds, False
        for source, hold in tuple(holds.items()):
            is_settled = state.user.place > hold.since or state.is_over
            if hold.until == "rest" or is_settled:
                del holds[source]
                if hold.until == "gap":
                    state.run.reads.watches.breaks(source, 410)
                is_released = True
        return is_released

    def heal(self, state: TrialState) -> None:
        """Deliver all events."""
        state.in_force.holds.clear()


BEHAVIOUR = HeldWatch()
