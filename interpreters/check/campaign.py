"""All cases of an operator, tried in one order, within a budget.

The order is by rounds: the benign runs, what has failed before, every single fault,
those of a sort that was not tried yet first; then pairs; then random schedules. It is
the same in every process, so a campaign can be cut into shards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from fnop.interpreters.check.explore import (
    Case,
    Explorer,
    Failure,
    Verdict,
    is_special,
)
from fnop.interpreters.check.faults import Schedule
from fnop.interpreters.check.properties import PROPERTIES

__all__ = ["Campaign", "Options", "Report", "Result", "Task", "within"]

# The most groups of failures of which each is shrunk and shown.
SHOWN_MAX = 10


class Options(NamedTuple):
    """The extent of a campaign: with `depth` 2 pairs, too; at most `budget` schedules.

    `randoms` are random schedules for each case. Of `shard` (k, n) only each n-th
    schedule is tried, from the k-th on. `only` are names of properties, `without` those
    that are left out. `confirm` tries each alarm again under another seed.
    """

    depth: int = 1
    budget: int | None = None
    randoms: int = 0
    seed: int = 0
    shard: tuple[int, int] = (1, 1)
    only: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    confirm: bool = True


class Task(NamedTuple):
    """One schedule of one case; with `near` also the pairs that begin with it."""

    case: int
    schedule: Schedule
    near: bool = False


class Result(NamedTuple):
    """The result of a task: verdicts, and those alarms that were not confirmed.

    `broken` is the error of the simulator itself, after which nothing is known.
    """

    task: Task
    verdicts: tuple[Verdict, ...]
    doubted: tuple[Verdict, ...] = ()
    broken: str = ""


class Report(NamedTuple):
    """The findings of a campaign.

    `failures` are grouped: the first of each property and sort of site, with the number
    of others like it. `unknown` are schedules whose fault did not come about, `left` is
    the number of schedules that the budget or the time has cut.
    """

    cases: tuple[str, ...]
    tried: int
    failures: tuple[tuple[Failure, int], ...]
    doubted: tuple[Failure, ...]
    unknown: int
    left: int
    by_fault: dict[str, int]
    properties: tuple[str, ...]
    broken: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found; special faults do not count."""
        return all(each.special for each, _ in self.failures)


