"""The data that a page has for its script: versions as deltas, and links.

All of it is foreign data. So it is written as JSON that cannot end an element, and the
script turns it only into text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fnop.adapters.common.plain import one_line
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.refs import Ref
from fnop.interpreters.recording.model.revisions import Revision
from fnop.interpreters.recording.questions.links import Behind
from fnop.interpreters.recording.questions.processes import Process
from fnop.interpreters.recording.questions.timeline import Event

__all__ = ["PageData", "as_script"]

_TEXT_LENGTH_MAX = 200
_NUMBER_MAX = 2**53
_SECONDS_MAX = 1e12


class PageData:
    """The data of a page, collected as its rows are made.

    `objects` are versions of each object in their order, `began` is the time of the
    first event (Unix seconds). `brief` shortens the names of objects in a text.
    `processes` are the processes of the page, if there are several.
    """

    def __init__(
        self,
        events: Sequence[Event],
        objects: Mapping[Ref, Sequence[Revision]],
        behind: Behind,
        began: float,
        brief: Callable[[str], str],
        processes: Sequence[Process] = (),
    ) -> None:
        self._objects, self._behind, self._began = objects, behind, began
        self._shorten = brief
        self._processes = processes
        self._texts: dict[str, int] = {}
        self._places = {
            id(each): number
            for versions in objects.values()
            for number, each in enumerate(versions)
        }
        self._numbers: dict[Ref, int] = {}
        self._attempts: dict[int, int] = {}
        self._told: list[Any] = []
        self._ends = {
            id(each.attempt): each
            for each in events
            if each.attempt is not None and each.attempt.end is not None
            if each.sort in ("end", "say")
        }

    def of_event(self, event: Event) -> dict[str, Any]:
        """The script's data about an event: its object, its attempts, its links."""
        found: dict[str, Any] = {"m": self._milliseconds(event.wall)}
        if event.object is not None and event.object in self._objects:
            found["o"] = self._number(event.object)
        if event.attempts:
            found["a"] = [self._attempt(each) for each in event.attempts]
        made = event.revision if event.request is None else event.request.made
        if made is not None and id(made) in self._places:
            found["v"] = self._places[id(made)]
        if event.sort in ("user", "change", "fault", "rest"):
            found["t"] = event.step + 1  # it comes after its step
        if made is not None and event.sort in ("send", "user", "change"):
            found["w"] = 1
        links = self._behind.links(event)
        if links:
            found["y"] = [
                [each.depth, self._text(each.text), each.step] for each in links
            ]
        return found

    def whole(self, events: Sequence[Mapping[str, Any]], first: int) -> dict[str, Any]:
        """All data; `first` is the number of the event at which the cursor begins."""
        return {
            "o": [
                [
                    one_line(self._shorten(ref.label)),
                    [*self._versions(self._objects[ref])],
                ]
                for ref in self._numbers
            ],
            "a": self._told,
            "e": events,
            "p": [*self._told_processes()],
            "t": [*self._texts],
            "s": first,
        }

    def _told_processes(self) -> Iterator[list[Any]]:
        """Each process: its name, its states, and the versions that it was shown."""
        for each in self._processes:
            states = [[step, self._text(text)] for step, text in each.states]
            sights = {
                number: [
                    [step, self._places[id(found)]]
                    for step, found in each.sights.get(ref, ())
                    if id(found) in self._places
                ]
                for ref, number in self._numbers.items()
            }
            yield [one_line(each.name), states, sights]

    def _text(self, text: str) -> int:
        """The number of a text: many texts occur again and again."""
        shown = one_line(self._shorten(text))
        return self._texts.setdefault(shown, len(self._texts))

    def _milliseconds(self, wall: float) -> int:
        seconds = max(-_SECONDS_MAX, min(wall - self._began, _SECONDS_MAX))
        return round(seconds * 1000)

    def _number(self, ref: Ref) -> int:
        return self._numbers.setdefault(ref, len(self._numbers))

    def _attempt(self, attempt: Attempt) -> int:
        known = self._attempts.get(id(attempt))
        if known is not None:
            return known
        number = self._attempts[id(attempt)] = len(self._told)
        end = self._ends.get(id(attempt))
        seen = [
            [
                each.step,
                self._number(each.object),
                -1 if each.revision is None else self._places[id(each.revision)],
            ]
            for each in self._behind.sightings(attempt)
            if each.object in self._objects
            if each.revision is None or id(each.revision) in self._places
        ]
        where = f" of {attempt.where}" if attempt.where else ""
        place = self._behind.places.get(attempt.handler)
        name = f"{attempt.handler} ({place})" if place else attempt.handler
        words = f"{name} was called{attempt.reason_text}{where}{attempt.retry_text}"
        ended = "it has not ended" if end is None else end.text
        step = 0 if end is None else end.step
        told = [attempt.step, self._text(words), seen, self._text(ended), step]
        self._told.append(told)
        return number

    def _versions(self, versions: Sequence[Revision]) -> Iterator[list[Any]]:
        """Each version with its differences from the one before."""
        before: dict[str, Any] = {}
        for each in versions:
            head = [one_line(each.version), each.since, each.shown]
            head.append(self._milliseconds(each.wall))
            if each.gone:
                yield [*head, {}, [], 1]  # a later object may have the same name
                continue
            now = {
                _brief_text(path): _value(value) for path, value in each.leaves.items()
            }
            gone = [path for path in before if path not in now]
            fresh = {
                path: value
                for path, value in now.items()
                if path not in before or _is_different(before[path], value)
            }
            before = now
            yield [*head, fresh, gone]


def _is_different(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or one != other


def _value(value: Any) -> Any:
    """A value as the page shows it: a long text is cut, but remains distinguishable."""
    if isinstance(value, str):
        return _brief_text(value)
    if isinstance(value, int | float) and abs(value) > _NUMBER_MAX:
        return _brief_text(str(value))
    return value


def _brief_text(text: str) -> str:
    if len(text) <= _TEXT_LENGTH_MAX:
        return one_line(text)
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=3).hexdigest()
    return f"{one_line(text[:_TEXT_LENGTH_MAX])}... ({len(text)} characters, {digest})"


_ESCAPES = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def as_script(value: Any) -> str:
    r"""A value as JSON within an element `script`, without any text that could end it.

    >>> as_script(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)
