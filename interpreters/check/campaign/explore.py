"""The order in which schedules of faults are tried, and the results.

The benign run comes first, and a second one with another seed and another clock:
differences between them are volatile. Then every single fault strikes a fork of the
benign run. Likely pairs follow, or all pairs whose second fault is near the first; then
random schedules. Nothing depends on a clock or a hash seed: equal operators get equal
verdicts.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import takewhile, zip_longest
from types import FrameType
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import Journal
from fnop.core.seam.commands import Command
from fnop.effects.structs import replace
from fnop.interpreters.check.admission.admitting import Admitting
from fnop.interpreters.check.inputs.idleness import Idleness
from fnop.interpreters.check.inputs.input_variation import Heeding
from fnop.interpreters.check.inputs.purity import Purity
from fnop.interpreters.check.properties import judged
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Followed,
    Seen,
    Violation,
    handled_kinds,
    made_by,
    seen_by,
)
from fnop.interpreters.check.properties.expected import errors_of_expectations
from fnop.interpreters.check.properties.writes import unsteady
from fnop.interpreters.check.scripts.follow_ups import (
    follow_ups_of,
    is_of_given,
    left_by,
)
from fnop.interpreters.check.state.behaviour import Ahead
from fnop.interpreters.check.state.expectations import Expectation
from fnop.interpreters.check.state.kinds import Fault, Place, Schedule, Site, Trait
from fnop.interpreters.check.state.processes import is_elected
from fnop.interpreters.check.state.records import (
    BOOT_SECONDS,
    Happened,
    Limits,
    Phase,
    Refusal,
    Rival,
    Scene,
    Visit,
    has_background,
)
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.check.trials.aftermath import aftermath_of
from fnop.interpreters.check.trials.catalogue import BEHAVIOURS, FAULTS
from fnop.interpreters.check.trials.differences import Volatile, learned
from fnop.interpreters.check.trials.rests import Rests
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import Cluster, empty_cluster
from fnop.interpreters.runtime.clock import EPOCH, VirtualClock
from fnop.interpreters.runtime.machine import Machine, Observer
from fnop.interpreters.simulation.actions import (
    Action,
    Apply,
    Delete,
    Edit,
    SetPace,
    act,
)
from fnop.interpreters.simulation.admission import has_admission
from fnop.interpreters.simulation.externals import forked
from fnop.interpreters.simulation.lives import Life
from fnop.interpreters.simulation.scenario import apply_manifests, catalogue_of, restore
from fnop.interpreters.simulation.simulation import CannotFork, SimulatedRun

__all__ = [
    "Case",
    "Explorer",
    "Failure",
    "Verdict",
    "benign_run",
    "digest_of",
    "explorers_of",
    "is_special",
    "observed",
    "prepared",
    "sort_of",
]

# The second fault of a pair strikes within this number of turns after the first.
NEAR_TURNS = 8
# At most this number of second faults are likely, within this number of turns.
LIKELY_MAX, LIKELY_TURNS = 2, 200
# A random schedule has at most this number of faults.
RANDOM_MAX = 6
# The clock of the second benign run begins this number of seconds later.
OTHER_START = 90_061.5


class Case(NamedTuple):
    """An operator in a world, and the actions of a user there.

    `definitions` and `given` are manifests of objects that exist before the operator
    begins. `calls` are models of called functions; `rivals` are other controllers, by
    the kind that they change. `history` are prefixes of objects that may depend on the
    way an object became what it is, such as `persistentvolumeclaims/`. `former` is the
    code that this operator replaces. A `listener` hears each command of all runs.
    `restored` are objects as another cluster has them, with their uids and versions;
    `start` is the wall time of the beginning.

    A script that is `made_up` is generated, not an author's. Faults do not strike a
    case that is `calm`. In a case with a `mistake` the user writes a value that the
    operator does not serve, and corrects it. An operator that lives in this process
    has a `begin`, which begins each life.
    """

    program: Program
    definitions: Sequence[Mapping[str, Any]] = ()
    script: tuple[Action, ...] = ()
    given: Sequence[Mapping[str, Any]] = ()
    calls: Mapping[str, Any] = {}
    rivals: Mapping[str, Rival] = {}
    name: str = "script"
    namespace: str = "default"
    expectations: tuple[Expectation, ...] = ()
    history: tuple[str, ...] = ()
    former: Program | None = None
    listener: Callable[[Command], None] | None = None
    restored: Sequence[Mapping[str, Any]] = ()
    start: float = EPOCH
    made_up: bool = False
    calm: bool = False
    mistake: bool = False
    begin: Callable[[SimulatedRun], Life] | None = None

    @property
    def other_start(self) -> float:
        """Seconds by which the clock of a second benign run begins later.

        Restored objects would be older by that time, and their age matters.
        """
        return 1.5 if self.restored else OTHER_START


class Verdict(Struct, frozen=True):
    """The result of one schedule.

    `struck` is False if the fault did not occur: then nothing is known. With
    `confirmed` the violations were found under another seed as well.
    """

    schedule: Schedule
    violations: tuple[Violation, ...]
    struck: bool = True
    turns: int = 0


class Failure(Struct, frozen=True):
    """A violation, and the schedule that shows it; `story` is the list of events."""

    case: str
    schedule: Schedule
    violation: Violation
    special: bool = False
    story: tuple[Happened, ...] = ()

    @property
    def site(self) -> Site | None:
        """The site that the last fault strikes; None for the benign run."""
        return self.schedule[-1].site if self.schedule else None


def prepared(case: Case, *, seed: str = "0", later: float = 0.0) -> Scene:
    """The scene of a case: a cluster that is ready for the script.

    Its clock begins `later` by this number of seconds. Raises
    `fnop.interpreters.simulation.scenario.ApplyProblem` if the cluster refuses a
    manifest.
    """
    start = case.start + later
    clock = VirtualClock(start)
    cluster = empty_cluster(seed, start)
    calls = forked(case.calls)
    run = SimulatedRun(
        *(case.program, cluster),
        seed=seed,
        clock=clock,
        calls=calls,
        begin=case.begin,
    )
    run.listener = case.listener
    run.share()
    apply_manifests(run, [dict(each) for each in case.definitions])
    bare = run.cluster
    for each in case.given:
        act(run, Apply(dict(each)), case.namespace)
    if case.restored:  # in a cluster that was like that already
        for pace in takewhile(lambda each: isinstance(each, SetPace), case.script):
            act(run, pace, case.namespace)
    restore(run, case.restored)
    while run.control():
        pass
    booted = run.fork()
    if not case.restored:  # with these the operator has something to do at once
        booted.settle(seconds=BOOT_SECONDS)
    return Scene(
        *(case.program, run, booted, case.script, case.rivals, case.namespace),
        case.expectations,
        case.former,
        bare,
    )


def observed(
    case: Case, schedule: Schedule, observer: Callable[[SimulatedRun], Observer]
) -> Trial:
    """The trial of a schedule from the operator's start on, before an observer.

    It has been played when this returns.
    """
    scene = prepared(case)
    run = scene.base.fork()
    run.machine = Machine(case.program, (observer(run),))
    if not any(each.kind.has(Trait.STARTS_LATE) for each in schedule):
        run.settle(seconds=BOOT_SECONDS)
    trial = Trial(scene, schedule, run=run)
    trial.whole = True  # recordings are compared process by process
    return trial.play()


def benign_run(case: Case) -> Seen:
    """The run of a case without faults, alone."""
    return seen_by(Trial(prepared(case)).play())


class Reference(Struct, frozen=True):
    """The benign run of a case, with forks of it at its turns."""

    scene: Scene
    benign: Benign
    forks: Mapping[int, Trial]
    limits: Limits


def reference_of(
    case: Case,
    *,
    watched: bool = True,
    scene: Scene | None = None,
    alone: bool = False,
) -> Reference:
    """Run a case without faults, twice: differences are volatile.

    The author's code is `watched` in the second run, which takes some time. The `scene`
    may come from another script in the same world. `alone` is as for an `Explorer`.
    """
    if scene is None:
        scene = prepared(case)
    trial = Trial(scene)
    forks: dict[int, Trial] = {}
    while trial.phase is Phase.SCRIPT and not trial.journal.unsettled:
        # Schedules that strike before any possible fork begin at the beginning.
        if not case.calm:
            with suppress(CannotFork):
                forks[trial.state.turns] = trial.fork()
        trial.go_on()
    trial.play()
    handlers = case.program.handlers
    gates = _Gates(Purity(), Idleness(handlers), Heeding(handlers))
    # Code that acts has to be neither pure nor repeatable.
    eye = gates if watched and case.begin is None else None
    other = trial if trial.is_endless else _second_benign_run(case, eye)
    followed = () if case.calm else _play_follow_ups(trial, forks, alone)
    return Reference(
        scene,
        _benign_result(case, trial, other, gates, followed),
        forks,
        Limits(turns=20 * trial.state.turns + 200),
    )


class _Gates(Struct, frozen=True):
    """The eyes on the author's code in the second benign run."""

    purity: Purity
    idleness: Idleness
    heeding: Heeding

    def open(self) -> None:
        self.purity.open()
        self.idleness.open()

    def shut(self) -> None:
        self.idleness.shut()
        self.purity.shut()

    def acted(self, deed: str, frame: FrameType | None) -> None:
        self.purity.acted(deed, frame)

    def drove(self, situation: Situation, journal: Journal) -> None:
        self.heeding.drove(situation, journal)


