"""Making the moves of daemons and timers."""

from __future__ import annotations

from fnop.core.handlers.arguments import Situation, seconds_of
from fnop.core.handlers.filters import Callback
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.schedule import first_run
from fnop.core.handlers.writers import DaemonStoppingReason
from fnop.core.memory.progress import (
    FRESH,
    Progress,
    deadline_of,
    seconds_left,
    time_out,
)
from fnop.core.objects.attempts import go_on, interrupt, stop, store
from fnop.core.objects.background import (
    Dismiss,
    Engage,
    Halt,
    Retime,
    Show,
    Tend,
    rested,
    retimed,
    with_standing,
)
from fnop.core.objects.complaints import complain
from fnop.core.objects.ending import keep, left, report
from fnop.core.seam.commands import AttemptEnded, Refresh
from fnop.core.state.context import Context
from fnop.core.state.record import IDLE, Invocation, Known, Standing
from fnop.core.values.backoff import Backoff
from fnop.effects import Wait

__all__ = ["make_background"]

# How long a daemon may go on that was told to stop, if it does not say.
GRACE_SECONDS = 10.0


# A timer whose function always finds it overdue still leaves a moment to others.
_OVERDUE_SECONDS = 1.0


def make_background(
    context: Context,
    known: Known,
    move: Engage | Tend | Show | Halt | Retime | Dismiss,
) -> None:
    match move:
        case Engage(handler):
            _engage(context, known, handler)
        case Tend(handler, standing):
            _tend(context, known, handler, standing)
        case Show(invocation):
            _show(context, known, invocation)
        case Halt(invocation, reason):
            _halt(context, known, invocation, reason)
        case Retime():
            _retime(context, known, move)
        case Dismiss(handler):
            context.put(with_standing(known, handler, None))


def _engage(context: Context, known: Known, handler: Handler) -> None:
    """Find out when a daemon or timer begins for the first time."""
    schedule = handler.schedule
    assert schedule is not None
    delay = schedule.initial_delay
    if isinstance(delay, Callback):
        context.drove()
        situation = _situation(context, known, handler)
        delay, problem = seconds_of(delay, situation, otherwise=0.0)
        if problem is not None:
            line = "initial_delay= failed and counts as 0"
            complain(context, known, line, problem)
            known = context.known or known  # with the complaint
    start = first_run(schedule, context.now, delay)
    context.put(with_standing(known, handler, Standing(start)))


def _retime(context: Context, known: Known, move: Retime) -> None:
    """Ask a timer's function for the interval, as filters are asked."""
    handler, backoff = move.handler, context.settings.default_backoff
    usual = backoff.most if isinstance(backoff, Backoff) else backoff
    situation = _situation(context, known, handler)
    seconds, problem = seconds_of(move.interval, situation, otherwise=usual)
    seconds = seconds if seconds > 0 else _OVERDUE_SECONDS
    if problem is not None:
        line = f"interval= of {handler.id} failed and counts as {usual:g} s"
        complain(context, known, line, problem)
        known = context.known or known  # with the complaint
    version = known.body.version
    standing = retimed(handler, move.standing, seconds, version, context.now)
    context.put(with_standing(known, handler, standing))


def _situation(
    context: Context, known: Known, handler: Handler, progress: Progress = FRESH
) -> Situation:
    return Situation(
        handler,
        context.settings,
        context.now,
        context.kind.resource,
        known.body,
        retry=progress.retries,
        started=context.now.wall if progress.started is None else progress.started,
        memo=known.memo,
        indices=context.indices,
    )


def _tend(context: Context, known: Known, handler: Handler, standing: Standing) -> None:
    """Begin a run of a daemon or timer, unless its time has run out."""
    progress = standing.progress
    if seconds_left(progress, handler.timeout, context.now) <= 0:
        _time_out(context, known, handler, standing)
        return
    situation = _situation(context, known, handler, progress)
    progress = progress._replace(started=situation.started, until=None, due=None)
    deadline = deadline_of(progress, handler.timeout, context.now)
    invocation = Invocation(context.next_serial(), situation, deadline=deadline)
    work = known.work or IDLE
    known = known._replace(work=work._replace(tending=(*work.tending, invocation)))
    begun = Standing(None, context.now.mono, progress=progress)
    go_on(context, with_standing(known, handler, begun), invocation)


def _time_out(
    context: Context, known: Known, handler: Handler, standing: Standing
) -> None:
    """The deadline of a run's attempts has come between two of them."""
    assert handler.timeout is not None
    why = standing.progress.message or "still waiting"
    judgement = time_out(standing.progress, handler.timeout, why)
    context.failed()
    context.say(
        judgement.level,
        f"{handler.role.value} handler {handler.id} {judgement.line}",
        body=known.body,
        handler=handler.id,
        error=why,
    )
    after = rested(handler, standing, judgement.progress, context.now)
    context.put(with_standing(known, handler, after))


def _show(context: Context, known: Known, invocation: Invocation) -> None:
    """Let an impure daemon, which is under way, look at its object as it is now."""
    errand = invocation.errand
    assert errand is not None
    assert errand.id is not None
    context.emit(Refresh(errand.id, known.body, context.now.wall))
    situation = invocation.situation._replace(body=known.body)
    store(context, known, invocation._replace(situation=situation))


def _halt(
    context: Context,
    known: Known,
    invocation: Invocation,
    reason: DaemonStoppingReason,
) -> None:
    """Tell a daemon to stop, where it listens; else, or when its time is up, end it."""
    handler = invocation.handler
    if not invocation.stopped and _listens(invocation):
        patience = handler.cancellation_backoff
        told = invocation._replace(
            stopped=reason.value,
            patience=context.now.mono
            + (GRACE_SECONDS if patience is None else patience),
            wake=context.now.mono if _sleeps(invocation) else None,  # it is cut short
        )
        interrupt(context, invocation, reason.value)
        store(context, known, told)
        return
    known = stop(context, known, invocation)
    assert known.work is not None
    work = known.work._replace(tending=left(known.work.tending, invocation))
    known = with_standing(known._replace(work=work), handler, None)
    line, ended = f"is cancelled: {reason.value}", AttemptEnded("cancelled")
    report(context, invocation, "info", line, ended)
    keep(context, known, ends=False)


def _sleeps(invocation: Invocation) -> bool:
    """Whether it waits for a time, or for being told."""
    return invocation.wake is not None or isinstance(invocation.asked, Wait)


def _listens(invocation: Invocation) -> bool:
    """Whether a run can find out that it is to stop."""
    handler = invocation.handler
    names_it = handler.signature.takes("stopped")
    wants = names_it or handler.cancellation_backoff is not None
    return wants and invocation.plan is None and invocation.asked is not None
