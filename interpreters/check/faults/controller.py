"""F14: a controller of the cluster is stuck or slow."""

from __future__ import annotations

from collections.abc import Iterable

from fnop.interpreters.check.state.behaviour import Ahead, Behaviour
from fnop.interpreters.check.state.kinds import RUN, Fault, FaultKind, Trait
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.cluster import On, Slow, Stuck
from fnop.interpreters.simulation.actions import SetPace, act

__all__ = ["BEHAVIOUR"]


# The seconds that a slow controller takes for each turn.
SLOW = 20.0


class Controller(Behaviour):
    """A controller such as that of Deployments does nothing, or works slowly."""

    kinds = (
        FaultKind(
            "F14",
            "stuck",
            RUN,
            "the controller {site} is stuck until the end",
            410,
            Trait.STOPS_CONTROLLER,
        ),
        FaultKind(
            "F14", "slow", RUN, "the controller {site} takes 20 s for each turn", 420
        ),
    )

    def targets(self, kind: FaultKind, ahead: Ahead) -> Iterable[str]:
        """The controllers that work for the operator's objects."""
        return sorted(ahead.controllers)

    def begin(self, state: TrialState, fault: Fault) -> None:
        """Slow the controller down."""
        controller = fault.site.target
        state.in_force.paces.add(controller)
        pace = Stuck() if fault.kind.mode == "stuck" else Slow(SLOW)
        act(state.run, SetPace(controller, pace))

    def heal(self, state: TrialState) -> None:
        """Let all controllers work at their usual pace."""
        for controller in sorted(state.in_force.paces):
            act(state.run, SetPace(controller, On()))


BEHAVIOUR = Controller()
