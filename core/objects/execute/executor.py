"""Execute actions: from a decision about one object to commands and state.

`serve` gets the next action from `next_action` and executes it. It repeats this until
nothing is left to do now, or it has called the author's code once.
"""

from __future__ import annotations

from functools import partial

from fnop.core.handlers.declare.roles import ACTIVITIES
from fnop.core.handlers.declare.writers import DaemonStoppingReason
from fnop.core.handlers.run.arguments import Situation
from fnop.core.memory.progress import (
    Progress,
    attempting,
    deadline_of,
    seconds_left,
    started_at,
    time_out,
)
from fnop.core.memory.stored_state import shared
from fnop.core.objects.attempt.attempts import expire, go_on, stop
from fnop.core.objects.attempt.ending import keep, left
from fnop.core.objects.decide.actions import (
    Abandon,
    Action,
    Cancel,
    Conclude,
    Continue,
    ContinueWrite,
    Expire,
    Forget,
    HandleEvent,
    Overlook,
    ReadLive,
    RecordInMemory,
    Rest,
    StartAttempt,
    TimeOut,
    Write,
    earlier,
    first_due,
)
from fnop.core.objects.decide.background import (
    RescheduleRun,
    ScheduleRun,
    ShowChange,
    StartRun,
    StopRun,
    UnscheduleRun,
)
from fnop.core.objects.decide.mapping_retries import first_event_due
from fnop.core.objects.decide.next_action import continue_or_expire, next_action
from fnop.core.objects.decide.reconcilers import (
    CallReconciler,
    LeaveReconciler,
    StopReconciler,
)
from fnop.core.objects.decide.selecting_events import event_handler_wants
from fnop.core.objects.decide.selection import Circumstances, Undecided
from fnop.core.objects.execute.background_actions import run_background
from fnop.core.objects.execute.containment import guarded, pause_of
from fnop.core.objects.execute.reconciler_actions import run_reconciler
from fnop.core.objects.report.complaints import complain
from fnop.core.objects.report.explaining import tell_begun, tell_superseded
from fnop.core.objects.report.tracing import trace_begun
from fnop.core.objects.store.store import aside
from fnop.core.objects.write.expectations import look_at
from fnop.core.objects.write.write import begin_write, continue_write
from fnop.core.seam.commands import AttemptEnded
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.lifecycle import SUSPENDED, Phase, cancels_at
from fnop.core.state.record import IDLE, Change, Deferred, ObjectRecord, PendingEvent
from fnop.effects.structs import replace

__all__ = ["serve"]

# One reconcile of an object never needs more actions than this: an overall limit.
_ACTIONS_MAX = 64
# Actions that may call the author's code: once in a step (R11).
_DRIVING = (
    Continue,
    HandleEvent,
    ScheduleRun,
    StartRun,
    StopRun,
    StartAttempt,
    Cancel,
    Expire,
    Abandon,
    CallReconciler,
    StopReconciler,
)


def serve(context: Context) -> None:
    """Do all due work on one object, calling the author's code at most once."""
    is_suspended = context.turn.lifecycle.phase in SUSPENDED and not context.is_activity
    if is_suspended and not _drains(context):
        _drop_work(context)
        return
    if (until := pause_of(context)) is not None:
        context.due(until)
        return
    for _ in range(_ACTIONS_MAX):
        if context.keeps_still:
            _drop_work(context)
            return
        record = context.record
        if record is None or (record.deferred and not record.gone):
            return  # it is relisted before any work on it
        action = _decide_action(context, record)
        record = context.record or record  # a complaint may have been noted
        if isinstance(action, Rest):
            if is_suspended and not (record.work or IDLE).is_under_way:
                _drop_work(context)
                return
            if record.left:
                context.put(replace(record, left=False))
            _rest_until(context, action.until)
            return
        if context.turn.drives and isinstance(action, _DRIVING):
            if not record.left:
                context.put(replace(record, left=True))
            context.due()
            return
        event = action.pending_event if isinstance(action, HandleEvent) else None
        work = partial(_execute, context, record, action)
        if not guarded(context, record, work, event):
            return
    _rest_until(context, context.now.mono)


def _drains(context: Context) -> bool:
    """Whether impure handlers of an object go on in a pause of peering, as in Kopf.

    What they have made outside is known by their ends alone. Pure handlers are
    cancelled, and called again: they have made nothing.
    """
    record, life = context.record, context.turn.lifecycle
    is_paused = life.phase is Phase.FROZEN and life.frozen is None
    if not (is_paused and context.settings.as_kopf):
        return False
    if record is None or record.deferred is not None or record.work is None:
        return False
    return all(each.handler.function for each in record.work.invocations)


