"""Call reconcilers: their arguments, and the early end of a call."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, Literal

from fnop.core.children.conditions import telling
from fnop.core.children.marks import outside
from fnop.core.children.owned import Owned, owners_of
from fnop.core.children.siblings import Beside, has_failed, not_selected
from fnop.core.handlers.declare.forms import Form, Signature
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.run.arguments import Keeping, Situation
from fnop.core.memory.progress import (
    FRESH,
    Progress,
    attempting,
    deadline_of,
    seconds_left,
    started_at,
    time_out,
)
from fnop.core.objects.attempt.attempts import go_on, stop
from fnop.core.objects.attempt.ending import keep, left
from fnop.core.objects.decide.reconcilers import (
    CallReconciler,
    LeaveReconciler,
    Purpose,
    StopReconciler,
    forgotten,
)
from fnop.core.objects.report.explaining import log_reconciler_call
from fnop.core.objects.report.tracing import trace_begun
from fnop.core.objects.write.child_owner import beside_of, is_new, keeper_of
from fnop.core.objects.write.state_location import tell_unconditioned
from fnop.core.seam.commands import AttemptEnded
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import IDLE, ObjectRecord, ReconcilerState
from fnop.core.values.body import Body, Key
from fnop.effects import Again, Delete, Effect, Get, Log, Target
from fnop.effects.desired import Desired
from fnop.effects.structs import replace

__all__ = ["run_reconciler"]


def run_reconciler(
    context: Context,
    record: ObjectRecord,
    action: CallReconciler | StopReconciler | LeaveReconciler,
) -> None:
    match action:
        case CallReconciler():
            _begin_call(context, record, action)
        case StopReconciler(invocation):
            _stop_call(context, record, invocation)
        case LeaveReconciler(handler):
            _leave_object(context, record, handler)


def _leave_object(context: Context, record: ObjectRecord, handler: Handler) -> None:
    """Report on the object that a handler has stopped looking after its children."""
    own = not_selected(handler.id)
    left = ReconcilerState(left=True, synced=own)
    keeper, beside = keeper_of(context, record, handler), beside_of(record, handler)
    tell = telling(keeper, beside, own)
    work = record.work or IDLE
    if tell is not None:
        patches = (*work.patches, (handler.id, Transform(tell)))
        record = replace(record, work=replace(work, patches=patches))
    context.put(replace(record, reconcilers={**record.reconcilers, handler.id: left}))


def _begin_call(context: Context, record: ObjectRecord, action: CallReconciler) -> None:
    """Begin a call, unless the handler's time has run out."""
    handler = action.handler
    state = record.reconcilers.get(handler.id) or ReconcilerState()
    if is_new(state, record.body):
        state = replace(state, over=False, progress=FRESH, refused=FRESH)
    progress = state.progress
    if seconds_left(progress, handler.timeout, context.now) <= 0:
        _time_out(context, record, handler, state)
        return
    progress = attempting(progress, context.now)
    situation = _situation_of_call(context, record, action, progress)
    deadline = deadline_of(progress, handler.timeout, context.now)
    invocation = Invocation(
        context.turn.next_serial(), situation, deadline=deadline, was_asked=state.asked
    )
    work = record.work or IDLE
    begun = replace(
        state,
        asked=False,
        body=record.body,
        children=context.children,
        start=None,
        over=False,
        progress=progress,
    )
    record = replace(
        record,
        reconcilers={**record.reconcilers, handler.id: begun},
        work=replace(work, reconciler_runs=(*work.reconciler_runs, invocation)),
    )
    log_reconciler_call(context, record, invocation, state)
    trace_begun(context, invocation)
    go_on(context, record, invocation)


def _situation_of_call(
    context: Context, record: ObjectRecord, action: CallReconciler, progress: Progress
) -> Situation:
    """The facts that the author's function gets as arguments."""
    handler, purpose = action.handler, action.purpose
    if purpose is not Purpose.KEEP:
        handler = _replace_function(context, record, handler, purpose)
    collects = purpose is Purpose.COLLECT
    return Situation(
        handler,
        context.settings,
        context.now,
        context.kind.resource,
        record.body,
        None if purpose is Purpose.KEEP else purpose.value,
        retry=progress.retries,
        started=started_at(progress, context.now),
        memo=record.memo,
        indices=context.turn.objects.indices,
        keeping=None if collects else _keeping_for_call(context, record, action),
    )


