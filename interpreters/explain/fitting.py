"""The handlers that an operator's files have for an object, and what they look at."""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import CHANGES, RECONCILERS
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import OwnedBy, kind_of
from fnop.core.handlers.run.arguments import Situation
from fnop.core.memory.stored_state import UNSTORED
from fnop.core.objects.decide.selection import Circumstances, prematches, sees
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.interpreters.explain.facts import HandlerFact, Requested

__all__ = ["handlers_for", "requested_for"]


def handlers_for(
    handlers: Iterable[Handler],
    catalogue: Catalogue,
    resource: Resource,
    body: Body,
    settings: Settings,
    wall: float,
) -> tuple[HandlerFact, ...]:
    """The handlers of an object's kind, and whether their filters match it now.

    The answer stays open if a filter function asks for something unknown here, such as
    an index.
    """
    return tuple(
        HandlerFact(
            e.id,
            e.role.value,
            _handler_fits(e, resource, body, settings, wall),
            e.place,
        )
        for e in _handlers_of_kind(handlers, catalogue, resource)
    )


def requested_for(
    handlers: tuple[Handler, ...],
    catalogue: Catalogue,
    resource: Resource,
    settings: Settings,
) -> Requested | None:
    """The way a kind is watched for its handlers and its owners; None if it is not."""
    serving = _handlers_of_kind(handlers, catalogue, resource)
    owned_by = tuple(
        OwnedBy(owner, each, sees_all=False)
        for each in handlers
        if each.selector is not None
        and any(resource in catalogue.find(selector) for _, selector in each.owns)
        for owner in catalogue.find(each.selector)
    )
    kind = kind_of(resource, serving, settings, owned_by=owned_by)
    if not (serving or owned_by):
        return None
    return Requested(kind.selectors, kind.metadata_only)


def _handlers_of_kind(
    handlers: Iterable[Handler], catalogue: Catalogue, resource: Resource
) -> tuple[Handler, ...]:
    """The handlers of a kind."""
    return tuple(
        each
        for each in handlers
        if each.selector is not None and resource in catalogue.find(each.selector)
    )


def _handler_fits(
    handler: Handler, resource: Resource, body: Body, settings: Settings, wall: float
) -> bool | None:
    now = Now(wall, 0.0)
    kind = kind_of(resource, [handler], settings)
    try:
        if handler.role in CHANGES or handler.role in RECONCILERS:
            at = Circumstances(kind, settings, now, "")
            return prematches(at, ObjectRecord(body, UNSTORED), handler)
        return sees(handler, Situation(handler, settings, now, resource, body))
    except BaseException:  # from the author's code
        return None
