"""The report of a check for people: what stands under which word."""

from __future__ import annotations

from fnop.adapters.check_report import Shown, as_lines
from fnop.core.handlers.program import Program
from fnop.core.handlers.settings import Settings
from fnop.interpreters.actions import Apply
from fnop.interpreters.check.campaign import Report
from fnop.interpreters.check.explore import Case, Failure
from fnop.interpreters.check.properties.evidence import Violation

SYMPTOMS = tuple(f"configmaps/{each} is missing" for each in "abcdefgh")
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
CASE = Case(Program((), Settings()), script=(Apply(OBJECT), Apply(OBJECT)))


def told(symptoms: tuple[str, ...], others: int) -> dict[str, list[str]]:
    """The lines of the failure under their words; the symptom itself under none."""
    failure = Failure("script", (), Violation("same_end", symptoms[0], symptoms))
    report = Report(("script",), 1, ((failure, others),), (), 0, 0, {}, ("same_end",))
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
