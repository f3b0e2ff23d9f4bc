"""One attempt of a handler: call it, perform its effects, judge its end.

An attempt is an `Invocation`. It continues until it waits for something. When its
function has ended and its plan is done, fnop judges the attempt. It keeps the attempt's
changes of the object for the object's next write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Family
from fnop.core.handlers.declare.writers import DaemonStoppingReason
from fnop.core.handlers.run import invocation as driving
from fnop.core.memory.progress import (
    Failure,
)
from fnop.core.objects.attempt.awaited_changes import (
    after_awaited_change,
    own_answer,
    pace_another,
)
from fnop.core.objects.attempt.effects import is_own, perform, send, tell
from fnop.core.objects.attempt.ending import finish, keep
from fnop.core.objects.attempt.judging import report
from fnop.core.objects.report.explaining import tell_answered
from fnop.core.objects.report.tracing import trace_advanced, trace_given
from fnop.core.objects.write.expectations import learn, shown, vanished
from fnop.core.seam.commands import Interrupt
from fnop.core.seam.effect_rules import rule_of
from fnop.core.state.context import Context
from fnop.core.state.in_flight import InFlight, proceed
from fnop.core.state.invocation import (
    Conversation,
    Invocation,
    Pause,
    Performance,
)
from fnop.core.state.record import IDLE, Declared, ObjectRecord, Work
from fnop.core.state.requests import ForEffect
from fnop.core.values.backoff import is_worth_logging
from fnop.core.values.body import Body, Key
from fnop.effects import (
    Again,
    Answer,
    Applied,
    Apply,
    Create,
    Delete,
    Effect,
    Execute,
    Missing,
    Outcome,
    Patch,
    Raised,
    Requeue,
    Return,
    Wait,
)
from fnop.effects.outcomes import (
    TOO_LARGE,
    Conflict,
    Refused,
    Unknown,
    Unreachable,
)
from fnop.effects.regexes import regex
from fnop.effects.structs import replace
from fnop.effects.values import canonical
from fnop.effects.wire import digest_of, to_wire

__all__ = [
    "OUTSTANDING_SECONDS",
    "answer_effect",
    "expire",
    "go_on",
    "interrupt",
    "let_go",
    "runs_outside",
    "stop",
    "store",
]

# A conversation remembers every answer (R12).
JOURNAL_ENTRIES_MAX = 2_000
JOURNAL_BYTES_MAX = 4 * 1024 * 1024
# The number of times a reconciler's request is sent while its outcome is unknown.
RECONCILER_TRIES = 2
# The longest wait for the request of a cancelled conversation.
OUTSTANDING_SECONDS = 60.0
# A wait can be this long only on the server's advice: then fnop logs each one.
_LONG_SECONDS = 10.0


def let_go(
    context: Context,
    record: ObjectRecord,
    reason: DaemonStoppingReason = DaemonStoppingReason.RESOURCE_DELETED,
) -> None:
    """Drop the conversations about an object, for example about one that is gone.

    An impure daemon continues outside until fnop requests it to stop, with the reason.
    A daemon that does not take `stopped` is cancelled.
    """
    work = record.work or IDLE
    for each in (*work.running, *work.reconciler_runs, *work.background_runs):
        context.turn.live.drop(_live_key(context.key, each))
    for each in work.background_runs:
        is_deaf = not each.handler.signature.takes("stopped")
        interrupt(context, each, reason.value, cancel=is_deaf)


def _live_key(key: Key, invocation: Invocation) -> tuple[Any, ...]:
    return (*key, invocation.serial)


def go_on(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    ends: Mapping[str, Any] | None = None,
) -> None:
    """Advance one invocation as far as it can go now.

    `ends` are the ends of the sub-handlers that the invocation awaits.
    """
    if isinstance(invocation.awaits, InFlight):
        _send_again(context, record, invocation, invocation.awaits)
        return
    if ends is not None:
        invocation = _with_ends(context, invocation, ends)
    elif invocation.wake is not None:
        invocation = _woken(context, record, invocation)
    if isinstance(invocation.phase, Conversation):
        record, invocation = _call_author(context, record, invocation)
    _perform_plan(context, record, invocation)


def _with_ends(
    context: Context, invocation: Invocation, ends: Mapping[str, Any]
) -> Invocation:
    """Return the conversation with the ends of the sub-handlers that it awaited."""
    invocation = _with_journal_entry(context, invocation, Answer(dict(ends)))
    phase = invocation.phase
    assert isinstance(phase, Conversation)
    gathered = {f"{invocation.handler.id}/{name}" for name in ends}
    return replace(invocation, phase=replace(phase, gathered=phase.gathered | gathered))


def _send_again(
    context: Context, record: ObjectRecord, invocation: Invocation, in_flight: InFlight
) -> None:
    """Send a request that is due, once its kind is discovered."""
    if not in_flight.is_unaddressed:
        store(context, record, send(context, invocation, in_flight))
        return
    record, found, outcome = perform(context, record, invocation, in_flight.effect)
    if outcome is not None:
        _answered(context, record, invocation, outcome)
        return
    if found.in_flight is not None and found.in_flight.is_unaddressed:
        _tell_waiting(context, invocation, found.in_flight)
    store(context, record, found)


def _tell_waiting(
    context: Context, invocation: Invocation, in_flight: InFlight
) -> None:
    """Log a repeated try from time to time, and each long wait."""
    wait = (in_flight.due or 0.0) - context.now.mono
    if wait > _LONG_SECONDS:
        line = f"waits for {in_flight.label}, which is tried again in {wait:.0f} s"
        report(context, invocation, "warning", f"{line}: {in_flight.why}")
    elif is_worth_logging(in_flight.tries, first=2):
        line = f"waits for {in_flight.label}, which is tried again: {in_flight.why}"
        report(context, invocation, "warning", line)


def _perform_plan(
    context: Context, record: ObjectRecord, invocation: Invocation
) -> None:
    """Perform the plan of an ended function; then the attempt is over."""
    record, invocation = _run_plan(context, record, invocation)
    phase = invocation.phase
    is_over = isinstance(phase, Performance) and not phase.plan
    if is_over and not context.keeps_still:
        finish(context, record, invocation)
    else:
        store(context, record, invocation)


def store(context: Context, record: ObjectRecord, invocation: Invocation) -> None:
    work = record.work or IDLE
    work = replace(
        work,
        running=_with_changed(work.running, invocation),
        event_runs=_with_changed(work.event_runs, invocation),
        background_runs=_with_changed(work.background_runs, invocation),
        reconciler_runs=_with_changed(work.reconciler_runs, invocation),
    )
    context.put(replace(record, work=work))


def _with_changed(
    invocations: tuple[Invocation, ...], changed: Invocation
) -> tuple[Invocation, ...]:
    return tuple(
        [changed if each.serial == changed.serial else each for each in invocations]
    )


def _woken(
    context: Context, record: ObjectRecord, invocation: Invocation
) -> Invocation:
    """Return the invocation after a sleep: a conversation gets the current object."""
    phase = invocation.phase
    if isinstance(phase, Performance):
        rest = replace(phase, plan=phase.plan[1:])
        return replace(invocation, phase=rest, awaits=None)
    if isinstance(phase.asked, Wait):
        return _with_journal_entry(
            context, invocation, Answer(bool(invocation.stopped))
        )
    data = None if invocation.situation.body is None else record.body.data
    return _with_journal_entry(context, invocation, Applied(data))


def _with_journal_entry(
    context: Context, invocation: Invocation, outcome: Outcome
) -> Invocation:
    """Return the conversation with an answer, ready to continue."""
    phase = invocation.phase
    assert isinstance(phase, Conversation)
    assert phase.asked is not None
    trace_given(context, invocation, outcome)
    entry = driving.JournalEntry(
        digest_of(phase.asked), outcome, context.now.wall, invocation.stopped
    )
    phase = replace(
        phase,
        journal=(*phase.journal, entry),
        length=phase.length + len(canonical(to_wire(outcome))),
        asked=None,
    )
    return replace(invocation, phase=phase, awaits=None)


def _call_author(
    context: Context, record: ObjectRecord, invocation: Invocation
) -> tuple[ObjectRecord, Invocation]:
    """Call the author's code once: to its next effect, or to its end."""
    phase = invocation.phase
    assert isinstance(phase, Conversation)
    if len(phase.journal) > JOURNAL_ENTRIES_MAX or phase.length > JOURNAL_BYTES_MAX:
        return record, _outgrown(context, invocation, phase)
    context.turn.drives += 1
    found = driving.advance(
        invocation.situation,
        phase.journal,
        context.turn.live,
        _live_key(context.key, invocation),
    )
    tell(context, invocation, found.lines)
    trace_advanced(context, invocation, found)
    if found.desires is not None:
        phase = replace(phase, keeps=True)
    if found.children:
        record = _with_declared(record, invocation, found.children)
    if found.asks is not None:
        asking = replace(phase, asked=found.asks)
        invocation = replace(invocation, phase=asking)
        return _perform_effect(context, record, invocation, found.asks)
    end = found.end
    assert end is not None
    if end.settings is not None:
        context.configure(end.settings)
    performance = Performance(
        end.plan,
        end.patches,
        failure=end.failure,
        parts=frozenset(each.id for each in end.children) - phase.gathered,
        synchronised=end.synchronised,
    )
    return record, replace(invocation, phase=performance)


