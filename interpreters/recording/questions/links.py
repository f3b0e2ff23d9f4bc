"""The causes of an event: what its handlers had seen, and who has written that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from fnop.core.seam.traces import Version
from fnop.core.values.diff import path_at
from fnop.core.values.paths import path_text
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.history import Request
from fnop.interpreters.recording.model.refs import Ref, ref_of
from fnop.interpreters.recording.model.revisions import Revision, Revisions
from fnop.interpreters.recording.questions.timeline import ACTORS, Event

__all__ = ["Behind", "Link", "Sighting"]

# An index, or many children, would fill the page.
_SHOWN_MAX = 30
_LINKS_MAX = 16


class Sighting(Struct, frozen=True):
    """A version that an attempt was shown at a step; None if nothing was there."""

    step: int
    object: Ref
    revision: Revision | None


class Link(Struct, frozen=True):
    """A line of the chain of causes; `step` is its target, or 0 without one."""

    depth: int
    text: str
    step: int = 0


@dataclass
class Behind:
    """The events of a recording, and the causes of each of them.

    `places` are the files and lines of the handlers, by their ids.
    """

    events: Iterable[Event]
    revisions: Revisions
    places: Mapping[str, str] = field(default_factory=dict)
    _requests: dict[int, list[Request]] = field(default_factory=dict)
    _makers: dict[int, Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the requests of each attempt, and the author of each version."""
        for event in self.events:
            request = event.request
            if request is None or event.sort != "send":
                continue
            for attempt in request.attempts:
                self._requests.setdefault(id(attempt), []).append(request)
            if request.made is not None:
                self._makers[id(request.made)] = event

    def requests(self, attempt: Attempt) -> Sequence[Request]:
        """The requests of an attempt, in their order."""
        return self._requests.get(id(attempt), ())

    # --------------------------------------------------------------- what was seen

    def sightings(self, attempt: Attempt) -> Iterator[Sighting]:
        """The versions that an attempt was shown at its beginning or has read since."""
        for version in _views(attempt):
            found = self.revisions.find(version.uid, version.version)
            yield Sighting(attempt.step, ref_of(*version[:3]), found)
        for request in self.requests(attempt):
            for each in request.shown[:_SHOWN_MAX]:
                if request.ended:
                    yield Sighting(request.ended, each.ref, each)
            if request.answered == "Missing" and request.object is not None:
                yield Sighting(request.ended, request.object, None)

    # ------------------------------------------------------------------ the chain

    def links(self, event: Event) -> list[Link]:
        """The chain from an event back to its causes."""
        told: dict[tuple[str, int], Link] = {}
        for each in self._links_of(event, 0):
            told.setdefault((each.text, each.step), each)
        return [*told.values()][:_LINKS_MAX]

    def _links_of(self, event: Event, depth: int) -> Iterator[Link]:
        if event.sort in ("shown", "change") and event.revision is not None:
            yield from self._link_to_maker(event.revision, depth)
        elif event.request is not None:
            yield from self._links_to_decision(event, event.request, depth)
        elif event.sort in ("call", "end"):
            for attempt in event.attempts:
                yield from self._links_to_views(attempt, depth)

    def _link_to_maker(self, found: Revision, depth: int) -> Iterator[Link]:
        """Link to the author of a version; that event shows the further causes."""
        maker = self._makers.get(id(found))
        if maker is not None:
            yield Link(depth, f"made by {maker.text}", maker.step)
        elif found.by:
            by = ACTORS.get(found.by, found.by)
            yield Link(depth, f"made by {by}")

    def _links_to_decision(
        self, event: Event, request: Request, depth: int
    ) -> Iterator[Link]:
        for attempt in event.attempts:
            yield Link(depth, self._words(attempt, request), attempt.step)
            yield from self._links_to_views(attempt, depth + 1)
            for each in self.requests(attempt):
                if each.answered and not each.is_write and each.ended <= request.step:
                    name = each.object.label if each.object else each.verb
                    text = f"it had asked for {name}: {_read(each)}"
                    yield Link(depth + 1, text, each.ended)
        if request.is_write and not event.attempts:
            by = "fnop itself, for its own notes"
            if request.handler:
                by = f"{request.handler}, in a call that is not in the recording"
            yield Link(depth, f"decided by {by}")

    def _words(self, attempt: Attempt, request: Request) -> str:
        pointers = [
            each
            for handler, pointers in request.fields
            if handler == attempt.handler
            for each in pointers
        ]
        fields = [
            path_text(path_at(each))
            for each in dict.fromkeys(pointers)
            # The whole status is listed only if no field within it is (`carried`).
            if not any(part.startswith(f"{each}/") for part in pointers)
        ]
        what = f"{', '.join(fields)}: decided" if fields else "decided"
        place = self.places.get(attempt.handler)
        where = f" ({place})" if place else ""
        return f"{what} by {attempt.handler}{where}, called{attempt.reason_text}"

    def _links_to_views(self, attempt: Attempt, depth: int) -> Iterator[Link]:
        for number, version in enumerate(_views(attempt)):
            found = self.revisions.find(version.uid, version.version)
            name = ref_of(*version[:3]).label
            child = "with its child" if number else "it was shown"
            text = f"{child} {name} in version {version.version}"
            yield Link(depth, text, 0 if found is None else found.shown)
            if found is not None and not number and depth < _DEPTH_MAX:
                yield from self._link_to_maker(found, depth + 1)


_DEPTH_MAX = 2


def _views(attempt: Attempt) -> list[Version]:
    """The versions that an attempt was shown when it began, its own object first."""
    first = () if attempt.object is None else (attempt.object,)
    children = (
        Version(*key, body.uid, body.version) for key, body in attempt.children.items()
    )
    return [*first, *children][:_SHOWN_MAX]


def _read(request: Request) -> str:
    """The answer to a reading request, in few words."""
    match request.shown:
        case ():
            return "none" if request.answered == "Missing" else request.answered.lower()
        case (one,):
            return f"version {one.version}"
        case several:
            return f"{len(several)} objects"
