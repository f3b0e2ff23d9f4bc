"""The events of a recording with their objects: for pages, and for traces.

The story (`fnop.interpreters.recording.questions.story`) provides the words. Here each
of its lines becomes an event that knows its object, its request and its attempt.
Between them come events that are not decisions: what the operator was shown, and what
others have done.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fnop.interpreters.recording.model.account import Account, Change, Mark
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.carried import Carried, carried
from fnop.interpreters.recording.model.presence import Presence
from fnop.interpreters.recording.model.revisions import (
    Ref,
    Revision,
    Revisions,
    packed,
    ref_of,
)
from fnop.interpreters.recording.model.times import moment
from fnop.interpreters.recording.model.versions import objects_in
from fnop.interpreters.recording.questions.story import Line, Story, log_told

__all__ = ["ACTORS", "EVENTS_MAX", "Event", "Request", "Timeline"]

Json = Mapping[str, Any]

EVENTS_MAX = 10_000
# Effects that change an object.
_WRITES = frozenset(("Apply", "Create", "Adopt", "Patch", "Delete"))
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
class Request:
    """A request of the operator, or a call outside of the cluster.

    - `object` is None if the request is not about an object.
    - `attempts` are the last ones of the handlers behind it.
    - `fields` are the handlers' changes that it carries, if they are known.
    - `answered` is the outcome's kind, at the step `ended`. They are "" and 0 if no
      answer has come: it was lost, or the operator ended, or steps are missing.
    - `may_have_ended` means that the answer may be in missing steps.
    - `shown` are the objects in the answer.
    """

    step: int
    verb: str
    object: Ref | None
    handler: str
    attempts: tuple[Attempt, ...]
    fields: Carried = ()
    answered: str = ""
    ended: int = 0
    ended_wall: float = 0.0
    shown: tuple[Revision, ...] = ()
    may_have_ended: bool = False

    @property
    def outcome(self) -> str:
        """The result of the request, in a word or two."""
        lacks = "steps are missing" if self.may_have_ended else "no reply"
        return self.answered or lacks

    @property
    def is_write(self) -> bool:
        """Whether the request changes an object."""
        return self.verb in _WRITES

    @property
    def made(self) -> Revision | None:
        """The version that it has made; None if it changed nothing, or is unknown."""
        found = self.shown[0] if self.is_write and self.shown else None
        return found if found is not None and found.made == self.step else None


@dataclass(slots=True, eq=False)
class Event:
    """One event: its step and time (Unix seconds), its sort, and its text in one line.

    The sorts are those of the story, and these:

    - "shown" for what a watch or a listing shows.
    - "change" for what others have done in the cluster.
    - "stream" for the end of a watch.
    - "user", "fault" and "rest": the lanes of the account.

    `answer` is the rest of a request's text, if nothing came in between; `told` is the
    whole text.
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

    @property
    def told(self) -> str:
        """The whole text, with the result."""
        match self.sort:
            case "shown" | "change" | "user":
                return f"{self.text}{_version_in_words(self.revision)}"
            case "send" if self.request is not None and not self.request.ended:
                return f"{self.text} -> {self.request.outcome}"
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
        return "/".join((self.sort, *(_STABLE.sub("-*", each) for each in parts)))


_REFUSALS = frozenset(("Conflict", "Refused", "Raised", "Unknown", "Unreachable"))
# The end of a name that fnop derives from the owner's uid (`stable_name`).
_STABLE = re.compile(r"-[0-9a-f]{10}(?![0-9a-z])")


