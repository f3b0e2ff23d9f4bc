"""The output of a check while it runs, and its early ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from fnop.adapters.check.limits import Limits
from fnop.adapters.check.run import FAST_SECONDS, Checking
from fnop.adapters.cli.check import options_of_check
from fnop.interpreters.check.campaign.explore import Verdict
from fnop.interpreters.check.campaign.reports import Result, Task
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.runtime.clock import VirtualClock
from tests.commands import fnop


def result(*violations: Violation) -> Result:
    return Result(Task(0, ()), (Verdict((), violations),))


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_the_first_line_comes_after_ten_seconds_and_the_others_more_seldom(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = VirtualClock()
    limits = Limits(clock=clock)
    told: list[tuple[int, str]] = []
    with limits.progress(400, "schedules") as progress:
        for second in range(1, 200):
            clock.advance_to(float(second))
            progress.update(2, result())
            told += [(second, line) for line in lines(capsys)]
    assert [second for second, _ in told] == [10, 20, 40, 80, 140]
    assert told[0][1] == (
        "fnop: 20 of 400 schedules after 10 s, no violation so far; about 190 s are "
        "left"
    )


def test_violations_are_told_before_they_are_confirmed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = VirtualClock()
    with Limits(clock=clock).progress(9, "schedules") as progress:
        progress.update(1, result(Violation("same_end", "it differs")))
        clock.advance_to(10.0)
        progress.update(1, result())
    (line,) = lines(capsys)
    assert "2 of 9 schedules after 10 s, 1 violation so far, to be confirmed" in line


def test_who_wants_quiet_hears_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    clock = VirtualClock()
    with Limits(clock=clock, quiet=True).progress(9, "schedules") as progress:
        clock.advance_to(100.0)
        progress.update(1, result())
    assert lines(capsys) == []


@pytest.mark.parametrize(
    ("given", "most"), [({}, FAST_SECONDS), ({"seconds": 3.0}, 3.0)]
)
def test_fast_has_a_limit(given: dict[str, float], most: float) -> None:
    checking = Checking(["op.py"], options_of_check(fast=True, **given), [])
    assert checking.limits.left() <= most


OPERATOR = """
import os
import signal

import fnop

os.kill(os.getpid(), signal.SIGTERM)


@fnop.on.create("fnopexamples")
def create(**_):
    return fnop.patch(status={"done": True})
"""


def test_sigterm_ends_the_preparation(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(OPERATOR)
    done = fnop("check", "op.py", folder=tmp_path)
    assert done.status == 3
    assert "interrupted before anything was tried" in done.complaint
