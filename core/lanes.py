"""Making the moves: from a decision about one object to commands and state.

`serve` asks `reconcile` for the next move and makes it, until there is nothing
to do now, or the author's code has been driven once.
"""

from __future__ import annotations

from collections.abc import Callable

from fnop.core.arguments import Situation, seconds_of
from fnop.core.attempts import (
    expire,
    go_on,
    interrupt,
    keep,
    left,
    let_go,
    report,
    stop,
    store,
)
from fnop.core.background import (
    Dismiss,
    Engage,
    Halt,
    Retime,
    Show,
    Tend,
    retimed,
    with_standing,
)
from fnop.core.backoff import Backoff
from fnop.core.commands import Refresh
from fnop.core.errors import described
from fnop.core.filters import Callback
from fnop.core.known import IDLE, Invocation, Known, Sighting, Standing
from fnop.core.lifecycle import HELD, Phase
from fnop.core.now import Now
from fnop.core.objects import Key
from fnop.core.progress import (
    FRESH,
    Progress,
)
from fnop.core.reconcile import (
    Begin,
    Cancel,
    Conclude,
    Expire,
    Forget,
    GoOn,
    Look,
    Move,
    Rest,
    Settle,
    Spy,
    Write,
    first_due,
    reconcile,
)
from fnop.core.registry import Handler
from fnop.core.schedule import first_run
from fnop.core.selection import Moment
from fnop.core.store import aside, spy_wants
from fnop.core.turn import ACTIVITY, Turn
from fnop.core.writers import DaemonStoppingReason
from fnop.core.writing import begin_write, look_at
from fnop.effects import Wait

__all__ = ["guarded", "serve"]

# One pass over an object never needs more moves than this: a limit on everything.
_MOVES_MAX = 64
# Moves that may call the author's code: once in a step (R11).
_DRIVING = (GoOn, Spy, Engage, Tend, Halt, Begin, Cancel, Expire)
# How long a daemon may go on that was told to stop, if it does not say.
GRACE_SECONDS = 10.0
# How long an object rests about which something went wrong that nobody foresaw.
_BEGIN_ANEW_SECONDS = 60.0
# A timer whose function always finds it overdue still leaves a moment to others.
_OVERDUE_SECONDS = 1.0


def serve(turn: Turn, key: Key) -> None:
    """Do what is due about one object, driving the author's code at most once."""
    if turn.lifecycle.phase in HELD and key != ACTIVITY:
        _put_aside(turn, key)
        return
    for _ in range(_MOVES_MAX):
        if turn.keeps_still(key):
            _put_aside(turn, key)
            return
        known = turn.objects.get(key)
        if known is None or (known.stale and not known.gone):
            return  # it is listed anew before anything is done about it
        move = _decide(turn, key, known)
        if isinstance(move, Rest):
            _rest(turn, key, move.until)
            return
        if turn.drives and isinstance(move, _DRIVING):
            turn.objects.due(key)
            return
        if not guarded(turn, key, lambda: _make(turn, key, known, move)):  # noqa: B023
            return
    _rest(turn, key, turn.now.mono)


def _put_aside(turn: Turn, key: Key) -> None:
    """End what is under way with an object, one conversation a step, without a request.

    In another process it may go on now: what was done here and not written is lost, as
    in a crash.
    """
    known = turn.objects.get(key)
    if known is None or (known.stale and known.work is None and not known.gone):
        return
    work = known.work or IDLE
    for each in work.invocations:
        pausing = DaemonStoppingReason.OPERATOR_PAUSING.value
        stop(turn, key, known, each, reason=pausing)
        rest = work._replace(
            running=left(work.running, each),
            spying=left(work.spying, each),
            tending=left(work.tending, each),
        )
        turn.objects.put(key, known._replace(work=rest))
        turn.objects.due(key)
        return
    if known.gone:
        turn.drop(key)
    else:
        turn.objects.put(key, aside(turn, key, known))


def _rest(turn: Turn, key: Key, until: float | None) -> None:
    """Look at the object again then; never at once, for that would be no rest."""
    if until is not None and until <= turn.now.mono:
        turn.warn_once(
            f"no rest {key}", "is looked at more often than makes sense", key
        )
        until = turn.now.mono + 1.0
    if until is not None:
        turn.objects.due(key, until)


