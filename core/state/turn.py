"""One open step: the operator's state while the step changes it.

A `Turn` opens the parts of the state for changes, and is closed into the next state. It
lives within one call of `step` and never escapes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypedDict, Unpack

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Family
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Kind, Program
from fnop.core.handlers.run.invocation import LiveCache
from fnop.core.memory.progress import (
    Failure,
    Judgement,
    Progress,
    judge_failure,
)
from fnop.core.seam.commands import (
    Alarm,
    AttemptEnded,
    CloseStream,
    Command,
    Exit,
    Perform,
    Say,
    Subject,
)
from fnop.core.state.activity import is_activity
from fnop.core.state.address import Address
from fnop.core.state.coordination import ALONE, Coordination
from fnop.core.state.lifecycle import Lifecycle, Phase, ended
from fnop.core.state.notes import Notes
from fnop.core.state.objects import Objects, OpenObjects
from fnop.core.state.record import ObjectRecord
from fnop.core.state.requests import Requests, Ticket, handler_of, is_urgent
from fnop.core.state.survey import Survey, missing
from fnop.core.streams.log_streams import LogStreams
from fnop.core.streams.stream import StreamPurpose
from fnop.core.streams.streams import OpenStreams, Streams
from fnop.core.values.backoff import Backoff, jitter_of
from fnop.core.values.body import Body, Key
from fnop.core.values.errors import act_of
from fnop.core.values.now import Now
from fnop.effects import Call, Effect, Event, Outcome
from fnop.effects.structs import replace

__all__ = ["NEW", "About", "Counters", "State", "Turn", "settings_of"]


class Counters(Struct, frozen=True):
    """The sources of numbers: clocks and random numbers do not decide anything."""

    # The seed of jitter, one for each process.
    seed: str = ""
    # The last number of a command or an invocation.
    serial: int = 1
    step: int = 0


class State(Struct, frozen=True):
    """Everything the operator stores between two steps."""

    counters: Counters = Counters()
    lifecycle: Lifecycle = Lifecycle()
    survey: Survey = Survey()
    streams: Streams = Streams()
    logs: LogStreams = LogStreams()
    objects: Objects = Objects()
    requests: Requests = Requests()
    coordination: Coordination = ALONE
    notes: Notes = Notes()
    # The time of the last alarm requested (monotonic).
    alarm: float | None = None

    def record(self, key: Key) -> ObjectRecord | None:
        """The record of an object, or of an activity."""
        if not is_activity(key):
            return self.objects.records.get(key)
        activity = self.lifecycle.activities.get(key)
        return None if activity is None else activity.record

    @property
    def due(self) -> tuple[tuple[Key, float], ...]:
        """The keys that are due, each with its time (monotonic), in their order."""
        activities = self.lifecycle.activities.items()
        own = ((key, each.due) for key, each in activities if each.due is not None)
        queue = self.objects.queue
        return (*own, *((key, queue.due[key][0]) for key in queue))


NEW = State()


def settings_of(program: Program, lifecycle: Lifecycle) -> Settings:
    """The settings in force: the program's own, or as changed by startup handlers."""
    return lifecycle.settings or program.settings


_AGAIN = "info", "serving again"


class About(TypedDict, total=False):
    """The details of a log line, in addition to its object."""

    body: Body | None
    handler: str | None
    error: str | None
    exception: BaseException | None
    fields: tuple[tuple[str, Any], ...]
    took: float | None
    ended: AttemptEnded | None
    act: Hashable


