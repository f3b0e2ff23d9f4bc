"""Selectors for the API server, made of the filters of handlers.

Filters for labels (or the object's name) that all handlers of a kind have are sent to
the server: objects that match no handler are then neither sent nor stored.

In a watch with a selector, an object that leaves the selection looks deleted
(Kubernetes API concepts). So it is not done for kinds with handlers of deletions, event
handlers, or finalizers.
"""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.api.resources import Selectors
from fnop.core.handlers.filters import Presence
from fnop.core.handlers.handler import Handler

__all__ = ["selectors_of"]

# The fields by which every kind can be selected (Kubernetes: field selectors).
_FIELDS: dict[tuple[str, ...], str] = {("metadata", "name"): "metadata.name"}


def selectors_of(handlers: Iterable[Handler], given: str = "") -> Selectors:
    """The selectors for a kind's handlers; `given` is the user's label selector."""
    handlers = tuple(handlers)
    wanted = [given] if given else []
    if not handlers or any(_tells_departures(each) for each in handlers):
        return Selectors(",".join(wanted))
    wanted += _common(_labels(each) for each in handlers)
    fields = _common(_fields(each) for each in handlers)
    return Selectors(",".join(wanted), ",".join(fields))


def _tells_departures(handler: Handler) -> bool:
    """Whether a handler has to distinguish deleted objects from unselected ones.

    One that owns others may hold the object for them by a finalizer.
    """
    return handler.rule.tells_ends or handler.holds or bool(handler.owns)


def _common(each: Iterable[list[str]]) -> list[str]:
    """The items that are in all of the lists, in the order of the first."""
    first, *others = each
    return [one for one in first if all(one in other for other in others)]


def _labels(handler: Handler) -> list[str]:
    found = []
    for name, want in handler.filters.labels:
        if want is Presence.PRESENT:
            found.append(name)
        elif want is Presence.ABSENT:
            found.append(f"!{name}")
        elif isinstance(want, str):  # registration has checked it
            found.append(f"{name}={want}")
    return found


def _fields(handler: Handler) -> list[str]:
    name, want = _FIELDS.get(handler.field), handler.filters.value
    if name is None or not isinstance(want, str) or set(want) & set(",=!\\"):
        return []
    return [f"{name}={want}"]
