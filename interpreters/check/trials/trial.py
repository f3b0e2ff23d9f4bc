"""One run of a script under a schedule of faults.

A trial has phases: the script with its faults; the healing, after which everything
settles; a restart of the operator, and another one. Its journal is judged afterwards
(`fnop.interpreters.check.properties`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fnop.core.memory.storage import AnyStorage
from fnop.effects.structs import replace
from fnop.interpreters.check.faults.rival import let_go
from fnop.interpreters.check.state import user
from fnop.interpreters.check.state.journal import AtRest, End, Healed, Journal
from fnop.interpreters.check.state.kinds import Fault, Place, Schedule, Site, Trait
from fnop.interpreters.check.state.processes import Beside, takes, wakes
from fnop.interpreters.check.state.records import (
    Limits,
    Phase,
    Scene,
    Write,
    has_background,
)
from fnop.interpreters.check.state.resting import (
    is_at_rest,
    is_endless,
    pass_time,
    rest_anew,
)
from fnop.interpreters.check.state.rivals import Rivals
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.check.state.worlds import digests_of
from fnop.interpreters.check.trials import catalogue
from fnop.interpreters.check.trials.director import TrialDirector
from fnop.interpreters.runtime.interrupts import interruptible
from fnop.interpreters.simulation.actions import Action
from fnop.interpreters.simulation.admission import has_admission
from fnop.interpreters.simulation.externals import forked
from fnop.interpreters.simulation.simulation import CannotFork, SimulatedRun

__all__ = ["Trial"]

# The virtual seconds that the former code of an operator has to begin.
FORMER_SECONDS = 60.0
# The place of calls, as `counts` has it.
_CALL = Place.CALL.value


class Trial:
    """A script under way, in one world with its faults.

    A trial can be forked between any two turns.
    """

    # Called at each rest of the script before the user goes on; forks do not call it.
    on_rested: Callable[[Trial], None] | None = None
    # The trial before the last restart, with its timers still running.
    unrestarted: Trial | None = None
    # Whether it goes through all phases, though one may repeat the phase before.
    whole = False
    # An open script may become longer: at its end the trial pauses.
    is_open = is_paused = False

    def __init__(
        self,
        scene: Scene,
        schedule: Schedule = (),
        *,
        limits: Limits = Limits(),  # noqa: B008 (an immutable value)
        run: SimulatedRun | None = None,
    ) -> None:
        # The operator has not begun yet if all of the script is to be a backlog.
        is_late = any(each.kind.has(Trait.STARTS_LATE) for each in schedule)
        run = run or scene.begun(late=is_late)
        journal = Journal(run.cluster, run.clock.elapsed)
        state = TrialState(scene, limits, run, journal, [*schedule])
        self.state, self._rivals = state, Rivals()
        self.director = TrialDirector(state)
        rest_anew(state)
        if any(each.kind.has(Trait.UPGRADES) for each in schedule):
            assert scene.former is not None
            run.crash(scene.former)
            run.settle(seconds=FORMER_SECONDS)
            rest_anew(state)
        catalogue.begin(state)

    @property
    def scene(self) -> Scene:
        """The script, and the world before it."""
        return self.state.scene

    @property
    def run(self) -> SimulatedRun:
        """The first process of the operator, in its cluster."""
        return self.state.run

    @property
    def journal(self) -> Journal:
        """All that was noted."""
        return self.state.journal

    @property
    def phase(self) -> Phase:
        """The present phase."""
        return self.state.phase

    @property
    def struck(self) -> list[Fault]:
        """The faults that have struck."""
        return self.state.struck

    @property
    def drawn(self) -> list[bytes]:
        """All random bytes that the operator has drawn."""
        return self.state.drawn

    @property
    def storage(self) -> AnyStorage:
        """The form of the operator's notes on objects."""
        return self.run.machine.settings.storage

    def fork(self) -> Trial:
        """Copy the trial, which goes on apart.

        Raises `fnop.interpreters.simulation.simulation.CannotFork`.
        """
        fork = copy.copy(self)
        fork.on_rested = None
        fork.state = self.state.fork()
        fork._rivals = self._rivals.fork()
        fork.director = self.director.fork(fork.state)
        if fork.state.second is not None:
            fork.state.second.director = Beside(fork.state)
        return fork

    # ------------------------------------------------------------------ the loop

    def play(self) -> Trial:
        """Go through all phases to the end; stop at an endless one."""
        with interruptible():
            while self.phase is not Phase.DONE:
                if self._has_no_end():
                    self._skip_phases()
                else:
                    self.go_on()
        return self

    def _has_no_end(self) -> bool:
        """Whether the present phase never ends; the healing ends effects of faults.

        The trial checks it before the next phase begins, whose restart may make it
        settle.
        """
        found = self.journal.unsettled.get(self.phase)
        faulty = self.phase is Phase.SCRIPT and bool(self.struck)
        return found is not None and found.endless and not faulty

    @property
    def is_endless(self) -> bool:
        """Whether something has gone on for ever."""
        return any(each.endless for each in self.journal.unsettled.values())

    def _skip_phases(self) -> None:
        """Skip the phases that are left: they would not end either."""
        if self.phase <= Phase.HEALED:
            self._note_healed()
        for phase in (Phase.HEALED, Phase.RESTARTED, Phase.AGAIN):
            if phase not in self.journal.ends:
                self._note_end(phase, None)
        self.state.phase = Phase.DONE

    def _note_end(self, phase: Phase, time: float | None) -> None:
        """Store the world at the end of a phase."""
        self.journal.ends[phase] = End(self.run.cluster, time)
        if self.scene.expectations:
            self.journal.kept.models[phase] = forked(self.run.calls.models)

    def _note_healed(self) -> None:
        """Store what a restart may change."""
        crashes = self.run.draws.lives + self.state.successions
        models = forked(self.run.calls.models)
        self.journal.healed = Healed(models, crashes, self._work())

    def settle(self) -> None:
        """Go on to the end of an open script, and pause there."""
        self.is_paused = False
        while not self.is_paused:
            self.go_on()

    def add(self, action: Action) -> None:
        """Make the script longer."""
        script = (*self.scene.script, action)
        self.state.scene = replace(self.scene, script=script)

    def go_on(self) -> None:
        """Take one turn; when everything has settled, begin what follows.

        Nothing follows upon a phase without an end, unless the user is yet to go on.
        """
        if not self.turn() and (self.is_open or not self._has_no_end()):
            self.on_rest()

    def turn(self) -> bool:
        """Let one thing happen; False if everything has settled, or never will."""
        state, run = self.state, self.run
        state.turns += 1
        if state.user.blocked is not None and user.unblock(state):
            return True
        if state.second is not None and takes(state, state.second):
            return not is_endless(state)
        place = run.deliverable()
        if place is not None:
            if self.director.arrives(run.inbox[place]):
                run.take(place)
                if state.in_force.is_slow:
                    run.clock.advance_to(run.clock.elapsed + 1.0)
            return not is_endless(state)
        state.begins("cluster")
        if run.control() or self._rivals.act(state):
            return not is_endless(state)
        if is_at_rest(state) or not pass_time(state):
            return False
        return not is_endless(state)  # each round of a circle may end with a pause

    # -------------------------------------------------------------------- at rest

    def on_rest(self) -> None:
        """Begin what follows when everything has settled."""
        state = self.state
        if wakes(state):
            pass  # and rests again
        elif self.phase is Phase.SCRIPT:
            self._on_rest_of_script()
        else:
            self._note_end(self.phase, self.run.clock.elapsed)
            if self.phase is Phase.HEALED:
                self._note_healed()
            if self._restarts_alike():
                state.phase = Phase.AGAIN
                self._note_end(self.phase, self.run.clock.elapsed)
            following = Phase(self.phase + 1)
            if following is Phase.LAST and not self._came_to_rest_late():
                following = Phase.DONE
            if following in (Phase.AGAIN, Phase.LAST):
                self._note_unrestarted()
            state.phase = following
            if following is not Phase.DONE:
                state.tell("rest", "the operator restarts")
                self.run.crash()
        rest_anew(state)

    def _restarts_alike(self) -> bool:
        """Whether the second restart would only repeat the first one.

        The first one has found the world as the next one would: it has written nothing,
        made no call, drawn nothing, failed at nothing, and no time has passed.  Timers
        and daemons may yet do something otherwise.  The run without faults goes through
        all phases, for it sets the limits of the others.
        """
        journal = self.journal
        return (
            self.phase is Phase.RESTARTED
            and bool(self.struck)
            and not self.whole
            and self.state.second is None
            and journal.healed.work == self._work()
            and not has_background(self.scene.program)
            and Phase.RESTARTED not in journal.unsettled
            and not any(phase is Phase.RESTARTED for phase, _ in journal.lines)
        )

    def _work(self) -> tuple[Any, ...]:
        """Everything that a restart without any work leaves unchanged."""
        run, counts = self.run, self.journal.counts
        asked = sum(n for (place, *_), n in counts.items() if place == _CALL)
        return run.cluster.version, run.clock.elapsed, len(run.draws.drawn), asked

    def _note_unrestarted(self) -> None:
        """Keep the trial with which timers go on if the operator does not restart."""
        if has_background(self.scene.program):
            with suppress(CannotFork):
                self.unrestarted = self.fork()

    def written_by_time(self) -> list[Write]:
        """The writes that would exist by now without the last restart."""
        if self.unrestarted is None:
            return []
        fork = self.unrestarted.fork()
        known = len(fork.journal.writes)
        fork.wait(self.run.clock.elapsed)
        return fork.journal.writes[known:]

    def wait(self, until: float) -> None:
        """Let time pass, with everything that is due; the user does nothing."""
        rest_anew(self.state)
        self.state.user.until = max(until, self.run.clock.elapsed)
        while self.turn() and self.state.user.until is not None:
            pass

    def _came_to_rest_late(self) -> bool:
        """Whether the second restart was the first after all changes were handled.

        A restarted operator handles a change that it finds together with the
        resumption, under the change's reason. Writes that only a resumption makes
        follow at the next restart.
        """
        changers = {
            each.id
            for each in self.scene.program.handlers
            if each.rule.reasons and not each.rule.is_for_resuming
        }
        writes = self.journal.writes
        again = any(each.phase is Phase.AGAIN for each in writes)
        return again and any(
            each.phase is Phase.RESTARTED
            and not changers.isdisjoint(each.site.handler.split(", "))
            for each in writes
        )

    def _on_rest_of_script(self) -> None:
        state = self.state
        if catalogue.release(state):
            return
        if state.user.blocked is not None:
            # A user waits until nothing holds the object any longer.
            if let_go(state) or not state.is_healed:
                catalogue.heal(state)
            else:
                user.give_up(state)
            return
        if state.user.rested < state.user.place:
            state.user.rested = state.user.place
            self._note_rest()
            if self._rest_strikes():
                return
        if self.on_rested is not None:
            self.on_rested(self)
        self._proceed()

    def _note_rest(self) -> None:
        run, is_faultless = self.run, not (self.state.left or self.struck)
        operator = run.machine.state if has_admission(self.scene.program) else None
        outside = digests_of(run.calls.models) if is_faultless else None
        found = AtRest(run.cluster, run.clock.elapsed, operator, outside)
        self.journal.rests[self.state.user.place] = found

    def _rest_strikes(self) -> bool:
        state, place = self.state, self.state.user.place
        done = str(self.scene.script[place - 1]) if place else ""
        site = Site(Place.REST, "", done, str(place))
        state.visited(site)
        fault = state.due(site)
        return fault is not None and catalogue.strike_rest(state, fault)

    def resume(self, scene: Scene, limits: Limits) -> None:
        """Go on after a rest of which `on_rested` was called, in a script like this.

        Both have the same actions up to here.
        """
        self.state.scene, self.state.limits = scene, limits
        self._proceed()
        rest_anew(self.state)

    def _proceed(self) -> None:
        """Let the user do the next action; after the last one all faults end."""
        if not self.state.is_over:
            user.go_on(self.state)
        elif self.is_open:
            self.is_paused = True
        else:
            self.state.tell("rest", "all faults end")
            catalogue.heal(self.state)
            self.state.phase = Phase.HEALED
