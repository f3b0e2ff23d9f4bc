"""The store of watched objects, as a fold over their versions.

Guarantees: an object has a record, by its uid, from its first appearance to its
deletion. A version from before an own write never replaces the version after it (R24).
"""

from __future__ import annotations

from typing import Any

from fnop.core.children.owned import OWNER_ANNOTATION
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.writers import DaemonStoppingReason, Transform
from fnop.core.handlers.program.program import Kind
from fnop.core.memory.observation import essence_of, see
from fnop.core.objects.attempt.attempts import let_go
from fnop.core.objects.decide.mapping_retries import bounded, with_events
from fnop.core.objects.decide.selecting_events import wanted_events
from fnop.core.objects.report.events import report_event
from fnop.core.objects.report.explaining import tell_seen
from fnop.core.objects.store.first_sight import first_sight
from fnop.core.objects.store.indexing import indexed, unindexed
from fnop.core.objects.store.log_reading import read_logs
from fnop.core.objects.write.expectations import LOOKS_MAX, vanished
from fnop.core.state.context import Context
from fnop.core.state.lifecycle import Phase
from fnop.core.state.record import IDLE, Deferred, ObjectRecord, PendingEvent, Work
from fnop.core.state.requests import OfObject
from fnop.core.streams.stream import Stream
from fnop.core.values.body import Body, Key, compact, is_behind
from fnop.core.values.cause import Reason
from fnop.core.values.finalizers import ORPHAN_FINALIZER
from fnop.core.values.pace import CALM
from fnop.effects import Event, Patch
from fnop.effects.structs import replace
from fnop.effects.values import same_json

__all__ = ["aside", "moved", "observe"]

# The number of remembered versions, to notice that the watch is ahead of an own answer.
_SHOWN_MAX = 15
# The limit of pending events: a slower event handler loses the oldest events.
PENDING_EVENTS_MAX = 100


def observe(context: Context, stream: Stream, type: str | None, body: Body) -> None:
    """Store a version of an object from a list or watch; its key is due."""
    in_service = context.turn.lifecycle.phase in (Phase.SERVING, Phase.STANDBY)
    if not in_service:
        return
    if context.turn.objects.tombstones and _is_over(context, stream, type, body):
        return
    record = was = context.record
    tell_seen(context, type, None if was is None else was.body, body)
    before: Work | None = None
    if record is not None and _is_of_another(record, type, body):
        if type == "DELETED":
            return  # another object has replaced it already
        before = _drop_replaced(context, record)
        record = was = None
    if record is None:
        if type == "DELETED":
            return  # it was never known
        record = _first_sight(context, body, listed=type is None and not stream.lists)
        record = replace(record, work=before, memo=context.turn.lifecycle.memo)
    else:
        record = _next_version(context, record, stream, type, body)
    record = _note_facts(_deferred(context, record), stream, type, body)
    kind = context.kind
    if kind.indexers:
        unindexed(context) if type == "DELETED" else indexed(context, body)
    watches = kind.event_handlers or kind.log_handlers
    if watches and context.turn.lifecycle.phase is Phase.SERVING:
        former = None if was is None else was.body
        record = _show_to_handlers(context, record, stream, type, body, former)
    if kind.background and kind.waits_for_idleness and _has_changed(was, body, kind):
        record = replace(record, changed=context.now.mono)
    context.put(record)
    _make_due(context, record)


def _deferred(context: Context, record: ObjectRecord) -> ObjectRecord:
    """Return the record, deferred while another replica leads, and taken up after."""
    if context.turn.lifecycle.phase is Phase.STANDBY:
        return replace(record, deferred=record.deferred or Deferred())
    if record.deferred is None:
        return record
    work = record.work or record.deferred.unwritten or IDLE
    return replace(record, deferred=None, work=None if work.is_over else work)


def _is_of_another(record: ObjectRecord, type: str | None, body: Body) -> bool:
    """Whether a record is about another object, or about an earlier sight of it.

    If an object is selected again, the watch has reported it as gone before.
    """
    is_back = record.gone and type != "DELETED"
    return is_back or record.body.uid != body.uid


