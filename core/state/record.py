"""Everything the operator knows about one object: the store's record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fnop.core.handlers.arguments import Situation
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.invocation import Journal
from fnop.core.handlers.writers import Transform
from fnop.core.memory.conditions import Condition
from fnop.core.memory.last_seen import Stored
from fnop.core.memory.observation import Observation, Seen, scope_name, see
from fnop.core.memory.progress import FRESH, Failure, Progress
from fnop.core.seam.commands import Say
from fnop.core.state.fusion import Writing
from fnop.core.state.in_flight import InFlight
from fnop.core.values.body import Body, Key
from fnop.core.values.cause import Reason
from fnop.core.values.evolve import quick
from fnop.core.values.pace import CALM, Pace
from fnop.core.values.table import NOTHING
from fnop.effects import Again, Effect, Event, Patch
from fnop.effects.values import ReadOnlyDict

__all__ = [
    "IDLE",
    "Change",
    "Declared",
    "Expectation",
    "Invocation",
    "ObjectRecord",
    "PendingEvent",
    "Report",
    "Reports",
    "RunState",
    "Work",
]


@quick
class Invocation(NamedTuple):
    """One attempt of one handler.

    While it converses it has a `journal`, and awaits the answer to `asked`; when
    its function has ended, a `plan` of which `plan[0]` is next.  It waits for
    its `in_flight`, or to `wake` at a monotonic time; `ready` means that it can go
    on now.  `length` is the journal's size in bytes.
    """

    serial: int
    situation: Situation
    journal: Journal = ()
    length: int = 0
    ready: bool = True
    asked: Effect | None = None
    in_flight: InFlight | None = None
    wake: float | None = None
    plan: tuple[Effect, ...] | None = None
    patches: tuple[Patch | Transform, ...] = ()
    result: Any = None
    again: Again | None = None
    failure: Failure | None = None
    children: int = 0
    # Sub-handlers that it has declared, and has not awaited itself.
    parts: frozenset[str] = frozenset()
    gathered: frozenset[str] = frozenset()
    deadline: float | None = None
    # Why a daemon was told to stop, and until when it may go on.
    stopped: str = ""
    patience: float | None = None
    # What it has created, by name, and the digests of what was asked for.
    created: Mapping[Key, str] = NOTHING
    # It has asked for something: what it left half done is not what was there before.
    acts: bool = False

    @property
    def handler(self) -> Handler:
        return self.situation.handler

    @property
    def waits(self) -> bool:
        """Whether it waits for something that may take long (R14)."""
        if self.ready:
            return False
        return self.in_flight is None or self.in_flight.lasts

    @property
    def due(self) -> float | None:
        """When it is to be looked at again, if at a known time."""
        moments = [
            moment
            for moment in (
                self.wake,
                self.in_flight.due if self.in_flight else None,
                self.deadline,
                self.patience,
            )
            if moment is not None
        ]
        return min(moments, default=None)


@quick
class Change(NamedTuple):
    """One cause and the handlers selected for it.

    It keeps its view of the object while conversations are under way: what came
    later is a new cause.  `aims` tell, by handler id, what a success is for, and
    `generation` which one of the object is handled: also one of its handlers' making.
    """

    reason: Reason
    initial: bool
    body: Body
    seen: Seen
    selected: tuple[Handler, ...]
    aims: Mapping[str, str] = NOTHING
    generation: int | None = None


@quick
class RunState(NamedTuple):
    """How a daemon or timer of an object stands between its runs.

    Monotonic seconds: `start` is before when it does not begin, `began` when the last
    run did.  `over` tells that it will not begin again.  Where the interval is a
    function, it counts from `ended`, and was asked about the version `timed_for`.
    """

    start: float | None
    began: float | None = None
    over: bool = False
    progress: Progress = FRESH
    ended: float | None = None
    timed_for: str | None = None


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """A watch event that an event handler has not been called for yet."""

    handler: Handler
    type: str | None
    body: Body


@dataclass(frozen=True, slots=True)
class Declared:
    """The sub-handlers that a handler has declared, for this aim of its own."""

    aim: str
    children: tuple[Handler, ...]


@quick
class Work(NamedTuple):
    """What is under way with an object; most objects have none.

    `outstanding` are commands of cancelled conversations that are still to be
    answered, `outstanding_until` when they are no longer waited for.  `successes` are
    the lines that tell of attempts, and are told when what those want is written.
    """

    change: Change | None = None
    running: tuple[Invocation, ...] = ()
    event_runs: tuple[Invocation, ...] = ()
    background_runs: tuple[Invocation, ...] = ()
    pending_events: tuple[PendingEvent, ...] = ()
    progress: Mapping[str, Progress] = NOTHING
    patches: tuple[tuple[str, Patch | Transform], ...] = ()
    results: Mapping[str, Any] = NOTHING
    writing: Writing | None = None
    declared: Mapping[str, Declared] = NOTHING
    outstanding: frozenset[int] = frozenset()
    outstanding_until: float = 0.0
    successes: tuple[tuple[Handler, Say], ...] = ()

    @property
    def invocations(self) -> tuple[Invocation, ...]:
        """Of event handlers, of daemons and timers, and of the change."""
        return (*self.event_runs, *self.background_runs, *self.running)

    @property
    def is_over(self) -> bool:
        return self == IDLE


IDLE = Work()


@quick
class Expectation(NamedTuple):
    """A version that this operator has written and the watch has not shown yet.

    `step` is when the response came: a listing begun after it is as good.
    `passes` lets the object be reconciled all the same: after the finalizer, the
    response alone is enough (R20).
    """

    version: str
    step: int
    deadline: float
    looking: bool = False
    passes: bool = False

    @property
    def due(self) -> float | None:
        """When to look; the answer to a look that is under way comes by itself."""
        return None if self.looking else self.deadline


@dataclass(frozen=True, slots=True)
class Report:
    """A Kubernetes Event that was reported: where it is, and how often (`count`)."""

    event: Event
    name: str
    namespace: str
    count: int
    last: float


@dataclass(frozen=True, slots=True)
class Reports:
    """The last reports about an object, and how many more there may be by now."""

    left: float = 25.0
    at: float = 0.0
    recent: tuple[Report, ...] = ()


NO_REPORTS = Reports()


@quick
class ObjectRecord(NamedTuple):
    """One object.  `stored` is what it is remembered by, on it and here.

    `readable` is False when the object carries a state that cannot be read:
    it is left alone.  `initial` until the object has been handled once after it
    was found in a first listing.  `gone` is the watch's word for its deletion;
    `vanished` means that a live answer has said so, and the watch is to follow.
    `shown` are the last versions that the watch has shown while something was under
    way.  A state that the server refuses is not tried again before `unsaved_until`.
    `learned` is the step in which a live answer has told of the object last: what a
    listing says that began before is older.
    """

    body: Body
    stored: Stored
    readable: bool = True
    initial: bool = False
    gone: bool = False
    vanished: bool = False
    listing: int = 0
    expected: Expectation | None = None
    work: Work | None = None
    memo: ReadOnlyDict = ReadOnlyDict()
    shown: tuple[str, ...] = ()
    learned: int = 0
    unsaved_until: float = 0.0
    unsaved_tries: int = 0
    complaints: tuple[str, ...] = ()
    # Of daemons and timers, by handler id; and when the object last changed.
    background: Mapping[str, RunState] = NOTHING
    changed: float = 0.0
    reports: Reports = NO_REPORTS
    # Its deletion, which others still hold up, has been handled.
    released: bool = False
    # It was put aside: whoever served meanwhile may have left another state on it.
    stale: bool = False
    # The last condition that this process has written, or had no place for.
    told: Condition | None = None
    # How quickly the operator makes changes that it is itself called for.
    pace: Pace = CALM
    # The same of this operator's finalizer, which somebody else may undo.
    odds: Pace = CALM

    # What it was when no handler was for it, where one of updates may come to be.
    overlooked: Seen | None = None

    def progress_of(self, name: str) -> Progress | None:
        """How a handler has got on with the present change, if it has at all."""
        records = self.work.progress if self.work else IDLE.progress
        return records.get(name) or self.stored.progress.get(name)

    def handled_by(self, handler: Handler) -> str:
        """The digest of what a handler has last been done with; "" where none is known.

        That is what the object was seen as last, unless its record says otherwise.
        """
        record, seen = self.progress_of(handler.id), self.stored.seen
        if record is not None and record.handled:
            return record.handled
        return seen.digests.get(scope_name(handler.field), "") if seen else ""

    def before(self, handler: Handler, observation: Observation) -> Seen | None:
        """What the object was for a handler: what it acted upon last, if it is that
        no more, or else what it was when a change had last been handled."""
        record = self.progress_of(handler.id)
        if record is None or record.seen is None:
            return self.stored.seen
        scope = scope_name(handler.field)
        was, now = record.seen.digests, see(self.body, observation).digests
        return self.stored.seen if was.get(scope) == now.get(scope) else record.seen
