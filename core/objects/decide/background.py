"""Daemons and timers of one object: when each begins, is asked to stop, and ends.

Each runs independently (R13): it waits neither for the handlers of changes nor for
another daemon. A daemon is one long conversation. A timer begins again and again.

| the object     | at rest                 | under way                            |
|----------------|-------------------------|--------------------------------------|
| matches        | begins when it is due   | continues                            |
| does not match | its schedule is dropped | is requested to stop, then cancelled |
| is deleted     | does not begin          | is requested to stop, then cancelled |

An impure daemon cannot await the changed object, so fnop shows it each change.

A run that has ended by itself, or has failed permanently, does not begin again in this
process.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fnop.core.handlers.declare.filters import Callback
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.schedule import Schedule, due_at, next_run
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.writers import DaemonStoppingReason
from fnop.core.handlers.program.program import Kind
from fnop.core.memory.progress import FRESH, Progress
from fnop.core.objects.decide.selection import Circumstances, prematches
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import IDLE, ObjectRecord, RunState, Work
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects.structs import replace

__all__ = [
    "RescheduleRun",
    "ScheduleRun",
    "ShowChange",
    "StartRun",
    "StopRun",
    "UnscheduleRun",
    "background_action",
    "background_due",
    "holds_object",
    "rescheduled",
    "rested",
    "runs_due",
    "with_run_state",
]


class ScheduleRun(Struct, frozen=True):
    """Compute when a daemon or timer begins whose handler matches the object."""

    handler: Handler


class StartRun(Struct, frozen=True):
    """Begin a run of a daemon or timer."""

    handler: Handler
    run_state: RunState


class StopRun(Struct, frozen=True):
    """Request a run to stop; or cancel it, when its time to stop is up."""

    invocation: Invocation
    reason: DaemonStoppingReason


class RescheduleRun(Struct, frozen=True):
    """Call a timer's function for the interval.

    A run has ended, or the object has changed since.
    """

    handler: Handler
    run_state: RunState
    interval: Callback


class ShowChange(Struct, frozen=True):
    """Show the changed object to an impure daemon, which can read it meanwhile."""

    invocation: Invocation


class UnscheduleRun(Struct, frozen=True):
    """Drop the schedule of a handler that has stopped matching; it may match later."""

    handler: Handler


def background_action(
    at: Circumstances, record: ObjectRecord, work: Work
) -> (
    ScheduleRun | StartRun | ShowChange | StopRun | RescheduleRun | UnscheduleRun | None
):
    """The next action about an object's daemons and timers, if there is one now."""
    for handler in at.kind.background:
        reason = _stop_reason(at, record, handler)
        running = _run_of(work, handler)
        if running is not None:
            if _is_outdated(running, record.body):
                return ShowChange(running)
            if reason is not None and _may_stop_run(running, at.now):
                return StopRun(running, reason)
            continue
        run_state = record.background.get(handler.id)
        if reason is not None:
            if run_state is not None and not run_state.over:
                return UnscheduleRun(handler)
        elif run_state is None:
            if _is_held(at, record, handler):
                return ScheduleRun(handler)
        elif run_state.unfit_in not in (None, record.body.version):
            return UnscheduleRun(handler)  # it may fit now
        elif (
            interval := _due_interval_callback(record, handler, run_state)
        ) is not None:
            return RescheduleRun(handler, run_state, interval)
        elif _is_due(record, handler, run_state, at.now):
            return StartRun(handler, run_state)
    return None


def _due_interval_callback(
    record: ObjectRecord, handler: Handler, run_state: RunState
) -> Callback | None:
    """Return the function to call for a timer's interval now, if there is one."""
    assert handler.schedule is not None
    interval = handler.schedule.interval
    is_current = run_state.ended is None or run_state.timed_for == record.body.version
    return interval if isinstance(interval, Callback) and not is_current else None


def _run_of(work: Work, handler: Handler) -> Invocation | None:
    return next((e for e in work.background_runs if e.handler.id == handler.id), None)


def _is_outdated(running: Invocation, body: Body) -> bool:
    """Whether a call is under way that can read its object, and the object changed.

    Conversations get the object with the answer to their effect.
    """
    handler, shown = running.handler, running.situation.body
    if not handler.function or shown is None:
        return False
    in_flight = running.in_flight
    if running.asked is None or in_flight is None or in_flight.id is None:
        return False
    return handler.signature.takes("stopped") and shown.version != body.version


