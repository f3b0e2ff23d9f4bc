"""What an awaited change of an object means for those that handle it."""

from __future__ import annotations

from typing import Any

from fnop.core.handlers.handler import BACKGROUND
from fnop.core.objects.consequences import keeping_pace
from fnop.core.objects.effects import is_own
from fnop.core.objects.own_writes import (
    asks_for_the_same,
    followers,
    made_by,
    moves_of,
    with_generation,
    with_moves,
)
from fnop.core.state.context import Context
from fnop.core.state.in_flight import Errand
from fnop.core.state.record import Invocation, Known
from fnop.core.values.body import Body, Key
from fnop.effects import (
    Applied,
    Apply,
    Effect,
    Outcome,
    Patch,
)

__all__ = ["followed", "own_answer", "pace_another"]


def followed(
    context: Context, known: Known, invocation: Invocation, body: Body
) -> Known:
    """An awaited change of the handled object is no new one for who is at work."""
    kind, handler, errand = (
        context.kind,
        invocation.handler,
        invocation.errand,
    )
    assert errand is not None
    base, change = errand.base, _as_patch(errand.effect)
    if base is None or change is None:
        return known
    names = followers(known, (handler.id,))
    # Only where the change alone explains what a handler observes now.
    made = made_by(change, base)
    if asks_for_the_same(made, body):
        known = with_generation(known, base, body)
    ours = moves_of(kind, names, base, made)
    moves = moves_of(kind, names, base, body)
    moves = {name: move for name, move in moves.items() if ours.get(name) == move}
    known = with_moves(known, kind, moves)
    return keeping_pace(
        context, known, [(handler.id, None)], base, body, _attempt(invocation)
    )


def _attempt(invocation: Invocation) -> int | None:
    """Which attempt it is; None where one may go on, and make changes, without end."""
    return None if invocation.handler.role in BACKGROUND else invocation.serial


def _as_patch(effect: Effect) -> Patch | None:
    """What a change of the handled object sets: of an apply, what it names."""
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
    context: Context, invocation: Invocation, errand: Errand, found: dict[str, Any]
) -> None:
    """A handler has changed another object, for which others may be called."""
    if errand.base is None or errand.looking:
        return
    context, body = context.of(errand.requests[0].address.key), Body(found)
    known = context.known
    if known is not None and known.body.uid == body.uid == errand.base.uid:
        by = [(invocation.handler.id, None)]
        attempt = _attempt(invocation)
        paced = keeping_pace(context, known, by, errand.base, body, attempt)
        context.put(paced)


def own_answer(
    key: Key, known: Known, invocation: Invocation, outcome: Outcome
) -> Body | None:
    """The handled object, as the answer to an awaited change of it shows it (R23)."""
    errand = invocation.errand
    if errand is None or errand.looking or errand.reads_first:
        return None
    if not isinstance(outcome, Applied) or not isinstance(outcome.object, dict):
        return None
    effect, body = errand.effect, Body(outcome.object)
    if isinstance(effect, Patch) and is_own(effect, invocation):
        return body
    # It may be named as any other object is: by its name, or by a manifest.
    is_named = errand.requests[0].address.key == key and body.uid == known.body.uid
    if isinstance(effect, Patch) and effect.subresource in (None, "status"):
        return body if is_named else None
    return body if is_named and isinstance(effect, Apply) else None
