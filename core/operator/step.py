"""The operator as a fold: `step(program, state, now, input) -> (state', commands)`.

One step takes in one fact from the world, then does a few units of due work. If more is
due, the alarm that it requests is due at once. It never raises, never blocks, reads no
clock, and calls the author's code at most once.

The path of a watch event: it is folded into the store (fnop.core.objects.store.store),
and the object's key goes into the work queue. `serve`
(fnop.core.objects.execute.executor) takes the key out. It executes the actions that
`next_action` (fnop.core.objects.decide.next_action) decides on.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run.invocation import LiveCache
from fnop.core.objects.attempt.attempts import answer_effect
from fnop.core.objects.decide.actions import earlier
from fnop.core.objects.decide.background import runs_due
from fnop.core.objects.execute.containment import guarded
from fnop.core.objects.execute.executor import serve
from fnop.core.objects.report.events import (
    event_posted,
    post_event,
    report_denial,
    report_noted,
)
from fnop.core.objects.store.indexing import are_filled, empty_indices
from fnop.core.objects.store.log_reading import go_on
from fnop.core.objects.write.expectations import answer_expectation
from fnop.core.objects.write.write import answer_write
from fnop.core.operator.absent_namespaces import on_namespace
from fnop.core.operator.activities import begin_activity, take_activity
from fnop.core.operator.coordination import (
    advance_election,
    advance_peering,
    begin,
    has_gone,
    keep_time,
    leave,
    settle,
    wake,
)
from fnop.core.operator.following import open_stream
from fnop.core.operator.logs import follow_logs, logs_due, on_log_ended, on_log_lines
from fnop.core.operator.survey import discover, on_document
from fnop.core.operator.watching import (
    on_bookmark,
    on_list_done,
    on_list_item,
    on_stream_ended,
    on_watch_event,
)
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import (
    AlarmRang,
    Answered,
    Bookmark,
    EventPosted,
    Input,
    ListDone,
    ListItem,
    LogLines,
    Started,
    StopRequested,
    StreamEnded,
    WatchEvent,
    WriteDenied,
)
from fnop.core.state.activity import ACTIVITY
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.state.lifecycle import (
    CLEANUP_SECONDS,
    IN_SERVICE,
    SUSPENDED,
    Milestone,
    Phase,
    advance,
    is_late,
    repeats_stop,
    stopping,
)
from fnop.core.state.record import IDLE, ObjectRecord, Work
from fnop.core.state.requests import (
    ForDiscovery,
    ForEffect,
    ForEvent,
    ForExpectation,
    ForLease,
    ForNamespace,
    ForPeers,
    ForWrite,
    under_way,
)
from fnop.core.state.turn import NEW, State, Turn
from fnop.core.values.body import Key
from fnop.core.values.now import Now
from fnop.core.values.table import NOTHING
from fnop.effects.outcomes import Outcome, Refused
from fnop.effects.structs import replace

__all__ = ["NEW", "State", "background_horizon", "is_settled", "step"]

# Timers that are due later than this are not awaited.
PATIENCE_SECONDS = 3600.0
# The maximum number of objects served in one step without a call of the author's code.
UNITS_MAX = 4


def step(
    program: Program, state: State, now: Now, input: Input, live: LiveCache
) -> tuple[State, tuple[Command, ...]]:
    """Return the next state and the commands after one input.

    Total and pure: equal programs, states, times and inputs give equal results, in any
    process. `live` are conversations that wait for an answer, which the caller keeps
    from step to step. Without them the result is the same, by replaying their journals.
    """
    turn = Turn(program, state, now, live)
    keep_time(turn)
    _take_input(turn, input)
    # Keys that become due and are not served are queued in the order of these parts.
    for part in (_work, settle, _advance_phase):
        part(turn)
        if turn.objects.fresh is not None:
            turn.objects.enqueue()
    if turn.noted:
        report_noted(turn)
    turn.set_alarm(_next_alarm(turn))
    return turn.close(), tuple(turn.commands)


def is_settled(state: State) -> bool:
    """Whether nothing is under way and nothing is due, now or later.

    A replica that stands by will lead when the other replica's lease ends.
    """
    phase = state.lifecycle.phase
    return phase is Phase.ENDED or (
        phase in IN_SERVICE
        and phase is not Phase.STANDBY
        and not state.requests.pending
        and not len(state.objects.queue)
        and state.survey.discovery is None
        and state.survey.silent_since is None
        and not state.lifecycle.activities
        and state.streams.are_at_rest
        and state.logs.are_at_rest
    )


def background_horizon(
    state: State, now: Now, outside: Iterable[float] = ()
) -> float | None:
    """The time when all clock-driven work has run once, if nothing else happens.

    This is the work of daemons, timers, and reconcilers that have asked to be called
    again. It is the latest of their next moments (R36). The next moments of waiting
    impure daemons are known only `outside`. Moments later than an hour from `now`, such
    as the new year, are not awaited: without an earlier one all work has run (`-inf`).
    None if a change is being handled, a request is pending, or nothing at all is due
    later.
    """
    if state.requests.pending or state.lifecycle.phase is not Phase.SERVING:
        return None
    moments: list[float] = list(outside)
    for key, (due, _) in state.objects.queue.due.items():
        record = state.objects.records.get(key)
        if record is None or not _only_repeats(record, now):
            return None
        work = record.work or IDLE
        if any(_sends_again(each) for each in work.background_runs):
            return None
        moments.append(due)
        moments += (each.wake for each in work.background_runs if each.wake)
        moments += runs_due(state.survey.kinds[key.resource], record, work)
        starts = (each.start for each in record.reconcilers.values())
        moments += (each for each in starts if each is not None)
    if not moments:
        return None
    near = [each for each in moments if each <= now.mono + PATIENCE_SECONDS]
    return max(near, default=-inf)


def _sends_again(invocation: Invocation) -> bool:
    """Whether a request must be sent again; the call of an impure daemon only lasts."""
    in_flight = invocation.in_flight
    return in_flight is not None and in_flight.id is None


def _only_repeats(record: ObjectRecord, now: Now) -> bool:
    """Whether an object waits only for daemons, timers and `again=`.

    Another object may have requested a reconciler that is due by now.
    """
    work, reconcilers = record.work, record.reconcilers.values()
    if record.backoff.paused_until > now.mono:
        return False
    if work is not None and not replace(work, background_runs=()).is_over:
        return False
    if any(each.has_failed and not each.over for each in reconcilers):
        return False
    starts = [each.start for each in reconcilers if each.start is not None]
    if any(start <= now.mono for start in starts):
        return False
    return bool(record.background or starts)


# -------------------------------------------------------------------- fold


def _take_input(turn: Turn, input: Input) -> None:
    match input:
        case WatchEvent() | ListItem() | ListDone() | Bookmark():
            _on_stream(turn, input)
        case LogLines() | StreamEnded():
            _on_log(turn, input)
        case Answered(id, outcome):
            turn.answer = outcome
            _on_answer(turn, id, outcome)
        case AlarmRang():
            turn.alarm = None
        case Started(seed):
            _on_started(turn, seed)
        case StopRequested(reason):
            _on_stop(turn, reason)
        case WriteDenied():
            report_denial(turn, input)
        case EventPosted():
            post_event(turn, input)


def _on_stream(turn: Turn, input: WatchEvent | ListItem | ListDone | Bookmark) -> None:
    match input:
        case WatchEvent(stream, type, body):
            on_watch_event(turn, stream, type, body)
        case ListItem(stream, body):
            on_list_item(turn, stream, body)
        case ListDone(stream, version, token):
            on_list_done(turn, stream, version, token)
        case Bookmark(stream, version):
            on_bookmark(turn, stream, version)


def _on_log(turn: Turn, input: LogLines | StreamEnded) -> None:
    match input:
        case LogLines():
            on_log_lines(turn, input)
        case StreamEnded() if turn.logs.of(input.stream) is None:
            on_stream_ended(turn, input)
        case StreamEnded():
            on_log_ended(turn, input)


def _on_started(turn: Turn, seed: str) -> None:
    if turn.lifecycle.phase is not Phase.NEW:
        return
    turn.counters = replace(turn.counters, seed=seed)
    turn.objects.indices = empty_indices(turn.program)
    begin(turn)
    turn.lifecycle = advance(turn.lifecycle, turn.now, Milestone.BEGUN)
    begin_activity(turn, Role.STARTUP)


def _on_answer(turn: Turn, number: int, outcome: Outcome) -> None:
    ticket, turn.requests = turn.requests.answered(number)
    if ticket is None:
        return
    match ticket:
        case ForEffect(key=key):
            context = Context(turn, key)
            guarded(
                context,
                context.record,
                lambda: answer_effect(context, number, ticket, outcome),
            )
        case ForWrite(key=key):
            context = Context(turn, key)
            guarded(
                context, context.record, lambda: answer_write(context, number, outcome)
            )
        case ForExpectation(key=key):
            context = Context(turn, key)
            guarded(
                context,
                context.record,
                lambda: answer_expectation(context, ticket, outcome),
            )
        case ForEvent(key=key, name=name):
            _on_event_posted(Context(turn, key), name, outcome)
        case ForPeers(number=asked):
            advance_peering(turn, Answered(asked, outcome))
        case ForLease(number=asked):
            advance_election(turn, Answered(asked, outcome))
        case ForDiscovery():
            on_document(turn, number, outcome)
        case ForNamespace(name=name):
            on_namespace(turn, name, outcome)


def _on_event_posted(context: Context, name: str, outcome: Outcome) -> None:
    record, message = context.record, getattr(outcome, "message", None)
    if record is not None:
        context.put(event_posted(record, name, outcome))
    if message:
        text = f"a Kubernetes Event could not be reported: {message}"
        if isinstance(outcome, Refused) and outcome.status in (401, 403):
            context.warn_once("events refused", text)
        else:
            context.say("debug", text)


def _on_stop(turn: Turn, reason: str) -> None:
    if repeats_stop(turn.lifecycle, turn.now):
        turn.end(1, f"stopped at once: {reason} came again")
    grace = turn.settings.grace_period_seconds
    before, turn.lifecycle = turn.lifecycle, stopping(turn.lifecycle, turn.now, grace)
    if turn.lifecycle is before:
        return
    turn.say("info", f"stopping: {reason}")
    turn.close_streams()
    turn.survey = replace(turn.survey, discovery=None, due=None)
    for key in turn.lifecycle.activities:
        turn.lifecycle = turn.lifecycle.with_activity_due(key, turn.now.mono)
    for key, record in turn.objects.all():
        if record.work is not None:
            _hurry_write(turn, key, record, record.work)


def _hurry_write(turn: Turn, key: Key, record: ObjectRecord, work: Work) -> None:
    """Retry a waiting write at once, for the last time before the end."""
    if work.writing is not None and work.writing.due is not None:
        writing = replace(work.writing, due=turn.now.mono)
        turn.objects.put(key, replace(record, work=replace(work, writing=writing)))
    turn.objects.due(key)


# -------------------------------------------------------------------- work


def _work(turn: Turn) -> None:
    """Do the due work: open streams, discover kinds, serve objects.

    Objects are served only while a request may be sent.
    """
    if turn.streams.may_wait:
        for stream in turn.streams.waiting():
            if stream.due <= turn.now.mono:
                open_stream(turn, stream)
    if turn.logs.read:
        follow_logs(turn)
    if _is_due(turn.survey.due, turn) and turn.survey.discovery is None:
        discover(turn)
    for _ in range(UNITS_MAX):
        key = _take_due(turn) if _may_serve(turn) else None
        if key is None:
            break
        context = Context(turn, key)
        serve(context)
        if turn.logs.read:
            go_on(context)
        if turn.drives:
            break


def _take_due(turn: Turn) -> Key | None:
    """The next key; activities come before all objects."""
    activity = take_activity(turn) if turn.lifecycle.activities else None
    return activity or turn.objects.take_due()


def _next_due(turn: Turn) -> float | None:
    """The monotonic time when an object, or an activity, is due next."""
    due = turn.objects.queue.next_due()
    if turn.lifecycle.activities:
        for _, activity in turn.lifecycle.served_activities:
            due = earlier(due, activity.due)
    return due


def _is_due(moment: float | None, turn: Turn) -> bool:
    return moment is not None and moment <= turn.now.mono


def _may_serve(turn: Turn) -> bool:
    """Whether an object may be served: a request can be sent, indices are filled."""
    if turn.lifecycle.phase in SUSPENDED:
        return True  # it needs no request
    # Calls hold no slot (R13).
    under_way = len(turn.requests.pending) - turn.requests.calls
    if under_way >= turn.settings.request_concurrency:
        return False
    awaits = turn.objects.indices or turn.objects.family.owners
    return not awaits or are_filled(turn)


def _advance_phase(turn: Turn) -> None:
    """Enter the next phases of the operator's life, as far as their events occurred."""
    if turn.lifecycle.phase is Phase.SERVING:
        return  # only a request or a verdict ends this phase
    while (event := _reached_milestone(turn)) is not None:
        turn.lifecycle = advance(turn.lifecycle, turn.now, event)
        _enter_phase(turn)
    match turn.lifecycle.phase:
        case Phase.STARTING if ACTIVITY not in turn.lifecycle.activities:
            turn.end(1, "a startup handler failed; its error is above")
        case Phase.STOPPING if _is_due(turn.lifecycle.tell_at, turn):
            turn.lifecycle = replace(turn.lifecycle, tell_at=None)
            turn.say("info", _words_for_wait(turn))
        case Phase.CLEANING if is_late(turn.lifecycle, turn.now):
            limit = f"{CLEANUP_SECONDS:g} s"
            turn.end(1, f"stopped; the cleanup handlers took longer than {limit}")
        case Phase.LEAVING if has_gone(turn) or is_late(turn.lifecycle, turn.now):
            turn.end(turn.lifecycle.exit_status, "stopped")
        case _:
            pass


