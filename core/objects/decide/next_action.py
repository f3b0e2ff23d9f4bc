"""The next action on one object: start, continue, write, or rest.

`next_action` takes an object, its stored state and the work under way, and returns the
next action. It changes nothing. The executor (`fnop.core.objects.execute.executor`)
executes the action and calls it again.

Guarantees: the finalizer comes first and alone. No handler starts while the watch has
yet to show an own write. One change is handled at a time. The state that is stored as
done is the object as the change has seen it.
"""

from __future__ import annotations

from msgspec import Struct

from fnop.core.memory.observation import see
from fnop.core.objects.decide.actions import (
    Action,
    Cancel,
    Continue,
    ContinueWrite,
    Expire,
    Forget,
    HandleEvent,
    Overlook,
    ReadLive,
    RecordInMemory,
    Rest,
    Write,
    cleared_first,
    collected,
    earlier,
    first_due,
    is_due,
)
from fnop.core.objects.decide.background import (
    StartRun,
    background_action,
    background_due,
)
from fnop.core.objects.decide.change import (
    abandons,
    change_for,
    goes_on,
    handle,
    with_children,
)
from fnop.core.objects.decide.detection import (
    cause_of,
    concerns,
    duty_of,
    selected_for,
)
from fnop.core.objects.decide.mapping_retries import first_event_due
from fnop.core.objects.decide.progression import acts_upon, keeps_back, may_save
from fnop.core.objects.decide.reconcilers import (
    call_due,
    reconciler_action,
    reconciler_due,
)
from fnop.core.objects.decide.recording_progress import release, upkeep
from fnop.core.objects.decide.selection import Circumstances, FilterFailure
from fnop.core.objects.decide.unknown_entries import seen_now
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import IDLE, Expectation, ObjectRecord, Work
from fnop.core.state.writing import Contents
from fnop.core.values.body import Key
from fnop.core.values.cause import HANDLED, Reason
from fnop.core.values.finalizers import Duty
from fnop.core.values.now import Now
from fnop.effects.structs import replace

__all__ = ["Decision", "continue_or_expire", "next_action"]


class Decision(Struct, frozen=True):
    """The next action, and the filters that raised: their handlers are skipped."""

    action: Action
    failures: tuple[FilterFailure, ...] = ()


def next_action(at: Circumstances, record: ObjectRecord) -> Decision:
    """Return the next action about an object; note filters that raise in `at`.

    Raises `Undecided` if a filter of a deletion handler raises: fnop must not release
    the object by mistake. By Kopf's rules, that of any handler of changes counts.
    """
    action = _next_action(at, record)
    if not at.failures:
        return Decision(action)
    # Filters may be called several times; two handlers may share an id (decorators).
    first: dict[int, FilterFailure] = {}
    for each in at.failures:
        first.setdefault(id(each.handler), each)
    return Decision(action, tuple(first.values()))


def _next_action(at: Circumstances, record: ObjectRecord) -> Action:
    work = record.work or IDLE
    action: Action | None = None
    woken: _Woken | None = None
    if work is not IDLE:
        action = abandons(at, record, work) or _continue_work(at, record, work)
        if action is not None:
            return action
        woken = _woken(at, work)
    if woken is not None and not record.left:
        return woken.action
    # Daemons and timers may be due again and again, faster than fnop can serve them.
    # None of them, no change and no deletion may wait forever. So work left over from
    # the last step comes first, and among it the run that has been due for longest.
    if at.kind.background and not record.vanished:
        action = background_action(at, record, work)
    if isinstance(action, StartRun) and woken is not None:
        began = background_due(at, record, work)
        if began is not None and woken.since < began:
            return woken.action
    if action is None:
        action = _change_or_rest(at, record, work)
    return woken.action if woken is not None and isinstance(action, Rest) else action


class _Woken(Struct, frozen=True):
    """The next action of a daemon or timer under way, and since when it is due."""

    since: float
    action: Continue | Expire


def _woken(at: Circumstances, work: Work) -> _Woken | None:
    """The conversation of a daemon or timer that has been due for longest."""
    if not work.background_runs:
        return None
    found = [
        _Woken(each.due, action)
        for each in work.background_runs
        if each.due is not None and each.due <= at.now.mono
        if (action := continue_or_expire(each, at.now)) is not None
    ]
    return min(found, key=lambda each: each.since, default=None)