class Turn:
    """A state, open for one step, and the commands of that step."""

    __slots__ = (
        "_observing",
        "alarm",
        "answer",
        "commands",
        "coordination",
        "counters",
        "drives",
        "lifecycle",
        "live",
        "logs",
        "noted",
        "notes",
        "now",
        "objects",
        "program",
        "requests",
        "settings",
        "streams",
        "survey",
    )

    def __init__(
        self, program: Program, state: State, now: Now, live: LiveCache
    ) -> None:
        self.program = program
        self.now = now
        # Live conversations, each at the end of its journal; the interpreter keeps
        # them.
        self.live = live
        self.commands: list[Command] = []
        # The outcome that this step's input has brought.
        self.answer: Outcome | None = None
        # The number of calls of user code: at most one in a step (R11).
        self.drives = 0
        # Log lines of this step that become Kubernetes Events.
        self.noted: tuple[tuple[Key, Event, str], ...] = ()
        self.lifecycle = state.lifecycle
        self.survey = state.survey
        self.logs = state.logs
        self.requests = state.requests
        self.coordination = state.coordination
        self.notes = state.notes
        self.alarm = state.alarm
        # The settings in force: the program's, or as changed by startup handlers.
        self.settings = self.lifecycle.settings or program.settings
        counters = state.counters
        self.counters = Counters(counters.seed, counters.serial, counters.step + 1)
        self.streams = OpenStreams(state.streams)
        # Kinds whose handlers observe entries of the present indices.
        self._observing: dict[str, tuple[Any, Kind]] = {}
        self.objects = OpenObjects(state.objects, now.mono)

    def observing(self, kind: Kind) -> Kind:
        """Return a kind with the present indices that its handlers observe."""
        key, indices = kind.resource.key, self.objects.indices
        known = self._observing.get(key)
        if known is None or known[0] is not indices:
            paths = sorted({each.entries for each in kind.changes if each.entries})
            whole = {
                name: indices[name] for _, name, _ in paths if self._is_whole(name)
            }
            keys = {name: indices[name] for *_, name in paths}
            known = self._observing[key] = indices, kind.observing({**whole, **keys})
        return known[1]

    def _is_whole(self, index: str) -> bool:
        """Whether all objects that an index covers have been listed."""
        found = [
            stream
            for stream in self.streams.each(StreamPurpose.OBJECTS)
            for each in self.survey.kinds[stream.resource.key].indexers
            if each.id == index
        ]
        return bool(found) and all(each.lists for each in found)

    def close(self) -> State:
        """The next state."""
        return State(
            self.counters,
            self.lifecycle,
            self.survey,
            self.streams.close(),
            self.logs,
            self.objects.close(),
            self.requests,
            self.coordination,
            self.notes,
            self.alarm,
        )

    def drop(self, key: Key) -> None:
        """Forget an object, and emit its held success lines.

        After this, the API server cannot refuse a write of it.
        """
        record = self.objects.get(key)
        for _, say in record.work.successes if record and record.work else ():
            self.emit(say)
        self.objects.drop(key)

    def next_serial(self) -> int:
        counters = self.counters
        serial = counters.serial + 1
        self.counters = Counters(counters.seed, serial, counters.step)
        return serial

    def jitter(self) -> float:
        """A number from 0 to 1: from the seed and a counter, never a clock."""
        return jitter_of(self.counters.seed, self.next_serial())

    def emit(self, command: Command) -> None:
        self.commands.append(command)

    def perform(
        self,
        effect: Effect,
        address: Address,
        ticket: Ticket,
        subject: Subject | None,
        before: float | None = None,
    ) -> int:
        """Request an effect; its answer will find the ticket.

        It must begin `before` a monotonic time, by default the end of the lease. An
        urgent request has no such limit by default.
        """
        number = self.next_serial()
        urgent = is_urgent(ticket)
        if before is None and not urgent:
            before = self.coordination.lease_ends
        self.requests = self.requests.sent(number, ticket)
        self.emit(
            Perform(
                number,
                effect,
                address.resource,
                address.namespace,
                address.name,
                subject,
                handler_of(ticket) or None,
                before,
                urgent,
            )
        )
        return number

    def admit(self, call: Call) -> float:
        """Count a call; return the seconds that it must wait, by its limit."""
        self.requests, wait = self.requests.drawn(call, self.now.mono)
        return wait

    def judge(
        self, handler: Handler, progress: Progress, failure: Failure
    ) -> Judgement:
        """The consequence of a failure, by the handler's options and the settings."""
        backoff = handler.backoff_or(self.settings.default_backoff)
        return judge_failure(
            progress,
            failure,
            self.now,
            errors=handler.errors,
            timeout=handler.timeout,
            retries=handler.retries,
            backoff=backoff,
            jitter=self.jitter() if isinstance(backoff, Backoff) else 0.0,
            halts=handler.rule.family is Family.CHANGE,
            as_kopf=self.settings.as_kopf,
        )

    def say(
        self, level: str, message: str, key: Key | None = None, **about: Unpack[About]
    ) -> None:
        """Log a line."""
        self.emit(self.line(level, message, key, **about))

    def line(
        self,
        level: str,
        message: str,
        key: Key | None = None,
        *,
        body: Body | None = None,
        handler: str | None = None,
        error: str | None = None,
        exception: BaseException | None = None,
        fields: tuple[tuple[str, Any], ...] = (),
        took: float | None = None,
        ended: AttemptEnded | None = None,
        act: Hashable = None,
    ) -> Say:
        """A log line, to be emitted later."""
        subject = None
        if key is not None and not is_activity(key):
            subject = self.subject(key, body)
        act = act_of(exception) if act is None else act
        return Say(
            level,
            message,
            subject,
            handler,
            fields,
            error,
            exception,
            took,
            ended,
            act,
        )

    def warn_once(self, about: str, message: str, key: Key | None = None) -> None:
        if self.is_first(about):
            self.say("warning", message, key=key)

    def is_first(self, about: str) -> bool:
        """Whether this was not yet reported in this process; mark it as reported."""
        if about in self.notes.warned:
            return False
        self.notes = self.notes.warned_of(about)
        return True

    def kind(self, key: Key) -> Kind:
        """The kind of an object, with its handlers."""
        return self.survey.kinds[key.resource]

    def subject(self, key: Key, body: Body | None = None) -> Subject:
        """The object, as commands name it."""
        if body is None:
            record = self.objects.get(key)
            body = record.body if record else None
        kind = self.survey.kinds.get(key.resource)
        resource: Resource | None = kind.resource if kind else None
        return Subject(
            key.resource,
            key.namespace or None,
            key.name,
            body.uid if body else None,
            resource.kind if resource else "",
            resource.api_version if resource else "",
        )

    def end(self, status: int, reason: str) -> None:
        """End the operator with this step."""
        if self.lifecycle.phase is Phase.ENDED:
            return
        self.close_streams()
        self.lifecycle = ended(self.lifecycle)
        self.emit(Exit(status, reason))

    def close_streams(self) -> None:
        """Close and remove all streams."""
        for number in (*self.streams.numbers, *self.logs.numbers):
            self.emit(CloseStream(number))
        self.streams.drop_all()
        self.logs = LogStreams()

    def configure(self, settings: Settings) -> None:
        """Apply the settings that a startup handler has changed."""
        self.lifecycle = replace(self.lifecycle, settings=settings)
        self.settings = settings

    def freeze(self, reason: str | None) -> None:
        """Freeze the operator for a handler's reason, or (None) continue."""
        if reason != self.lifecycle.frozen:
            self.lifecycle = replace(self.lifecycle, frozen=reason)
            self.say(*(("warning", f"frozen: {reason}") if reason else _AGAIN))

    def rediscover(self) -> None:
        """Repeat discovery after a while: an effect names a kind that is missing."""
        self.survey = missing(self.survey, self.now, self.settings.rediscovery_seconds)

    def failed(self) -> None:
        """Count a handler that failed permanently, or another serious failure."""
        self.notes = self.notes.failed()

    def set_alarm(self, at: float | None) -> None:
        """Request an alarm at this time, unless the last one requested is the same."""
        if at != self.alarm:
            self.alarm = at
            if at is not None:
                self.emit(Alarm(at))
