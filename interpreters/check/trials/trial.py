"""One run of a script under a schedule of faults.

A trial has phases: the script with its faults; the healing, after which all comes to
rest; a restart of the operator, and another one. What it has seen is judged afterwards
(`fnop.interpreters.check.properties`).
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from fnop.core.admission.decisions import Decision
from fnop.core.api.resources import path_of
from fnop.core.api.reviews import Request
from fnop.core.handlers.program.program import Program
from fnop.core.operator.step import State
from fnop.core.seam.commands import Perform, Say
from fnop.core.seam.inputs import Bookmark, LogLines, StreamEnded, WatchEvent
from fnop.core.state.guards import uid_meant
from fnop.core.values.body import Key
from fnop.effects import (
    Answer,
    Applied,
    Apply as ApplyEffect,
    Delete as DeleteEffect,
    Outcome,
    Patch,
    Random,
    Refused,
)
from fnop.interpreters.check.trials import replicas, strikes
from fnop.interpreters.check.trials.expectations import error_in
from fnop.interpreters.check.trials.faults import Fault, Place, Schedule, Site
from fnop.interpreters.check.trials.grounds import Ground, placed
from fnop.interpreters.check.trials.records import (
    Asked,
    Glimpse,
    Happened,
    Hold,
    Kept,
    Limits,
    Phase,
    Refusal,
    Rejection,
    Reviewed,
    Rival,
    Scene,
    Unrest,
    Visit,
    Write,
    has_background,
)
from fnop.interpreters.check.trials.replicas import Absence, Beside
from fnop.interpreters.check.trials.scripts import ScriptProblem
from fnop.interpreters.check.trials.sites import asked_at, object_path, target_of
from fnop.interpreters.check.trials.worlds import digests_of
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.runtime.interrupts import interruptible
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation.actions import (
    Action,
    ActionRefused,
    Apply,
    Delete,
    Edit,
    Wait,
    WriteLog,
    act,
    address_of,
)
from fnop.interpreters.simulation.admission import has_admission
from fnop.interpreters.simulation.externals import forked
from fnop.interpreters.simulation.logs import LOG_OF
from fnop.interpreters.simulation.scenario import catalogue_of
from fnop.interpreters.simulation.settling import Calm, Despair
from fnop.interpreters.simulation.simulation import CannotFork, Delivery, SimulatedRun

__all__ = ["Trial"]

# A run with timers and daemons that write for ever is looked at after so many rounds.
ROUNDS = 2
# ... and this many where the user waits for an object to go.
PATIENT_ROUNDS = 100
# Whether a phase is endless is looked at after so many turns.
LOOK_EVERY = 64
# The writes without a rest that are endless; each second of waiting allows two more.
WRITES_MAX = 250
# An operator that changes nothing for this long (turns, seconds) waits for others.
STILL_TURNS, STILL_SECONDS = 300, 120.0
# The place of calls, as sites are counted by it.
_CALL = Place.CALL.value


class Trial:
    """A script under way, in one world with its faults: a director of the run.

    A trial can be forked between any two turns.
    """

    # The kinds of rivals, as a catalogue has them.
    _rival_kinds: tuple[Any, Mapping[str, tuple[str, str]]] = (None, {})
    # Told of each rest of the script before the user goes on; forks tell nobody.
    on_rested: Callable[[Trial], None] | None = None
    # The trial before the last restart, where timers go on.
    unrestarted: Trial | None = None
    # See `_work`.
    _healed_work: tuple[Any, ...] = ()
    # Whether it goes through all phases, though one may be that before over again.
    whole = False
    # The number of reviews that got no answer in time, and whether a write went on
    # without one.
    unanswered, is_unreviewed = 0, False
    # Whether the action that is blocked waits for the operator's webhooks.
    awaits_review = False
    # Until when webhooks are not reached ("down"), or answer too late ("slow").
    outage: Hold | None = None
    # Whether the former code answers every other review.
    is_shared = False

    def __init__(
        self,
        scene: Scene,
        schedule: Schedule = (),
        *,
        limits: Limits = Limits(),  # noqa: B008 (an immutable value)
        run: SimulatedRun | None = None,
    ) -> None:
        self.scene, self.limits = scene, limits
        self.left: list[Fault] = list(schedule)
        self.struck: list[Fault] = []
        self.phase, self.place = Phase.SCRIPT, 0  # the next action of the script
        self.turns = 0
        self.counts: Counter[tuple[str, str, str, str]] = Counter()
        self.visits: list[Visit] = []
        self.writes: list[Write] = []
        # The writes that the API server itself has refused, without a fault.
        self.rejections: list[Rejection] = []
        self.lines: list[tuple[Phase, Say]] = []
        # All other lines, after so many actions, where no fault is to strike.
        self.said: list[tuple[int, Say]] = []
        # The story, by lanes: the user, the operator, the faults.
        self.story: list[Happened] = []
        # The makers of changes: each from a version of the cluster on.
        self.actors: list[tuple[int, str]] = []
        # The user's actions that came to nothing; those that the cluster has refused.
        self.refused, self.refusals = list[str](), list[Refusal]()
        # The decisions of admission handlers, and the operator's states at rests.
        self.reviewed, self.rest_states = list[Reviewed](), dict[int, State]()
        self.healed_calls: Mapping[str, Any] = {}  # the models by then
        self.kept = Kept.nothing()
        # The processes that began anew, or in another's place, before all was healed.
        self.crashes = 0
        # The state of external systems at each rest of a benign run.
        self.outside: list[Mapping[str, bytes]] = []
        # The uid of an object, and of one whose handler has read or written it.
        self.users: set[tuple[str, str]] = set()
        # The cluster at the first rest after so many actions.
        self.rests: dict[int, Cluster] = {}
        self.rest_times: dict[int, float] = {}  # in virtual seconds
        self.waited = 0.0  # virtual seconds in which nothing was to be done
        # The uids of objects that a request has created which landed late.
        self.stray: set[str] = set()
        self.unsettled: dict[Phase, Unrest] = {}
        self.ends: dict[Phase, Cluster] = {}
        self.end_times: dict[Phase, float] = {}
        # ------------------------------------------------ what the faults keep up
        self.holds: dict[str, Hold] = {}
        self.late: list[tuple[ApiRequest, str, int]] = []
        self.bursts: dict[tuple[str, str, str], tuple[Fault, int]] = {}
        self.forbidden: dict[tuple[str, str], int] = {}
        self.hooked = self.slow = self.backlog = False
        self.paces, self.down = set[str](), 0
        # A second process of the operator in the same cluster.
        self.second: SimulatedRun | None = None
        self.absence, self.successions = Absence.NONE, 0
        self.backup = scene.base.cluster  # as it was at the last rest but one
        self._present = self.backup
        # ------------------------------------------------ the user
        # An open script may become longer: at its end the trial pauses.
        self.is_open = self.is_paused = self.is_healed = False
        self.blocked: Action | None = None
        self.until: float | None = None
        self.rested = -1
        self._delivered: Delivery | None = None
        self._seen: dict[tuple[str, str], dict[str, Sight]] = {}
        self._noted = 0  # versions that the operator's own notes have made
        self._still: tuple[int, int, float]  # see `rest_anew`
        self._rivals_at: dict[tuple[str, Any], str] = {}
        # The operator has not begun yet where all the script is to be a backlog.
        backlog = any(each.kind.name == "F18:backlog" for each in self.left)
        self._direct(run or (scene.base if backlog else scene.booted).fork())
        self.rest_anew()
        self._begin()

    def _begin(self) -> None:
        """Let those faults strike that are there from the start."""
        self.beginning = self.run.cluster
        self.first_version = self.beginning.version
        self.since = self.run.clock.elapsed
        if any(each.kind.code == "F20" for each in self.left):
            assert self.scene.former is not None
            self.run.crash(self.scene.former)
            self.run.settle(seconds=60.0)
            self.rest_anew()
        for fault in [each for each in self.left if each.site.place is Place.RUN]:
            self.left.remove(fault)
            self.struck.append(fault)
            strikes.from_the_start(self, fault)

    @property
    def drawn(self) -> list[bytes]:
        """All random bytes that the operator has drawn."""
        others = [] if self.second is None else self.second.drawn
        return [*self.run.drawn, *others]

    @property
    def drawn_secrets(self) -> list[bytes]:
        """The random bytes that the operator has drawn as a secret."""
        others = [] if self.second is None else self.second.drawn_secrets
        return [*self.run.drawn_secrets, *others]

    def begin_second(self, program: Program) -> None:
        """Let a second process of the operator begin in the same cluster."""
        self.second = replicas.begin(self, program)

    def yields(self, absence: Absence) -> None:
        """Let a replica lead, since the leader does nothing any more."""
        self.absence = absence
        self.successions += 1
        self.begin_second(self.scene.former or self.scene.program)
        self.rest_anew()

    def wakes(self) -> bool:
        """Let the leader go on that has stood still; whether it had."""
        asleep = self.absence is Absence.ASLEEP
        if asleep:
            self.absence = Absence.NONE
            self.tell("fault", "the former leader goes on")
        return asleep

    def _direct(self, run: SimulatedRun) -> None:
        """Direct this run from now on."""
        self.run = run
        run.director = self
        run.on_say = self.hears

    def fork(self) -> Trial:
        """The same trial, which goes on apart.

        Raises `fnop.interpreters.simulation.simulation.CannotFork`.
        """
        twin = copy.copy(self)
        twin.on_rested = None
        for name in _CONTAINERS:
            setattr(twin, name, getattr(self, name).copy())
        twin._seen = {key: each.copy() for key, each in self._seen.items()}
        twin._calm = copy.copy(self._calm)
        twin._direct(self.run.fork())
        if self.second is not None:
            twin.second = self.second.fork(twin.run.clock)
            twin.second.calls = twin.run.calls  # there is one world outside
            twin.second.director = Beside(twin)
        return twin

    # ------------------------------------------------------------------ the loop

    def play(self) -> Trial:
        """Go through all phases to the end; not beyond one that has none."""
        with interruptible():
            while self.phase is not Phase.DONE:
                if self._has_no_end():
                    self._end_here()
                else:
                    self.go_on()
        return self

    def _has_no_end(self) -> bool:
        """Whether the present phase goes on for ever; the healing ends what faults do.

        It is asked before the next phase begins, which a restart may bring to rest.
        """
        found = self.unsettled.get(self.phase)
        faulty = self.phase is Phase.SCRIPT and bool(self.struck)
        return found is not None and found.endless and not faulty

    @property
    def is_endless(self) -> bool:
        """Whether something has gone on for ever."""
        return any(each.endless for each in self.unsettled.values())

    def _end_here(self) -> None:
        """Do without the phases that are left: they would not end either."""
        if self.phase <= Phase.HEALED:
            self._note_healed()
        for phase in (Phase.HEALED, Phase.RESTARTED, Phase.AGAIN):
            if phase not in self.ends:
                self._note_end(phase)
        self.phase = Phase.DONE

    def _note_end(self, phase: Phase) -> None:
        """Keep the world at the end of a phase."""
        self.ends[phase] = self.run.cluster
        if self.scene.expectations:
            self.kept.models[phase] = forked(self.run.calls)

    def _note_healed(self) -> None:
        """Keep what a restart may change."""
        self.crashes = self.run.lives + self.successions
        self.healed_calls = forked(self.run.calls)
        self._healed_work = self._work()

    def settle(self) -> None:
        """Go on to the end of an open script, and pause there."""
        self.is_paused = False
        while not self.is_paused:
            self.go_on()

    def add(self, action: Action) -> None:
        """Make the script longer."""
        self.scene = self.scene._replace(script=(*self.scene.script, action))

    def go_on(self) -> None:
        """Take one turn; where all has come to rest, what follows upon it.

        Of a phase without an end nothing follows, unless the user is yet to go on.
        """
        if not self.turn() and (self.is_open or not self._has_no_end()):
            self.on_rest()

    def turn(self) -> bool:
        """Let one thing happen; False where all has come to rest, or never will."""
        run = self.run
        self.turns += 1
        if self.blocked is not None and self._unblock():
            return True
        if self.second is not None and replicas.takes(self, self.second):
            return not self._is_endless()
        place = run.deliverable()
        if place is not None:
            if self._arrives(run.inbox[place]):
                run.take(place)
                if self.slow:
                    run.clock.advance_to(run.clock.elapsed + 1.0)
            return not self._is_endless()
        self.begins("cluster")
        if run.control() or self._let_rivals_act():
            return not self._is_endless()
        if self._is_at_rest() or not self._pass_time():
            return False
        return not self._is_endless()  # each round of a circle may end with a pause

    def _pass_time(self) -> bool:
        before, clock = self.run.clock.elapsed, self.run.clock
        worker = replicas.worker(self)
        if self.until is None:
            passes = worker.pass_time()
        else:
            passes = True
            if not worker.pass_time(self.until, recurring=True):
                clock.advance_to(self.until)
                self.until = None
        self.waited += clock.elapsed - before
        return passes

    def _is_at_rest(self) -> bool:
        run = replicas.worker(self)
        if self.until is not None:
            return False
        if self.down:
            return True
        if run.tries_again():
            return False
        rounds = ROUNDS if self.blocked is None else PATIENT_ROUNDS
        if self._calm.lasts(run) or self._calm.rounds > rounds:
            return True
        reason = run.despairs()
        if reason:
            self.unsettled[self.phase] = Unrest(reason, waits=run.foresees())
        return bool(reason) or self._waits_in_vain()

    def _waits_in_vain(self) -> bool:
        """Whether nothing has changed for so long that nobody is going to change it."""
        run, version = self.run, self.run.cluster.version - self._noted
        if version != self._still[0]:
            self._still = version, self.turns, run.clock.elapsed
        _, turns, since = self._still
        if (
            self.turns < turns + STILL_TURNS
            or run.clock.elapsed < since + STILL_SECONDS
        ):
            return False
        self.unsettled[self.phase] = Unrest(run.circles(), waits=True)
        return True

    def _is_endless(self) -> bool:
        taken = self.turns - self._begun_at
        if taken % LOOK_EVERY:
            return False
        reason = replicas.worker(self).restlessness() or self._busyness()
        if taken > self.limits.turns and not reason:
            reason = self.run.circles()
        if reason:
            self.unsettled[self.phase] = Unrest(reason, endless=True)
            self.until = None
        return bool(reason)

    def _busyness(self) -> str:
        """A sentence that tells who goes on writing, if the operator does; or ""."""
        since = self.writes[self._written :]
        if len(since) <= WRITES_MAX + 2 * (self.waited - self._waited):
            return ""
        often = Counter(f"`{e.site.verb} {e.site.target}`" for e in since[-WRITES_MAX:])
        what = ", ".join(name for name, _ in often.most_common(3))
        who = since[-1].site.handler or "the operator"
        return f"{who} goes on writing: {what}, {len(since)} writes by now"

    def rest_anew(self) -> None:
        """Begin to wait for the next rest."""
        self._calm, self._begun_at = Calm(), self.turns
        self._written, self._waited = len(self.writes), self.waited
        version = self.run.cluster.version - self._noted
        self._still = version, self.turns, self.run.clock.elapsed
        for run in (self.run, self.second):
            if run is not None:
                limits = self.limits
                run.begins_to_settle(Despair(limits.repeats, limits.waits))

    # -------------------------------------------------------------------- at rest

    def on_rest(self) -> None:
        """Do what follows when all has come to rest."""
        if self.wakes():
            pass  # and rests anew
        elif self.phase is Phase.SCRIPT:
            self._on_rest_of_script()
        else:
            self._note_end(self.phase)
            self.end_times[self.phase] = self.run.clock.elapsed
            if self.phase is Phase.HEALED:
                self._note_healed()
            if self._restarts_alike():
                self.phase = Phase.AGAIN
                self._note_end(self.phase)
                self.end_times[self.phase] = self.run.clock.elapsed
            following = Phase(self.phase + 1)
            if following is Phase.LAST and not self._came_to_rest_late():
                following = Phase.DONE
            if following in (Phase.AGAIN, Phase.LAST):
                self._note_unrestarted()
            self.phase = following
            if following is not Phase.DONE:
                self.tell("rest", "the operator restarts")
                self.run.crash()
        self.rest_anew()

    def _restarts_alike(self) -> bool:
        """Whether the second restart would be the first one over again.

        The first one has found the world as the next one would: it has written nothing,
        called nobody, drawn nothing, failed at nothing, and no time has passed.  Timers
        and daemons may yet do something otherwise.  The run without faults goes through
        all phases, for it sets the limits of the others.
        """
        return (
            self.phase is Phase.RESTARTED
            and bool(self.struck)
            and not self.whole
            and self.second is None
            and self._healed_work == self._work()
            and not has_background(self.scene.program)
            and Phase.RESTARTED not in self.unsettled
            and not any(phase is Phase.RESTARTED for phase, _ in self.lines)
        )

    def _work(self) -> tuple[Any, ...]:
        """All that a restart without any work leaves as it is."""
        run = self.run
        asked = sum(n for (place, *_), n in self.counts.items() if place == _CALL)
        return run.cluster.version, run.clock.elapsed, len(run.drawn), asked

    def _note_unrestarted(self) -> None:
        """Keep what timers would go on with if the operator did not restart now."""
        if has_background(self.scene.program):
            with suppress(CannotFork):
                self.unrestarted = self.fork()

    def written_by_time(self) -> list[Write]:
        """The writes that there would be by now if the last restart had not been."""
        if self.unrestarted is None:
            return []
        twin = self.unrestarted.fork()
        known = len(twin.writes)
        twin.wait(self.run.clock.elapsed)
        return twin.writes[known:]

    def wait(self, until: float) -> None:
        """Let time pass, and what is due with it happen; the user does nothing."""
        self.rest_anew()
        self.until = max(until, self.run.clock.elapsed)
        while self.turn() and self.until is not None:
            pass

    def _came_to_rest_late(self) -> bool:
        """Whether the second restart was the first after all changes were handled.

        A change that a restarted operator finds is handled together with the
        resumption, and by its reason: what resuming alone writes is written at the
        next restart.
        """
        handlers = self.scene.program.handlers
        changers = {
            each.id
            for each in handlers
            if each.rule.reasons and not each.rule.is_for_resuming
        }
        again = any(each.phase is Phase.AGAIN for each in self.writes)
        return again and any(
            each.phase is Phase.RESTARTED
            and not changers.isdisjoint(each.site.handler.split(", "))
            for each in self.writes
        )

    def _on_rest_of_script(self) -> None:
        if strikes.released_at_rest(self):
            return
        if self.blocked is not None:
            # A user waits until what holds the object has ended.
            if strikes.rivals_let_go(self) or not self.is_healed:
                strikes.heal(self)
                return
            self._gives_up(self.blocked)
            return
        if self.rested < self.place:
            self.rested = self.place
            self.rests[self.place] = self.run.cluster
            self.rest_times[self.place] = self.run.clock.elapsed
            if has_admission(self.scene.program):
                self.rest_states[self.place] = self.run.machine.state
            self.backup, self._present = self._present, self.run.cluster
            if not self.left and not self.struck:
                self.outside.append(digests_of(self.run.calls))
            if self._rest_strikes():
                return
        if self.on_rested is not None:
            self.on_rested(self)
        self._proceed()

    def resume(self, scene: Scene, limits: Limits) -> None:
        """Go on after a rest as `on_rested` was told of it, in a script like this one.

        Both have the same actions up to here.
        """
        self.scene, self.limits = scene, limits
        self._proceed()
        self.rest_anew()

    def _proceed(self) -> None:
        """Let the user do the next action; after the last one all is healed."""
        if self.place < len(self.scene.script):
            self.goes_on()
        elif self.is_open:
            self.is_paused = True
        else:
            self.tell("rest", "all faults end")
            strikes.heal(self)
            self.phase = Phase.HEALED

    def _rest_strikes(self) -> bool:
        done = str(self.scene.script[self.place - 1]) if self.place else ""
        site = Site(Place.REST, "", done, str(self.place))
        self._visited(site)
        fault = self.due(site)
        return fault is not None and strikes.at_rest(self, fault)

    def goes_on(self) -> bool:
        """Let the user do the next action; False where there is none, or it waits."""
        if self.place >= len(self.scene.script) or self.blocked is not None:
            return False
        action = self.scene.script[self.place]
        self.place += 1
        if isinstance(action, Wait):
            self.until = self.run.clock.elapsed + action.seconds
        elif self._is_blocked(action):
            self.blocked = action
        else:
            self._act(action)
        if self.down:
            self.down -= 1
        return True

    def _act(self, action: Action) -> None:
        self.tell("user", action)
        self.begins("user")
        known, unanswered = len(self.reviewed), self.unanswered
        self.awaits_review = False
        try:
            act(self.run, action, self.scene.namespace)
        except ActionRefused as problem:
            if isinstance(action, WriteLog):
                return  # a container that does not run writes nothing
            if self.unanswered > unanswered and not self.is_healed:
                self.blocked, self.awaits_review = action, True  # and tries again
                return
            reviewed = self.reviewed[known:]
            self.refused.append(f"{action}: {problem}")
            self.refusals.append(
                Refusal(
                    *(action, str(problem), problem.status, self.place),
                    tuple(each for one in reviewed for each in one.decision.denials),
                    self._spoilt_by(action, reviewed),
                )
            )

    def _spoilt_by(self, action: Action, reviewed: Sequence[Reviewed]) -> str:
        """The mutations without which the cluster takes a refused action, named."""
        changed = [each.decision for each in reviewed if each.decision.patch]
        if not changed or any(each.decision.denials for each in reviewed):
            return ""
        first = reviewed[0]
        program, wall = self.scene.program, self.run.clock.now().wall
        before = Ground(program, wall, first.cluster, first.state, first.calls)
        try:
            act(before.run(), action, self.scene.namespace)
        except ActionRefused:
            return ""
        asked = {each for decision in changed for each in decision.asked}
        mutations = (e for e in program.handlers if e.id in asked and e.rule.mutates)
        return ", ".join(map(placed, mutations))

    def _is_blocked(self, action: Action) -> bool:
        """Whether users await what comes first.

        They do not create what is still being deleted; and where a fault has struck,
        what they are to edit or to delete may not have been made yet, a container may
        not run yet, or the operator's webhooks are not reached.
        """
        if self.awaits_review:
            return not self._is_reached
        if isinstance(action, WriteLog):
            return bool(self.struck) and not self._writes(action)
        path = self._path_of(action)
        if path is None:
            return False
        response = self.run.request(ApiRequest("GET", path))
        if not isinstance(action, Apply):
            return response.status == 404 and bool(self.struck)
        meta = response.body["metadata"] if response.status == 200 else {}
        return "deletionTimestamp" in meta

    def _writes(self, action: WriteLog) -> bool:
        """Whether the container that is to write a log runs."""
        place = action.namespace or self.scene.namespace
        name = action.where.partition("/")[2]
        return self.run.can_write_log(place, name, action.container)

    def _path_of(self, action: Action) -> str | None:
        """The path of the object that an action is about; None for no known one."""
        run, namespace = self.run, self.scene.namespace
        match action:
            case Apply(manifest) if "name" in manifest["metadata"]:
                return object_path(run, manifest, namespace)
            case Edit(where, _, place) | Delete(where, place):
                with suppress(ActionRefused):
                    resource, name = address_of(run, where)
                    return path_of(resource, place or namespace, name)
            case _:
                pass
        return None

    def _gives_up(self, action: Action) -> None:
        """Let the user try what was awaited in vain."""
        self.blocked = None
        if isinstance(action, Apply):
            self.refused.append(f"{action}: the former object does not go")
        else:
            self._act(action)

    def _unblock(self) -> bool:
        assert self.blocked is not None
        action = self.blocked
        if self._is_blocked(action):
            return False
        self.blocked = None
        self._act(action)
        return True

    # ------------------------------------------------------------------- director

    def choose(self, inbox: Sequence[Delivery]) -> int | None:
        """The oldest delivery that is not held."""
        is_absent = self.down or self.absence is not Absence.NONE
        if is_absent or (self.backlog and self.phase is Phase.SCRIPT):
            return None
        if not self.holds:
            return 0
        for place, (source, input) in enumerate(inbox):
            waits = isinstance(input, (WatchEvent, Bookmark, LogLines, StreamEnded))
            if source not in self.holds or not waits:
                return place
        return None

    def performs(self, command: Perform, perform: Callable[[], Outcome]) -> Outcome:
        """Perform a request or a call, or let a fault strike it. Raises `Crashed`."""
        if isinstance(command.effect, Random):
            return perform()
        site = asked_at(self.run, command)
        if site is None:  # it is no part of the operator's work
            before = self.run.cluster.version
            outcome = perform()
            self.noted(self.run.cluster.version - before)
            return outcome
        site = self._counted(site)

        def performed() -> Outcome:
            return self._performed(command, site, perform)

        version = self.run.cluster.version
        answer: Outcome | None = None
        try:
            answer = strikes.at_request(self, command, site, performed)
            return answer
        finally:
            self.note_asked(site, version, answer)

    def note_asked(self, site: Site, version: int, outcome: Outcome | None) -> None:
        """Keep a request that was sent at a version, if expectations may ask."""
        if self.scene.expectations:
            self.kept.asked.append(Asked(site, version, self.phase, outcome))

    def _performed(
        self, command: Perform, site: Site, perform: Callable[[], Outcome]
    ) -> Outcome:
        before = self.run.cluster.version
        view = self._view(command)
        self.begins("operator")
        outcome = perform()
        after = self.run.cluster.version
        path = self._path(command)
        if after != before:
            self._noted += 0 if site.handler else after - before
            self.tell("operator", site)
            uid = (command.subject.uid or "") if command.subject else ""
            # The precondition alone shows what the handler knows by a watch.
            meant = _uid_named(command) or view.uid
            self.writes.append(
                Write(
                    *(site, before, after, path, view.version, view.generation),
                    *(uid, self.phase, getattr(outcome, "object", None), meant),
                )
            )
        self._note(command, path, outcome)
        self._note_user(command, outcome)
        if isinstance(outcome, Refused):
            self.rejections.append(Rejection(site, outcome, self._who(command)[0]))
        return outcome

    def noted(self, versions: int) -> None:
        """Take so many versions for the operator's own notes: they change nothing."""
        self._noted += versions

    def _path(self, command: Perform) -> str:
        resource = command.resource
        if resource is None:
            return ""
        place = command.namespace or ""
        return f"{resource.group}/{resource.plural}/{place}/{command.name or ''}"

    def _who(self, command: Perform) -> tuple[str, str]:
        return command.subject.label if command.subject else "", command.handler or ""

    def _view(self, command: Perform) -> Sight:
        """The target as the handler has seen it."""
        subject, resource = command.subject, command.resource
        if subject is not None and resource is not None:
            key = Key(subject.resource, subject.namespace or "", subject.name)
            own = (resource.key, command.namespace or "", command.name)
            record = self.run.machine.state.objects.records.get(key)
            if own == key and record is not None:
                change = record.work.change if record.work else None
                body = change.body if change else record.body
                return Sight(_number(body.version), body.uid, body.generation)
        seen = self._seen.get(self._who(command), {})
        return seen.get(self._path(command), Sight())

    def _note(self, command: Perform, path: str, outcome: Outcome) -> None:
        """Remember which versions a handler's attempt has read."""
        found: list[Any] = []
        match outcome:
            case Applied(object=dict() as one):
                found = [one]
            case Answer(value=list() as several):
                found = [each for each in several if isinstance(each, dict)]
            case _:
                return
        resource = command.resource
        if resource is None or not found or not command.handler:
            return
        seen = self._seen.setdefault(self._who(command), {})
        for each in found:
            meta = each.get("metadata") or {}
            where = f"{meta.get('namespace') or ''}/{meta.get('name')}"
            version = _number(meta.get("resourceVersion"))
            if version is not None:
                sight = Sight(version, meta.get("uid"))
                seen[f"{resource.group}/{resource.plural}/{where}"] = sight

    def _note_user(self, command: Perform, outcome: Outcome) -> None:
        """Remember whose handler has an object: not that of one who takes it away."""
        subject, effect = command.subject, command.effect
        if subject is None or isinstance(effect, DeleteEffect) or not command.handler:
            return
        if isinstance(outcome, Applied) and isinstance(outcome.object, dict):
            uid = (outcome.object.get("metadata") or {}).get("uid")
            self.users.add((str(uid), subject.uid or ""))

    def admits(self, request: ApiRequest) -> ApiRequest:
        """The request, as a webhook changes it where there is one."""
        return strikes.admitted(request) if self.hooked else request

    def reviews(
        self,
        request: Request,
        asks: frozenset[str],
        decide: Callable[[], Decision],
    ) -> Decision | None:
        """The decision about a write; None where the handlers are not reached.

        One that comes too late may have had effects outside.
        """
        is_late = self.outage is not None and self.outage.until == "slow"
        run = self.run
        state, calls = run.machine.state, forked(run.calls)
        found: Decision | None = None
        if self._is_reached and self.is_shared and len(self.reviewed) % 2:
            found = self._by_former(request, asks)
        elif self._is_reached or (is_late and run.ready):
            found = decide()
        if found is None or is_late:
            self.unanswered += 1
            self.is_unreviewed |= any(
                each.id in asks and each.webhook.ignore_failures
                for each in self.scene.program.handlers
                if each.webhook is not None
            )
            return None
        self.reviewed.append(Reviewed(found, run.cluster, state, calls))
        return found

    def _by_former(self, request: Request, asks: frozenset[str]) -> Decision:
        """The decision of the former code, as far as it has such handlers."""
        run, former = self.run, self.scene.former
        assert former is not None, "the fault is of a former code"
        known = [each.id for each in former.handlers if each.id in asks]
        if not known:
            return Decision(request, object=request.object)
        wall, state = run.clock.now().wall, run.machine.state
        return Ground(former, wall, run.cluster, state, run.calls).decision(
            request, known
        )

    @property
    def denied(self) -> frozenset[int]:
        """The numbers of the user's actions that the operator's handlers prevented."""
        return frozenset(each.place for each in self.refusals if each.is_own)

    @property
    def _is_reached(self) -> bool:
        """Whether the API server reaches the operator's webhooks."""
        return self.run.ready and self.outage is None

    def hears(self, say: Say, wall: float) -> None:
        """Take in a line of the log; the end of an attempt ends what it has read."""
        if say.level in ("warning", "error"):
            self.lines.append((self.phase, say))
        elif not (self.left or self.struck):
            self.said.append((self.place, say))
        if {"repaired", "anew"} <= dict(say.fields).keys():
            self._asked_otherwise(say)
        if say.ended is not None and say.handler is not None:
            self._seen.pop((say.subject.label if say.subject else "", say.handler), "")

    def _asked_otherwise(self, say: Say) -> None:
        """Forget a refusal that is no author's: fnop has set a child's lists anew."""
        subject = say.subject.label if say.subject else ""
        for number, (site, _, whose) in reversed([*enumerate(self.rejections)]):
            if (site.handler, whose, site.verb) == (say.handler, subject, "apply"):
                del self.rejections[number]
                return

    # ---------------------------------------------------------------- deliveries

    def _arrives(self, delivery: Delivery) -> bool:
        """Whether it is delivered now: a fault may strike an event before."""
        found = self._site_of(delivery)
        if found is None or delivery is self._delivered:
            return True
        self._delivered = delivery
        fault = self.due(self._counted(found))
        if fault is None:
            return True
        strike = strikes.at_lines if found.place is Place.LOG else strikes.at_event
        strike(self, fault, delivery.source)
        return False  # look again: it may be held, or gone

    def _site_of(self, delivery: Delivery) -> Site | None:
        """The site of a watch event, or of lines of a log, that is to arrive."""
        source, kind = delivery.source, delivery.source.partition(".")[0]
        match delivery.input:
            case WatchEvent(type=type, body=body):
                name = target_of(kind, body.data, self.drawn)
                return Site(Place.EVENT, "", type, name)
            case LogLines(lines=lines) if lines:
                return Site(Place.LOG, "", "lines", source.removeprefix(LOG_OF))
            case _:
                return None

    def _counted(self, site: Site) -> Site:
        key = (site.place.value, site.handler, site.verb, site.target)
        self.counts[key] += 1
        found = site._replace(nth=self.counts[key])
        self._visited(found)
        return found

    def _visited(self, site: Site) -> None:
        if self.phase is Phase.SCRIPT:
            version = self.run.cluster.version
            visit = Visit(self.turns, self.place, version, site, self.run.steps)
            self.visits.append(visit)

    def tell(self, lane: str, what: Any) -> None:
        """Add to the story."""
        run = self.run
        at = run.clock.elapsed - self.since
        self.story.append(Happened(at, lane, what, run.steps, run.cluster.version))

    def begins(self, actor: str) -> None:
        """Note who makes the changes of the cluster from now on."""
        version = self.run.cluster.version
        if self.actors and self.actors[-1][0] == version:
            self.actors.pop()
        self.actors.append((version, actor))
        if any(each.always for each in self.scene.expectations):
            self._glimpse(version)

    def _glimpse(self, version: int) -> None:
        """Keep what there is to be seen at a version besides the objects."""
        found, wall = self.kept.glimpses, self.run.clock.now().wall
        if found and found[-1].version == version:
            found.pop()
        found.append(Glimpse(version, wall, forked(self.run.calls)))

    def maker_of(self, version: int) -> str:
        """The actor of `begins` that has made a version of the cluster; or ""."""
        place = bisect_left(self.actors, version, key=lambda begun: begun[0]) - 1
        return self.actors[place][1] if place >= 0 else ""

    def due(self, site: Site) -> Fault | None:
        """The fault that strikes here, if one does; it does so once."""
        if self.phase is not Phase.SCRIPT:
            return None
        for fault in self.left:
            if _is_same(fault.site, site):
                self.left.remove(fault)
                self.struck.append(fault)
                self.tell("fault", fault)
                return fault
        return None

    # -------------------------------------------------------------------- rivals

    def _let_rivals_act(self) -> bool:
        """Let the rivals of the scene answer what has changed; whether one has.

        Raises `ScriptProblem` for one that fails, or answers anything but a patch.
        """
        for kind, rival in self.scene.rivals.items():
            shelf = self.run.cluster.shelves.get(self._rival_kind(kind))
            for key, found in sorted(shelf.items()) if shelf else ():
                version = found["metadata"]["resourceVersion"]
                if self._rivals_at.get((kind, key)) == version:
                    continue
                self._rivals_at[kind, key] = version
                patch = patch_of(kind, rival, found)
                path = object_path(self.run, found, key[0])
                if patch and path is not None:
                    self.begins("rival")
                    query = (("fieldManager", "rival"),)
                    request = ApiRequest("PATCH", path, query, patch, MERGE_PATCH)
                    self.run.request(request)
                    return True
        return False

    def _rival_kind(self, kind: str) -> tuple[str, str]:
        """The group and the plural of a rival's kind, as far as it is served by now."""
        catalogue = catalogue_of(self.run)
        if self._rival_kinds[0] is not catalogue:
            found = {each: catalogue.lookup(each) for each in self.scene.rivals}
            kinds = {name: (e.group, e.plural) for name, e in found.items() if e}
            self._rival_kinds = catalogue, kinds
        return self._rival_kinds[1].get(kind, ("", ""))