def guarded(turn: Turn, key: Key | None, work: Callable[[], None]) -> bool:
    """Do something about an object; what goes wrong hurts only this object.

    A step is total.  What nobody foresaw ends what is under way with the object,
    loudly, and it is looked at again after a while.
    """
    assert key is not None
    before = turn.objects.get(key)
    try:
        work()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        turn.failed()
        text = described(problem)
        turn.say(
            "error",
            f"what is under way with the object is given up, and begun anew: {text}",
            key=key,
            error=text,
            exception=problem,
        )
        _begin_anew(turn, key, before)
        return False
    return True


def _begin_anew(turn: Turn, key: Key, known: Known | None) -> None:
    if key == ACTIVITY:
        turn.end(1, "a startup or cleanup handler could not be run")
    elif known is not None:
        let_go(turn, key, known, DaemonStoppingReason.OPERATOR_PAUSING)
        turn.objects.put(key, known._replace(work=None))
        turn.objects.due(key, turn.now.mono + _BEGIN_ANEW_SECONDS)


def _decide(turn: Turn, key: Key, known: Known) -> Move:
    if key == ACTIVITY:
        return _activity_move(turn, known)
    kind = turn.survey.kinds.get(key.resource)
    if kind is None:
        return Forget()
    stopping = turn.lifecycle.phase is not Phase.SERVING
    failed: list[tuple[Handler, BaseException]] = []
    seed, indices = turn.counters.seed, turn.objects.indices
    at = Moment(kind, turn.settings, turn.now, seed, stopping, failed, indices)
    try:
        move = reconcile(at, known)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        text = "it cannot be decided what to do about this state"
        _complain(turn, key, known, text, problem)
        work = known.work or IDLE
        return Rest(first_due((*work.running, *work.spying)))
    for handler, raised in failed:
        text = f"a filter of {handler.id} failed, so it is not called for this state"
        _complain(turn, key, known, text, raised)
    return move


def _complain(
    turn: Turn, key: Key, known: Known, line: str, problem: BaseException
) -> None:
    """Say once for each state of the object that the author's code fails on it."""
    about = f"{known.body.version} {line}"
    if about in known.complaints:
        return
    text = described(problem)
    turn.say("error", f"{line}: {text}", key=key, error=text, exception=problem)
    turn.failed()
    version = f"{known.body.version} "
    kept = [each for each in known.complaints if each.startswith(version)]
    now = turn.objects.get(key) or known
    turn.objects.put(key, now._replace(complaints=(*kept, about)))


def _activity_move(turn: Turn, known: Known) -> Move:
    """Startup and cleanup: one handler after the other, without an object."""
    work = known.work or IDLE
    for each in work.running:
        if each.ready or (each.wake is not None and each.wake <= turn.now.mono):
            return GoOn(each)
        due = each.errand.due if each.errand else None
        if due is not None and due <= turn.now.mono:
            return GoOn(each)
        if each.deadline is not None and each.deadline <= turn.now.mono:
            return Expire(each)
        return Rest(each.due)
    assert work.cycle is not None
    for handler in work.cycle.selected:
        progress = work.progress.get(handler.id) or Progress(handler.role.value)
        if progress.is_finished:
            continue
        moment = progress.due_at(turn.now)
        if moment > turn.now.mono:
            return Rest(moment)
        return Begin(handler, work.cycle, progress)
    return Forget()


def _make(turn: Turn, key: Key, known: Known, move: Move) -> None:
    known = turn.objects.get(key) or known  # a complaint may have been noted
    match move:
        case GoOn(invocation, ends):
            go_on(turn, key, known, invocation, ends)
        case Spy(sighting):
            _spy(turn, key, known, sighting)
        case Begin():
            _begin(turn, key, known, move)
        case Engage() | Tend() | Show() | Halt() | Retime() | Dismiss():
            _make_background(turn, key, known, move)
        case Cancel() | Conclude() | Expire():
            _end(turn, key, known, move)
        case Write(writing):
            begin_write(turn, key, known, writing)
        case Settle(stored, ends, released):
            released = released or known.released
            keep(turn, key, known._replace(stored=stored, released=released), ends=ends)
        case Look():
            look_at(turn, key, known)
        case Rest():
            pass
        case Forget():
            turn.drop(key)


# ------------------------------------------------------------- invocations


