"""The line of a check before its faults: the first verdict, and an estimated time."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence

from fnop.adapters.check.limits import Limits
from fnop.adapters.common.plain import echo
from fnop.core.values.errors import number_of
from fnop.interpreters.check.campaign.campaign import Campaign
from fnop.interpreters.check.campaign.explore import Explorer
from fnop.interpreters.check.campaign.reports import Pairs, Result, Task
from fnop.interpreters.check.properties import judged
from fnop.interpreters.check.properties.evidence import Violation, seen_by
from fnop.interpreters.check.trials.trial import Trial

__all__ = ["Outlook"]

# A check that ends within this time needs no estimate.
_SHORT_SECONDS = 5.0


class Outlook:
    """The results of the runs without faults, until all of them are there.

    Then a line reports them and the `tasks` with faults, if those are going to take
    more than some seconds.
    """

    def __init__(
        self,
        campaign: Campaign,
        tasks: Sequence[Task],
        limits: Limits,
        jobs: int = 1,
        played: Callable[[Explorer], object] = lambda explorer: _play_half(explorer),
    ) -> None:
        self._campaign, self._limits, self._jobs = campaign, limits, jobs
        self._played = played
        number = len(campaign.explorers)
        own = [each for each in tasks if each.case < number]
        self._awaited = sum(not each.schedule for each in own)
        budget = campaign.options.budget
        faulty = [each for each in own if each.schedule and each.pairs is Pairs.NONE]
        left = None if budget is None else max(0, budget - self._awaited)
        self._faulty = faulty[:left]
        self._has_pairs = any(each.pairs is Pairs.NEAR for each in own)
        self._violations: list[Violation] = []

    def take(self, result: Result) -> None:
        """Take in a result; print the line after the last one without a fault."""
        is_own = result.task.case < len(self._campaign.explorers)
        if result.task.schedule or not is_own:
            return
        self._awaited -= 1
        self._violations += [e for each in result.verdicts for e in each.violations]
        if not self._awaited and self._faulty and not self._limits.is_quiet:
            self._tell()

    def _tell(self) -> None:
        seconds = self._estimate()
        if seconds < _SHORT_SECONDS:
            return
        schedules = number_of(len(self._faulty), "schedule")
        pairs = ", and their pairs besides" if self._has_pairs else ""
        left = self._limits.left()
        more = f", of {left:.0f} s that are left" if seconds > left else ""
        if sys.stderr.isatty():
            echo("", err=True)  # the progress bar has begun this line
        self._limits.say(
            f"without faults {_verdict(self._violations)}; {schedules} with faults "
            f"follow, about {seconds:.0f} s{more}{pairs}"
        )

    def _estimate(self) -> float:
        """Estimate the seconds that all schedules with faults take.

        One script is played again. The estimate assumes that the others take as long
        for each turn.
        """
        numbers = Counter(each.case for each in self._faulty)
        (often, _), *_ = numbers.most_common(1)
        explorers = self._campaign.explorers
        began = self._limits.now
        self._played(explorers[often])
        took = (self._limits.now - began) / max(1, explorers[often].turns)
        turns = sum(explorers[each].turns * n for each, n in numbers.items())
        return took * turns / self._jobs


def _play_half(explorer: Explorer) -> object:
    """Play the second half of a script, without faults, and judge it.

    On average, a fault strikes in the middle of a script.
    """
    forks = [*explorer.reference.forks.values()]
    middle = forks[len(forks) // 2].fork() if forks else None
    trial = middle or Trial(explorer.reference.scene)
    return judged(explorer.reference.benign, seen_by(trial.play()))


def _verdict(violations: Sequence[Violation]) -> str:
    if not violations:
        return "no property is violated"
    names = [*dict.fromkeys(each.property for each in violations)]
    first = violations[0].message
    if len(names) == 1:
        return f"{names[0]} is violated ({first})"
    return f"{', '.join(names)} are violated ({names[0]}: {first})"
