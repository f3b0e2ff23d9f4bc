"""Schedules that raised an alarm on an operator of the benches that has no bug."""

from __future__ import annotations

import pytest

from bench.sweep import cases_named
from fnop.interpreters.check.campaign.explore import Explorer
from fnop.interpreters.check.state.kinds import Fault, Place, Schedule, Site
from fnop.interpreters.check.trials.catalogue import BY_NAME

APPLIES = Site(Place.WRITE, "issue", "apply", "secrets/certificate", 2)
CREATES = Site(Place.WRITE, "serve", "create", "statefulsets/x-b")
SETTINGS = Site(Place.WRITE, "converge", "apply", "configmaps/x-settings")
SECOND = Site(Place.OWN, "converge", "patch", "xs/x", 2)
LOOKS = Site(Place.READ, "serve", "list", "statefulsets/")
SCHEDULES: dict[str, tuple[str, Schedule]] = {
    # The set is never recreated, and its volume does not grow before all is deleted.
    "mutants/04_pvc_expand": (
        "deleted",
        (Fault(BY_NAME["F14:stuck"], Site(Place.RUN, "", "", "garbage")),),
    ),
    # A rack is made twice, for the first time too late: then it has gone already.
    "18_resurrects_the_dead": (
        "18_resurrects_the_dead",
        (
            Fault(BY_NAME["F13:before"], LOOKS),
            Fault(BY_NAME["F11:late"], CREATES),
            Fault(BY_NAME["F13:before"], LOOKS._replace(nth=2)),
        ),
    ),
    # A dead process's write lands between the look and the write of the next one.
    "30_two_handlers_merged_diff": (
        "30_two_handlers_merged_diff",
        (Fault(BY_NAME["F11:zombie"], SETTINGS), Fault(BY_NAME["F3:crash"], SECOND)),
    ),
    # The secret is held when its object is deleted, and the next one is to write it.
    "mutants/35_two_objects_one_target": (
        "made anew",
        (Fault(BY_NAME["F8:held"], APPLIES),),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_an_operator_without_a_bug_raises_no_alarm(name: str) -> None:
    script, schedule = SCHEDULES[name]
    (case,) = [each for each in cases_named(name) if each.name == script]
    explorer = Explorer(case)
    verdict = explorer.tried(schedule)
    assert verdict.struck
    assert verdict.violations == ()
