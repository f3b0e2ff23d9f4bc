"""Making the moves: from a decision about one object to commands and state.

`serve` asks `reconcile` for the next move and makes it, until there is nothing
to do now, or the author's code has been driven once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnop.core import invocation as driving
from fnop.core.arguments import Situation
from fnop.core.errands import Errand, proceed
from fnop.core.evolve import replace
from fnop.core.known import Invocation, Known, Sighting, Work
from fnop.core.now import Now
from fnop.core.objects import Body, Key
from fnop.core.performing import is_own, perform, send, tell
from fnop.core.progress import (
    Failure,
    Judgement,
    Progress,
    judge_again,
    succeeded,
)
from fnop.core.reconcile import (
    Begin,
    Cancel,
    Expire,
    Forget,
    GoOn,
    Look,
    Moment,
    Move,
    Rest,
    Settle,
    Spy,
    Write,
    first_due,
    reconcile,
)
from fnop.core.registry import ACTIVITIES, Handler, Role
from fnop.core.turn import ACTIVITY, Phase, Ticket, Turn
from fnop.core.writing import begin_write, look_at, shown, vanished
from fnop.effects import (
    Again,
    Answer,
    Applied,
    Delete,
    Effect,
    Get,
    Missing,
    Outcome,
    Patch,
    Raised,
    Return,
)
from fnop.effects.outcomes import Conflict, Refused, Unknown, Unreachable
from fnop.effects.values import canonical
from fnop.effects.wire import digest_of, to_wire

__all__ = ["answer_errand", "guarded", "let_go", "serve"]

# One pass over an object never needs more moves than this: a limit on everything.
_MOVES_MAX = 64
# A conversation remembers every answer (R12).
JOURNAL_ENTRIES_MAX = 2_000
JOURNAL_BYTES_MAX = 4 * 1024 * 1024
# How long a cancelled conversation's request is waited for.
OUTSTANDING_SECONDS = 60.0


def serve(turn: Turn, key: Key) -> None:
    """Do what is due about one object, driving the author's code at most once."""
    for _ in range(_MOVES_MAX):
        known = turn.known(key)
        if known is None:
            return
        move = _decide(turn, key, known)
        if isinstance(move, Rest):
            _rest(turn, key, move.until)
            return
        if turn.drives and isinstance(move, (GoOn, Spy, Begin, Cancel, Expire)):
            turn.due(key)
            return
        if not guarded(turn, key, lambda: _make(turn, key, known, move)):  # noqa: B023
            return
    _rest(turn, key, turn.now.mono)


def _rest(turn: Turn, key: Key, until: float | None) -> None:
    """Look at the object again then; never at once, for that would be no rest."""
    if until is not None and until <= turn.now.mono:
        turn.warn_once(
            f"no rest {key}", "is looked at more often than makes sense", key
        )
        until = turn.now.mono + 1.0
    if until is not None:
        turn.due(key, until)


def guarded(turn: Turn, key: Key | None, work: Callable[[], None]) -> bool:
    """Do something about an object; what goes wrong hurts only this object.

    A step is total.  What nobody foresaw ends what is under way with the object,
    loudly, and it is looked at again after a while.
    """
    assert key is not None
    before = turn.known(key)
    try:
        work()
    except Exception as problem:
        turn.failures += 1
        text = f"{type(problem).__name__}: {problem}"
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
        let_go(turn, key, known)
        turn.put(key, replace(known, work=None))
        turn.due(key, turn.now.mono + turn.settings.default_backoff_seconds)


def _decide(turn: Turn, key: Key, known: Known) -> Move:
    if key == ACTIVITY:
        return _activity_move(turn, known)
    kind = turn.kinds.get(key.resource)
    if kind is None:
        return Forget()
    stopping = turn.phase is not Phase.SERVING
    failed: list[tuple[Handler, Exception]] = []
    at = Moment(kind, turn.settings, turn.now, turn.seed, stopping, failed)
    try:
        move = reconcile(at, known)
    except Exception as problem:
        text = "it cannot be decided what to do about this state"
        _complain(turn, key, known, text, problem)
        work = known.work or Work()
        return Rest(first_due((*work.running, *work.spying)))
    for handler, raised in failed:
        text = f"a filter of {handler.id} failed, so it is not called for this state"
        _complain(turn, key, known, text, raised)
    return move


