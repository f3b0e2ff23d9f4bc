"""All cases of an operator, tried in one order, within a budget.

The order is by rounds. First come former failures; then the benign runs; then every
single fault, beginning with untried sorts. Likely pairs follow, then other near pairs,
then random schedules. The order is the same in every process, so a campaign can be cut
into shards. Facts that differ from call to call, such as former failures, change the
order only within a shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from msgspec import Struct

from fnop.core.values.errors import described
from fnop.effects.structs import replace
from fnop.interpreters.check.admission.unasked import unshown_by
from fnop.interpreters.check.campaign.explore import (
    LIKELY_MAX,
    Case,
    Explorer,
    Verdict,
    explorers_of,
)
from fnop.interpreters.check.campaign.reports import (
    Groups,
    Pairs,
    Report,
    Result,
    Task,
    has_faults,
    unsure_of,
)
from fnop.interpreters.check.properties import OF_ADMISSION, OF_DECISIONS, PROPERTIES
from fnop.interpreters.check.state.kinds import Schedule
from fnop.interpreters.check.state.scripts import ScriptProblem
from fnop.interpreters.check.trials.catalogue import FAULTS
from fnop.interpreters.simulation.admission import has_admission

__all__ = [
    "Campaign",
    "Known",
    "Options",
    "Report",
    "Result",
    "Task",
    "heeded_together",
    "within",
]


# At most one likely pair is tried for this number of single faults,
PAIRS_SHARE = 4
# ... but at least this number of first faults begin some.
FIRSTS_MIN = 3


class Options(Struct, frozen=True):
    """The extent of a campaign: at most `budget` schedules.

    With `depth` 1 all single faults are tried. With None a few likely pairs are tried,
    too; with 2 also all pairs that are near each other. `randoms` are random schedules
    for each case. For `shard` (k, n) only each n-th schedule is tried, from the k-th
    on. `only` are names of properties, `without` those that are skipped. `confirm`
    tries each alarm again under another seed.
    """

    depth: int | None = 1
    budget: int | None = None
    randoms: int = 0
    seed: int = 0
    shard: tuple[int, int] = (1, 1)
    only: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    confirm: bool = True

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the properties to judge."""
        return tuple(
            name
            for name in PROPERTIES
            if (not self.only or name in self.only) and name not in self.without
        )


class Known(Struct, frozen=True):
    """A failure that was found before: its schedule, in the case that shows it."""

    case: Case
    schedule: Schedule


def heeded_together(explorers: Iterable[Explorer]) -> None:
    """Let all explorers heed what matters in the run of one of them."""
    several = [each.reference.benign.heeding for each in explorers]
    for each in several:
        each.beside = [other for other in several if other is not each]


