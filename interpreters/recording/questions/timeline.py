"""The events of a recording with their objects: for pages, and for traces.

The story (`fnop.interpreters.recording.questions.story`) provides the words. Here each
of its lines becomes an event that knows its object, its request and its attempt.
Between them come events that are not decisions: what the operator was shown, and what
others have done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fnop.interpreters.recording.identities.volatile import MADE
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.account import Account, Change, Mark
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.history import Question, Request, Step
from fnop.interpreters.recording.model.presence import Presence
from fnop.interpreters.recording.model.refs import Ref, ref_of
from fnop.interpreters.recording.model.revisions import Revision, Revisions, packed
from fnop.interpreters.recording.questions.story import Line, Story, log_told

__all__ = ["ACTORS", "EVENTS_MAX", "Event", "Timeline"]

Json = Mapping[str, Any]

EVENTS_MAX = 10_000
# The versions of an object that are noted as shown.
SIGHTS_MAX = 1_000
_VERBS = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}
# The words of the account for the author of a change.
ACTORS = {
    "": "somebody",
    "cluster": "the cluster's controllers",
    "given": "the scene",
    "late": "a request that was on its way",
    "operator": "the operator",
    "rival": "a rival",
    "second": "another process of the operator",
    "user": "the user",
}
_OTHERS = frozenset(ACTORS) - {"", "operator"}


@dataclass(slots=True, eq=False)
class Event:
    """One event: its step and time (Unix seconds), its sort, and its text in one line.

    The sorts are those of the story, and these:

    - "shown" for what a watch or a listing shows.
    - "change" for what others have done in the cluster.
    - "stream" for the end of a watch.
    - "user", "fault" and "rest": the lanes of the account.

    `answer` is the rest of a request's text, if nothing came in between; `told` is the
    whole text. If a timeline is of several processes, `process` is the name of the
    event's one, and `own_step` the number of the step in its recording.
    """

    step: int
    wall: float
    sort: str
    text: str
    where: str = ""
    depth: int = 0
    answer: str = ""
    object: Ref | None = None
    revision: Revision | None = None
    attempt: Attempt | None = None
    request: Request | None = None
    by: str = ""
    process: str = ""
    own_step: int = 0

    @property
    def told(self) -> str:
        """The whole text, with the result."""
        match self.sort:
            case "shown" | "change" | "user":
                return f"{self.text}{_version_in_words(self.revision)}"
            case "send" if self.request is not None and not self.request.ended:
                return f"{self.text} -> {self.request.result}"
            case _:
                return f"{self.text}{self.answer}"

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts behind the event."""
        if self.attempt is not None:
            return (self.attempt,)
        return () if self.request is None else self.request.attempts

    @property
    def is_told_twice(self) -> bool:
        """Whether it is the operator's change, which its request reports already."""
        found = self.revision
        return self.sort == "change" and found is not None and found.made > 0

    @property
    def is_trouble(self) -> bool:
        """Whether something has gone wrong here."""
        match self.sort:
            case "fault" | "say" | "gap":
                return True
            case "end":
                return "failure" in ((self.attempt and self.attempt.end) or {})
            case "send" | "answer":
                return self.request is not None and self.request.answered in _REFUSALS
            case _:
                return False

    @property
    def key(self) -> str:
        """The event without the parts that differ between equal runs."""
        parts = self.where, self.text
        if self.sort == "call" and self.attempt is not None:
            parts = self.where, f"{self.attempt.handler} for {self.attempt.reason}"
        elif self.request is not None:
            parts = self.text.partition(" -> ")[0], self.request.answered
        elif self.object is not None and self.sort in ("shown", "change"):
            parts = self.object.label, self.text.removeprefix("sees ")
        return "/".join((self.sort, *(MADE.sub("-*", each) for each in parts)))


_REFUSALS = frozenset(("Conflict", "Refused", "Raised", "Unknown", "Unreachable"))