def _complain(
    turn: Turn, key: Key, known: Known, line: str, problem: Exception
) -> None:
    """Say once for each state of the object that the author's code fails on it."""
    about = f"{known.body.version} {line}"
    if about in known.complaints:
        return
    text = f"{type(problem).__name__}: {problem}"
    turn.say("error", f"{line}: {text}", key=key, error=text, exception=problem)
    turn.failures += 1
    version = f"{known.body.version} "
    kept = [each for each in known.complaints if each.startswith(version)]
    now = turn.known(key) or known
    turn.put(key, replace(now, complaints=(*kept, about)))


def _activity_move(turn: Turn, known: Known) -> Move:
    """Startup and cleanup: one handler after the other, without an object."""
    work = known.work or Work()
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
    known = turn.known(key) or known  # a complaint may have been noted
    match move:
        case GoOn(invocation):
            _go_on(turn, key, known, invocation)
        case Spy(sighting):
            _spy(turn, key, known, sighting)
        case Begin():
            _begin(turn, key, known, move)
        case Cancel():
            _cancel_all(turn, key, known)
        case Expire(invocation):
            _expire(turn, key, known, invocation)
        case Write(writing):
            begin_write(turn, key, known, writing)
        case Settle(stored, ends):
            _keep(turn, key, replace(known, stored=stored), ends=ends)
        case Look():
            look_at(turn, key, known)
        case Rest():
            pass
        case Forget():
            turn.drop(key)


def _keep(turn: Turn, key: Key, known: Known, *, ends: bool) -> None:
    """Put the record back; at the end of a cycle its work is dropped."""
    if ends:
        work = replace(known.work or Work(), cycle=None, progress={})
        known = replace(known, work=work, initial=False)
    if known.work is not None and known.work.is_over:
        known = replace(known, work=None)
    turn.put(key, known)


# ------------------------------------------------------------- invocations


def _begin(turn: Turn, key: Key, known: Known, move: Begin) -> None:
    """Start an attempt: its arguments are fixed from here on (R6)."""
    handler, cycle, progress = move.handler, move.cycle, move.progress
    work = known.work or Work()
    started = turn.now.wall if progress.started is None else progress.started
    progress = replace(progress, started=started, until=None, due=None)
    own = key != ACTIVITY
    situation = Situation(
        handler,
        turn.settings,
        turn.now,
        turn.kinds[key.resource].resource if own else None,
        known.body if own else None,
        cycle.reason if own else handler.role.value,
        cycle.before,
        progress.retries,
        started,
        known.memo,
    )
    deadline = _deadline(handler, progress, turn.now)
    invocation = Invocation(turn.next_serial(), situation, deadline=deadline)
    work = replace(
        work,
        # The cycle keeps its own view; only the attempt gets a fresh one (R15).
        cycle=work.cycle if work.running else cycle,
        running=(*work.running, invocation),
        progress={**work.progress, handler.id: progress},
    )
    _go_on(turn, key, replace(known, work=work), invocation)


def _deadline(handler: Handler, progress: Progress, now: Now) -> float | None:
    if handler.timeout is None or progress.started is None:
        return None
    return now.mono + max(0.0, handler.timeout - (now.wall - progress.started))


def _spy(turn: Turn, key: Key, known: Known, sighting: Sighting) -> None:
    work = known.work
    assert work is not None
    situation = Situation(
        sighting.handler,
        turn.settings,
        turn.now,
        turn.kinds[key.resource].resource,
        sighting.body,
        sighting.type,
        started=turn.now.wall,
        memo=known.memo,
    )
    invocation = Invocation(turn.next_serial(), situation)
    work = replace(
        work,
        spying=(*work.spying, invocation),
        sightings=tuple(each for each in work.sightings if each is not sighting),
    )
    _go_on(turn, key, replace(known, work=work), invocation)


def let_go(turn: Turn, key: Key, known: Known) -> None:
    """Drop the conversations about an object that is not there any more."""
    work = known.work or Work()
    for each in work.running:
        turn.program.live.drop(_live_key(key, each))


def _live_key(key: Key, invocation: Invocation) -> tuple[Any, ...]:
    return (*key, invocation.serial)