def _second_benign_run(case: Case, gates: _Gates | None) -> Trial:
    """The benign run with another seed and another clock, under the gates."""
    other = Trial(prepared(case, seed="1", later=case.other_start))
    other.run.machine.eye = gates
    return other.play()


def _benign_result(
    case: Case,
    trial: Trial,
    other: Trial,
    gates: _Gates,
    followed: tuple[Followed, ...] = (),
) -> Benign:
    seen, again = seen_by(trial), seen_by(other)
    volatile = _volatile_parts(seen, again)
    return Benign(
        seen,
        volatile,
        handled_kinds(trial),
        has_background(case.program),
        None if trial.is_endless else _direct_creation(trial),
        case.history,
        tuple(map(str, gates.purity.findings)),
        unsteady(seen, again),
        _has_no_way_back(trial.scene),
        gates.idleness.idle,
        gates.heeding,
        followed,
        aftermath_of(trial, volatile),
        Admitting(trial),
        case.calm,
        case.mistake,
    )


def _volatile_parts(seen: Seen, again: Seen) -> Volatile:
    """The differences of two benign runs, after the restart or before it."""
    found = learned(seen.world, again.world, seen.healed, again.healed)
    before = learned(seen.healed, again.healed)
    paths, objects = found.paths | before.paths, found.objects | before.objects
    return replace(found, paths=paths, objects=objects)


