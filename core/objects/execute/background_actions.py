"""Execute the actions of daemons and timers."""

from __future__ import annotations

from fnop.core.handlers.declare.filters import Callback
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.schedule import first_run
from fnop.core.handlers.declare.writers import DaemonStoppingReason
from fnop.core.handlers.run.arguments import Situation, seconds_of
from fnop.core.memory.progress import (
    FRESH,
    Progress,
    attempting,
    deadline_of,
    seconds_left,
    started_at,
    time_out,
)
from fnop.core.objects.attempt.attempts import (
    OUTSTANDING_SECONDS,
    go_on,
    interrupt,
    runs_outside,
    stop,
    store,
)
from fnop.core.objects.attempt.background_ending import report_cancelled
from fnop.core.objects.attempt.ending import keep, left
from fnop.core.objects.decide.background import (
    RescheduleRun,
    ScheduleRun,
    ShowChange,
    StartRun,
    StopRun,
    UnscheduleRun,
    rescheduled,
    rested,
    with_run_state,
)
from fnop.core.objects.report.complaints import complain
from fnop.core.objects.report.explaining import tell_begun
from fnop.core.objects.report.tracing import trace_begun
from fnop.core.seam.commands import Refresh
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation, Pause
from fnop.core.state.record import IDLE, ObjectRecord, RunState
from fnop.core.values.backoff import Backoff
from fnop.effects.structs import replace

__all__ = ["run_background"]

# A daemon's time after the request to stop, unless it sets its own.
GRACE_SECONDS = 10.0


# A timer waits this long even if its function always returns an overdue time.
_OVERDUE_SECONDS = 1.0


def run_background(
    context: Context,
    record: ObjectRecord,
    action: ScheduleRun
    | StartRun
    | ShowChange
    | StopRun
    | RescheduleRun
    | UnscheduleRun,
) -> None:
    match action:
        case ScheduleRun(handler):
            _schedule_run(context, record, handler)
        case StartRun(handler, run_state):
            _start_run(context, record, handler, run_state)
        case ShowChange(invocation):
            _show_change(context, record, invocation)
        case StopRun(invocation, reason):
            _stop_run(context, record, invocation, reason)
        case RescheduleRun():
            _reschedule_run(context, record, action)
        case UnscheduleRun(handler):
            context.put(with_run_state(record, handler, None))


def _schedule_run(context: Context, record: ObjectRecord, handler: Handler) -> None:
    """Compute when a daemon or timer begins for the first time."""
    schedule = handler.schedule
    assert schedule is not None
    delay = schedule.initial_delay
    if isinstance(delay, Callback):
        context.turn.drives += 1
        situation = _situation_of(context, record, handler)
        delay, problem = seconds_of(delay, situation, otherwise=0.0)
        if problem is not None:
            line = "initial_delay= failed and counts as 0"
            complain(context, record, line, problem)
            record = context.record or record  # with the complaint
    start = first_run(schedule, context.now, delay)
    context.put(with_run_state(record, handler, RunState(start)))


def _reschedule_run(
    context: Context, record: ObjectRecord, action: RescheduleRun
) -> None:
    """Call a timer's function for the interval, in the same way as filters."""
    handler, backoff = action.handler, context.settings.default_backoff
    usual = backoff.most if isinstance(backoff, Backoff) else backoff
    situation = _situation_of(context, record, handler)
    seconds, problem = seconds_of(action.interval, situation, otherwise=usual)
    seconds = seconds if seconds > 0 else _OVERDUE_SECONDS
    if problem is not None:
        line = f"interval= of {handler.id} failed and counts as {usual:g} s"
        complain(context, record, line, problem)
        record = context.record or record  # with the complaint
    version = record.body.version
    run_state = rescheduled(handler, action.run_state, seconds, version, context.now)
    context.put(with_run_state(record, handler, run_state))


def _situation_of(
    context: Context, record: ObjectRecord, handler: Handler, progress: Progress = FRESH
) -> Situation:
    return Situation(
        handler,
        context.settings,
        context.now,
        context.kind.resource,
        record.body,
        retry=progress.retries,
        started=started_at(progress, context.now),
        memo=record.memo,
        indices=context.turn.objects.indices,
    )