def _go_on(turn: Turn, key: Key, known: Known, invocation: Invocation) -> None:
    """Advance one invocation as far as it can go now."""
    errand = invocation.errand
    if errand is not None and not invocation.ready:
        _store(turn, key, known, send(turn, key, invocation, errand))
        return
    if invocation.wake is not None:
        invocation = _woken(turn, known, invocation)
    if invocation.plan is None:
        known, invocation = _drive(turn, key, known, invocation)
    _follow(turn, key, known, invocation)


def _follow(turn: Turn, key: Key, known: Known, invocation: Invocation) -> None:
    """Go through the plan of an ended function; at its end the attempt is over."""
    known, invocation = _run_plan(turn, key, known, invocation)
    if invocation.plan == ():
        _finish(turn, key, known, invocation)
    else:
        _store(turn, key, known, invocation)


def _store(turn: Turn, key: Key, known: Known, invocation: Invocation) -> None:
    work = known.work or Work()
    work = replace(
        work,
        running=_put(work.running, invocation),
        spying=_put(work.spying, invocation),
    )
    turn.put(key, replace(known, work=work))


def _put(
    invocations: tuple[Invocation, ...], changed: Invocation
) -> tuple[Invocation, ...]:
    return tuple(
        changed if each.serial == changed.serial else each for each in invocations
    )


def _woken(turn: Turn, known: Known, invocation: Invocation) -> Invocation:
    """A sleep is over: a conversation gets the object as it is now."""
    invocation = replace(invocation, wake=None, ready=True)
    if invocation.plan is not None:
        return replace(invocation, plan=invocation.plan[1:])
    data = None if invocation.situation.body is None else known.body.data
    return _journaled(turn, invocation, Applied(data))


def _journaled(turn: Turn, invocation: Invocation, outcome: Outcome) -> Invocation:
    """The conversation with an answer, ready to go on."""
    assert invocation.asked is not None
    entry = driving.Entry(digest_of(invocation.asked), outcome, turn.now.wall)
    return replace(
        invocation,
        journal=(*invocation.journal, entry),
        length=invocation.length + len(canonical(to_wire(outcome))),
        ready=True,
        errand=None,
        asked=None,
    )


def _drive(
    turn: Turn, key: Key, known: Known, invocation: Invocation
) -> tuple[Known, Invocation]:
    """Call the author's code once: to its next effect, or to its end."""
    if (
        len(invocation.journal) > JOURNAL_ENTRIES_MAX
        or invocation.length > JOURNAL_BYTES_MAX
    ):
        return known, _outgrown(turn, key, invocation)
    turn.drives += 1
    found = driving.advance(
        invocation.situation,
        invocation.journal,
        turn.program.live,
        _live_key(key, invocation),
    )
    tell(turn, key, invocation, found.lines)
    if found.asks is not None:
        return _ask(turn, key, known, invocation, found.asks)
    end = found.end
    assert end is not None
    patches = (end.patch,) if end.patch else ()
    return known, replace(
        invocation, ready=False, plan=end.plan, patches=patches, failure=end.failure
    )


def _outgrown(turn: Turn, key: Key, invocation: Invocation) -> Invocation:
    """A conversation cannot remember for ever: it starts again (R12)."""
    driving.cancel(
        invocation.situation,
        invocation.journal,
        turn.program.live,
        _live_key(key, invocation),
    )
    return replace(
        invocation,
        plan=(),
        again=Again(1.0, "the conversation has grown too long to be remembered"),
    )


# ----------------------------------------------------------------- effects


def _ask(
    turn: Turn, key: Key, known: Known, invocation: Invocation, effect: Effect
) -> tuple[Known, Invocation]:
    """A conversation awaits an effect."""
    invocation = replace(invocation, asked=effect, ready=False)
    known, invocation, outcome = perform(turn, key, known, invocation, effect)
    if outcome is not None:
        invocation = _journaled(turn, invocation, outcome)
    return known, invocation


