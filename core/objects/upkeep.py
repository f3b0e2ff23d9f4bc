"""What is written about a change: at its end, before it, and where nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.core.handlers.handler import Handler, Role
from fnop.core.handlers.program import Kind
from fnop.core.handlers.writers import Transform
from fnop.core.memory.conditions import Condition, condition_of, told_by
from fnop.core.memory.last_seen import Stored
from fnop.core.memory.observation import Seen, completed, scope_name
from fnop.core.memory.progress import Progress, anew
from fnop.core.objects.detection import is_held
from fnop.core.objects.moves import Move, Rest, Settle, Write
from fnop.core.objects.progression import mark_of, may_save, progress_of
from fnop.core.objects.selection import Moment
from fnop.core.state.fusion import Writing
from fnop.core.state.record import IDLE, Cycle, Known, Work
from fnop.core.values.cause import Cause, Reason
from fnop.core.values.finalizers import Duty, without_finalizer
from fnop.core.values.now import Now

__all__ = ["record", "upkeep"]

# A delay of a minute or more outlives many a process: it is stored (R19).
_LONG_DELAY_SECONDS = 60.0


# No digest: something else than what there is.
_UNKNOWN_VIEW = "?"


def record(
    at: Moment, known: Known, work: Work, cycle: Cycle, due: float | None
) -> Move:
    records = {
        handler.id: progress_of(known, work, cycle, handler)
        for handler in cycle.selected
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
    news = may_save(at, known) and _is_news(at.kind, known.stored, after, ended)
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
        if not is_held(at, known.body):
            stored = known.stored._replace(progress={})
            return Settle(stored, ends=True, released=True)
        return Write(Writing(finalizer=Duty.REMOVE.value, ends=True))
    after = _partial(at, known, cycle, records, marking=False)
    news = may_save(at, known) and _is_news(at.kind, known.stored, after, ended)
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
    seen = cycle.seen
    if stored.creating and stored.seen:
        seen = completed(stored.seen, cycle.seen)
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
            mark = mark_of(each) if marking else stored.progress.get(name)
            kept |= {} if mark is None else {name: mark}
    creating = stored.creating or (
        cycle.reason is Reason.CREATE
        and any(each.has_succeeded for each in kept.values())
    )
    seen = stored.seen
    if creating and not stored.creating:
        seen = cycle.seen
    return Stored(seen, creating, kept, stored.results)


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


def upkeep(at: Moment, known: Known, work: Work, cause: Cause, seen: Seen) -> Move:
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
    if not may_save(at, known):
        return Rest(known.unsaved_until)
    was = known.stored.seen
    assert was is not None, "a NOOP has been seen before"
    places = at.settings.places
    vanished = at.kind.remembers and places.text(known.body) is None
    missing = not seen.digests.keys() <= was.digests.keys()
    lingers = places.lingers(known.body)
    if vanished or missing or lingers or known.stored.progress:
        after = known.stored._replace(seen=completed(was, seen), progress={})
        return Write(Writing(after=after, memory=after, ends=True))
    if seen.values is not None and not seen.values.keys() <= (was.values or {}).keys():
        return Settle(known.stored._replace(seen=seen), ends=False)
    return Rest()
