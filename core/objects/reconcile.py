"""What to do next about one object: the heart of the operator.

`reconcile` looks at an object, at what is remembered of it and at what is under
way, and answers the one next move.  It changes nothing; the executor makes the move
(`fnop.core.objects.executor`) and asks again.

Guarantees: the finalizer comes first and alone; no handler starts while an own
write is not shown by the watch; one cycle at a time; what a cycle says is "done"
is what its own view was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fnop.core.handlers.handler import Handler, Role
from fnop.core.handlers.lifecycles import Candidate, all_at_once, order_of, shuffled
from fnop.core.handlers.program import Kind
from fnop.core.handlers.writers import Transform
from fnop.core.memory.conditions import Condition, condition_of, told_by
from fnop.core.memory.last_seen import Stored
from fnop.core.memory.observation import Seen, digest_at, observed_at, scope_name, see
from fnop.core.memory.progress import Progress, anew
from fnop.core.objects.background import (
    Dismiss,
    Engage,
    Halt,
    Retime,
    Show,
    Tend,
    background_due,
    background_move,
    holds_object,
)
from fnop.core.objects.selection import Moment, passes, prematches
from fnop.core.state.fusion import Writing
from fnop.core.state.record import IDLE, Cycle, Echo, Invocation, Known, Sighting, Work
from fnop.core.values.body import Body, Key
from fnop.core.values.cause import HANDLED, Cause, Facts, Reason, detect_cause
from fnop.core.values.finalizers import Duty, finalizer_duty, without_finalizer
from fnop.core.values.now import Now
from fnop.effects import Execute

__all__ = [
    "Begin",
    "Cancel",
    "Conclude",
    "Expire",
    "Forget",
    "GoOn",
    "Look",
    "Move",
    "Rest",
    "Settle",
    "Spy",
    "Write",
    "first_due",
    "reconcile",
]

# A delay of a minute or more outlives many a process: it is stored (R19).
_LONG_DELAY_SECONDS = 60.0
# No digest: something else than what there is.
_UNKNOWN_VIEW = "?"


class Rest(NamedTuple):
    """Nothing to do before `until` (monotonic), or before something happens."""

    until: float | None = None


class GoOn(NamedTuple):
    """An invocation can go on; `ends` is how the sub-handlers have that it awaits."""

    invocation: Invocation
    ends: Mapping[str, Any] | None = None


class Spy(NamedTuple):
    """A spy has a watch event to look at."""

    sighting: Sighting


class Begin(NamedTuple):
    """Start an attempt of a handler for this cycle."""

    handler: Handler
    cycle: Cycle
    progress: Progress


class Conclude(NamedTuple):
    """All sub-handlers of a handler have ended, and so it has; `failed` names one."""

    handler: Handler
    progress: Progress
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End all conversations about the change: it is no longer wanted."""


class Expire(NamedTuple):
    """A waiting conversation has passed its handler's timeout."""

    invocation: Invocation


class Write(NamedTuple):
    """Write the object, or go on writing it."""

    writing: Writing


class Settle(NamedTuple):
    """Remember without writing: nothing on the object needs to change.

    `released` says that the deletion of an object that others hold has been handled.
    """

    stored: Stored
    ends: bool
    released: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """The echo of an own write did not come in time: read the object live."""


@dataclass(frozen=True, slots=True)
class Forget:
    """The object is gone, and nothing is under way: drop its record."""


Move = (
    Rest
    | GoOn
    | Spy
    | Engage
    | Tend
    | Show
    | Halt
    | Retime
    | Dismiss
    | Begin
    | Conclude
    | Cancel
    | Expire
    | Write
    | Settle
    | Look
    | Forget
)


def reconcile(at: Moment, known: Known) -> Move:
    """The next move about an object; total.

    Filters are the author's code: what they raise escalates to the caller.
    """
    work = known.work or IDLE
    move: Move | None = _going_on(at, known, work)
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
            _earlier(_waking(at, known, work), known.echo.due)
        )
    return _own_lane(at, known, work)


