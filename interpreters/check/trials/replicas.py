"""A second process of the operator in a trial, in the same cluster.

Without leader election both work, and take turns.  With it the second one is a replica
that stands by: when the leader is dead, or stands still, for longer than its lease
lasts, the replica leads.  It does so until the faults end, and is gone with them; then
the first one waits for that lease to be over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from fnop.core.admission.decisions import Decision
from fnop.core.api.reviews import Request
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.trials.records import Write
from fnop.interpreters.check.trials.sites import asked_at
from fnop.interpreters.runtime.protocol import ApiRequest
from fnop.interpreters.simulation.simulation import Delivery, SimulatedRun

if TYPE_CHECKING:
    from fnop.interpreters.check.trials.trial import Trial

__all__ = ["Absence", "Beside", "begin", "is_elected", "takes", "worker"]


class Absence(Enum):
    """Why the first process does nothing, while the second one may."""

    NONE = "none"
    DEAD = "dead"  # until the faults end
    ASLEEP = "asleep"  # until the other has begun to work


def is_elected(program: Program) -> bool:
    """Whether one of several processes leads, by a Lease."""
    return program.settings.election is not None


def begin(trial: Trial, program: Program) -> SimulatedRun:
    """Let a second process begin, under an identity of its own."""
    settings = program.settings
    if settings.election is not None:
        identity = f"{settings.election.identity}-2"
        candidate = replace(settings.election, identity=identity)
        settings = settings.replace(election=candidate)
        program = Program(program.handlers, settings)
    second = trial.run.beside(program, "second")
    second.director = Beside(trial)
    return second


def worker(trial: Trial) -> SimulatedRun:
    """The process whose rest counts: the first, unless the other works in its place."""
    second = trial.second
    if second is None or not is_elected(trial.scene.program):
        return trial.run
    leads = trial.run.state.coordination.lease_ends is not None
    return trial.run if leads and trial.absence is Absence.NONE else second


def takes(trial: Trial, second: SimulatedRun) -> bool:
    """Let the second process take a step, by turns with the first; whether it did."""
    run = trial.run
    if trial.turns % 2 and run.deliverable() is not None:
        return False
    second.catch_up(run.cluster)
    place = second.deliverable()
    if place is None:
        rings = _rings_of_replicas if is_elected(trial.scene.program) else _passes
        return rings(trial, second)
    second.take(place)
    trial.begins("second")
    run.catch_up(second.cluster)
    return True


def _passes(trial: Trial, second: SimulatedRun) -> bool:
    """Let the time pass to what the second has to do, if that comes first."""
    run = trial.run
    at, own = second.next_at(), run.next_at()
    if at is None or (own is not None and own < at):
        return False
    trial.begins("cluster")
    if run.deliverable() is not None or run.control():
        return True
    return second.pass_time()


def _rings_of_replicas(trial: Trial, second: SimulatedRun) -> bool:
    """Let the alarms ring that are due: time passes for who works alone."""
    run = trial.run
    if run.deliverable() is not None:
        return False
    awake = [second] if trial.absence is not Absence.NONE else [second, run]
    now = run.clock.elapsed
    return any(each.pass_time(now, recurring=True) for each in awake)


class Beside:
    """The director of a second process: what it writes counts as the operator's."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def choose(self, inbox: Sequence[Delivery]) -> int | None:
        """The oldest delivery."""
        return 0

    def performs(self, command: Perform, perform: Callable[[], Outcome]) -> Outcome:
        """Perform it, and note what it has changed."""
        trial, second = self._trial, self._trial.second
        assert second is not None
        before = second.cluster.version
        outcome = perform()
        site, after = asked_at(second, command), second.cluster.version
        if site is not None:
            trial.note_asked(site, before, outcome)
        if after == before:
            return outcome
        if site is None or not site.handler:
            trial.noted(after - before)
        if site is None:
            return outcome
        resource = command.resource
        path = f"{resource.group}/{resource.plural}/" if resource else ""
        trial.writes.append(
            Write(site, before, after, path, None, None, "", trial.phase)
        )
        trial.wakes()
        return outcome

    def admits(self, request: ApiRequest) -> ApiRequest:
        """The request as it is."""
        return request

    def reviews(
        self,
        request: Request,
        asks: frozenset[str],
        decide: Callable[[], Decision],
    ) -> Decision | None:
        """The decision of its handlers."""
        return decide()