def _direct_creation(trial: Trial) -> Seen | None:
    """The run of a user who directly creates the end state of a run's script.

    It leaves out what the operator has denied. None if the script does not change
    anything that it has created.
    """
    scene = trial.scene
    script = tuple(
        each
        for place, each in enumerate(scene.script, 1)
        if place not in trial.journal.denied
    )
    changed = any(isinstance(each, (Delete, Edit)) for each in script)
    if not changed or any(isinstance(each, SetPace) for each in script):
        return None
    actions = left_by(scene, script)
    return seen_by(Trial(replace(scene, script=actions)).play())


def _play_follow_ups(
    trial: Trial, forks: Mapping[int, Trial], alone: bool
) -> tuple[Followed, ...]:
    """The follow-ups of a benign run that has ended, played."""
    rest = trial.journal.rests.get(len(trial.scene.script))
    if rest is None or trial.is_endless:
        return ()
    end, found = rest.cluster, []
    made = frozenset(made_by(trial))
    for follow_up in follow_ups_of(
        trial.scene, handled_kinds(trial), end, made, alone=alone
    ):
        script = (*trial.scene.script, *follow_up.actions)
        scene = replace(trial.scene, script=script)
        if forks:
            longer = forks[max(forks)].fork()
            longer.state.scene = scene
        else:
            longer = Trial(scene)
        followed = Followed(follow_up, seen_by(longer.play()))
        if forks and has_background(scene.program) and not follow_up.ends:
            waited = _idle_clusters(forks[max(forks)], followed)
            followed = replace(followed, waited=waited)
        found.append(followed)
    return tuple(found)