def _with_declared(
    record: ObjectRecord, invocation: Invocation, children: tuple[Handler, ...]
) -> ObjectRecord:
    """The record with the sub-handlers of an attempt; the change adds them later."""
    work, name = record.work, invocation.handler.id
    assert work is not None
    aim = work.progress[name].aim
    declared = {**work.declared, name: Declared(aim, children)}
    return replace(record, work=replace(work, declared=declared))


def _outgrown(
    context: Context, invocation: Invocation, phase: Conversation
) -> Invocation:
    """End a conversation whose journal is too long: it starts again (R12)."""
    driving.cancel(
        invocation.situation,
        _delivered_answers(invocation, phase),
        context.turn.live,
        _live_key(context.key, invocation),
    )
    again = Again(1.0, "the conversation has grown too long to be remembered")
    return replace(invocation, phase=Performance(again=again))


# ----------------------------------------------------------------- effects


def _perform_effect(
    context: Context, record: ObjectRecord, invocation: Invocation, effect: Effect
) -> tuple[ObjectRecord, Invocation]:
    """Perform the effect that a conversation awaits."""
    invocation = invocation.acting()
    record, invocation, outcome = perform(context, record, invocation, effect)
    if outcome is not None:
        invocation = _with_journal_entry(context, invocation, outcome)
    return record, invocation


