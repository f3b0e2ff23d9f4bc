"""F16: a webhook of another product changes objects."""

from __future__ import annotations

from fnop.effects.structs import replace
from fnop.interpreters.check.state.behaviour import Behaviour
from fnop.interpreters.check.state.kinds import RIVAL, RUN, Fault, FaultKind
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.runtime.protocol import APPLY_PATCH, ApiRequest

__all__ = ["BEHAVIOUR"]


class ForeignWebhook(Behaviour):
    """Everything that is created, or applied, gets a label and an annotation."""

    kinds = (
        FaultKind(
            *("F16", "webhook", RUN, "a webhook labels and annotates what is created"),
            350,
        ),
    )

    def begin(self, state: TrialState, fault: Fault) -> None:
        """Register the webhook, which stays after the end of the faults."""
        state.in_force.is_hooked = True

    def admits(self, state: TrialState, request: ApiRequest) -> ApiRequest:
        """The request as the webhook changes it."""
        if not state.in_force.is_hooked:
            return request
        if request.method != "POST" and request.content_type != APPLY_PATCH:
            return request
        body = request.body
        if not isinstance(body, dict) or body.get("kind") in ("Event", "DeleteOptions"):
            return request
        meta = {**(body.get("metadata") or {})}
        for stanza in ("labels", "annotations"):
            meta[stanza] = {**(meta.get(stanza) or {}), RIVAL: "webhook"}
        return replace(request, body={**body, "metadata": meta})


BEHAVIOUR = ForeignWebhook()
