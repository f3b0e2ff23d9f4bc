"""The end of an attempt: judge it, log it, and keep its changes."""

from __future__ import annotations

from typing import assert_never

from fnop.core.children.findings import Unkept
from fnop.core.children.marks import outside
from fnop.core.children.siblings import has_failed
from fnop.core.children.synchronise import Synchronised
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ACTIVITIES, Family
from fnop.core.memory.observation import scope_name, see
from fnop.core.memory.progress import (
    FRESH,
    Judgement,
    Progress,
    judge_again,
    succeeded,
)
from fnop.core.objects.decide.background import rested, with_run_state
from fnop.core.objects.decide.mapping_retries import TRIES_MAX, with_events
from fnop.core.objects.report.events import note_line
from fnop.core.objects.write.consequences import log_successes, paced_by_index
from fnop.core.seam.commands import AttemptEnded, Say
from fnop.core.state.context import Context
from fnop.core.state.record import (
    IDLE,
    Invocation,
    ObjectRecord,
    PendingEvent,
    ReconcilerState,
    RunState,
    Work,
)
from fnop.core.values.errors import act_of
from fnop.core.values.evolve import replace
from fnop.core.values.pace import (
    FOLLOWED_CHANGES,
    ROLLOUT_CHANGES,
    Pace,
    is_quiet,
    paced,
)
from fnop.effects import Again
from fnop.effects.desired import StatusCondition

__all__ = ["finish", "keep", "left", "report"]

# A call that is due within this time comes at once: it counts as no wait.
AT_ONCE_SECONDS = 0.1


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
    if not record.gone and _is_about(record, invocation):
        patches += tuple((handler.id, patch) for patch in invocation.patches)
        if invocation.result is not None and invocation.failure is None:
            results = {**results, handler.result_id: invocation.result.value}
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
            record, said = _reconciler_ended(
                context, record, invocation, unwritten=unwritten
            )
        case Family.CHANGE | Family.ACTIVITY | Family.CLUSTER:
            if handler.entries and (unwritten or invocation.acts):
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
    elif invocation.again is not None:
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
    judgement = _judgement_of(context, invocation, run_state.progress)
    is_routine = judgement.progress.has_succeeded and not handler.rule.lasts
    if is_routine:
        judgement = replace(judgement, level="debug")
    said = _log_end(context, invocation, judgement, unwritten=unwritten)
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


def _reconciler_ended(
    context: Context, record: ObjectRecord, invocation: Invocation, *, unwritten: bool
) -> tuple[ObjectRecord, Say | None]:
    """Return the record after a reconcile call, and the log line to hold.

    A request to be called again is not a failure: it does not count as a retry.
    """
    handler = invocation.handler
    state = record.reconcilers.get(handler.id) or ReconcilerState()
    again = invocation.again if invocation.failure is None else None
    judgement = _judgement_of(context, invocation._replace(again=None), state.progress)
    progress = judgement.progress
    if progress.has_succeeded:
        judgement = replace(judgement, level="debug")
    elif progress.finished == "failure":
        context.failed()
    said = _log_end(context, invocation, judgement, unwritten=unwritten)
    asked = state.start  # meanwhile: nothing else sets it during a call
    if progress.has_succeeded:
        after = None if again is None else again.after
        # An answer that an object is gone may be wrong: the watch shows whether it is.
        looks = state.looks + 1 if _is_unshown(invocation) else 0
        pause = context.settings.echo_timeout_seconds * 2 ** min(looks - 1, 6)
        look = pause if looks else None
        waits = [each for each in (after, handler.resync, look) if each is not None]
        start = context.now.mono + min(waits) if waits else None
        refused = state.refused if unwritten else FRESH
        state = state._replace(
            start=start, progress=FRESH, refused=refused, looks=looks
        )
    elif progress.is_finished and handler.resync is not None:
        start = context.now.mono + handler.resync
        state = state._replace(start=start, progress=FRESH)
    elif progress.is_finished:
        state = state._replace(start=None, over=True, progress=progress)
    else:
        start = progress.due_at(context.now)
        state = state._replace(start=start, progress=progress)
    end = invocation.synchronised
    holds = state.holds if end is None else end.holds
    if holds and not state.holds:
        asked = context.now.mono  # it continues once the finalizer is there
    if asked is not None:
        state = state._replace(start=asked)
    state = state._replace(
        holds=holds,
        held=state.held or bool(holds) or _had_foreign_children(invocation),
        checked=end.checked if end else state.checked,
        answer=end.answer if end else state.answer,
        synced=_synced_condition(invocation, end),
    )
    if end is not None and end.repaired:
        pace = _pace_after_repair(context, invocation, state, end.repaired)
        state = state._replace(pace=pace)
    if end is not None and end.unkept:
        _tell_unkept(context, handler, end.unkept)
    state = _slow_down_calls(context, invocation, state, _own_causes(invocation, again))
    return record._replace(reconcilers={**record.reconcilers, handler.id: state}), said