def _going_on(at: Moment, known: Known, work: Work) -> GoOn | Spy | Expire | None:
    """What is under way and waits for nothing any more."""
    for each in work.invocations:
        if each.ready or _is_let_go(at, known, each):
            return GoOn(each)
    busy = {each.handler.id for each in work.spying}
    is_held = _keeps_back(at, known) or (
        known.pace.is_loop and work.writing is not None
    )
    for sighting in () if is_held else work.sightings:
        if sighting.handler.id not in busy and not at.stopping:
            return Spy(sighting)
    for each in work.invocations:
        if each.wake is not None and each.wake <= at.now.mono:
            return GoOn(each)
        if each.errand and _is_due(each.errand.due, at):
            return GoOn(each)
        if _is_due(each.deadline, at):
            return Expire(each)
    return None


def _is_let_go(at: Moment, known: Known, invocation: Invocation) -> bool:
    """Whether an effect that waits for the mark of its attempt may be sent now."""
    if invocation.errand is None or not invocation.errand.held:
        return False
    record = known.stored.progress.get(invocation.handler.id)
    is_marked = record is not None and record.acted == _acts_upon(at, invocation)
    return is_marked or not _may_save(at, known)


def _acts_upon(at: Moment, invocation: Invocation) -> str:
    body, field = invocation.situation.body, invocation.handler.field
    return "" if body is None else digest_at(body, field, at.kind.observation)


def _keeps_back(at: Moment, known: Known) -> bool:
    """Whether the operator is in a loop with itself, and waits before its next turn."""
    is_ending = known.gone or known.body.is_deleting
    return known.pace.until > at.now.mono and not is_ending


def _is_due(moment: float | None, at: Moment) -> bool:
    return moment is not None and moment <= at.now.mono


def first_due(invocations: Iterable[Invocation]) -> float | None:
    return min((each.due for each in invocations if each.due is not None), default=None)


def _is_unwanted(at: Moment, known: Known, work: Work) -> bool:
    """Whether the change that conversations are about is overtaken (R16)."""
    if known.gone or at.stopping:
        return True
    reason = work.cycle.reason if work.cycle else None
    return known.body.is_deleting and reason is not Reason.DELETE


def _waking(at: Moment, known: Known, work: Work) -> float | None:
    """When something is due that waits for no write of the object."""
    waking = first_due(work.invocations)
    if work.sightings and _keeps_back(at, known):
        waking = _earlier(waking, known.pace.until)
    if not at.kind.background:
        return waking
    return _earlier(waking, background_due(at, known, work))


def _own_lane(at: Moment, known: Known, work: Work) -> Move:
    waking = _waking(at, known, work)
    if work.writing is not None:
        if _is_due(work.writing.due, at):
            return Write(work.writing)
        return Rest(_earlier(waking, work.writing.due))
    if known.echo is not None and not at.stopping:
        look = _await_echo(at, known.echo)
        if look is not None:
            return look
        waking = _earlier(waking, known.echo.due)
        if not known.echo.passes:
            return Rest(waking)
    if work.outstanding and at.now.mono < work.outstanding_until:
        return Rest(_earlier(waking, work.outstanding_until))
    if not work.running and _is_being_written(at, known, work):
        return Rest(waking)
    move = _change(at, known, work)
    if isinstance(move, Rest):
        return Rest(_earlier(waking, move.until))
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
    return Look() if _is_due(echo.due, at) else None


