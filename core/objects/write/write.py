"""The object's own write as a machine: send, verify, resolve conflicts, continue.

An outcome is never lost: fnop sends a failed write again, with backoff, from the
freshest body. It does not call the handlers behind it again (R22).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.core.handlers.declare.handler import declarer_of
from fnop.core.memory.conditions import condition_by
from fnop.core.memory.observation import Seen
from fnop.core.memory.storage import StorageFailed
from fnop.core.memory.stored_state import Stored, shared
from fnop.core.objects.report.events import report_event
from fnop.core.objects.report.explaining import (
    tell_handled,
    tell_superseded,
    tell_writing,
    tell_written,
)
from fnop.core.objects.report.tracing import trace_write
from fnop.core.objects.write.consequences import (
    after_own_write,
    contended,
    log_successes,
    of_generation,
    warn_dropped,
)
from fnop.core.objects.write.expectations import read_live, shown, vanished
from fnop.core.objects.write.progress_after_write import (
    moved_handlers,
    moved_progress,
    moves_of,
    with_undoing,
)
from fnop.core.objects.write.refusal import (
    AfterRefusal,
    Done,
    Later,
    Send,
    judge_refusal,
    refused,
)
from fnop.core.objects.write.state_location import (
    falls_back,
    home_of,
    homeless,
    housed,
    own_conditions,
    takes_conditions,
    tell_unconditioned,
)
from fnop.core.seam.replies import Next, WritePurpose, message_of, next_after
from fnop.core.state.address import Address
from fnop.core.state.context import Context
from fnop.core.state.fusion import (
    NextWrite,
    next_write,
    was_pruned,
)
from fnop.core.state.record import IDLE, ObjectRecord
from fnop.core.state.requests import ForWrite
from fnop.core.state.splitting import left_of
from fnop.core.state.writing import Contents, Sent, Step, Writing
from fnop.core.values.backoff import backoff_seconds, heeding, is_worth_logging
from fnop.core.values.body import Body
from fnop.core.values.cause import Reason
from fnop.core.values.finalizers import Duty
from fnop.core.values.merge import OperationFailed, applied, collisions, shows
from fnop.effects import (
    Applied,
    Event,
    Missing,
    Outcome,
    Unknown,
)
from fnop.effects.outcomes import Refused
from fnop.effects.structs import replace
from fnop.effects.values import type_name

__all__ = ["answer_write", "begin_write", "continue_write"]


# A conflict is followed by an immediate live read. After more than this many in a row,
# fnop waits with backoff, since another writer may never end.
_QUICK_TRIES = 3
_NOT_KEPT = "the API server does not keep what the storage writes"


def begin_write(context: Context, record: ObjectRecord, contents: Contents) -> None:
    """Start a write: send its first request."""
    if len(contents.patches) > 1:
        contents = _in_order(context, contents)
        _warn_collisions(context, contents)
    record = _without(record, contents)
    if contents.finalizer is Duty.REMOVE:
        # The object may be gone before the write is answered.
        _tell_of_release(context, record, contents)
    if contents.after is not None and context.settings.as_kopf:
        _tell_of_new_reason(context, record, contents.after)
    contents = housed(context, record, contents)
    continue_write(context, record, Writing(contents))


def _tell_of_new_reason(context: Context, record: ObjectRecord, after: Stored) -> None:
    """Log that records of an earlier change become those of another one.

    If an attempt of the new change has begun, that is logged already.
    """
    former, change = record.stored.progress, record.work and record.work.change
    aims = {
        each.aim
        for name, each in after.progress.items()
        if name in former and former[name].aim != each.aim
    }
    reasons = {each.partition(":")[0] for each in aims}
    for reason in sorted(reasons - {change.reason.value if change else ""}):
        tell_superseded(context, record, reason)


def _without(record: ObjectRecord, contents: Contents) -> ObjectRecord:
    """Return the record without the changes that a write carries; the others wait.

    A write may carry no changes, such as the mark that a handler has begun to act. At
    the end of a change no result waits: those that it does not carry are of handlers
    whose parts have failed.
    """
    work, carried = record.work or IDLE, {id(patch) for _, patch in contents.patches}
    patches = tuple(each for each in work.patches if id(each[1]) not in carried)
    done = work.results if contents.ends else contents.results
    results = {k: v for k, v in work.results.items() if k not in done}
    return replace(record, work=replace(work, patches=patches, results=results))


def _tell_of_release(
    context: Context, record: ObjectRecord, contents: Contents
) -> None:
    """Log what ends with the finalizer of this operator."""
    change = record.work.change if record.work else None
    is_own_end = change is not None and change.reason is Reason.DELETE
    if record.body.is_deleting and not is_own_end:
        tell_superseded(context, record, Reason.DELETE.value)
    elif contents.ends:
        tell_handled(context, record)
    if not contents.ends:
        _tell_of_former(context, record)


def _tell_of_former(context: Context, record: ObjectRecord) -> None:
    """Log a finalizer of a former release whose purpose is unknown."""
    kind = context.kind
    holders = (*kind.deleters, *(each for each in kind.background if each.holds))
    if holders or any(each.held for each in record.reconcilers.values()):
        return
    context.say(
        "info",
        "takes its finalizer off, which no handler needs; children in other namespaces "
        "that a former release has made, of kinds that owns= names no more, stay",
    )


def _in_order(context: Context, contents: Contents) -> Contents:
    """Return the contents with its patches in the order of handler registration."""
    kind = context.kind
    others = (*kind.log_handlers, *kind.background, *kind.changes)
    handlers = (*kind.event_handlers, *others)
    order = {each.id: at for at, each in enumerate(handlers)}
    patches = sorted(contents.patches, key=lambda patch: _position_of(order, patch[0]))
    return replace(contents, patches=tuple(patches))


def _position_of(order: Mapping[str, int], name: str) -> int:
    """The position of a handler; for a sub-handler, its declarer's position."""
    return order.get(declarer_of(name, order), len(order))


