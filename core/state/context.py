"""The reconcile context: one object, within the step that handles it.

Functions about an object get this context and not the whole step. They change the
records through it. It lives within one call of `step`, as the step does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.cluster_changes import ClusterChange
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Kind
from fnop.core.handlers.run.invocation import LiveCache
from fnop.core.memory.progress import Failure, Judgement, Progress
from fnop.core.seam.commands import Command, Say, Subject
from fnop.core.state.activity import Activity, is_activity
from fnop.core.state.address import Address
from fnop.core.state.lifecycle import Phase, failed
from fnop.core.state.notes import Notes
from fnop.core.state.objects import Tombstone
from fnop.core.state.record import ObjectRecord
from fnop.core.state.requests import Ticket
from fnop.core.state.turn import About, Turn
from fnop.core.streams.log_streams import LogStreams
from fnop.core.streams.streams import OpenStreams
from fnop.core.values.body import Body, Key
from fnop.core.values.now import Now
from fnop.core.values.table import NOTHING
from fnop.effects import Call, Effect, Event, Outcome
from fnop.effects.values import ReadOnlyDict

__all__ = ["Context"]


class Context:
    """One object in one step: its record, and the actions that are possible on it."""

    __slots__ = ("_turn", "is_activity", "key", "now", "settings")

    def __init__(self, turn: Turn, key: Key) -> None:
        self._turn = turn
        self.key = key
        # Whether it has no object, as for startup and cleanup.
        self.is_activity = is_activity(key)
        self.now: Now = turn.now
        self.settings: Settings = turn.settings

    def of(self, key: Key) -> Context:
        """The context of another object, in the same step."""
        return Context(self._turn, key)

    # ------------------------------------------------------------- the object

    @property
    def record(self) -> ObjectRecord | None:
        """The present record of the object, or of the activity."""
        if self.is_activity:
            activity = self._turn.lifecycle.activities.get(self.key)
            return activity and activity.record
        return self._turn.objects.get(self.key)

    @property
    def change(self) -> ClusterChange | None:
        """The change of the cluster that an activity is about."""
        activity = self._turn.lifecycle.activities.get(self.key)
        return activity and activity.change

    @property
    def kind(self) -> Kind:
        """The object's kind; `KeyError` if it is not served now."""
        kind = self._turn.survey.kinds[self.key.resource]
        if not kind.observation.has_entries:
            return kind
        return self._turn.observing(kind)

    @property
    def is_served(self) -> bool:
        """Whether the object's kind is served and has handlers."""
        return self.key.resource in self._turn.survey.kinds

    @property
    def tombstone(self) -> Tombstone | None:
        """The object that had this name, if a live answer says that it is gone."""
        return self._turn.objects.tombstones.get(self.key)

    def put(self, record: ObjectRecord) -> None:
        """Store the record of the object, or of the activity."""
        if self.is_activity:
            life = self._turn.lifecycle
            activity = life.activities.get(self.key) or Activity(record)
            activity = activity._replace(record=record)
            self._turn.lifecycle = life.with_activity(self.key, activity)
        else:
            self._turn.objects.put(self.key, record)

    def drop(self) -> None:
        """Forget the object, or end the activity."""
        if self.is_activity:
            life = self._turn.lifecycle
            self._turn.lifecycle = life.without_activity(self.key)
        else:
            self._turn.drop(self.key)

    def leave_tombstone(self, body: Body) -> None:
        """Mark the object as gone by a live answer: a watch that shows it is late."""
        self._turn.objects.leave_tombstone(self.key, body, self.step)

    def drop_tombstone(self) -> None:
        """Remove the mark of an object that is gone."""
        self._turn.objects.drop_tombstone(self.key)

    def due(self, at: float | None = None) -> None:
        """Reconcile the object at this time (monotonic); without a time, at once."""
        if self.is_activity:
            life, at = self._turn.lifecycle, self.now.mono if at is None else at
            self._turn.lifecycle = life.with_activity_due(self.key, at)
        else:
            self._turn.objects.due(self.key, at)

    # ----------------------------------------------------------- the operator

    @property
    def phase(self) -> Phase:
        """The phase of the operator's life."""
        return self._turn.lifecycle.phase

    @property
    def is_ready(self) -> bool:
        """Whether every served kind has been listed once."""
        return self._turn.lifecycle.ready

    @property
    def keeps_still(self) -> bool:
        """Whether a handler's freeze forbids to begin further work."""
        return self._turn.lifecycle.frozen is not None and not self.is_activity

    @property
    def logs(self) -> LogStreams:
        """All log streams."""
        return self._turn.logs

    def read(self, logs: LogStreams) -> None:
        """Store the log streams."""
        self._turn.logs = logs

    @property
    def catalogue(self) -> Catalogue:
        """The kinds that the API server serves."""
        return self._turn.survey.catalogue

    @property
    def indices(self) -> Mapping[str, Any]:
        """All indices, by the handler's id."""
        return self._turn.objects.indices

    def observers(self, index: Handler) -> tuple[str, ...]:
        """The indices of keys under which this index's observed entries are."""
        return self._turn.program.observers.get(index.id, ())

    @property
    def children(self) -> Mapping[Key, str]:
        """The versions of the objects that this one owns, of the kinds in `owns=`."""
        record = self.record
        return NOTHING if record is None else self._turn.objects.owned_by(record.body)

    def bodies(self, key: Key) -> Body | None:
        """Any known object, as it is now."""
        record = self._turn.objects.get(key)
        return None if record is None or record.gone else record.body

    @property
    def streams(self) -> OpenStreams:
        """All lists and watches."""
        return self._turn.streams

    @property
    def live(self) -> LiveCache:
        """The live conversations, each at the end of its journal."""
        return self._turn.live

    @property
    def memo(self) -> ReadOnlyDict:
        """The memo of startup handlers, which each object's memo starts with."""
        return self._turn.lifecycle.memo

    @property
    def notes(self) -> Notes:
        """Facts that the operator has found out once."""
        return self._turn.notes

    @property
    def pending(self) -> Iterable[Ticket]:
        """The tickets of all commands that are not answered yet, for all objects."""
        return self._turn.requests.pending.values()

    @property
    def answer(self) -> Outcome | None:
        """The outcome that came with this step's input."""
        return self._turn.answer

    @property
    def step(self) -> int:
        """The number of the step."""
        return self._turn.counters.step

    @property
    def seed(self) -> str:
        """The seed of jitter in this process."""
        return self._turn.counters.seed

    @property
    def drives(self) -> int:
        """The number of calls of the author's code in this step."""
        return self._turn.drives

    def drove(self) -> None:
        """Count a call of the author's code: at most one per step (R11)."""
        self._turn.drives += 1

    def next_serial(self) -> int:
        """A new number, unique within the process."""
        return self._turn.next_serial()

    def jitter(self) -> float:
        """A number from 0 to 1: from the seed and a counter, never a clock."""
        return self._turn.jitter()

    def note(self, notes: Notes) -> None:
        """Store the facts that were found."""
        self._turn.notes = notes

    def failed(self) -> None:
        """Count a handler that failed permanently, or another serious failure."""
        self._turn.failed()

    def activity_failed(self) -> None:
        """Note that a startup or cleanup handler has failed permanently."""
        self._turn.lifecycle = failed(self._turn.lifecycle)

    def end(self, status: int, reason: str) -> None:
        """End the operator with this step."""
        self._turn.end(status, reason)

    def freeze(self, reason: str | None) -> None:
        """Freeze the operator for a handler's reason, or (None) continue."""
        self._turn.freeze(reason)

    def configure(self, settings: Settings) -> None:
        """Apply the settings that a startup handler has changed."""
        self._turn.configure(settings)
        self.settings = settings

    def remember(self, memo: ReadOnlyDict) -> None:
        """Store the memo of a startup handler, for all objects."""
        self._turn.lifecycle = self._turn.lifecycle._replace(memo=memo)

    def rediscover(self) -> None:
        """Repeat discovery after a while: an effect names a kind that is missing."""
        self._turn.rediscover()

    def index(self, name: str, index: Any) -> None:
        """Store the new value of an index."""
        self._turn.objects.index(name, index)

    def judge(
        self, handler: Handler, progress: Progress, failure: Failure
    ) -> Judgement:
        """The consequence of a failure, by the handler's options and the settings."""
        return self._turn.judge(handler, progress, failure)

    # --------------------------------------------------------------- commands

    def emit(self, command: Command) -> None:
        """Add a command to those of this step."""
        self._turn.emit(command)

    def perform(
        self, effect: Effect, address: Address, ticket: Ticket, subject: Subject | None
    ) -> int:
        """Request an effect; the answer finds its ticket by the returned number."""
        return self._turn.perform(effect, address, ticket, subject)

    def admit(self, call: Call) -> float:
        """Count a call; return the seconds that it must wait, by its limit."""
        requests, wait = self._turn.requests.drawn(call, self.now.mono)
        self._turn.requests = requests
        return wait

    def subject(self, body: Body | None = None) -> Subject:
        """The object, as commands name it."""
        return self._turn.subject(self.key, body)

    def say(self, level: str, message: str, **about: Unpack[About]) -> None:
        """Log a line about the object."""
        self._turn.say(level, message, key=self.key, **about)

    def say_of(
        self, handler: Handler, level: str, line: str, /, **about: Unpack[About]
    ) -> None:
        """Log a line about a handler of the object: its label, and the line."""
        about["handler"] = handler.id
        self.say(level, f"{handler.label} {line}", **about)

    def line(self, level: str, message: str, **about: Unpack[About]) -> Say:
        """A log line about the object, to be emitted later."""
        return self._turn.line(level, message, key=self.key, **about)

    def warn_once(self, about: str, message: str) -> None:
        """Log a warning about the object, once in a process."""
        self._turn.warn_once(about, message, self.key)

    def is_first(self, about: str) -> bool:
        """Whether this was not yet reported in this process; mark it as reported."""
        return self._turn.is_first(about)

    def post(self, event: Event, handler: str) -> None:
        """Make a log line of this step a Kubernetes Event about the object."""
        self._turn.noted += ((self.key, event, handler),)