def _earlier(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _change(at: Moment, known: Known, work: Work) -> Move:
    """The change lane: detect, hold, handle, record."""
    if work.cycle is not None:
        cycle = _with_children(at, known, work, work.cycle)
        if _goes_on(known, work, cycle):
            return _handle(at, known, work, cycle)
    duty = _duty(at, known)
    if duty is not Duty.NONE and not at.stopping:
        if known.odds.until > at.now.mono and not known.body.is_deleting:
            return Rest(known.odds.until)
        return Write(Writing(finalizer=duty.value))
    if not _concerns(at, known):
        return _flush(work)
    seen = see(known.body, at.kind.observation)
    cause = _cause(at, known, seen)
    if cause.reason not in HANDLED:
        return _upkeep(at, known, work, cause, seen)
    selected = _selected(at, known, cause, seen)
    aims = {each.id: _aim(at, known.body, cause.reason, each) for each in selected}
    cycle = Cycle(
        cause.reason,
        cause.initial,
        known.body,
        seen,
        selected,
        aims,
        known.body.generation,
    )
    return _handle(at, known, work, _with_children(at, known, work, cycle))


def _goes_on(known: Known, work: Work, cycle: Cycle) -> bool:
    """Whether the present cycle is still the one to be handled.

    While its conversations are under way it is, and so it is when all has been
    done for its view and only has to be recorded.  Otherwise the object as it is
    now decides, and what is unfinished starts anew (R15).
    """
    if work.running:
        return True
    if known.body.is_deleting and cycle.reason is not Reason.DELETE:
        return False
    return bool(cycle.selected) and all(
        _progress(known, work, cycle, each).is_finished for each in cycle.selected
    )


def _flush(work: Work) -> Move:
    """Write what spies have patched, when that is all there is."""
    if work.patches or work.results:
        return Write(Writing(work.patches, work.results))
    return Rest()


def _cause(at: Moment, known: Known, seen: Seen) -> Cause:
    stored = known.stored
    was = stored.seen
    changed = was is not None and (
        any(new != was.digests.get(scope, new) for scope, new in seen.digests.items())
        or any(_is_ahead(each, known, seen) for each in at.kind.changes)
    )
    return detect_cause(
        Facts(
            gone=known.gone,
            deleting=known.body.is_deleting,
            blocked=_is_held(at, known.body) or _is_of_interest(at, known),
            seen=was is not None and not stored.creating,
            changed=changed,
            initial=known.initial,
        )
    )


def _duty(at: Moment, known: Known) -> Duty:
    deleting = known.body.is_deleting
    # An optional handler does not hold an object, but is called where another does.
    deleters = _optional(at) if deleting else ()
    needed = any(
        prematches(at, known, each) for each in (*at.kind.deleters, *deleters)
    ) or holds_object(at, known)
    return finalizer_duty(
        needed=needed,
        present=_is_present(at, known.body, needed=needed),
        deleting=deleting,
    )


def _optional(at: Moment) -> tuple[Handler, ...]:
    """Deletion handlers that need no finalizer."""
    return tuple(
        each for each in at.kind.changes if each.role is Role.DELETE and each.optional
    )


def _is_held(at: Moment, body: Body) -> bool:
    """Whether this operator holds the object, or who it takes over from."""
    present = body.finalizers
    return bool(present) and not set(at.settings.finalizers).isdisjoint(present)


def _is_of_interest(at: Moment, known: Known) -> bool:
    """Whether a deletion that is held up is to be handled, not being so by us.

    Others' finalizers do so, and the grace that a pod has, or a namespace its content.
    Optional handlers are called for it, once in a process: they hold nothing.
    """
    if known.released or not known.body.is_deleting:
        return False
    return any(prematches(at, known, each) for each in _optional(at))


def _is_present(at: Moment, body: Body, *, needed: bool) -> bool:
    """A finalizer that is taken over holds as well, but is to be replaced in time."""
    if needed and not body.is_deleting:
        return at.settings.marker in body.finalizers
    return _is_held(at, body)


def _concerns(at: Moment, known: Known) -> bool:
    """Whether any handler is for this object at all: others stay untouched."""
    return any(prematches(at, known, each) for each in at.kind.changes)


def _selected(
    at: Moment, known: Known, cause: Cause, seen: Seen
) -> tuple[Handler, ...]:
    """The handlers for a cause, in order; one function under one id runs once."""
    found: dict[str, Handler] = {}
    theirs = cause.reason is Reason.DELETE and not _is_held(at, known.body)
    for each in at.kind.changes:
        if theirs and not (each.role is Role.DELETE and each.optional):
            continue  # without our finalizer nothing has begun here
        if each.id not in found and _takes_part(at, each, known, cause, seen):
            if each.takes_all:
                found[each.id] = each
                continue
            changed = each.role in (Role.UPDATE, Role.FIELD)
            reason = cause.reason.value
            if passes(at, known, each, changed=changed, reason=reason):
                found[each.id] = each
    return tuple(found.values())


def _field(at: Moment, body: Body, handler: Handler) -> Any:
    return observed_at(body, handler.field, at.kind.observation.own)


def _takes_part(
    at: Moment, handler: Handler, known: Known, cause: Cause, seen: Seen
) -> bool:
    match handler.role:
        case Role.CREATE:
            return cause.reason is Reason.CREATE
        case Role.UPDATE:
            return cause.reason is Reason.UPDATE and _differs(handler, known, seen)
        case Role.DELETE:
            return cause.reason is Reason.DELETE
        case Role.FIELD:
            if cause.reason is Reason.CREATE:
                return _field(at, known.body, handler) is not None
            return cause.reason in (Reason.UPDATE, Reason.DELETE) and _differs(
                handler, known, seen
            )
        case Role.RESUME:
            return cause.initial and (
                cause.reason is not Reason.DELETE or handler.deleted
            )
        case _:
            return False


def _differs(handler: Handler, known: Known, seen: Seen) -> bool:
    """Whether what the handler observes is not what it was."""
    now = seen.digests[scope_name(handler.field)]
    if known.stored.seen is None:
        return False
    return now != (known.handled_by(handler) or now) or _is_ahead(handler, known, seen)


def _is_ahead(handler: Handler, known: Known, seen: Seen) -> bool:
    """Whether a handler has acted upon a state that the object has no more.

    Others were still at work on that change when it was taken back.
    """
    if handler.role not in (Role.UPDATE, Role.FIELD):
        return False
    record = known.record_of(handler.id)
    if record is None or not record.acted:
        return False
    return record.acted != seen.digests[scope_name(handler.field)]


# ---------------------------------------------------------------- one cycle


def _marked(at: Moment, known: Known, work: Work) -> Move | None:
    """The write that says who has begun to act, before anything is done elsewhere."""
    held = [each for each in work.running if each.errand and each.errand.held]
    if not held:
        return None
    progress = dict(known.stored.progress)
    for each in held:
        record = work.progress[each.handler.id]
        progress[each.handler.id] = _mark(record._replace(acted=_acts_upon(at, each)))
    after = known.stored._replace(progress=progress)
    return Write(Writing(after=after, memory=after))


def _handle(at: Moment, known: Known, work: Work, cycle: Cycle) -> Move:
    """Start what can start; record when all have ended or wait."""
    for each in work.running:
        if isinstance(each.asked, Execute) and not each.ready:
            ends = _ends(known, work, cycle, each)
            if ends is not None:
                return GoOn(each, ends)
    move = _marked(at, known, work) or _conclusion(known, work, cycle)
    if move is not None:
        return move
    running = {each.handler.id for each in work.running}
    due: float | None = None
    ready: list[Candidate] = []
    for handler in cycle.selected:
        progress = _progress(known, work, cycle, handler)
        if handler.id in running or progress.is_finished:
            continue
        if _declared(work, cycle, handler):
            continue  # its part is done: the rest is its sub-handlers'
        moment = _begins_at(at, known, progress)
        if moment > at.now.mono:
            due = _earlier(due, moment)
        else:
            ready.append(_candidate(at, known, handler, progress))
    if ready and not at.stopping and _may_begin(at, known, work):
        selected = {each.id: each for each in cycle.selected}
        for first in at.settings.lifecycle(tuple(ready)):
            handler = selected[first.handler.id]
            return Begin(handler, _fresh_view(known, cycle), first.progress)
    if any(not each.waits for each in work.running):
        return Rest()
    return _record(at, known, work, cycle, due)


def _begins_at(at: Moment, known: Known, progress: Progress) -> float:
    """When an attempt may begin (monotonic seconds)."""
    moment = progress.due_at(at.now)
    return max(moment, known.pace.until) if _keeps_back(at, known) else moment


def _candidate(
    at: Moment, known: Known, handler: Handler, progress: Progress
) -> Candidate:
    if at.settings.lifecycle is all_at_once:
        return Candidate(handler, progress, 0)
    about = f"{known.body.uid} {known.body.version}"
    return Candidate(handler, progress, order_of(at.seed, about, handler.id))


def _may_begin(at: Moment, known: Known, work: Work) -> bool:
    """Whether this pass goes on: others than all at once end it after each handler."""
    if at.settings.lifecycle is all_at_once or at.settings.lifecycle is shuffled:
        return True
    is_unsaved = any(
        each.is_finished and name not in known.stored.progress
        for name, each in work.progress.items()
    )
    return not work.running and not is_unsaved


def _declared(work: Work, cycle: Cycle, parent: Handler) -> tuple[Handler, ...]:
    """The sub-handlers that a handler has declared for this very change."""
    found = work.declared.get(parent.id)
    if found is None or found.aim != cycle.aims[parent.id]:
        return ()
    return found.children


def _with_children(at: Moment, known: Known, work: Work, cycle: Cycle) -> Cycle:
    """The cycle with the sub-handlers that are declared by now, behind the others."""
    if not work.declared:
        return cycle
    selected = list(cycle.selected)
    aims = dict(cycle.aims)
    for parent in selected:  # it grows: children may have children
        for child in _declared(work, cycle._replace(aims=aims), parent):
            if child.id in aims or not _passes_as_part(at, known, cycle, child):
                continue
            selected.append(child)
            aims[child.id] = aims[parent.id]
    return cycle._replace(selected=tuple(selected), aims=aims)


def _passes_as_part(at: Moment, known: Known, cycle: Cycle, child: Handler) -> bool:
    changed, reason = child.role in (Role.UPDATE, Role.FIELD), cycle.reason.value
    return child.takes_all or passes(at, known, child, changed=changed, reason=reason)


def _ends(
    known: Known, work: Work, cycle: Cycle, parent: Invocation
) -> dict[str, Any] | None:
    """How the awaited sub-handlers have ended; None while one has not."""
    assert isinstance(parent.asked, Execute)
    ends: dict[str, Any] = {}
    for name in parent.asked.children:
        child = f"{parent.handler.id}/{name}"
        if child not in cycle.aims:
            continue  # its filters leave it out
        progress = _progress_by_id(known, work, cycle, child)
        if not progress.is_finished:
            return None
        ends[name] = {"finished": progress.finished}
        if progress.message:
            ends[name]["message"] = progress.message
    return ends


def _conclusion(known: Known, work: Work, cycle: Cycle) -> Conclude | None:
    """The innermost handler that has ended with its parts, and is yet to be told so."""
    for handler in reversed(cycle.selected) if work.declared else ():
        if not _declared(work, cycle, handler):
            continue
        progress = _progress(known, work, cycle, handler)
        own = _progress_by_id(known, work, cycle, handler.id)
        if progress.is_finished and not own.is_finished:
            failed = _failed_part(known, work, cycle, handler)
            return Conclude(handler, progress, failed.id if failed else "")
    return None


def _failed_part(
    known: Known, work: Work, cycle: Cycle, parent: Handler
) -> Handler | None:
    for each in _declared(work, cycle, parent):
        if each.id in cycle.aims:
            progress = _progress(known, work, cycle, each)
            if progress.is_finished and not progress.has_succeeded:
                return each
    return None


def _fresh_view(known: Known, cycle: Cycle) -> Cycle:
    """A handler that starts anew gets the object as it is now (R15)."""
    if cycle.body is known.body:
        return cycle
    return cycle._replace(body=known.body, generation=known.body.generation)


def _progress(known: Known, work: Work, cycle: Cycle, handler: Handler) -> Progress:
    """The handler's record if it is about this change, else a fresh one.

    That of a handler with sub-handlers follows from theirs.
    """
    found = _progress_by_id(known, work, cycle, handler.id)
    children = _declared(work, cycle, handler)
    if found.is_finished or not children or _runs(work, handler):
        return found
    selected = [each for each in children if each.id in cycle.aims]
    parts = [_progress(known, work, cycle, each) for each in selected]
    if not all(each.is_finished for each in parts):
        return found
    failed = next((each for each in parts if not each.has_succeeded), None)
    if failed is None:
        return found._replace(finished="success")
    return found._replace(finished="failure", message=failed.message)


def _runs(work: Work, handler: Handler) -> bool:
    return any(each.handler.id == handler.id for each in work.running)


def _progress_by_id(known: Known, work: Work, cycle: Cycle, name: str) -> Progress:
    aim, found = cycle.aims[name], known.record_of(name)
    if found is not None and (
        _is_for(found, aim) or _is_done_before(cycle, name, found, aim)
    ):
        return found
    return anew(found, aim)


def _is_done_before(cycle: Cycle, name: str, found: Progress, aim: str) -> bool:
    """Whether the handler of a field has succeeded before the end of the object began.

    A deletion changes no field.  That update is not over, so it is not what the object
    was seen as last.
    """
    if cycle.reason is not Reason.DELETE or not found.has_succeeded:
        return False
    is_of_field = any(
        each.id == name and each.role is Role.FIELD for each in cycle.selected
    )
    return is_of_field and found.aim.partition(":")[2] == aim.partition(":")[2]


def _aim(at: Moment, body: Body, reason: Reason, handler: Handler) -> str:
    """What a handler is about: the reason, and the digest of what it observes."""
    if handler.role is Role.RESUME:
        return f"resume:{at.seed}"  # once per process, whatever the object is
    return f"{reason.value}:{digest_at(body, handler.field, at.kind.observation)}"


def _is_for(progress: Progress, aim: str) -> bool:
    """A record counts for its own change alone; but what is created, stays so.

    A creation that has succeeded is never repeated: what came later arrives as
    an update (R15).
    """
    if progress.aim == aim:
        return True
    reason = aim.partition(":")[0]
    return (
        reason == Reason.CREATE.value
        and progress.has_succeeded
        and progress.aim.partition(":")[0] == reason
    )


def _record(
    at: Moment, known: Known, work: Work, cycle: Cycle, due: float | None
) -> Move:
    records = {
        handler.id: _progress(known, work, cycle, handler) for handler in cycle.selected
    }
    ended = not work.running and all(each.is_finished for each in records.values())
    if cycle.reason is Reason.DELETE:
        return _record_deletion(at, known, work, cycle, records, ended, due)
    condition = _to_be_told(at, known, cycle, records, ended)
    results = _settled(work.results, records)
    if ended:
        after = _ended(at, known, cycle, records)
    else:
        writes = bool(work.patches or results or condition is not None)
        after = _partial(at, known, cycle, records, marking=writes)
    news = _may_save(at, known) and _is_news(at.kind, known.stored, after, ended)
    if work.patches or results or news or condition is not None:
        written = after if news else None
        memory = after if ended or news else None
        return Write(
            Writing(work.patches, results, written, memory, ended, condition=condition)
        )
    if ended:
        return Settle(after, ends=True)
    return Rest(due)


def _settled(
    results: Mapping[str, Any], records: Mapping[str, Progress]
) -> dict[str, Any]:
    """The results that stand: a handler's only when its parts have succeeded, too."""
    return {
        name: value
        for name, value in results.items()
        if name not in records or records[name].has_succeeded
    }


def _to_be_told(
    at: Moment,
    known: Known,
    cycle: Cycle,
    records: Mapping[str, Progress],
    ended: bool,
) -> Condition | None:
    """The condition that the object should have, where it has another one."""
    if not at.settings.conditions or not cycle.selected:
        return None
    # How a part has failed is its parent's to judge.
    parts = {each.id for each in cycle.selected if each.parent}
    judged = {k: each for k, each in records.items() if each.waits or k not in parts}
    found = condition_of(
        cycle.reason.value,
        judged,
        ended=ended,
        generation=cycle.generation,
        wall=at.now.wall,
    )
    if found is None or found.is_told_by(known.told):
        return None
    present = told_by(known.body, at.settings.marker)
    if found.status == "True" and not _is_overcome(present, cycle.reason):
        return None
    return None if found.is_told_by(present) else found


def _is_overcome(present: Condition | None, reason: Reason) -> bool:
    """Whether a success puts an end to what an object says of itself.

    A resumption says nothing about a creation or an update that has failed.
    """
    if present is None or present.status == "True":
        return False
    was_resumption = present.reason.startswith(Reason.RESUME.value.capitalize())
    return was_resumption or reason is not Reason.RESUME


def _may_save(at: Moment, known: Known) -> bool:
    """Whether a state may be written: none over one that cannot be read, and none
    so soon after the server has refused it."""
    return known.readable and known.unsaved_until <= at.now.mono


def _record_deletion(
    at: Moment,
    known: Known,
    work: Work,
    cycle: Cycle,
    records: Mapping[str, Progress],
    ended: bool,
    due: float | None,
) -> Move:
    """Deletion handlers' patches, then the finalizer, alone and last (R20)."""
    if ended:
        if any(each.handler.finalizer for each in work.tending):
            return Rest(due)  # a daemon has yet to end
        others = without_finalizer(known.body.finalizers, *at.settings.finalizers)
        outlives = bool(others)
        if work.patches or (work.results and outlives):
            return Write(Writing(work.patches, work.results))
        if not _is_held(at, known.body):
            stored = known.stored._replace(progress={})
            return Settle(stored, ends=True, released=True)
        return Write(Writing(finalizer=Duty.REMOVE.value, ends=True))
    after = _partial(at, known, cycle, records, marking=False)
    news = _may_save(at, known) and _is_news(at.kind, known.stored, after, ended)
    condition = _to_be_told(at, known, cycle, records, ended)
    if work.patches or news or condition is not None:
        written = after if news else None
        return Write(Writing(work.patches, {}, written, written, condition=condition))
    return Rest(due)


def _ended(
    at: Moment, known: Known, cycle: Cycle, records: Mapping[str, Progress]
) -> Stored:
    """All is done: what was acted upon is what has been seen (R15).

    After a creation of several handlers that is the earliest view that one of
    them has succeeded with; what came later is an update.
    """
    stored = known.stored
    seen = stored.seen if stored.creating and stored.seen else cycle.seen
    ahead: dict[str, Progress] = {}
    for handler in at.kind.changes:
        if handler.role not in (Role.UPDATE, Role.FIELD):
            continue
        own = records.get(handler.id)
        if own is not None:
            record = _ahead_of_itself(known, handler, own, seen)
        elif cycle.reason is Reason.CREATE:
            record = _ahead_of_creation(handler, cycle, records, seen)
        else:
            record = None
        if record is not None:
            ahead[handler.id] = record
    return Stored(seen, False, ahead, stored.results)


def _ahead_of_itself(
    known: Known, handler: Handler, own: Progress, seen: Seen
) -> Progress | None:
    """The record of one that is done with another state than what was seen.

    Others of a creation have begun with an older view; or it has failed for good, and
    what it has written itself is no reason to call it again.
    """
    failed = not own.has_succeeded
    done = own.aim.partition(":")[2] if failed else _viewed(own, handler, handler, seen)
    writes = failed and _changes_object(known.work or IDLE, handler)
    if done == seen.digests[scope_name(handler.field)] and not writes:
        return None
    return anew(own, "")._replace(acted=done, handled=done)


def _changes_object(work: Work, handler: Handler) -> bool:
    """Whether a handler, or a part of it, has anything but status to be written."""
    return any(
        isinstance(patch, Transform)
        or patch.json
        or set(patch.merge or ()) - {"status"}
        for name, patch in work.patches
        if name == handler.id or name.startswith(f"{handler.id}/")
    )


def _ahead_of_creation(
    handler: Handler, cycle: Cycle, records: Mapping[str, Progress], seen: Seen
) -> Progress | None:
    """The last of a creation's views that was another one than what was seen.

    What a creation was about concerns those who are told of its changes.
    """
    found = None
    for other in cycle.selected:
        record = records[other.id]
        view = _viewed(record, other, handler, seen)
        if view != seen.digests[scope_name(handler.field)]:
            found = anew(record, "")._replace(acted=view, handled="")
    return found


def _viewed(
    record: Progress | None, actor: Handler, handler: Handler, seen: Seen
) -> str:
    """What one handler observes, as it was in the view that another has acted upon."""
    scope, acted_on = scope_name(handler.field), scope_name(actor.field)
    if record is None or not record.acted:
        return seen.digests[scope]
    if record.seen is not None:
        return record.seen.digests[scope]
    if scope == acted_on:
        return record.acted
    # After a restart nobody knows the rest of a view that was another one.
    same = record.acted == seen.digests.get(acted_on, record.acted)
    return seen.digests[scope] if same else _UNKNOWN_VIEW


def _partial(
    at: Moment,
    known: Known,
    cycle: Cycle,
    records: Mapping[str, Progress],
    *,
    marking: bool,
) -> Stored:
    """What a restart would have to know while the cycle is under way (R19).

    `marking` adds who has begun to act: a write that is due anyway can say so.
    """
    stored = known.stored
    several = len(records) > 1
    handlers = {each.id: each for each in cycle.selected}
    kept = {
        name: each
        for name, each in stored.progress.items()
        if each.handled and name not in records
    }
    for name, each in records.items():
        if _matters(handlers[name], each, at.now, several=several):
            kept[name] = each
        elif each.acted and not each.is_finished:
            mark = _mark(each) if marking else stored.progress.get(name)
            kept |= {} if mark is None else {name: mark}
    creating = stored.creating or (
        cycle.reason is Reason.CREATE
        and any(each.has_succeeded for each in kept.values())
    )
    seen = stored.seen
    if creating and not stored.creating:
        seen = cycle.seen
    return Stored(seen, creating, kept, stored.results)


def _mark(record: Progress) -> Progress:
    """That an attempt has begun to act, and upon what: should it be taken back."""
    return Progress(record.aim, acted=record.acted, handled=record.handled)


def _matters(handler: Handler, progress: Progress, now: Now, *, several: bool) -> bool:
    if progress.is_finished:
        return several
    if progress.handled:
        return True
    if progress.acted and not progress.aim.endswith(progress.acted):
        return True
    if not progress.retries and progress.started is None:
        return False
    if handler.retries is not None or handler.timeout is not None:
        return True
    return (
        progress.until is not None and progress.until - now.wall >= _LONG_DELAY_SECONDS
    )


def _is_news(kind: Kind, stored: Stored, after: Stored, ended: bool) -> bool:
    """Whether a restart would decide otherwise without this being written."""
    if ended and not kind.remembers:
        return False
    was = stored.seen.digests if stored.seen else None
    new = after.seen.digests if after.seen else None
    return (
        was != new
        or stored.creating != after.creating
        or dict(stored.progress) != dict(after.progress)
        or dict(stored.results) != dict(after.results)
    )


def _upkeep(at: Moment, known: Known, work: Work, cause: Cause, seen: Seen) -> Move:
    """Nothing to handle: keep what is remembered complete, and on the object."""
    if work.patches or work.results:
        return Write(Writing(work.patches, work.results))
    if cause.reason is not Reason.NOOP or at.stopping:
        return Rest()
    if work.progress and not known.stored.progress:
        # A reverted change leaves its progress behind; it is of no use any more.
        return Settle(known.stored, ends=True)
    if not known.readable:
        return Rest()
    if not _may_save(at, known):
        return Rest(known.unsaved_until)
    was = known.stored.seen
    assert was is not None, "a NOOP has been seen before"
    places = at.settings.places
    vanished = at.kind.remembers and places.text(known.body) is None
    missing = not seen.digests.keys() <= was.digests.keys()
    lingers = places.lingers(known.body)
    if vanished or missing or lingers or known.stored.progress:
        digests = {**seen.digests, **was.digests}
        after = known.stored._replace(
            seen=Seen(digests, was.values or seen.values), progress={}
        )
        return Write(Writing(after=after, memory=after, ends=True))
    if seen.values is not None and not seen.values.keys() <= (was.values or {}).keys():
        return Settle(known.stored._replace(seen=seen), ends=False)
    return Rest()