def _warn_collisions(context: Context, contents: Contents) -> None:
    """Warn about handlers that set a field differently: the later one wins (R18)."""
    so_far: Any = {}
    before, author = so_far, ""
    for handler, patch in contents.patches:
        if handler != author:  # a timer's second run does not collide with its first
            before, author = so_far, handler
        merge = patch.merge or {}
        for pointer in collisions(before, merge):
            context.say(
                "warning",
                f"several handlers set {pointer} to different values; "
                f"the one of {handler} is written",
                handler=handler,
            )
        so_far = applied(merge, so_far)


def continue_write(context: Context, record: ObjectRecord, writing: Writing) -> None:
    """Send the next request of a write, unless another process may lead."""
    if record.deferred is not None:
        _put_writing(context, record, writing)
        context.due()
        return
    resource = context.kind.resource
    address = Address(resource, context.key.namespace or None, context.key.name)
    contents = writing.contents
    authors = sorted(contents.authors)
    ticket = ForWrite(context.key, ", ".join(authors))
    if writing.step is not Step.SEND:
        number = read_live(context, ticket)
        _put_writing(context, record, replace(writing, id=number, due=None))
        return
    found = _request_for(context, record, writing)
    if not isinstance(found, NextWrite):
        _react_to_refusal(context, found)
        return
    endpoint, patch, more = found
    tell_writing(context, endpoint, patch, authors)
    number = context.turn.perform(patch, address, ticket, context.subject(record.body))
    trace_write(context, number, contents)
    sent = Sent(endpoint, patch, record.body, more)
    _put_writing(context, record, replace(writing, id=number, due=None, sent=sent))


