"""The calls that are due for an object when an operator starts.

They follow from the object and its stored state, before any handler is called. Calls
that follow from the results of these are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import Enum

from msgspec import Struct

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import INFORMING
from fnop.core.handlers.run.arguments import Situation
from fnop.core.memory.progress import Progress, deadline_of
from fnop.core.memory.takeover import (
    last_handled_places,
    progress_by,
    purposes_anywhere,
)
from fnop.core.objects.decide.change import change_for
from fnop.core.objects.decide.detection import (
    cause_of,
    concerns,
    duty_of,
    selected_for,
)
from fnop.core.objects.decide.progression import current_progress
from fnop.core.objects.decide.selection import (
    Circumstances,
    Undecided,
    passes,
    prematches,
    sees,
)
from fnop.core.objects.decide.unknown_entries import seen_now
from fnop.core.state.record import IDLE, Change, ObjectRecord
from fnop.core.values.cause import HANDLED, Reason
from fnop.core.values.finalizers import Duty

__all__ = ["DueCall", "Why", "due_calls"]


class Why(Enum):
    """The reasons for a call.

    - AGAIN: the handler has succeeded with this change before, by the object's state,
      or a Kopf operator has stored its progress where this operator does not read it
    - RETRY: its earlier attempts with this change have not succeeded
    - FIRST: nothing shows that it was called for this change
    - START: each start of an operator calls it
    """

    AGAIN = "again"
    RETRY = "retry"
    FIRST = "first"
    START = "start"


class DueCall(Struct, frozen=True):
    """A call of a handler, or of its sub-handler `id`, for an object.

    `reason` is that of the change; "" if each start leads to the call.
    """

    id: str
    handler: Handler
    why: Why
    reason: str = ""


def due_calls(at: Circumstances, record: ObjectRecord) -> tuple[DueCall, ...]:
    """The calls that are due for an object, if a process sees it for the first time.

    A handler whose filters raise is skipped. If those of a deletion handler raise, no
    handler of a change is called. Retries may be due later than now.
    """
    found = [DueCall(each.id, each, Why.START) for each in _called_at_start(at, record)]
    with suppress(Undecided):
        found += [*_calls_of_change(at, record)]
    return tuple(found)


def _called_at_start(at: Circumstances, record: ObjectRecord) -> Iterator[Handler]:
    """The handlers that every start calls for an object, apart from its changes."""
    for each in at.kind.event_handlers:
        if each.role not in INFORMING and _sees(at, record, each):
            yield each
    if record.body.is_deleting:
        return
    for each in (*at.kind.background, *at.kind.reconcilers):
        if prematches(at, record, each):
            yield each


def _sees(at: Circumstances, record: ObjectRecord, handler: Handler) -> bool:
    situation = Situation(
        handler,
        at.settings,
        at.now,
        at.kind.resource,
        record.body,
        memo=record.memo,
        indices=at.indices,
    )
    try:
        return sees(handler, situation)
    except BaseException:  # from the author's code
        return False


def _calls_of_change(at: Circumstances, record: ObjectRecord) -> Iterator[DueCall]:
    if record.body.is_deleting and duty_of(at, record) is Duty.REMOVE:
        return  # it is released at once
    if not concerns(at, record):
        return
    seen = seen_now(at, record)
    cause = cause_of(at, record, seen)
    if cause.reason not in HANDLED:
        return
    selected = selected_for(at, record, cause, seen)
    change = change_for(at, record, cause, seen, selected)
    reason = cause.reason.value
    for handler in selected:
        progress = current_progress(record, IDLE, change, handler)
        if progress.is_finished or _is_late(at, handler, progress):
            continue
        why = _why(at, record, change, handler)
        yield DueCall(handler.id, handler, why, "" if why is Why.START else reason)
        if why is Why.RETRY:
            for part in at.settings.places.parts(record.body, handler.id):
                yield DueCall(part, handler, why, reason)


def _is_late(at: Circumstances, handler: Handler, progress: Progress) -> bool:
    """Whether a handler times out before it is called."""
    deadline = deadline_of(progress, handler.timeout, at.now)
    return deadline is not None and deadline <= at.now.mono


def _why(
    at: Circumstances, record: ObjectRecord, change: Change, handler: Handler
) -> Why:
    if _is_for_start(at, record, change, handler):
        return Why.START
    before = _stored_progress(at, record, handler)
    if before.aim.partition(":")[0] == change.reason.value:
        if before.has_succeeded:
            return Why.AGAIN
        if before.retries:
            return Why.RETRY
    return Why.AGAIN if _is_lost(record, change, handler, before) else Why.FIRST


def _is_lost(
    record: ObjectRecord, change: Change, handler: Handler, before: Progress
) -> bool:
    """Whether Kopf has stored the progress where this operator does not read it."""
    # Progress that is readable belongs to this operator, and so does the change.
    if record.stored.progress or before.aim:
        return False
    reason, body = change.reason, record.body
    if reason is Reason.CREATE and any(last_handled_places(body)):
        return True
    return reason.value in purposes_anywhere(body, handler.id)


def _is_for_start(
    at: Circumstances, record: ObjectRecord, change: Change, handler: Handler
) -> bool:
    """Whether a handler is called for resuming alone.

    A function may be declared for resuming and for changes, in any order.
    """
    reason = change.reason
    return handler.rule.is_for_resuming and not any(
        each.id == handler.id
        and not each.rule.is_for_resuming
        and reason in each.rule.reasons
        and passes(at, record, each, changed=each.rule.compares, reason=reason.value)
        for each in at.kind.changes
    )


def _stored_progress(
    at: Circumstances, record: ObjectRecord, handler: Handler
) -> Progress:
    """The progress in the object's state, by this operator or by its predecessor."""
    found, kopf = record.stored.progress.get(handler.id), at.settings.predecessor
    if found is None and kopf is not None:
        found = progress_by(record.body, kopf, handler.id)
    return found or Progress("")
