"""The end of an attempt: judge it, log it, and keep its changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fnop.core.handlers.declare.roles import Family
from fnop.core.objects.attempt.background_ending import run_ended
from fnop.core.objects.attempt.change_ending import change_ended
from fnop.core.objects.attempt.event_ending import event_ended, lines_ended
from fnop.core.objects.attempt.reconciler_ending import reconciler_ended
from fnop.core.objects.report.explaining import tell_handled
from fnop.core.objects.write.consequences import log_successes
from fnop.core.seam.commands import Say
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import IDLE, ObjectRecord
from fnop.effects.structs import replace

__all__ = ["ENDINGS", "finish", "keep", "left"]


class Ending(Protocol):
    """The end of an attempt, for handlers of one family.

    It returns the record, and the log line to hold until the changes are written. The
    API server may still refuse changes that are `unwritten`.
    """

    def __call__(
        self,
        context: Context,
        record: ObjectRecord,
        invocation: Invocation,
        *,
        unwritten: bool,
    ) -> tuple[ObjectRecord, Say | None]: ...


# Handlers of the other families are called without an invocation.
ENDINGS: Mapping[Family, Ending] = {
    Family.LOG: lines_ended,
    Family.EVENT: event_ended,
    Family.BACKGROUND: run_ended,
    Family.RECONCILER: reconciler_ended,
    Family.CHANGE: change_ended,
    Family.ACTIVITY: change_ended,
    Family.CLUSTER: change_ended,
}


def left(
    invocations: tuple[Invocation, ...], ended: Invocation
) -> tuple[Invocation, ...]:
    return tuple([each for each in invocations if each.serial != ended.serial])


def keep(context: Context, record: ObjectRecord, *, ends: bool) -> None:
    """Store the record; at the end of a change, drop its work."""
    if ends:
        # The results that are left are of handlers whose parts have failed.
        work = replace((record.work or IDLE).without_change(), results={})
        work = log_successes(context, work)
        tell_handled(context, record)
        record = replace(record, work=work, initial=False)
    if record.work is not None and record.work.is_over:
        record = replace(record, work=None)
    context.put(record)


def finish(context: Context, record: ObjectRecord, invocation: Invocation) -> None:
    """Judge an attempt that is over, and keep its changes of the object."""
    before = record.work
    assert before is not None
    handler, end = invocation.handler, invocation.performance
    patches, results = before.patches, before.results
    if not record.gone and _is_about(record, invocation):
        patches += tuple((handler.id, patch) for patch in end.patches)
        if end.result is not None and end.failure is None:
            results = {**results, handler.result_id: end.result.value}
    unwritten = (len(patches), results) != (len(before.patches), before.results)
    ended = ENDINGS[handler.rule.family]
    record, said = ended(context, record, invocation, unwritten=unwritten)
    work = record.work or IDLE
    work = replace(
        work,
        running=left(work.running, invocation),
        event_runs=left(work.event_runs, invocation),
        background_runs=left(work.background_runs, invocation),
        reconciler_runs=left(work.reconciler_runs, invocation),
        patches=patches,
        results=results,
        successes=(*work.successes, (handler, said)) if said else work.successes,
    )
    keep(context, replace(record, work=work), ends=False)


def _is_about(record: ObjectRecord, invocation: Invocation) -> bool:
    """Whether an attempt was about this object, not about another one of its name."""
    body = invocation.situation.body
    return body is not None and body.uid == record.body.uid