def _state_for_result(
    context: Context,
    record: ObjectRecord,
    contents: Contents,
    after: Stored,
    made: Body,
) -> Stored:
    """The state to store, for the object as its authors' changes make it."""
    kind = context.kind
    names = moved_handlers(record, {name for name, _ in contents.patches})
    moves = moves_of(kind, names, record.body, made)
    moved = replace(after, progress=moved_progress(after.progress, kind, moves))
    if not contents.ends or context.settings.as_kopf:
        return moved
    return with_undoing(kind, moved, record.body, made)


def _put_writing(
    context: Context, record: ObjectRecord, writing: Writing | None
) -> None:
    work = replace((record.work or IDLE), writing=writing)
    kept = replace(record, work=None if work.is_over else work)
    context.put(kept)


def _request_for(
    context: Context, record: ObjectRecord, writing: Writing
) -> NextWrite | AfterRefusal:
    """Return the request that is due, or the reaction if none is."""
    contents = writing.contents
    if contents.finalizer is Duty.ADD and record.body.is_deleting:
        # The API server does not add a finalizer to an object that is being deleted.
        return Done(record, writing)
    place = home_of(context, record.body)
    try:
        found = next_write(
            contents,
            record.body,
            context.kind.resource,
            context.settings,
            place,
            taken=writing.taken,
            unsaid=writing.unsaid,
            conditions=takes_conditions(context),
            own=own_conditions(context),
            schema=context.kind.status,
            restated=lambda after, made: _state_for_result(
                context, record, contents, after, made
            ),
        )
    except ValueError as problem:
        return _write_digests_only(context, record, writing, str(problem))
    except StorageFailed as problem:
        why = f"the storage has failed with {problem}"
        if falls_back(context, place, why):
            return Send(record, writing)
        return Later(record, writing, why)
    except OperationFailed as problem:
        authors, text, final = contents.authors, str(problem), problem.final
        return judge_refusal(context, record, writing, authors, text, final=final)
    return Done(record, writing) if found is None else found


def _react_to_refusal(context: Context, what: AfterRefusal) -> None:
    """Execute the reaction to a refusal."""
    match what:
        case Send(record, writing):
            continue_write(context, record, writing)
        case Later(record, writing, why):
            _retry_later(context, record, writing, why)
        case Done(record, writing):
            _end_writing(context, record, writing)


def _write_digests_only(
    context: Context, record: ObjectRecord, writing: Writing, problem: str
) -> AfterRefusal:
    """Write only digests, since the state is too long to store.

    This is the object's error, not the operator's. Digests always fit. They keep a
    restart from handling the object as a new one.
    """
    context.turn.failed()
    context.say("error", f"the state cannot be stored on the object: {problem}")
    record = report_event(context, record, Event("StateTooLong", problem, "Warning"))
    contents = writing.contents
    assert contents.after is not None
    seen = contents.after.seen
    least = Stored(seen and Seen(seen.digests), contents.after.creating)
    memory = least if contents.memory is not None else None
    return Send(record, writing.carrying(after=least, memory=memory))


def _end_writing(context: Context, record: ObjectRecord, writing: Writing) -> None:
    """End a write: its state is the stored state now."""
    if writing.then:
        first, *then = writing.then
        continue_write(context, record, Writing(first, tuple(then)))
        return
    contents = writing.contents
    if contents.after is not None and record.backoff.unsaved_tries:
        record = record.backing_off(unsaved_until=0.0, unsaved_tries=0)
    if writing.unsaid or contents.condition is not None:
        tell_unconditioned(context)
    if contents.condition is not None:
        record = replace(record, written_condition=contents.condition)
    expected, ends = record.expected, contents.ends
    work = replace((record.work or IDLE), writing=None)
    if ends:
        work = work.without_change()
    work = log_successes(context, work)
    if ends and contents.finalizer is not Duty.REMOVE:
        tell_handled(context, record)
    if contents.finalizer is Duty.ADD and expected is not None:
        expected = replace(expected, passes=True)
    stored, memory = record.stored, contents.memory
    kept = replace(
        record,
        stored=stored if memory is None else shared(memory, stored),
        initial=record.initial and not ends,
        released=record.released or (ends and contents.finalizer is Duty.REMOVE),
        expected=expected,
        work=None if work.is_over else work,
    )
    context.put(_count_contention(context, kept, contents))
    context.due()