def _run_plan(
    turn: Turn, key: Key, known: Known, invocation: Invocation
) -> tuple[Known, Invocation]:
    """Perform a plan's effects in their order, until one has to be waited for."""
    while invocation.plan and invocation.errand is None and invocation.wake is None:
        effect, rest = invocation.plan[0], invocation.plan[1:]
        match effect:
            case Patch() if is_own(effect, invocation):
                # Fused into the last write, wherever it stands (R4).
                patches = (*invocation.patches, effect)
                invocation = replace(invocation, plan=rest, patches=patches)
            case Return(value=value):
                result = None if value is None else effect
                invocation = replace(invocation, plan=rest, result=result)
            case Again():
                invocation = replace(invocation, plan=rest, again=effect)
            case _:
                known, invocation, outcome = perform(
                    turn, key, known, invocation, effect
                )
                if outcome is not None:
                    invocation = _planned(invocation, outcome)
    return known, invocation


def _planned(invocation: Invocation, outcome: Outcome) -> Invocation:
    """An effect of a plan is answered: go on, or fail the attempt."""
    assert invocation.plan
    effect = invocation.plan[0]
    failure = _failure_of(effect, outcome)
    invocation = replace(invocation, errand=None, plan=invocation.plan[1:])
    if failure is None:
        return invocation
    return replace(invocation, plan=(), patches=(), failure=failure)


def _failure_of(effect: Effect, outcome: Outcome) -> Failure | None:
    """What an outcome means for the attempt that planned the effect."""
    what = effect.kind
    match outcome:
        case Applied() | Answer():
            return None
        case Missing() if isinstance(effect, (Delete, Get)):
            return None
        case Raised(permanent=True):
            return Failure(outcome.type, outcome.message, permanent=True)
        case Raised():
            return Failure(outcome.type, outcome.message, outcome.delay_seconds)
        case Missing() | Conflict() | Refused() | Unreachable() | Unknown():
            name = type(outcome).__name__
            return Failure(name, f"{what}: {outcome.message}")


def answer_errand(turn: Turn, number: int, ticket: Ticket, outcome: Outcome) -> None:
    """An effect of an invocation has been answered."""
    key = ticket.key
    assert key is not None
    known = turn.known(key)
    if known is None or known.work is None:
        return
    work = known.work
    invocation = next(
        (
            each
            for each in (*work.running, *work.spying)
            if each.serial == ticket.serial
        ),
        None,
    )
    if invocation is None or invocation.errand is None:
        outstanding = work.outstanding - {number}
        until = work.outstanding_until if outstanding else 0.0
        left = replace(work, outstanding=outstanding, outstanding_until=until)
        _keep(turn, key, replace(known, work=left), ends=False)
        turn.due(key)
        return
    if invocation.errand.id != number:
        return
    own = _own_answer(invocation, outcome)
    if own is not None and own.uid != known.body.uid:
        known = vanished(turn, known)
        outcome = Missing("the object has been deleted, and made anew")
    elif own is not None:
        known = shown(turn, known, own)
    found = proceed(invocation.errand, outcome, turn.now, turn.jitter())
    if not isinstance(found, Errand):
        _answered(turn, key, known, invocation, found)
    elif found.due is not None and found.due > turn.now.mono:
        waiting = replace(invocation, errand=found, ready=False)
        _store(turn, key, known, waiting)
    else:
        _store(turn, key, known, send(turn, key, invocation, found))
    turn.due(key)


def _own_answer(invocation: Invocation, outcome: Outcome) -> Body | None:
    """The handled object, as the answer to an awaited patch of it shows it (R23)."""
    errand = invocation.errand
    if (
        errand is None
        or errand.looking
        or not isinstance(errand.effect, Patch)
        or not is_own(errand.effect, invocation)
        or not isinstance(outcome, Applied)
        or not isinstance(outcome.object, dict)
    ):
        return None
    return Body(outcome.object)


def _answered(
    turn: Turn, key: Key, known: Known, invocation: Invocation, outcome: Outcome
) -> None:
    if invocation.plan is None:
        _store(turn, key, known, _journaled(turn, invocation, outcome))
    else:
        _follow(turn, key, known, _planned(invocation, outcome))


# -------------------------------------------------------------------- ends


