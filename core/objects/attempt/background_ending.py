"""The end of a run of a daemon or timer: whether, and when, the next one begins."""

from __future__ import annotations

from fnop.core.objects.attempt.judging import judgement_of, log_end, report
from fnop.core.objects.decide.background import rested, with_run_state
from fnop.core.seam.commands import AttemptEnded, Say
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import ObjectRecord, RunState
from fnop.effects.outcomes import CANCELLED
from fnop.effects.structs import replace

__all__ = ["report_cancelled", "run_ended"]


def run_ended(
    context: Context, record: ObjectRecord, invocation: Invocation, *, unwritten: bool
) -> tuple[ObjectRecord, Say | None]:
    """Return the record after a run of a daemon or timer, and the log line to hold."""
    handler = invocation.handler
    if invocation.cancelled and _was_cut_short(invocation):
        report_cancelled(context, invocation)
        return with_run_state(record, handler, None), None
    run_state = record.background.get(handler.id) or RunState(None)
    judgement = judgement_of(context, invocation, run_state.progress)
    is_routine = judgement.progress.has_succeeded and not handler.rule.lasts
    if is_routine:
        judgement = replace(judgement, level="debug")
    said = log_end(context, invocation, judgement, unwritten=unwritten)
    if invocation.stopped:
        # It begins again if the object matches again.
        return with_run_state(record, handler, None), said
    if judgement.progress.finished == "failure":
        context.turn.failed()
    after = rested(
        handler, run_state, judgement.progress, context.now, context.settings
    )
    failure, body = invocation.failure, invocation.situation.body
    if after.over and failure is not None and failure.misfit and body is not None:
        after = replace(after, unfit_in=body.version)
    return with_run_state(record, handler, after), said


def _was_cut_short(invocation: Invocation) -> bool:
    """Whether a cancelled coroutine has passed its cancellation on."""
    failure = invocation.failure
    return failure is not None and failure.type == CANCELLED.type


def report_cancelled(context: Context, invocation: Invocation) -> None:
    """Log that a run was cancelled, and why."""
    line, ended = f"is cancelled: {invocation.stopped}", AttemptEnded("cancelled")
    report(context, invocation, "info", line, ended)