class Campaign:
    """The cases of an operator with their explorers."""

    def __init__(self, cases: Sequence[Case], options: Options = Options()) -> None:  # noqa: B008
        self.explorers = [Explorer(each) for each in cases]
        self.options = options

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the properties that are judged."""
        only, without = self.options.only, self.options.without
        return tuple(
            name
            for name in PROPERTIES
            if (not only or name in only) and name not in without
        )

    # ----------------------------------------------------------------- the order

    def tasks(self, known: Iterable[Task] = ()) -> list[Task]:
        """All tasks of this shard, in their order; `known` failures come first."""
        first = [Task(number, ()) for number in range(len(self.explorers))]
        ordered = [*first, *known, *self._singles()]
        ordered += self._randoms()
        found = [*dict.fromkeys(ordered)]
        if self.options.depth > 1:
            near = [each._replace(near=True) for each in self._singles()]
            found += near
        place, number = self.options.shard
        return found[place - 1 :: number]

    def _singles(self) -> Iterator[Task]:
        """The single faults of all cases by turns: each list begins with new sorts."""
        lists = [each.singles() for each in self.explorers]
        longest = max(map(len, lists), default=0)
        for place in range(longest):
            for number, schedules in enumerate(lists):
                if place < len(schedules):
                    yield Task(number, schedules[place])

    def _randoms(self) -> Iterator[Task]:
        for number, explorer in enumerate(self.explorers):
            for schedule in explorer.random(self.options.randoms, self.options.seed):
                yield Task(number, schedule)

    # ---------------------------------------------------------------------- trying

    def tried(self, task: Task) -> Result:
        """Try a task."""
        explorer = self.explorers[task.case]
        try:
            if task.near:
                verdicts = tuple(map(self._wanted, explorer.pairs(task.schedule)))
            elif not task.schedule:
                verdicts = (self._wanted(explorer.benign),)
            else:
                verdicts = (self._wanted(explorer.tried(task.schedule)),)
        except Exception as problem:  # a defect of the simulator loses one schedule
            broken = f"{type(problem).__name__}: {problem}"
            return Result(task, (Verdict(task.schedule, (), False),), (), broken)
        if not self.options.confirm:
            return Result(task, verdicts)
        sure, doubted = [], []
        for verdict in verdicts:
            if verdict.violations:
                again = explorer.confirmed(verdict)
                if len(again) < len(verdict.violations):
                    lost = tuple(e for e in verdict.violations if e not in again)
                    doubted.append(verdict._replace(violations=lost))
                verdict = verdict._replace(violations=again)
            sure.append(verdict)
        return Result(task, tuple(sure), tuple(doubted))

    def _wanted(self, verdict: Verdict) -> Verdict:
        names = self.properties
        found = tuple(each for each in verdict.violations if each.property in names)
        return verdict._replace(violations=found)

    def run(
        self,
        tasks: Sequence[Task],
        each: Callable[[Result, int, int], bool] = lambda result, done, all: True,
    ) -> list[Result]:
        """Try the tasks one after another, until `each` answers False or the budget."""
        results: list[Result] = []
        for result in within(map(self.tried, tasks), self.options.budget):
            results.append(result)
            if not each(result, len(results), len(tasks)):
                break
        return results

    def report(self, results: Sequence[Result], tasks: Sequence[Task]) -> Report:
        """Put the results together: they may come from several processes."""
        names = tuple(each.case.name for each in self.explorers)
        return reported(names, results, len(tasks), self.properties)


def within(results: Iterable[Result], budget: int | None) -> Iterator[Result]:
    """The results up to the budget of schedules; the last may be cut off."""
    left = budget
    for result in results:
        if left is None:
            yield result
            continue
        yield result._replace(verdicts=result.verdicts[:left])
        left -= len(result.verdicts)
        if left <= 0:
            return


def reported(
    cases: tuple[str, ...],
    results: Sequence[Result],
    tasks: int,
    properties: tuple[str, ...],
) -> Report:
    """The report of results, whose failures are grouped."""
    groups: dict[tuple[object, ...], tuple[Failure, int]] = {}
    doubted: list[Failure] = []
    faults: Counter[str] = Counter()
    unknown = tried = 0
    for result in results:
        name = cases[result.task.case]
        for verdict in result.verdicts:
            tried += 1
            unknown += not verdict.struck
            faults.update(each.kind.code for each in verdict.schedule)
            for failure in _failures(name, verdict):
                key = _sort(failure)
                first, number = groups.get(key, (failure, 0))
                groups[key] = (min(first, failure, key=_weight), number + 1)
        for verdict in result.doubted:
            doubted += _failures(name, verdict)
    found = sorted(groups.values(), key=lambda group: _weight(group[0]))
    return Report(
        cases,
        tried,
        tuple(found),
        tuple(doubted),
        unknown,
        max(0, tasks - len(results)),
        dict(sorted(faults.items())),
        properties,
        tuple(each.broken for each in results if each.broken),
    )


def _failures(case: str, verdict: Verdict) -> Iterator[Failure]:
    special = is_special(verdict.schedule)
    for violation in verdict.violations:
        yield Failure(case, verdict.schedule, violation, special)


def _weight(failure: Failure) -> tuple[bool, int]:
    return failure.special, len(failure.schedule)


def _sort(failure: Failure) -> tuple[object, ...]:
    """The features that failures of the same cause share, as far as can be told.

    One that the benign run shows already is shown by every fault as well.
    """
    site = failure.site
    where = None if site is None else (site.handler, site.verb, _kind(site.target))
    return failure.violation.property, where, failure.special


def _kind(target: str) -> str:
    return target.partition("/")[0]
