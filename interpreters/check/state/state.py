"""The state of a trial: all that its user, its processes and its faults change."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from fnop.effects import Outcome
from fnop.interpreters.check.state.journal import Journal, fork_of
from fnop.interpreters.check.state.kinds import Fault, Place, Site
from fnop.interpreters.check.state.records import (
    Absence,
    Asked,
    Happened,
    Hold,
    Limits,
    Phase,
    Scene,
    Visit,
)
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.actions import Action
from fnop.interpreters.simulation.settling import Calm
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["InForce", "Resting", "TrialState", "User"]


@dataclass
class User:
    """The user of a script.

    `place` is the number of the next action. An action that cannot be done yet is
    `blocked`; it may wait for the operator's webhooks (`awaits_review`). A user who
    waits does so `until` a virtual second. `rested` is the place at the last rest.
    """

    place: int = 0
    blocked: Action | None = None
    awaits_review: bool = False
    until: float | None = None
    rested: int = -1


@dataclass
class InForce:
    """The effects of faults that last.

    `holds` are sources of watch events that are held back. `late` are requests on their
    way: until a rest or an action, and since which action. `bursts` are errors that
    repeat, by handler, verb and target, and `forbidden` counts refusals to come, by
    verb and target. Controllers of the cluster in `paces` are slowed down. The operator
    is `down` for a number of actions of the user. `outage` is the time without
    webhooks: they are not reached ("down"), or answer too late ("slow").
    """

    holds: dict[str, Hold] = field(default_factory=dict)
    late: list[tuple[ApiRequest, str, int]] = field(default_factory=list)
    bursts: dict[tuple[str, str, str], tuple[Fault, int]] = field(default_factory=dict)
    forbidden: dict[tuple[str, str], int] = field(default_factory=dict)
    paces: set[str] = field(default_factory=set)
    down: int = 0
    outage: Hold | None = None
    # The former code answers every other review.
    is_shared: bool = False
    # A webhook of another product changes what is created.
    is_hooked: bool = False
    # Each step takes a second.
    is_slow: bool = False
    # Nothing reaches the operator before the script is over.
    is_backlog: bool = False


@dataclass
class Resting:
    """The time since the last rest.

    It began with the turn `begun_at`, after the first `written` requests, and after
    `waited` seconds. `still` is the last change of the cluster: its version without
    notes, the turn, and the virtual second.
    """

    calm: Calm = field(default_factory=Calm)
    begun_at: int = 0
    written: int = 0
    waited: float = 0.0
    still: tuple[int, int, float] = (0, 0, 0.0)


@dataclass
class TrialState:
    """One world with its faults, under way.

    `left` are the faults to come, `struck` those that have struck. A `second` process
    of the operator may run in the same cluster, and `absence` is the reason why the
    first one does nothing. `noted` counts the versions of the cluster that are the
    operator's own notes, and `waited` the virtual seconds without anything to do.
    """

    scene: Scene
    limits: Limits
    run: SimulatedRun
    journal: Journal
    left: list[Fault] = field(default_factory=list)
    struck: list[Fault] = field(default_factory=list)
    phase: Phase = Phase.SCRIPT
    turns: int = 0
    user: User = field(default_factory=User)
    in_force: InForce = field(default_factory=InForce)
    second: SimulatedRun | None = None
    absence: Absence = Absence.NONE
    successions: int = 0
    is_healed: bool = False
    resting: Resting = field(default_factory=Resting)
    noted: int = 0
    waited: float = 0.0

    def fork(self) -> TrialState:
        """Copy the state, with runs that have no director yet.

        Raises `fnop.interpreters.simulation.simulation.CannotFork`.
        """
        fork = replace(
            self,
            run=self.run.fork(),
            journal=fork_of(self.journal),
            left=self.left.copy(),
            struck=self.struck.copy(),
            user=fork_of(self.user),
            in_force=fork_of(self.in_force),
            resting=replace(self.resting, calm=copy.copy(self.resting.calm)),
        )
        if self.second is not None:
            fork.second = self.second.fork(fork.run.clock)
            # There is one world outside.
            fork.second.calls.models = fork.run.calls.models
        return fork

    @property
    def drawn(self) -> list[bytes]:
        """All random bytes that the operator has drawn."""
        others = [] if self.second is None else self.second.draws.drawn
        return [*self.run.draws.drawn, *others]

    @property
    def drawn_secrets(self) -> list[bytes]:
        """The random bytes that the operator has drawn as a secret."""
        others = [] if self.second is None else self.second.draws.secrets
        return [*self.run.draws.secrets, *others]

    @property
    def is_over(self) -> bool:
        """Whether the user has done all actions of the script."""
        return self.user.place >= len(self.scene.script)

    def request(self, actor: str, request: ApiRequest) -> ApiResponse:
        """Send the request of an actor other than the operator."""
        self.begins(actor)
        return self.run.request(request)

    def tell(self, lane: str, what: Any) -> None:
        """Add to the story."""
        run, journal = self.run, self.journal
        at = run.clock.elapsed - journal.since
        journal.story.append(Happened(at, lane, what, run.steps, run.cluster.version))

    def begins(self, actor: str) -> None:
        """Note the actor that changes the cluster from now on."""
        run, journal = self.run, self.journal
        version = run.cluster.version
        if journal.actors and journal.actors[-1][0] == version:
            journal.actors.pop()
        journal.actors.append((version, actor))
        if any(each.always for each in self.scene.expectations):
            journal.glimpse(version, run.clock.now().wall, run.calls.models)

    def due(self, site: Site) -> Fault | None:
        """Take the fault that strikes at this site, if there is one."""
        if self.phase is not Phase.SCRIPT:
            return None
        for fault in self.left:
            if _is_same(fault.site, site):
                self.left.remove(fault)
                self.struck.append(fault)
                self.tell("fault", fault)
                return fault
        return None

    def counted(self, site: Site) -> Site:
        """Number the site among equal ones, and note the visit."""
        key = (site.place.value, site.handler, site.verb, site.target)
        self.journal.counts[key] += 1
        found = site._replace(nth=self.journal.counts[key])
        self.visited(found)
        return found

    def visited(self, site: Site) -> None:
        """Note a visit, as long as the script lasts."""
        if self.phase is Phase.SCRIPT:
            run, place = self.run, self.user.place
            visit = Visit(self.turns, place, run.cluster.version, site, run.steps)
            self.journal.visits.append(visit)

    def note_asked(self, site: Site, version: int, outcome: Outcome | None) -> None:
        """Keep a request that was sent at a version, if expectations may ask."""
        if self.scene.expectations:
            asked = Asked(site, version, self.phase, outcome)
            self.journal.kept.asked.append(asked)


def _is_same(one: Site, other: Site) -> bool:
    """Whether two sites are the same; rests are compared by the number of actions."""
    if one.place is other.place is Place.REST:
        return one.target == other.target
    if {one.place, other.place} == {Place.WRITE, Place.OWN}:
        one = one._replace(place=other.place)  # a test need not distinguish them
    return one == other