def _run_plan(
    context: Context, record: ObjectRecord, invocation: Invocation
) -> tuple[ObjectRecord, Invocation]:
    """Perform a plan's effects in their order, until one has to be awaited.

    After a `Freeze`, fnop performs nothing more: it defers the attempt.
    """
    while invocation.awaits is None:
        phase = invocation.phase
        if not isinstance(phase, Performance):
            break
        if context.keeps_still:
            return record, replace(invocation, awaits=Pause())
        if not phase.plan:
            break
        effect, rest = phase.plan[0], replace(phase, plan=phase.plan[1:])
        match effect:
            case Patch() if is_own(effect, invocation):
                # It is fused into the last write, at any position in the plan (R4).
                rest = replace(rest, patches=(*rest.patches, effect))
            case Return(value=value):
                rest = replace(rest, result=None if value is None else effect)
            case Again():
                rest = replace(rest, again=effect)
            case Execute():
                pass  # sub-handlers run anyway
            case Requeue():
                record, invocation = _run_requeues(context, record, invocation, phase)
                continue
            case _:
                invocation = invocation.acting()
                record, invocation, outcome = perform(
                    context, record, invocation, effect
                )
                if outcome is not None:
                    invocation = _after_plan_effect(invocation, outcome)
                continue
        invocation = replace(invocation, phase=rest)
    return record, invocation


def _run_requeues(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    phase: Performance,
) -> tuple[ObjectRecord, Invocation]:
    """Perform the requeues at the head of a plan: a mapping makes thousands of them.

    The plan is cut once, not once for each requeue.
    """
    invocation = invocation.acting()
    plan = phase.plan
    for number, effect in enumerate(plan):
        if not isinstance(effect, Requeue):
            rest = replace(phase, plan=plan[number:])
            return record, replace(invocation, phase=rest)
        record, invocation, outcome = perform(context, record, invocation, effect)
        assert outcome is not None
        if _failure_of(effect, effect.kind, outcome) is not None:
            rest = replace(phase, plan=plan[number:])
            invocation = replace(invocation, phase=rest)
            return record, _after_plan_effect(invocation, outcome)
    return record, replace(invocation, phase=replace(phase, plan=()))


