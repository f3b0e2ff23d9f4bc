"""An operator in the simulated cluster, on virtual time.

Synchronous and single-threaded: inputs are taken in the order in which the
world would send them, and where there is nothing to do but wait, the clock
jumps.  Equal beginnings lead to equal ends, to the byte.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fnop.core.commands import (
    Alarm,
    CloseStream,
    Command,
    Exit,
    Fetch,
    Interrupt,
    ListPage,
    Perform,
    Ready,
    Say,
    Subject,
    Watch,
)
from fnop.core.discovery import ROOTS
from fnop.core.evolve import replace
from fnop.core.inputs import (
    AlarmRang,
    Answered,
    Input,
    ListDone,
    ListItem,
    Started,
    StopRequested,
    StreamEnded,
    WatchEvent,
)
from fnop.core.known import IDLE, Known
from fnop.core.objects import Body, Key
from fnop.core.operator import State, background_horizon, is_settled
from fnop.core.program import Program
from fnop.core.turn import ACTIVITY
from fnop.effects import Answer, Call, Log, Outcome, Random, Refused
from fnop.effects.values import thaw_json
from fnop.interpreters import cluster as simulated
from fnop.interpreters.calls import called
from fnop.interpreters.clock import VirtualClock
from fnop.interpreters.machine import Machine, Observer
from fnop.interpreters.protocol import ApiRequest, ApiResponse
from fnop.interpreters.requests import (
    fetch_request,
    list_request,
    message_of,
    outcome_of,
    request_for,
    watch_request,
)

__all__ = ["HORIZON_SECONDS", "STEPS_MAX", "SimulatedRun"]

# A run that has not settled by then is not going to: it is bounded all the same.
HORIZON_SECONDS = 7 * 24 * 3600.0
STEPS_MAX = 1_000_000
# Timers and daemons that have changed something so often will go on with it.
ROUNDS_MAX = 200
# How a plan fails that the API server refuses: no line of the author's raises that.
REFUSALS = ("Refused: ", "Conflict: ", "Missing: ")
# So often the same error in a row is not going to be another one.
REPEATS_MAX = 20

Model = Callable[..., Any]


class Calm:
    """Whether daemons and timers, which never end, have come to change nothing (R36).

    The cluster is as it was when the last of them was yet to have its turn.  Some, such
    as a timer that counts, always change something: `rounds` is how often all have had
    a turn.
    """

    def __init__(self) -> None:
        self.version = -1
        self.until: float | None = None
        self.rounds = 0

    def lasts(self, run: SimulatedRun) -> bool:
        """Whether all have had a turn since the last look, and nothing was written."""
        if run.looks_again:
            return False
        if self.until is not None and run.clock.elapsed < self.until:
            return False
        horizon = background_horizon(run.machine.state, run.clock.now())
        if horizon is None:
            return False
        calm = self.until is not None and self.version == run.cluster.version
        self.rounds += 1
        self.version, self.until = run.cluster.version, horizon
        return calm


class Despair:
    """Whether all that is left to do fails again and again, with the same error.

    What an author foresees, `TemporaryError` and `again`, may well come to an end; a
    `NameError` does not, nor does what the API server refuses.
    """

    def __init__(self) -> None:
        # The last error of each handler of an object, and how often it came in a row.
        self.errors: dict[tuple[Key, str], tuple[str, int]] = {}

    def hear(self, say: Say) -> None:
        """Take a line of the log in."""
        if say.handler is None:
            return
        key = ACTIVITY if say.subject is None else _key_of(say.subject)
        text, times = self.errors.pop((key, say.handler), ("", 0))
        if say.error and (say.exception or say.error.startswith(REFUSALS)):
            times = times + 1 if say.error == text else 1
            self.errors[key, say.handler] = say.error, times

    def is_justified(self, state: State) -> bool:
        """Whether nothing but the failing handlers is due."""
        failing: dict[Key, set[str]] = {}
        for (key, handler), (_, times) in self.errors.items():
            if times >= REPEATS_MAX:
                failing.setdefault(key, set()).add(handler)
        if not failing or state.pending:
            return False
        return all(
            _only_fails(state.objects.get(key), failing.get(key, set()))
            for key in state.queue.due
        )


def _key_of(subject: Subject) -> Key:
    return Key(subject.resource, subject.namespace or "", subject.name)


def _only_fails(known: Known | None, failing: set[str]) -> bool:
    """Whether an object waits for these handlers, or parts, and for no others."""
    if known is None:
        return False
    work = known.work or IDLE
    if work.running or work.spying or work.writing is not None:
        return False
    records = {**known.stored.progress, **work.progress}
    left = {name for name, record in records.items() if not record.is_finished}
    if not left:
        return bool(known.background)  # it waits for daemons and timers
    return all(
        name in failing or any(each.startswith(f"{name}/") for each in failing)
        for name in left
    )


class SimulatedRun:
    """One operator, one cluster, one clock.

    `calls` answers `fnop.call`: a model per function, by `module:name` or by the
    function itself.  `on_say` gets each log line with its virtual wall time.
    """

    def __init__(
        self,
        program: Program,
        cluster: simulated.Cluster,
        *,
        seed: str = "0",
        clock: VirtualClock | None = None,
        observers: Iterable[Observer] = (),
        calls: Mapping[str, Model] | None = None,
        on_say: Callable[[Say, float], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.clock = clock or VirtualClock()
        self.machine = Machine(program, observers)
        self.calls = {} if calls is None else calls
        self.on_say = on_say
        self.ready = False
        self.exit: Exit | None = None
        self.steps = 0
        self.requests: list[ApiRequest] = []
        self._first_seed = self._seed = seed
        self._lives = 0
        self._random = 0
        self._alarm: float | None = None
        self._inbox: deque[Input] = deque([Started(seed)])
        self._watches: dict[int, ApiRequest] = {}
        # The kinds that the cluster had when the operator last looked for them.
        self._surveyed: object = None
        self._despair = Despair()

    # ------------------------------------------------------------- the world

    def request(self, request: ApiRequest) -> ApiResponse:
        """Send a request to the cluster, as a user or another client would."""
        # What an operator holds is read-only; what a server gets is plain JSON.
        if request.body is not None:
            request = replace(request, body=thaw_json(request.body))
        self.cluster, response, events = simulated.answer(
            self.cluster, request, self.clock.now().wall
        )
        self._deliver(events)
        return response

    def stop(self, reason: str = "stop requested") -> None:
        """Ask the operator to end."""
        self._inbox.append(StopRequested(reason))

    def crash(self, program: Program | None = None) -> None:
        """The operator dies where it stands, and begins anew.

        What it has sent stays sent; what it knew is gone.
        """
        program = program or self.machine.program
        self.machine.close()
        self.machine = Machine(program, self.machine._observers)
        self._watches.clear()
        self._alarm = None
        self.exit = None
        self.ready = False
        self._despair = Despair()
        self._lives += 1
        self._seed = f"{self._first_seed}-{self._lives}"
        self._inbox = deque([Started(self._seed)])

    # -------------------------------------------------------------- the loop

    def settle(self, *, seconds: float | None = None) -> bool:
        """Run until nothing is left to do; False if that did not happen.

        `seconds` of virtual time at most; without it a week, or until it is plain that
        what is left will not end: it fails again and again with the same error, or
        writes something at each of its turns.
        """
        begin = self.clock.elapsed
        end = begin + (HORIZON_SECONDS if seconds is None else seconds)
        calm = Calm()
        for _ in range(STEPS_MAX):
            if seconds is None and not self._inbox and calm.lasts(self):
                return True
            if seconds is None and (
                calm.rounds > ROUNDS_MAX
                or self._despair.is_justified(self.machine.state)
            ):
                return False
            if not self.advance(end):
                return is_settled(self.machine.state) and not self.looks_again
        return False

    def wait(self, seconds: float) -> None:
        """Let so much virtual time pass, with all that is due in it."""
        end = self.clock.elapsed + seconds
        for _ in range(STEPS_MAX):
            if not self.advance(end, recurring=True):
                break
        self.clock.advance_to(end)

    def advance(self, end: float = float("inf"), *, recurring: bool = False) -> bool:
        """Take one step; False when there is none before `end`.

        With `recurring` also what the cluster does again and again, for ever.
        """
        if not self._inbox and not self._control():
            at = self._next(recurring)
            if at is None:
                return False
            if at > end:
                self.clock.advance_to(end)
                return False
            self.clock.advance_to(at)
            if at == self._alarm:
                self._alarm = None
                self._inbox.append(AlarmRang())
        if self._inbox:
            self.take()
        return True

    @property
    def looks_again(self) -> bool:
        """Whether the operator is about to look for kinds, and may find other ones."""
        if self.exit is not None or self.machine.state.discovery_due is None:
            return False
        return self.cluster.registry is not self._surveyed

    def _next(self, recurring: bool) -> float | None:
        """When something happens next: here, or in the cluster by itself.

        Whoever has settled waits for nothing but what the cluster has yet to do, and
        not for what it does again and again, nor for kinds that are not there.
        """
        settled = is_settled(self.machine.state) and not self.looks_again
        alarm = self._alarm
        planned = simulated.due(self.cluster, recurring=recurring or not settled)
        if alarm is not None and settled and not recurring:
            alarm = alarm if alarm <= self.clock.elapsed else None
        if planned is None:
            return alarm
        # The clock of the cluster is the wall's, which is not as exact: a bit later.
        now = self.clock.now()
        planned = now.mono + max(0.0, planned - now.wall) + 1e-6
        return planned if alarm is None else min(alarm, planned)

    def take(self) -> tuple[Command, ...]:
        """Feed the oldest input and perform what comes of it."""
        self.steps += 1
        commands = self.machine.feed(self.clock.now(), self._inbox.popleft())
        for command in commands:
            self.perform(command)
        return commands

    def _control(self) -> bool:
        """Let the cluster's own controllers have a turn."""
        self.cluster, events = simulated.tick(self.cluster, self.clock.now().wall)
        self._deliver(events)
        return bool(events)

    # ---------------------------------------------------------- the commands

    def perform(self, command: Command) -> None:
        """Execute one command; its answer is the next in the line."""
        match command:
            case Perform():
                outcome = self._outcome(command)
                self._inbox.append(Answered(command.id, outcome))
            case Fetch():
                self._fetch(command)
            case ListPage():
                self._list(command)
            case Watch():
                self._watch(command)
            case Interrupt():
                pass  # calls take no time here: none is under way
            case CloseStream(stream):
                self._watches.pop(stream, None)
            case Alarm(at):
                self._alarm = at
            case Say():
                self._despair.hear(command)
                if self.on_say is not None:
                    self.on_say(command, self.clock.now().wall)
            case Ready():
                self.ready = True
            case Exit():
                self._end(command)

    def _fetch(self, command: Fetch) -> None:
        if command.path in ROOTS:
            self._surveyed = self.cluster.registry
        response = self.request(fetch_request(command))
        self._inbox.append(Answered(command.id, outcome_of(None, response)))

    def _end(self, exit: Exit) -> None:
        """The operator is gone; the cluster is not."""
        self.exit = exit
        self._alarm = None
        self._inbox.clear()
        self._watches.clear()

    def _outcome(self, command: Perform) -> Outcome:
        match command.effect:
            case Call() as call:
                return self._call(command, call)
            case Random(size=size):
                self._random += 1
                text = f"{self._seed}/{self._random}".encode()
                raw = hashlib.shake_128(text).digest(size)
                return Answer(raw.hex())
            case effect:
                manager = self.machine.settings.marker
                request = request_for(command, manager)
                self.requests.append(request)
                return outcome_of(effect, self.request(request))

    def _call(self, command: Perform, call: Call) -> Outcome:
        model = self.calls.get(call.function)
        if model is None:
            return Refused(
                501,
                f"{call.function} is not simulated; give a model of it: in a test "
                f"Simulation(calls={{{call.function.partition(':')[2]}: ...}}), for "
                "fnop run --calls FILE or --real-calls",
                "NotSimulated",
            )
        return called(model, call, lambda line: self._said(command, line))

    def _said(self, command: Perform, line: Log) -> None:
        """A log line of an impure handler."""
        say = Say(line.level, line.message, command.subject, command.handler)
        self.perform(replace(say, exception=line.exception))

    def _list(self, command: ListPage) -> None:
        response = self.request(list_request(command))
        if response.status != 200:
            self._refused(command.stream, response)
            return
        meta = response.body.get("metadata") or {}
        # Items of a listing come without their kind (API conventions: lists).
        resource = command.resource
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        for item in response.body.get("items") or ():
            self._inbox.append(ListItem(command.stream, Body({**head, **item})))
        self._inbox.append(
            ListDone(
                command.stream,
                str(meta.get("resourceVersion")),
                meta.get("continue") or None,
            )
        )

    def _refused(self, stream: int, response: ApiResponse) -> None:
        message, _ = message_of(response)
        self._inbox.append(StreamEnded(stream, "refused", response.status, message))

    def _watch(self, command: Watch) -> None:
        request = watch_request(command)
        found = simulated.backlog(self.cluster, request)
        if isinstance(found, ApiResponse):
            self._refused(command.stream, found)
            return
        if found and found[-1].type == "ERROR":
            # A Status in the stream ends it: its version is no longer kept.
            body = found[-1].object
            self._refused(command.stream, ApiResponse(body["code"], body))
            return
        self._watches[command.stream] = request
        for event in found:
            self._inbox.append(
                WatchEvent(command.stream, event.type, Body(event.object))
            )

    def _deliver(self, events: Iterable[simulated.StoredEvent]) -> None:
        registry = self.cluster.registry
        for event in events:
            for stream, request in self._watches.items():
                seen = simulated.seen_by(request, event, registry)
                if seen is not None:
                    self._inbox.append(WatchEvent(stream, seen.type, Body(seen.object)))
