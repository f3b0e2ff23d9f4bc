"""The cause of an object's state, and the handlers that are selected for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.memory.observation import Seen, observed, scope_name
from fnop.core.objects.decide.background import (
    holds_object,
)
from fnop.core.objects.decide.progression import aim_of
from fnop.core.objects.decide.reconcilers import holds_children
from fnop.core.objects.decide.selection import Circumstances, passes, prematches
from fnop.core.objects.decide.unknown_entries import seen_now
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body
from fnop.core.values.cause import Cause, Facts, Reason, detect_cause
from fnop.core.values.finalizers import Duty, finalizer_duty

__all__ = ["cause_of", "concerns", "duty_of", "is_held", "selected_for"]


def cause_of(at: Circumstances, record: ObjectRecord, seen: Seen) -> Cause:
    """Return the cause of an object's state: its facts, looked up in `values.cause`."""
    was = record.stored.seen
    changed = was is not None and (
        _has_changed_scope(was, seen)
        or any([_is_ahead(each, record, seen) for each in at.kind.changes])
    )
    return detect_cause(
        Facts(
            gone=record.gone,
            deleting=record.body.is_deleting,
            blocked=is_held(at, record.body) or _is_of_interest(at, record),
            seen=not _is_new(record),
            changed=changed,
            initial=record.initial,
        )
    )


def _has_changed_scope(was: Seen, now: Seen) -> bool:
    """Whether a scope that was observed then has changed."""
    if was.has_digests_of(now):
        return False
    found = now.digests.items()
    return any(new != was.digest(scope, new) for scope, new in found)


def duty_of(at: Circumstances, record: ObjectRecord) -> Duty:
    deleting = record.body.is_deleting
    # An optional handler does not hold an object, but is called if another does.
    deleters = _optional_handlers(at) if deleting else ()
    kind = at.kind
    needed = (
        any([prematches(at, record, each) for each in (*kind.deleters, *deleters)])
        or (bool(kind.background) and holds_object(at, record))
        or (bool(kind.reconcilers) and holds_children(at, record))
        or (deleting and at.settings.as_kopf and _has_more(at, record))
    )
    return finalizer_duty(
        needed=needed,
        present=_is_present(at, record.body, needed=needed),
        deleting=deleting,
    )


def _is_new(record: ObjectRecord) -> bool:
    """Whether its creation has not come to its end."""
    return record.stored.creating or record.stored.seen is None


def _has_more(at: Circumstances, record: ObjectRecord) -> bool:
    """Whether handlers of other changes are to be called for a deletion, as in Kopf.

    It calls them if a daemon or timer needs the finalizer, even one that has stopped.
    """
    if not any(
        each.holds and not _is_over(record, each) and prematches(at, record, each)
        for each in at.kind.background
    ):
        return False
    seen = seen_now(at, record)
    cause = cause_of(at, record, seen)
    is_deletion = cause.reason is Reason.DELETE
    return is_deletion and bool(selected_for(at, record, cause, seen))


def _is_over(record: ObjectRecord, handler: Handler) -> bool:
    run_state = record.background.get(handler.id)
    return run_state is not None and run_state.over


def _optional_handlers(at: Circumstances) -> tuple[Handler, ...]:
    """The deletion handlers that need no finalizer."""
    return tuple(each for each in at.kind.changes if each.optional)


def is_held(at: Circumstances, body: Body) -> bool:
    """Whether this operator's finalizer, or its predecessor's, holds the object."""
    present = body.finalizers
    return bool(present) and not set(at.settings.finalizers).isdisjoint(present)


def _is_of_interest(at: Circumstances, record: ObjectRecord) -> bool:
    """Whether a deletion that others hold up is to be handled.

    Others' finalizers hold it up, or a pod's grace period, or a namespace's content.
    fnop calls optional handlers for it, once in a process: they hold nothing. Kopf
    calls none without its own finalizer.
    """
    if record.released or not record.body.is_deleting or at.settings.as_kopf:
        return False
    return any(prematches(at, record, each) for each in _optional_handlers(at))


