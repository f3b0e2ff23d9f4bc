"""Daemons and timers of one object: when each begins, is told to stop, and ends.

Each has a lane of its own (R13): it waits neither for the handlers of changes nor for
another daemon.  A daemon is a conversation that goes on; a timer one that begins
again and again.

| the object     | at rest                   | under way                   |
|----------------|---------------------------|-----------------------------|
| matches        | begins when it is due     | goes on                     |
| does not match | its schedule is forgotten | is told, and then cancelled |
| is deleted     | does not begin            | is told, and then cancelled |

An impure one, which cannot await the object as it is by then, is shown each change.

One that has ended by itself or has failed for good does not begin again in this
process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fnop.core.handlers.filters import Callback
from fnop.core.handlers.handler import Handler, Role
from fnop.core.handlers.program import Kind
from fnop.core.handlers.schedule import Schedule, due_at, next_run
from fnop.core.handlers.writers import DaemonStoppingReason
from fnop.core.memory.progress import FRESH, Progress
from fnop.core.objects.selection import Moment, prematches
from fnop.core.state.record import IDLE, Invocation, Known, Standing, Work
from fnop.core.values.body import Body
from fnop.core.values.now import Now

__all__ = [
    "Dismiss",
    "Engage",
    "Halt",
    "Retime",
    "Show",
    "Tend",
    "background_due",
    "background_move",
    "holds_object",
    "rested",
    "retimed",
    "runs_due",
    "with_standing",
]


class Engage(NamedTuple):
    """A daemon or timer is for this object: find out when it begins."""

    handler: Handler


class Tend(NamedTuple):
    """Begin a run of a daemon or timer."""

    handler: Handler
    standing: Standing


class Halt(NamedTuple):
    """Tell a run to stop; or cancel it, when it was told and is out of patience."""

    invocation: Invocation
    reason: DaemonStoppingReason


class Retime(NamedTuple):
    """Ask a timer's function for the interval: a run has ended, or the object is
    another one since.
    """

    handler: Handler
    standing: Standing
    interval: Callback


class Show(NamedTuple):
    """Show an impure daemon its object as it is now: it can look at it meanwhile."""

    invocation: Invocation


class Dismiss(NamedTuple):
    """It is not for this object any more: it begins anew when it is again."""

    handler: Handler


def background_move(
    at: Moment, known: Known, work: Work
) -> Engage | Tend | Show | Halt | Retime | Dismiss | None:
    """The next move about an object's daemons and timers, if there is one now."""
    for handler in at.kind.background:
        reason = _stop_reason(at, known, handler)
        running = _running(work, handler)
        if running is not None:
            if _is_outdated(running, known.body):
                return Show(running)
            if reason is not None and _may_halt(running, at.now):
                return Halt(running, reason)
            continue
        standing = known.background.get(handler.id)
        if reason is not None:
            if standing is not None and not standing.over:
                return Dismiss(handler)
        elif standing is None:
            if _is_held(at, known, handler):
                return Engage(handler)
        elif (interval := _untimed(known, handler, standing)) is not None:
            return Retime(handler, standing, interval)
        elif _is_due(known, handler, standing, at.now):
            return Tend(handler, standing)
    return None


def _untimed(known: Known, handler: Handler, standing: Standing) -> Callback | None:
    """The function that is to be asked for a timer's interval now, if there is one."""
    assert handler.schedule is not None
    interval = handler.schedule.interval
    is_current = standing.ended is None or standing.timed_for == known.body.version
    return interval if isinstance(interval, Callback) and not is_current else None


def _running(work: Work, handler: Handler) -> Invocation | None:
    return next((e for e in work.tending if e.handler.id == handler.id), None)


def _is_outdated(running: Invocation, body: Body) -> bool:
    """Whether a call is under way that can look at its object, and it is newer now.

    Those who converse get it with the answer to what they wait for.
    """
    handler, shown = running.handler, running.situation.body
    if not handler.function or shown is None:
        return False
    errand = running.errand
    if running.asked is None or errand is None or errand.id is None:
        return False
    return handler.signature.takes("stopped") and shown.version != body.version


