"""The writes of a change: at its end, before its end, and if nothing has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.program.program import Kind
from fnop.core.memory.conditions import Condition, condition_by, condition_of
from fnop.core.memory.observation import FormerValues, Seen, completed, scope_name
from fnop.core.memory.progress import Progress, anew
from fnop.core.memory.stored_state import Stored
from fnop.core.objects.decide.actions import (
    Action,
    RecordInMemory,
    Rest,
    Write,
    cleared_first,
)
from fnop.core.objects.decide.detection import is_held
from fnop.core.objects.decide.progression import mark_of, may_save
from fnop.core.objects.decide.selection import Circumstances
from fnop.core.state.record import IDLE, Change, ObjectRecord, Work
from fnop.core.state.writing import Contents
from fnop.core.values.cause import Cause, Reason
from fnop.core.values.finalizers import Duty, without_finalizer
from fnop.core.values.table import NOTHING
from fnop.effects.structs import replace

__all__ = ["changes_object", "record_progress", "release", "upkeep"]

# A delay of a minute or more may outlast the process, so it is stored (R19).
_LONG_DELAY_SECONDS = 60.0


# The digest of a state that is not the present one, and is otherwise unknown.
_UNKNOWN_VIEW = "?"


def record_progress(
    at: Circumstances,
    record: ObjectRecord,
    work: Work,
    change: Change,
    all_progress: Mapping[str, Progress],
    due: float | None,
) -> Action:
    """Write the progress of a change, if a restart needs it; or wait until `due`.

    When all handlers have ended, this write records the change as done.
    """
    ended = not work.running and all(each.is_finished for each in all_progress.values())
    if change.reason is Reason.DELETE:
        return _record_deletion(at, record, work, change, all_progress, ended, due)
    condition = _condition_to_write(at, record, change, all_progress, ended)
    results = _results_to_store(at.kind, work.results, all_progress)
    writes = bool(work.patches or results or condition is not None)
    if ended:
        after = _ended(at, record, change, all_progress)
    else:
        after = _partial(at, record, change, all_progress, marking=writes)
    remembers = at.kind.remembers or not ended
    # A patch may have records of Kopf's sub-handlers: writing a state removes them.
    cleans = ended and at.settings.as_kopf and bool(work.patches)
    news = remembers and _is_news(record.stored, after)
    news = (news or cleans) and may_save(at, record)
    if writes or news:
        written = after if news else None
        if written and not remembers:
            written = replace(written, seen=None)
        memory = after if ended or news else None
        return Write(
            Contents(work.patches, results, written, memory, ended, condition=condition)
        )
    if ended:
        return RecordInMemory(after, ends=True)
    return Rest(due)


def _results_to_store(
    kind: Kind, results: Mapping[str, Any], all_progress: Mapping[str, Progress]
) -> dict[str, Any]:
    """The results to store: only from handlers whose parts have succeeded, too."""
    return {
        name: value
        for name, value in results.items()
        for end in (all_progress.get(kind.author_of(name, all_progress)),)
        if end is None or end.has_succeeded
    }


def _condition_to_write(
    at: Circumstances,
    record: ObjectRecord,
    change: Change,
    all_progress: Mapping[str, Progress],
    ended: bool,
) -> Condition | None:
    """The condition to write to the object, if it has a different one."""
    if not at.settings.conditions or not change.selected:
        return None
    # The parent judges the failure of a part.
    parts = {each.id for each in change.selected if each.parent}
    judged = {
        k: each for k, each in all_progress.items() if each.waits or k not in parts
    }
    found = condition_of(
        change.reason.value,
        judged,
        ended=ended,
        generation=change.generation,
        wall=at.now.wall,
    )
    if found is None or found.is_told_by(record.written_condition):
        return None
    present = condition_by(record.body, at.settings.marker)
    if found.status == "True" and not _is_overcome(present, change.reason):
        return None
    return None if found.is_told_by(present) else found


def _is_overcome(present: Condition | None, reason: Reason) -> bool:
    """Whether a success replaces the object's condition.

    A resumption does not show that a failed creation or update has recovered.
    """
    if present is None or present.status == "True":
        return False
    was_resumption = present.reason.startswith(Reason.RESUME.value.capitalize())
    return was_resumption or reason is not Reason.RESUME


def release(at: Circumstances, record: ObjectRecord, *, ends: bool) -> Write:
    """The write of the finalizer of an object that nothing holds any more."""
    if at.settings.as_kopf and record.body.is_deleting and record.stored.progress:
        # Others may still hold the object: Kopf leaves no record on it. The change that
        # the records are about has no other end, if no handler is for the deletion.
        done = replace(record.stored, progress=NOTHING)
        return Write(Contents((), {}, done, done, ends=True, finalizer=Duty.REMOVE))
    return Write(Contents(finalizer=Duty.REMOVE, ends=ends))


def _record_deletion(
    at: Circumstances,
    record: ObjectRecord,
    work: Work,
    change: Change,
    all_progress: Mapping[str, Progress],
    ended: bool,
    due: float | None,
) -> Action:
    """Write deletion handlers' patches, then the finalizer, alone and last (R20)."""
    if ended:
        if any(each.handler.holds for each in work.background_runs):
            return Rest(due)  # a daemon is still running
        others = without_finalizer(record.body.finalizers, *at.settings.finalizers)
        outlives = bool(others)
        if work.patches or (work.results and outlives):
            after = _partial(at, record, change, all_progress, marking=True)
            news = may_save(at, record) and _is_news(record.stored, after)
            done = after if news else None
            return Write(Contents(work.patches, work.results, done, done))
        if not is_held(at, record.body):
            stored = replace(record.stored, progress=NOTHING)
            return RecordInMemory(stored, ends=True, released=True)
        if (clear := cleared_first(at, record)) is not None:
            return clear
        return release(at, record, ends=True)
    after = _partial(at, record, change, all_progress, marking=False)
    news = may_save(at, record) and _is_news(record.stored, after)
    condition = _condition_to_write(at, record, change, all_progress, ended)
    if work.patches or news or condition is not None:
        written = after if news else None
        return Write(Contents(work.patches, {}, written, written, condition=condition))
    return Rest(due)


