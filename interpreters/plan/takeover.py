"""The handlers that a successor of a Kopf operator would call again on live objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fnop.core.handlers.declare.handler import Handler, declarer_of
from fnop.core.memory.takeover import Predecessor
from fnop.core.values.body import Body
from fnop.core.values.cause import Reason
from fnop.interpreters.plan.facts import Place, Source, Unmade, sources_of

__all__ = ["called_again", "is_of_predecessor"]


def called_again(
    attempts: Iterable[tuple[str, Place]],
    calls: Iterable[Unmade],
    objects: Mapping[tuple[str, str, str], dict[str, Any]],
    handlers: Iterable[Handler],
    predecessor: Predecessor,
) -> tuple[tuple[Source, tuple[Place, ...]], ...]:
    """The handlers of changes that are called for objects which Kopf has handled.

    `attempts` and `calls` come from a rehearsal; `objects` are the objects that
    existed, by kind, namespace and name.
    """
    known = {each.id: each for each in handlers}
    found: dict[str, dict[Place, None]] = {}
    called = [*attempts]
    called += [(e.handler, e.subject) for e in calls if e.is_handler and e.subject]
    for name, place in called:
        handler = known.get(declarer_of(name, known))
        body = objects.get((place.resource, place.namespace, place.name))
        if handler is None or not _is_of_changes(handler) or body is None:
            continue
        if is_of_predecessor(body, predecessor):
            found.setdefault(name, {})[place] = None
    return tuple(
        (sources_of(known.values(), name)[0], tuple(places))
        for name, places in found.items()
    )


def _is_of_changes(handler: Handler) -> bool:
    """Whether a handler is called for a change, once.

    An operator calls all others whenever it starts, and so does Kopf.
    """
    reasons = handler.rule.reasons
    is_once = Reason.CREATE in reasons or Reason.UPDATE in reasons
    return is_once and Reason.RESUME not in reasons


def is_of_predecessor(body: Mapping[str, Any], kopf: Predecessor) -> bool:
    """Whether a Kopf operator has left its marks on an object.

    >>> kopf = Predecessor("kopf.zalando.org", "kopf.zalando.org/KopfFinalizerMarker")
    >>> is_of_predecessor({"metadata": {"finalizers": [kopf.finalizer]}}, kopf)
    True
    >>> is_of_predecessor({"metadata": {"annotations": {"a": "b"}}}, kopf)
    False
    """
    view = Body(dict(body))
    if kopf.finalizer in view.finalizers:
        return True
    names = view.mapping("annotations")
    has_note = any(name.startswith(f"{kopf.prefix}/") for name in names)
    return has_note or bool(view.at(kopf.field))
