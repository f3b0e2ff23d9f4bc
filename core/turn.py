"""One step under way: the operator's state, opened for a moment.

A `Turn` holds the parts of a state while one step changes them, and closes into
the next state.  It lives within one call of `step` and never escapes.
"""

from __future__ import annotations

from enum import Enum
from operator import itemgetter
from typing import Any, NamedTuple, TypedDict, Unpack

from immutables import Map

from fnop.core.backoff import Backoff, growing_seconds, jitter_of
from fnop.core.commands import (
    Alarm,
    CloseStream,
    Command,
    Exit,
    Perform,
    Say,
    Subject,
)
from fnop.core.discovery import Discovery
from fnop.core.election import Election, Leading
from fnop.core.errands import Address
from fnop.core.known import Known
from fnop.core.now import Now
from fnop.core.objects import Body, Key
from fnop.core.peering import Peering
from fnop.core.program import Kind, Program
from fnop.core.progress import Failure, Judgement, Progress, judge_failure
from fnop.core.registry import Handler
from fnop.core.resources import Catalogue, Resource
from fnop.core.settings import Settings
from fnop.core.table import Table
from fnop.core.watcher import Stream, StreamKey
from fnop.core.workqueue import EMPTY, WorkQueue
from fnop.effects import Effect, Event
from fnop.effects.values import ReadOnlyDict

__all__ = [
    "ACTIVITY",
    "NEW",
    "Grave",
    "Phase",
    "State",
    "Ticket",
    "Turn",
    "settings_of",
]


class Phase(Enum):
    """The life of an operator."""

    NEW = "new"
    STARTING = "starting"  # startup handlers
    DISCOVERING = "discovering"
    SERVING = "serving"
    STANDBY = "standby"  # another replica leads: everything is followed, nothing done
    FROZEN = "frozen"  # another operator goes before
    STOPPING = "stopping"  # what is under way comes to its end
    CLEANING = "cleaning"  # cleanup handlers
    LEAVING = "leaving"  # the peers, and the lease
    ENDED = "ended"


# Phases in which no handler is called, and no request sent for one.
HELD = (Phase.STANDBY, Phase.FROZEN)

# Kinds of tickets whose requests keep the right to serve: they wait for no others.
URGENT = ("peer", "lease")


class Ticket(NamedTuple):
    """What a command was for, until it is answered.

    `kind` is errand, write, echo, event or fetch; `serial` the invocation's.
    `outside` ones do not go to the API server, and may take long.  `uid` is the
    object's, where the answer is for no namesake, `name` a Kubernetes Event's.
    """

    kind: str
    key: Key | None = None
    serial: int = 0
    handler: str = ""
    outside: bool = False
    uid: str = ""
    name: str = ""


# The key under which startup and cleanup handlers run: they have no object.
ACTIVITY = Key("", "", "")


class Grave(NamedTuple):
    """An object that a live answer has told to be gone, in this step.

    The watch may be late, and show it as it was before.
    """

    uid: str
    step: int


class State(NamedTuple):
    """Everything the operator knows.

    `serial` numbers commands and invocations, `step` counts the steps.
    `discovery_tries` are looks for kinds in vain, since the last that found something;
    `kind_wanted` is that an effect has named one that is not there, since the last one.
    `annotated` are kinds whose schema prunes a state from status, `unconditioned` those
    that have no place for a condition; `warned` what has been warned about once;
    `failures` counts handlers that failed for good, `calls` the pending commands that
    do not go to the API server.  `configured` are the settings as startup handlers
    have changed them, `memo` is what activities remember: each object's begins with it.
    `graves` are the objects that are known to be gone before the watch has shown it.
    `namespaces` are those of the cluster, None where that is not known or not needed.
    Until `restless_until` (monotonic) a definition has just come or gone, and what the
    API server says of its kinds may still be what it said before.  The stop
    was asked for at `stopping_since`, its present phase ends at `stop_by` (monotonic).
    `peering` and `election` are what is known of other operators, with the monotonic
    times at which they are due; `frozen` is a handler's reason to keep still.
    """

    phase: Phase
    seed: str
    serial: int
    step: int
    catalogue: Catalogue
    kinds: Table[str, Kind]
    discovery: Discovery | None
    discovery_due: float | None
    discovery_tries: int
    kind_wanted: bool
    streams: Table[int, StreamKey]
    followed: Table[StreamKey, Stream]
    objects: Map[Key, Known]
    graves: Map[Key, Grave]
    queue: WorkQueue
    pending: Map[int, Ticket]
    alarm: float | None
    annotated: frozenset[str]
    unconditioned: frozenset[str]
    warned: frozenset[str]
    failures: int
    calls: int
    ready: bool
    indices: Map[str, Any]
    stopping_since: float | None
    stop_by: float | None
    exit_status: int
    configured: Settings | None
    memo: ReadOnlyDict
    namespaces: frozenset[str] | None
    restless_until: float
    peering: Peering | None
    peering_due: float | None
    election: Election | None
    election_due: float | None
    frozen: str | None


