"""The results of a campaign, and the report that combines them.

A report says for each property whether it is violated, holds in everything that was
tried, or is unknown. Reports of shards can be combined again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain

from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.explore import Failure, Verdict, is_special
from fnop.interpreters.check.properties import FAULTLESS
from fnop.interpreters.check.state.kinds import Schedule

__all__ = [
    "CAUSES",
    "SHOWN_MAX",
    "Groups",
    "Pairs",
    "Report",
    "Result",
    "Task",
    "has_faults",
    "merged",
    "unprepared",
    "unsure_of",
]

# The most groups of failures with a failure that is shrunk and shown.
SHOWN_MAX = 10


class Pairs(Enum):
    """The pairs of faults that begin with a first one: none, the likely ones, or all.

    ALL are the pairs whose second fault is near the first one.
    """

    NONE = "none"
    LIKELY = "likely"
    NEAR = "near"


class Task(Struct, frozen=True):
    """One schedule of one case, or the `pairs` that begin with it."""

    case: int
    schedule: Schedule
    pairs: Pairs = Pairs.NONE


class Result(Struct, frozen=True):
    """The result of a task: its verdicts, and the alarms that were not confirmed.

    `broken` is the error of the simulator itself, after which nothing is known. A
    result that is not `whole` was cut off by the budget.
    """

    task: Task
    verdicts: tuple[Verdict, ...]
    doubted: tuple[Verdict, ...] = ()
    broken: str = ""
    whole: bool = True

    @property
    def fails(self) -> bool:
        """Whether it shows a failure; failures by special faults do not count."""
        return any(e.violations and not is_special(e.schedule) for e in self.verdicts)


class Report(Struct, frozen=True):
    """The findings of a campaign.

    `failures` are grouped: the first of each property and sort of site, with the number
    of others like it. `finer` has the groups of each script apart. `unknown` are
    schedules whose fault did not occur. `left` is the number of schedules that were not
    tried, or `at_least` that many. `cut` gives the reasons, in the words of `CAUSES`.
    `unsure` are the properties about which nothing is known, each with the reason.

    `struck` is the number of faults that have occurred, `wanted` whether any fault was
    to be tried. `endless` are the scripts whose run never ends, so that faults could
    not be tried, with the reason. `unshown` are the properties of admission handlers
    that the runs cannot show, with the reasons. `unjudged` are those that do not apply
    to the operator, because its handlers act by themselves. `former` is the number of
    cases that were found before. If the report combines several shards, `missing` are
    the absent ones.
    """

    cases: tuple[str, ...]
    tried: int
    failures: tuple[tuple[Failure, int], ...]
    doubted: tuple[Failure, ...]
    unknown: int
    left: int
    by_fault: Mapping[str, int]
    properties: tuple[str, ...]
    broken: tuple[str, ...] = ()
    finer: tuple[tuple[Failure, int], ...] = ()
    at_least: bool = False
    cut: tuple[str, ...] = ()
    unsure: Mapping[str, str] = {}
    struck: int = 0
    wanted: bool = False
    endless: Mapping[str, str] = {}
    unshown: Mapping[str, str] = {}
    former: int = 0
    is_empty: bool = False
    shards: int = 1
    missing: tuple[int, ...] = ()
    unjudged: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found; failures by special faults do not count."""
        return all(each.special for each, _ in self.failures)

    @property
    def is_known(self) -> bool:
        """Whether a fault has occurred, if any was to be tried."""
        if self.missing:
            return False
        return self.struck > 0 or not self.wanted or not self.unsure

    def verdict(self, name: str) -> str:
        """The verdict on a property: "fail", "special", "pass" or "unknown".

        For "special", only special faults have shown failures.
        """
        shown = [e.special for e, _ in self.failures if e.violation.property == name]
        if shown:
            return "special" if all(shown) else "fail"
        return "unknown" if name in self.unsure else "pass"


# The reasons why something was not tried, in words.
CAUSES = {
    "budget": "the budget was used up",
    "time": "the time was over",
    "signal": "it was interrupted",
    "failure": "--fail-fast ends with the first failure",
}