def _count_contention(
    context: Context, record: ObjectRecord, contents: Contents
) -> ObjectRecord:
    """Count a write of what other clients may undo each time."""
    if contents.finalizer is not None and not record.body.is_deleting:
        finalizer = f"the finalizer {context.settings.own_finalizer}"
        record = contended(context, record, finalizer)
    if contents.restores and contents.after is not None:
        record = contended(context, record, "its state on the object")
    return record


def answer_write(context: Context, number: int, outcome: Outcome) -> None:
    """Process the answer to a request of an own write."""
    record = context.record
    if record is None or record.work is None or record.work.writing is None:
        return
    writing = record.work.writing
    if writing.id != number:
        return
    tell_written(context, outcome)
    purpose = WritePurpose.WRITE if writing.step is Step.SEND else WritePurpose.READ
    after = next_after(purpose, outcome, writing.tries)
    writing = replace(writing, id=None)
    match after:
        case Next.TAKE:
            _taken(context, record, writing, outcome)
        case Next.LOOK:
            if isinstance(outcome, Unknown) and writing.step is Step.SEND:
                writing = replace(writing, step=Step.VERIFY)
            _look_again(context, record, writing, message_of(outcome))
        case Next.AGAIN | Next.LATER:
            if isinstance(outcome, Missing):
                context.turn.rediscover()
            advice = getattr(outcome, "retry_after_seconds", None)
            _retry_later(context, record, writing, message_of(outcome), advice)


def _taken(
    context: Context, record: ObjectRecord, writing: Writing, outcome: Outcome
) -> None:
    """Process a final reply to a request of the write."""
    match outcome:
        case Applied(object=dict() as found):
            _answered(context, record, writing, Body(found))
        case Missing(message=message):
            _process_missing(context, record, writing, message)
        case Refused(message=message):
            _react_to_refusal(context, refused(context, record, writing, message))
        case _:
            _retry_later(
                context, record, writing, f"an unexpected answer: {type_name(outcome)}"
            )


def _answered(
    context: Context, record: ObjectRecord, writing: Writing, body: Body
) -> None:
    """Take the object as an own request has left it, or as a live read shows it."""
    if body.uid and record.body.uid and body.uid != record.body.uid:
        _await_end(context, record, writing)
        return
    record = shown(context, record, body)
    fresh, sent = replace(writing, step=Step.SEND), writing.sent
    match writing.step:
        case Step.SEND if sent is not None:
            _verify_part(context, record, fresh, sent, body)
        case Step.VERIFY if sent is not None and _has_landed(sent, body):
            _verify_part(context, record, fresh, sent, body)
        case _:
            continue_write(context, record, fresh)


def _has_landed(sent: Sent, body: Body) -> bool:
    """Whether a request without an answer succeeded, as the object shows.

    The request was bound to one version. If the object still has that version, the
    request did not succeed.
    """
    base, merge = sent.base, sent.patch.merge
    if body.version == base.version:
        return False
    meta = {**merge.get("metadata", {}), "resourceVersion": body.version}
    made = applied({**merge, "metadata": meta}, base.data)
    return shows(base.data, made, body.data)


def _note_lost_condition(context: Context, contents: Contents, body: Body) -> None:
    """Note a kind whose status has no place for the condition that was written."""
    if contents.condition is None or condition_by(body, context.settings.marker):
        return
    context.turn.notes = context.turn.notes.conditionless(context.key.resource)