def _show_to_handlers(
    context: Context,
    record: ObjectRecord,
    stream: Stream,
    type: str | None,
    body: Body,
    former: Body | None,
) -> ObjectRecord:
    """Return the record after its event and log handlers were shown a version."""
    kind = context.kind
    if kind.log_handlers:
        # A stream that begins later belongs to a new namespace.
        is_listed = type is None and not (stream.lists or context.turn.lifecycle.ready)
        read_logs(context, type, body, former, is_listed=is_listed)
    if kind.event_handlers:
        return _with_pending_events(context, record, kind, type, body, former)
    return record


def _is_put_aside(record: ObjectRecord) -> bool:
    """Whether no handler runs for an object; a write of it may be under way."""
    return record.work is None or not record.work.invocations


def _read_again(context: Context, record: ObjectRecord, body: Body) -> ObjectRecord:
    """Return the record of a deferred object, after another version was seen.

    While another replica leads, a write that awaits its answer stays as it is. This
    process lists every object again before it handles any.
    """
    if record.work is not None:
        if context.turn.lifecycle.phase is Phase.STANDBY:
            return record
        record = aside(context, record)
    return aside(context, replace(record, body=body))


def _note_facts(
    record: ObjectRecord, stream: Stream, type: str | None, body: Body
) -> ObjectRecord:
    """Return the record with the facts that only this version shows."""
    if type is None:
        record = replace(record, listing=stream.id)
    if body.is_deleting and ORPHAN_FINALIZER in body.finalizers:
        record = replace(record, orphans=True)  # later ones lack that finalizer
    return record


def _make_due(context: Context, record: ObjectRecord) -> None:
    """Let the object be reconciled, if anything can be due about it.

    An object of a kind without handlers is followed for its owner, which is due. If it
    names that owner in an annotation alone, it may have to be deleted. If it has
    finalizers, it may have to be released.
    """
    is_over = record.gone or record.vanished
    if not (context.kind.has_handlers or is_over or record.work is not None):
        body = record.body
        if not body.finalizers and OWNER_ANNOTATION not in body.mapping("annotations"):
            return
    context.due()


def _is_over(context: Context, stream: Stream, type: str | None, body: Body) -> bool:
    """Whether a live answer that is newer than this version says the object is gone.

    A version later than the last known one then casts doubt on that answer. fnop reads
    the object again before it acts on it.
    """
    tombstone, record = context.tombstone, context.record
    if tombstone is None or tombstone.uid != body.uid:
        return False
    if type == "DELETED" or (type is None and stream.begun > tombstone.step):
        context.drop_tombstone()
        return False
    if record is not None or not is_behind(tombstone.version, body.version):
        return True
    context.drop_tombstone()
    found = replace(
        _first_sight(context, body, listed=False), memo=context.turn.lifecycle.memo
    )
    context.put(_with_live_read(context, vanished(context, found, looks=LOOKS_MAX)))
    return False


def aside(context: Context, record: ObjectRecord) -> ObjectRecord:
    """Return the record as read from the object, with the changes not yet written.

    It is read again with each version, until the object is reconciled here. If another
    process has stored a state meanwhile, that state counts. But deletions are not taken
    back.
    """
    fresh = _first_sight(context, record.body, listed=False)
    unwritten = None if record.deferred is None else record.deferred.unwritten
    if unwritten is None:
        unwritten = _unwritten(context, record)
    elif fresh.stored != record.stored:
        unwritten = _deletion_ends(unwritten)
    return replace(
        fresh,
        memo=record.memo,
        initial=record.initial,
        listing=record.listing,
        deferred=Deferred(unwritten),
    )


def moved(context: Context, record: ObjectRecord, key: Key) -> None:
    """Defer an object under the key that it has in another version of its kind.

    It is not deleted: handlers see it again, in that version, when it is listed there.
    fnop keeps the changes that were not written on it.
    """
    let_go(context, record, DaemonStoppingReason.OPERATOR_PAUSING)
    if context.kind.indexers:
        unindexed(context)
    there = context.of(key)
    there.put(aside(there, record))
    context.drop_tombstone()
    context.drop()