def _idle_clusters(before: Trial, followed: Followed) -> tuple[Cluster, ...]:
    """The clusters at the rests of a follow-up, if the user does nothing instead.

    The operator restarts at the time at which it does after the follow-up.
    """
    fork = before.fork()
    found = []
    for each in followed.times:
        fork.wait(each)
        found.append(fork.run.cluster)
    ends = followed.seen.trial.journal.ends
    fork.wait(ends[Phase.HEALED].time or 0.0)
    fork.run.crash()
    fork.wait(ends[Phase.RESTARTED].time or 0.0)
    return (*found, fork.run.cluster)


def _has_no_way_back(scene: Scene) -> bool:
    """Whether the user never deletes an object that the script has made.

    Then the end of the script equals the end of one creation (`history`).
    """
    return not any(
        isinstance(each, Delete) and not is_of_given(scene, each)
        for each in scene.script
    )


class Explorer:
    """Tries the schedules of one case, each on a fork of its benign run.

    Unless the author's code is `watched`, its actions other than effects are unknown.
    The `scene` may come from another script in the same world. Then `rests` are the
    rests that they share, and `number` is the number of this script. If the objects of
    a script are `alone`, its follow-ups create no other objects.
    """

    def __init__(
        self,
        case: Case,
        *,
        watched: bool = True,
        scene: Scene | None = None,
        rests: Rests | None = None,
        number: int = 0,
        alone: bool = False,
    ) -> None:
        self.case = case
        self._rests, self._number, self._alone = rests, number, alone
        self.reference = reference_of(case, watched=watched, scene=scene, alone=alone)
        self._trial = self.reference.benign.seen.trial

    @cached_property
    def benign(self) -> Verdict:
        """The verdict of the run without faults."""
        benign = self.reference.benign
        found = tuple(judged(benign, benign.seen))
        return Verdict((), found, True, self._trial.state.turns)

    @cached_property
    def _faultless_violations(self) -> frozenset[str]:
        """The properties that are violated without any fault."""
        return frozenset(each.property for each in self.benign.violations)

    @property
    def turns(self) -> int:
        """The number of turns of the run without faults."""
        return self._trial.state.turns

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """A sentence for each called function without a model: nothing is known."""
        return tuple(self._trial.run.calls.unmodelled.values())

    @cached_property
    def refused(self) -> tuple[Refusal, ...]:
        """The actions of the script that the cluster refuses without any fault.

        Actions that the operator's own admission handlers prevent do not count, nor do
        consequences of their answers. After a denial, for example, a later action
        misses an object.
        """
        found = tuple(each for each in self._trial.journal.refusals if not each.is_own)
        decisions = [each.decision for each in self._trial.journal.reviews.decided]
        if not found or not any(e.denials or e.patch for e in decisions):
            return found
        refused = _refused_without_reviews(self.case)
        return tuple(each for each in found if each.place in refused)

    @property
    def denied(self) -> tuple[Refusal, ...]:
        """The actions of the script that the operator itself prevents."""
        return tuple(each for each in self._trial.journal.refusals if each.is_own)

    @property
    def mistakes(self) -> tuple[str, ...]:
        """A sentence for each fact outside the script that prevents a verdict.

        They are calls without a model, kinds that are not served, and expectations that
        fail themselves.
        """
        return (
            *self.unmodelled,
            *self._unserved_kinds(
                "@expect({!r})", [e.kind for e in self.case.expectations]
            ),
            *self._unserved_kinds("RIVALS[{!r}]", self.case.rivals),
            *errors_of_expectations(self.reference.benign.seen),
        )

    def _unserved_kinds(self, what: str, kinds: Iterable[str]) -> Iterator[str]:
        catalogue = catalogue_of(self._trial.run)
        for kind in dict.fromkeys(kinds):
            if catalogue.lookup(kind) is None:
                absence = catalogue.absence(kind, "the cluster")
                remedy = "correct it, or give its definition with crds= (--crd)"
                yield f"{what.format(kind)}: {absence}; {remedy}"

    # ------------------------------------------------------------------- schedules

    def singles(self) -> list[Schedule]:
        """All single faults that can strike the benign run: the sorts by turns.

        A run that never ends even without faults has none, nor has a calm one.
        """
        if self._trial.is_endless or self.case.calm:
            return []
        trial = self.reference.benign.seen.trial
        ahead = replace(
            self._facts_for_faults,
            former=self.case.former is not None,
            controllers=_controllers_for(trial),
            forked=self._state_at_visit,
        )
        found = [*candidates(trial.journal.visits, ahead), *_lasting_faults(ahead)]
        return [(each,) for each in _faults_by_novelty(found)]

    @cached_property
    def _facts_for_faults(self) -> Ahead:
        """The facts by which faults may strike a second time."""
        program = self.case.program
        return Ahead(
            *(len(self.case.script), is_elected(program), has_admission(program)),
            lives=self.case.begin is not None,
        )

    def _state_at_visit(self, visit: Visit) -> TrialState | None:
        """The state of the run without faults at a visit, if there is a fork of it."""
        fork = self.reference.forks.get(visit.turn - 1)
        return None if fork is None else fork.state

    def random(self, count: int, seed: int = 0) -> Iterator[Schedule]:
        """Random schedules of two to six faults; special ones are for single use."""
        source = random.Random(seed)
        faults = [each for (each,) in self.singles() if not is_special((each,))]
        for _ in range(count if faults else 0):
            number = min(len(faults), source.randint(2, RANDOM_MAX))
            yield tuple(source.sample(faults, number))

    # ---------------------------------------------------------------------- trials

    def tried(self, schedule: Schedule) -> Verdict:
        """Run a schedule and judge it."""
        return self.verdict_of(self.played(schedule), schedule)

    def played(self, schedule: Schedule) -> Trial:
        """The trial of a schedule at its end, starting where another script left it."""
        return self._latest_trial(schedule).play()

    def _latest_trial(self, schedule: Schedule) -> Trial:
        """A trial of the schedule, at the latest point that is known.

        It keeps its own rests for other scripts.
        """
        rests, number, limits = self._rests, self._number, self.reference.limits
        if rests is None:
            return self.trial_of(schedule)
        trial = rests.latest(number, schedule, limits)
        if trial is None:
            trial = self.trial_of(schedule)
        else:
            trial.resume(self.reference.scene, limits)
        trial.on_rested = lambda found: rests.keep(number, schedule, found)
        return trial

    def verdict_of(self, trial: Trial, schedule: Schedule) -> Verdict:
        """The verdict of a finished trial."""
        found = judged(self.reference.benign, seen_by(trial))
        # A violation of the benign run is reported once, and not for every fault again.
        fresh = tuple(
            each for each in found if each.property not in self._faultless_violations
        )
        return Verdict(
            schedule, fresh, len(trial.struck) == len(schedule), trial.state.turns
        )

    def trial_of(self, schedule: Schedule) -> Trial:
        """A trial of the schedule, at the turn that its first fault strikes."""
        limits = self.reference.limits
        fork = self._fork_for(schedule)
        if fork is None:
            return Trial(self.reference.scene, schedule, limits=limits)
        trial = fork.fork()
        trial.state.limits = limits
        trial.state.left = [*schedule]
        return trial

    def _fork_for(self, schedule: Schedule) -> Trial | None:
        if any(_is_from_the_start(each) for each in schedule):
            return None
        visits = self._turns_by_site()
        # The site of the second fault may only exist because of the first.
        turns = [visits[each.site] for each in schedule if each.site in visits]
        if schedule and not turns:
            return None
        return self.reference.forks.get(min(turns, default=1) - 1)

    def _turns_by_site(self) -> Mapping[Site, int]:
        visits = self.reference.benign.seen.trial.journal.visits
        return {each.site: each.turn for each in reversed(visits)}

    def pairs(self, first: Schedule) -> Iterator[Verdict]:
        """Try each second fault within a few turns after a first one."""
        trial = self._trial_after_fault(first)
        known, forks = len(trial.journal.visits), dict[int, Trial]()
        begun = trial.state.turns
        while trial.phase is Phase.SCRIPT and trial.state.turns < begun + NEAR_TURNS:
            try:
                forks[trial.state.turns] = trial.fork()
            except CannotFork:
                return
            trial.go_on()
        near = [each for each in trial.journal.visits[known:] if each.turn - 1 in forks]
        found = candidates(near, self._facts_for_faults)
        for fault in _faults_by_novelty(e for e in found if not is_special((e,))):
            visit = next(each for each in near if each.site == fault.site)
            second = forks[visit.turn - 1].fork()
            second.state.left = [fault]
            yield self.verdict_of(second.play(), (*first, fault))

    def may_begin_a_pair(self, first: Schedule) -> bool:
        """Whether some second fault is likely after this single one.

        Handlers must request something at its place, if only after a restart.
        """
        (fault,) = first
        is_of_work = bool(fault.site.handler or fault.site.verb)  # not the very start
        likely = fault.kind.likely_next
        return is_of_work and any(place in self._request_places for _, place in likely)

    @cached_property
    def _request_places(self) -> frozenset[Place]:
        """The places of handlers' requests in the run without faults."""
        return frozenset(
            Place(place) for place, who, *_ in self._trial.journal.counts if who
        )

    def likely_pairs(self, first: Schedule) -> Iterator[Verdict]:
        """Try the likely second faults before the user's next action."""
        trial = self._trial_after_fault(first)
        known, place = len(trial.journal.visits), trial.state.user.place
        end = trial.state.turns + LIKELY_TURNS
        while trial.phase is Phase.SCRIPT and trial.state.user.place == place:
            if trial.state.turns >= end:
                break
            trial.go_on()
        found = candidates(trial.journal.visits[known:], self._facts_for_faults)
        for fault in _likely_second_faults(first[0], found):
            yield self.tried((*first, fault))

    def _trial_after_fault(self, first: Schedule) -> Trial:
        """A trial just after its first fault has struck."""
        trial = self.trial_of(first)
        while (
            not trial.struck
            and trial.phase is Phase.SCRIPT
            and not trial.is_endless  # then it stays in the phase
        ):
            trial.go_on()
        return trial

    def confirmed(self, verdict: Verdict) -> tuple[Violation, ...]:
        """The violations that another seed and another clock show as well."""
        if not verdict.violations:
            return ()
        found = {each.property for each in verdict.violations}
        if verdict.schedule:
            other = self._confirming_reference
            trial = Trial(other.scene, verdict.schedule, limits=other.limits).play()
            again = judged(other.benign, seen_by(trial), found)
        else:
            benign = self._other_with_follow_ups
            again = judged(benign, benign.seen, found)
        names = {each.property for each in again} | {"pure", "idle"}
        return tuple(each for each in verdict.violations if each.property in names)

    @cached_property
    def _confirming_reference(self) -> Reference:
        """The reference under another seed, to confirm schedules."""
        return _other_reference(self.case, self.reference.benign.heeding)

    @cached_property
    def _other_with_follow_ups(self) -> Benign:
        """The benign run under another seed, the only one judged by its follow-ups."""
        benign = self._confirming_reference.benign
        if self.case.calm:
            return benign
        return replace(
            benign, followed=_play_follow_ups(benign.seen.trial, {}, self._alone)
        )