def _drop_work(context: Context) -> None:
    """End the work on an object, one conversation a step, without a request.

    Another process may continue the object now. fnop remembers the ends of handlers, in
    case no process does. It also remembers the rest of a write whose request is under
    way.
    """
    record = context.record
    is_aside = record and record.deferred and record.work is None
    if record is None or (is_aside and not record.gone):
        return
    work = record.work or IDLE
    for each in work.invocations:
        pausing = DaemonStoppingReason.OPERATOR_PAUSING.value
        stop(context, record, each, reason=pausing)
        rest = replace(
            work,
            running=left(work.running, each),
            event_runs=left(work.event_runs, each),
            background_runs=left(work.background_runs, each),
            reconciler_runs=left(work.reconciler_runs, each),
        )
        context.put(replace(record, work=rest))
        context.due()
        return
    if record.gone:
        context.drop()
    elif work.awaits_write:
        # The answer decides which requests remain.
        context.put(replace(record, deferred=record.deferred or Deferred()))
    else:
        context.put(aside(context, record))


def _rest_until(context: Context, until: float | None) -> None:
    """Reconcile the object again at this time; never at once: that is a loop."""
    if until is not None and until <= context.now.mono:
        context.warn_once(
            f"no rest {context.key}",
            "is due again at this very moment; it is reconciled again in 1 s",
        )
        until = context.now.mono + 1.0
    if until is not None:
        context.due(until)


def _decide_action(context: Context, record: ObjectRecord) -> Action:
    """Return the next action, by `next_action`; log the errors of filters."""
    if context.is_activity:
        return _activity_action(context, record)
    try:
        kind = context.kind
    except KeyError:
        return Forget()  # its kind is no longer served
    turn, now = context.turn, context.now
    objects, logs = turn.objects, turn.logs
    at = Circumstances(
        kind,
        context.settings,
        now,
        turn.counters.seed,
        cancels_at(turn.lifecycle, now, context.settings.drain_seconds),
        objects.indices,
        [],
        context.children,
        objects.body,
        turn.streams.is_blind,
        logs.open_until(context.key) if logs.read else None,
        turn.lifecycle.phase is Phase.FROZEN,
    )
    try:
        found = next_action(at, record)
    except BaseException as problem:
        _complain_undecided(context, record, problem)
        work = record.work or IDLE
        runs = first_due((*work.running, *work.event_runs))
        return Rest(earlier(runs, first_event_due(work.pending_events, now.mono)))
    for handler, error in found.failures:
        text = f"a filter of {handler.id} failed, so it is not called for this state"
        complain(context, record, text, error)
    return found.action


def _complain_undecided(
    context: Context, record: ObjectRecord, problem: BaseException
) -> None:
    """Log why fnop does nothing about an object in its present state."""
    text = "the next action for this state cannot be decided"
    if isinstance(problem, Undecided):
        text = (
            f"a filter of {problem.handler.id} failed, so the object is neither "
            "handled nor released"
        )
        problem = problem.error
    complain(context, record, text, problem)


def _activity_action(context: Context, record: ObjectRecord) -> Action:
    """The next action of startup or cleanup: one handler after the other."""
    work = record.work or IDLE
    for each in work.running:
        if each.ready:
            return Continue(each)
        return continue_or_expire(each, context.now) or Rest(each.due)
    assert work.change is not None
    for handler in work.change.selected:
        progress = work.progress.get(handler.id) or Progress(handler.role.value)
        if progress.is_finished:
            continue
        if seconds_left(progress, handler.timeout, context.now) <= 0:
            return TimeOut(handler, progress, progress.message or "still waiting")
        moment = progress.due_at(context.now)
        if moment > context.now.mono:
            return Rest(moment)
        return StartAttempt(handler, work.change, progress)
    return Forget()


def _execute(context: Context, record: ObjectRecord, action: Action) -> None:
    """Execute one action: change the record, drive a handler, or send a request."""
    match action:
        case Continue(invocation, ends):
            go_on(context, record, invocation, ends)
        case HandleEvent(pending_event):
            _handle_event(context, record, pending_event)
        case StartAttempt():
            _start_attempt(context, record, action)
        case (
            ScheduleRun()
            | StartRun()
            | ShowChange()
            | StopRun()
            | RescheduleRun()
            | UnscheduleRun()
        ):
            run_background(context, record, action)
        case CallReconciler() | StopReconciler() | LeaveReconciler():
            run_reconciler(context, record, action)
        case Cancel() | Conclude() | TimeOut() | Expire() | Abandon():
            _end_handler(context, record, action)
        case Write() | ContinueWrite():
            _write(context, record, action)
        case RecordInMemory() | Overlook():
            _remember_state(context, record, action)
        case ReadLive():
            look_at(context, record)
        case Rest():
            pass
        case Forget():
            context.drop()


def _write(
    context: Context, record: ObjectRecord, action: Write | ContinueWrite
) -> None:
    match action:
        case Write(contents):
            begin_write(context, record, contents)
        case ContinueWrite(writing):
            continue_write(context, record, writing)


def _remember_state(
    context: Context, record: ObjectRecord, action: RecordInMemory | Overlook
) -> None:
    match action:
        case RecordInMemory(stored, ends, released):
            released = released or record.released
            stored = shared(stored, record.stored)
            keep(context, replace(record, stored=stored, released=released), ends=ends)
        case Overlook(seen):
            context.put(replace(record, overlooked=seen))


# ------------------------------------------------------------- invocations