def _finish(turn: Turn, key: Key, known: Known, invocation: Invocation) -> None:
    """An attempt is over: judge it, and keep what it wants written."""
    work = known.work
    assert work is not None
    handler, serial = invocation.handler, invocation.serial
    patches, results, progress = work.patches, work.results, work.progress
    if not known.gone and _is_about(known, invocation):
        patches += tuple((handler.id, patch) for patch in invocation.patches)
        if invocation.result is not None and invocation.failure is None:
            results = {**results, handler.id: invocation.result.value}
    if handler.role is Role.EVENT:
        _spied(turn, key, invocation)
    else:
        judged = _judged(turn, key, invocation, progress[handler.id])
        progress = {**progress, handler.id: judged}
    work = replace(
        work,
        running=tuple(each for each in work.running if each.serial != serial),
        spying=tuple(each for each in work.spying if each.serial != serial),
        patches=patches,
        results=results,
        progress=progress,
    )
    _keep(turn, key, replace(known, work=work), ends=False)


def _is_about(known: Known, invocation: Invocation) -> bool:
    """Whether an attempt was about this object, and not about one of its name."""
    body = invocation.situation.body
    return body is not None and body.uid == known.body.uid


def _spied(turn: Turn, key: Key, invocation: Invocation) -> None:
    failure = invocation.failure
    if failure is not None:
        _report(turn, key, invocation, "error", f"failed, which is ignored: {failure}")
    elif invocation.again is not None:
        line = "asks to be called again, but only the next watch event calls it"
        _report(turn, key, invocation, "warning", line)


def _judged(
    turn: Turn, key: Key, invocation: Invocation, progress: Progress
) -> Progress:
    judgement = _judgement(turn, invocation, progress)
    _report(turn, key, invocation, judgement.level, judgement.line)
    if judgement.progress.finished == "failure":
        turn.failures += 1
        if invocation.handler.role in ACTIVITIES:
            turn.exit_status = 1
    return judgement.progress


def _judgement(turn: Turn, invocation: Invocation, progress: Progress) -> Judgement:
    handler, failure = invocation.handler, invocation.failure
    if failure is not None:
        return turn.judge(handler, progress, failure)
    if invocation.again is not None:
        again = invocation.again
        return judge_again(
            progress,
            turn.now,
            after=again.after,
            because=again.because,
            timeout=handler.timeout,
        )
    return Judgement(succeeded(progress), "info", "succeeded")


def _report(
    turn: Turn, key: Key, invocation: Invocation, level: str, line: str
) -> None:
    handler, failure = invocation.handler, invocation.failure
    turn.say(
        level,
        f"{handler.role.value} handler {handler.id} {line}",
        key=key,
        body=invocation.situation.body,
        handler=handler.id,
        error=str(failure) if failure else None,
        exception=failure.exception if failure and not failure.is_expected else None,
    )


def _expire(turn: Turn, key: Key, known: Known, invocation: Invocation) -> None:
    """A timeout does stop a conversation that is still waiting."""
    known = _stop(turn, key, known, invocation)
    limit = invocation.handler.timeout or 0.0
    failure = Failure(
        "HandlerTimeoutError", f"not done within {limit:g} s", permanent=True
    )
    ended = replace(invocation, patches=(), plan=(), failure=failure)
    _finish(turn, key, known, ended)


def _cancel_all(turn: Turn, key: Key, known: Known) -> None:
    """End the first of the conversations; the others follow, one a step."""
    work = known.work
    assert work is not None
    invocation = work.running[0]
    known = _stop(turn, key, known, invocation)
    assert known.work is not None
    rest = tuple(
        each for each in known.work.running if each.serial != invocation.serial
    )
    left = replace(known.work, running=rest, cycle=work.cycle if rest else None)
    _keep(turn, key, replace(known, work=left), ends=False)
    turn.say(
        "info",
        f"{invocation.handler.role.value} handler {invocation.handler.id} is cancelled",
        key=key,
        body=known.body,
        handler=invocation.handler.id,
    )


def _stop(turn: Turn, key: Key, known: Known, invocation: Invocation) -> Known:
    """Cancel a conversation; its request, if one is under way, is outstanding."""
    turn.drives += 1
    if invocation.plan is None:
        lines = driving.cancel(
            invocation.situation,
            invocation.journal,
            turn.program.live,
            _live_key(key, invocation),
        )
        tell(turn, key, invocation, lines)
    errand, work = invocation.errand, known.work
    if errand is None or errand.id is None or work is None:
        return known
    work = replace(
        work,
        outstanding=work.outstanding | {errand.id},
        outstanding_until=turn.now.mono + OUTSTANDING_SECONDS,
    )
    return replace(known, work=work)