def _change_or_rest(at: Circumstances, record: ObjectRecord, work: Work) -> Action:
    if at.kind.reconcilers or work.reconciler_runs:
        action = reconciler_action(at, record, work)
        if action is not None:
            return action
    if work.running and _is_unwanted(at, record, work):
        return Cancel()
    if record.gone:
        others = (*work.running, *work.event_runs, *work.background_runs)
        if others or (work.pending_events and not at.stopping):
            waking = _next_due(at, work, others)
            return Rest(earlier(waking, _events_due(at, record, work)))
        if at.log_until is not None and at.log_until > at.now.mono:
            return Rest(at.log_until)
        return Forget()
    if record.vanished and record.expected is not None:
        return _await_expectation(at, record.expected) or Rest(
            earlier(_wake_time(at, record, work), record.expected.due)
        )
    return _write_or_change(at, record, work)


def _continue_work(
    at: Circumstances, record: ObjectRecord, work: Work
) -> Continue | HandleEvent | Expire | None:
    """The next action of work that can continue now."""
    invocations = work.invocations
    if not (invocations or work.pending_events):
        return None
    for each in invocations:
        if each.ready or _is_let_go(at, record, each):
            return Continue(each)
    busy = {each.handler.id for each in work.event_runs}
    is_paused = keeps_back(at, record) or (
        record.backoff.pace.is_loop and work.writing is not None
    )
    for pending_event in () if is_paused else work.pending_events:
        is_free = pending_event.handler.id not in busy and not at.stopping
        if is_free and pending_event.is_due(at.now.mono):
            return HandleEvent(pending_event)
    for each in (*work.running, *work.event_runs, *work.reconciler_runs):
        action = continue_or_expire(each, at.now)
        if action is not None:
            return action
    return None


def continue_or_expire(each: Invocation, now: Now) -> Continue | Expire | None:
    """The next action of a conversation whose time has come."""
    if each.wake is not None and each.wake <= now.mono:
        return Continue(each)
    due = each.in_flight.due if each.in_flight else None
    if due is not None and due <= now.mono:
        return Continue(each)
    is_late = each.deadline is not None and each.deadline <= now.mono
    return Expire(each) if is_late else None


def _is_let_go(at: Circumstances, record: ObjectRecord, invocation: Invocation) -> bool:
    """Whether an effect that is held for its attempt's mark may be sent now."""
    if invocation.in_flight is None or not invocation.in_flight.awaits_mark:
        return False
    own_progress = record.stored.progress.get(invocation.handler.id)
    is_marked = own_progress is not None and own_progress.acted == acts_upon(
        at, invocation
    )
    return is_marked or not may_save(at, record)


def _is_unwanted(at: Circumstances, record: ObjectRecord, work: Work) -> bool:
    """Whether the change that the conversations are about is outdated (R16).

    Kopf sees the deletion of an object only after the call of a handler: what it has
    made outside is known by its end alone.
    """
    if at.cancels_at is not None and at.cancels_at <= at.now.mono:
        return True
    if at.settings.as_kopf and all(each.handler.function for each in work.running):
        return False
    if record.gone:
        return True
    reason = work.change.reason if work.change else None
    return record.body.is_deleting and reason is not Reason.DELETE


def _next_due(
    at: Circumstances, work: Work, invocations: tuple[Invocation, ...]
) -> float | None:
    """The time when the first of these conversations is due, or to be cancelled."""
    return earlier(first_due(invocations), at.cancels_at if work.running else None)


def _wake_time(at: Circumstances, record: ObjectRecord, work: Work) -> float | None:
    """The time when work is due that does not wait for a write of the object."""
    waking = None if work is IDLE else _next_due(at, work, work.invocations)
    if work.pending_events:
        waking = earlier(waking, _events_due(at, record, work))
    if record.vanished or not at.kind.background:
        return waking
    return earlier(waking, background_due(at, record, work))


def _events_due(at: Circumstances, record: ObjectRecord, work: Work) -> float | None:
    """The time when waiting event handlers are called next."""
    if at.stopping:
        return None
    if keeps_back(at, record):
        return record.backoff.pace.until
    return first_event_due(work.pending_events, at.now.mono)