def _reached_milestone(turn: Turn) -> Milestone | None:
    """The event that ends the present phase, if it has occurred."""
    match turn.lifecycle.phase:
        case Phase.STARTING if ACTIVITY not in turn.lifecycle.activities:
            return None if turn.lifecycle.exit_status else Milestone.STARTED
        case Phase.STOPPING if _is_quiet(turn):
            return Milestone.QUIET
        case Phase.CLEANING if ACTIVITY not in turn.lifecycle.activities:
            return Milestone.CLEANED
        case _:
            return None


def _enter_phase(turn: Turn) -> None:
    """Do the first work of a phase."""
    match turn.lifecycle.phase:
        case Phase.DISCOVERING:
            discover(turn)
        case Phase.CLEANING:
            to_clean = _has_begun(turn)
            turn.objects.drop_all()
            turn.lifecycle = replace(turn.lifecycle, activities=NOTHING)
            turn.live.clear()
            if to_clean:
                begin_activity(turn, Role.CLEANUP)
        case Phase.LEAVING:
            leave(turn)
        case _:
            pass


def _has_begun(turn: Turn) -> bool:
    """Whether there is anything to clean up: startup is over, or a part of it is."""
    startup = turn.lifecycle.activities.get(ACTIVITY)
    if startup is None:
        return bool(turn.counters.seed)
    work = startup.record.work or IDLE
    return any(each.has_succeeded for each in work.progress.values())