def _is_unshown(invocation: Invocation) -> bool:
    """Whether the watch has yet to show what an answer has reported to a call."""
    return invocation.synchronised is not None and invocation.synchronised.unshown


def _had_foreign_children(invocation: Invocation) -> bool:
    """Whether the object had children that only the operator deletes with it."""
    keeping = invocation.situation.keeping
    if keeping is None or keeping.keeper is None:
        return False
    return bool(outside(keeping.owned.bodies, keeping.keeper.set))


def _synced_condition(
    invocation: Invocation, end: Synchronised | None
) -> StatusCondition | None:
    """A reconciler's part in `Synced`; None if it desires nothing."""
    if end is not None:
        return end.synced
    failure = invocation.failure
    return None if failure is None else has_failed(str(failure))


def _tell_unkept(
    context: Context, handler: Handler, unkept: tuple[Unkept, ...]
) -> None:
    """Warn about fields that no API server keeps: once for each manifest."""
    for label, applied, fields in unkept:
        context.warn_once(
            f"unkept {context.key} {label} {applied}",
            f"{handler.id} desires {', '.join(fields[:5])} of {label}, which the API "
            "server does not keep: its definition has no such field",
        )


def _own_causes(invocation: Invocation, again: Again | None) -> tuple[str, ...]:
    """The reasons why a reconcile call leads to another one at once.

    A call that a reconciler has asked for, and that asks for others, may form a loop
    with them.
    """
    end = invocation.synchronised
    found = [f"changes {each}" for each in end.changed] if end else []
    if invocation.asks_itself:
        found.append("requeues itself")
    elif invocation.asks_others and invocation.was_asked:
        found.append("requeues others, and is requeued by them")
    if again is not None and again.after < AT_ONCE_SECONDS:
        found.append(f"asks to be called again in {again.after:g} s")
    return tuple(found)


def _slow_down_calls(
    context: Context,
    invocation: Invocation,
    state: ReconcilerState,
    why: tuple[str, ...],
) -> ReconcilerState:
    """Return the state after a call that leads to another one, perhaps without end.

    If a handler loops with itself, each of its calls leads to the next. If a call in
    between leads to nothing, the handler follows others' changes: a child's status, or
    a mapping. Such a series may be long, though two handlers that follow each other may
    also continue without end. So may a handler whose set of children grows, one after
    the other.
    """
    began = invocation.situation.now.mono
    series = state.own
    if is_quiet(series, began):
        series = Pace(most=ROLLOUT_CHANGES)
    if not why:
        has_come_to_rest = invocation.failure is None and not invocation.asks_others
        most = FOLLOWED_CHANGES if has_come_to_rest else series.most
        return state._replace(own=series._replace(most=most))
    handler, end = invocation.handler, invocation.synchronised
    grows = end is not None and end.grows and len(why) == len(end.changed)
    most = series.most
    if grows:
        series = series._replace(most=FOLLOWED_CHANGES)
    own = paced(series, context.now.mono, {handler.id: why}, began=began)
    if own.is_loop:
        context.warn_once(
            f"restless {context.key.resource} {handler.id}",
            f"{handler.id} is called again and again for what it does itself: it "
            f"{' and '.join(why[:5])}, {own.changes} times in a row; the next calls "
            "wait for growing pauses; let it desire the same while the object and its "
            "children are the same, and wait by fnop.desired(again=...)",
        )
    start = state.start
    if start is not None:
        start = max(start, own.until)
    return state._replace(own=own._replace(most=most), start=start)