def _after_plan_effect(invocation: Invocation, outcome: Outcome) -> Invocation:
    """Return the invocation after an answered plan effect: continued, or failed."""
    phase, in_flight = invocation.phase, invocation.in_flight
    assert isinstance(phase, Performance)
    effect = phase.plan[0]
    label = in_flight.label if in_flight else effect.kind
    if isinstance(effect, Patch) and effect.json:
        label = f"{label} (planned by {invocation.handler.place})"
    failure = _failure_of(effect, label, outcome)
    after = replace(phase, plan=phase.plan[1:])
    if failure is not None:
        after = replace(after, plan=(), patches=(), failure=failure)
    return replace(invocation, phase=after, awaits=None)


def _failure_of(effect: Effect, what: str, outcome: Outcome) -> Failure | None:
    """The failure of the attempt that planned the effect; None if it was performed."""
    match outcome:
        case Applied() | Answer():
            return None
        case Missing() if rule_of(effect).may_miss:
            return None
        case Raised(permanent=True):
            return Failure(outcome.type, outcome.message, permanent=True)
        case Raised(exception=problem):
            delay = outcome.delay_seconds
            return Failure(outcome.type, outcome.message, delay, exception=problem)
        case Missing() | Conflict() | Refused() | Unreachable() | Unknown():
            name, message = type(outcome).__name__, outcome.message
            rejected = not isinstance(outcome, (Unreachable, Unknown))
            final = rejected and any(text in message for text in TOO_LARGE)
            text = f"{what}: {message}"
            return Failure(name, text, permanent=final, rejected=rejected)


def answer_effect(
    context: Context, number: int, ticket: ForEffect, outcome: Outcome
) -> None:
    """Process the answer to an effect of an invocation."""
    record = context.record
    if record is None or record.work is None:
        return
    work = record.work
    invocation = next(
        (each for each in work.invocations if each.serial == ticket.serial),
        None,
    )
    if invocation is None or invocation.in_flight is None:
        _drop_outstanding(context, record, work, number)
        return
    if invocation.in_flight.id != number:
        return
    outcome = _without_secrets(invocation.in_flight, outcome)
    tell_answered(context, invocation, invocation.in_flight, outcome)
    own = own_answer(context.key, record, invocation, outcome)
    if own is None:
        _learn_of_another(context, invocation, invocation.in_flight, outcome)
    elif own.uid != record.body.uid:
        record = vanished(context, record)
        outcome = Missing("the object has been deleted, and made anew")
    else:
        record = after_awaited_change(context, record, invocation, own)
        record = shown(context, record, own)
    found = (
        outcome
        if _gives_up(invocation, outcome)
        else proceed(invocation.in_flight, outcome, context.now, context.turn.jitter())
    )
    if not isinstance(found, InFlight):
        _answered(context, record, invocation, found)
    elif found.due is not None and found.due > context.now.mono:
        _tell_waiting(context, invocation, found)
        store(context, record, replace(invocation, awaits=found))
    else:
        store(context, record, send(context, invocation, found))
    context.due()


def _drop_outstanding(
    context: Context, record: ObjectRecord, work: Work, number: int
) -> None:
    """Note the answer to an effect whose invocation has ended meanwhile."""
    outstanding = work.outstanding - {number}
    until = work.outstanding_until if outstanding else 0.0
    left = replace(work, outstanding=outstanding, outstanding_until=until)
    keep(context, replace(record, work=left), ends=False)
    context.due()


def _learn_of_another(
    context: Context, invocation: Invocation, in_flight: InFlight, outcome: Outcome
) -> None:
    """Note what an answer shows of another object."""
    if isinstance(outcome, Applied) and isinstance(outcome.object, dict):
        pace_another(context, invocation, in_flight, outcome.object)
        if isinstance(in_flight.effect, Apply):
            key = in_flight.requests[0].address.key
            learn(context.of(key), Body(outcome.object))


def _without_secrets(in_flight: InFlight, outcome: Outcome) -> Outcome:
    """Return the answer about a Secret, without values that the API server quotes.

    The message goes into logs and conditions, which more people may read.
    """
    resource = in_flight.requests[0].address.resource
    if resource is None or (resource.kind, resource.group) != ("Secret", ""):
        return outcome
    match outcome:
        case Conflict() | Refused() | Unreachable() | Unknown():
            message = _VALUES.sub(r"\1 (a value)", outcome.message)
            return replace(outcome, message=message)
        case _:
            return outcome