def unsure_of(
    report: Report, tasks: Sequence[Task], results: Sequence[Result], ended: bool
) -> dict[str, str]:
    """The properties about which nothing is known, each with the reason.

    A failed property is known. For any other, depending on the property, a fault must
    have occurred, or a run without faults must have `ended`. The run must also show
    something of the property.
    """
    found = {}
    for name in report.properties:
        if report.verdict(name) in ("fail", "special"):
            continue
        if name in FAULTLESS and not ended:
            found[name] = _why_no_run(report)
        elif name in report.unshown:
            found[name] = report.unshown[name]
        elif name not in FAULTLESS and not report.struck:
            found[name] = _why_no_fault(report, tasks, results)
    return found


def _why_no_run(report: Report) -> str:
    if report.is_empty:
        return "this shard has no schedules"
    if report.endless:
        return "the run without faults does not end"
    return "no run without faults was tried"


def _why_no_fault(
    report: Report, tasks: Sequence[Task], results: Sequence[Result]
) -> str:
    if report.is_empty:
        return "this shard has no schedules"
    if not has_faults(tasks):
        if report.endless:
            return "no fault was tried: the run without faults does not end"
        return "this shard has no schedule with a fault"
    if not any(e.verdicts for e in results if e.task.schedule):
        why = ", ".join(CAUSES[each] for each in report.cut)
        return f"no fault was tried: {why}" if why else "no fault was tried"
    return "no fault occurred"


def unprepared(properties: tuple[str, ...]) -> Report:
    """The report if the time ended before the runs without faults were done."""
    why = "the time was over before anything was tried"
    unsure = dict.fromkeys(properties, why)
    report = Report((), 0, (), (), 0, 0, {}, properties)
    return replace(report, cut=("time",), unsure=unsure, wanted=True)


class Groups:
    """The results of a campaign, counted; like failures are one group.

    The cases from the number `former` on were found before. Their failures are
    reported; if others show the same, they do not count in addition. The failures of a
    likely pair are reported if no other schedule violates the property.
    """

    def __init__(self, names: Sequence[str], former: int) -> None:
        self._names, self._former = names, former
        self._groups: dict[tuple[object, ...], tuple[Failure, int]] = {}
        self._finer: dict[tuple[object, ...], tuple[Failure, int]] = {}
        self._likely: list[tuple[int, Verdict]] = []
        self._doubted: list[Failure] = []
        self._broken: list[str] = []
        self._faults: Counter[str] = Counter()
        self._known: set[tuple[int, Schedule]] = set()
        self._tried = self._unknown = self._struck = 0

    def take(self, results: Iterable[Result]) -> None:
        """Count the verdicts of results, each schedule of a case once."""
        for result in results:
            for verdict in result.verdicts:
                key = result.task.case, verdict.schedule
                if key in self._known:
                    continue  # a pair that was found before, and also is a near pair
                self._known.add(key)
                self._count(verdict)
                if result.task.pairs is Pairs.LIKELY:
                    self._likely.append((result.task.case, verdict))
                else:
                    self._group(result.task.case, verdict)
            name = self._names[result.task.case]
            for verdict in result.doubted:
                self._doubted += _failures(name, verdict)
            if result.broken:
                self._broken.append(result.broken)

    def take_beside(self, results: Iterable[Result]) -> None:
        """Add the failures of runs that do not belong to schedules."""
        for result in results:
            for verdict in result.verdicts:
                self._group(result.task.case, verdict)

    def _count(self, verdict: Verdict) -> None:
        self._tried += 1
        self._unknown += not verdict.struck
        self._struck += bool(verdict.schedule) and verdict.struck
        self._faults.update(each.kind.code for each in verdict.schedule)

    def _group(self, case: int, verdict: Verdict) -> None:
        number = 0 if case >= self._former else 1
        for failure in _failures(self._names[case], verdict):
            _add(self._groups, _sort(failure), failure, number)
            _add(self._finer, (failure.case, *_sort(failure)), failure, number)

    def report(self) -> Report:
        """The report about the results so far."""
        known = {each.violation.property for each, _ in self._groups.values()}
        for case, verdict in self._likely:
            new = [e for e in verdict.violations if e.property not in known]
            self._group(case, replace(verdict, violations=tuple(new)))
        self._likely = []
        return Report(
            tuple(self._names),
            self._tried,
            _sorted_groups(self._groups),
            tuple(self._doubted),
            self._unknown,
            0,
            dict(sorted(self._faults.items())),
            (),
            tuple(self._broken),
            _sorted_groups(self._finer),
            struck=self._struck,
        )


