"""The end of a call for a watch event, for log lines, or of a mapping."""

from __future__ import annotations

from fnop.core.memory.progress import FRESH
from fnop.core.objects.attempt.judging import report
from fnop.core.objects.decide.mapping_retries import TRIES_MAX, with_events
from fnop.core.seam.commands import AttemptEnded, Say
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import IDLE, ObjectRecord, PendingEvent
from fnop.effects.structs import replace

__all__ = ["event_ended", "lines_ended"]


def lines_ended(
    context: Context, record: ObjectRecord, invocation: Invocation, *, unwritten: bool
) -> tuple[ObjectRecord, Say | None]:
    """Report the end of a call whose failures are ignored."""
    failure = invocation.failure
    if failure is not None:
        line = f"failed, which is ignored: {failure}"
        ended = AttemptEnded("error", rejected=failure.rejected)
        report(context, invocation, "error", line, ended)
    elif invocation.performance.again is not None:
        line = "asks to be called again, but only the next watch event calls it"
        report(context, invocation, "warning", line)
    return record, None


def event_ended(
    context: Context, record: ObjectRecord, invocation: Invocation, *, unwritten: bool
) -> tuple[ObjectRecord, Say | None]:
    """Return the record after a call for an event; a failed mapping is called again.

    It is called for the same state, unless a newer watch event has asked for the call.
    """
    handler, situation = invocation.handler, invocation.situation
    failure, body = invocation.failure, situation.body
    if failure is None or body is None or handler.rule.ignores_failures:
        return lines_ended(context, record, invocation, unwritten=unwritten)
    known = replace(FRESH, retries=situation.retry)
    is_same = (body.uid, body.version) == (record.body.uid, record.body.version)
    is_past = record.gone or not is_same
    if is_past and failure.temporary is None:
        handler = replace(handler, retries=TRIES_MAX)
    judgement = context.turn.judge(handler, known, failure)
    if judgement.progress.finished == "failure":
        context.turn.failed()
    report(context, invocation, judgement.level, judgement.line, judgement.ended)
    if judgement.progress.is_finished:
        return record, None
    again = PendingEvent(invocation.handler, situation.reason, body, judgement.progress)
    work = record.work or IDLE
    pending = with_events((again,), work.pending_events)
    return replace(record, work=replace(work, pending_events=pending)), None