def _refused_without_reviews(case: Case) -> frozenset[int]:
    """The numbers of the actions that are refused if no handler reviews them."""
    handlers = tuple(e for e in case.program.handlers if e.role not in ADMISSION)
    program = Program(handlers, case.program.settings)
    trial = Trial(prepared(case._replace(program=program))).play()
    return frozenset(each.place for each in trial.journal.refusals)


def _other_reference(case: Case, heeding: Heeding) -> Reference:
    """A reference under other seeds, to confirm alarms by; without follow-ups.

    The results of decisions that are made again are the same under any seed.
    """
    scene = prepared(case, seed="2", later=2 * case.other_start)
    trial = Trial(scene).play()
    other = trial if trial.is_endless else Trial(prepared(case, seed="3")).play()
    benign = _benign_result(case, trial, other, _Gates(Purity(), Idleness(()), heeding))
    return Reference(scene, benign, {}, Limits(turns=20 * trial.state.turns + 200))


def explorers_of(
    cases: Sequence[Case], has_time: Callable[[], bool] = lambda: True
) -> list[Explorer]:
    """The explorers of several cases, which share everything that is the same in all.

    When there is no time for it any longer, those of the further cases are left out.

    Cases of one world differ only in their scripts. Other objects come and go after the
    author's scripts, and after one of the generated ones. The generated scripts make
    the same objects, and each has its end.
    """
    worlds: list[tuple[Case, Scene, Rests]] = []
    explorers: list[Explorer] = []
    for number, case in enumerate(cases):
        if explorers and not has_time():
            break
        known = [each for each in worlds if _is_of_one_world(each[0], case)]
        if known:
            _, scene, rests = known[0]
        else:
            scene = prepared(case)
            scripts = [e.script if _is_of_one_world(e, case) else () for e in cases]
            rests = Rests(scripts)
            worlds.append((case, scene, rests))
        scene = replace(scene, script=case.script)
        alone = case.made_up and bool(known)
        explorers.append(
            Explorer(case, scene=scene, rests=rests, number=number, alone=alone)
        )
    return explorers


