"""What to do next about one object: the heart of the operator.

`reconcile` looks at an object, at what is remembered of it and at what is under
way, and answers the one next move.  It changes nothing; the executor makes the move
(`fnop.core.objects.executor`) and asks again.

Guarantees: the finalizer comes first and alone; no handler starts while an own
write is not shown by the watch; one cycle at a time; what a cycle says is "done"
is what its own view was.
"""

from __future__ import annotations

from fnop.core.memory.observation import see
from fnop.core.objects.background import (
    background_due,
    background_move,
)
from fnop.core.objects.change import abandons, goes_on, handle, with_children
from fnop.core.objects.detection import (
    cause_of,
    concerns,
    duty_of,
    selected_for,
)
from fnop.core.objects.moves import (
    Cancel,
    Expire,
    Forget,
    GoOn,
    Look,
    Move,
    Overlook,
    Rest,
    Settle,
    Spy,
    Write,
    earlier,
    first_due,
    is_due,
)
from fnop.core.objects.progression import acts_upon, aim_of, keeps_back, may_save
from fnop.core.objects.selection import Moment
from fnop.core.objects.upkeep import upkeep
from fnop.core.state.fusion import Writing
from fnop.core.state.record import IDLE, Cycle, Echo, Invocation, Known, Work
from fnop.core.values.body import Key
from fnop.core.values.cause import HANDLED, Reason
from fnop.core.values.finalizers import Duty

__all__ = ["reconcile"]


def reconcile(at: Moment, known: Known) -> Move:
    """The next move about an object; total.

    Filters are the author's code: what they raise escalates to the caller.
    """
    work = known.work or IDLE
    move: Move | None = abandons(at, known, work) or _going_on(at, known, work)
    if move is None and at.kind.background:
        move = background_move(at, known, work)
    if move is not None:
        return move
    if work.running and _is_unwanted(at, known, work):
        return Cancel()
    if known.gone:
        others = (*work.spying, *work.tending)
        return Rest(first_due(others)) if others else Forget()
    if known.vanished and known.echo is not None:
        return _await_echo(at, known.echo) or Rest(
            earlier(_waking(at, known, work), known.echo.due)
        )
    return _own_lane(at, known, work)


def _going_on(at: Moment, known: Known, work: Work) -> GoOn | Spy | Expire | None:
    """What is under way and waits for nothing any more."""
    for each in work.invocations:
        if each.ready or _is_let_go(at, known, each):
            return GoOn(each)
    busy = {each.handler.id for each in work.spying}
    is_held = keeps_back(at, known) or (known.pace.is_loop and work.writing is not None)
    for sighting in () if is_held else work.sightings:
        if sighting.handler.id not in busy and not at.stopping:
            return Spy(sighting)
    for each in work.invocations:
        if each.wake is not None and each.wake <= at.now.mono:
            return GoOn(each)
        if each.errand and is_due(each.errand.due, at):
            return GoOn(each)
        if is_due(each.deadline, at):
            return Expire(each)
    return None


def _is_let_go(at: Moment, known: Known, invocation: Invocation) -> bool:
    """Whether an effect that waits for the mark of its attempt may be sent now."""
    if invocation.errand is None or not invocation.errand.held:
        return False
    record = known.stored.progress.get(invocation.handler.id)
    is_marked = record is not None and record.acted == acts_upon(at, invocation)
    return is_marked or not may_save(at, known)


def _is_unwanted(at: Moment, known: Known, work: Work) -> bool:
    """Whether the change that conversations are about is overtaken (R16)."""
    if known.gone or at.stopping:
        return True
    reason = work.cycle.reason if work.cycle else None
    return known.body.is_deleting and reason is not Reason.DELETE


def _waking(at: Moment, known: Known, work: Work) -> float | None:
    """When something is due that waits for no write of the object."""
    waking = first_due(work.invocations)
    if work.sightings and keeps_back(at, known):
        waking = earlier(waking, known.pace.until)
    if not at.kind.background:
        return waking
    return earlier(waking, background_due(at, known, work))


def _own_lane(at: Moment, known: Known, work: Work) -> Move:
    waking = _waking(at, known, work)
    if work.writing is not None:
        if is_due(work.writing.due, at):
            return Write(work.writing)
        return Rest(earlier(waking, work.writing.due))
    if known.echo is not None and not at.stopping:
        look = _await_echo(at, known.echo)
        if look is not None:
            return look
        waking = earlier(waking, known.echo.due)
        if not known.echo.passes:
            return Rest(waking)
    if work.outstanding and at.now.mono < work.outstanding_until:
        return Rest(earlier(waking, work.outstanding_until))
    if not work.running and _is_being_written(at, known, work):
        return Rest(waking)
    move = _change(at, known, work)
    if isinstance(move, Rest):
        return Rest(earlier(waking, move.until))
    return move


def _is_being_written(at: Moment, known: Known, work: Work) -> bool:
    """Whether a daemon, a timer or a spy changes the object, and is to be answered.

    The watch may show the change first; whose it is, the answer tells.
    """
    body = known.body
    key = Key(at.kind.resource.key, body.namespace or "", body.name)
    return any(
        each.errand is not None
        and each.errand.base is not None
        and each.errand.id is not None
        and each.errand.requests[0].address.key == key
        for each in (*work.tending, *work.spying)
    )


def _await_echo(at: Moment, echo: Echo) -> Look | None:
    """When the bound passes: a live read, never blind (R24)."""
    return Look() if is_due(echo.due, at) else None


def _change(at: Moment, known: Known, work: Work) -> Move:
    """The change lane: detect, hold, handle, record."""
    if work.cycle is not None:
        cycle = with_children(at, known, work, work.cycle)
        if goes_on(known, work, cycle):
            return handle(at, known, work, cycle)
    duty = duty_of(at, known)
    if duty is not Duty.NONE and not at.stopping:
        if known.odds.until > at.now.mono and not known.body.is_deleting:
            return Rest(known.odds.until)
        return Write(Writing(finalizer=duty.value))
    if not concerns(at, known):
        return _overlook(at, known) or _flush(work)
    seen = see(known.body, at.kind.observation)
    cause = cause_of(at, known, seen)
    if cause.reason not in HANDLED:
        return upkeep(at, known, work, cause, seen)
    selected = selected_for(at, known, cause, seen)
    if cause.reason is Reason.CREATE and not selected and known.overlooked:
        # It has been there, and was nobody's: handlers of updates are for it now.
        return Settle(known.stored._replace(seen=known.overlooked), ends=False)
    aims = {each.id: aim_of(at, known.body, cause.reason, each) for each in selected}
    cycle = Cycle(
        cause.reason,
        cause.initial,
        known.body,
        seen,
        selected,
        aims,
        known.body.generation,
    )
    return handle(at, known, work, with_children(at, known, work, cycle))


def _overlook(at: Moment, known: Known) -> Overlook | None:
    """Keep in mind what the object was while no handler was for it.

    Nothing is written on it.  Where a filter of an update handler comes to fit, such as
    a field that appears, that is a change of what there was.
    """
    if not at.kind.overlooks or known.stored.seen is not None:
        return None
    seen = see(known.body, at.kind.observation)
    return None if known.overlooked == seen else Overlook(seen)


def _flush(work: Work) -> Move:
    """Write what spies have patched, when that is all there is."""
    if work.patches or work.results:
        return Write(Writing(work.patches, work.results))
    return Rest()


# ---------------------------------------------------------------- one cycle