def _stop_reason(
    at: Moment, known: Known, handler: Handler
) -> DaemonStoppingReason | None:
    if at.stopping:
        return DaemonStoppingReason.OPERATOR_EXITING
    if known.gone or known.body.is_deleting:
        return DaemonStoppingReason.RESOURCE_DELETED
    if prematches(at, known, handler):
        return None
    return DaemonStoppingReason.FILTERS_MISMATCH


def _may_halt(running: Invocation, now: Now) -> bool:
    """It is told once, and cancelled when its time is up."""
    if not running.stopped:
        return True
    return running.patience is not None and running.patience <= now.mono


def _is_held(at: Moment, known: Known, handler: Handler) -> bool:
    """Whether the object cannot vanish under it; the finalizer comes first (R20)."""
    return not handler.finalizer or at.settings.marker in known.body.finalizers


def _is_due(known: Known, handler: Handler, standing: Standing, now: Now) -> bool:
    due = _due(known, handler, standing)
    return due is not None and due <= now.mono


def _due(known: Known, handler: Handler, standing: Standing) -> float | None:
    if standing.over:
        return None
    assert handler.schedule is not None
    return due_at(handler.schedule, standing.start, standing.began, known.changed)


def background_due(at: Moment, known: Known, work: Work) -> float | None:
    """When the next run of a daemon or timer at rest is due."""
    return None if at.stopping else min(runs_due(at.kind, known, work), default=None)


def runs_due(kind: Kind, known: Known, work: Work) -> Iterator[float]:
    """When each daemon and timer at rest is due, where that is known."""
    for handler in kind.background:
        standing = known.background.get(handler.id)
        if standing is not None and _running(work, handler) is None:
            due = _due(known, handler, standing)
            if due is not None:
                yield due


def holds_object(at: Moment, known: Known) -> bool:
    """Whether a daemon or timer needs the finalizer: it may run, or still does."""
    work = known.work or IDLE
    return any(
        handler.finalizer and _is_wanted(at, known, work, handler)
        for handler in at.kind.background
    )


def _is_wanted(at: Moment, known: Known, work: Work, handler: Handler) -> bool:
    if _running(work, handler) is not None:
        return True
    standing = known.background.get(handler.id)
    if known.body.is_deleting or (standing is not None and standing.over):
        return False
    return prematches(at, known, handler)


def rested(
    handler: Handler, standing: Standing, progress: Progress, now: Now
) -> Standing:
    """How it stands after a run that ended with this record.

    A failure for good ends it, a delay comes before the schedule, and a success
    forgets what it took.
    """
    began = standing.began
    if progress.finished == "failure":
        return Standing(None, began, over=True, progress=progress)
    if not progress.is_finished:
        return Standing(progress.due_at(now), began, progress=progress)
    schedule = handler.schedule or Schedule()
    if handler.role is Role.DAEMON:
        return Standing(None, began, over=True)
    if isinstance(schedule.interval, Callback):
        return Standing(None, began, ended=now.mono)
    began_at = now.mono if began is None else began
    start = next_run(schedule, schedule.interval, now, began_at)
    is_last = start is None and schedule.idle is None
    return Standing(start, began, over=is_last, progress=FRESH)


def retimed(
    handler: Handler, standing: Standing, interval: float, version: str, now: Now
) -> Standing:
    """How a timer stands whose function wants this interval for that version."""
    assert handler.schedule is not None
    assert standing.ended is not None
    ended = Now(now.wall - now.mono + standing.ended, standing.ended)
    began = standing.ended if standing.began is None else standing.began
    start = next_run(handler.schedule, interval, ended, began)
    return standing._replace(start=start, timed_for=version)


def with_standing(known: Known, handler: Handler, standing: Standing | None) -> Known:
    """The object with how one of its daemons or timers stands (None: not at all)."""
    others = {k: v for k, v in known.background.items() if k != handler.id}
    if standing is not None:
        others[handler.id] = standing
    return known._replace(background=others)