class Campaign:
    """The cases of an operator with their explorers."""

    def __init__(
        self,
        cases: Sequence[Case],
        options: Options = Options(),  # noqa: B008
        has_time: Callable[[], bool] = lambda: True,
    ) -> None:
        self.explorers = explorers_of(cases, has_time)
        heeded_together(self.explorers)
        self.options = options
        self._former: list[Case] = []
        self._made: dict[int, Explorer] = {}
        self._known: list[Task] = []

    def remember(self, known: Iterable[Known]) -> None:
        """Try these former failures first."""
        self._known = [*dict.fromkeys(map(self._task_of, known))]

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the properties to judge.

        Without admission handlers, their properties are skipped unless named. Those of
        decisions are skipped for an operator that lives in this process: its handlers
        act, and cannot be called again without a consequence.
        """
        unjudged = self._unjudged
        names = tuple(e for e in self.options.properties if e not in unjudged)
        if any(has_admission(each.program) for each in self._cases):
            return names
        named = self.options.only
        return tuple(e for e in names if e not in OF_ADMISSION or e in named)

    @property
    def _unjudged(self) -> frozenset[str]:
        lives = any(each.begin is not None for each in self._cases)
        return OF_DECISIONS if lives else frozenset()

    @property
    def _cases(self) -> list[Case]:
        return [*(each.case for each in self.explorers), *self._former]

    def explorer_of(self, name: str) -> Explorer:
        """The explorer of a case, by its name."""
        names = [each.name for each in self._cases]
        return self._explorer(names.index(name))

    def _explorer(self, number: int) -> Explorer:
        """The explorer of a case; for a former failure it is created on demand."""
        if number < len(self.explorers):
            return self.explorers[number]
        if number not in self._made:
            case = self._former[number - len(self.explorers)]
            self._made[number] = Explorer(case)
            heeded_together([*self.explorers, *self._made.values()])
        return self._made[number]

    # ----------------------------------------------------------------- the order

    def _task_of(self, known: Known) -> Task:
        """The task of a former failure, of an existing case or of its own."""
        for number, case in enumerate(self._cases):
            if case is known.case:
                return Task(number, known.schedule)
        self._former.append(known.case)
        return Task(len(self._cases) - 1, known.schedule)

    def tasks(self, changed: Collection[str] = ()) -> list[Task]:
        """All tasks of this shard, in their order.

        Former failures come first: those that are tasks of this shard anyway, and in
        the first shard all that no shard has. Single faults at handlers that have
        `changed`, by their ids, come before others. The split into shards depends on
        neither: shards that run one after another know different failures.
        """
        whole = self._all_tasks()
        place, number = self.options.shard
        part = dict.fromkeys(whole[place - 1 :: number])
        others = set(whole) if place == 1 else None
        first = [
            each
            for each in self._known
            if each in part or (others is not None and each not in others)
        ]
        for each in first:
            part.pop(each, None)
        return [*first, *sorted(part, key=lambda task: _rank(task, changed))]

    def _all_tasks(self) -> list[Task]:
        """The tasks of all shards, without former failures."""
        found = [Task(number, ()) for number in range(len(self.explorers))]
        singles = [*self._single_fault_tasks()]
        found += singles
        if self.options.depth != 1:
            found += self._likely_pairs(singles)
        if self.options.depth == 2:
            found += [replace(each, pairs=Pairs.NEAR) for each in singles]
        found += self._random_tasks()
        return [*dict.fromkeys(found)]

    def _likely_pairs(self, singles: Sequence[Task]) -> list[Task]:
        """The tasks of likely pairs: at most a fraction of the number of single faults.

        The kinds of their first faults take turns. Each fault is tried in one script
        before any is tried in a second: scripts begin alike.
        """
        kinds: dict[str, list[tuple[int, Task]]] = {
            each.name: [] for each in FAULTS if each.likely_next
        }
        scripts = Counter[Schedule]()
        for each in singles:
            first = each.schedule
            if self.explorers[each.case].may_begin_a_pair(first):
                kinds[first[0].kind.name].append((scripts[first], each))
                scripts[first] += 1
        lists = [sorted(found, key=lambda each: each[0]) for found in kinds.values()]
        firsts = [e for turn in zip_longest(*lists) for e in turn if e is not None]
        number = max(FIRSTS_MIN, len(singles) // (PAIRS_SHARE * LIKELY_MAX))
        return [replace(each, pairs=Pairs.LIKELY) for _, each in firsts[:number]]

    def _single_fault_tasks(self) -> Iterator[Task]:
        """The single faults of all cases by turns: each list begins with new sorts."""
        lists = [each.singles() for each in self.explorers]
        longest = max(map(len, lists), default=0)
        for place in range(longest):
            for number, schedules in enumerate(lists):
                if place < len(schedules):
                    yield Task(number, schedules[place])

    def _random_tasks(self) -> Iterator[Task]:
        for number, explorer in enumerate(self.explorers):
            for schedule in explorer.random(self.options.randoms, self.options.seed):
                yield Task(number, schedule)

    # ---------------------------------------------------------------------- trying

    def tried(self, task: Task) -> Result:
        """Try a task."""
        if task.case >= len(self.explorers):
            return self._retry_failure(task)
        return self._try_task(self.explorers[task.case], task)

    def _retry_failure(self, task: Task) -> Result:
        """Try a former failure; the result is empty if that is not possible.

        Its kinds and handlers may be gone, and then the trial shows nothing.
        """
        nothing = Result(task, ())
        try:
            explorer = self._explorer(task.case)
        except Exception:  # any failure of the present operator
            return nothing
        if explorer.mistakes or explorer.refused:
            return nothing
        found = self._try_task(explorer, task)
        return found if all(each.struck for each in found.verdicts) else nothing

    def _try_task(self, explorer: Explorer, task: Task) -> Result:
        try:
            if task.pairs is Pairs.LIKELY:
                verdicts = tuple(
                    map(self._filter_violations, explorer.likely_pairs(task.schedule))
                )
            elif task.pairs is Pairs.NEAR:
                verdicts = tuple(
                    map(self._filter_violations, explorer.pairs(task.schedule))
                )
            elif not task.schedule:
                verdicts = (self._filter_violations(explorer.benign),)
            else:
                verdicts = (self._filter_violations(explorer.tried(task.schedule)),)
        except ScriptProblem:  # it is the author's, and concerns more than one schedule
            raise
        except Exception as problem:  # a defect of the simulator loses one schedule
            broken = described(problem)
            return Result(task, (Verdict(task.schedule, (), False),), (), broken)
        if not self.options.confirm:
            return Result(task, verdicts)
        sure, doubted = [], []
        for verdict in verdicts:
            if verdict.violations:
                again = explorer.confirmed(verdict)
                if len(again) < len(verdict.violations):
                    lost = tuple(e for e in verdict.violations if e not in again)
                    doubted.append(replace(verdict, violations=lost))
                verdict = replace(verdict, violations=again)
            sure.append(verdict)
        return Result(task, tuple(sure), tuple(doubted))

    def _filter_violations(self, verdict: Verdict) -> Verdict:
        names = self.properties
        found = tuple(each for each in verdict.violations if each.property in names)
        return replace(verdict, violations=found)

    def run(
        self,
        tasks: Sequence[Task],
        each: Callable[[Result, int, int], bool] = lambda result, done, all: True,
    ) -> list[Result]:
        """Try the tasks in their order, until `each` returns False or at the budget."""
        results: list[Result] = []
        for result in within(map(self.tried, tasks), self.options.budget):
            results.append(result)
            if not each(result, len(results), len(tasks)):
                break
        return results

    def report(
        self,
        results: Sequence[Result],
        tasks: Sequence[Task],
        beside: Sequence[Result] = (),
        cut: str = "budget",
    ) -> Report:
        """Put the results together: they may come from several processes.

        The results in `beside` do not belong to schedules; `cut` is the reason why
        tasks have no result.
        """
        names, own = [each.name for each in self._cases], len(self.explorers)
        groups = Groups(names, own)
        groups.take(results)
        groups.take_beside(beside)
        former = _former_cases(results, own)
        left = _untried_tasks(tasks, results)
        at_least = _leaves_more(left, results)
        endless = self._endless_cases()
        report = replace(
            groups.report(),
            left=len(left),
            at_least=at_least,
            cut=(cut,) if left or at_least else (),
            properties=self.properties,
            unjudged=tuple(e for e in PROPERTIES if e in self._unjudged),
            wanted=has_faults(tasks) or any(each.case in endless for each in tasks),
            endless=dict(self._endless_reasons(endless, tasks)),
            unshown=unshown_by([e.reference.benign.admitting for e in self.explorers]),
            former=len(former),
            cases=tuple(names[:own] + [names[e] for e in former]),
            is_empty=not tasks,
        )
        ended = _has_benign_run(results, endless)
        return replace(report, unsure=unsure_of(report, tasks, results, ended))

    def _endless_cases(self) -> dict[int, str]:
        """The numbers of the cases whose run without faults does not end, and why."""
        found = {}
        for number, explorer in enumerate(self.explorers):
            trial = explorer.reference.benign.seen.trial
            if trial.is_endless:
                reasons = [
                    e.reason for e in trial.journal.unsettled.values() if e.endless
                ]
                found[number] = reasons[0]
        return found

    def _endless_reasons(
        self, endless: Mapping[int, str], tasks: Sequence[Task]
    ) -> Iterator[tuple[str, str]]:
        """The names of endless cases that have tasks, with the reasons."""
        numbers = {each.case for each in tasks}
        for number, why in endless.items():
            if number in numbers:
                yield self.explorers[number].case.name, why


def _former_cases(results: Sequence[Result], own: int) -> list[int]:
    """The numbers of the former cases that were tried; `own` is the first of them."""
    return sorted({e.task.case for e in results if e.task.case >= own and e.verdicts})


def _untried_tasks(tasks: Sequence[Task], results: Sequence[Result]) -> list[Task]:
    done = {each.task for each in results}
    return [each for each in tasks if each not in done]


def _leaves_more(left: Sequence[Task], results: Sequence[Result]) -> bool:
    """Whether more schedules are untried than `left` shows."""
    has_pairs = any(each.pairs is not Pairs.NONE for each in left)
    return has_pairs or not all(each.whole for each in results)


def _has_benign_run(results: Sequence[Result], endless: Collection[int]) -> bool:
    """Whether a run without faults has ended."""
    return any(
        each.verdicts and not each.task.schedule and each.task.case not in endless
        for each in results
    )


def _rank(task: Task, changed: Collection[str]) -> int:
    """The round of a task within a shard."""
    if not task.schedule:
        return 0
    is_single = len(task.schedule) == 1 and task.pairs is Pairs.NONE
    return 1 if is_single and _is_of(task, changed) else 2


def _is_of(task: Task, changed: Collection[str]) -> bool:
    """Whether it strikes one of these handlers, or a sub-handler of one.

    A write may come from several handlers, whose changes went out in one request.
    """
    return any(
        who == each or who.startswith(f"{each}/")
        for who in task.schedule[0].site.handler.split(", ")
        for each in changed
    )


def within(results: Iterable[Result], budget: int | None) -> Iterator[Result]:
    """The results up to the budget of schedules; the last may be cut off."""
    left = budget
    for result in results:
        if left is None:
            yield result
            continue
        whole = len(result.verdicts) <= left
        yield replace(result, verdicts=result.verdicts[:left], whole=whole)
        left -= len(result.verdicts)
        if left <= 0:
            return
