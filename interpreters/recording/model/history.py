"""A recorded run, step by step: the one fold of records that all questions read.

It counts steps and processes, knows the streams, the kinds, the versions that were
shown and the attempts of handlers, and connects each request with its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import Applied, Conflict, Missing, Refused
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.attempts import Attempt, Attempts
from fnop.interpreters.recording.model.carried import Carried, carried
from fnop.interpreters.recording.model.effects import changes_objects
from fnop.interpreters.recording.model.refs import Ref, ref_of
from fnop.interpreters.recording.model.revisions import Revision
from fnop.interpreters.recording.model.served import Served
from fnop.interpreters.recording.model.times import moment
from fnop.interpreters.recording.model.versions import Versions, objects_in

__all__ = ["History", "Question", "Request", "Step"]

Json = Mapping[str, Any]

# Answers after which a request certainly makes no further changes; and among them
# those after which it has certainly changed nothing.
_DENIED = frozenset(each.__name__ for each in (Conflict, Refused, Missing))
_SETTLED = _DENIED | {Applied.__name__}


@dataclass(slots=True, eq=False)
class Request:
    """A request of the operator, or a call outside of the cluster.

    - `step` and `wall` say when it was sent, and `process` who sent it.
    - `resource`, `namespace` and `name` are "" for a call outside of the cluster.
    - `subject` is the handled object as `namespace/name`, and `handler` has the names
      of the handlers behind it, with commas between them.
    - `attempts` are the last ones of the handlers behind it.
    - `fields` are the handlers' changes that it has, if they are known.
    - `outcome` is the answer, at the step `ended`. It is None and 0 if no answer has
      come: it was lost, or the operator ended, or steps are missing.
    - `is_lost` means that no answer can come any more: its process has ended.
    - `may_have_ended` means that the answer may be in missing steps.
    - `shown` are the versions in the answer, as far as a timeline notes them.
    """

    step: int
    wall: float
    process: int
    effect: dict[str, Any]
    resource: str
    namespace: str
    name: str
    subject: str
    handler: str
    attempts: tuple[Attempt, ...] = ()
    fields: Carried = ()
    outcome: Json | None = None
    ended: int = 0
    ended_wall: float = 0.0
    is_lost: bool = False
    may_have_ended: bool = False
    shown: tuple[Revision, ...] = ()

    @property
    def verb(self) -> str:
        """The name of the effect."""
        return str(self.effect["is"])

    @property
    def where(self) -> str:
        """The object that it is about as `namespace/name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def object(self) -> Ref | None:
        """The object that it is about; None for a call outside of the cluster."""
        if not self.resource:
            return None
        return ref_of(self.resource, self.namespace, self.name)

    @property
    def is_write(self) -> bool:
        """Whether the request changes an object."""
        return changes_objects(self.verb)

    @property
    def is_finished(self) -> bool:
        """Whether the request was answered."""
        return self.outcome is not None

    @property
    def answered(self) -> str:
        """The kind of the answer; "" if none has come."""
        return "" if self.outcome is None else str(self.outcome["is"])

    @property
    def result(self) -> str:
        """The result of the request, in a word or two."""
        lacks = "steps are missing" if self.may_have_ended else "no reply"
        return self.answered or lacks

    @property
    def version(self) -> str:
        """The version of the object in the answer; "" if the answer has no object."""
        found = (self.outcome or {}).get("object")
        return Body(found).version if isinstance(found, dict) else ""

    @property
    def made(self) -> Revision | None:
        """The version that it has made; None if it changed nothing, or is unknown."""
        found = self.shown[0] if self.is_write and self.shown else None
        return found if found is not None and found.made == self.step else None

    @property
    def is_settled(self) -> bool:
        """Whether it certainly makes no further changes."""
        return self.answered in _SETTLED

    @property
    def is_denied(self) -> bool:
        """Whether it has certainly changed nothing."""
        return self.answered in _DENIED

    def shorten(self) -> None:
        """Drop the contents of the effect and of the answer, which may be large."""
        self.effect = {"is": self.verb}
        if self.outcome is not None:
            self.outcome = {"is": self.answered}


@dataclass(eq=False)
class Step:
    """One step: its input, its commands, and what they are about.

    - `number` and `process` count from 1.
    - `shown` are the objects that the input shows.
    - `request` is the request that the input answers, and `fetched` the path.
    - `requests` are those that the step sends.
    - `attempts` are those that were open at its beginning or begin in it, by number.
      `ended` are those among them that end, or that end with their process.
    """

    number: int
    process: int
    now: Now
    input: records.Input
    wire: Json
    request: Request | None = None
    fetched: str = ""
    commands: tuple[records.Command, ...] = ()
    requests: dict[int, Request] = field(default_factory=dict)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    ended: list[Attempt] = field(default_factory=list)

    @property
    def wall(self) -> float:
        """The time of the step (Unix seconds)."""
        return self.now.wall

    @cached_property
    def shown(self) -> tuple[Body, ...]:
        """The objects that the input shows: watched, listed, or answered."""
        return tuple(map(Body, objects_in(self.wire)))

    @property
    def is_start(self) -> bool:
        """Whether a process of the operator starts."""
        return isinstance(self.input, records.Started)

    @property
    def is_gone(self) -> bool:
        """Whether the input shows the end of an object."""
        return (
            isinstance(self.input, records.WatchEvent) and self.input.type == "DELETED"
        )

    @property
    def way(self) -> str:
        """The form of the objects in the input: listed, answered, or an event."""
        match self.input:
            case records.ListItem():
                return "listed"
            case records.WatchEvent(type=kind):
                return kind.lower()
            case _:
                return "answered"

    @property
    def outcome(self) -> Json | None:
        """The outcome that the input brings."""
        return self.input.outcome if isinstance(self.input, records.Answered) else None


@dataclass(eq=False)
class History:
    """The fold: takes records in, returns steps and gaps.

    - `steps` is the number of steps so far, and `processes` that of processes.
    - `missing` is the last missing step of this process, or 0.
    - `pending` are the requests without an answer, by their numbers in the process.
    - `streams` are the listings, watches and logs of the process, by their numbers.
    """

    versions: Versions = field(default_factory=Versions)
    steps: int = 0
    processes: int = 0
    missing: int = 0
    wall: float = 0.0
    pending: dict[int, Request] = field(default_factory=dict)
    streams: dict[int, records.Stream] = field(default_factory=dict)
    _fetched: dict[int, str] = field(default_factory=dict)
    _served: Served = field(default_factory=Served)

    def __post_init__(self) -> None:
        """Begin with no attempt."""
        self.attempts = Attempts(self.versions)

    @property
    def catalogue(self) -> Catalogue:
        """The kinds that the API server has served, as far as they are recorded."""
        return self._served.catalogue

    def resource(self, key: str) -> Resource | None:
        """The resource with a key; None if it was not served."""
        known = self.catalogue.resources
        return next((each for each in known if each.key == key), None)

    def kind_of(self, stream: int) -> str | None:
        """The kind of a listing or a watch, as in a `Ref`; None if it is not known."""
        match self.streams.get(stream):
            case records.ListPage(resource=resource) | records.Watch(resource=resource):
                return ref_of(resource).kind
            case _:
                return None

    def read(self, record: Json) -> Step | records.Gap:
        """Take one record in.

        Raises `ValueError`, `KeyError` or `TypeError` for anything that is not a
        record.
        """
        if "gap" in record:
            return self._miss(record["gap"])
        wire, now = record["input"], moment(record)
        input, self.wall = records.input_of(wire), now.wall
        self.steps += 1
        ended = []
        if isinstance(input, records.Started) or not self.processes:
            ended = self._start()
        step = Step(self.steps, self.processes, now, input, wire, ended=ended)
        self.versions.learn(wire)
        if isinstance(input, records.Answered):
            self._answer(input, step)
        known = self.attempts.open
        step.attempts = {each.number: each for each in ended} | known
        step.commands = tuple(map(records.command_of, record["commands"]))
        for command in step.commands:
            self._note(command, step)
        return step

    def _miss(self, count: Any) -> records.Gap:
        if type(count) is not int or count < 1:
            raise ValueError("the number of missing steps is none")
        first = self.steps + 1
        self.steps = self.missing = self.steps + count
        self.attempts.miss(count)
        for each in self.pending.values():
            each.may_have_ended = True
        return records.Gap(first, self.steps)

    def _start(self) -> list[Attempt]:
        """A process starts: what the one before has begun does not go on."""
        self.processes += 1
        self.missing = 0
        for each in self.pending.values():
            each.is_lost = True
        for numbers in (self.pending, self.streams, self._fetched):
            numbers.clear()
        return self.attempts.cut_off()

    def _answer(self, input: records.Answered, step: Step) -> None:
        step.fetched = self._fetched.pop(input.id, "")
        if step.fetched:
            self._served.answer(step.fetched, input)
        step.request = self.pending.pop(input.id, None)
        if step.request is not None:
            step.request.outcome, step.request.ended = input.outcome, step.number
            step.request.ended_wall = step.wall

    def _note(self, command: records.Command, step: Step) -> None:
        match command:
            case records.Perform():
                behind = tuple(self._attempts_behind(command))
                found = Request(
                    step.number,
                    step.wall,
                    step.process,
                    command.effect,
                    command.resource,
                    command.namespace,
                    command.name,
                    command.subject,
                    command.handler,
                    behind,
                )
                self.pending[command.id] = step.requests[command.id] = found
            case records.Fetch(id=number, path=path):
                self._fetched[number] = path
            case records.ListPage() | records.Watch() | records.FollowLog():
                self.streams[command.stream] = command
            case records.Wrote(id=number, fields=fields):
                if number in self.pending:
                    self.pending[number].fields = carried(fields)
            case _:
                self._trace(command, step)

    def _trace(self, command: records.Command, step: Step) -> None:
        found = self.attempts.note(command, step.outcome, step.number, step.now)
        if found is not None:
            step.attempts[found.number] = found
            if found.number not in self.attempts.open:
                step.ended.append(found)

    def _attempts_behind(self, sent: records.Perform) -> Iterator[Attempt]:
        """The last attempt of each handler whose changes a request may have."""
        for name in dict.fromkeys(each.strip() for each in sent.handler.split(",")):
            found = self.attempts.latest.get((name, sent.subject))
            if found is not None:
                yield found


class Question:
    """A question to a recorded run: it sees the steps of a history, one by one.

    Questions may share a history. Then its owner passes the steps on.
    """

    history: History

    def add(self, record: Json) -> Any:
        """Take one record in, as the only question. Raises as `History.read`."""
        found = self.history.read(record)
        return self.miss(found) if isinstance(found, records.Gap) else self.see(found)

    def see(self, step: Step) -> Any:
        """Take one step in."""
        raise NotImplementedError

    def miss(self, gap: records.Gap) -> Any:
        """Take note of missing steps."""
