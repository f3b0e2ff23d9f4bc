"""The end of a reconcile call: its next call, its children, and its pace."""

from __future__ import annotations

from fnop.core.children.findings import Unkept
from fnop.core.children.marks import outside
from fnop.core.children.siblings import has_failed
from fnop.core.children.synchronise import Synchronised
from fnop.core.handlers.declare.handler import Handler
from fnop.core.memory.progress import FRESH, Progress
from fnop.core.objects.attempt.judging import judgement_of, log_end
from fnop.core.seam.commands import Say
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import ObjectRecord, ReconcilerState
from fnop.core.values.pace import (
    FOLLOWED_CHANGES,
    ROLLOUT_CHANGES,
    Pace,
    is_quiet,
    paced,
)
from fnop.effects import Again
from fnop.effects.desired import StatusCondition
from fnop.effects.structs import replace

__all__ = ["reconciler_ended"]

# A call that is due within this time comes at once: it counts as no wait.
AT_ONCE_SECONDS = 0.1


def reconciler_ended(
    context: Context, record: ObjectRecord, invocation: Invocation, *, unwritten: bool
) -> tuple[ObjectRecord, Say | None]:
    """Return the record after a reconcile call, and the log line to hold.

    A request to be called again is not a failure: it does not count as a retry.
    """
    handler, end = invocation.handler, invocation.performance
    state = record.reconcilers.get(handler.id) or ReconcilerState()
    again = end.again if end.failure is None else None
    uncalled = replace(invocation, phase=replace(end, again=None))
    judgement = judgement_of(context, uncalled, state.progress)
    progress = judgement.progress
    if progress.has_succeeded:
        judgement = replace(judgement, level="debug")
    elif progress.finished == "failure":
        context.turn.failed()
    said = log_end(context, invocation, judgement, unwritten=unwritten)
    requeued = state.start  # meanwhile: nothing else sets it during a call
    after = _with_next_call(context, invocation, state, progress, again)
    if progress.has_succeeded and not unwritten:
        after = replace(after, refused=FRESH)
    after = _with_children(context, invocation, after)
    if after.holds and not state.holds:
        requeued = context.now.mono  # it continues once the finalizer is there
    if requeued is not None:
        after = replace(after, start=requeued)
    after = _slow_down_calls(context, invocation, after, _own_causes(invocation, again))
    return replace(record, reconcilers={**record.reconcilers, handler.id: after}), said


def _with_next_call(
    context: Context,
    invocation: Invocation,
    state: ReconcilerState,
    progress: Progress,
    again: Again | None,
) -> ReconcilerState:
    """The state with the time of the next call, if nothing changes until then."""
    resync, now = invocation.handler.resync, context.now
    if progress.has_succeeded:
        # An answer that an object is gone may be wrong: the watch shows whether it is.
        looks = state.looks + 1 if _is_unshown(invocation) else 0
        pause = context.settings.echo_timeout_seconds * 2 ** min(looks - 1, 6)
        after = None if again is None else again.after
        waits = (after, resync, pause if looks else None)
        first = min((each for each in waits if each is not None), default=None)
        start = None if first is None else now.mono + first
        return replace(state, start=start, progress=FRESH, looks=looks)
    if not progress.is_finished:
        return replace(state, start=progress.due_at(now), progress=progress)
    if resync is not None:
        return replace(state, start=now.mono + resync, progress=FRESH)
    return replace(state, start=None, over=True, progress=progress)


def _with_children(
    context: Context, invocation: Invocation, state: ReconcilerState
) -> ReconcilerState:
    """The state with the outcome of the children, if the call has desired any."""
    end = invocation.performance.synchronised
    holds = state.holds if end is None else end.holds
    held = state.held or bool(holds) or _had_foreign_children(invocation)
    synced = _synced_condition(invocation, end)
    state = replace(state, holds=holds, held=held, synced=synced)
    if end is None:
        return state
    if end.unkept:
        _warn_unkept(context, invocation.handler, end.unkept)
    state = replace(state, checked=end.checked, answer=end.answer)
    if not end.repaired:
        return state
    return replace(
        state, pace=_pace_after_repair(context, invocation, state, end.repaired)
    )