def _is_of_one_world(one: Case, other: Case) -> bool:
    """Whether two cases differ only in the user's actions."""
    if one.restored or other.restored:  # the paces of such a script come first
        return one is other
    aside = {"script", "name", "made_up", "history"}
    return all(
        getattr(one, field) is getattr(other, field)
        for field in Case._fields
        if field not in aside
    )


def _is_from_the_start(fault: Fault) -> bool:
    """Whether a fault makes a difference before it strikes."""
    return fault.site.place is Place.RUN or fault.kind.has(Trait.FROM_THE_START)


# ------------------------------------------------------------------- candidates


def candidates(visits: Iterable[Visit], ahead: Ahead) -> Iterator[Fault]:
    """The faults that can strike at these visits, without equivalent ones.

    A crash leaves nothing of the operator: two crashes are the same if the cluster has
    not changed between them.
    """
    crashes: set[tuple[str, int, int]] = set()
    for visit, following in _visits_with_versions(visits):
        for kind in FAULTS:
            if visit.site.place not in kind.places or visit.site.place is Place.RUN:
                continue
            for fault in BEHAVIOURS[kind.name].faults(kind, visit, ahead):
                if kind.has(_CRASHES) and visit.site.place is not Place.CALL:
                    is_done = kind.has(Trait.CRASHES_AFTER)
                    version = following if is_done else visit.version
                    place = (kind.code, visit.place, version)
                    if place in crashes:
                        continue
                    crashes.add(place)
                yield fault