@dataclass
class Timeline:
    """The fold: takes records in, returns events; the last `EVENTS_MAX` of them.

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
    # The requests without an answer, the last attempt of each handler and object, and
    # the kinds of streams.
    _open: dict[int, Event] = field(default_factory=dict)
    _latest: dict[tuple[str, str], Attempt] = field(default_factory=dict)
    _streams: dict[int, str] = field(default_factory=dict)
    _logs: dict[int, Json] = field(default_factory=dict)
    _served: tuple[object, dict[tuple[str, str], str]] = (None, {})
    is_shortened: bool = False
    _presence: Presence = field(default_factory=Presence)
    _wall: float = 0.0

    def __post_init__(self) -> None:
        """Line up the entries of the account."""
        for change in self.account.changes:
            self.revisions.tell(_revision_of(change))
        told: list[Mark | Change] = [*self.account.marks, *self.account.changes]
        places = ((*_place_of(each), number) for number, each in enumerate(told))
        self._ahead = sorted(zip(places, told, strict=True), reverse=True)

    @property
    def steps(self) -> int:
        """The number of records so far."""
        return self.story.attempts.steps

    @property
    def pending(self) -> Iterator[Request]:
        """The requests that are still without an answer."""
        return (each.request for each in self._open.values() if each.request)

    def add(self, record: Json) -> None:
        """Take one record in. Raises the same errors as `Attempts.add`."""
        if "gap" in record:
            self._report_missing(record)
            return
        step, self._wall = self.steps + 1, moment(record).wall
        self._add_account(step)
        lines = self.story.told(record)
        if record["input"]["in"] == "Started":
            self._open.clear()
            self._latest.clear()
        answer = next((each for each in lines if each.sort == "answer"), None)
        self._handle_input(record["input"], step, answer)
        self._add_departures(record, step)
        sent = {}
        for command in record["commands"]:
            self._note(command)
            if command["do"] == "Perform":
                sent[command["id"]] = command
        for line in lines:
            if line.sort != "answer":
                self._tell(line, sent)
        for command in record["commands"]:
            if command["do"] == "Wrote" and command["id"] in self._open:
                request = self._open[command["id"]].request
                assert request is not None
                request.fields = carried(command["fields"])

    def _report_missing(self, record: Json) -> None:
        """Report that steps are missing: their content is not known."""
        for line in self.story.told(record):
            self._tell(line, {})
        self._presence.miss()
        self._latest.clear()
        for each in self._open.values():
            assert each.request is not None
            each.request.may_have_ended = True

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
        event = Event(step, self._wall, "change", "", by=change.by)
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
        for each in self._open.values():
            request = each.request
            if request is None or not request.is_write or request.step != step:
                continue
            if request.object == event.object:
                request.shown, event.revision.made = (event.revision,), step

    def _set_object(self, event: Event, change: Change) -> None:
        event.object = Ref(change.kind, change.namespace, change.name)
        event.revision = self.revisions.find(change.uid, str(change.version))
        if event.revision is not None:
            event.revision.wall = event.wall

    # ---------------------------------------------------------- what the world answers

    def _handle_input(self, input: Json, step: int, answer: Line | None) -> None:
        match input:
            case {"in": "Answered", "id": number, "outcome": outcome}:
                sent = self._open.pop(number, None)
                if sent is not None and sent.request is not None:
                    shown = self._objects(input, step, sent.request.object)
                    self._answered(sent, sent.request, outcome["is"], shown, answer)
            case {"in": "WatchEvent", "stream": stream, "type": kind}:
                kind_of = self._streams.get(stream)
                gone = kind == "DELETED"
                for each in self._objects(input, step, kind_of, gone=gone):
                    self._add_shown(each, step, _VERBS.get(kind, str(kind)))
            case {"in": "ListItem", "stream": stream}:
                for each in self._objects(input, step, self._streams.get(stream)):
                    self._add_shown(each, step, "listed")
            case {"in": "ListDone" | "Bookmark", "stream": stream, "version": version}:
                if stream in self._streams:
                    self.revisions.reach(self._streams[stream], str(version), step)
            case {"in": "LogLines", "stream": stream, "lines": list(lines)} if lines:
                self._read(stream, lines, step)
            case {"in": "StreamEnded", "stream": stream, "reason": reason}:
                self._add_stream_end(input, stream, reason, step)
            case _:
                pass

    def _add_stream_end(self, input: Json, stream: int, reason: str, step: int) -> None:
        log = self._logs.get(stream)
        if log is None:
            kind = self._streams.get(stream, "a kind").partition(".")[0]
            what = f"the watch of {kind}"
        elif reason == "eof":
            return  # its container has ended, or everything was read
        else:
            what = f"the log of {log_told(log)}"
        why = input.get("message") or reason
        words = f"{what} ends: {input.get('status') or ''} {why}"
        text = " ".join(words.split())[:_TEXT_LENGTH_MAX]
        self._add(Event(step, self._wall, "stream", text))

    def _read(self, stream: int, lines: list[Any], step: int) -> None:
        """Add an event for log lines that handlers want."""
        command = self._logs.get(stream)
        if command is None:
            return
        count = "a line" if len(lines) == 1 else f"{len(lines)} lines"
        text = f"reads {count} of the log of {log_told(command)}"
        event = Event(step, self._wall, "shown", text)
        names = str(command.get("namespace") or ""), str(command.get("name"))
        event.object = Ref("pods", *names)
        self._add(event)

    def _add_departures(self, record: Json, step: int) -> None:
        """Add the objects that a listing lacks, unless the account already has them."""
        for departure in self._presence.add(record):
            if departure.listed and not self.account.changes:
                version = str(record["input"].get("version"))
                found = self.revisions.lose(departure.uid, version, step, self._wall)
                if found is not None:
                    self._add_shown(found, step, "no more in a listing")

    def _objects(
        self, input: Json, step: int, about: Ref | str | None, *, gone: bool = False
    ) -> Iterator[Revision]:
        """Take note of the objects of an input; `about` is their kind, if known."""
        kind = about.kind if isinstance(about, Ref) else about
        for data in objects_in(input):
            meta = data["metadata"]
            if not meta.get("name"):
                continue  # a status, or a list
            names = str(meta.get("namespace") or ""), str(meta["name"])
            ref = Ref(self._kind_of(data) or kind or str(data.get("kind")), *names)
            yield self.revisions.show(ref, data, step, self._wall, gone=gone)

    def _kind_of(self, data: Json) -> str:
        catalogue = self.story.attempts.catalogue
        if self._served[0] is not catalogue:
            kinds = {(e.api_version, e.kind): e.label for e in catalogue.resources}
            self._served = catalogue, kinds
        return self._served[1].get(
            (str(data.get("apiVersion")), str(data.get("kind"))), ""
        )

    def _add_shown(self, found: Revision, step: int, what: str) -> None:
        text = f"sees {found.ref.label} {what}"
        event = Event(step, self._wall, "shown", text)
        event.object, event.revision = found.ref, found
        self._add(event)

    def _answered(
        self,
        sent: Event,
        request: Request,
        outcome: str,
        shown: Iterator[Revision],
        line: Line | None,
    ) -> None:
        request.answered, request.shown = str(outcome), (*shown,)
        request.ended, request.ended_wall = self.steps, self._wall
        if request.is_write and request.shown:
            found = request.shown[0]
            # A request did not make a version that existed before, or that another
            # client made.
            is_known = found.shown <= request.step or found.by in _OTHERS
            found.made = found.made or (0 if is_known else request.step)
        if line is None:
            return
        last = self.events[-1] if self.events else None
        if last is not None and last.revision is request.made is not None:
            last = self.events[-2] if len(self.events) > 1 else None
        if last is sent:
            sent.answer = line.text.removeprefix(sent.text)
            return
        event = Event(line.step, line.wall, "answer", line.text, line.where, line.depth)
        event.object, event.request = sent.object, request
        self._add(event)

    # ------------------------------------------------------- what the operator decides

    def _note(self, command: Json) -> None:
        if command["do"] == "FollowLog":
            self._logs[command["stream"]] = command
        if command["do"] in ("Watch", "ListPage"):
            kind = ref_of(str(command.get("resource")), "", "").kind
            self._streams[command["stream"]] = kind

    def _tell(self, line: Line, sent: Mapping[int, Json]) -> None:
        event = Event(
            *(line.step, line.wall, line.sort, line.text, str(line.where), line.depth),
            attempt=line.attempt,
        )
        attempt = line.attempt
        if attempt is not None:
            self._latest[attempt.handler, attempt.where] = attempt
            if attempt.object is not None:
                event.object = ref_of(*attempt.object[:3])
        if line.sort == "send" and line.request is not None:
            self._send(event, line.request, sent[line.request])
        self._add(event)

    def _send(self, event: Event, number: int, command: Json) -> None:
        resource, name = command.get("resource"), command.get("name")
        if resource:
            event.object = ref_of(resource, command.get("namespace"), name)
        handler = command.get("handler") or ""
        event.request = Request(
            event.step,
            str(command["effect"]["is"]),
            event.object,
            handler,
            (*self._attempts_behind(handler, event.where),),
        )
        self._open[number] = event

    def _attempts_behind(self, handlers: str, where: str) -> Iterator[Attempt]:
        for each in handlers.split(","):
            found = self._latest.get((each.strip(), where))
            if found is not None:
                yield found


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
