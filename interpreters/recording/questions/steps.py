"""A recording step by step: the input and output of each step, and the state by then.

One pass over the records makes a timeline, as for a page. Questions about the steps so
far are answered by look-ups, so that going back costs as little as going on. Objects
are kept as compressed text, and for an ended attempt only the data that a cursor shows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.interpreters.recording.model.account import Account
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.contents import Contents, NoSuchObject, is_kind
from fnop.interpreters.recording.model.history import (
    History,
    Question,
    Request,
    Step,
)
from fnop.interpreters.recording.model.records import Gap
from fnop.interpreters.recording.model.refs import Named, Ref
from fnop.interpreters.recording.model.revisions import Revision, Revisions
from fnop.interpreters.recording.model.versions import Packed, Versions
from fnop.interpreters.recording.questions.asides import Aside, Asides
from fnop.interpreters.recording.questions.links import Behind
from fnop.interpreters.recording.questions.story import Story
from fnop.interpreters.recording.questions.timeline import Event, Timeline

__all__ = ["EVENTS_MAX", "VERSIONS_MAX", "Past", "Reading", "Steps"]

# Beyond these numbers of events and versions, only the last ones are kept: about 2 GB.
EVENTS_MAX, VERSIONS_MAX = 500_000, 250_000


class Past(Struct, frozen=True):
    """The versions of an object in their order, and the step since which each exists.

    The object may have been deleted and created again: it is identified by its names.
    """

    versions: Sequence[Revision]
    since: Sequence[int]

    def at(self, step: int) -> int:
        """The number of the version that exists at a step; -1 before the first."""
        return bisect_right(self.since, step) - 1

    def shown_by(self, step: int) -> int:
        """The number of the last version that the operator was shown, or -1."""
        for number in range(self.at(step), -1, -1):
            if 0 < self.versions[number].shown <= step:
                return number
        return -1


@dataclass
class Reading(Question):
    """The steps of a recording while it is read; `end` comes after the last one.

    `steps` are those so far. `account` is what a check reports in addition to the
    steps, and `manager` is the operator's name in managed fields. `places` are the
    files and lines of its handlers, by their ids.
    """

    account: Account = field(default_factory=Account)
    manager: str = ""
    places: Mapping[str, str] = field(default_factory=dict)
    # The recorded steps, each with its time; a gap is listed by its last step.
    numbers: list[int] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)
    gaps: dict[int, int] = field(default_factory=dict)
    _asides: list[Aside] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin a timeline that keeps everything, in little memory."""
        self.history = History(Versions(Packed))
        story = Story(self.history, self.manager)
        events: deque[Event] = deque(maxlen=EVENTS_MAX)
        revisions = Revisions(VERSIONS_MAX)
        self.timeline = Timeline(self.account, events, 0, revisions, story)
        self.contents, self._words = Contents(self.history), Asides(self.history)

    def see(self, step: Step) -> None:
        """Take one step in."""
        before = self.timeline.count
        self.timeline.see(step)
        self.contents.see(step)
        self._note(self._words.see(step), self.timeline.count - before)

    def miss(self, gap: Gap) -> None:
        """Take note of missing steps, which are listed by the last of them."""
        before = self.timeline.count
        self.gaps[gap.last] = gap.steps
        self.timeline.miss(gap)
        self._note(self._words.miss(gap), self.timeline.count - before)

    def _note(self, aside: Aside, fresh: int) -> None:
        self.numbers.append(self.history.steps)
        self._asides.append(aside)
        self.walls.append(self.history.wall)
        for event in islice(reversed(self.timeline.events), fresh):
            if event.attempt is not None and event.attempt.end is not None:
                _strip_attempt(event.attempt)

    def end(self) -> None:
        """The recording is over: add the events after its last step."""
        self.timeline.end()

    @property
    def left_out(self) -> int:
        """The number of events at the beginning that are not kept."""
        return max(0, self.timeline.count - len(self.timeline.events))

    def steps(self) -> Steps:
        """The steps so far.

        Later records may add to them: an answer, or the existence of a version.
        """
        timeline, revisions = self.timeline, self.timeline.revisions
        objects = revisions.of_objects().items()
        return Steps(
            (*self.numbers,),
            (*self.walls,),
            dict(self.gaps),
            (*self._asides,),
            self.history.processes,
            self.contents,
            [each for each in timeline.events if not each.is_told_twice],
            self.left_out,
            revisions,
            {ref: Past(each, [one.since for one in each]) for ref, each in objects},
            frozenset(timeline.pending),
            self.places,
        )


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a recording, for questions.

    `numbers` and `walls` are those of the fold. `left_out` counts the events at the
    beginning that are not kept. `pasts` are the versions of each object, and `pending`
    the requests that are still without an answer.
    """

    numbers: Sequence[int]
    walls: Sequence[float]
    gaps: Mapping[int, int]
    asides: Sequence[Aside]
    processes: int
    contents: Contents
    events: Sequence[Event]
    left_out: int
    revisions: Revisions
    pasts: Mapping[Ref, Past]
    pending: frozenset[Request] = frozenset()
    places: Mapping[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Compute now what the first questions would compute."""
        _ = self.behind, self.ends, self.troubles, self.named, self._refs_by_name
        _ = self._resources, self._kinds, self.answers

    @cached_property
    def _steps_of_events(self) -> Sequence[int]:
        """The step of each event; an event within a gap counts for the gap's end."""
        steps: list[int] = []
        for each in self.events:
            place = min(bisect_left(self.numbers, each.step), len(self.numbers) - 1)
            step = self.numbers[place] if self.numbers else 0
            steps.append(max(step, steps[-1] if steps else 0))
        return steps

    @cached_property
    def answers(self) -> Mapping[int, Sequence[Event]]:
        """The requests that a step answers, if the answer is not its own event."""
        found: dict[int, list[Event]] = {}
        for event in self.events:
            request = event.request
            if event.sort == "send" and request is not None and event.answer:
                found.setdefault(request.ended, []).append(event)
        return found

    # ------------------------------------------------------------------------- steps

    @property
    def first(self) -> int:
        """The first step that is kept; 0 if there is none."""
        if self.left_out and self._steps_of_events:
            return self._steps_of_events[0]
        return self.numbers[0] if self.numbers else 0

    @property
    def last(self) -> int:
        """The last step; 0 if there is none."""
        return self.numbers[-1] if self.numbers else 0

    def place(self, step: int) -> int:
        """The place in `numbers` of a step, or of the gap that contains it."""
        return min(bisect_left(self.numbers, step), len(self.numbers) - 1)

    def wall(self, step: int) -> float:
        """The time of a step (Unix seconds)."""
        return self.walls[self.place(step)] if self.walls else 0.0

    def events_at(self, step: int) -> Sequence[Event]:
        """The events of a step."""
        return self.events[self.before(step) : self.after(step)]

    def before(self, step: int) -> int:
        """The number of events before a step."""
        return bisect_left(self._steps_of_events, step)

    def after(self, step: int) -> int:
        """The number of events up to a step."""
        return bisect_right(self._steps_of_events, step)

    def step_of(self, number: int) -> int:
        """The step of an event, by the number of the event."""
        return self._steps_of_events[number]

    def aside(self, step: int) -> Aside:
        """The input and the commands of a step other than its events."""
        place = self.place(step)
        is_there = place >= 0 and self.numbers[place] == step
        return self.asides[place] if is_there else Aside()

    # ----------------------------------------------------------------------- objects

    @cached_property
    def _refs_by_name(self) -> Mapping[str, Sequence[Ref]]:
        found: dict[str, list[Ref]] = {}
        for each in self.ordered:
            found.setdefault(each.name, []).append(each)
        return found

    @cached_property
    def named(self) -> Mapping[Ref, Named]:
        """The objects of kinds that the API server has served, by their names."""
        return {_ref_of_named(each): each for each in self.contents.objects}

    @cached_property
    def ordered(self) -> Sequence[Ref]:
        """All objects, by their kinds and names."""
        return sorted(self.pasts)

    def meant(self, words: str) -> Ref:
        """The object that a person means. Raises `NoSuchObject` as `Contents.named`.

        An object that the operator was never shown is found by its plural.
        """
        refs = self._refs_by_name.get(words.rpartition("/")[2], ())
        shown = [self.named[each] for each in refs if each in self.named]
        try:
            return _ref_of_named(self.contents.named(words, shown))
        except NoSuchObject:
            found = [each for each in refs if _is_meant(each, words)]
            if len(found) != 1:
                raise
            return found[0]

    def kind_meant(self, word: str) -> str:
        """The kind that a word means, as it is in a `Ref`; "" if there is none."""
        known = (each for each in self._resources if is_kind(each, word))
        others = (each for each in self._kinds if word in _plural_forms(each))
        return next((each.label for each in known), next(others, "")) if word else ""

    @cached_property
    def _resources(self) -> Iterable[Resource]:
        return dict.fromkeys(each.resource for each in self.named.values())

    @cached_property
    def _kinds(self) -> Iterable[str]:
        return dict.fromkeys(each.kind for each in self.ordered)

    # ------------------------------------------------------------------------- calls

    @cached_property
    def behind(self) -> Behind:
        """The versions that attempts were shown, and the authors of versions."""
        return Behind(self.events, self.revisions, self.places)

    @cached_property
    def ends(self) -> Mapping[int, Event]:
        """The end of each attempt, by the attempt's `id`."""
        return {
            id(each.attempt): each
            for each in self.events
            if each.attempt is not None and each.sort in ("end", "say")
            if each.attempt.end is not None
        }

    @cached_property
    def troubles(self) -> Sequence[int]:
        """The steps at which something has gone wrong, in their order."""
        found = {
            _known(each, step)
            for each, step in zip(self.events, self._steps_of_events, strict=True)
            if each.is_trouble
        }
        return sorted(found)


