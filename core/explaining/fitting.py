"""Which handlers of an operator's files are for an object, by their filters."""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.explaining.facts import HandlerFact
from fnop.core.handlers.arguments import Situation
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.program import kind_of
from fnop.core.handlers.roles import CHANGES, LEVELS
from fnop.core.handlers.settings import Settings
from fnop.core.memory.last_seen import Stored
from fnop.core.objects.selection import Circumstances, prematches, sees
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body
from fnop.core.values.now import Now

__all__ = ["handlers_for"]


def handlers_for(
    handlers: Iterable[Handler],
    catalogue: Catalogue,
    resource: Resource,
    body: Body,
    settings: Settings,
    wall: float,
) -> tuple[HandlerFact, ...]:
    """The handlers of an object's kind, and whether their filters fit it now.

    A function among the filters that asks for what is not known here, such as an index,
    leaves that open.
    """
    served = (
        each
        for each in handlers
        if each.selector is not None and resource in catalogue.find(each.selector)
    )
    return tuple(
        HandlerFact(
            e.id, e.role.value, _fits(e, resource, body, settings, wall), e.place
        )
        for e in served
    )


def _fits(
    handler: Handler, resource: Resource, body: Body, settings: Settings, wall: float
) -> bool | None:
    now = Now(wall, 0.0)
    kind = kind_of(resource, [handler], settings)
    try:
        if handler.role in CHANGES or handler.role in LEVELS:
            at = Circumstances(kind, settings, now, "", stopping=False)
            return prematches(at, ObjectRecord(body, Stored()), handler)
        return sees(handler, Situation(handler, settings, now, resource, body))
    except BaseException:  # from the author's code
        return None