def _verify_part(
    context: Context, record: ObjectRecord, writing: Writing, sent: Sent, body: Body
) -> None:
    """Verify the part that one endpoint has taken, and continue with the rest."""
    record, contents = after_own_write(context, record, writing.contents, sent, body)
    record, contents, raised = of_generation(record, contents, sent, body)
    resource = context.kind.resource
    warn_dropped(context, contents, sent, body)
    writing = _taken_by(writing, contents, sent, split=resource.has_status)
    contents, place = writing.contents, home_of(context, body)
    lost_state, lost = was_pruned(contents, body, place)
    of_status = sent.endpoint == "status" or not resource.has_status
    if of_status:
        _note_lost_condition(context, contents, body)
    carried_state = place.in_status == of_status or not resource.has_status
    moves = lost_state and carried_state and falls_back(context, place, _NOT_KEPT)
    if of_status and lost:
        moved = homeless(context, record, contents, lost)
        writing = replace(writing, contents=moved)
    if moves or (of_status and lost):
        # The main endpoint gets more than it was sent before.
        continue_write(context, record, replace(writing, taken=writing.taken - {""}))
    elif sent.more:
        continue_write(context, record, writing)
    elif raised and "status" in writing.taken:
        # The condition was already written, with the previous generation.
        rest = writing.carrying(patches=(), results={})
        continue_write(context, record, replace(rest, taken=frozenset()))
    else:
        _end_writing(context, record, writing)


def _taken_by(
    writing: Writing, contents: Contents, sent: Sent, *, split: bool
) -> Writing:
    """Return the write after an endpoint has taken its part of the contents."""
    if contents.patches:
        left = left_of(contents.patches, sent.endpoint, sent.base, split=split)
        contents = replace(contents, patches=left)
    taken = writing.taken | {sent.endpoint}
    return replace(writing, contents=contents, taken=taken, tries=0)


def _look_again(
    context: Context, record: ObjectRecord, writing: Writing, message: str
) -> None:
    """Read the object and compute the write again, after a conflict or no reply."""
    writing = replace(_reading(writing), tries=writing.tries + 1)
    if is_worth_logging(writing.tries, first=5):
        _warn_unwritten(context, message)
    if writing.tries <= _QUICK_TRIES:
        continue_write(context, record, writing)
    else:
        _wait_for_retry(context, record, writing)


def _reading(writing: Writing) -> Writing:
    """The write whose next request reads the object."""
    if writing.step is not Step.SEND:
        return writing
    return replace(writing, step=Step.READ)


def _retry_later(
    context: Context,
    record: ObjectRecord,
    writing: Writing,
    message: str,
    advice: float | None = None,
) -> None:
    writing = replace(writing, tries=writing.tries + 1)
    if is_worth_logging(writing.tries):
        _warn_unwritten(context, message)
    _wait_for_retry(context, record, writing, advice)


def _warn_unwritten(context: Context, message: str) -> None:
    line = f"cannot be written, will be tried again: {message}"
    context.say("warning", line)


def _wait_for_retry(
    context: Context,
    record: ObjectRecord,
    writing: Writing,
    advice: float | None = None,
) -> None:
    pause = heeding(advice, backoff_seconds(writing.tries, context.turn.jitter()))
    due = context.now.mono + pause
    _put_writing(context, record, replace(writing, due=due))
    context.due(due)


def _process_missing(
    context: Context, record: ObjectRecord, writing: Writing, message: str
) -> None:
    """Read live: the object is gone, or its kind no longer has a status subresource."""
    is_of_status = writing.sent is not None and writing.sent.endpoint == "status"
    if writing.step is not Step.SEND or not is_of_status:
        _await_end(context, record, writing)
        return
    if writing.tries:
        context.turn.rediscover()
    _look_again(context, record, writing, message)


def _await_end(context: Context, record: ObjectRecord, writing: Writing) -> None:
    """Wait with a write whose object is reported as gone, or replaced.

    The object is not reconciled until the watch shows that, too. If it still exists,
    fnop reads it again before the write continues: a request may have succeeded.
    """
    waiting = replace(_reading(writing), due=context.now.mono)
    looks = record.expected.looks if record.vanished and record.expected else 0
    _put_writing(context, vanished(context, record, looks=looks), waiting)
    context.due()
