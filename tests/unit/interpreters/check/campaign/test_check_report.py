"""The report of a check for people: what stands under which word."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from fnop.adapters.reports.check_report import (
    Shown,
    as_json,
    as_junit,
    as_lines,
    for_github,
    place_of,
)
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.explore import Case, Failure
from fnop.interpreters.check.campaign.reports import Report
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.check.state.kinds import Fault, Place, Site
from fnop.interpreters.check.trials.catalogue import BY_NAME
from fnop.interpreters.simulation.actions import Apply

SYMPTOMS = tuple(f"configmaps/{each} is missing" for each in "abcdefgh")
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
CASE = Case(Program((), Settings()), script=(Apply(OBJECT), Apply(OBJECT)))


def told(
    symptoms: tuple[str, ...],
    others: int,
    name: str = "same_end",
    objects: tuple[str, ...] = (),
) -> dict[str, list[str]]:
    """The lines of the failure under their words; the symptom itself under none."""
    violation = Violation(name, symptoms[0], symptoms, objects=objects)
    failure = Failure("script", (), violation)
    report = Report(("script",), 1, ((failure, others),), (), 0, 0, {}, (name,))
    found: dict[str, list[str]] = {}
    for line in [*as_lines(report, [Shown(CASE, failure, others)])][2:]:
        if not line:
            break
        head = line[3:12].strip() if line.startswith("   ") else ""
        word = head or next(reversed(found), "")
        found.setdefault(word, []).append(line[13:] if line[0] == " " else line)
    return found


def test_further_symptoms_stand_with_the_first_and_not_with_the_script() -> None:
    found = told(SYMPTOMS[:3], 1)
    assert [*found] == ["", "also", "schedule", "script"]
    assert found[""] == [f"1. same_end: {SYMPTOMS[0]}"]
    assert found["also"] == [*SYMPTOMS[1:3]]
    assert found["script"] == ["apply ConfigMap x", "apply ConfigMap x"]


def test_what_is_too_much_is_counted_where_it_belongs() -> None:
    found = told(SYMPTOMS, 4)
    assert found["also"] == [*SYMPTOMS[1:6], "and 2 further differences"]
    assert found["schedule"][1:] == ["and 3 others of this sort"]
    assert len(found["script"]) == 2


@pytest.mark.parametrize(
    ("aliases", "entries"),
    [
        (["configmaps/x"], '("configmaps/x",)'),
        (["pods/x (2)", "xs.e.com/x"], '("pods/x", "xs.e.com/x")'),
        (
            ["pods/a", "pods/a", "pods/b", "pods/c", "jobs.batch/d"],
            '("pods/", "jobs.batch/")',
        ),
    ],
)
def test_the_remedy_names_the_objects_that_differ(
    aliases: list[str], entries: str
) -> None:
    differing = tuple(f"after the edits {e} spec.a is 1" for e in aliases)
    (remedy,) = told(differing, 1, "history", tuple(aliases))["if meant"]
    assert remedy.endswith(f"HISTORY = {entries}")


def test_one_symptom_needs_no_further_line() -> None:
    assert [*told(SYMPTOMS[:1], 1)] == ["", "schedule", "script"]


def test_what_the_same_run_shows_stands_beside_it_and_is_no_further_failure() -> None:
    first, second = (
        Failure("script", (), Violation(each, f"{each} is wrong"))
        for each in ("same_end", "settles")
    )
    report = Report(("script",), 1, ((first, 1), (second, 1)), (), 0, 0, {}, ())
    shown = Shown(CASE, first, 1, beside=(second.violation,))
    lines = [*as_lines(report, [shown])]
    assert lines[2] == "   as well   settles: settles is wrong"
    assert not any("further" in each for each in lines)
    assert lines[-1].endswith("2 failures")


# ---------------------------------------------------------- what nothing is known of


FAILED = Failure("script", (), Violation("total", "make raises KeyError"))
PLACES = {"make": ("operator.py", 7), "other": ("operator.py", 12)}


def report(*failures: Failure, **more: Any) -> Report:
    groups = tuple((each, 1) for each in failures)
    names = ("total", "same_end", "idle")
    return replace(Report(("script",), 1, groups, (), 0, 0, {}, names), **more)


def test_a_property_about_which_nothing_is_known_is_neither_pass_nor_failure() -> None:
    why = "no fault was tried: the time was over"
    found = report(FAILED, unsure={"same_end": why}, wanted=True)
    lines = [*as_lines(found, ())]
    assert lines[0].startswith("  FAIL     total")
    assert lines[1].split(maxsplit=2) == ["unknown", "same_end", why]
    assert lines[2].startswith("  pass     idle")
    whole = as_json(found, PLACES)
    assert whole["properties"] == {
        "total": "fail",
        "same_end": "unknown",
        "idle": "pass",
    }
    assert whole["reasons"] == {"same_end": why}
    suite = ElementTree.fromstring(as_junit(found, "operator.py"))
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "1")
    (skipped,) = suite.iter("skipped")
    assert skipped.get("message") == why
    assert "nothing is known" in "".join(as_lines(replace(found, failures=()), ()))


def test_what_takes_special_faults_is_told_and_is_no_failure() -> None:
    found = report(replace(FAILED, special=True))
    lines = [*as_lines(found, ())]
    assert lines[0].split()[:2] == ["special", "total"]
    assert as_json(found, PLACES)["properties"]["total"] == "special"
    suite = ElementTree.fromstring(as_junit(found, "operator.py"))
    assert (suite.get("failures"), [*suite.iter("failure")]) == ("0", [])
    (told,) = suite.iter("system-out")
    assert "make raises KeyError" in (told.text or "")
    both = report(FAILED, replace(FAILED, special=True))
    assert both.verdict("total") == "fail"


def test_it_is_told_why_something_was_not_tried() -> None:
    late = report(left=3, at_least=True, cut=("budget", "time"))
    words = "not tried: at least 3 schedules beyond the limits "
    assert [*as_lines(late, ())][-1] == (
        f"{words}(the budget was used up and the time was over)"
    )
    pairs = report(at_least=True, cut=("budget",))
    assert [*as_lines(pairs, ())][-1].startswith("not tried: further pairs of faults")


SITE = Site(Place.WRITE, "other/part", "create", "pods/x")


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (FAILED, 7),
        (replace(FAILED, schedule=(Fault(BY_NAME["F1:after"], SITE),)), 12),
        (replace(FAILED, violation=Violation("same_end", "pods/x is missing")), None),
    ],
)
def test_github_is_told_the_line_of_the_handler(
    failure: Failure, line: int | None
) -> None:
    place = place_of(failure, PLACES)
    assert (place and place[1]) == line
    (told,) = for_github(report(failure), "first.py", PLACES)
    where = "first.py," if line is None else f"operator.py,line={line},"
    assert told.startswith(f"::error file={where}title=fnop check: ")
