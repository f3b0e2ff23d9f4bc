"""A second process of the operator in a trial, in the same cluster.

Without leader election both work, and take turns. With it the second one is a standby
replica. It leads once the leader is dead, or stands still, for longer than its lease
lasts. It leads until the faults end, and disappears with them; then the first one waits
until that lease has expired.
"""

from __future__ import annotations

from collections.abc import Callable

from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.effects.structs import replace
from fnop.interpreters.check.state.records import Absence, Write
from fnop.interpreters.check.state.sites import asked_at
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.simulation.director import Director
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["Beside", "begin_second", "is_elected", "takes", "wakes", "worker"]


def is_elected(program: Program) -> bool:
    """Whether one of several processes leads, by a Lease."""
    return program.settings.election is not None


def begin_second(state: TrialState, program: Program) -> None:
    """Let a second process begin, under an identity of its own."""
    settings = program.settings
    if settings.election is not None:
        identity = f"{settings.election.identity}-2"
        candidate = replace(settings.election, identity=identity)
        settings = settings.replace(election=candidate)
        program = Program(program.handlers, settings)
    state.second = state.run.beside(program, "second")
    state.second.director = Beside(state)


def wakes(state: TrialState) -> bool:
    """Let the leader go on that has stood still; whether it had."""
    asleep = state.absence is Absence.ASLEEP
    if asleep:
        state.absence = Absence.NONE
        state.tell("fault", "the former leader goes on")
    return asleep


def worker(state: TrialState) -> SimulatedRun:
    """The process whose rest counts: the first, unless the other works instead."""
    second = state.second
    if second is None or not is_elected(state.scene.program):
        return state.run
    leads = state.run.state.coordination.lease_ends is not None
    return state.run if leads and state.absence is Absence.NONE else second


def takes(state: TrialState, second: SimulatedRun) -> bool:
    """Let the second process take a step, by turns with the first.

    Return whether it did.
    """
    run = state.run
    if state.turns % 2 and run.deliverable() is not None:
        return False
    second.catch_up(run.cluster)
    place = second.deliverable()
    if place is None:
        rings = _ring_due_alarms if is_elected(state.scene.program) else _let_time_pass
        return rings(state, second)
    second.take(place)
    state.begins("second")
    run.catch_up(second.cluster)
    return True


def _let_time_pass(state: TrialState, second: SimulatedRun) -> bool:
    """Let the time pass until the second process is due, if that comes first."""
    run = state.run
    at, own = second.next_at(), run.next_at()
    if at is None or (own is not None and own < at):
        return False
    state.begins("cluster")
    if run.deliverable() is not None or run.control():
        return True
    return second.pass_time()


def _ring_due_alarms(state: TrialState, second: SimulatedRun) -> bool:
    """Let due alarms ring: time passes only for a process that works alone."""
    run = state.run
    if run.deliverable() is not None:
        return False
    awake = [second] if state.absence is not Absence.NONE else [second, run]
    now = run.clock.elapsed
    return any(each.pass_time(now, recurring=True) for each in awake)


class Beside(Director):
    """The director of a second process: its writes count as the operator's."""

    def __init__(self, state: TrialState) -> None:
        self._state = state

    def performs(
        self, command: Perform, perform: Callable[[], Outcome | None]
    ) -> Outcome | None:
        """Perform a command, and note the change that it has made."""
        state, second = self._state, self._state.second
        assert second is not None
        before = second.cluster.version
        outcome = perform()
        site, after = asked_at(second, command), second.cluster.version
        if site is not None:
            state.note_asked(site, before, outcome)
        if after == before:
            return outcome
        if site is None or not site.handler:
            state.noted += after - before
        if site is None:
            return outcome
        resource = command.resource
        path = f"{resource.group}/{resource.plural}/" if resource else ""
        state.journal.writes.append(
            Write(site, before, after, path, None, None, "", state.phase)
        )
        wakes(state)
        return outcome