_CRASHES = Trait.CRASHES_BEFORE | Trait.CRASHES_AFTER


def _likely_second_faults(first: Fault, found: Iterable[Fault]) -> list[Fault]:
    """The likely faults after a first one: one of each sort, the kinds by turns.

    A rival gets its turn only if fewer requests can fail.
    """
    faults = [*found]
    rows = first.kind.likely_next
    turns = zip_longest(*(_one_of_each_sort(faults, *row) for row in rows))
    likely = [each for turn in turns for each in turn if each is not None]
    return sorted(likely, key=lambda each: each.kind.has(Trait.RIVALS))[:LIKELY_MAX]


def _one_of_each_sort(faults: Iterable[Fault], name: str, place: Place) -> list[Fault]:
    """The first fault of each sort, of this kind, at the requests of handlers."""
    found: dict[tuple[str, ...], Fault] = {}
    for each in faults:
        site = each.site
        if each.kind.name == name and site.place is place and site.handler:
            found.setdefault(sort_of(each), each)
    return [*found.values()]


def _visits_with_versions(visits: Iterable[Visit]) -> Iterator[tuple[Visit, int]]:
    """Each visit, with the cluster's version at the next one."""
    found = [*visits]
    for number, visit in enumerate(found):
        later = found[number + 1] if number + 1 < len(found) else visit
        yield visit, later.version