def _ended(
    at: Circumstances,
    record: ObjectRecord,
    change: Change,
    all_progress: Mapping[str, Progress],
) -> Stored:
    """The state at the end of a change: the state acted upon is the last seen (R15).

    After a creation with several handlers, that is the earliest view that one of them
    has succeeded with. Later versions are an update.
    """
    stored = record.stored
    seen = change.seen
    if at.settings.as_kopf:
        return Stored(seen, False, NOTHING, stored.results)
    if stored.creating and stored.seen:
        seen = completed(stored.seen, change.seen)
    ahead: dict[str, Progress] = {}
    for handler in at.kind.changes:
        if not handler.rule.compares:
            continue
        own = all_progress.get(handler.id)
        if own is not None:
            progress = _ahead_of_itself(record, handler, own, seen)
        elif change.reason is Reason.CREATE:
            progress = _ahead_of_creation(handler, change, all_progress, seen)
        else:
            progress = None
        if progress is not None:
            ahead[handler.id] = progress
    return Stored(seen, False, ahead or NOTHING, stored.results)


def _ahead_of_itself(
    record: ObjectRecord, handler: Handler, own: Progress, seen: Seen
) -> Progress | None:
    """The progress of a handler that is done with a state other than the last seen.

    Other handlers of a creation may have begun with an older view. Or the handler has
    failed permanently, and its own write is not a reason to call it again.
    """
    failed = not own.has_succeeded
    done = (
        own.aim.partition(":")[2]
        if failed
        else _viewed_digest(own, handler, handler, seen)
    )
    writes = failed and changes_object(record.work or IDLE, handler.id)
    is_seen = done == seen.digest(scope_name(handler.scope), "") and not writes
    made = "" if failed else _made_by(own)
    if made:  # if another client undoes that, it is a change
        return replace(anew(own, ""), acted=made, handled="" if is_seen else done)
    return None if is_seen else replace(anew(own, ""), acted=done, handled=done)


def _made_by(own: Progress) -> str:
    """The digest of the state that a handler's own write has made; "" without one.

    The aim of a handler follows its own writes. The state that it has acted upon does
    not.
    """
    reason, _, observed = own.aim.partition(":")
    changes = reason in (Reason.CREATE.value, Reason.UPDATE.value)
    return observed if changes and own.acted and own.acted != observed else ""


def changes_object(work: Work, handler: str) -> bool:
    """Whether a handler, by its id, or a part of it changes more than the status."""
    return any(
        isinstance(patch, Transform)
        or patch.json
        or set(patch.merge or ()) - {"status"}
        for name, patch in work.patches
        if name == handler or name.startswith(f"{handler}/")
    )


def _ahead_of_creation(
    handler: Handler, change: Change, all_progress: Mapping[str, Progress], seen: Seen
) -> Progress | None:
    """The last view of a creation that differs from the last-seen state, as progress.

    The views of a creation concern the handlers of its later changes.
    """
    found = None
    for other in change.selected:
        progress = all_progress[other.id]
        view = _viewed_digest(progress, other, handler, seen)
        if view != seen.digest(scope_name(handler.scope), ""):
            found = replace(anew(progress, ""), acted=view, handled="")
    return found


def _viewed_digest(
    progress: Progress | None, actor: Handler, handler: Handler, seen: Seen
) -> str:
    """The digest that one handler observes in the view that another has acted upon."""
    scope, acted_on = scope_name(handler.scope), scope_name(actor.scope)
    if progress is None or not progress.acted:
        return seen.digest(scope, "")
    if progress.seen is not None:
        return progress.seen.digest(scope, "")
    if scope == acted_on:
        return progress.acted
    # After a restart, the rest of another view is not known.
    same = progress.acted == seen.digest(acted_on, progress.acted)
    return seen.digest(scope, "") if same else _UNKNOWN_VIEW


