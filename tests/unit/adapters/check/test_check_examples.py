"""`fnop check` on every example: single faults, the most different ones first.

All of them, pairs and random schedules are `make check-sweep`.
"""

import pytest

from bench.mutants.subjects import ON_PURPOSE
from bench.sweep import cases_named, operators
from fnop.interpreters.check.campaign.campaign import Campaign, Options
from fnop.interpreters.check.state.kinds import in_words
from tests.long import parameters

EXAMPLES = tuple(operators(examples_only=True))
# Schedules for each example: the first of each script, and the most different ones.
BUDGET = 12
# The beginnings of other walks.
HALVES = ("change all fields", "unset all fields", "set all absent fields")
# Scripts of examples that wait for minutes, if each costs seconds: others behave alike.
LEFT = {
    "09-testing": ("edit and revert spec.size",),
    "14-daemons": (
        *HALVES,
        "edit spec.duration",
        "edit and revert spec.duration",
        "edit and revert spec.field",
    ),
    "19-database": (*HALVES, "edit and revert spec.size", "edit and revert spec.disk"),
}
# It is the beginning of "delete and recreate".
CONTAINED = "delete"


# These take as long as all others together.
SLOW = {"09-testing", "10-builtins", "14-daemons"}


@pytest.mark.parametrize("name", parameters(EXAMPLES, {*EXAMPLES} - SLOW))
def test_no_fault_raises_an_alarm(name: str) -> None:
    without = frozenset(ON_PURPOSE.get(name, ()))
    every = cases_named(name)
    left = {*LEFT.get(name, ()), CONTAINED}
    assert left <= {each.name for each in every} | {CONTAINED}
    cases = [each for each in every if each.name not in left]
    campaign = Campaign(cases, Options(budget=BUDGET, without=without))
    tasks = campaign.tasks()
    report = campaign.report(campaign.run(tasks), tasks)
    assert report.tried == min(BUDGET, len(tasks))
    assert [
        (in_words(each.schedule), each.violation) for each, _ in report.failures
    ] == []