@dataclass
class Timeline(Question):
    """The events of a recording; the last `EVENTS_MAX` of them.

    `count` is the number of all events. After the last record comes `end`.
    """

    account: Account = field(default_factory=Account)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))
    count: int = 0
    revisions: Revisions = field(default_factory=Revisions)
    story: Story = field(default_factory=Story)
    # The entries of the account that are still ahead, by step and version, the first
    # last.
    _ahead: list[tuple[tuple[float, float, int], Mark | Change]] = field(
        default_factory=list
    )
    # The requests without an answer, each with its event.
    _open: dict[Request, Event] = field(default_factory=dict)
    _served: tuple[object, dict[tuple[str, str], str]] = (None, {})
    is_shortened: bool = False
    # The versions of each object that this operator was shown, with the steps; only a
    # page of several processes asks for them.
    sights: dict[Ref, deque[tuple[int, Revision]]] | None = None

    def __post_init__(self) -> None:
        """Line up the entries of the account, and share the story's history."""
        self.history = self.story.history
        self._presence = Presence(self.history)
        for change in self.account.changes:
            self.revisions.tell(_revision_of(change))
        told: list[Mark | Change] = [*self.account.marks, *self.account.changes]
        places = ((*_place_of(each), number) for number, each in enumerate(told))
        self._ahead = sorted(zip(places, told, strict=True), reverse=True)

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return self.history.steps

    @property
    def pending(self) -> Iterable[Request]:
        """The requests that are still without an answer."""
        return self._open

    def see(self, step: Step) -> None:
        """Take one step in."""
        self._add_account(step.number)
        lines = self.story.lines(step)
        if step.is_start:
            for each in self._open:
                each.shorten()
            self._open.clear()
        self._note_input(step, next((e for e in lines if e.sort == "answer"), None))
        self._add_departures(step)
        for line in lines:
            if line.sort != "answer":
                self._tell(line)

    def miss(self, gap: records.Gap) -> None:
        """Report that steps are missing: their content is not known."""
        for line in self.story.miss(gap):
            self._tell(line)
        self._presence.miss(gap)

    def end(self) -> None:
        """The recording is over: add the events after its last step."""
        self._add_account(float("inf"))
        kept = [each for each in self.events if not each.is_told_twice]
        self.count -= len(self.events) - len(kept)
        self.events = deque(kept, self.events.maxlen)

    def shorten(self, most: int) -> None:
        """Drop events from the middle if there are more than `most`, after the end.

        A run that never settles goes on as it has begun.
        """
        if len(self.events) > most:
            first = [*self.events][: most - most // 2]
            last = [*self.events][len(self.events) - most // 2 :]
            self.events, self.is_shortened = deque([*first, *last]), True

    @property
    def left_out(self) -> str:
        """The events that are not kept, in words; "" if all are kept."""
        left = self.count - len(self.events)
        if not left:
            return ""
        where = f"{left:,}" if self.is_shortened else f"the first {left:,}"
        middle = " in the middle" if self.is_shortened else ""
        return f"{where} of {self.count:,} events{middle}"

    def _add(self, event: Event) -> Event:
        self.count += 1
        self.events.append(event)
        return event

    # ---------------------------------------------------------- what others have done

    def _add_account(self, step: float) -> None:
        """Add the entries of the account up to this step."""
        while self._ahead and self._ahead[-1][0][0] <= step:
            _, found = self._ahead.pop()
            if isinstance(found, Mark):
                self._add_mark(found)
            else:
                self._change(found)

    def _add_mark(self, mark: Mark) -> None:
        before = self.events[-1] if self.events else None
        event = self._add(Event(mark.step, mark.wall, mark.lane, mark.text))
        if mark.lane == "fault" and before is not None and before.step == mark.step:
            event.object, event.request = before.object, before.request
        after = self._ahead[-1][1] if self._ahead else None
        if mark.lane == "user" and isinstance(after, Change) and after.by == "user":
            self._ahead.pop()  # one event is the action and its effect
            self._set_object(event, after)

    def _change(self, change: Change) -> None:
        step = max(0, change.since - 1)
        event = Event(step, self.history.wall, "change", "", by=change.by)
        self._set_object(event, change)
        if change.by == "operator":
            self._attribute_version(event, change.since - 1)
        if change.by in ("operator", "given") or event.object is None:
            return  # a request shows it, or the object existed before
        by = ACTORS.get(change.by, change.by)
        what = _VERBS.get(change.type, change.type)
        event.text = f"{event.object.label} is {what} by {by}"
        self._add(event)

    def _attribute_version(self, event: Event, step: int) -> None:
        """Attribute a version to the unanswered request that made it."""
        if event.revision is None or event.revision.made:
            return
        for request in self._open:
            is_of_step = request.is_write and request.step == step
            if is_of_step and request.object == event.object:
                request.shown, event.revision.made = (event.revision,), step

    def _set_object(self, event: Event, change: Change) -> None:
        event.object = Ref(change.kind, change.namespace, change.name)
        event.revision = self.revisions.find(change.uid, str(change.version))
        if event.revision is not None:
            event.revision.wall = event.wall

    # ---------------------------------------------------------- what the world answers

    def _note_input(self, step: Step, answer: Line | None) -> None:
        kind = self.history.kind_of(getattr(step.input, "stream", -1))
        match step.input:
            case records.Answered() if step.request is not None:
                about = step.request.object
                shown = self._objects(step, None if about is None else about.kind)
                self._note_answer(step.request, shown, answer)
            case records.WatchEvent(type=type):
                for each in self._objects(step, kind):
                    self._add_shown(each, step, _VERBS.get(type, type))
            case records.ListItem():
                for each in self._objects(step, kind):
                    self._add_shown(each, step, "listed")
            case records.ListDone(version=version) | records.Bookmark(version=version):
                if kind is not None:
                    self.revisions.reach(kind, version, step.number)
            case records.LogLines(stream=stream, lines=lines) if lines:
                self._add_log_lines(self.history.streams.get(stream), len(lines), step)
            case records.StreamEnded() as end:
                self._add_stream_end(end, kind or "a kind", step)
            case _:
                pass

    def _add_stream_end(self, end: records.StreamEnded, kind: str, step: Step) -> None:
        log = self.history.streams.get(end.stream)
        if not isinstance(log, records.FollowLog):
            what = f"the watch of {kind.partition('.')[0]}"
        elif end.reason == "eof":
            return  # its container has ended, or everything was read
        else:
            what = f"the log of {log_told(log)}"
        words = f"{what} ends: {end.status or ''} {end.message or end.reason}"
        text = " ".join(words.split())[:_TEXT_LENGTH_MAX]
        self._add(Event(step.number, step.wall, "stream", text))

    def _add_log_lines(self, log: Any, number: int, step: Step) -> None:
        """Add an event for log lines that handlers want."""
        if isinstance(log, records.FollowLog):
            count = "a line" if number == 1 else f"{number} lines"
            text = f"reads {count} of the log of {log_told(log)}"
            event = self._add(Event(step.number, step.wall, "shown", text))
            event.object = Ref("pods", log.namespace, log.name)

    def _add_departures(self, step: Step) -> None:
        """Add the objects that a listing lacks, unless the account already has them."""
        for departure in self._presence.see(step):
            if departure.listed and not self.account.changes:
                version = str(getattr(step.input, "version", ""))
                at = step.number, step.wall
                found = self.revisions.lose(departure.uid, version, *at)
                if found is not None:
                    self._note_sight(found, step)
                    self._add_shown(found, step, "no more in a listing")

    def _objects(self, step: Step, kind: str | None) -> Iterator[Revision]:
        """Take note of the objects of an input, which are of a kind, if it is known."""
        for body in step.shown:
            if not body.name:
                continue  # a status, or a list
            data = body.data
            known = self._kind_of(data) or kind or str(data.get("kind"))
            ref = Ref(known, body.namespace or "", body.name)
            at = step.number, step.wall
            found = self.revisions.show(ref, data, *at, gone=step.is_gone)
            self._note_sight(found, step)
            yield found

    def _note_sight(self, found: Revision, step: Step) -> None:
        if self.sights is None:
            return
        seen = self.sights.setdefault(found.ref, deque(maxlen=SIGHTS_MAX))
        if not seen or seen[-1][1] is not found:
            seen.append((step.number, found))

    def _kind_of(self, data: Json) -> str:
        catalogue = self.history.catalogue
        if self._served[0] is not catalogue:
            kinds = {(e.api_version, e.kind): e.label for e in catalogue.resources}
            self._served = catalogue, kinds
        return self._served[1].get(
            (str(data.get("apiVersion")), str(data.get("kind"))), ""
        )

    def _add_shown(self, found: Revision, step: Step, what: str) -> None:
        text = f"sees {found.ref.label} {what}"
        event = Event(step.number, step.wall, "shown", text)
        event.object, event.revision = found.ref, found
        self._add(event)

    def _note_answer(
        self, request: Request, shown: Iterator[Revision], line: Line | None
    ) -> None:
        request.shown, sent = (*shown,), self._open.pop(request, None)
        request.shorten()
        if request.is_write and request.shown:
            found = request.shown[0]
            # A request did not make a version that existed before, or that another
            # client made.
            is_known = found.shown <= request.step or found.by in _OTHERS
            found.made = found.made or (0 if is_known else request.step)
        if line is None or sent is None:
            return
        last = self.events[-1] if self.events else None
        if last is not None and last.revision is request.made is not None:
            last = self.events[-2] if len(self.events) > 1 else None
        if last is sent:
            sent.answer = line.text.removeprefix(sent.text)
            return
        event = Event(line.step, line.wall, "answer", line.text, line.where, line.depth)
        event.object, event.request = request.object, request
        self._add(event)

    # ------------------------------------------------------- what the operator decides

    def _tell(self, line: Line) -> None:
        event = Event(
            *(line.step, line.wall, line.sort, line.text, line.where, line.depth),
            attempt=line.attempt,
        )
        if line.attempt is not None and line.attempt.object is not None:
            event.object = ref_of(*line.attempt.object[:3])
        if line.sort == "send" and line.request is not None:
            event.object, event.request = line.request.object, line.request
            self._open[line.request] = event
        self._add(event)


_TEXT_LENGTH_MAX = 300


def _place_of(told: Mark | Change) -> tuple[float, float]:
    """The position of an entry: before a step, and after a version of the cluster."""
    match told:
        case Mark(step=step, version=version):
            return step + 1, version + 0.5
        case Change(since=since, version=version):
            return since, version


def _version_in_words(found: Revision | None) -> str:
    """The version in words, and its changes."""
    if found is None:
        return ""
    news = f": {found.changed}" if found.changed and not found.made else ""
    news = f", made by #{found.made}" if found.made else news
    by = f" by {found.by}" if news.startswith(":") and found.by not in ACTORS else ""
    return f", version {found.version}{news}{by}"


def _revision_of(change: Change) -> Revision:
    ref = Ref(change.kind, change.namespace, change.name)
    found = Revision(ref, change.uid, str(change.version), 0.0, change.since)
    found.by, found.gone = change.by, change.type == "DELETED"
    found.body = packed(change.body)
    return found