# "Invalid value: ...: why", and "expected string, got ...".
_VALUES = regex(r'(Invalid value:|\bgot) ("(?:[^"\\]|\\.)*"|.*)', re.DOTALL)


def _gives_up(invocation: Invocation, outcome: Outcome) -> bool:
    """Whether the answer is final, though another try might still succeed.

    A reconciler is called again as a whole. Meanwhile its other children, and changes
    of the object, must not wait for one request that fails each time.
    """
    in_flight = invocation.in_flight
    assert in_flight is not None
    is_reconciler = invocation.handler.rule.family is Family.RECONCILER
    return (
        is_reconciler
        and isinstance(outcome, Unknown)
        and in_flight.tries >= RECONCILER_TRIES
    )


def _answered(
    context: Context, record: ObjectRecord, invocation: Invocation, outcome: Outcome
) -> None:
    invocation = _note_creation(invocation, outcome)
    if isinstance(invocation.phase, Conversation):
        store(context, record, _with_journal_entry(context, invocation, outcome))
    else:
        _perform_plan(context, record, _after_plan_effect(invocation, outcome))


def _note_creation(invocation: Invocation, outcome: Outcome) -> Invocation:
    """Note a created object: creating it differently in this attempt is a conflict."""
    in_flight = invocation.in_flight
    assert in_flight is not None
    key, created = in_flight.requests[0].address.key, invocation.done.created
    if isinstance(in_flight.effect, Create) and isinstance(outcome, Applied):
        created = {**created, key: digest_of(in_flight.effect)}
    elif isinstance(in_flight.effect, Delete) and key in created:
        created = {each: made for each, made in created.items() if each != key}
    else:
        return invocation
    return invocation.doing(created=created)


# -------------------------------------------------------------------- ends


def expire(context: Context, record: ObjectRecord, invocation: Invocation) -> None:
    """End a waiting conversation whose timeout has passed."""
    record = stop(context, record, invocation)
    limit = invocation.handler.timeout or 0.0
    failure = Failure(
        "HandlerTimeoutError", f"not done within {limit:g} s", permanent=True
    )
    finish(context, record, replace(invocation, phase=_failed(invocation, failure)))


def _failed(invocation: Invocation, failure: Failure) -> Performance:
    """The end of an attempt that has failed: its plan and its changes are dropped."""
    match invocation.phase:
        case Performance() as phase:
            return replace(phase, plan=(), patches=(), failure=failure)
        case Conversation():
            return Performance(failure=failure)


def interrupt(
    context: Context, invocation: Invocation, reason: str, *, cancel: bool = False
) -> None:
    """Request an impure handler to stop; other handlers learn it from their answers."""
    number = _call_of(invocation)
    if number is not None:
        context.turn.emit(Interrupt(number, reason, cancel))


def runs_outside(invocation: Invocation) -> bool:
    """Whether an impure handler is under way, outside of the core."""
    return _call_of(invocation) is not None


def _call_of(invocation: Invocation) -> int | None:
    """The number of the command of an impure handler that is under way, if it is."""
    in_flight = invocation.in_flight
    return in_flight.id if invocation.handler.function and in_flight else None


def _delivered_answers(invocation: Invocation, phase: Conversation) -> driving.Journal:
    """Return the answers that the author's code has got; the last may wait its turn.

    A conversation that is cancelled then does not continue with it: no handler would
    receive its end.
    """
    return phase.journal[:-1] if invocation.ready else phase.journal


def stop(
    context: Context,
    record: ObjectRecord,
    invocation: Invocation,
    *,
    reason: str = "cancelled",
) -> ObjectRecord:
    """Cancel a conversation; a request that is under way becomes outstanding."""
    context.turn.drives += 1
    phase = invocation.phase
    if isinstance(phase, Conversation) and phase.has_begun:
        lines, failure = driving.cancel(
            invocation.situation,
            _delivered_answers(invocation, phase),
            context.turn.live,
            _live_key(context.key, invocation),
        )
        tell(context, invocation, lines, failure)
    in_flight, work = invocation.in_flight, record.work
    if in_flight is None or in_flight.id is None or work is None:
        return record
    interrupt(context, invocation, reason, cancel=True)
    limit = invocation.handler.cancellation_timeout
    work = replace(
        work,
        outstanding=work.outstanding | {in_flight.id},
        outstanding_until=context.now.mono
        + (OUTSTANDING_SECONDS if limit is None else limit),
    )
    return replace(record, work=work)
