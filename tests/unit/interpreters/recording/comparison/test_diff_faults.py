"""`fnop diff` names the faults that `fnop check` injects, and nothing without one.

All of bench/bugs, and all failures: `make bench-diffs`, with ALL=1.
"""

from __future__ import annotations

import os

import pytest

from bench.bugs.cases import HERE, bug_in, case_of
from bench.diffs import compare, failing, recorded
from bench.sweep import cases_named, operators
from fnop.interpreters.check.campaign.explore import Explorer
from fnop.interpreters.check.state.kinds import in_words
from fnop.interpreters.recording.comparison.causes import compared
from tests.long import parameters

EXAMPLES = tuple(operators(examples_only=True))
# A crash before and after an effect, one with a request that lands late, and one at
# rest; a lost reply, a late watch, a rival, and a clock.
BUGS = (
    "01_two_secrets",
    "06_external_id_lost",
    "08_finalizer_too_early",
    "10_zombie_deletes_claim",
    "14_toggle_off",
    "17_owner_not_seen",
    "19_random_names",
    "21_counts_the_deleted",
    "28_diff_against_last_spec",
    "32_transition_time_is_now",
    "47_unreachable_read_as_zero",
    "48_acts_on_half_filled_index",
)


# These take as long as all others together.
SLOW = {"09-testing", "14-daemons"}
SLOW_BUGS = {
    "21_counts_the_deleted",
    "28_diff_against_last_spec",
    "32_transition_time_is_now",
}


@pytest.mark.parametrize("name", parameters(EXAMPLES, {*EXAMPLES} - SLOW))
def test_another_seed_and_another_clock_make_no_difference(name: str) -> None:
    case = max(cases_named(name), key=lambda each: len(each.script))
    one, other = (
        recorded(case, number=number, key=os.urandom(16)) for number in (0, 1)
    )
    assert one.calls
    assert compared(one, one).first is None
    assert compared(one, other).first is None
    assert compared(other, one).first is None


@pytest.mark.parametrize("name", parameters(BUGS, {*BUGS} - SLOW_BUGS))
def test_the_fault_that_shows_a_bug_is_named(name: str) -> None:
    bug = bug_in(HERE / name)
    explorer = Explorer(case_of(bug.folder, "buggy"))
    schedule = next(failing(explorer, bug))
    found = compare(explorer, recorded(explorer.case), schedule)
    assert found.is_named, (found.words, found.found.first)


def test_a_state_to_which_an_object_comes_back_is_told_apart() -> None:
    """A user scales down and up again, before the operator has done with the first."""
    explorer = Explorer(case_of(HERE / "13_claim_of_the_successor", "buggy"))
    early = "benign, except: the user goes on after `patch xs/x` (2nd, the operator)"
    schedule = next(each for each in explorer.singles() if in_words(each) == early)
    found = compare(explorer, recorded(explorer.case), schedule)
    assert found.found.first is not None
    (order,) = found.found.first.cause.inputs
    assert order.kind == "order"
    ours, theirs = order.same
    assert ours is not None
    assert theirs is not None
    assert theirs.body.data["spec"] == {"size": 2}
    assert theirs.step < ours.step
    assert found.is_named
