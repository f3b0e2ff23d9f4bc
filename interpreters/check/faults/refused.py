"""F9: the API server refuses a request."""

from __future__ import annotations

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome, Refused, Unknown, Unreachable
from fnop.interpreters.check.state.behaviour import Behaviour, Performed, forbidden
from fnop.interpreters.check.state.kinds import (
    OTHERS,
    REQUEST,
    WRITE,
    Fault,
    FaultKind,
    Site,
    Trait,
)
from fnop.interpreters.check.state.state import TrialState

__all__ = ["BEHAVIOUR"]


class RefusedRequest(Behaviour):
    """A missing right, a webhook that rejects, throttling, and a failing etcd."""

    kinds = (
        FaultKind(
            *("F9", "forbidden", REQUEST, "{site} is refused with 403", 80),
            Trait.DENIES,
        ),
        FaultKind("F9", "invalid", OTHERS, "{site} is refused with 422", 90),
        FaultKind(
            *("F9", "busy", REQUEST, "{site} is answered with 429, three times", 100),
            Trait.REPEATS,
        ),
        FaultKind(
            *("F9", "failing", WRITE, "{site} is answered with 500, three times", 110),
            Trait.REPEATS,
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
        """Refuse the request."""
        match fault.kind.mode:
            case "forbidden":
                return forbidden(site)
            case "invalid":
                text = f"{site.target} is invalid, says a webhook"
                return Refused(422, text, "Invalid")
            case "busy":
                return Unreachable("too many requests", 1.0)
            case _:
                return Unknown("etcdserver: request timed out")


BEHAVIOUR = RefusedRequest()