def patch_of(
    kind: str, rival: Rival, found: dict[str, Any]
) -> Mapping[str, Any] | None:
    """The answer of a rival to an object. Raises `ScriptProblem` where it is none."""
    try:
        patch = rival(found)
    except Exception as problem:
        name = found["metadata"].get("name")
        raise ScriptProblem(
            f"RIVALS[{kind!r}] raises {error_in(rival, problem)} for {kind}/{name}; "
            "let it answer None where it has nothing to change"
        ) from problem
    if patch is None or isinstance(patch, Mapping):
        return patch
    raise ScriptProblem(
        f"RIVALS[{kind!r}] answers {patch!r}; let it answer a merge patch, which is a "
        "dict, or None"
    )


class Sight(NamedTuple):
    """An object as a handler has seen it: nothing is known if it has not looked."""

    version: int | None = None
    uid: str | None = None
    generation: int | None = None


# The attributes that a trial changes in place: a fork has its own.
_CONTAINERS = (
    *(
        "left",
        "struck",
        "story",
        "visits",
        "writes",
        "lines",
        "said",
        "refused",
        "refusals",
        "reviewed",
        "late",
        "rejections",
    ),
    *("counts", "unsettled", "ends", "holds", "bursts", "forbidden", "paces"),
    *("_rivals_at", "stray", "outside", "actors", "users", "rests"),
    *("rest_times", "rest_states", "end_times", "kept"),
)


def _is_same(one: Site, other: Site) -> bool:
    """Whether they are one site; that of a rest is told by the number of actions."""
    if one.place is other.place is Place.REST:
        return one.target == other.target
    if {one.place, other.place} == {Place.WRITE, Place.OWN}:
        one = one._replace(place=other.place)  # a test need not tell them apart
    return one == other


def _uid_named(command: Perform) -> str | None:
    """The uid that a request names: it changes no object that has another one.

    A precondition that does not hold is a conflict (Kubernetes: "Precondition failed:
    UID in precondition").
    """
    match command.effect:
        case DeleteEffect(uid=uid):
            return uid
        case Patch() | ApplyEffect() as change:
            return uid_meant(change)
        case _:
            return None


def _number(version: str | None) -> int | None:
    return int(version) if version and version.isdecimal() else None