def _is_quiet(turn: Turn) -> bool:
    """Whether a stopping operator has nothing under way, or waited long enough."""
    if is_late(turn.lifecycle, turn.now):
        return True
    due = _next_due(turn)
    return not turn.requests.pending and (due is None or due > turn.now.mono)


def _words_for_wait(turn: Turn) -> str:
    """The log line that says what a stop waits for, and how long at most."""
    assert turn.lifecycle.stop_by is not None
    left = turn.lifecycle.stop_by - turn.now.mono
    what = under_way(turn.requests) or "attempts to end"
    return f"stopping: waits for {what}, at most {left:.0f} s more"


def _next_alarm(turn: Turn) -> float | None:
    """The time when work is due next, if nothing happens before."""
    if turn.lifecycle.phase is Phase.ENDED:
        return None
    moments: list[float] = []
    if turn.streams.may_wait:
        moments += (stream.due for stream in turn.streams.waiting())
    due = _next_due(turn)
    if due is not None and _may_serve(turn):
        moments.append(due)
    if turn.logs.read and (opening := logs_due(turn)) is not None:
        moments.append(opening)
    if turn.survey.due is not None and turn.survey.discovery is None:
        moments.append(turn.survey.due)
    if turn.lifecycle.stop_by is not None:
        moments.append(turn.lifecycle.stop_by)
    if turn.lifecycle.phase is Phase.STOPPING and turn.lifecycle.tell_at is not None:
        moments.append(turn.lifecycle.tell_at)
    moments += wake(turn)
    return min(moments, default=None)
