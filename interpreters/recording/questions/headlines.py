"""The occurrences of a run that a reader wants to know of, even if nothing failed.

The function is pure: it sorts the events of a timeline into a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from fnop.interpreters.recording.questions.timeline import Event

__all__ = ["LOSSES", "Headline", "Sort", "headlines_of"]


class Sort(Enum):
    """The sorts of occurrences, in the order of a page; the values are their words."""

    FAULT = "fault"
    FAILURE = "failure"
    REFUSAL = "refused or failed request"
    GAP = "recording gap"
    RESTART = "restart"
    REPAIR = "repair"
    TAKEOVER = "takeover"
    STAND_DOWN = "stand-down"
    STREAM = "interrupted stream"


class Headline(NamedTuple):
    """All occurrences of one sort, in their order."""

    sort: Sort
    events: tuple[Event, ...]


def headlines_of(events: Iterable[Event]) -> tuple[Headline, ...]:
    """The occurrences of each sort; sorts without any are missing.

    The restarts by which a check ends a run are not among them.
    """
    found: dict[Sort, list[Event]] = {each: [] for each in Sort}
    for sort, event in _sorted(events):
        found[sort].append(event)
    return tuple(Headline(sort, tuple(each)) for sort, each in found.items() if each)


def _sorted(events: Iterable[Event]) -> Iterator[tuple[Sort, Event]]:
    started: set[str] = set()
    rest = False
    for event in events:
        sort = _SORTS.get(event.sort)
        match event.sort:
            case "start":
                is_first = event.process not in started
                started.add(event.process)
                sort = None if is_first or rest else Sort.RESTART
            case "peer":
                sort = _sort_of_peer(event.text)
            case "say" if event.text.startswith(LOSSES):
                sort = Sort.STAND_DOWN
            case "end" if event.is_trouble:
                sort = Sort.FAILURE
            case "send" | "answer" if event.is_trouble:
                sort = Sort.REFUSAL
            case _:
                pass
        rest = event.sort == "rest"
        if sort is not None:
            yield sort, event


def _sort_of_peer(text: str) -> Sort | None:
    """The sort of a line about who works (`core.peers`); None for the first leader."""
    if text.startswith(("standing by: ", "frozen: ")):
        return Sort.STAND_DOWN
    return None if text.endswith(", by transition 0") else Sort.TAKEOVER


# Warnings that another process works now (`core.peers`).
LOSSES = ("warning: not leading any more: ", "warning: frozen: ")
# The sorts of events that are always an occurrence of one sort.
_SORTS = {
    "fault": Sort.FAULT,
    "say": Sort.FAILURE,
    "gap": Sort.GAP,
    "repair": Sort.REPAIR,
    "stream": Sort.STREAM,
}
