"""F6: a watch breaks."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Behaviour
from fnop.interpreters.check.state.kinds import EVENT, Fault, FaultKind
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class BrokenWatch(Behaviour):
    """The stream ends before an event, or the API server answers 410 (Gone)."""

    kinds = (
        FaultKind("F6", "break", EVENT, "the watch breaks before {site}", 220),
        FaultKind(
            "F6", "gone", EVENT, "the watch is answered with 410 before {site}", 230
        ),
    )

    def strike_event(self, state: TrialState, fault: Fault, source: str) -> None:
        """Break the stream."""
        if fault.kind.mode == "gone":
            state.run.reads.watches.breaks(source, 410)
        else:
            state.run.reads.watches.breaks(source)


BEHAVIOUR = BrokenWatch()
