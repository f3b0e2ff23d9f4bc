"""The tasks of a campaign: their order, their parts, and what is known of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.campaign import Campaign, Known, Options, within
from fnop.interpreters.check.campaign.explore import Case, Failure, Verdict
from fnop.interpreters.check.campaign.reports import Pairs, Report, Result, Task, merged
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.check.state.kinds import Fault, Place, Schedule, Site
from fnop.interpreters.check.trials.catalogue import BY_NAME

CASE = Case(Program((), Settings()))
HANDLERS = "abcd"


def fault(number: int) -> Fault:
    site = Site(Place.WRITE, HANDLERS[number % 4], "create", "pods/x", number + 1)
    return Fault(BY_NAME["F1:after"], site)


class Fake(NamedTuple):
    """An explorer of a case that has this number of single faults."""

    case: Case
    number: int

    def singles(self) -> list[Schedule]:
        return [(fault(each),) for each in range(self.number)]

    def may_begin_a_pair(self, first: Schedule) -> bool:
        return True

    def random(self, count: int, seed: int) -> list[Schedule]:
        return [(fault(each), fault(each + 1)) for each in range(count)]


def campaign(sizes: tuple[int, ...] = (5, 3), **options: Any) -> Campaign:
    found = Campaign((), Options(**options))
    explorers: list[Any] = [
        Fake(CASE._replace(name=f"case {place}"), size)
        for place, size in enumerate(sizes)
    ]
    found.explorers = explorers
    return found


def known_in(
    found: Campaign, numbers: list[tuple[int, int]], other: Case
) -> list[Known]:
    """Failures found before: of the cases that are there, and of another one."""
    cases = [*(each.case for each in found.explorers), other]
    return [Known(cases[case], (fault(number),)) for case, number in numbers]


# Failures as pairs of a case, the last of which is another one, and a fault.
FOUND = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), max_size=6)


@given(
    shards=st.integers(1, 6),
    known=st.lists(FOUND, min_size=6, max_size=6),
    changed=st.lists(st.sets(st.sampled_from(HANDLERS)), min_size=6, max_size=6),
    depth=st.sampled_from((None, 1, 2)),
)
def test_shards_share_nothing_and_leave_nothing_out(
    shards: int,
    known: list[list[tuple[int, int]]],
    changed: list[set[str]],
    depth: int | None,
) -> None:
    """Each of them may know of other failures, and of other handlers' changes."""
    usual = {*campaign(depth=depth, randoms=2).tasks()}
    tasks = []
    for place in range(shards):
        part = campaign(depth=depth, randoms=2, shard=(place + 1, shards))
        part.remember(known_in(part, known[place], CASE._replace(name="found before")))
        tasks += part.tasks(changed[place])
        if place == 0:
            extra = {*tasks} - usual
    assert len(tasks) == len({*tasks})
    assert {*tasks} - extra == usual


@given(found=FOUND)
def test_what_was_found_before_comes_first(found: list[tuple[int, int]]) -> None:
    whole = campaign()
    whole.remember(known_in(whole, found, CASE._replace(name="found before")))
    tasks = whole.tasks()
    expected = [*dict.fromkeys(Task(case, (fault(each),)) for case, each in found)]
    assert tasks[: len(expected)] == expected


def test_pairs_come_after_single_faults_and_before_random_schedules() -> None:
    rounds = [
        ("benign", "single", "random")[len(each.schedule)]
        if each.pairs is Pairs.NONE
        else each.pairs.value
        for each in campaign(depth=2, randoms=2).tasks()
    ]
    names = ["benign", "single", "likely", "near", "random"]
    assert [*dict.fromkeys(rounds)] == names
    assert rounds == sorted(rounds, key=[*dict.fromkeys(rounds)].index)


def test_faults_at_changed_handlers_come_first_in_their_usual_order() -> None:
    usual, tasks = campaign().tasks(), campaign().tasks({"c"})
    singles = [each for each in tasks if each.schedule]
    first = [each for each in singles if each.schedule[0].site.handler == "c"]
    assert singles[: len(first)] == first
    assert sorted(tasks, key=usual.index) == usual
    assert tasks[2 + len(first) :] == [e for e in usual[2:] if e not in first]


@pytest.mark.parametrize("who", ["c/part", "a, c", "a, c/part"])
def test_a_sub_handler_or_one_of_several_is_as_new_as_the_handler(who: str) -> None:
    site = fault(0).site._replace(handler=who)
    found = campaign((1,))
    task = Task(0, (Fault(BY_NAME["F1:after"], site),))
    single: Any = Fake(CASE, 1)

    class Parted(Fake):
        def singles(self) -> list[Schedule]:
            return [*super().singles(), task.schedule]

    found.explorers = [Parted(*single)]  # type: ignore[list-item]
    assert found.tasks({"c"})[1] == task


def test_what_the_budget_cuts_off_is_noted() -> None:
    verdict = Verdict((fault(0),), ())
    results = [Result(Task(0, ()), (verdict, verdict)) for _ in range(3)]
    assert [each.whole for each in within(results, 3)] == [True, False]
    assert [each.whole for each in within(results, 4)] == [True, True]


# ---------------------------------------------------------------------- several parts


def report(*failures: tuple[Failure, int], **more: Any) -> Report:
    usual: dict[str, Any] = {"finer": failures, "struck": 1, "wanted": True}
    found = Report(("a", "b"), 1, failures, (), 0, 0, {"F1": 1}, ("total", "idle"))
    return replace(found, **{**usual, **more})


def failure(case: str, number: int = 0) -> Failure:
    return Failure(case, (fault(number),), Violation("total", "it raises"))


def test_failures_of_different_scripts_stay_apart_and_others_are_counted() -> None:
    one = report((failure("a"), 2))
    two = report((failure("a"), 3), (failure("b"), 1))
    whole = merged([one, two])
    assert [(each.case, number) for each, number in whole.failures] == [
        ("a", 5),
        ("b", 1),
    ]
    assert (whole.tried, whole.by_fault, whole.shards) == (2, {"F1": 2}, 2)
    assert not whole.is_clean


def test_what_one_part_knows_is_known() -> None:
    reasons = {"total": "no fault occurred", "idle": "no run was tried"}
    one = report(unsure={"idle": reasons["idle"]})
    two = report(unsure=reasons, struck=0, left=3, cut=("time",))
    whole = merged([one, two])
    assert [whole.verdict(each) for each in whole.properties] == ["pass", "unknown"]
    assert whole.is_known
    assert (whole.left, whole.cut) == (3, ("time",))
    assert not merged([two, two]).is_known


def test_nothing_is_known_where_parts_are_missing_unless_one_fails() -> None:
    assert not merged([report()], [2]).is_known
    assert not merged([report((failure("a"), 1))], [2]).is_clean
