"""Making the moves: from a decision about one object to commands and state.

`serve` asks `reconcile` for the next move and makes it, until there is nothing
to do now, or the author's code has been driven once.
"""

from __future__ import annotations

from collections.abc import Callable

from fnop.core.handlers.arguments import Situation
from fnop.core.handlers.handler import ACTIVITIES, Handler
from fnop.core.handlers.writers import DaemonStoppingReason
from fnop.core.memory.progress import Progress, deadline_of, seconds_left, time_out
from fnop.core.objects.attempts import expire, go_on, let_go, stop
from fnop.core.objects.background import (
    Dismiss,
    Engage,
    Halt,
    Retime,
    Show,
    Tend,
)
from fnop.core.objects.background_moves import make_background
from fnop.core.objects.complaints import complain
from fnop.core.objects.echo import look_at
from fnop.core.objects.ending import keep, left
from fnop.core.objects.moves import (
    Abandon,
    Begin,
    Cancel,
    Conclude,
    Expire,
    Forget,
    GoOn,
    Look,
    Move,
    Overlook,
    Rest,
    Settle,
    Spy,
    TimeOut,
    Write,
    first_due,
)
from fnop.core.objects.reconcile import reconcile
from fnop.core.objects.selection import Moment
from fnop.core.objects.store import aside, spy_wants
from fnop.core.objects.write import begin_write
from fnop.core.seam.commands import AttemptEnded
from fnop.core.state.context import Context
from fnop.core.state.lifecycle import HELD, Phase
from fnop.core.state.record import IDLE, Cycle, Invocation, Known, Sighting
from fnop.core.values.errors import described

__all__ = ["guarded", "serve"]

# One pass over an object never needs more moves than this: a limit on everything.
_MOVES_MAX = 64
# Moves that may call the author's code: once in a step (R11).
_DRIVING = (GoOn, Spy, Engage, Tend, Halt, Begin, Cancel, Expire, Abandon)
# How long an object rests about which something went wrong that nobody foresaw.
_BEGIN_ANEW_SECONDS = 60.0


def serve(context: Context) -> None:
    """Do what is due about one object, driving the author's code at most once."""
    if context.phase in HELD and not context.is_activity:
        _put_aside(context)
        return
    for _ in range(_MOVES_MAX):
        if context.keeps_still:
            _put_aside(context)
            return
        known = context.known
        if known is None or (known.stale and not known.gone):
            return  # it is listed anew before anything is done about it
        move = _decide(context, known)
        if isinstance(move, Rest):
            _rest(context, move.until)
            return
        if context.drives and isinstance(move, _DRIVING):
            context.due()
            return
        if not guarded(context, lambda: _make(context, known, move)):  # noqa: B023
            return
    _rest(context, context.now.mono)


def _put_aside(context: Context) -> None:
    """End what is under way with an object, one conversation a step, without a request.

    In another process it may go on now: what was done here and not written is lost, as
    in a crash.
    """
    known = context.known
    if known is None or (known.stale and known.work is None and not known.gone):
        return
    work = known.work or IDLE
    for each in work.invocations:
        pausing = DaemonStoppingReason.OPERATOR_PAUSING.value
        stop(context, known, each, reason=pausing)
        rest = work._replace(
            running=left(work.running, each),
            spying=left(work.spying, each),
            tending=left(work.tending, each),
        )
        context.put(known._replace(work=rest))
        context.due()
        return
    if known.gone:
        context.drop()
    else:
        context.put(aside(context, known))


def _rest(context: Context, until: float | None) -> None:
    """Look at the object again then; never at once, for that would be no rest."""
    if until is not None and until <= context.now.mono:
        context.warn_once(
            f"no rest {context.key}", "is looked at more often than makes sense"
        )
        until = context.now.mono + 1.0
    if until is not None:
        context.due(until)


