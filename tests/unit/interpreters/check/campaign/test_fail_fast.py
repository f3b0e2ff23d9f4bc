"""`--fail-fast` ends a check with its first failure."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fnop.interpreters.check.campaign.explore import Verdict
from fnop.interpreters.check.campaign.reports import Result, Task
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.check.state.kinds import Fault, Place, Site
from fnop.interpreters.check.trials.catalogue import BY_NAME
from tests.checks import BUGGY, FIXED, called, folder as folder, operator

SAME_END = ("--property", "same_end", "--budget", "60", "--fail-fast")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_check_ends_with_its_first_failure(folder: Path, jobs: str) -> None:
    found = called(operator(folder, BUGGY), *SAME_END, "--jobs", jobs)
    assert found.exit_code == 1, found.output
    assert "1. same_end: secrets/x-b is missing" in found.stdout
    assert "not tried: " in found.stdout
    assert "(--fail-fast ends with the first failure)" in found.stdout
    (recording,) = re.findall(r"recording (\S+)", found.stdout)
    assert Path(recording).is_file()


def test_a_machine_reads_what_has_cut_the_check(folder: Path) -> None:
    found = called(operator(folder, BUGGY), *SAME_END, "-o", "json")
    report = json.loads(found.stdout)
    assert report["cut"] == ["failure"]
    # The fault that shows it is the last one that was tried.
    assert sum(report["faults"].values()) == report["tried"] - len(report["scripts"])
    assert report["tried"] < 60


def test_without_a_failure_all_is_tried(folder: Path) -> None:
    found = called(operator(folder, FIXED), *SAME_END)
    assert found.exit_code == 0, found.output
    assert "60 schedules of" in found.stdout


def test_what_special_faults_show_does_not_end_it() -> None:
    def result(name: str) -> Result:
        schedule = (Fault(BY_NAME[name], Site(Place.RUN, "", "", "")),)
        verdict = Verdict(schedule, (Violation("same_end", "it differs"),))
        return Result(Task(0, schedule), (verdict,))

    assert result("F12:slow").fails
    assert not result("F15:two").fails
    doubted = result("F12:slow").verdicts
    assert not Result(Task(0, ()), (), doubted).fails