def _unwritten(context: Context, record: ObjectRecord) -> Work:
    """The ends of handlers, and their changes, that are not on the object.

    A write under way may arrive or not. If it does, the state on the object shows it.
    If not, fnop does it again, which changes nothing if it only sets fields. A handler
    whose change contains functions or a JSON patch is called again.
    """
    work = record.work or IDLE
    parts = () if work.writing is None else work.writing.parts
    patches = (*(patch for each in parts for patch in each.patches), *work.patches)
    results: dict[str, Any] = {}
    for each in parts:
        results |= each.results
    results |= work.results
    doubtful = _doubtful_handlers(work)
    ends = {
        name: progress
        for name, progress in {**record.stored.progress, **work.progress}.items()
        if progress.is_finished and name not in doubtful
    }
    known = {each.id: each.result_id for each in context.kind.changes}
    named = {known.get(name, name) for name in ends}
    return Work(
        progress=ends,
        patches=tuple(each for each in patches if each[0] in ends),
        results={name: each for name, each in results.items() if name in named},
    )


def _doubtful_handlers(work: Work) -> set[str]:
    """The handlers whose changes may have arrived, and cannot be made twice."""
    writing = work.writing
    if writing is None or not writing.is_doubtful:
        return set()
    changes = writing.contents.patches
    return {name for name, each in changes if not _is_repeatable(each)}


def _is_repeatable(change: Patch | Transform) -> bool:
    """Whether a change that is made twice has the effect of making it once."""
    return isinstance(change, Patch) and not change.json


def _deletion_ends(work: Work) -> Work:
    """The ends of deletion handlers alone: they concern the uid, whatever follows."""
    ends = {
        name: progress
        for name, progress in work.progress.items()
        if progress.aim.partition(":")[0] == Reason.DELETE.value
    }
    return Work(progress=ends)


def _drop_replaced(context: Context, record: ObjectRecord) -> Work | None:
    """Drop an object whose name another has taken, and return the work that is left.

    Event handlers still get the pending events, and the deletion.
    """
    let_go(context, record)
    kind = context.kind
    if kind.event_handlers and not record.gone:
        record = _with_pending_events(context, record, kind, "DELETED", record.body)
    context.drop()
    work = record.work or IDLE
    left = Work(event_runs=work.event_runs, pending_events=work.pending_events)
    return None if left.is_over else left


def _first_sight(context: Context, body: Body, *, listed: bool) -> ObjectRecord:
    """Return the record of an object that was not known; report an unreadable state."""
    found = first_sight(context.kind, context.settings, body, listed=listed)
    if not found.problem:
        return found.record
    if not found.is_of_predecessor:
        context.say(
            "warning",
            "its stored state cannot be read and is left as it is; the object "
            f"counts as handled before: {found.problem}",
            body=body,
        )
        return found.record
    context.turn.failed()
    text = (
        "it was handled by the operator that is taken over, and is left alone: "
        f"{found.problem}; set takes_over_key= or takes_over_field= to where that "
        "operator kept it, or take the finalizer off to have it created anew"
    )
    context.say("error", text, body=body)
    event = Event("NotTakenOver", found.problem, "Warning")
    return report_event(context, found.record, event)


def _next_version(
    context: Context, record: ObjectRecord, stream: Stream, type: str | None, body: Body
) -> ObjectRecord:
    """Return the record of a known object after another version of it."""
    if record.deferred and _is_put_aside(record) and type != "DELETED":
        return _read_again(context, record, body)
    record = _without_pause(context, record, body)
    return _refreshed(context, record, stream, type, body)


