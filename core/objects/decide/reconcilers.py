"""Reconcilers of one object: when each is called.

fnop calls a reconciler for a state and not for a cause. It does so whenever the state
that the reconciler would see differs from the state at its last call. So a burst of
changes is one call, a change during a call is one more, and fnop need not store
anything on the object.

| since the last call                    | it is called         |
|----------------------------------------|----------------------|
| the object or a child has changed      | at once              |
| another object's mapping, or an effect | at once              |
| it has failed                          | after its backoff    |
| it has requested it, or `resync=`      | when that time comes |
| none of these                          | not at all           |

Handlers of changes go first. No two of all these are under way at once for one object.
For a deleted object, only its `on.delete` handlers are called.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from fnop.core.children.marks import ChildSet, outside, set_of
from fnop.core.children.owned import OWNER_ANNOTATION, Owner, owners_of
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.program.program import OwnedBy
from fnop.core.memory.observation import essence_of
from fnop.core.objects.decide.selection import Circumstances, prematches
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import ObjectRecord, ReconcilerState, Work
from fnop.core.values.body import Body, Key
from fnop.effects.structs import replace
from fnop.effects.values import same_json

__all__ = [
    "AwaitChildren",
    "CallReconciler",
    "LeaveReconciler",
    "Purpose",
    "StopReconciler",
    "call_due",
    "clearing",
    "collecting",
    "forgotten",
    "holds_children",
    "reconciler_action",
    "reconciler_due",
    "requeued",
]


# The pause between two checks whether the API server shows the children's kinds.
_BLIND_SECONDS = 30.0


class Purpose(Enum):
    """The purposes of a call; only KEEP calls the author's function.

    - KEEP: to make the children as desired
    - CLEAR: to delete the children that are deleted before their owner
    - COLLECT: to delete the object itself, whose owner is gone
    """

    KEEP = "keep"
    CLEAR = "clear"
    COLLECT = "collect"


class CallReconciler(Struct, frozen=True):
    """Call a reconciler for the object as it is now.

    With `awaits`, another reconciler is yet to be called for it.
    """

    handler: Handler
    purpose: Purpose = Purpose.KEEP
    awaits: bool = False


class StopReconciler(Struct, frozen=True):
    """End a call that is under way: its handler no longer selects the object."""

    invocation: Invocation


class LeaveReconciler(Struct, frozen=True):
    """Leave a handler's children as they are: it does not select the object."""

    handler: Handler


class AwaitChildren(Struct, frozen=True):
    """Nothing to do before a time, or before the children are gone."""

    until: float | None = None


def reconciler_action(
    at: Circumstances, record: ObjectRecord, work: Work
) -> StopReconciler | LeaveReconciler | None:
    """The next action about handlers that have stopped selecting the object."""
    for each in work.reconciler_runs:
        is_own = each.situation.reason is not None and not record.gone
        if at.stopping or not (is_own or _is_wanted(at, record, each.handler)):
            return StopReconciler(each)
    if at.stopping or record.body.is_deleting:
        return None
    for handler in at.kind.reconcilers:
        if _may_leave(at, record, handler) and not _is_wanted(at, record, handler):
            return LeaveReconciler(handler)
    return None


def _may_leave(at: Circumstances, record: ObjectRecord, handler: Handler) -> bool:
    """Whether a handler has been called for the object, or has children of it."""
    state = record.reconcilers.get(handler.id)
    if state is not None:
        return not state.left
    if not at.children:
        return False
    children = child_set(at, handler, record.body.uid, record.body.namespace)
    return any(children.has(*each) for each in _bodies(at, handler).items())


def _is_wanted(at: Circumstances, record: ObjectRecord, handler: Handler) -> bool:
    if at.stopping or record.gone or record.body.is_deleting:
        return False
    return prematches(at, record, handler)


