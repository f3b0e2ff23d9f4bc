"""An operator in the simulated cluster, on virtual time.

Synchronous and single-threaded: the operator takes inputs in the order that the world
would send them. If nothing is left but to wait, the clock jumps. Equal beginnings lead
to equal ends, to the byte.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fnop.core.api.catalogue import Catalogue
from fnop.core.handlers.program.program import Program
from fnop.core.operator.step import State, is_settled
from fnop.core.operator.unserved import Unserved, unserved
from fnop.core.seam.commands import (
    Alarm,
    Command,
    Exit,
    Interrupt,
    Perform,
    Ready,
    Refresh,
    Say,
)
from fnop.core.seam.inputs import (
    AlarmRang,
    Answered,
    Input,
    Started,
    StopRequested,
)
from fnop.core.seam.traces import Trace
from fnop.core.values.now import Now
from fnop.effects import Answer, Call, Log, Outcome, Random
from fnop.effects.structs import replace
from fnop.interpreters import cluster as simulated
from fnop.interpreters.cluster.storage.store import events_after
from fnop.interpreters.runtime.answers import outcome_of
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.guard import Act
from fnop.interpreters.runtime.interrupts import interruptible
from fnop.interpreters.runtime.machine import Eye, Machine, Observer
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, User
from fnop.interpreters.runtime.requests import request_for
from fnop.interpreters.runtime.watchdog import SLOW_STEP_SECONDS, Watchdog, slow_step
from fnop.interpreters.simulation.admission import ACCOUNT, Reviews
from fnop.interpreters.simulation.bodies import body_of, frozen_of
from fnop.interpreters.simulation.calls import Model, SimulatedCalls, may_wait
from fnop.interpreters.simulation.director import Crashed, Director
from fnop.interpreters.simulation.draws import Draws
from fnop.interpreters.simulation.known import KnownClusters, with_plain_body
from fnop.interpreters.simulation.lives import Life, Threads
from fnop.interpreters.simulation.reads import AWAY, Reads
from fnop.interpreters.simulation.settling import Calm, Despair, Prospects
from fnop.interpreters.simulation.threads import SimulatedThreads
from fnop.interpreters.simulation.watches import Inbox

__all__ = [
    "HORIZON_SECONDS",
    "CannotFork",
    "SimulatedRun",
    "begin_reviewing",
    "unserved_selectors",
]

# A run that has not settled by then is assumed never to settle.
HORIZON_SECONDS = 7 * 24 * 3600.0


class CannotFork(Exception):
    """The run has values of its process, such as threads, which cannot be copied."""


class SimulatedRun:
    """One operator, one cluster, one clock.

    `calls` answers `fnop.call`: a model per function, by `module:name` or by the
    function itself. `on_say` gets each log line with its virtual wall time. A
    `watchdog` of this thread learns when steps begin and end, in real time; it then
    names blocking handlers in the log. An `eye` watches the author's code. If the
    operator lives in this process, `begin` begins each life before its first step.
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
        watchdog: Watchdog | None = None,
        eye: Eye | None = None,
        begin: Callable[[SimulatedRun], Life] | None = None,
    ) -> None:
        self.cluster = cluster
        self.director = Director()
        # The clusters that several runs may come to; forks share them.
        self.known: KnownClusters | None = None
        # Receives each command, whatever happens to it; forks share it.
        self.listener: Callable[[Command], None] | None = None
        # The seconds that the operator's wall clock is ahead of the cluster's.
        self.skew = 0.0
        # The user that the operator's requests are sent as; without one, the operator
        # may do everything.
        self.account: User | None = None
        # Whether the cluster's own controllers act as time passes.
        self.has_controllers = True
        self.clock = clock or VirtualClock()
        self.machine = Machine(program, observers, eye=eye)
        self.begin = begin
        self.life: Life | None = None
        self.calls = SimulatedCalls(calls)
        self.on_say = on_say
        self._watchdog = watchdog
        self.ready = False
        self.exit: Exit | None = None
        self.steps = 0
        # The refused acts that did not make a handler fail: nothing else counts them.
        self.failures = 0
        self.requests: list[ApiRequest] = []
        # The kinds that a user finds, with the registry that they come from.
        self.catalogue: tuple[object, Catalogue] | None = None
        self.draws = Draws(seed)
        self._alarm: float | None = None
        self.inbox = Inbox()
        self.inbox.add(Started(seed))
        self.reads = Reads(self)
        self.prospects = Prospects(self)
        self.unsettled = ""
        """Why the run has not settled, where it was to; or ""."""
        self.admission = Reviews(self)
        # Impure daemons, which are under way as long as their objects live.
        self.threads: Threads = SimulatedThreads(self.clock)

    def fork(self, clock: VirtualClock | None = None) -> SimulatedRun:
        """A second run that continues from here, independently of this one.

        Both have the same past, and stay equal as long as the same is done to them.
        Only data that a run changes in place is copied: the cluster and the operator's
        state are values. The second run does not get the log and the faults of this
        run. Models of external systems are forked, too
        (`fnop.interpreters.simulation.externals`). Raises `CannotFork` while an impure
        daemon is under way, and while the operator lives in this process.
        """
        if self.life is not None:
            raise CannotFork("the operator lives in this process, and has no copy")
        if self.threads.calls:
            raise CannotFork("an impure daemon is under way: its thread has no copy")
        fork = type(self).__new__(type(self))
        fork.__dict__.update(self.__dict__)
        fork.clock = clock or self.clock.fork()
        fork.machine = self.machine.fork()
        fork.calls = self.calls.fork()
        fork.director = Director()
        fork.on_say = fork._watchdog = None
        fork.requests = [*self.requests]
        fork.draws = self.draws.fork()
        fork.inbox = Inbox(self.inbox)
        fork.reads = self.reads.fork(fork)
        fork.prospects = Prospects(fork, self.prospects.despair.fork())
        fork.threads = SimulatedThreads(fork.clock)
        fork.admission = Reviews(fork, is_registered=self.admission.is_registered)
        return fork

    def share(self) -> None:
        """Let this run and its forks share the clusters and bodies that they come to.

        It pays for many forks. Each object is then read-only at every depth.
        """
        self.known, self.reads.watches.body_of = KnownClusters(), body_of

    def beside(self, program: Program, seed: str) -> SimulatedRun:
        """Another process in the same world: its cluster, clock and external systems.

        The clusters are values: `catch_up` adopts the changes of the other run.
        """
        other = SimulatedRun(
            *(program, self.cluster),
            seed=seed,
            clock=self.clock,
            calls=self.calls.models,
        )
        other.listener = self.listener
        return other

    # ------------------------------------------------------------- the world

    @property
    def state(self) -> State:
        """The operator's state, without the waiting calls of impure daemons.

        They wait for ever, so this does not count as remaining work.
        """
        state = self.machine.state
        if not self.threads.calls:
            return state
        requests = state.requests
        for number in self.threads.calls:
            _, requests = requests.answered(number)
        return replace(state, requests=requests)

    def deliverable(self) -> int | None:
        """The position of the next input; None if none exists, or all are held."""
        if not self.inbox:
            return None
        return self.director.choose(self.inbox)

    @property
    def has_input(self) -> bool:
        """Whether an input exists that is not held."""
        return self.deliverable() is not None

    def request(self, request: ApiRequest) -> ApiResponse:
        """Send a request to the cluster, as a user or another client would."""
        wall, own = self.clock.now().wall, self.admission.webhooks
        if own is not None:
            request = with_plain_body(request)
            found = simulated.answer(self.cluster, request, wall, own.ask, own.beside)
        elif self.known is not None:
            found = self.known.answer(self.cluster, request, wall)
        else:
            found = simulated.answer(self.cluster, with_plain_body(request), wall)
        self.cluster, response, events = found
        self._deliver(events)
        return response

    def stop(self, reason: str = "stop requested") -> None:
        """Ask the operator to end."""
        self.inbox.add(StopRequested(reason))

    def crash(self, program: Program | None = None) -> None:
        """Let the operator die on the spot, and start again.

        Its sent requests stay sent; its knowledge is lost.
        """
        program = program or self.machine.program
        self.threads.close()
        self.machine.close()
        self._end_life()
        self.machine = Machine(program, self.machine._observers, eye=self.machine.eye)
        self.admission = Reviews(self, is_registered=self.admission.is_registered)
        self.reads.clear()
        self._alarm = None
        self.exit = None
        self.ready = False
        self.prospects.despair = Despair()
        self.draws.restart()
        self.inbox.clear()
        self.inbox.add(Started(self.draws.seed))

    def _begin_life(self, begin: Callable[[SimulatedRun], Life]) -> None:
        life = self.life = begin(self)
        observers = (*self.machine._observers, *life.observers)
        self.machine = Machine(life.program, observers, eye=self.machine.eye)
        self.threads = life.threads

    def _end_life(self) -> None:
        life, machine = self.life, self.machine
        if life is None:
            return
        life.close()
        own = life.observers
        machine._observers = tuple(e for e in machine._observers if e not in own)
        self.life, self.threads = None, SimulatedThreads(self.clock)

    # -------------------------------------------------------------- the loop

    def settle(self, *, seconds: float | None = None) -> bool:
        """Run until nothing is left to do; False if that did not happen.

        The run lasts at most `seconds` of virtual time: work that timers and daemons
        then continue does not count as left. Without `seconds` it lasts at most a week,
        or until the remaining work evidently never ends. Such work fails again and
        again with the same error, changes the same object again and again, or writes
        something at each of its turns. If time does not pass at all, that is found with
        `seconds`, too. `unsettled` gives the reason. An operator that has ended with an
        error does not settle.
        """
        with interruptible():
            is_done = self._run_until_settled(seconds)
        if self.exit is None or not self.exit.status:
            return is_done
        self.unsettled = self.exit.reason
        return False

    def _run_until_settled(self, seconds: float | None) -> bool:
        end = self.clock.elapsed + (HORIZON_SECONDS if seconds is None else seconds)
        calm = Calm()
        self.prospects.watch_for_circles(bounded=seconds is not None)
        self.unsettled = ""
        while not self.unsettled:
            if seconds is None and not self.has_input:
                # A round of controllers may have no result, and takes no time.
                if self.control():
                    continue
                if calm.lasts(self):
                    return True
            if not self.advance(end):
                self.unsettled = self.prospects.left(bounded=seconds is not None)
                return not self.unsettled
            self.unsettled = self.prospects.restless.reason()
            if seconds is None and not self.unsettled:
                self.unsettled = self.prospects.reason_to_stop(calm)
        return False

    def catch_up(self, cluster: simulated.Cluster) -> None:
        """Adopt the changes that another run has made to the same cluster."""
        events = events_after(cluster, self.cluster.version)
        self.cluster = cluster
        self._deliver(events or ())

    def wait(self, seconds: float) -> bool:
        """Let the given virtual time pass, with everything that is due in it.

        Returns False if the operator lets no time pass; then `unsettled` gives the
        reason.
        """
        end = self.clock.elapsed + seconds
        self.prospects.watch_for_circles(bounded=True)
        self.unsettled = ""
        with interruptible():
            while self.advance(end, recurring=True):
                self.unsettled = self.prospects.restless.reason()
                if self.unsettled:
                    return False
        self.clock.advance_to(end)
        return True

    def advance(self, end: float = float("inf"), *, recurring: bool = False) -> bool:
        """Take one step; False if none is due before `end`.

        With `recurring` also when a settled operator only looks again for kinds.
        """
        place = self.deliverable()
        if place is None:
            if not self.control() and not self.pass_time(end, recurring=recurring):
                return False
            place = self.deliverable()
        if place is not None:
            self.take(place)
        return True

    def pass_time(self, end: float = float("inf"), *, recurring: bool = False) -> bool:
        """Let the time pass until the next event; False if none comes by `end`."""
        at = self.next_at(recurring=recurring)
        if at is None:
            return False
        if at > end:
            self.clock.advance_to(end)
            return False
        self.clock.advance_to(at)
        if at == self._alarm:
            self._alarm = None
            self.inbox.add(AlarmRang())
        try:
            for number, outcome in self.threads.wake():
                self.inbox.add(Answered(number, outcome))
        except Crashed as crashed:
            self.crash(crashed.program)
        self.reads.logs.pass_time(self.clock.now())
        return True

    @property
    def looks_again(self) -> bool:
        """Whether the operator is about to look for kinds, and may find others."""
        if self.exit is not None or self.machine.state.survey.due is None:
            return False
        return not self.reads.knows_kinds

    def next_at(self, *, recurring: bool = False) -> float | None:
        """The time of the next event, in the operator or in the cluster by itself.

        A settled operator waits only for the cluster's controllers. With `recurring` it
        also waits for its own next look for missing kinds.
        """
        alarm, moments = self._alarm, self.threads.wakes
        if alarm is not None and alarm > self.clock.elapsed and not recurring:
            waits = not is_settled(self.state) or self.looks_again or moments
            alarm = alarm if waits else None
        if alarm is not None:
            moments.append(alarm)
        if (complete := self.reads.logs.next_at) is not None:
            moments.append(complete)
        if self.has_controllers and (planned := self.controllers_at()) is not None:
            moments.append(planned)
        return min(moments, default=None)

    def take(self, place: int = 0) -> tuple[Command, ...]:
        """Feed an input, by default the oldest, and perform the resulting commands."""
        self.steps += 1
        if self.begin is not None and self.life is None:
            self._begin_life(self.begin)
        commands = self._feed_machine(self.inbox.take(place))
        try:
            for command in commands:
                if self.listener is not None:
                    self.listener(command)
                self.perform(command)
        except Crashed as crashed:
            # The remaining commands are lost with it.
            self.crash(crashed.program)
            return commands
        for act in self.machine.acts():
            self._log_refused_act(act, commands)
        return commands

    def _feed_machine(self, input: Input) -> tuple[Command, ...]:
        """Take one input, observed by the watchdog if it is set."""
        watchdog, now = self._watchdog, self.clock.now()
        if self.skew:
            now = Now(now.wall + self.skew, now.mono)
        if watchdog is None:
            return self.machine.feed(now, input)
        watchdog.begin()
        commands = self.machine.feed(now, input)
        took = watchdog.end(SLOW_STEP_SECONDS)
        if took > SLOW_STEP_SECONDS:
            self.perform(Say("warning", slow_step(took, commands)))
        return commands

    def _log_refused_act(self, act: Act, commands: tuple[Command, ...]) -> None:
        """Log a refused act, unless a handler's failure has already logged it.

        A filter, or an index, may have caught the error.
        """
        if not any(isinstance(each, Say) and each.act == act for each in commands):
            reason = act.refusal
            self.failures += 1
            self.perform(Say("error", reason, None, act.handler, error=reason))

    def controllers_at(self) -> float | None:
        """The virtual time at which the cluster's own controllers are due."""
        planned, now = simulated.due(self.cluster), self.clock.now()
        if planned is None:
            return None
        # The cluster's clock is the less exact wall clock, so add a bit of time.
        return now.mono + max(0.0, planned - now.wall) + 1e-6

    def control(self) -> bool:
        """Let the cluster's own controllers act; return whether anything changed."""
        tick = simulated.tick if self.known is None else self.known.tick
        self.cluster, events = tick(self.cluster, self.clock.now().wall)
        self._deliver(events)
        return bool(events)

    def _deliver(self, events: Iterable[simulated.StoredEvent]) -> None:
        self.reads.deliver(events)

    # ---------------------------------------------------------- the commands

    def perform(self, command: Command) -> None:
        """Execute one command, unless it is held; its answer is queued next."""
        if self.director.holds(command):
            return
        match command:
            case Perform():
                self._answered(command.id, self._performed(command))
            case Interrupt() | Refresh():
                self._answered(command.id, self.threads.tell(command))
            case Alarm(at):
                self._alarm = at
            case Say():
                self.note_log_line(command)
            case Ready():
                self.ready = self.admission.is_registered = True
            case Exit():
                self._end_operator(command)
            case Trace():
                pass  # for recorders
            case read:
                self.reads.execute(read)

    def note_log_line(self, say: Say) -> None:
        """Take in a line of the operator's log."""
        if not self.reads.is_away:
            # A failure because of the absent server may well end.
            self.prospects.despair.hear(say)
        self.prospects.restless.hear(say)
        if self.on_say is not None:
            self.on_say(say, self.clock.now().wall)

    def _answered(self, number: int, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.inbox.add(Answered(number, outcome))

    def _end_operator(self, exit: Exit) -> None:
        """End the operator; the cluster stays."""
        self.exit = exit
        self.threads.close()
        self._end_life()
        self._alarm = None
        self.inbox.clear()
        self.reads.clear()

    def _performed(self, command: Perform) -> Outcome | None:
        """Perform an effect; None for a daemon that has begun, and waits."""
        call, program, in_life = command.effect, self.machine.program, bool(self.life)
        if isinstance(call, Call) and may_wait(program, command, call, in_life=in_life):
            model, say = self._function(call), self._log_function(command)
            if model is not None:
                if isinstance(self.threads, SimulatedThreads):
                    self.threads.end_with(self)
                return self.threads.begin(command.id, model, call, say)
        return self.director.performs(command, lambda: self._outcome(command))

    def _function(self, call: Call) -> Callable[..., Any] | None:
        """The model of a called function, or the function itself in a life."""
        own = None if self.life is None else self.life.functions.get(call.function)
        return own or self.calls.of(call)

    def _outcome(self, command: Perform) -> Outcome | None:
        """The outcome of an effect; None for a call that has begun, and waits."""
        self.prospects.restless.asks(command)
        match command.effect:
            case Call() as call:
                own = None if self.life is None else self._function(call)
                if own is not None:
                    say = self._log_function(command)
                    return self.threads.begin(command.id, own, call, say)
                return self._call(command, call)
            case Random(size=size, secret=is_secret):
                return self._draw(size, secret=is_secret)
            case effect:
                if self.reads.is_away:
                    return AWAY
                request = request_for(command, self.machine.settings.marker)
                response = self.director.sends(
                    command, request, lambda asked: self._sent(command, asked)
                )
                if isinstance(response.body, dict) and self.known is not None:
                    response = replace(response, body=frozen_of(response.body))
                return outcome_of(effect, response)

    def _sent(self, command: Perform, request: ApiRequest) -> ApiResponse:
        """Send a request of the operator's, and note its changes."""
        self.requests.append(request)
        before, restless = None, self.prospects.restless
        if restless.looks_at(command, request):
            path = request.path.removesuffix("/status")
            before = self.request(ApiRequest("GET", path)).body
        version = self.cluster.version
        account = self.account or (ACCOUNT if self.admission.has_handlers else None)
        if account is not None and request.user is None:
            request = replace(request, user=account)
        response = self.request(request)
        if self.cluster.version != version:
            restless.wrote(command, request, before, response.body)
        return response

    def read(self, command: Perform) -> Outcome:
        """The outcome of a request by a review: a read, or a call."""
        return self.director.informs(command, lambda: self._read(command))

    def _read(self, command: Perform) -> Outcome:
        match command.effect:
            case Call() as call:
                return self._call(command, call)
            case Random(size=size, secret=is_secret):
                return self._draw(size, secret=is_secret)
            case effect:
                request = request_for(command, self.machine.settings.marker)
                wall = self.clock.now().wall
                response = simulated.answer(self.cluster, request, wall)[1]
                return outcome_of(effect, response)

    def _call(self, command: Perform, call: Call) -> Outcome:
        wall = self.clock.now().wall
        return self.calls.answer(call, wall, self._log_function(command))

    def _draw(self, size: int, *, secret: bool) -> Answer:
        return Answer(self.draws.draw(size, secret=secret).hex())

    def _log_function(self, command: Perform) -> Callable[[Log], None]:
        """A function that shows the log lines of an impure handler at once.

        It holds no run in memory, because the threads of daemons keep it.
        """
        found = weakref.ref(self)

        def say(line: Log) -> None:
            run = found()
            if run is not None:
                said = Say(line.level, line.message, command.subject, command.handler)
                run.perform(replace(said, exception=line.exception))

        return say


def begin_reviewing(run: SimulatedRun) -> None:
    """Start an operator with admission handlers, as far as no time passes.

    The cluster asks it about the very first object, so it has to know the kinds by
    then.
    """
    if not run.admission.has_handlers:
        return
    with interruptible():
        while not run.ready and run.exit is None and run.has_input:
            run.advance()


def unserved_selectors(run: SimulatedRun) -> tuple[Unserved, ...]:
    """The selectors of handlers that have not been called for any kind."""
    survey = run.machine.state.survey
    if not survey.catalogue.resources:
        return ()  # the operator does not know the kinds yet
    handlers = run.machine.program.handlers
    return unserved(handlers, survey.kinds, survey.catalogue, "the simulated cluster")