def _is_unshown(invocation: Invocation) -> bool:
    """Whether the watch has yet to show what an answer has reported to a call."""
    end = invocation.performance.synchronised
    return end is not None and end.unshown


def _had_foreign_children(invocation: Invocation) -> bool:
    """Whether the object had children that only the operator deletes with it."""
    keeping = invocation.situation.keeping
    if keeping is None or keeping.keeper is None:
        return False
    return bool(outside(keeping.owned.bodies, keeping.keeper.set))


def _synced_condition(
    invocation: Invocation, end: Synchronised | None
) -> StatusCondition | None:
    """A reconciler's part in `Synced`; None if it desires nothing."""
    if end is not None:
        return end.synced
    failure = invocation.failure
    return None if failure is None else has_failed(str(failure))


def _warn_unkept(
    context: Context, handler: Handler, unkept: tuple[Unkept, ...]
) -> None:
    """Warn about fields that no API server keeps: once for each manifest."""
    for label, applied, fields in unkept:
        context.warn_once(
            f"unkept {context.key} {label} {applied}",
            f"{handler.id} desires {', '.join(fields[:5])} of {label}, which the API "
            "server does not keep: its definition has no such field",
        )


def _own_causes(invocation: Invocation, again: Again | None) -> tuple[str, ...]:
    """The reasons why a reconcile call leads to another one at once.

    A call that a reconciler has asked for, and that asks for others, may form a loop
    with them.
    """
    end = invocation.performance.synchronised
    found = [f"changes {each}" for each in end.changed] if end else []
    if invocation.done.requeues_itself:
        found.append("requeues itself")
    elif invocation.done.requeues_others and invocation.was_asked:
        found.append("requeues others, and is requeued by them")
    if again is not None and again.after < AT_ONCE_SECONDS:
        found.append(f"asks to be called again in {again.after:g} s")
    return tuple(found)


def _slow_down_calls(
    context: Context,
    invocation: Invocation,
    state: ReconcilerState,
    why: tuple[str, ...],
) -> ReconcilerState:
    """Return the state after a call that leads to another one, perhaps without end.

    If a handler loops with itself, each of its calls leads to the next. If a call in
    between leads to nothing, the handler follows others' changes: a child's status, or
    a mapping. Such a series may be long, though two handlers that follow each other may
    also continue without end. So may a handler whose set of children grows, one after
    the other.
    """
    began = invocation.situation.now.mono
    series = state.own
    if is_quiet(series, began):
        series = Pace(most=ROLLOUT_CHANGES)
    if not why:
        has_come_to_rest = (
            invocation.failure is None and not invocation.done.requeues_others
        )
        most = FOLLOWED_CHANGES if has_come_to_rest else series.most
        return replace(state, own=replace(series, most=most))
    handler, end = invocation.handler, invocation.performance.synchronised
    grows = end is not None and end.grows and len(why) == len(end.changed)
    most = series.most
    if grows:
        series = replace(series, most=FOLLOWED_CHANGES)
    own = paced(series, context.now.mono, {handler.id: why}, began=began)
    if own.is_loop:
        context.warn_once(
            f"restless {context.key.resource} {handler.id}",
            f"{handler.id} is called again and again for what it does itself: it "
            f"{' and '.join(why[:5])}, {own.changes} times in a row; the next calls "
            "wait for growing pauses; let it desire the same while the object and its "
            "children are the same, and wait by fnop.desired(again=...)",
        )
    start = state.start
    if start is not None:
        start = max(start, own.until)
    return replace(state, own=replace(own, most=most), start=start)


def _pace_after_repair(
    context: Context,
    invocation: Invocation,
    state: ReconcilerState,
    what: tuple[str, ...],
) -> Pace:
    """Return the pace after a repair: another client may undo the repair each time."""
    handler, began = invocation.handler, invocation.situation.now.mono
    pace = paced(state.pace, context.now.mono, {handler.id: what}, began=began)
    if pace.is_loop:
        context.warn_once(
            f"repairs {context.key.resource} {handler.id} {what}",
            f"{handler.id} repairs {', '.join(what[:5])} again and again: another "
            f"client has changed it {pace.changes} times in a row; the next calls wait "
            "for growing pauses; leave the field to that client, or stop it",
        )
    return pace
