"""The reconcile context: one object, and the step that handles it.

Functions about an object are given this and not the whole step.  What they change goes
into the records through it; it lives within one call of `step`, as the step does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from fnop.core.api.catalogue import Catalogue
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.invocation import LiveCache
from fnop.core.handlers.program import Kind
from fnop.core.handlers.settings import Settings
from fnop.core.memory.progress import Failure, Judgement, Progress
from fnop.core.seam.commands import Command, Say, Subject
from fnop.core.state.activity import ACTIVITY
from fnop.core.state.address import Address
from fnop.core.state.lifecycle import Phase, failed
from fnop.core.state.notes import Notes
from fnop.core.state.objects import Grave
from fnop.core.state.record import ObjectRecord
from fnop.core.state.requests import Ticket
from fnop.core.state.turn import About, Turn
from fnop.core.values.body import Body, Key
from fnop.core.values.now import Now
from fnop.effects import Effect, Event
from fnop.effects.values import ReadOnlyDict

__all__ = ["Context"]


class Context:
    """What is known of an object, and what can be done about it in this step."""

    __slots__ = ("_turn", "key", "now", "settings")

    def __init__(self, turn: Turn, key: Key) -> None:
        self._turn = turn
        self.key = key
        self.now: Now = turn.now
        self.settings: Settings = turn.settings

    def of(self, key: Key) -> Context:
        """The context of another object, in the same step."""
        return Context(self._turn, key)

    # ------------------------------------------------------------- the object

    @property
    def is_activity(self) -> bool:
        """Whether there is no object: a startup or cleanup handler runs."""
        return self.key == ACTIVITY

    @property
    def record(self) -> ObjectRecord | None:
        """The object's record, or that of the activity, as this step has it."""
        if self.is_activity:
            activity = self._turn.lifecycle.activity
            return activity and activity.record
        return self._turn.objects.get(self.key)

    @property
    def kind(self) -> Kind:
        """The object's kind; `KeyError` where it is not served any more."""
        return self._turn.survey.kinds[self.key.resource]

    @property
    def is_served(self) -> bool:
        """Whether handlers are for the object's kind."""
        return self.key.resource in self._turn.survey.kinds

    @property
    def grave(self) -> Grave | None:
        """The object that has had the name, where a live answer has told its end."""
        return self._turn.objects.graves.get(self.key)

    def put(self, record: ObjectRecord) -> None:
        """Keep this of the object, or of the activity."""
        if self.is_activity:
            self._turn.go_on_with(record)
        else:
            self._turn.objects.put(self.key, record)

    def drop(self) -> None:
        """Forget the object; an activity is over."""
        if self.is_activity:
            self._turn.end_activity()
        else:
            self._turn.drop(self.key)

    def bury(self, uid: str) -> None:
        """A live answer says that the object is gone: what shows it is older."""
        self._turn.objects.bury(self.key, uid, self.step)

    def exhume(self) -> None:
        """Nothing older than its end can be shown of the object any more."""
        self._turn.objects.exhume(self.key)

    def due(self, at: float | None = None) -> None:
        """Look at the object then (monotonic); without a time, at once."""
        if self.is_activity:
            self._turn.activity_due(at)
        else:
            self._turn.objects.due(self.key, at)

    # ----------------------------------------------------------- the operator

    @property
    def phase(self) -> Phase:
        """Where the operator stands in its life."""
        return self._turn.lifecycle.phase

    @property
    def keeps_still(self) -> bool:
        """Whether a handler's freeze forbids to begin anything more."""
        return self._turn.keeps_still(self.key)

    @property
    def catalogue(self) -> Catalogue:
        """The kinds that the API server serves."""
        return self._turn.survey.catalogue

    @property
    def indices(self) -> Mapping[str, Any]:
        """All indices, by the handler's id."""
        return self._turn.objects.indices

    @property
    def live(self) -> LiveCache:
        """Conversations at the tips of their journals."""
        return self._turn.live

    @property
    def memo(self) -> ReadOnlyDict:
        """What startup handlers remember: an object's memo begins with it."""
        return self._turn.lifecycle.memo

    @property
    def notes(self) -> Notes:
        """What was found out once."""
        return self._turn.notes

    @property
    def pending(self) -> Iterable[Ticket]:
        """What is under way, for all objects."""
        return self._turn.requests.pending.values()

    @property
    def step(self) -> int:
        """The number of the step."""
        return self._turn.counters.step

    @property
    def seed(self) -> str:
        """What chance is made of, in this process."""
        return self._turn.counters.seed

    @property
    def drives(self) -> int:
        """How often the author's code was driven in this step."""
        return self._turn.drives

    def drove(self) -> None:
        """The author's code is driven: at most once in a step (R11)."""
        self._turn.drives += 1

    def next_serial(self) -> int:
        """A number that nothing else has."""
        return self._turn.next_serial()

    def jitter(self) -> float:
        """A number from 0 to 1: from the seed and a counter, never a clock."""
        return self._turn.jitter()

    def note(self, notes: Notes) -> None:
        """Keep what was found out."""
        self._turn.notes = notes

    def failed(self) -> None:
        """Count a handler that failed for good, or what else must not happen."""
        self._turn.failed()

    def activity_failed(self) -> None:
        """A startup or cleanup handler has failed for good."""
        self._turn.lifecycle = failed(self._turn.lifecycle)

    def end(self, status: int, reason: str) -> None:
        """The operator ends with this step."""
        self._turn.end(status, reason)

    def freeze(self, reason: str | None) -> None:
        """A handler wants the operator to keep still, or (None) to go on."""
        self._turn.freeze(reason)

    def configure(self, settings: Settings) -> None:
        """A startup handler has changed the settings."""
        self._turn.configure(settings)
        self.settings = settings

    def remember(self, memo: ReadOnlyDict) -> None:
        """A startup handler remembers this, for all objects."""
        self._turn.lifecycle = self._turn.lifecycle._replace(memo=memo)

    def rediscover(self) -> None:
        """A kind is missing that an effect names: look again, in a while."""
        self._turn.rediscover()

    def index(self, name: str, index: Any) -> None:
        """An index, as it is from now on."""
        self._turn.objects.index(name, index)

    def judge(
        self, handler: Handler, progress: Progress, failure: Failure
    ) -> Judgement:
        """What a failed attempt means, by the handler's options and the settings."""
        return self._turn.judge(handler, progress, failure)

    # ---------------------------------------------------------- what is asked

    def emit(self, command: Command) -> None:
        """Ask the world for this."""
        self._turn.emit(command)

    def perform(
        self, effect: Effect, address: Address, ticket: Ticket, subject: Subject | None
    ) -> int:
        """Ask for an effect; its answer will find the ticket."""
        return self._turn.perform(effect, address, ticket, subject)

    def subject(self, body: Body | None = None) -> Subject:
        """How commands name the object."""
        return self._turn.subject(self.key, body)

    def say(self, level: str, message: str, **about: Unpack[About]) -> None:
        """One line for the log, about the object."""
        self._turn.say(level, message, key=self.key, **about)

    def line(self, level: str, message: str, **about: Unpack[About]) -> Say:
        """One line for the log, about the object, to be told later."""
        return self._turn.line(level, message, key=self.key, **about)

    def warn_once(self, about: str, message: str) -> None:
        """A warning that is given once in a process."""
        self._turn.warn_once(about, message, self.key)

    def post(self, event: Event, handler: str) -> None:
        """A log line of this step becomes a Kubernetes Event about the object."""
        self._turn.noted += ((self.key, event, handler),)
