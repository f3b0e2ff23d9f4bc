"""Expectations: the time between an own write and the watch that shows it."""

from __future__ import annotations

from fnop.core.memory.stored_state import UNSTORED
from fnop.core.state.address import Address
from fnop.core.state.context import Context
from fnop.core.state.record import Expectation, ObjectRecord
from fnop.core.state.requests import ForExpectation, ForWrite
from fnop.core.values.body import Body, compact, is_behind
from fnop.effects import (
    Applied,
    Get,
    Missing,
    Outcome,
    Target,
)
from fnop.effects.structs import replace

__all__ = [
    "LOOKS_MAX",
    "answer_expectation",
    "learn",
    "look_at",
    "read_live",
    "shown",
    "vanished",
]

# The number of further reads of an object that was missing.
LOOKS_MAX = 3


def shown(context: Context, record: ObjectRecord, body: Body) -> ObjectRecord:
    """Return the record with the answer to an own write as its freshest version.

    fnop does not reconcile the object before the watch has shown that version. If the
    answer changed nothing, the watch need not show it (R24).
    """
    if body.version == record.body.version:
        known = compact(body, record.body)
        return replace(record, body=known, learned=context.turn.counters.step)
    if is_behind(body.version, record.body.version):
        return record
    if body.version in record.shown[-1:]:
        # The watch has reached it, past the answer that it had yet to show.
        return replace(
            record, body=body, expected=None, learned=context.turn.counters.step
        )
    if body.version in record.shown:
        return record  # the watch has shown a later version
    expected = expectation_of(context, body.version)
    return replace(
        record, body=body, expected=expected, learned=context.turn.counters.step
    )


def learn(context: Context, body: Body) -> None:
    """Take in another object that an own write has made or changed, before the watch.

    An object with handlers for its own changes is read from its first listing or watch
    event.
    """
    record = context.record
    if not context.is_served or not context.kind.is_owned:
        return
    if record is not None and record.body.uid == body.uid:
        context.put(shown(context, record, body))
    elif record is None and not context.kind.changes:
        # It may be gone by now. The watch may have shown that before this answer.
        fresh = ObjectRecord(
            body,
            UNSTORED,
            memo=context.turn.lifecycle.memo,
            learned=context.turn.counters.step,
        )
        expected = expectation_of(context, body.version)
        context.put(replace(fresh, expected=expected))
        context.due(expected.due)


def expectation_of(
    context: Context, version: str, *, passes: bool = False
) -> Expectation:
    """The expectation of this version, with a deadline."""
    deadline = context.now.mono + context.settings.echo_timeout_seconds
    return Expectation(version, context.turn.counters.step, deadline, passes=passes)


def vanished(context: Context, record: ObjectRecord, *, looks: int = 0) -> ObjectRecord:
    """Return the record after a live answer without the object; the watch follows.

    A single answer may be wrong: it may come from a proxy, or from a server that lags
    behind. So fnop begins nothing. It reads the object again with growing pauses, after
    so far `looks` reads, before it forgets the object.
    """
    pause = context.settings.echo_timeout_seconds * 2**looks
    expected = expectation_of(context, "")
    expected = replace(expected, deadline=context.now.mono + pause, looks=looks)
    return replace(
        record, vanished=True, expected=expected, learned=context.turn.counters.step
    )


def read_live(context: Context, ticket: ForExpectation | ForWrite) -> int:
    """Read the handled object live."""
    resource, namespace = (
        context.kind.resource,
        context.key.namespace or None,
    )
    read = Get(Target.existing(resource.key, context.key.name, namespace))
    address = Address(resource, namespace, context.key.name)
    return context.turn.perform(read, address, ticket, context.subject())


def look_at(context: Context, record: ObjectRecord) -> None:
    """Read the object live: the watch has not shown an own write in time (R24)."""
    assert record.expected is not None
    read_live(context, ForExpectation(context.key, record.body.uid))
    deadline = context.now.mono + context.settings.echo_timeout_seconds
    expected = replace(record.expected, looking=True, deadline=deadline)
    context.put(replace(record, expected=expected))


def answer_expectation(
    context: Context, ticket: ForExpectation, outcome: Outcome
) -> None:
    """Process the live read of an object whose own write the watch has not shown."""
    record = context.record
    if record is None or record.expected is None or record.body.uid != ticket.uid:
        return
    expected = record.expected
    match outcome:
        case Applied(object=dict() as found):
            body = Body(found)
            if body.uid != record.body.uid:
                context.leave_tombstone(record.body)
                record = replace(record, gone=True, expected=None)
            elif body.version in (*record.shown, expected.version):
                # Nothing newer: the watch has shown it, or never will.
                record = replace(record, body=body, vanished=False, expected=None)
            else:
                # The watch is late: versions that it shows before this one are older.
                fresh = expectation_of(context, body.version, passes=True)
                record = replace(
                    record,
                    body=body,
                    vanished=False,
                    expected=fresh,
                    learned=context.turn.counters.step,
                )
        case Missing(unserved=False) if (
            context.kind.has_handlers and expected.looks < LOOKS_MAX
        ):
            record = vanished(context, record, looks=expected.looks + 1)
        case Missing(unserved=False):
            context.leave_tombstone(record.body)
            record = replace(record, gone=True, expected=None)
        case _:
            again = context.now.mono + context.settings.echo_timeout_seconds
            waiting = replace(expected, looking=False, deadline=again)
            record = replace(record, expected=waiting)
    context.put(record)
    context.due()