def _start_run(
    context: Context, record: ObjectRecord, handler: Handler, run_state: RunState
) -> None:
    """Begin a run of a daemon or timer, unless its time has run out."""
    progress = run_state.progress
    if seconds_left(progress, handler.timeout, context.now) <= 0:
        _time_out(context, record, handler, run_state)
        return
    situation = _situation_of(context, record, handler, progress)
    progress = attempting(progress, context.now)
    deadline = deadline_of(progress, handler.timeout, context.now)
    invocation = Invocation(context.turn.next_serial(), situation, deadline=deadline)
    work = record.work or IDLE
    record = replace(
        record, work=replace(work, background_runs=(*work.background_runs, invocation))
    )
    begun = RunState(None, context.now.mono, progress=progress)
    tell_begun(context, invocation)
    trace_begun(context, invocation)
    go_on(context, with_run_state(record, handler, begun), invocation)


def _time_out(
    context: Context, record: ObjectRecord, handler: Handler, run_state: RunState
) -> None:
    """End a daemon or timer whose deadline has passed between two attempts."""
    assert handler.timeout is not None
    why = run_state.progress.message or "still waiting"
    judgement = time_out(run_state.progress, handler.timeout, why)
    context.turn.failed()
    level, line = judgement.level, judgement.line
    context.say_of(handler, level, line, body=record.body, error=why)
    after = rested(
        handler, run_state, judgement.progress, context.now, context.settings
    )
    context.put(with_run_state(record, handler, after))


def _show_change(
    context: Context, record: ObjectRecord, invocation: Invocation
) -> None:
    """Give the present object to an impure daemon, which is under way."""
    in_flight = invocation.in_flight
    assert in_flight is not None
    assert in_flight.id is not None
    context.turn.emit(Refresh(in_flight.id, record.body, context.now.wall))
    situation = replace(invocation.situation, body=record.body)
    store(context, record, replace(invocation, situation=situation))


def _stop_run(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    reason: DaemonStoppingReason,
) -> None:
    """Request a daemon to stop; cancel it if that takes too long, and then give it up.

    Each stage is left out for a daemon that cannot notice it.
    """
    if not invocation.stopped and _can_notice_stop(invocation):
        _request_stop(context, record, invocation, reason)
    elif not invocation.cancelled and runs_outside(invocation):
        _cancel_outside(context, record, invocation, reason)
    else:
        _give_up(context, record, invocation, reason)


def _request_stop(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    reason: DaemonStoppingReason,
) -> None:
    seconds = invocation.handler.cancellation_backoff
    patience = context.now.mono + (GRACE_SECONDS if seconds is None else seconds)
    told = replace(invocation, stopped=reason.value, patience=patience)
    if isinstance(invocation.awaits, Pause):
        told = replace(told, awaits=Pause(context.now.mono))  # cut short
    interrupt(context, invocation, reason.value)
    store(context, record, told)


def _cancel_outside(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    reason: DaemonStoppingReason,
) -> None:
    """Cancel an impure daemon: the changes of a coroutine that catches it count."""
    seconds = invocation.handler.cancellation_timeout
    patience = context.now.mono + (OUTSTANDING_SECONDS if seconds is None else seconds)
    told = replace(
        invocation,
        stopped=invocation.stopped or reason.value,
        cancelled=True,
        patience=patience,
        deadline=None,
    )
    interrupt(context, invocation, reason.value, cancel=True)
    store(context, record, told)


def _give_up(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    reason: DaemonStoppingReason,
) -> None:
    told = replace(invocation, stopped=invocation.stopped or reason.value)
    if not invocation.cancelled:
        record = stop(context, record, invocation)
    assert record.work is not None
    runs = left(record.work.background_runs, invocation)
    record = replace(record, work=replace(record.work, background_runs=runs))
    report_cancelled(context, told)
    keep(context, with_run_state(record, invocation.handler, None), ends=False)


def _can_notice_stop(invocation: Invocation) -> bool:
    """Whether a run can notice the request to stop."""
    handler = invocation.handler
    names_it = handler.signature.takes("stopped")
    wants = names_it or handler.cancellation_backoff is not None
    return wants and invocation.asked is not None