def call_due(
    at: Circumstances, record: ObjectRecord, work: Work
) -> CallReconciler | None:
    """The reconcile call that is due now, if nothing else is under way."""
    if work.running or work.reconciler_runs:
        return None
    for handler in at.kind.reconcilers:
        due = _due_time(at, record, handler)
        if due is not None and due <= at.now.mono:
            return CallReconciler(
                handler, awaits=_is_awaiting_others(at, record, handler)
            )
    return None


def _is_awaiting_others(
    at: Circumstances, record: ObjectRecord, handler: Handler
) -> bool:
    """Whether another reconciler has yet to be called for the object as it is now."""
    others = (each for each in at.kind.reconcilers if each is not handler)
    return any(
        _is_wanted(at, record, each) and not _has_seen(at, record, each)
        for each in others
    )


def _has_seen(at: Circumstances, record: ObjectRecord, handler: Handler) -> bool:
    """Whether a reconciler was called for the object as it is now, status aside."""
    state = record.reconcilers.get(handler.id)
    if state is None or state.body is None:
        return False
    return not is_changed(at, state.body, record.body)


def clearing(
    at: Circumstances, record: ObjectRecord
) -> CallReconciler | AwaitChildren | None:
    """Delete the children that are deleted before their owner; None without any.

    The garbage collector does not delete them: they cannot name their owner.
    """
    left = is_blind = False
    looks: list[float] = []
    for handler in at.kind.reconcilers:
        state = record.reconcilers.get(handler.id) or ReconcilerState()
        owner = record.body.uid, record.body.namespace
        found = outside(_bodies(at, handler), child_set(at, handler, *owner))
        if not found:
            is_blind = is_blind or _may_have_unseen(at, record, handler)
            continue
        left = True
        if state.has_failed and state.start and state.start > at.now.mono:
            return AwaitChildren(state.start)
        is_asked = all(body.is_deleting for body in found.values())
        if not is_asked and not _waits_for_watch(at, state):
            return CallReconciler(handler, Purpose.CLEAR)
        if state.start is not None and not is_asked:
            looks.append(state.start)
    if is_blind:
        return AwaitChildren(at.now.mono + _BLIND_SECONDS)
    return AwaitChildren(min(looks, default=None)) if left else None


def _may_have_unseen(at: Circumstances, record: ObjectRecord, handler: Handler) -> bool:
    """Whether a held object may have children that the API server refuses to show."""
    is_held = at.settings.own_finalizer in record.body.finalizers
    return is_held and any(at.is_blind(each.key) for each in handler.owned.values())


def _waits_for_watch(at: Circumstances, state: ReconcilerState) -> bool:
    """Whether all these children are deleted, and the watch has yet to show it.

    fnop waits for it until `start`: an answer that a child is gone may be wrong. An
    operator that is stopping may not see it.
    """
    if at.stopping:
        return True
    was = state.body
    if was is None or not was.is_deleting or state.has_failed:
        return False
    if state.start is not None and state.start <= at.now.mono:
        return False
    return state.children is at.children or state.children == at.children


def collecting(
    at: Circumstances, record: ObjectRecord
) -> CallReconciler | AwaitChildren | None:
    """Delete an object whose owner is gone, if Kubernetes does not delete it.

    Such an object names its owner in fnop's annotation alone. The garbage collector
    deletes all others.
    """
    body = record.body
    mark = body.mapping("annotations").get(OWNER_ANNOTATION)
    if not mark or body.is_deleting:
        return None
    for owner in owners_of(body):
        for by in at.kind.owned_by:
            if _is_orphan_of(at, body, owner, by):
                return _collect_orphan(at, record, by.handler)
    return None


def _is_orphan_of(at: Circumstances, body: Body, owner: Owner, by: OwnedBy) -> bool:
    """Whether an object was made for an owner of this kind that does not exist."""
    if not by.sees_all or not owner.is_of(by.resource):
        return False
    served = at.settings.namespaces
    if served is not None and owner.namespace not in served:
        return False  # it may exist, and is not followed
    key = Key(at.kind.resource.key, body.namespace or "", body.name)
    if not outside({key: body}, child_set(at, by.handler, owner.uid, owner.namespace)):
        return False
    found = at.body_of(owner.key(by.resource))
    return found is None or found.uid != owner.uid


