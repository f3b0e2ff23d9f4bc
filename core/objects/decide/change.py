"""Handle a change: which handler begins or continues, until all have ended.

Sub-handlers are added to the change as they are declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.lifecycles import (
    Candidate,
    all_at_once,
    order_of,
    shuffled,
)
from fnop.core.memory.observation import Seen
from fnop.core.memory.progress import Progress, deadline_of
from fnop.core.objects.decide.actions import (
    Abandon,
    Action,
    Conclude,
    Continue,
    Rest,
    StartAttempt,
    TimeOut,
    Write,
    earlier,
)
from fnop.core.objects.decide.progression import (
    acts_upon,
    aim_of,
    current_progress,
    current_progress_by_id,
    declared_by,
    ended_above,
    has_delegated,
    keeps_back,
    mark_of,
)
from fnop.core.objects.decide.recording_progress import (
    changes_object,
    record_progress,
)
from fnop.core.objects.decide.selection import Circumstances, passes
from fnop.core.objects.decide.unknown_entries import with_unknown_entries
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import Change, ObjectRecord, Work
from fnop.core.state.writing import Contents
from fnop.core.values.cause import Cause, Reason
from fnop.effects import Execute
from fnop.effects.structs import replace

__all__ = ["abandons", "change_for", "goes_on", "handle", "with_children"]


def change_for(
    at: Circumstances,
    record: ObjectRecord,
    cause: Cause,
    seen: Seen,
    selected: tuple[Handler, ...],
) -> Change:
    """The change that begins now, with the handlers that are selected for its cause."""
    reason, body = cause.reason, record.body
    aims = {each.id: aim_of(at, body, reason, each, seen) for each in selected}
    seen = with_unknown_entries(at, body, reason, selected, seen)
    return Change(reason, cause.initial, body, seen, selected, aims, body.generation)


def abandons(at: Circumstances, record: ObjectRecord, work: Work) -> Abandon | None:
    """End the attempt of a part whose handler has ended before it."""
    parts = [each for each in work.running if each.handler.parent]
    if not parts or work.change is None:
        return None
    change = with_children(at, record, work, work.change)
    for each in parts:
        if ended_above(record, work, change, each.handler):
            return Abandon(each)
    return None


def goes_on(
    at: Circumstances, record: ObjectRecord, work: Work, change: Change
) -> bool:
    """Whether the present change is still the one to handle.

    It is while its conversations are under way. It also is when all is done for its
    view and only has to be recorded. Otherwise the present object decides, and
    unfinished work starts again (R15). Kopf first writes what its handlers have done.
    """
    if work.running:
        return True
    if record.body.is_deleting and change.reason is not Reason.DELETE:
        return at.settings.as_kopf and _has_unsaved(record, work)
    return bool(change.selected) and all(
        current_progress(record, work, change, each).is_finished
        for each in change.selected
    )


def _write_mark(at: Circumstances, record: ObjectRecord, work: Work) -> Action | None:
    """Write the mark that handlers have begun to act, before they do."""
    held = [
        each for each in work.running if each.in_flight and each.in_flight.awaits_mark
    ]
    if not held:
        return None
    progress = dict(record.stored.progress)
    for each in held:
        own_progress = work.progress[each.handler.id]
        progress[each.handler.id] = mark_of(
            replace(own_progress, acted=acts_upon(at, each))
        )
    after = replace(record.stored, progress=progress)
    return Write(Contents(after=after, memory=after))


def handle(
    at: Circumstances, record: ObjectRecord, work: Work, change: Change
) -> Action:
    """Return the next action of a change: start a handler, or record the progress."""
    action = (
        _continue_parent(record, work, change)
        or _write_mark(at, record, work)
        or _conclude_parent(record, work, change)
    )
    if action is not None:
        return action
    ends, deadline = _next_deadline(at, record, work, change)
    if ends is not None:
        return ends
    all_progress = {
        each.id: current_progress(record, work, change, each)
        for each in change.selected
    }
    ready, due = _find_candidates(at, record, work, change, all_progress)
    if ready and at.settings.as_kopf and _writes_before_next(at, record, work):
        write = record_progress(at, record, work, change, all_progress, due)
        if not isinstance(write, Rest):
            return write
    if ready and not at.stopping and _may_begin(at, record, work, change):
        for first in at.settings.lifecycle(ready):
            return _begin(at, record, work, change, first)
    # Kopf writes nothing while a handler runs, which may write the object itself.
    if any(at.settings.as_kopf or not each.waits for each in work.running):
        return Rest(deadline)
    due = earlier(deadline, due)
    return record_progress(at, record, work, change, all_progress, due)


def _writes_before_next(at: Circumstances, record: ObjectRecord, work: Work) -> bool:
    """Whether the changes and the ends of handlers are written before the next call.

    Kopf calls one handler in a pass over the object, and writes at the end of each.
    """
    return at.settings.lifecycle is not all_at_once and _has_unsaved(record, work)


def _has_unsaved(record: ObjectRecord, work: Work) -> bool:
    """Whether handlers have ended, or changed the object, and that is not written."""
    stored = record.stored.progress
    return any(changes_object(work, author) for author, _ in work.patches) or any(
        (each.is_finished or each.retries) and not _is_saved(each, stored.get(name))
        for name, each in work.progress.items()
    )


def _is_saved(progress: Progress, stored: Progress | None) -> bool:
    """Whether the stored progress is the same, apart from its reason."""
    if stored is None or stored.aim == progress.aim:
        return stored == progress
    return replace(stored, aim=progress.aim) == progress


def _find_candidates(
    at: Circumstances,
    record: ObjectRecord,
    work: Work,
    change: Change,
    all_progress: Mapping[str, Progress],
) -> tuple[tuple[Candidate, ...], float | None]:
    """The handlers that may begin now, and when the next one may (monotonic)."""
    running = {each.handler.id for each in work.running}
    due: float | None = None
    ready: list[Candidate] = []
    for handler in change.selected:
        progress = all_progress[handler.id]
        if handler.id in running or not _is_waiting(
            record, work, change, handler, progress
        ):
            continue
        moment = _begins_at(at, record, progress)
        if moment > at.now.mono:
            due = earlier(due, moment)
        else:
            ready.append(_candidate_of(at, record, handler, progress))
    return tuple(ready), due


def _is_waiting(
    record: ObjectRecord,
    work: Work,
    change: Change,
    handler: Handler,
    progress: Progress,
) -> bool:
    """Whether a handler waits for its next attempt."""
    if progress.is_finished or progress.is_halted:
        return False
    # The own part of the handler may be done, but not its sub-handlers.
    return not (progress.delegated and has_delegated(record, work, change, handler))


def _begin(
    at: Circumstances,
    record: ObjectRecord,
    work: Work,
    change: Change,
    first: Candidate,
) -> Write | StartAttempt:
    """Start the attempt that is first, after its previous changes are written."""
    (handler,) = (e for e in change.selected if e.id == first.handler.id)
    if any(author == handler.id for author, _ in work.patches):
        # It is called for the object as its previous attempt has changed it.
        return Write(Contents(work.patches))
    fresh = _fresh_view(at, record, change, handler)
    progress = replace(first.progress, aim=fresh.aims[handler.id])
    return StartAttempt(handler, fresh, progress)


def _next_deadline(
    at: Circumstances, record: ObjectRecord, work: Work, change: Change
) -> tuple[TimeOut | None, float | None]:
    """End a handler whose deadline has passed; else return the next such deadline.

    The next deadline considers only handlers that wait for their parts. An attempt that
    is under way has its own deadline (`Expire`). A handler that waits for its next
    attempt waits no longer than its deadline. Handlers come before their parts, so that
    no part begins after its handler's deadline.
    """
    running = {each.handler.id for each in work.running}
    due: float | None = None
    for handler in change.selected:
        if handler.timeout is None or handler.id in running:
            continue
        progress = current_progress(record, work, change, handler)
        moment = deadline_of(progress, handler.timeout, at.now)
        if progress.is_finished or moment is None:
            continue
        if moment <= at.now.mono:
            why = _waits_for(record, work, change, handler)
            return TimeOut(handler, progress, why), None
        if has_delegated(record, work, change, handler):
            due = earlier(due, moment)
    return None, due


def _waits_for(
    record: ObjectRecord, work: Work, change: Change, handler: Handler
) -> str:
    """The reason why a handler has not ended: its own, or a part's."""
    for part in has_delegated(record, work, change, handler):
        if part.id not in change.aims:
            continue
        progress = current_progress(record, work, change, part)
        if not progress.is_finished:
            return f"its sub-handler {part.id} has not ended" + (
                f": {progress.message}" if progress.message else ""
            )
    own = current_progress_by_id(record, work, change, handler.id)
    return own.message or "still waiting"