def _write_or_change(at: Circumstances, record: ObjectRecord, work: Work) -> Action:
    waking = _wake_time(at, record, work)
    if work.writing is not None:
        if is_due(work.writing.due, at):
            return ContinueWrite(work.writing)
        return Rest(earlier(waking, work.writing.due))
    if record.expected is not None and not at.stopping:
        look = _await_expectation(at, record.expected)
        if look is not None:
            return look
        waking = earlier(waking, record.expected.due)
        if not record.expected.passes:
            return Rest(waking)
    if work.outstanding and at.now.mono < work.outstanding_until:
        return Rest(earlier(waking, work.outstanding_until))
    if work.reconciler_runs:
        return Rest(waking)  # one at a time for one object
    if (orphan := collected(at, record)) is not None:
        return orphan
    if not work.running and _is_being_written(at, record, work):
        return Rest(waking)
    action = _change(at, record, work)
    if not isinstance(action, Rest):
        return action
    waking = earlier(waking, action.until)
    return (
        _reconcile_or_rest(at, record, work, waking)
        if at.kind.reconcilers
        else Rest(waking)
    )


def _reconcile_or_rest(
    at: Circumstances, record: ObjectRecord, work: Work, waking: float | None
) -> Action:
    """The reconcile call that is due; no work on changes is left."""
    if keeps_back(at, record):
        return Rest(earlier(waking, record.backoff.pace.until))
    call = call_due(at, record, work)
    return call or Rest(earlier(waking, reconciler_due(at, record, work)))


def _is_being_written(at: Circumstances, record: ObjectRecord, work: Work) -> bool:
    """Whether a daemon, a timer or an event handler is changing the object now.

    The watch may show the change first. Only the answer shows who made it.
    """
    if not (work.background_runs or work.event_runs):
        return False
    body = record.body
    key = Key(at.kind.resource.key, body.namespace or "", body.name)
    return any(
        each.in_flight is not None
        and each.in_flight.base is not None
        and each.in_flight.id is not None
        and each.in_flight.requests[0].address.key == key
        for each in (*work.background_runs, *work.event_runs)
    )


def _await_expectation(at: Circumstances, expected: Expectation) -> ReadLive | None:
    """Read live when the expectation is overdue: fnop never acts blindly (R24)."""
    return ReadLive() if is_due(expected.due, at) else None


def _change(at: Circumstances, record: ObjectRecord, work: Work) -> Action:
    """The next action of a change: detect it, hold the object, handle it, record it."""
    if work.change is not None:
        change = with_children(at, record, work, work.change)
        if goes_on(at, record, work, change):
            return handle(at, record, work, change)
    duty = duty_of(at, record)
    if duty is not Duty.NONE and not at.stopping:
        if (
            record.backoff.contention.until > at.now.mono
            and not record.body.is_deleting
        ):
            return Rest(record.backoff.contention.until)
        if duty is Duty.REMOVE:
            return release(at, record, ends=False)
        return Write(Contents(finalizer=duty))
    if not concerns(at, record):
        clear = cleared_first(at, record) if record.body.is_deleting else None
        return clear or _overlook_state(at, record) or _write_event_patches(work)
    seen = seen_now(at, record)
    cause = cause_of(at, record, seen)
    if cause.reason not in HANDLED:
        return upkeep(at, record, work, cause, seen)
    selected = selected_for(at, record, cause, seen)
    if cause.reason is Reason.CREATE and not selected and record.overlooked:
        # It existed and no handler matched. Now update handlers match.
        return RecordInMemory(
            replace(record.stored, seen=record.overlooked), ends=False
        )
    change = change_for(at, record, cause, seen, selected)
    return handle(at, record, work, with_children(at, record, work, change))


def _overlook_state(at: Circumstances, record: ObjectRecord) -> Overlook | None:
    """Remember the object's state while no handler matches.

    fnop writes nothing on it. If a filter of an update handler matches later, for
    example because a field appears, that is a change of this state. For Kopf it is the
    creation.
    """
    if not at.kind.overlooks or record.stored.seen is not None or at.settings.as_kopf:
        return None
    seen = see(record.body, at.kind.observation)
    return None if record.overlooked == seen else Overlook(seen)


def _write_event_patches(work: Work) -> Action:
    """Write the patches of event handlers when there is nothing else to write."""
    if work.patches or work.results:
        return Write(Contents(work.patches, work.results))
    return Rest()