def guarded(context: Context, work: Callable[[], None]) -> bool:
    """Do something about an object; what goes wrong hurts only this object.

    A step is total.  What nobody foresaw ends what is under way with the object,
    loudly, and it is looked at again after a while.
    """
    before = context.known
    try:
        work()
    except BaseException as problem:
        context.failed()
        text = described(problem)
        context.say(
            "error",
            f"what is under way with the object is given up, and begun anew: {text}",
            error=text,
            exception=problem,
        )
        _begin_anew(context, before)
        return False
    return True


def _begin_anew(context: Context, known: Known | None) -> None:
    if context.is_activity:
        context.end(1, "a startup or cleanup handler could not be run")
    elif known is not None:
        let_go(context, known, DaemonStoppingReason.OPERATOR_PAUSING)
        context.put(known._replace(work=None))
        context.due(context.now.mono + _BEGIN_ANEW_SECONDS)


def _decide(context: Context, known: Known) -> Move:
    if context.is_activity:
        return _activity_move(context, known)
    if not context.is_served:
        return Forget()
    kind = context.kind
    stopping = context.phase is not Phase.SERVING
    failed: list[tuple[Handler, BaseException]] = []
    seed, indices = context.seed, context.indices
    at = Moment(kind, context.settings, context.now, seed, stopping, failed, indices)
    try:
        move = reconcile(at, known)
    except BaseException as problem:
        text = "it cannot be decided what to do about this state"
        complain(context, known, text, problem)
        work = known.work or IDLE
        return Rest(first_due((*work.running, *work.spying)))
    for handler, raised in failed:
        text = f"a filter of {handler.id} failed, so it is not called for this state"
        complain(context, known, text, raised)
    return move


def _activity_move(context: Context, known: Known) -> Move:
    """Startup and cleanup: one handler after the other, without an object."""
    work = known.work or IDLE
    for each in work.running:
        if each.ready or (each.wake is not None and each.wake <= context.now.mono):
            return GoOn(each)
        due = each.errand.due if each.errand else None
        if due is not None and due <= context.now.mono:
            return GoOn(each)
        if each.deadline is not None and each.deadline <= context.now.mono:
            return Expire(each)
        return Rest(each.due)
    assert work.cycle is not None
    for handler in work.cycle.selected:
        progress = work.progress.get(handler.id) or Progress(handler.role.value)
        if progress.is_finished:
            continue
        if seconds_left(progress, handler.timeout, context.now) <= 0:
            return TimeOut(handler, progress, progress.message or "still waiting")
        moment = progress.due_at(context.now)
        if moment > context.now.mono:
            return Rest(moment)
        return Begin(handler, work.cycle, progress)
    return Forget()


def _make(context: Context, known: Known, move: Move) -> None:
    known = context.known or known  # a complaint may have been noted
    match move:
        case GoOn(invocation, ends):
            go_on(context, known, invocation, ends)
        case Spy(sighting):
            _spy(context, known, sighting)
        case Begin():
            _begin(context, known, move)
        case Engage() | Tend() | Show() | Halt() | Retime() | Dismiss():
            make_background(context, known, move)
        case Cancel() | Conclude() | TimeOut() | Expire() | Abandon():
            _end(context, known, move)
        case Write(writing):
            begin_write(context, known, writing)
        case Settle(stored, ends, released):
            released = released or known.released
            keep(context, known._replace(stored=stored, released=released), ends=ends)
        case Overlook(seen):
            context.put(known._replace(overlooked=seen))
        case Look():
            look_at(context, known)
        case Rest():
            pass
        case Forget():
            context.drop()


# ------------------------------------------------------------- invocations


def _begin(context: Context, known: Known, move: Begin) -> None:
    """Start an attempt: its arguments are fixed from here on (R6)."""
    handler, cycle, progress = move.handler, move.cycle, move.progress
    work = known.work or IDLE
    started = context.now.wall if progress.started is None else progress.started
    progress = progress._replace(started=started, until=None, due=None, delegated=False)
    own = not context.is_activity
    situation = Situation(
        handler,
        context.settings,
        context.now,
        context.kind.resource if own else None,
        known.body if own else None,
        cycle.reason if own else handler.role.value,
        known.before(handler, context.kind.observation) if own else None,
        progress.retries,
        started,
        known.memo,
        context.indices,
    )
    deadline = deadline_of(progress, handler.timeout, context.now)
    invocation = Invocation(context.next_serial(), situation, deadline=deadline)
    work = work._replace(
        # The cycle keeps its own view; only the attempt gets a fresh one (R15).
        cycle=work.cycle if work.running else cycle,
        running=(*work.running, invocation),
        progress={**work.progress, handler.id: progress},
    )
    go_on(context, known._replace(work=work), invocation)


