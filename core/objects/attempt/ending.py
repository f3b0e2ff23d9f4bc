"""The end of an attempt: judge it, log it, and keep its changes."""

from __future__ import annotations

from typing import assert_never

from fnop.core.handlers.declare.roles import ACTIVITIES, Family
from fnop.core.memory.observation import scope_name, see
from fnop.core.memory.progress import (
    FRESH,
    Progress,
)
from fnop.core.objects.attempt.judging import judgement_of, log_end, report
from fnop.core.objects.attempt.reconciler_ending import reconciler_ended
from fnop.core.objects.decide.background import rested, with_run_state
from fnop.core.objects.decide.mapping_retries import TRIES_MAX, with_events
from fnop.core.objects.write.consequences import log_successes, paced_by_index
from fnop.core.seam.commands import AttemptEnded, Say
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import (
    IDLE,
    ObjectRecord,
    PendingEvent,
    RunState,
    Work,
)
from fnop.core.values.evolve import replace

__all__ = ["finish", "keep", "left"]


def left(
    invocations: tuple[Invocation, ...], ended: Invocation
) -> tuple[Invocation, ...]:
    return tuple(each for each in invocations if each.serial != ended.serial)


def keep(context: Context, record: ObjectRecord, *, ends: bool) -> None:
    """Store the record; at the end of a change, drop its work."""
    if ends:
        work = (record.work or IDLE)._replace(
            change=None, progress={}, declared={}, results={}
        )
        work = log_successes(context, work, ends=True)
        record = record._replace(work=work, initial=False)
    if record.work is not None and record.work.is_over:
        record = record._replace(work=None)
    context.put(record)


def finish(context: Context, record: ObjectRecord, invocation: Invocation) -> None:
    """Judge an attempt that is over, and keep its changes of the object."""
    work = record.work
    assert work is not None
    handler = invocation.handler
    patches, results, progress = work.patches, work.results, work.progress
    end = invocation.performance
    if not record.gone and _is_about(record, invocation):
        patches += tuple((handler.id, patch) for patch in end.patches)
        if end.result is not None and end.failure is None:
            results = {**results, handler.result_id: end.result.value}
    # The server may still refuse its changes.
    unwritten = (len(patches), results) != (len(work.patches), work.results)
    said: Say | None = None
    match handler.rule.family:
        case Family.LOG:
            _event_handled(context, invocation)
        case Family.EVENT if handler.rule.ignores_failures:
            _event_handled(context, invocation)
        case Family.EVENT:
            work = _mapped(context, record, work, invocation)
        case Family.BACKGROUND:
            record, said = _run_ended(context, record, invocation, unwritten=unwritten)
        case Family.RECONCILER:
            record, said = reconciler_ended(
                context, record, invocation, unwritten=unwritten
            )
        case Family.CHANGE | Family.ACTIVITY | Family.CLUSTER:
            if handler.entries and (unwritten or invocation.done.acts):
                record = paced_by_index(context, record, handler)
            own = progress[handler.id]
            judged, said = _judged(context, invocation, own, unwritten=unwritten)
            judged = _with_acted_digest(context, record, invocation, judged)
            progress = {**progress, handler.id: judged}
        case Family.INDEX | Family.OUTSIDE | Family.ADMISSION:
            raise AssertionError(f"{handler.id} is called without an invocation")
        case never:
            assert_never(never)
    work = work._replace(
        running=left(work.running, invocation),
        event_runs=left(work.event_runs, invocation),
        background_runs=left(work.background_runs, invocation),
        reconciler_runs=left(work.reconciler_runs, invocation),
        patches=patches,
        results=results,
        progress=progress,
        successes=(*work.successes, (handler, said)) if said else work.successes,
    )
    keep(context, record._replace(work=work), ends=False)


def _is_about(record: ObjectRecord, invocation: Invocation) -> bool:
    """Whether an attempt was about this object, not about another one of its name."""
    body = invocation.situation.body
    return body is not None and body.uid == record.body.uid


def _event_handled(context: Context, invocation: Invocation) -> None:
    failure = invocation.failure
    if failure is not None:
        line = f"failed, which is ignored: {failure}"
        ended = AttemptEnded("error", rejected=failure.rejected)
        report(context, invocation, "error", line, ended)
    elif invocation.performance.again is not None:
        line = "asks to be called again, but only the next watch event calls it"
        report(context, invocation, "warning", line)


def _mapped(
    context: Context, record: ObjectRecord, work: Work, invocation: Invocation
) -> Work:
    """Return the work after a call of a mapping; a failed mapping is called again.

    It is called for the same state, unless a newer watch event has asked for the call.
    """
    failure, situation = invocation.failure, invocation.situation
    body = situation.body
    if failure is None or body is None:
        _event_handled(context, invocation)
        return work
    handler, known = invocation.handler, FRESH._replace(retries=situation.retry)
    is_same = (body.uid, body.version) == (record.body.uid, record.body.version)
    is_past = record.gone or not is_same
    if is_past and failure.temporary is None:
        handler = replace(handler, retries=TRIES_MAX)
    judgement = context.judge(handler, known, failure)
    if judgement.progress.finished == "failure":
        context.failed()
    report(context, invocation, judgement.level, judgement.line, judgement.ended)
    if judgement.progress.is_finished:
        return work
    again = PendingEvent(invocation.handler, situation.reason, body, judgement.progress)
    return work._replace(pending_events=with_events((again,), work.pending_events))


def _run_ended(
    context: Context, record: ObjectRecord, invocation: Invocation, *, unwritten: bool
) -> tuple[ObjectRecord, Say | None]:
    """Return the record after a run of a daemon or timer, and the log line to hold."""
    handler = invocation.handler
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
        context.failed()
    after = rested(handler, run_state, judgement.progress, context.now)
    failure, body = invocation.failure, invocation.situation.body
    if after.over and failure is not None and failure.misfit and body is not None:
        after = after._replace(unfit_in=body.version)
    return with_run_state(record, handler, after), said


def _judged(
    context: Context, invocation: Invocation, progress: Progress, *, unwritten: bool
) -> tuple[Progress, Say | None]:
    judgement = judgement_of(context, invocation, progress)
    said = log_end(context, invocation, judgement, unwritten=unwritten)
    if judgement.progress.finished == "failure" or judgement.progress.is_halted:
        context.failed()
        if invocation.handler.role in ACTIVITIES:
            context.activity_failed()
    return judgement.progress, said


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
    if body is None or not context.is_served:
        return own_progress
    if not own_progress.is_finished and not invocation.done.acts:
        return own_progress
    seen = see(body, context.kind.observation.as_of(invocation.situation.indices))
    acted = seen.digest(scope_name(invocation.handler.scope), "")
    if not own_progress.is_finished and acted == record.handled_by(invocation.handler):
        return own_progress
    was = seen if own_progress.is_finished else own_progress.seen
    return own_progress._replace(acted=acted, seen=was)