def _collect_orphan(
    at: Circumstances, record: ObjectRecord, handler: Handler
) -> CallReconciler | AwaitChildren | None:
    state = record.reconcilers.get(handler.id) or ReconcilerState()
    if state.has_failed and state.start and state.start > at.now.mono:
        return AwaitChildren(state.start)
    is_known = state.body is not None and state.body.version == record.body.version
    if is_known and not state.has_failed:
        if state.start is None:
            return None  # a live read has found its owner
        if state.start > at.now.mono:
            return AwaitChildren(state.start)  # the watch has yet to show its deletion
    return CallReconciler(handler, Purpose.COLLECT)


def child_set(
    at: Circumstances, handler: Handler, owner: str, place: str | None
) -> ChildSet:
    """The children that a reconciler makes for the owner of this uid and namespace."""
    marker = at.settings.marker
    return ChildSet(marker, set_of(marker, handler.id), owner, place or "")


def _bodies(at: Circumstances, handler: Handler) -> dict[Key, Body]:
    """The children of the kinds that a handler owns."""
    kinds = {each.key for each in handler.owned.values()}
    found = ((key, at.body_of(key)) for key in at.children if key.resource in kinds)
    return {key: body for key, body in found if body is not None}


def holds_children(at: Circumstances, record: ObjectRecord) -> bool:
    """Whether the finalizer must keep the object for its children.

    fnop does not know this before the first call in this process. Then it leaves the
    finalizer as it is.
    """
    if record.body.is_deleting:
        return clearing(at, record) is not None
    for handler in at.kind.reconcilers:
        state = record.reconcilers.get(handler.id)
        known = None if state is None else state.holds
        is_held = at.settings.own_finalizer in record.body.finalizers
        if known or (known is None and is_held):
            return True
    return False


def reconciler_due(at: Circumstances, record: ObjectRecord, work: Work) -> float | None:
    """The monotonic time of the next call; None if only a change leads to one.

    No call is due while handlers are under way either: their end leads to it.
    """
    if work.running or work.reconciler_runs:
        return None
    moments = (_due_time(at, record, handler) for handler in at.kind.reconcilers)
    return min((each for each in moments if each is not None), default=None)


def _due_time(
    at: Circumstances, record: ObjectRecord, handler: Handler
) -> float | None:
    if not _is_wanted(at, record, handler):
        return None
    state = record.reconcilers.get(handler.id)
    if state is None:
        return at.now.mono
    if state.body is None or is_changed(at, state.body, record.body):
        return at.now.mono  # a user who edits it does not wait for a loop of children
    if state.children is not at.children and state.children != at.children:
        return max(at.now.mono, state.pace.until, state.own.until)
    return None if state.over else state.start


def is_changed(at: Circumstances, was: Body, now: Body) -> bool:
    """Whether an object's essence has changed: all but status, metadata and so on."""
    if was is now or was.version == now.version:
        return False
    hidden = at.settings.hidden
    return not same_json(essence_of(was, hidden), essence_of(now, hidden))


def forgotten(record: ObjectRecord, handler: Handler) -> ObjectRecord:
    """Return the record without the state of a reconciler."""
    rest = {k: v for k, v in record.reconcilers.items() if k != handler.id}
    return replace(record, reconcilers=rest)


def requeued(
    record: ObjectRecord, now: float, *, by_reconciler: bool = False
) -> ObjectRecord:
    """Return the record with its reconcilers due; failed ones begin again.

    With `by_reconciler`, a reconciler asks for it: reconcilers may do so without end.
    """
    reconcilers = {
        name: replace(
            each,
            start=max(now, each.own.until),
            over=False,
            asked=each.asked or by_reconciler,
        )
        for name, each in record.reconcilers.items()
    }
    return replace(record, reconcilers=reconcilers)
