"""Which objects of a kind need not be seen at all: selectors for the API server.

What every handler of a kind asks for in its labels (or in the object's name) is asked
of the server instead: objects that no handler is for are then neither sent nor kept.

It is done where leaving the selection may look like a deletion, as it does in a watch
(Kubernetes API concepts: a watch with a selector): not for kinds with handlers of
deletions, event handlers, or finalizers.
"""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.api.resources import Selectors
from fnop.core.handlers.filters import Presence
from fnop.core.handlers.handler import Handler

__all__ = ["selectors_of"]

# What every kind can be selected by (Kubernetes: field selectors).
_FIELDS: dict[tuple[str, ...], str] = {("metadata", "name"): "metadata.name"}


def selectors_of(handlers: Iterable[Handler], given: str = "") -> Selectors:
    """What the API server is asked for; `given` is a label selector of the user's."""
    handlers = tuple(handlers)
    wanted = [given] if given else []
    if not handlers or any(_tells_departures(each) for each in handlers):
        return Selectors(",".join(wanted))
    wanted += _common(_labels(each) for each in handlers)
    fields = _common(_fields(each) for each in handlers)
    return Selectors(",".join(wanted), ",".join(fields))


def _tells_departures(handler: Handler) -> bool:
    """Whether it matters to a handler why an object is not seen any more."""
    return handler.rule.tells_ends or handler.holds


def _common(each: Iterable[list[str]]) -> list[str]:
    """What is in all of the lists, in the order of the first."""
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
