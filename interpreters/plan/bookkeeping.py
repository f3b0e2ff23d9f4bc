"""The operator's own notes on an object, apart from handlers' changes.

These are the finalizer, the stored state and the condition (`fnop.core.memory`). The
finalizer of a Kopf operator that this operator succeeds counts, too. On children they
are the marks by which fnop finds them again (`fnop.core.children.marks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fnop.core.api.ownership import TOKEN_ANNOTATION
from fnop.core.children.marks import APPLIED_ANNOTATION, SET_LABEL
from fnop.core.children.owned import OWNER_ANNOTATION
from fnop.core.handlers.declare.settings import Settings
from fnop.core.values.body import Body
from fnop.core.values.finalizers import without_finalizer
from fnop.core.values.merge import applied

__all__ = ["noted", "without_notes"]

Json = dict[str, Any]

_MARKS = {
    "annotations": (APPLIED_ANNOTATION, OWNER_ANNOTATION, TOKEN_ANNOTATION),
    "labels": (SET_LABEL,),
}


def without_notes(body: Json, settings: Settings) -> Json:
    """The object without the operator's own notes.

    >>> found = without_notes(
    ...     {"metadata": {"finalizers": ["x", "fnop.dev/a"]}}, Settings("a"))
    >>> found["metadata"]["finalizers"]
    ['x']
    """
    view = Body(body)
    finalizers = view.finalizers
    if set(settings.finalizers) & set(finalizers):
        left = without_finalizer(finalizers, *settings.finalizers)
        body = applied({"metadata": {"finalizers": left}}, body)
    for patch in settings.places.clearings(view):
        body = applied(patch, body)
    for stanza, marks in _MARKS.items():
        present = dict.fromkeys(set(marks) & set(view.mapping(stanza)))
        if present:
            body = applied({"metadata": {stanza: present}}, body)
    others = [each for each in _conditions(view) if not _is_own(each, settings)]
    if len(others) < len(_conditions(view)):
        body = applied({"status": {"conditions": others}}, body)
    return body


def _conditions(body: Body) -> list[Any]:
    found = body.stanza("status").get("conditions")
    return found if isinstance(found, list) else []


def _is_own(condition: Any, settings: Settings) -> bool:
    return isinstance(condition, Mapping) and condition.get("type") == settings.marker


def noted(before: Json | None, after: Json | None, settings: Settings) -> Iterator[str]:
    """The changes of the operator's notes, in a few words each.

    >>> [*noted({}, {"metadata": {"finalizers": ["fnop.dev/a"]}}, Settings("a"))]
    ['finalizer added']
    """
    old, new = Body(before or {}), Body(after or {})
    parts = {
        "finalizer": (_finalizers(old, settings), _finalizers(new, settings)),
        "state": (settings.places.noted(old), settings.places.noted(new)),
        "condition": (_condition(old, settings), _condition(new, settings)),
        "marks": (_marks_of(old), _marks_of(new)),
    }
    for name, (was, now) in parts.items():
        if was != now:
            how = "changed" if was and now else "added" if now else "removed"
            yield f"{name} {how}"


def _finalizers(body: Body, settings: Settings) -> list[str]:
    return [each for each in body.finalizers if each in settings.finalizers]


def _marks_of(body: Body) -> list[Any]:
    return [
        body.mapping(stanza)[name]
        for stanza, names in _MARKS.items()
        for name in names
        if name in body.mapping(stanza)
    ]


def _condition(body: Body, settings: Settings) -> Any:
    return next((e for e in _conditions(body) if _is_own(e, settings)), None)
