"""Handling a change: which handler begins or goes on, until all have ended.

Sub-handlers are taken into the cycle as they are declared.
"""

from __future__ import annotations

from typing import Any

from fnop.core.handlers.handler import Handler, Role
from fnop.core.handlers.lifecycles import Candidate, all_at_once, order_of, shuffled
from fnop.core.memory.progress import Progress, deadline_of
from fnop.core.objects.moves import (
    Abandon,
    Begin,
    Conclude,
    GoOn,
    Move,
    Rest,
    TimeOut,
    Write,
    earlier,
)
from fnop.core.objects.progression import (
    acts_upon,
    declared_by,
    ended_above,
    has_delegated,
    keeps_back,
    mark_of,
    progress_by_id,
    progress_of,
)
from fnop.core.objects.selection import Moment, passes
from fnop.core.objects.upkeep import record
from fnop.core.state.fusion import Writing
from fnop.core.state.record import Cycle, Invocation, Known, Work
from fnop.core.values.cause import Reason
from fnop.effects import Execute

__all__ = ["abandons", "goes_on", "handle", "with_children"]


def abandons(at: Moment, known: Known, work: Work) -> Abandon | None:
    """The end of an attempt of a part whose handler has ended without it."""
    parts = [each for each in work.running if each.handler.parent]
    if not parts or work.cycle is None:
        return None
    cycle = with_children(at, known, work, work.cycle)
    for each in parts:
        if ended_above(known, work, cycle, each.handler):
            return Abandon(each)
    return None


def goes_on(known: Known, work: Work, cycle: Cycle) -> bool:
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
        progress_of(known, work, cycle, each).is_finished for each in cycle.selected
    )


def _marked(at: Moment, known: Known, work: Work) -> Move | None:
    """The write that says who has begun to act, before anything is done elsewhere."""
    held = [each for each in work.running if each.errand and each.errand.held]
    if not held:
        return None
    progress = dict(known.stored.progress)
    for each in held:
        record = work.progress[each.handler.id]
        progress[each.handler.id] = mark_of(record._replace(acted=acts_upon(at, each)))
    after = known.stored._replace(progress=progress)
    return Write(Writing(after=after, memory=after))


def handle(at: Moment, known: Known, work: Work, cycle: Cycle) -> Move:
    """Start what can start; record when all have ended or wait."""
    move = (
        _gathered(known, work, cycle)
        or _marked(at, known, work)
        or _conclusion(known, work, cycle)
    )
    if move is not None:
        return move
    ends, deadline = _deadline(at, known, work, cycle)
    if ends is not None:
        return ends
    running = {each.handler.id for each in work.running}
    due = deadline
    ready: list[Candidate] = []
    for handler in cycle.selected:
        progress = progress_of(known, work, cycle, handler)
        if handler.id in running or progress.is_finished:
            continue
        if has_delegated(known, work, cycle, handler):
            continue  # its part is done: the rest is its sub-handlers'
        moment = _begins_at(at, known, progress)
        if moment > at.now.mono:
            due = earlier(due, moment)
        else:
            ready.append(_candidate(at, known, handler, progress))
    if ready and not at.stopping and _may_begin(at, known, work):
        selected = {each.id: each for each in cycle.selected}
        for first in at.settings.lifecycle(tuple(ready)):
            handler = selected[first.handler.id]
            return Begin(handler, _fresh_view(known, cycle), first.progress)
    if any(not each.waits for each in work.running):
        return Rest(deadline)
    return record(at, known, work, cycle, due)