def _pace_after_repair(
    context: Context,
    invocation: Invocation,
    state: ReconcilerState,
    what: tuple[str, ...],
) -> Pace:
    """Return the pace after a repair: another client may undo the repair each time."""
    handler, began = invocation.handler, invocation.situation.now.mono
    pace = paced(state.pace, context.now.mono, {handler.id: what}, began=began)
    if pace.is_loop:
        context.warn_once(
            f"repairs {context.key.resource} {handler.id} {what}",
            f"{handler.id} repairs {', '.join(what[:5])} again and again: another "
            f"client has changed it {pace.changes} times in a row; the next calls wait "
            "for growing pauses; leave the field to that client, or stop it",
        )
    return pace


def _judged(
    context: Context, invocation: Invocation, progress: Progress, *, unwritten: bool
) -> tuple[Progress, Say | None]:
    judgement = _judgement_of(context, invocation, progress)
    said = _log_end(context, invocation, judgement, unwritten=unwritten)
    if judgement.progress.finished == "failure" or judgement.progress.is_halted:
        context.failed()
        if invocation.handler.role in ACTIVITIES:
            context.activity_failed()
    return judgement.progress, said


def _log_end(
    context: Context,
    invocation: Invocation,
    judgement: Judgement,
    *,
    unwritten: bool,
) -> Say | None:
    """Log the end of an attempt; or return the line, if a write must come first.

    Only a success waits for the write. A failure or a delay does not depend on it.
    """
    is_success = judgement.progress.has_succeeded and invocation.failure is None
    if unwritten and is_success:
        return _end_line(
            context, invocation, judgement.level, judgement.line, judgement.ended
        )
    report(context, invocation, judgement.level, judgement.line, judgement.ended)
    return None


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
    if not own_progress.is_finished and not invocation.acts:
        return own_progress
    seen = see(body, context.kind.observation.as_of(invocation.situation.indices))
    acted = seen.digest(scope_name(invocation.handler.scope), "")
    if not own_progress.is_finished and acted == record.handled_by(invocation.handler):
        return own_progress
    was = seen if own_progress.is_finished else own_progress.seen
    return own_progress._replace(acted=acted, seen=was)


def _judgement_of(
    context: Context, invocation: Invocation, progress: Progress
) -> Judgement:
    handler, failure = invocation.handler, invocation.failure
    if failure is not None:
        return context.judge(handler, progress, failure)
    if invocation.again is not None:
        again = invocation.again
        return judge_again(
            progress,
            context.now,
            after=again.after,
            because=again.because,
            timeout=handler.timeout,
        )
    if invocation.parts:
        # It succeeds when its sub-handlers have succeeded.
        waiting = progress._replace(retries=progress.retries + 1, delegated=True)
        number = len(invocation.parts)
        what = "1 sub-handler" if number == 1 else f"{number} sub-handlers"
        ended = AttemptEnded("delegated")
        return Judgement(waiting, "debug", f"waits for {what}", ended)
    ended = AttemptEnded("success")
    return Judgement(succeeded(progress), "info", "succeeded", ended)


def report(
    context: Context,
    invocation: Invocation,
    level: str,
    line: str,
    ended: AttemptEnded | None = None,
) -> None:
    """Log a line about an attempt, with its end if it has ended."""
    said = _end_line(context, invocation, level, line, ended)
    note_line(context, invocation.handler, level, said.message)
    context.emit(said)


def _end_line(
    context: Context,
    invocation: Invocation,
    level: str,
    line: str,
    ended: AttemptEnded | None,
) -> Say:
    handler, failure = invocation.handler, invocation.failure
    return context.line(
        level,
        f"{handler.label} {line}",
        body=invocation.situation.body,
        handler=handler.id,
        error=str(failure) if failure else None,
        exception=failure.exception if failure and not failure.is_expected else None,
        took=context.now.mono - invocation.situation.now.mono,
        ended=ended,
        act=act_of(failure.exception) if failure else None,
    )