def _stop_reason(
    at: Circumstances, record: ObjectRecord, handler: Handler
) -> DaemonStoppingReason | None:
    if at.pausing:
        return DaemonStoppingReason.OPERATOR_PAUSING
    if at.stopping:
        return DaemonStoppingReason.OPERATOR_EXITING
    if record.gone or record.body.is_deleting:
        return DaemonStoppingReason.RESOURCE_DELETED
    if prematches(at, record, handler):
        return None
    return DaemonStoppingReason.FILTERS_MISMATCH


def _may_stop_run(running: Invocation, now: Now) -> bool:
    """Whether to request the stop once, or to cancel the run when its time is up."""
    if not running.stopped:
        return True
    return running.patience is not None and running.patience <= now.mono


def _is_held(at: Circumstances, record: ObjectRecord, handler: Handler) -> bool:
    """Whether the object cannot vanish meanwhile; the finalizer comes first (R20)."""
    return not handler.holds or at.settings.own_finalizer in record.body.finalizers


def _is_due(
    record: ObjectRecord, handler: Handler, run_state: RunState, now: Now
) -> bool:
    due = _due_time(record, handler, run_state)
    return due is not None and due <= now.mono


def _due_time(
    record: ObjectRecord, handler: Handler, run_state: RunState
) -> float | None:
    if run_state.over:
        return None
    assert handler.schedule is not None
    return due_at(handler.schedule, run_state.start, run_state.began, record.changed)


def background_due(at: Circumstances, record: ObjectRecord, work: Work) -> float | None:
    """The time when the next run of a daemon or timer at rest is due."""
    return None if at.stopping else min(runs_due(at.kind, record, work), default=None)


def runs_due(kind: Kind, record: ObjectRecord, work: Work) -> Iterator[float]:
    """Yield the due times of all daemons and timers at rest, as far as known."""
    for handler in kind.background:
        run_state = record.background.get(handler.id)
        if run_state is not None and _run_of(work, handler) is None:
            due = _due_time(record, handler, run_state)
            if due is not None:
                yield due


def holds_object(at: Circumstances, record: ObjectRecord) -> bool:
    """Whether a daemon or timer needs the finalizer: it may run, or still runs."""
    work = record.work or IDLE
    return any(
        handler.holds and _is_wanted(at, record, work, handler)
        for handler in at.kind.background
    )


def _is_wanted(
    at: Circumstances, record: ObjectRecord, work: Work, handler: Handler
) -> bool:
    if _run_of(work, handler) is not None:
        return True
    run_state = record.background.get(handler.id)
    if record.body.is_deleting or (run_state is not None and run_state.over):
        return False
    return prematches(at, record, handler)


def rested(
    handler: Handler,
    run_state: RunState,
    progress: Progress,
    now: Now,
    settings: Settings,
) -> RunState:
    """Return the state of a daemon or timer after a run ended with this progress.

    A permanent failure ends it, but in Kopf only a daemon. A delay comes before the
    schedule. A success resets the progress.
    """
    began = run_state.began
    if progress.finished == "failure" and (handler.rule.lasts or not settings.as_kopf):
        return RunState(None, began, over=True, progress=progress)
    if not progress.is_finished:
        return RunState(progress.due_at(now), began, progress=progress)
    schedule = handler.schedule or Schedule()
    if handler.rule.lasts:
        return RunState(None, began, over=True)
    if isinstance(schedule.interval, Callback):
        return RunState(None, began, ended=now.mono)
    began_at = now.mono if began is None else began
    start = next_run(schedule, schedule.interval, now, began_at)
    is_last = start is None and schedule.idle is None
    return RunState(start, began, over=is_last, progress=FRESH)


def rescheduled(
    handler: Handler, run_state: RunState, interval: float, version: str, now: Now
) -> RunState:
    """The state of a timer whose function returned this interval for that version."""
    assert handler.schedule is not None
    assert run_state.ended is not None
    ended = Now(now.wall - now.mono + run_state.ended, run_state.ended)
    began = run_state.ended if run_state.began is None else run_state.began
    start = next_run(handler.schedule, interval, ended, began)
    return replace(run_state, start=start, timed_for=version)


def with_run_state(
    record: ObjectRecord, handler: Handler, run_state: RunState | None
) -> ObjectRecord:
    """Return the record with the state of one daemon or timer (None: without it)."""
    others = {k: v for k, v in record.background.items() if k != handler.id}
    if run_state is not None:
        others[handler.id] = run_state
    return replace(record, background=others)