# The cluster's controllers that work for the objects of each kind.
_CONTROLLERS = {
    ("apps", "deployments"): ("deployment", "replicaset", "kubelet"),
    ("apps", "statefulsets"): ("statefulset", "kubelet"),
    ("apps", "daemonsets"): ("daemonset", "kubelet"),
    ("batch", "jobs"): ("job", "kubelet"),
    ("", "pods"): ("kubelet",),
}


def _controllers_for(trial: Trial) -> set[str]:
    """The controllers of the cluster that work for the operator's objects."""
    found: set[str] = {"garbage"} if trial.journal.writes else set()
    for event in seen_by(trial).events:
        found |= set(_CONTROLLERS.get(event.resource, ()))
    return found


def _lasting_faults(ahead: Ahead) -> Iterator[Fault]:
    """The faults that last for the whole script."""
    for kind in FAULTS:
        if Place.RUN in kind.places:
            for target in BEHAVIOURS[kind.name].targets(kind, ahead):
                yield Fault(kind, Site(Place.RUN, "", "", target))


# The faults of a kind that are tried before the next kind has its turn. In bench/bugs a
# fault shows a bug after 20 schedules on average, and 71 at most. With one fault for
# each turn it takes 32 and 76, without turns 21 and 94.
_TURN = 3


def _faults_by_novelty(faults: Iterable[Fault]) -> list[Fault]:
    """The first of each sort, then the second of each, and so on; the kinds by turns.

    So a small budget covers some of every kind, regardless of the number of effects.
    """
    levels, places = Counter[tuple[str, ...]](), Counter[tuple[int, str]]()
    ranked = []
    for number, each in enumerate(faults):
        sort, kind = sort_of(each), each.kind.name
        level = levels[sort]
        turn = places[level, kind] // _TURN
        ranked.append((level, turn, each.kind.rank, number, each))
        levels[sort] += 1
        places[level, kind] += 1
    return [each for *_, each in sorted(ranked, key=lambda found: found[:4])]


def sort_of(fault: Fault) -> tuple[str, str, str, str]:
    """The sort of a fault: its action, the effect, the kind, and the handler."""
    site = fault.site
    return fault.kind.name, site.handler, site.verb, site.target.partition("/")[0]


def digest_of(seen: Seen) -> str:
    """A digest of all that a trial has done and caused: equal for equal trials."""
    text = hashlib.blake2b(digest_size=16)
    for alias, world in sorted(seen.world.items()):
        text.update(alias.encode() + world)
    for each in seen.trial.journal.writes:
        text.update(f"{each.site}{each.before}{each.after}".encode())
    for decision in (found.decision for found in seen.trial.journal.reviews.decided):
        text.update(f"{decision.message}{decision.warnings}".encode())
    return text.hexdigest()


def is_special(schedule: Schedule) -> bool:
    """Whether a schedule needs several API servers, or a restored backup."""
    return any(each.kind.has(Trait.SPECIAL) for each in schedule)