def _partial(
    at: Circumstances,
    record: ObjectRecord,
    change: Change,
    all_progress: Mapping[str, Progress],
    *,
    marking: bool,
) -> Stored:
    """The state that a restart would need while the change is under way (R19).

    `marking` adds the handlers that have begun to act: a write that is due in any case
    can contain that.
    """
    stored = record.stored
    kept = _progress_to_keep(at, stored, change, all_progress, marking=marking)
    creating = stored.creating or (
        change.reason is Reason.CREATE
        and any(each.has_succeeded for each in kept.values())
    )
    seen = stored.seen
    if creating and not stored.creating:
        seen = change.seen
    return Stored(seen, creating, kept, stored.results)


def _progress_to_keep(
    at: Circumstances,
    stored: Stored,
    change: Change,
    all_progress: Mapping[str, Progress],
    *,
    marking: bool,
) -> dict[str, Progress]:
    """The progress that a restart would need, of the change and of earlier ones."""
    # A deletion ends with one more write, for the finalizer. If the process is killed
    # before it, the successes stay on the object.
    more = len(all_progress) > 1 or change.reason is Reason.DELETE
    handlers = {each.id: each for each in change.selected}
    kept = {
        name: each
        for name, each in stored.progress.items()
        if each.handled and name not in all_progress
    }
    for name, each in all_progress.items():
        if _matters(at, handlers[name], each, more=more):
            kept[name] = each
        elif each.acted and not each.is_finished:
            mark = mark_of(each) if marking else stored.progress.get(name)
            kept |= {} if mark is None else {name: mark}
    return _with_waiting(kept, all_progress) if at.settings.as_kopf else kept


def _with_waiting(
    kept: dict[str, Progress], all_progress: Mapping[str, Progress]
) -> dict[str, Progress]:
    """The progress with that of handlers which have not begun, as Kopf stores it."""
    begun = min((each.started for each in kept.values() if each.started), default=None)
    if begun is None:
        return kept
    waiting = {
        name: replace(each, started=each.started or begun)
        for name, each in all_progress.items()
        if name not in kept
    }
    return {**kept, **waiting}


def _matters(
    at: Circumstances, handler: Handler, progress: Progress, *, more: bool
) -> bool:
    """Whether a restart needs to know it; `more` means that other work follows.

    Kopf stores each attempt. Records of sub-handlers stay as long as their parent's.
    """
    if progress.is_finished:
        return more
    if at.settings.as_kopf:
        return bool(progress.retries)
    if progress.handled:
        return True
    if progress.acted and not progress.aim.endswith(progress.acted):
        return True
    if not progress.retries and progress.started is None:
        return False
    if handler.retries is not None or handler.timeout is not None:
        return True
    return (
        progress.until is not None
        and progress.until - at.now.wall >= _LONG_DELAY_SECONDS
    )


def _is_news(stored: Stored, after: Stored) -> bool:
    """Whether the states differ: a restart would decide differently without this."""
    return (
        not _are_alike(stored.seen, after.seen)
        or stored.creating != after.creating
        or dict(stored.progress) != dict(after.progress)
        or dict(stored.results) != dict(after.results)
    )


def _are_alike(one: Seen | None, other: Seen | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.has_digests_of(other)


def upkeep(
    at: Circumstances, record: ObjectRecord, work: Work, cause: Cause, seen: Seen
) -> Action:
    """The action when nothing is to be handled: keep the stored state complete."""
    if work.patches or work.results:
        return Write(Contents(work.patches, work.results))
    if cause.reason is not Reason.NOOP or at.stopping:
        return Rest()
    if work.progress and not record.stored.progress:
        # A reverted change leaves its progress behind, which has become useless.
        return RecordInMemory(record.stored, ends=True)
    if not record.readable:
        return Rest()
    if not may_save(at, record):
        return Rest(record.backoff.unsaved_until)
    return _complete_stored_state(at, record, seen)


def _complete_stored_state(
    at: Circumstances, record: ObjectRecord, seen: Seen
) -> Action:
    """The action that makes the stored state as a new handling would leave it."""
    was = record.stored.seen
    assert was is not None, "a NOOP has been seen before"
    places = at.settings.places
    vanished = at.kind.remembers and places.lacks(record.body)
    missing = not was.covers(seen)
    lingers = places.lingers(record.body)
    if vanished and record.backoff.contention.until > at.now.mono:
        return Rest(record.backoff.contention.until)
    if vanished or missing or lingers or record.stored.progress:
        after = replace(record.stored, seen=completed(was, seen), progress=NOTHING)
        return Write(Contents(after=after, memory=after, ends=True, restores=vanished))
    if seen.values is not None and _has_more(seen.values, was.values):
        return RecordInMemory(replace(record.stored, seen=seen), ends=False)
    return Rest()


def _has_more(now: FormerValues, was: FormerValues | None) -> bool:
    """Whether there are values of scopes whose previous values were not stored."""
    return not now.parsed.keys() <= (was.parsed if was else NOTHING).keys()