def _begin(turn: Turn, key: Key, known: Known, move: Begin) -> None:
    """Start an attempt: its arguments are fixed from here on (R6)."""
    handler, cycle, progress = move.handler, move.cycle, move.progress
    work = known.work or IDLE
    started = turn.now.wall if progress.started is None else progress.started
    progress = progress._replace(started=started, until=None, due=None)
    own = key != ACTIVITY
    situation = Situation(
        handler,
        turn.settings,
        turn.now,
        turn.kind(key).resource if own else None,
        known.body if own else None,
        cycle.reason if own else handler.role.value,
        known.before(handler, turn.kind(key).observation) if own else None,
        progress.retries,
        started,
        known.memo,
        turn.objects.indices,
    )
    deadline = _deadline(handler, progress, turn.now)
    invocation = Invocation(turn.next_serial(), situation, deadline=deadline)
    work = work._replace(
        # The cycle keeps its own view; only the attempt gets a fresh one (R15).
        cycle=work.cycle if work.running else cycle,
        running=(*work.running, invocation),
        progress={**work.progress, handler.id: progress},
    )
    go_on(turn, key, known._replace(work=work), invocation)


def _end(turn: Turn, key: Key, known: Known, move: Cancel | Conclude | Expire) -> None:
    match move:
        case Cancel():
            _cancel_all(turn, key, known)
        case Conclude():
            _conclude(turn, key, known, move)
        case Expire(invocation):
            expire(turn, key, known, invocation)


def _conclude(turn: Turn, key: Key, known: Known, move: Conclude) -> None:
    """A handler has ended with its sub-handlers: it is told as of any other."""
    handler, progress, work = move.handler, move.progress, known.work
    assert work is not None
    error = None
    level, line = "info", "succeeded"
    if move.failed:
        level, line, error = "error", "failed for good", progress.message
        line = f"{line}, as its sub-handler {move.failed} has"
    turn.say(
        level,
        f"{handler.role.value} handler {handler.id} {line}",
        key=key,
        handler=handler.id,
        error=error,
    )
    work = work._replace(progress={**work.progress, handler.id: progress})
    turn.objects.put(key, known._replace(work=work))


def _deadline(handler: Handler, progress: Progress, now: Now) -> float | None:
    if handler.timeout is None or progress.started is None:
        return None
    return now.mono + max(0.0, handler.timeout - (now.wall - progress.started))


def _spy(turn: Turn, key: Key, known: Known, sighting: Sighting) -> None:
    work = known.work
    assert work is not None
    handler, type, body = sighting.handler, sighting.type, sighting.body
    if handler.filters.asks_indices and not spy_wants(
        turn, key, known, handler, type, body
    ):
        rest = tuple(each for each in work.sightings if each is not sighting)
        keep(turn, key, known._replace(work=work._replace(sightings=rest)), ends=False)
        return
    situation = Situation(
        sighting.handler,
        turn.settings,
        turn.now,
        turn.kind(key).resource,
        sighting.body,
        sighting.type,
        started=turn.now.wall,
        memo=known.memo,
        indices=turn.objects.indices,
    )
    invocation = Invocation(turn.next_serial(), situation)
    work = work._replace(
        spying=(*work.spying, invocation),
        sightings=tuple(each for each in work.sightings if each is not sighting),
    )
    go_on(turn, key, known._replace(work=work), invocation)


def _cancel_all(turn: Turn, key: Key, known: Known) -> None:
    """End the first of the conversations; the others follow, one a step."""
    work = known.work
    assert work is not None
    invocation = work.running[0]
    known = stop(turn, key, known, invocation)
    assert known.work is not None
    rest = left(known.work.running, invocation)
    work = known.work._replace(running=rest, cycle=work.cycle if rest else None)
    keep(turn, key, known._replace(work=work), ends=False)
    turn.say(
        "info",
        f"{invocation.handler.role.value} handler {invocation.handler.id} is cancelled",
        key=key,
        body=known.body,
        handler=invocation.handler.id,
    )


# -------------------------------------------------------- daemons and timers


def _make_background(
    turn: Turn,
    key: Key,
    known: Known,
    move: Engage | Tend | Show | Halt | Retime | Dismiss,
) -> None:
    match move:
        case Engage(handler):
            _engage(turn, key, known, handler)
        case Tend(handler, standing):
            _tend(turn, key, known, handler, standing)
        case Show(invocation):
            _show(turn, key, known, invocation)
        case Halt(invocation, reason):
            _halt(turn, key, known, invocation, reason)
        case Retime():
            _retime(turn, key, known, move)
        case Dismiss(handler):
            turn.objects.put(key, with_standing(known, handler, None))


