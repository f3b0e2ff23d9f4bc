"""The lanes of a timeline: who acts on whom, as in a sequence chart.

Actors from outside are on the left, the objects in the middle, and the operator and the
functions it calls on the right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fnop.effects import Call
from fnop.interpreters.recording.model.history import Request
from fnop.interpreters.recording.model.refs import Ref
from fnop.interpreters.recording.questions.timeline import Event

__all__ = [
    "OPERATOR",
    "OTHERS",
    "OUTSIDE",
    "Arrow",
    "Lane",
    "arrow_of",
    "calls_of",
    "lanes_of",
    "operator_of",
]

OBJECTS_MAX = 10

Lane = str | Ref

USER, RIVAL, CLUSTER = "user", "others", "cluster"
OTHERS, OPERATOR, OUTSIDE = "other objects", "operator", "outside"
_OUTER = (USER, RIVAL, CLUSTER)
# By the account's words for the author of a change.
_MAKERS = {"user": USER, "cluster": CLUSTER}
# Objects by which an operator only reports; users do not look for causes there.
_ASIDE = frozenset(("events", "events.events.k8s.io", "leases.coordination.k8s.io"))


class Arrow(NamedTuple):
    """An arrow from one lane to another; without the other, a point on a lane."""

    source: Lane
    target: Lane | None = None


def lanes_of(events: Iterable[Event]) -> list[Lane]:
    """The lanes that the events need, in their order.

    An object gets a lane if a handler was called for it, or if a request is about it.
    If there are too many, the objects with the most events get lanes.
    """
    found = [*events]
    objects = _objects(found)
    used = {lane for each in found for lane in arrow_of(each, objects) if lane}
    others = [OTHERS] if OTHERS in used else []
    outer = [each for each in _OUTER if each in used]
    operators = dict.fromkeys(map(operator_of, found))
    inner = [each for each in (*operators, OUTSIDE) if each in used]
    return [*outer, *objects, *others, *inner]


def operator_of(event: Event) -> str:
    """The lane of the operator's process that an event is of."""
    return f"{OPERATOR} {event.process}" if event.process else OPERATOR


def _objects(events: Iterable[Event]) -> list[Ref]:
    counts: Counter[Ref] = Counter()
    for each in events:
        if each.object is None or each.object.kind in _ASIDE:
            continue
        if not each.object.name:
            continue  # a listing is not about one object
        # A sight alone does not give an object a lane, but it counts if another event
        # does.
        is_reason = bool(each.attempts or each.request or each.sort == "user")
        counts[each.object] += 1_000 if is_reason else 1
    wanted = [each for each, count in counts.most_common() if count >= 1_000]
    kept = {*wanted[:OBJECTS_MAX]}
    return [each for each in counts if each in kept]


def arrow_of(event: Event, objects: Iterable[Ref]) -> Arrow:
    """The actor and its object in an event."""
    about: Lane | None = None
    if event.object is not None:
        about = event.object if event.object in objects else OTHERS
    operator = operator_of(event)
    match event.sort:
        case "user":
            return Arrow(USER, about)
        case "change":
            return Arrow(_MAKERS.get(event.by, RIVAL), about)
        case "shown":
            return Arrow(about or OTHERS, operator)
        case "send" if event.request is not None:
            return Arrow(operator, OUTSIDE if _is_call(event.request) else about)
        case "answer" if event.request is not None:
            source = OUTSIDE if _is_call(event.request) else about
            return Arrow(source or OTHERS, operator)
        case _:
            return Arrow(operator)


def _is_call(request: Request) -> bool:
    return request.verb == Call.__name__


def calls_of(events: Sequence[Event]) -> list[tuple[int, int]]:
    """The first and the last event of each attempt, by their numbers.

    An attempt without an end lasts as long as its process, or the recording.
    """
    found: dict[int, list[int]] = {}
    endless: dict[str, list[list[int]]] = {}
    for number, event in enumerate(events):
        spans = endless.setdefault(event.process, [])
        if event.sort == "start":
            _end_spans(spans, number - 1)
        attempt = event.attempt
        if attempt is None:
            continue
        if id(attempt) not in found:
            found[id(attempt)] = [number, number]
            if attempt.end is None:
                spans.append(found[id(attempt)])
        found[id(attempt)][1] = number
    for spans in endless.values():
        _end_spans(spans, len(events) - 1)
    return [(first, last) for first, last in found.values()]


def _end_spans(spans: list[list[int]], number: int) -> None:
    for each in spans:
        each[1] = max(each[1], number)
    spans.clear()