def _ref_of_named(named: Named) -> Ref:
    return Ref(named.resource.label, named.namespace, named.name)


def _plural_forms(kind: str) -> tuple[str, str]:
    return kind, kind.partition(".")[0]


def _is_meant(ref: Ref, words: str) -> bool:
    """Whether a name means this object, with a kind, a namespace, or both before it.

    >>> _is_meant(Ref("pods", "default", "web"), "pods/web")
    True
    """
    *before, name = words.split("/")
    match before:
        case [kind, namespace]:
            is_there = namespace == ref.namespace and kind in _plural_forms(ref.kind)
        case [word]:
            is_there = word in (ref.namespace, *_plural_forms(ref.kind))
        case _:
            is_there = not before
    return name == ref.name and is_there


def _known(event: Event, step: int) -> int:
    """The step by which it is known how an event has ended."""
    request = event.request
    is_sent = event.sort == "send" and request is not None
    return (request.ended or step) if is_sent and request is not None else step


def _strip_attempt(attempt: Attempt) -> None:
    """Drop everything from an ended attempt that a cursor does not show."""
    failure = (attempt.end or {}).get("failure")
    attempt.end = {} if failure is None else {"failure": True}
    attempt.desires, attempt.indices, attempt.memo = None, {}, {}
    attempt.exchanges = []