def _engage(turn: Turn, key: Key, known: Known, handler: Handler) -> None:
    """Find out when a daemon or timer begins for the first time."""
    schedule = handler.schedule
    assert schedule is not None
    delay = schedule.initial_delay
    if isinstance(delay, Callback):
        turn.drives += 1
        situation = _situation(turn, key, known, handler)
        delay, problem = seconds_of(delay, situation, otherwise=0.0)
        if problem is not None:
            line = "initial_delay= failed and counts as 0"
            _complain(turn, key, known, line, problem)
            known = turn.objects.get(key) or known  # with the complaint
    start = first_run(schedule, turn.now, delay)
    turn.objects.put(key, with_standing(known, handler, Standing(start)))


def _retime(turn: Turn, key: Key, known: Known, move: Retime) -> None:
    """Ask a timer's function for the interval, as filters are asked."""
    handler, backoff = move.handler, turn.settings.default_backoff
    usual = backoff.most if isinstance(backoff, Backoff) else backoff
    situation = _situation(turn, key, known, handler)
    seconds, problem = seconds_of(move.interval, situation, otherwise=usual)
    seconds = seconds if seconds > 0 else _OVERDUE_SECONDS
    if problem is not None:
        line = f"interval= of {handler.id} failed and counts as {usual:g} s"
        _complain(turn, key, known, line, problem)
        known = turn.objects.get(key) or known  # with the complaint
    version = known.body.version
    standing = retimed(handler, move.standing, seconds, version, turn.now)
    turn.objects.put(key, with_standing(known, handler, standing))


def _situation(
    turn: Turn, key: Key, known: Known, handler: Handler, progress: Progress = FRESH
) -> Situation:
    return Situation(
        handler,
        turn.settings,
        turn.now,
        turn.kind(key).resource,
        known.body,
        retry=progress.retries,
        started=turn.now.wall if progress.started is None else progress.started,
        memo=known.memo,
        indices=turn.objects.indices,
    )


def _tend(
    turn: Turn, key: Key, known: Known, handler: Handler, standing: Standing
) -> None:
    """Begin a run of a daemon or timer."""
    progress = standing.progress
    situation = _situation(turn, key, known, handler, progress)
    progress = progress._replace(started=situation.started, until=None, due=None)
    deadline = _deadline(handler, progress, turn.now)
    invocation = Invocation(turn.next_serial(), situation, deadline=deadline)
    work = known.work or IDLE
    known = known._replace(work=work._replace(tending=(*work.tending, invocation)))
    begun = Standing(None, turn.now.mono, progress=progress)
    go_on(turn, key, with_standing(known, handler, begun), invocation)


def _show(turn: Turn, key: Key, known: Known, invocation: Invocation) -> None:
    """Let an impure daemon, which is under way, look at its object as it is now."""
    errand = invocation.errand
    assert errand is not None
    assert errand.id is not None
    turn.emit(Refresh(errand.id, known.body, turn.now.wall))
    situation = invocation.situation._replace(body=known.body)
    store(turn, key, known, invocation._replace(situation=situation))


def _halt(
    turn: Turn,
    key: Key,
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
            patience=turn.now.mono + (GRACE_SECONDS if patience is None else patience),
            wake=turn.now.mono if _sleeps(invocation) else None,  # it is cut short
        )
        interrupt(turn, invocation, reason.value)
        store(turn, key, known, told)
        return
    known = stop(turn, key, known, invocation)
    assert known.work is not None
    work = known.work._replace(tending=left(known.work.tending, invocation))
    known = with_standing(known._replace(work=work), handler, None)
    report(turn, key, invocation, "info", f"is cancelled: {reason.value}")
    keep(turn, key, known, ends=False)


def _sleeps(invocation: Invocation) -> bool:
    """Whether it waits for a time, or for being told."""
    return invocation.wake is not None or isinstance(invocation.asked, Wait)


def _listens(invocation: Invocation) -> bool:
    """Whether a run can find out that it is to stop."""
    handler = invocation.handler
    names_it = handler.signature.takes("stopped")
    wants = names_it or handler.cancellation_backoff is not None
    return wants and invocation.plan is None and invocation.asked is not None
