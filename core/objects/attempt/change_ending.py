"""The end of an attempt at a change, an activity, or a change of the cluster."""

from __future__ import annotations

from fnop.core.handlers.declare.roles import ACTIVITIES
from fnop.core.memory.observation import scope_name, see
from fnop.core.memory.progress import Progress
from fnop.core.objects.attempt.judging import judgement_of, log_end
from fnop.core.objects.write.consequences import paced_by_index
from fnop.core.seam.commands import Say
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import IDLE, ObjectRecord
from fnop.effects.structs import replace

__all__ = ["change_ended"]


def change_ended(
    context: Context, record: ObjectRecord, invocation: Invocation, *, unwritten: bool
) -> tuple[ObjectRecord, Say | None]:
    """Return the record with the handler's judged progress, and the line to hold."""
    work, handler = record.work or IDLE, invocation.handler
    if handler.entries and (unwritten or invocation.done.acts):
        record = paced_by_index(context, record, handler)
    judgement = judgement_of(context, invocation, work.progress[handler.id])
    judged = judgement.progress
    said = log_end(context, invocation, judgement, unwritten=unwritten)
    if judged.finished == "failure" or judged.is_halted:
        context.turn.failed()
        if handler.role in ACTIVITIES:
            context.activity_failed()
    judged = _with_acted_digest(context, record, invocation, judged)
    progress = {**work.progress, handler.id: judged}
    return replace(record, work=replace(work, progress=progress)), said


def _with_acted_digest(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    own_progress: Progress,
) -> Progress:
    """Return progress with the digest acted upon, if the attempt may have acted.

    A handler may return to the state that it last handled. It is then not done with the
    state that it acted upon meanwhile. Until it is done, only that state shows the
    change.
    """
    body = invocation.situation.body
    if body is None or not context.is_served or context.settings.as_kopf:
        return own_progress
    if not own_progress.is_finished and not invocation.done.acts:
        return own_progress
    seen = see(body, context.kind.observation.as_of(invocation.situation.indices))
    acted = seen.digest(scope_name(invocation.handler.scope), "")
    if not own_progress.is_finished and acted == record.handled_by(invocation.handler):
        return own_progress
    was = seen if own_progress.is_finished else own_progress.seen
    return replace(own_progress, acted=acted, seen=was)