_PLAN = Signature(Form.PLAN, (), False)
_GENERATOR = Signature(Form.GENERATOR, (), False)


def _replace_function(
    context: Context,
    record: ObjectRecord,
    handler: Handler,
    purpose: Literal[Purpose.CLEAR, Purpose.COLLECT],
) -> Handler:
    """Return the handler with fnop's own function in place of the author's."""
    match purpose:
        case Purpose.CLEAR:
            return replace(handler, fn=Desired, signature=_PLAN)
        case Purpose.COLLECT:
            owner = _owner_of(context, record)
            looks = context.settings.echo_timeout_seconds
            fn = partial(_delete_orphan, context.key, record.body, owner, looks)
            return replace(handler, fn=fn, signature=_GENERATOR)


def _owner_of(context: Context, record: ObjectRecord) -> Target:
    """The owner that an orphan's annotation names."""
    for owner in reversed(owners_of(record.body)):
        for by in context.kind.owned_by:
            if owner.is_of(by.resource):
                key = owner.key(by.resource)
                place = key.namespace or None
                found = Target.existing(key.resource, key.name, place)
                return replace(found, uid=owner.uid)
    raise AssertionError("it is collected for an owner of a kind that is followed")


def _delete_orphan(
    key: Key, body: Body, owner: Target, looks: float
) -> Generator[Effect, Any, Again | None]:
    """Delete an orphan, if a live read does not find its owner either.

    After `looks` seconds fnop looks for it again, if the watch does not show the
    deletion.
    """
    found = yield Get(owner)
    if found is not None and found["metadata"].get("uid") == owner.uid:
        return None
    yield Log("info", f"deleting it: {owner}, for which it was made, is gone")
    target = Target.existing(key.resource, key.name, key.namespace or None)
    yield Delete(target, uid=body.uid, propagation="Background")
    return Again(looks, "the watch is yet to show its deletion")


def _keeping_for_call(
    context: Context, record: ObjectRecord, action: CallReconciler
) -> Keeping:
    tell_unconditioned(context)
    handler, purpose = action.handler, action.purpose
    keeper = keeper_of(context, record, handler, clears=purpose is Purpose.CLEAR)
    found = {key: context.turn.objects.body(key) for key in context.children}
    mine = {each.key for each in handler.owned.values()}
    bodies = {k: each for k, each in found.items() if each and k.resource in mine}
    if purpose is Purpose.CLEAR:  # the garbage collector deletes others
        bodies = outside(bodies, keeper.set)
    state = record.reconcilers.get(handler.id) or ReconcilerState()
    known = state.checked, state.answer
    sight = (
        context.turn.streams.unseen,
        lambda: any(map(context.turn.streams.is_blind, mine)),
    )
    owned = Owned(handler.owned, bodies, context.turn.objects.body, *known, *sight)
    if purpose is not Purpose.KEEP:
        return Keeping(owned, keeper, Beside(handler.id))
    return Keeping(owned, keeper, beside_of(record, handler, awaits=action.awaits))


def _time_out(
    context: Context, record: ObjectRecord, handler: Handler, state: ReconcilerState
) -> None:
    """End a handler whose deadline has passed between two calls."""
    assert handler.timeout is not None
    why = state.progress.message or "still waiting"
    judgement = time_out(state.progress, handler.timeout, why)
    context.turn.failed()
    level, line = judgement.level, judgement.line
    context.say_of(handler, level, line, body=record.body, error=why)
    over = ReconcilerState(
        record.body,
        context.children,
        over=True,
        progress=judgement.progress,
        synced=has_failed(line),
    )
    context.put(replace(record, reconcilers={**record.reconcilers, handler.id: over}))


def _stop_call(context: Context, record: ObjectRecord, invocation: Invocation) -> None:
    """End a call that is under way."""
    record = stop(context, record, invocation)
    assert record.work is not None
    runs = left(record.work.reconciler_runs, invocation)
    record = replace(record, work=replace(record.work, reconciler_runs=runs))
    line, ended = "is cancelled", AttemptEnded("cancelled")
    handler, body = invocation.handler, record.body
    context.say_of(handler, "info", line, body=body, ended=ended)
    keep(context, forgotten(record, handler), ends=False)
