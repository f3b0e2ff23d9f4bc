"""The handlers that a successor of a Kopf operator calls when it starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Kind
from fnop.core.objects.decide.due_calls import Why, due_calls
from fnop.core.objects.decide.selection import Circumstances
from fnop.core.objects.store.first_sight import first_sight
from fnop.core.state.turn import State
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects.structs import replace
from fnop.interpreters.plan.facts import Due, Place, Source, Unfound

__all__ = ["due_in"]

_ORDER = [each.value for each in Why]


def due_in(
    state: State,
    settings: Settings,
    served: Iterable[tuple[Kind, dict[str, Any]]],
    wall: float,
) -> tuple[tuple[Due, ...], tuple[Unfound, ...]]:
    """The handlers that are called for objects as they were read, and lost states.

    `state` and `settings` are those of an operator that serves; `wall` is the time of
    its start.
    """
    found: dict[tuple[str, str, Source], dict[Place, None]] = {}
    unfound = []
    for kind, data in served:
        body = Body(data)
        sight = first_sight(kind, settings, body, listed=True)
        place = _place_of(kind, body)
        if sight.problem and kind.changes:
            unfound.append(Unfound(place, sight.problem))
        record = replace(sight.record, memo=state.lifecycle.memo)
        at = Circumstances(
            kind,
            settings,
            Now(wall, 0.0),
            state.counters.seed,
            indices=state.objects.indices,
            failures=[],
        )
        for each in due_calls(at, record):
            key = each.why.value, each.reason, Source(each.id, *each.handler.definition)
            found.setdefault(key, {})[place] = None
    due = (Due(*key, tuple(places)) for key, places in found.items())
    ordered = sorted(due, key=lambda each: _ORDER.index(each.why))
    return tuple(ordered), tuple(unfound)


def _place_of(kind: Kind, body: Body) -> Place:
    resource = kind.resource
    return Place(
        resource.api_version,
        resource.kind,
        resource.label,
        body.namespace or "",
        body.name,
    )