def _end(
    context: Context,
    known: Known,
    move: Cancel | Conclude | TimeOut | Expire | Abandon,
) -> None:
    match move:
        case Cancel():
            _cancel_all(context, known)
        case Conclude():
            _conclude(context, known, move)
        case TimeOut():
            _time_out(context, known, move)
        case Expire(invocation):
            expire(context, known, invocation)
        case Abandon(invocation):
            assert known.work is not None
            _cancel(context, known, invocation, cycle=known.work.cycle)


def _conclude(context: Context, known: Known, move: Conclude) -> None:
    """A handler has ended with its sub-handlers: it is told as of any other."""
    handler, progress, work = move.handler, move.progress, known.work
    assert work is not None
    error = None
    level, line = "info", "succeeded"
    if move.failed:
        level, line, error = "error", "failed for good", progress.message
        line = f"{line}, as its sub-handler {move.failed} has"
    context.say(
        level,
        f"{handler.role.value} handler {handler.id} {line}",
        handler=handler.id,
        error=error,
        ended=AttemptEnded("error" if move.failed else "success"),
    )
    work = work._replace(progress={**work.progress, handler.id: progress})
    context.put(known._replace(work=work))


def _time_out(context: Context, known: Known, move: TimeOut) -> None:
    """A handler ends between two attempts, or while its sub-handlers go on."""
    handler, work = move.handler, known.work or IDLE
    assert handler.timeout is not None
    judgement = time_out(move.progress, handler.timeout, move.why)
    context.failed()
    if handler.role in ACTIVITIES:
        context.activity_failed()
    context.say(
        judgement.level,
        f"{handler.role.value} handler {handler.id} {judgement.line}",
        handler=handler.id,
        error=move.why,
    )
    work = work._replace(progress={**work.progress, handler.id: judgement.progress})
    context.put(known._replace(work=work))


def _spy(context: Context, known: Known, sighting: Sighting) -> None:
    work = known.work
    assert work is not None
    handler, type, body = sighting.handler, sighting.type, sighting.body
    if handler.filters.asks_indices and not spy_wants(
        context, known, handler, type, body
    ):
        rest = tuple(each for each in work.sightings if each is not sighting)
        keep(context, known._replace(work=work._replace(sightings=rest)), ends=False)
        return
    situation = Situation(
        sighting.handler,
        context.settings,
        context.now,
        context.kind.resource,
        sighting.body,
        sighting.type,
        started=context.now.wall,
        memo=known.memo,
        indices=context.indices,
    )
    invocation = Invocation(context.next_serial(), situation)
    work = work._replace(
        spying=(*work.spying, invocation),
        sightings=tuple(each for each in work.sightings if each is not sighting),
    )
    go_on(context, known._replace(work=work), invocation)


def _cancel_all(context: Context, known: Known) -> None:
    """End the first of the conversations; the others follow, one a step."""
    work = known.work
    assert work is not None
    is_last = len(work.running) == 1
    _cancel(context, known, work.running[0], cycle=None if is_last else work.cycle)


def _cancel(
    context: Context, known: Known, invocation: Invocation, *, cycle: Cycle | None
) -> None:
    known = stop(context, known, invocation)
    assert known.work is not None
    rest = left(known.work.running, invocation)
    work = known.work._replace(running=rest, cycle=cycle)
    keep(context, known._replace(work=work), ends=False)
    context.say(
        "info",
        f"{invocation.handler.role.value} handler {invocation.handler.id} is cancelled",
        body=known.body,
        handler=invocation.handler.id,
        ended=AttemptEnded("cancelled"),
    )


# -------------------------------------------------------- daemons and timers