def _deadline(
    at: Moment, known: Known, work: Work, cycle: Cycle
) -> tuple[TimeOut | None, float | None]:
    """The end of a handler whose deadline has come; else when one comes that waits
    for its parts.

    An attempt that is under way has its own (`Expire`), and who waits for its next one
    waits no longer than that.  Handlers come before their parts, so that no part begins
    after the deadline of what it is a part of.
    """
    running = {each.handler.id for each in work.running}
    due: float | None = None
    for handler in cycle.selected:
        if handler.timeout is None or handler.id in running:
            continue
        progress = progress_of(known, work, cycle, handler)
        moment = deadline_of(progress, handler.timeout, at.now)
        if progress.is_finished or moment is None:
            continue
        if moment <= at.now.mono:
            why = _waits_for(known, work, cycle, handler)
            return TimeOut(handler, progress, why), None
        if has_delegated(known, work, cycle, handler):
            due = earlier(due, moment)
    return None, due


def _waits_for(known: Known, work: Work, cycle: Cycle, handler: Handler) -> str:
    """What keeps a handler from its end: its own reason, or that of a part."""
    for part in has_delegated(known, work, cycle, handler):
        if part.id not in cycle.aims:
            continue
        progress = progress_of(known, work, cycle, part)
        if not progress.is_finished:
            return f"its sub-handler {part.id} has not ended" + (
                f": {progress.message}" if progress.message else ""
            )
    own = progress_by_id(known, work, cycle, handler.id)
    return own.message or "still waiting"


def _begins_at(at: Moment, known: Known, progress: Progress) -> float:
    """When an attempt may begin (monotonic seconds)."""
    moment = progress.due_at(at.now)
    return max(moment, known.pace.until) if keeps_back(at, known) else moment


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


def with_children(at: Moment, known: Known, work: Work, cycle: Cycle) -> Cycle:
    """The cycle with the sub-handlers that are declared by now, behind the others."""
    if not work.declared:
        return cycle
    selected = list(cycle.selected)
    aims = dict(cycle.aims)
    for parent in selected:  # it grows: children may have children
        for child in declared_by(work, cycle._replace(aims=aims), parent):
            if child.id in aims or not _passes_as_part(at, known, cycle, child):
                continue
            selected.append(child)
            aims[child.id] = aims[parent.id]
    return cycle._replace(selected=tuple(selected), aims=aims)


def _passes_as_part(at: Moment, known: Known, cycle: Cycle, child: Handler) -> bool:
    changed, reason = child.role in (Role.UPDATE, Role.FIELD), cycle.reason.value
    return child.takes_all or passes(at, known, child, changed=changed, reason=reason)


def _gathered(known: Known, work: Work, cycle: Cycle) -> GoOn | None:
    """The next attempt whose awaited sub-handlers have ended."""
    for each in work.running:
        if isinstance(each.asked, Execute) and not each.ready:
            ends = _ends(known, work, cycle, each)
            if ends is not None:
                return GoOn(each, ends)
    return None


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
        progress = progress_by_id(known, work, cycle, child)
        if not progress.is_finished:
            return None
        ends[name] = {"finished": progress.finished}
        if progress.message:
            ends[name]["message"] = progress.message
    return ends


def _conclusion(known: Known, work: Work, cycle: Cycle) -> Conclude | None:
    """The innermost handler that has ended with its parts, and is yet to be told so."""
    for handler in reversed(cycle.selected) if work.declared else ():
        if not has_delegated(known, work, cycle, handler):
            continue
        progress = progress_of(known, work, cycle, handler)
        own = progress_by_id(known, work, cycle, handler.id)
        if progress.is_finished and not own.is_finished:
            failed = _failed_part(known, work, cycle, handler)
            return Conclude(handler, progress, failed.id if failed else "")
    return None


def _failed_part(
    known: Known, work: Work, cycle: Cycle, parent: Handler
) -> Handler | None:
    for each in declared_by(work, cycle, parent):
        if each.id in cycle.aims:
            progress = progress_of(known, work, cycle, each)
            if progress.is_finished and not progress.has_succeeded:
                return each
    return None


def _fresh_view(known: Known, cycle: Cycle) -> Cycle:
    """A handler that starts anew gets the object as it is now (R15)."""
    if cycle.body is known.body:
        return cycle
    return cycle._replace(body=known.body, generation=known.body.generation)
