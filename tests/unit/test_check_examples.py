"""`fnop check` on every example: single faults, the most different ones first.

All of them, pairs and random schedules are `make check-sweep`.
"""

import pytest

from bench.mutants.subjects import ON_PURPOSE
from bench.sweep import operators
from fnop.interpreters.check.campaign import Campaign, Options
from fnop.interpreters.check.faults import in_words

EXAMPLES = {name: cases for name, cases in operators(examples_only=True).items()}
# Schedules for each example.
BUDGET = 40


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_fault_raises_an_alarm(name: str) -> None:
    without = frozenset(ON_PURPOSE.get(name, ()))
    campaign = Campaign(EXAMPLES[name], Options(budget=BUDGET, without=without))
    tasks = campaign.tasks()
    report = campaign.report(campaign.run(tasks), tasks)
    assert report.tried == min(BUDGET, len(tasks))
    assert [
        (in_words(each.schedule), each.violation) for each, _ in report.failures
    ] == []