NEW = State(
    Phase.NEW,
    "",
    1,
    0,
    Catalogue(),
    Table(),
    None,
    None,
    0,
    False,
    Table(),
    Table(),
    Map(),
    Map(),
    EMPTY,
    Map(),
    None,
    frozenset(),
    frozenset(),
    frozenset(),
    0,
    0,
    False,
    Map(),
    None,
    None,
    0,
    None,
    ReadOnlyDict(),
    None,
    0.0,
    None,
    None,
    None,
    None,
    None,
)


def settings_of(program: Program, state: State) -> Settings:
    """The settings in force: the program's own, or what startup made of them."""
    return program.settings if state.configured is None else state.configured


_AGAIN = "info", "serving again"


_fields_of = itemgetter(*State._fields)


class _Beside(TypedDict, total=False):
    """What a line of the log may be about."""

    key: Key | None
    body: Body | None
    handler: str | None
    error: str | None
    exception: BaseException | None
    fields: tuple[tuple[str, Any], ...]
    took: float | None


class Turn:
    """A state, open for one step, and the commands of that step."""

    def __init__(self, program: Program, state: State, now: Now) -> None:
        self.program = program
        self.now = now
        self.commands: list[Command] = []
        # How often user code was driven: at most once in a step (R11).
        self.drives = 0
        self.fresh: Key | None = None
        # Log lines of this step that become Kubernetes Events.
        self.noted: tuple[tuple[Key, Event, str], ...] = ()
        # What the step has made of objects, before it is stored.
        self.touched: dict[Key, Known | None] = {}
        (
            self.phase,
            self.seed,
            self.serial,
            self.step,
            self.catalogue,
            self.kinds,
            self.discovery,
            self.discovery_due,
            self.discovery_tries,
            self.kind_wanted,
            self.streams,
            self.followed,
            self.objects,
            self.graves,
            self.queue,
            self.pending,
            self.alarm,
            self.annotated,
            self.unconditioned,
            self.warned,
            self.failures,
            self.calls,
            self.ready,
            self.indices,
            self.stopping_since,
            self.stop_by,
            self.exit_status,
            self.configured,
            self.memo,
            self.namespaces,
            self.restless_until,
            self.peering,
            self.peering_due,
            self.election,
            self.election_due,
            self.frozen,
        ) = state
        self.settings = settings_of(program, state)
        self.step += 1

    def known(self, key: Key) -> Known | None:
        """What is known of an object, as this step has it."""
        if key in self.touched:
            return self.touched[key]
        return self.objects.get(key)

    def put(self, key: Key, known: Known) -> None:
        """Keep this of an object; the store gets it when the turn is closed."""
        self.touched[key] = known

    def drop(self, key: Key) -> None:
        """Forget an object; nobody is going to refuse what was to be written there."""
        known = self.known(key)
        for _, say in known.work.successes if known and known.work else ():
            self.emit(say)
        self.touched[key] = None
        self.queue = self.queue.discard(key)
        if self.fresh == key:
            self.fresh = None

    def drop_all(self) -> None:
        """Forget all objects."""
        self.touched.clear()
        self.objects, self.queue, self.fresh = NEW.objects, NEW.queue, None
        self.graves = NEW.graves

    def bury(self, key: Key, uid: str) -> None:
        """A live answer says that this object is gone: what shows it is older."""
        self.graves = self.graves.set(key, Grave(uid, self.step))

    def exhume(self, key: Key) -> None:
        """Nothing older than its end can be shown of this object any more."""
        if key in self.graves:
            self.graves = self.graves.delete(key)

    def all_known(self) -> list[tuple[Key, Known]]:
        """All objects, in an order that no hash decides."""
        self._store()
        return [(key, self.objects[key]) for key in sorted(self.objects)]

    def _store(self) -> None:
        for key, known in self.touched.items():
            if known is not None:
                self.objects = self.objects.set(key, known)
            elif key in self.objects:
                self.objects = self.objects.delete(key)
        self.touched.clear()

    def close(self) -> State:
        """The next state."""
        self._store()
        assert self.fresh is None, "what is due is queued before a turn is closed"
        return State._make(_fields_of(self.__dict__))

    def next_serial(self) -> int:
        self.serial += 1
        return self.serial

    def jitter(self) -> float:
        """A number from 0 to 1: from the seed and a counter, never a clock."""
        return jitter_of(self.seed, self.next_serial())

    def emit(self, command: Command) -> None:
        self.commands.append(command)

    def has_slot(self) -> bool:
        """Whether a further request may be under way; calls hold no slot (R13)."""
        requests = len(self.pending) - self.calls
        return requests < self.settings.request_concurrency

    def perform(
        self,
        effect: Effect,
        address: Address,
        ticket: Ticket,
        subject: Subject | None,
        before: float | None = None,
    ) -> int:
        """Ask for an effect; its answer will find the ticket.

        It has to begin `before` a monotonic time, or the end of the lease.
        """
        number = self.next_serial()
        self.pending = self.pending.set(number, ticket)
        self.calls += ticket.outside
        self.emit(
            Perform(
                number,
                effect,
                address.resource,
                address.namespace,
                address.name,
                subject,
                ticket.handler or None,
                self._deadline(ticket) if before is None else before,
                ticket.kind in URGENT,
            )
        )
        return number

    def _deadline(self, ticket: Ticket) -> float | None:
        """When a request may not begin any more: the lease may be another's then."""
        if self.election is None or ticket.kind in URGENT:
            return None
        verdict = self.election.verdict
        return verdict.until if isinstance(verdict, Leading) else None

    def due(self, key: Key, at: float | None = None) -> None:
        """Look at this object then; without a time, at once."""
        if at is None and self.fresh is None:
            self.fresh = key
        elif at is None:
            self.queue = self.queue.add_last(key, self.now.mono)
        else:
            self.queue = self.queue.add(key, at)

    def take_due(self) -> Key | None:
        """The key whose turn it is, if one is due.

        A key that became due in this step and finds nothing before it goes
        past the queue: that is the common case, and the same order.
        """
        first, fresh = self.queue.next_due(), self.fresh
        if fresh is not None and (first is None or first > self.now.mono):
            self.fresh = None
            if first is not None:
                self.queue = self.queue.discard(fresh)
            return fresh
        key: Key | None
        key, self.queue = self.queue.take(self.now.mono)
        return key

    def judge(
        self, handler: Handler, progress: Progress, failure: Failure
    ) -> Judgement:
        """What a failed attempt means, by the handler's options and the settings."""
        default = self.settings.default_backoff
        backoff = default if handler.backoff is None else handler.backoff
        return judge_failure(
            progress,
            failure,
            self.now,
            errors=handler.errors,
            timeout=handler.timeout,
            retries=handler.retries,
            backoff=backoff,
            jitter=self.jitter() if isinstance(backoff, Backoff) else 0.0,
        )

    def say(self, level: str, message: str, **given: Unpack[_Beside]) -> None:
        """One line for the log."""
        self.emit(self.line(level, message, **given))

    def line(
        self,
        level: str,
        message: str,
        *,
        key: Key | None = None,
        body: Body | None = None,
        handler: str | None = None,
        error: str | None = None,
        exception: BaseException | None = None,
        fields: tuple[tuple[str, Any], ...] = (),
        took: float | None = None,
    ) -> Say:
        """One line for the log, to be told later."""
        subject = None
        if key is not None and key != ACTIVITY:
            subject = self.subject(key, body)
        return Say(level, message, subject, handler, fields, error, exception, took)

    def warn_once(self, about: str, message: str, key: Key | None = None) -> None:
        if about not in self.warned:
            self.warned |= {about}
            self.say("warning", message, key=key)

    def subject(self, key: Key, body: Body | None = None) -> Subject:
        """How commands name an object."""
        if body is None:
            known = self.known(key)
            body = known.body if known else None
        kind = self.kinds.get(key.resource)
        resource: Resource | None = kind.resource if kind else None
        return Subject(
            key.resource,
            key.namespace or None,
            key.name,
            body.uid if body else None,
            resource.kind if resource else "",
            resource.api_version if resource else "",
        )

    def enqueue(self) -> None:
        """Queue what became due in this step and was not served by it."""
        if self.fresh is not None:
            self.queue = self.queue.add_last(self.fresh, self.now.mono)
            self.fresh = None

    def end(self, status: int, reason: str) -> None:
        """The operator ends with this step."""
        if self.phase is Phase.ENDED:
            return
        for number in self.streams:
            self.emit(CloseStream(number))
        self.streams, self.followed = NEW.streams, NEW.followed
        self.phase = Phase.ENDED
        self.emit(Exit(status, reason))

    def freeze(self, reason: str | None) -> None:
        """A handler wants the operator to keep still, or (None) to go on."""
        if reason != self.frozen:
            self.frozen = reason
            self.say(*(("warning", f"frozen: {reason}") if reason else _AGAIN))

    def keeps_still(self, key: Key) -> bool:
        """Whether a handler's freeze forbids to begin anything more with an object."""
        return self.frozen is not None and key != ACTIVITY

    def rediscover(self) -> None:
        """A kind is missing that an effect names: look again, in a while."""
        self.kind_wanted = True
        most = self.settings.rediscovery_seconds
        wait = growing_seconds(self.discovery_tries, 0.0, most=most)
        self.rediscover_at(self.now.mono + wait)

    def rediscover_at(self, moment: float) -> None:
        """Look for kinds then, or before, if that is due already."""
        due = self.discovery_due
        self.discovery_due = moment if due is None else min(due, moment)

    def set_alarm(self, at: float | None) -> None:
        """Ring then, unless that is what the world was told already."""
        if at != self.alarm:
            self.alarm = at
            if at is not None:
                self.emit(Alarm(at))
