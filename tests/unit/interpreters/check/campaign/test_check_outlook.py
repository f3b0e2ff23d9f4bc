"""Before its faults a check reports its findings, and an estimate of its duration."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from fnop.adapters.check.limits import Limits
from fnop.adapters.check.outlook import Outlook
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.campaign import Campaign, Options
from fnop.interpreters.check.campaign.explore import Case, Verdict
from fnop.interpreters.check.campaign.reports import Result
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.check.state.kinds import Fault, Place, Schedule, Site
from fnop.interpreters.check.trials.catalogue import BY_NAME
from fnop.interpreters.runtime.clock import VirtualClock

ASTRAY = Violation("history", "secrets/x is missing")


class Fake(NamedTuple):
    """An explorer whose run without faults takes this number of turns."""

    case: Case
    number: int
    turns: int

    def singles(self) -> list[Schedule]:
        sites = (
            Site(Place.WRITE, "h", "create", "pods/x", e) for e in range(self.number)
        )
        return [(Fault(BY_NAME["F1:after"], each),) for each in sites]

    def may_begin_a_pair(self, first: Schedule) -> bool:
        return False

    def random(self, count: int, seed: int) -> list[Schedule]:
        return []


def told(
    capsys: pytest.CaptureFixture[str],
    *violations: Violation,
    seconds: float = 2.0,
    jobs: int = 1,
    quiet: bool = False,
    limit: float | None = None,
    **options: Any,
) -> list[str]:
    """The lines before the faults of two scripts, one of which takes this long."""
    campaign = Campaign((), Options(**options))
    case, clock = Case(Program((), Settings())), VirtualClock()
    explorers: list[Any] = [Fake(case, 10, 100), Fake(case, 4, 50)]
    campaign.explorers = explorers
    limits = Limits(clock=clock, quiet=quiet, seconds=limit)

    def played(explorer: object) -> None:
        clock.advance_to(clock.elapsed + seconds)

    tasks = campaign.tasks()
    outlook = Outlook(campaign, tasks, limits, jobs, played)
    for each in tasks[:2]:
        assert capsys.readouterr().err == ""
        outlook.take(Result(each, (Verdict((), violations),)))
    found = capsys.readouterr().err.splitlines()
    outlook.take(Result(tasks[2], (Verdict(tasks[2].schedule, ()),)))
    assert capsys.readouterr().err == ""
    return found


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "14 schedules with faults follow, about 24 s"),
        ({"jobs": 2}, "14 schedules with faults follow, about 12 s"),
        ({"budget": 5}, "3 schedules with faults follow, about 5 s"),
        (
            {"limit": 9.0},
            "14 schedules with faults follow, about 24 s, of 7 s that are",
        ),
        ({"depth": 2}, "about 24 s, and their pairs besides"),
    ],
)
def test_the_schedules_and_their_time_are_told(
    capsys: pytest.CaptureFixture[str], options: dict[str, Any], sentence: str
) -> None:
    (line,) = told(capsys, **options)
    assert line.startswith("fnop: without faults no property is violated; ")
    assert sentence in line


def test_what_the_runs_without_faults_have_shown_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (line,) = told(capsys, ASTRAY)
    assert "without faults history is violated (secrets/x is missing); " in line
    (line,) = told(capsys, ASTRAY, Violation("idle", "it does nothing"))
    assert "history, idle are violated (history: secrets/x is missing); " in line


@pytest.mark.parametrize("options", [{"seconds": 0.1}, {"quiet": True}, {"budget": 2}])
def test_a_short_check_needs_no_estimate(
    capsys: pytest.CaptureFixture[str], options: dict[str, Any]
) -> None:
    assert told(capsys, ASTRAY, **options) == []