def _is_present(at: Circumstances, body: Body, *, needed: bool) -> bool:
    """Whether the finalizer is present; a taken-over one is replaced in time."""
    if needed and not body.is_deleting:
        return at.settings.own_finalizer in body.finalizers
    return is_held(at, body)


def concerns(at: Circumstances, record: ObjectRecord) -> bool:
    """Whether any handler matches this object: fnop does not touch others."""
    return any(prematches(at, record, each) for each in at.kind.changes)


def selected_for(
    at: Circumstances, record: ObjectRecord, cause: Cause, seen: Seen
) -> tuple[Handler, ...]:
    """The handlers for a cause, in order; one function under one id runs once."""
    found: dict[str, Handler] = {}
    theirs = cause.reason is Reason.DELETE and not is_held(at, record.body)
    for each in at.kind.changes:
        if theirs and not each.optional:
            continue  # no handler has begun without our finalizer
        if _is_wanted(each, found.get(each.id)) and _takes_part(
            at, each, record, cause, seen
        ):
            if each.takes_all:
                found[each.id] = each
                continue
            changed, reason = each.rule.compares, cause.reason.value
            if passes(at, record, each, changed=changed, reason=reason):
                found[each.id] = each
    kept: list[Handler] = []
    for each in sorted(found.values(), key=lambda each: bool(each.entries)):
        if not each.entries or not _sees_entries(at, record, cause, seen, each, kept):
            kept.append(each)
    return tuple(each for each in found.values() if each in kept)


def _is_wanted(handler: Handler, known: Handler | None) -> bool:
    """Whether a handler may be called next to, or in place of, one with the same id.

    A function that is declared for resuming, too, is called for the change itself: its
    success then counts in the next process, whatever the order of its decorators.
    """
    if known is None:
        return True
    return known.rule.is_for_resuming and not handler.rule.is_for_resuming


def _sees_entries(
    at: Circumstances,
    record: ObjectRecord,
    cause: Cause,
    seen: Seen,
    handler: Handler,
    others: Iterable[Handler],
) -> bool:
    """Whether one function is called, or was called, with the current entries.

    It is called for the object, too, or for another index. If that call has ended, it
    may have received other entries.
    """
    scope = scope_name(handler.entries)
    for each in others:
        if each.result_id != handler.result_id:
            continue
        done = record.progress_of(each.id)
        aim = aim_of(at, record.body, cause.reason, each, seen)
        if done is None or not done.is_finished or done.aim != aim:
            return True
        if done.seen and done.seen.digest(scope) == seen.digest(scope):
            return True
    return False


def _observed_field(at: Circumstances, body: Body, handler: Handler) -> Any:
    return observed(body, handler.scope, at.kind.observation)


def _takes_part(
    at: Circumstances, handler: Handler, record: ObjectRecord, cause: Cause, seen: Seen
) -> bool:
    """Whether a handler is called for a cause, apart from its filters."""
    rule = handler.rule
    if cause.reason not in rule.reasons:
        return False
    if rule.is_for_resuming:
        return cause.initial and (cause.reason is not Reason.DELETE or handler.deleted)
    if not rule.compares:
        return True
    # By Kopf's rules an unfinished creation is handled with a deletion.
    is_new = at.settings.as_kopf and _is_new(record)
    if cause.reason is Reason.CREATE or is_new:
        is_there = _observed_field(at, record.body, handler) is not None
        return is_there or _is_ahead(handler, record, seen)
    return _has_changed_state(handler, record, seen)


def _has_changed_state(handler: Handler, record: ObjectRecord, seen: Seen) -> bool:
    """Whether the state that the handler observes has changed."""
    now = seen.digest(scope_name(handler.scope))
    if record.stored.seen is None or now is None:
        return False
    return now != (record.handled_by(handler) or now) or _is_ahead(
        handler, record, seen
    )


def _is_ahead(handler: Handler, record: ObjectRecord, seen: Seen) -> bool:
    """Whether a handler has acted upon a state that the object no longer has.

    The change was reverted while other handlers were still working on it.
    """
    if not handler.rule.compares:
        return False
    progress = record.progress_of(handler.id)
    if progress is None or not progress.acted:
        return False
    now = seen.digest(scope_name(handler.scope))
    return now is not None and progress.acted != now