def _start_attempt(
    context: Context, record: ObjectRecord, action: StartAttempt
) -> None:
    """Start an attempt: its arguments do not change after this (R6)."""
    handler, change, progress = action.handler, action.change, action.progress
    work = record.work or IDLE
    progress = attempting(progress, context.now)
    own, news = not context.is_activity, context.change
    situation = Situation(
        handler,
        context.settings,
        context.now,
        context.kind.resource if own else getattr(news, "resource", None),
        record.body if own else None,
        change.reason if own else handler.role.value,
        record.before(handler, context.kind.observation) if own else None,
        progress.retries,
        started_at(progress, context.now),
        record.memo,
        context.turn.objects.indices,
        cluster_change=news,
    )
    deadline = deadline_of(progress, handler.timeout, context.now)
    invocation = Invocation(context.turn.next_serial(), situation, deadline=deadline)
    if work.running and work.change is not None:
        # The change keeps its own view; only the attempt gets a fresh one (R15).
        aims = work.change.aims
        if handler.id in aims:  # and no part, which is added when needed
            aims = {**aims, handler.id: change.aims[handler.id]}
        change = replace(work.change, aims=aims)
    if work.change is None or work.change.reason is not change.reason:
        tell_superseded(context, record, change.reason.value)
    work = replace(
        work,
        change=change,
        running=(*work.running, invocation),
        progress={**work.progress, handler.id: progress},
    )
    tell_begun(context, invocation)
    trace_begun(context, invocation)
    go_on(context, replace(record, work=work), invocation)


def _end_handler(
    context: Context,
    record: ObjectRecord,
    action: Cancel | Conclude | TimeOut | Expire | Abandon,
) -> None:
    match action:
        case Cancel():
            _cancel_all(context, record)
        case Conclude():
            _conclude_handler(context, record, action)
        case TimeOut():
            _time_out(context, record, action)
        case Expire(invocation):
            expire(context, record, invocation)
        case Abandon(invocation):
            assert record.work is not None
            _cancel_attempt(context, record, invocation, change=record.work.change)


def _conclude_handler(context: Context, record: ObjectRecord, action: Conclude) -> None:
    """Record and log that a handler has ended together with its sub-handlers."""
    handler, progress, work = action.handler, action.progress, record.work
    assert work is not None
    error = None
    level, line = "info", "succeeded"
    if action.failed:
        level, line, error = "error", "failed for good", progress.message
        line = f"{line}, as its sub-handler {action.failed} has"
    ended = AttemptEnded("error" if action.failed else "success")
    context.say_of(handler, level, line, error=error, ended=ended)
    work = replace(work, progress={**work.progress, handler.id: progress})
    context.put(replace(record, work=work))


def _time_out(context: Context, record: ObjectRecord, action: TimeOut) -> None:
    """End a handler between two attempts, or while its sub-handlers continue."""
    handler, work = action.handler, record.work or IDLE
    assert handler.timeout is not None
    judgement = time_out(action.progress, handler.timeout, action.why)
    context.turn.failed()
    if handler.role in ACTIVITIES:
        context.activity_failed()
    context.say_of(handler, judgement.level, judgement.line, error=action.why)
    work = replace(work, progress={**work.progress, handler.id: judgement.progress})
    context.put(replace(record, work=work))


def _handle_event(
    context: Context, record: ObjectRecord, pending_event: PendingEvent
) -> None:
    work = record.work
    assert work is not None
    handler = pending_event.handler
    if handler.filters.asks_indices and not event_handler_wants(
        context, record, pending_event
    ):
        rest = tuple(each for each in work.pending_events if each is not pending_event)
        keep(
            context,
            replace(record, work=replace(work, pending_events=rest)),
            ends=False,
        )
        return
    situation = Situation(
        pending_event.handler,
        context.settings,
        context.now,
        context.kind.resource,
        pending_event.body,
        pending_event.type,
        retry=pending_event.progress.retries,
        started=context.now.wall,
        memo=record.memo,
        indices=context.turn.objects.indices,
        line=pending_event.line,
        container=pending_event.container,
    )
    invocation = Invocation(context.turn.next_serial(), situation)
    work = replace(
        work,
        event_runs=(*work.event_runs, invocation),
        pending_events=tuple(
            each for each in work.pending_events if each is not pending_event
        ),
    )
    tell_begun(context, invocation)
    trace_begun(context, invocation)
    go_on(context, replace(record, work=work), invocation)


def _cancel_all(context: Context, record: ObjectRecord) -> None:
    """End the first of the conversations; the others follow, one a step."""
    work = record.work
    assert work is not None
    is_last = len(work.running) == 1
    _cancel_attempt(
        context, record, work.running[0], change=None if is_last else work.change
    )


def _cancel_attempt(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    *,
    change: Change | None,
) -> None:
    record = stop(context, record, invocation)
    assert record.work is not None
    rest = left(record.work.running, invocation)
    work = replace(record.work, running=rest, change=change)
    keep(context, replace(record, work=work), ends=False)
    ended = AttemptEnded("cancelled")
    handler, body = invocation.handler, record.body
    context.say_of(handler, "info", "is cancelled", body=body, ended=ended)
