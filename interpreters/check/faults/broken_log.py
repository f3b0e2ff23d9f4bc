"""F24: the stream of a log breaks."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Behaviour
from fnop.interpreters.check.state.kinds import LOG, Fault, FaultKind, Trait
from fnop.interpreters.check.state.records import Hold
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class BrokenLog(Behaviour):
    """Lines of a log are late, or their stream ends, or the operator crashes."""

    kinds = (
        FaultKind("F24", "break", LOG, "the log breaks behind {site}", 250),
        FaultKind(
            "F24", "cut", LOG, "the log behind {site} is cut off within a line", 260
        ),
        FaultKind("F24", "late", LOG, "{site} are late, until rest", 270),
        FaultKind(
            *("F24", "crash", LOG, "crash before {site}", 280), Trait.CRASHES_AFTER
        ),
    )

    def strike_event(self, state: TrialState, fault: Fault, source: str) -> None:
        """Strike lines that are about to arrive."""
        run = state.run
        match fault.kind.mode:
            case "break":
                run.reads.logs.breaks(run.clock.now(), source)
            case "cut":
                run.reads.logs.cut(source)
            case "late":
                state.in_force.holds[source] = Hold("rest", state.user.place)
            case _:
                run.crash()


BEHAVIOUR = BrokenLog()
