"""The record of one object: everything that the operator stores about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fnop.core.children.owned import Checked
from fnop.core.handlers.declare.handler import Handler
from fnop.core.memory.conditions import Condition
from fnop.core.memory.observation import Observation, Seen, scope_name, see
from fnop.core.memory.progress import FRESH, Progress
from fnop.core.memory.stored_state import Stored
from fnop.core.seam.commands import Say
from fnop.core.state.invocation import Invocation
from fnop.core.state.splitting import Changes
from fnop.core.state.writing import Writing
from fnop.core.values.body import Body, Key
from fnop.core.values.cause import Reason
from fnop.core.values.log_lines import LogLine
from fnop.core.values.pace import CALM, ROLLOUT_CHANGES, Pace
from fnop.core.values.table import NOTHING
from fnop.effects import Event
from fnop.effects.desired import StatusCondition
from fnop.effects.structs import replace
from fnop.effects.values import ReadOnlyDict

__all__ = [
    "IDLE",
    "Backoff",
    "Change",
    "Declared",
    "Deferred",
    "Expectation",
    "ObjectRecord",
    "PendingEvent",
    "ReconcilerState",
    "Report",
    "Reports",
    "RunState",
    "Work",
]


class Change(Struct, frozen=True):
    """One cause and the handlers selected for it.

    It keeps its body of the object while conversations are in progress: later versions
    are a new cause. `aims` map handler ids to the states that a success counts for.
    `generation` is the object's handled generation, or the one that one of its handlers
    has made.
    """

    reason: Reason
    initial: bool
    body: Body
    seen: Seen
    selected: tuple[Handler, ...]
    aims: Mapping[str, str] = NOTHING
    generation: int | None = None


class RunState(Struct, frozen=True):
    """The state of a daemon or timer of an object between its runs.

    Times are monotonic seconds. It does not begin before `start`, and the last run
    began at `began`. `over` means that it will not begin again. If the interval is a
    function, it counts from `ended`, and was computed for the version `timed_for`. If
    the object did not fit the class of an argument, it is over for the version
    `unfit_in` alone.
    """

    start: float | None
    began: float | None = None
    over: bool = False
    progress: Progress = FRESH
    ended: float | None = None
    timed_for: str | None = None
    unfit_in: str | None = None


class ReconcilerState(Struct, frozen=True):
    """The state of a reconciler of an object between its calls.

    `body` and `children` (versions by key) are the inputs of the last call; None before
    the first call. It is called again at the monotonic time `start` even if these are
    the same. `over` means that it has failed permanently with these. `holds` means that
    children of its set must be deleted before the object; None if unknown. `held` means
    that this was true at some time in this process. `looks` is the number of calls in a
    row that ended with an answer that the watch had yet to show. `checked` are the
    children that were found as desired. `answer` is the digest of what was desired
    then, if all of it was found. `pace` is the pace of repairs of fields that others
    change again and again. `own` is the pace of calls that the handler causes itself.
    `asked` means that a reconciler has requeued the object since the last call.
    `synced` is its last report about its children. `left` means that it has stopped
    selecting the object, and leaves its children as they are. `refused` is the progress
    with a status that the API server refuses: the call has succeeded by then.
    """

    body: Body | None = None
    children: Mapping[Key, str] = NOTHING
    start: float | None = None
    over: bool = False
    progress: Progress = FRESH
    holds: bool | None = None
    checked: Checked = NOTHING
    answer: str = ""
    pace: Pace = CALM
    own: Pace = Pace(most=ROLLOUT_CHANGES)
    asked: bool = False
    synced: StatusCondition | None = None
    refused: Progress = FRESH
    left: bool = False
    held: bool = False
    looks: int = 0

    @property
    def has_failed(self) -> bool:
        """Whether the last call has failed."""
        return self.progress.retries > 0


class PendingEvent(Struct, frozen=True):
    """A watch event whose event handler has not been called yet.

    For log handlers it is a `line` of a `container`'s log. A mapping that has failed
    for it is called again, as its `progress` says.
    """

    handler: Handler
    type: str | None
    body: Body
    progress: Progress = FRESH
    line: LogLine | None = None
    container: str = ""

    def is_due(self, now: float) -> bool:
        """Whether the handler may be called at this monotonic time."""
        return self.progress.due is None or self.progress.due <= now


class Declared(Struct, frozen=True):
    """The sub-handlers that a handler has declared, and its aim at that time."""

    aim: str
    children: tuple[Handler, ...]


class Work(Struct, frozen=True):
    """The work in progress on an object; most objects have none.

    `outstanding` are unanswered commands of cancelled conversations, and
    `outstanding_until` is the end of the wait for their answers. `successes` are log
    lines of attempts, to emit when the attempts' changes are written.
    """

    change: Change | None = None
    running: tuple[Invocation, ...] = ()
    event_runs: tuple[Invocation, ...] = ()
    background_runs: tuple[Invocation, ...] = ()
    reconciler_runs: tuple[Invocation, ...] = ()
    pending_events: tuple[PendingEvent, ...] = ()
    progress: Mapping[str, Progress] = NOTHING
    patches: Changes = ()
    results: Mapping[str, Any] = NOTHING
    writing: Writing | None = None
    declared: Mapping[str, Declared] = NOTHING
    outstanding: frozenset[int] = frozenset()
    outstanding_until: float = 0.0
    successes: tuple[tuple[Handler, Say], ...] = ()

    @property
    def invocations(self) -> tuple[Invocation, ...]:
        """All attempts: first the independent ones, then the ordered ones."""
        return (
            *self.event_runs,
            *self.background_runs,
            *self.reconciler_runs,
            *self.running,
        )

    def without_change(self) -> Work:
        """The work after the end of its change.

        Other handlers may have ended while the end was written: daemons, timers. Their
        patches and results are still to be written.
        """
        return replace(self, change=None, progress={}, declared={})

    @property
    def awaits_write(self) -> bool:
        """Whether the API server has not answered a request of the write yet."""
        return self.writing is not None and self.writing.id is not None

    @property
    def is_under_way(self) -> bool:
        """Whether an attempt has not ended, or a write."""
        return bool(self.invocations) or self.writing is not None

    @property
    def is_over(self) -> bool:
        return self == IDLE

    @property
    def is_lasting(self) -> bool:
        """Whether nothing is under way but daemons and timers."""
        return self.is_over or replace(self, background_runs=()).is_over


IDLE = Work()


class Expectation(Struct, frozen=True):
    """A version that this operator has written and that the watch has yet to show.

    `step` is the step of the response: a listing that began after it also fulfils the
    expectation. With `passes`, the object may be reconciled without waiting: after the
    finalizer was added, the response alone is enough (R20). `looks` is how many times a
    missing object has been looked for before.
    """

    version: str
    step: int
    deadline: float
    looking: bool = False
    passes: bool = False
    looks: int = 0

    @property
    def due(self) -> float | None:
        """The time to read live; None while that read is under way."""
        return None if self.looking else self.deadline


class Report(Struct, frozen=True):
    """A Kubernetes Event that was reported: its place, and its `count`."""

    event: Event
    name: str
    namespace: str
    count: int
    last: float


class Reports(Struct, frozen=True):
    """The last reports about an object, and the number of further ones allowed.

    `left` is that number, as of the monotonic time `at`. `complaints` are the errors
    that were logged about the object's present version.
    """

    left: float = 25.0
    at: float = 0.0
    recent: tuple[Report, ...] = ()
    complaints: tuple[str, ...] = ()


NO_REPORTS = Reports()


class Backoff(Struct, frozen=True):
    """The pauses of an object; most objects have none, and share one value.

    In monotonic seconds: after an unexpected error, fnop does nothing about the object
    before `paused_until`. A state that the server refuses is not sent again before
    `unsaved_until`; it was refused `unsaved_tries` times. `pace` is the pace of the
    operator's changes that lead to calls of its own handlers. `contention` is the pace
    of changes of its finalizer and of its state, which another client may undo.
    """

    paused_until: float = 0.0
    unsaved_until: float = 0.0
    unsaved_tries: int = 0
    pace: Pace = CALM
    contention: Pace = CALM


NO_BACKOFF = Backoff()


class Deferred(Struct, frozen=True):
    """The object is read again before any work on it.

    Meanwhile another operator may have stored another state on it. `unwritten` has the
    ends of handlers, and their changes, that were not written by then. It is None while
    a request of a write is under way.
    """

    unwritten: Work | None = None


class ObjectRecord(Struct, frozen=True):
    """The record of one object.

    `stored` is its state, as stored on the object and remembered here. With `readable`
    False, the object carries a state that cannot be read, and fnop leaves it alone.
    `initial` holds until an object of the first listing has been handled once. `gone`
    means that the watch has shown its deletion. `vanished` means that a live answer
    has, and the watch has not yet. `shown` are the last versions that the watch has
    shown during the present work. `learned` is the step of the last live answer about
    the object: a listing that began before it is older.
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
    backoff: Backoff = NO_BACKOFF
    # The daemons and timers by handler id, and when the object last changed.
    background: Mapping[str, RunState] = NOTHING
    changed: float = 0.0
    # The reconcilers by id.
    reconcilers: Mapping[str, ReconcilerState] = NOTHING
    reports: Reports = NO_REPORTS
    # Its deletion has been handled, though others' finalizers still hold the object.
    released: bool = False
    deferred: Deferred | None = None
    # The last condition that this process has written, or had no place for.
    written_condition: Condition | None = None
    # It was deleted with `--cascade=orphan`: its children are to be released.
    orphans: bool = False
    # Its observation when no handler selected it, if an update handler may do so later.
    overlooked: Seen | None = None
    # Work was left over from the last step, which may call the author's code only once.
    left: bool = False

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is under way about the object but daemons and timers."""
        work = self.work
        return self.expected is None and (work is None or work.is_lasting)

    def backing_off(self, **changes: Any) -> ObjectRecord:
        """The record with some fields of its `backoff` changed."""
        return replace(self, backoff=replace(self.backoff, **changes))

    def progress_of(self, name: str) -> Progress | None:
        """The progress of a handler with the present change; None without any."""
        records = self.work.progress if self.work else IDLE.progress
        return records.get(name) or self.stored.progress.get(name)

    def handled_by(self, handler: Handler) -> str:
        """The digest of a handler's last-handled state; "" without one.

        It is the digest of the object's last-seen state, unless the handler's progress
        says otherwise.
        """
        record, seen = self.progress_of(handler.id), self.stored.seen
        if record is not None and record.handled:
            return record.handled
        return seen.digest(scope_name(handler.scope), "") if seen else ""

    def before(self, handler: Handler, observation: Observation) -> Seen | None:
        """The earlier state of the object, for a handler that compares.

        It is the state that the handler last acted upon, if the object has changed
        since. Otherwise it is the state when a change was last handled.
        """
        record = self.progress_of(handler.id)
        if record is None or record.seen is None:
            return self.stored.seen
        scope = scope_name(handler.scope)
        was, now = record.seen.digests, see(self.body, observation).digests
        return self.stored.seen if was.get(scope) == now.get(scope) else record.seen