def _begins_at(at: Circumstances, record: ObjectRecord, progress: Progress) -> float:
    """The time when an attempt may begin (monotonic seconds)."""
    moment = progress.due_at(at.now)
    return max(moment, record.backoff.pace.until) if keeps_back(at, record) else moment


def _candidate_of(
    at: Circumstances, record: ObjectRecord, handler: Handler, progress: Progress
) -> Candidate:
    if at.settings.lifecycle is all_at_once:
        return Candidate(handler, progress, 0)
    about = f"{record.body.uid} {record.body.version}"
    return Candidate(handler, progress, order_of(at.seed, about, handler.id))


def _may_begin(
    at: Circumstances, record: ObjectRecord, work: Work, change: Change
) -> bool:
    """Whether another handler may begin: some lifecycles run one per round.

    Each round ends with a write. A handler that no longer takes part, for example
    because its own patch has made its filter fail, is in no write any more.
    """
    if at.settings.lifecycle is all_at_once or at.settings.lifecycle is shuffled:
        return True
    # A state that cannot be read is never overwritten, so nothing waits for that.
    is_unsaved = record.readable and any(
        each.is_finished and name not in record.stored.progress
        for name, each in work.progress.items()
        if name in change.aims
    )
    return not work.running and not is_unsaved


def with_children(
    at: Circumstances, record: ObjectRecord, work: Work, change: Change
) -> Change:
    """Return the change with the sub-handlers declared by now, after the others."""
    if not work.declared:
        return change
    selected = list(change.selected)
    aims = dict(change.aims)
    for parent in selected:  # it grows, as children may have children
        for child in declared_by(work, replace(change, aims=aims), parent):
            if child.id in aims or not _passes_as_part(at, record, change, child):
                continue
            selected.append(child)
            aims[child.id] = aims[parent.id]
    return replace(change, selected=tuple(selected), aims=aims)