def _refreshed(
    context: Context, record: ObjectRecord, stream: Stream, type: str | None, body: Body
) -> ObjectRecord:
    """Return the record with a newer version; ignore one from before a live answer.

    The answer to an own write, or to a live read, may be ahead of the watch.
    """
    if type == "DELETED":
        return replace(record, body=body, gone=True, expected=None)
    is_fresh = type is None and stream.begun > record.learned
    if record.vanished and not is_fresh:
        return _with_live_read(context, record)
    if is_behind(body.version, record.body.version) and not is_fresh:
        return record
    if body.version == record.body.version and not is_fresh:
        body = compact(record.body, body)
    if record.work is None and record.expected is None:
        return replace(record, body=body, shown=(body.version,))
    versions = (*record.shown[-_SHOWN_MAX:], body.version)
    if _meets_expectation(record, stream, type, body):
        return replace(record, body=body, vanished=False, expected=None, shown=versions)
    return replace(record, shown=versions)


def _meets_expectation(
    record: ObjectRecord, stream: Stream, type: str | None, body: Body
) -> bool:
    """Whether a version shows the own write that is awaited, if any is."""
    expected = record.expected
    return (
        expected is None
        or record.vanished  # it still exists, or exists again: take the watch's version
        or body.version == expected.version
        or is_behind(expected.version, body.version)  # a listing skips versions
        or (type is None and stream.begun > expected.step)
    )


def _with_live_read(context: Context, record: ObjectRecord) -> ObjectRecord:
    """Return the record with a live read due: the watch shows a missing object."""
    expected = record.expected
    if expected is None or expected.looking:
        return record
    return replace(record, expected=replace(expected, deadline=context.now.mono))


def _without_pause(context: Context, record: ObjectRecord, body: Body) -> ObjectRecord:
    """Return the record without a pause, if another has changed it: no loop now."""
    if not (record.backoff.pace.is_loop or record.backoff.contention.is_loop):
        return record
    if body.version == record.body.version or _is_written(context, record):
        return record
    observation = context.kind.observation
    same = see(record.body, observation).digests == see(body, observation).digests
    return record if same else record.backing_off(pace=CALM, contention=CALM)


def _is_written(context: Context, record: ObjectRecord) -> bool:
    """Whether a change of the object by this operator is under way."""
    if record.work is not None and record.work.writing is not None:
        return True
    for ticket in context.turn.requests.pending.values():
        if not isinstance(ticket, OfObject):
            continue
        author = context.of(ticket.key).record
        for each in ((author and author.work) or IDLE).invocations:
            in_flight = each.in_flight
            if (
                in_flight
                and in_flight.base
                and in_flight.requests[0].address.key == context.key
            ):
                return True
    return False


def _has_changed(was: ObjectRecord | None, body: Body, kind: Kind) -> bool:
    """Whether it is new, or differs from before in more than its status."""
    if was is None:
        return True
    hidden = kind.observation.hidden
    return not same_json(essence_of(was.body, hidden), essence_of(body, hidden))


def _with_pending_events(
    context: Context,
    record: ObjectRecord,
    kind: Kind,
    type: str | None,
    body: Body,
    former: Body | None = None,
) -> ObjectRecord:
    events = (
        PendingEvent(handler, type, each)
        for handler in kind.event_handlers
        for each in _versions_for_handler(handler, former, body)
    )
    fresh = wanted_events(context, record, events)
    if not fresh:
        return record
    work = record.work or IDLE
    pending_events = with_events(work.pending_events, fresh)
    kept = bounded(pending_events, PENDING_EVENTS_MAX)
    if len(kept) < len(pending_events):
        pending_events = kept
        context.warn_once(
            f"pending events {context.key}",
            "watch events come faster than the on.event handlers handle them; "
            "the oldest are dropped",
        )
    return replace(record, work=replace(work, pending_events=pending_events))


def _versions_for_handler(
    handler: Handler, former: Body | None, body: Body
) -> tuple[Body, ...]:
    """The versions of an object that a handler of its events is called for.

    A mapping also gets the version before. The objects that it named must be reconciled
    when it names others, or when it loses the label that made it a template.
    """
    if not handler.to or former is None or former.version == body.version:
        return (body,)
    return former, body