def _add(
    groups: dict[tuple[object, ...], tuple[Failure, int]],
    key: tuple[object, ...],
    failure: Failure,
    number: int,
) -> None:
    first, others = groups.get(key, (failure, 0))
    groups[key] = min(first, failure, key=_weight), others + number


def _sorted_groups(
    groups: Mapping[tuple[object, ...], tuple[Failure, int]],
) -> tuple[tuple[Failure, int], ...]:
    found = [(each, max(1, number)) for each, number in groups.values()]
    return tuple(sorted(found, key=lambda group: _weight(group[0])))


def merged(reports: Sequence[Report], missing: Sequence[int] = ()) -> Report:
    """The report of several shards of one campaign, without the `missing` ones.

    Failures of the same sort are one group in each script.
    """
    failures = _merged_failures(reports)
    return replace(
        reports[0],
        cases=_each_once(each.cases for each in reports),
        tried=sum(each.tried for each in reports),
        failures=failures,
        finer=failures,
        doubted=tuple(chain.from_iterable(each.doubted for each in reports)),
        unknown=sum(each.unknown for each in reports),
        left=sum(each.left for each in reports),
        by_fault=_merged_counts(each.by_fault for each in reports),
        broken=tuple(chain.from_iterable(each.broken for each in reports)),
        at_least=any(each.at_least for each in reports),
        cut=_each_once(each.cut for each in reports),
        unsure=_unsure_in_all(reports, failures),
        struck=sum(each.struck for each in reports),
        wanted=any(each.wanted for each in reports),
        endless=dict(chain.from_iterable(each.endless.items() for each in reports)),
        former=max(each.former for each in reports),
        is_empty=all(each.is_empty for each in reports),
        shards=len(reports) + len(missing),
        missing=tuple(missing),
    )


def _merged_failures(reports: Sequence[Report]) -> tuple[tuple[Failure, int], ...]:
    groups: dict[tuple[object, ...], tuple[Failure, int]] = {}
    for report in reports:
        for failure, number in report.finer:
            _add(groups, (failure.case, *_sort(failure)), failure, number)
    return _sorted_groups(groups)


def _each_once(texts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(texts)))


def _merged_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


def _unsure_in_all(
    reports: Sequence[Report], failures: Sequence[tuple[Failure, int]]
) -> dict[str, str]:
    """The properties that no shard knows, with the first shard's reasons."""
    violated = {each.violation.property for each, _ in failures}
    return {
        name: why
        for name, why in reports[0].unsure.items()
        if name not in violated and all(name in each.unsure for each in reports)
    }


def _failures(case: str, verdict: Verdict) -> Iterator[Failure]:
    special = is_special(verdict.schedule)
    for violation in verdict.violations:
        yield Failure(case, verdict.schedule, violation, special)


def _weight(failure: Failure) -> tuple[bool, int]:
    return failure.special, len(failure.schedule)


def _sort(failure: Failure) -> tuple[object, ...]:
    """The features that failures of the same cause share, as far as they show.

    If the benign run shows a failure, every fault shows it as well.
    """
    site = failure.site
    where = None if site is None else (site.handler, site.verb, _kind(site.target))
    return failure.violation.property, where, failure.special


def _kind(target: str) -> str:
    return target.partition("/")[0]


def has_faults(tasks: Iterable[Task]) -> bool:
    """Whether the schedules of the tasks contain faults."""
    return any(each.schedule for each in tasks)