def _passes_as_part(
    at: Circumstances, record: ObjectRecord, change: Change, child: Handler
) -> bool:
    changed, reason = child.rule.compares, change.reason.value
    return child.takes_all or passes(at, record, child, changed=changed, reason=reason)


def _continue_parent(
    record: ObjectRecord, work: Work, change: Change
) -> Continue | None:
    """Continue the next attempt whose awaited sub-handlers have ended."""
    for each in work.running:
        if isinstance(each.asked, Execute):
            ends = _ends_of_children(record, work, change, each)
            if ends is not None:
                return Continue(each, ends)
    return None


def _ends_of_children(
    record: ObjectRecord, work: Work, change: Change, parent: Invocation
) -> dict[str, Any] | None:
    """The ends of the awaited sub-handlers; None while one has not ended."""
    assert isinstance(parent.asked, Execute)
    ends: dict[str, Any] = {}
    for name in parent.asked.children:
        child = f"{parent.handler.id}/{name}"
        if child not in change.aims:
            continue  # skipped by its filters
        progress = current_progress_by_id(record, work, change, child)
        if not progress.is_finished:
            return None
        ends[name] = {"finished": progress.finished}
        if progress.message:
            ends[name]["message"] = progress.message
    return ends


def _conclude_parent(
    record: ObjectRecord, work: Work, change: Change
) -> Conclude | None:
    """End the innermost handler that has ended with its parts."""
    for handler in reversed(change.selected) if work.declared else ():
        if not has_delegated(record, work, change, handler):
            continue
        progress = current_progress(record, work, change, handler)
        own = current_progress_by_id(record, work, change, handler.id)
        if progress.is_finished and not own.is_finished:
            failed = _failed_part(record, work, change, handler)
            return Conclude(handler, progress, failed.id if failed else "")
    return None


def _failed_part(
    record: ObjectRecord, work: Work, change: Change, parent: Handler
) -> Handler | None:
    for each in declared_by(work, change, parent):
        if each.id in change.aims:
            progress = current_progress(record, work, change, each)
            if progress.is_finished and not progress.has_succeeded:
                return each
    return None


def _fresh_view(
    at: Circumstances, record: ObjectRecord, change: Change, handler: Handler
) -> Change:
    """Return the change with the present object, for a handler that restarts (R15).

    The handler's success counts for that state, also within a later change.
    """
    if change.body is record.body:
        return change
    aims = change.aims
    if change.reason in (Reason.CREATE, Reason.UPDATE) and not handler.parent:
        aim = aim_of(at, record.body, change.reason, handler, change.seen)
        aims = {**aims, handler.id: aim}
    return replace(
        change, body=record.body, generation=record.body.generation, aims=aims
    )
