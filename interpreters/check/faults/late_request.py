"""F11: a request lands late."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import (
    Ahead,
    Behaviour,
    Performed,
    unanswered,
)
from fnop.interpreters.check.state.kinds import WRITE, Fault, FaultKind, Site, Trait
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.runtime.protocol import ApiRequest
from fnop.interpreters.runtime.requests import request_for
from fnop.interpreters.simulation.director import Crashed

__all__ = ["BEHAVIOUR"]


class LateRequest(Behaviour):
    """The request is on its way until a rest, or until the user's next action.

    Its sender may have crashed by then.
    """

    kinds = (
        FaultKind(
            "F11",
            "crash",
            WRITE,
            "crash at {site}, which lands after the next one's work",
            50,
            Trait.LANDS_LATE,
        ),
        FaultKind(
            "F11",
            "late",
            WRITE,
            "{site} times out, and lands when all has come to rest",
            60,
            Trait.LANDS_LATE,
        ),
        FaultKind(
            "F11",
            "zombie",
            WRITE,
            "crash at {site}, which lands after the user's next action",
            70,
            Trait.LANDS_LATE | Trait.MERGES,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether there is an action before which the request is on its way."""
        return kind.mode != "zombie" or ahead.actions > visit.place

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """Keep the request on its way."""
        until = "action" if fault.kind.mode == "zombie" else "rest"
        manager = state.run.machine.settings.marker
        late = (request_for(command, manager), until, state.user.place)
        state.in_force.late.append(late)
        if fault.kind.mode == "late":
            return unanswered(command)
        raise Crashed

    def release(self, state: TrialState) -> bool:
        """Let requests land that have been on their way for long enough."""
        late, is_released = state.in_force.late, False
        for each in tuple(late):
            request, until, since = each
            if until == "rest" or state.user.place > since or state.is_over:
                late.remove(each)
                _send_late_request(state, request)
                is_released = True
        return is_released

    def heal(self, state: TrialState) -> None:
        """Let all requests land."""
        for request, _, _ in state.in_force.late:
            _send_late_request(state, request)
        state.in_force.late.clear()


def _send_late_request(state: TrialState, request: ApiRequest) -> None:
    version = state.run.cluster.version
    body = state.request("late", request).body
    meta = body.get("metadata") if isinstance(body, dict) else None
    if state.run.cluster.version != version and isinstance(meta, dict):
        state.journal.stray.add(str(meta.get("uid")))


BEHAVIOUR = LateRequest()
