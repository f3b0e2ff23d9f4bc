"""The consequences of an awaited change of an object for its handlers."""

from __future__ import annotations

from typing import Any

from fnop.core.handlers.declare.roles import BACKGROUND
from fnop.core.objects.attempt.effects import is_own
from fnop.core.objects.write.consequences import keeping_pace
from fnop.core.objects.write.progress_after_write import (
    asks_for_the_same,
    made_by,
    moved_handlers,
    moves_of,
    with_generation,
    with_moves,
)
from fnop.core.state.context import Context
from fnop.core.state.in_flight import InFlight
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body, Key
from fnop.effects import (
    Applied,
    Apply,
    Effect,
    Outcome,
    Patch,
)

__all__ = ["after_awaited_change", "own_answer", "pace_another"]


def after_awaited_change(
    context: Context, record: ObjectRecord, invocation: Invocation, body: Body
) -> ObjectRecord:
    """Return the record after an awaited change of the handled object.

    For handlers at work this is not a new change.
    """
    kind, handler, in_flight = (
        context.kind,
        invocation.handler,
        invocation.in_flight,
    )
    assert in_flight is not None
    base, change = in_flight.base, _as_patch(in_flight.effect)
    if base is None or change is None:
        return record
    names = moved_handlers(record, (handler.id,))
    # Only if this change alone explains the state that a handler observes now.
    made = made_by(change, base)
    if asks_for_the_same(made, body):
        record = with_generation(record, base, body)
    ours = moves_of(kind, names, base, made)
    moves = moves_of(kind, names, base, body)
    moves = {name: move for name, move in moves.items() if ours.get(name) == move}
    record = with_moves(record, kind, moves)
    return keeping_pace(
        context, record, [(handler.id, None)], base, body, _attempt_serial(invocation)
    )


def _attempt_serial(invocation: Invocation) -> int | None:
    """The serial of the attempt; None for a daemon or timer.

    Daemons and timers may continue, and make changes, without end.
    """
    return None if invocation.handler.role in BACKGROUND else invocation.serial


def _as_patch(effect: Effect) -> Patch | None:
    """The fields that a change of the handled object sets, as a patch."""
    match effect:
        case Patch():
            return effect
        case Apply(manifest=manifest):
            fields = {
                k: v for k, v in manifest.items() if k not in ("apiVersion", "kind")
            }
            return Patch(None, fields)
        case _:
            return None


def pace_another(
    context: Context, invocation: Invocation, in_flight: InFlight, found: dict[str, Any]
) -> None:
    """Count a handler's change of another object, which may lead to other calls."""
    if in_flight.base is None or in_flight.looking:
        return
    context, body = context.of(in_flight.requests[0].address.key), Body(found)
    record = context.record
    if record is not None and record.body.uid == body.uid == in_flight.base.uid:
        by = [(invocation.handler.id, None)]
        attempt = _attempt_serial(invocation)
        paced = keeping_pace(context, record, by, in_flight.base, body, attempt)
        context.put(paced)


def own_answer(
    key: Key, record: ObjectRecord, invocation: Invocation, outcome: Outcome
) -> Body | None:
    """Return the handled object in the answer to an awaited change, else None (R23)."""
    in_flight = invocation.in_flight
    if in_flight is None or in_flight.looking or in_flight.reads_first:
        return None
    if not isinstance(outcome, Applied) or not isinstance(outcome.object, dict):
        return None
    effect, body = in_flight.effect, Body(outcome.object)
    if isinstance(effect, Patch) and is_own(effect, invocation):
        return body
    # The effect may name it like any other object: by name, or by a manifest.
    is_named = in_flight.requests[0].address.key == key and body.uid == record.body.uid
    if isinstance(effect, Patch) and effect.subresource in (None, "status"):
        return body if is_named else None
    return body if is_named and isinstance(effect, Apply) else None
