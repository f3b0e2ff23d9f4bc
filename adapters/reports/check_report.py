"""The report of a check: for people, as JSON, as JUnit XML, and for GitHub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import orjson

from fnop.adapters.common.loading import shown_path
from fnop.adapters.common.plain import escaped
from fnop.core.handlers.declare.handler import Handler
from fnop.core.values.errors import joined, number_of
from fnop.interpreters.check.campaign.explore import Case, Failure
from fnop.interpreters.check.campaign.reports import CAUSES, SHOWN_MAX, Report
from fnop.interpreters.check.properties import EXPLAINED
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.check.state.kinds import in_words
from fnop.interpreters.check.state.scripts import script_to_json
from fnop.interpreters.check.trials.catalogue import schedule_to_json

__all__ = [
    "FOUND_BEFORE",
    "PRETTY",
    "Places",
    "Shown",
    "as_json",
    "as_junit",
    "as_lines",
    "case_record",
    "failure_json",
    "failure_record",
    "for_github",
    "place_of",
    "places_of",
]

PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
FOUND_BEFORE = "found before: "
"""The beginning of the names of cases that are failures of former calls."""


class Shown(NamedTuple):
    """A failure as it is shown, shrunk, with its case and the number of others like it.

    `file` is its recording, and `benign` is the recording of the run without faults; ""
    if there is no recording. `beside` are other failures of the same run.
    """

    case: Case
    failure: Failure
    number: int
    file: str = ""
    benign: str = ""
    beside: tuple[Violation, ...] = ()


# The handlers of an operator: the file and the line of each, by its id.
Places = Mapping[str, tuple[str, int]]


def places_of(handlers: Iterable[Handler]) -> dict[str, tuple[str, int]]:
    """The places in the author's code of the handlers, as far as known."""
    found = {}
    for each in handlers:
        name, line = each.definition
        if name:
            found[each.id] = shown_path(Path(name)), line
    return found


def place_of(failure: Failure, places: Places) -> tuple[str, int] | None:
    """The place of the handler at which a fault strikes, or that a failure names."""
    site = failure.site
    who = site.handler if site is not None else ""
    for name in (who, who.partition("/")[0], failure.violation.message.split(" ")[0]):
        if name in places:
            return places[name]
    return None


def as_lines(report: Report, shown: Sequence[Shown]) -> Iterator[str]:
    """The report for people: a verdict per property, then each failure."""
    yield from _verdicts(report)
    yield ""
    for number, each in enumerate(shown, 1):
        yield from _failure_lines(number, each)
    more = len(report.failures) - sum(1 + len(each.beside) for each in shown)
    if more > 0:
        further = number_of(more, "further sort")
        yield f"{further} of failures, of the same end or not shown: see -o json"
        yield ""
    yield _summary(report)
    yield from _limit_lines(report)


_VERDICTS = {
    "fail": "FAIL",
    "special": "special",
    "pass": "pass",
    "unknown": "unknown",
}


def _verdicts(report: Report) -> Iterator[str]:
    width = max(len(_VERDICTS[report.verdict(e)]) for e in ("", *report.properties))
    for name in report.properties:
        verdict = _VERDICTS[report.verdict(name)]
        words = report.unsure[name] if verdict == "unknown" else EXPLAINED[name]
        yield f"  {verdict:{width}}  {name:18} {words}"


def _failure_lines(number: int, shown: Shown) -> Iterator[str]:
    case, failure, like, file, benign, beside = shown
    violation = failure.violation
    special = " (by special faults)" if failure.special else ""
    yield f"{number}. {violation.property}: {violation.message}{special}"
    details = [*violation.details[1:_DETAILS_SHOWN]]
    more = len(violation.details) - _DETAILS_SHOWN
    if more > 0:
        details.append(f"and {number_of(more, 'further difference')}")
    yield from _stanza("also", details)
    yield from _stanza("called", violation.calls)
    yield from _stanza("if meant", _remedies_if_meant(violation))
    if case.name.startswith(FOUND_BEFORE):
        yield f"   known     {case.name}"
    yield from _stanza("as well", [f"{e.property}: {e.message}" for e in beside])
    others = [f"and {number_of(like - 1, 'other')} of this sort"] if like > 1 else []
    yield from _stanza("schedule", [in_words(failure.schedule), *others])
    yield from _stanza("script", case.script)
    yield from _lanes(failure)
    if file:
        yield f"   recording {file}"
        yield f"   as a page fnop replay {file} --html failure.html"
        if case.begin is None:
            yield f"   as a test fnop check --as-test {file} > test_regression.py"
    if benign:
        yield f"   compared  fnop diff {benign} {file}"
    yield ""


# The most objects that the remedy names; else it names their kinds.
_EXCEPTED_MAX = 3


def _remedies_if_meant(violation: Violation) -> Iterator[str]:
    """The remedy for an intended violation, with the objects that differ."""
    if violation.property != "history":
        return
    # Without the number of an alias that several objects share.
    names = tuple(dict.fromkeys(e.partition(" ")[0] for e in violation.objects))
    if len(names) > _EXCEPTED_MAX:
        names = tuple(dict.fromkeys(f"{e.partition('/')[0]}/" for e in names))
    entries = ", ".join(f'"{each}"' for each in names)
    yield (
        "name what may depend on it in the file of --script, by its beginning: "
        f"HISTORY = ({entries}{',' if len(names) == 1 else ''})"
    )


def _stanza(head: str, lines: Iterable[object]) -> Iterator[str]:
    """Lines under each other, with a word before the first."""
    for place, line in enumerate(lines):
        yield f"   {'' if place else head:8}  {line}"


# The most differences of two worlds that are shown, the first with its number.
_DETAILS_SHOWN = 6
# The most lines of a story, before and after its fault.
_BEFORE, _AFTER = 6, 10
_LANES = {"user": 0, "operator": 1, "fault": 2, "rest": 3}


def _lanes(failure: Failure) -> Iterator[str]:
    """The story around the fault: the user on the left, the operator on the right."""
    story = failure.story
    strikes = [place for place, each in enumerate(story) if each.lane == "fault"]
    first = max(0, (strikes[0] if strikes else 0) - _BEFORE)
    last = (strikes[-1] if strikes else 0) + _AFTER
    for place, each in enumerate(story[first:last], first):
        head = "story" if place == first else ""
        mark = " !" if each.lane == "fault" else ""
        indent = "  " * _LANES[each.lane]
        yield f"   {head:8}  {each.at:7.1f} s {indent}{each.lane}: {each.what}{mark}"
    if len(story) > last:
        yield f"   {'':8}  ... {len(story) - last} more"


def _summary(report: Report) -> str:
    if report.is_empty:
        return "this shard has no schedules: there are fewer of them than shards"
    tried = number_of(report.tried, "schedule")
    scripts = number_of(len(report.cases) - report.former, "script")
    found = f", and of {number_of(report.former, 'failure')} found before,"
    head = f"{tried} of {scripts}{found if report.former else ''} tried"
    if report.shards > 1:
        head += f" in {report.shards - len(report.missing)} shards"
    if report.failures:
        return f"{head}: {number_of(len(report.failures), 'failure')}"
    if not report.is_known:
        return f"{head}: nothing is known"
    unsure = f", and of {len(report.unsure)} nothing is known" if report.unsure else ""
    return f"{head}: no property is violated{unsure}"


def _limit_lines(report: Report) -> Iterator[str]:
    """The limits of the search, so that a pass does not claim more than it shows."""
    if report.missing:
        numbers = ", ".join(map(str, report.missing))
        yield (
            f"missing: the results of shard {numbers} of {report.shards}; try them, "
            "with --results"
        )
    if report.unjudged:
        yield (
            f"not judged: {joined(report.unjudged)}, because the handlers act by "
            "themselves: a call of them cannot be repeated without a consequence"
        )
    for name, why in report.endless.items():
        yield (
            f"no fault was tried in the script {name!r}: its run without faults does "
            f"not end ({why})"
        )
    if report.cut:
        yield _untried_sentence(report)
    if report.unknown:
        unknown = number_of(report.unknown, "schedule")
        yield f"unknown: {unknown} whose fault did not occur"
    if report.broken:
        broken = number_of(len(report.broken), "schedule")
        first = report.broken[0]
        yield f"broken: {broken} in which the simulator itself fails ({first})"
    if report.doubted:
        alarms = number_of(len(report.doubted), "alarm")
        first = in_words(report.doubted[0].schedule)
        yield f"in doubt: {alarms} that another seed did not show, such as {first}"


def _untried_sentence(report: Report) -> str:
    """The sentence about what was not tried, and why."""
    why = " and ".join(CAUSES[each] for each in report.cut)
    if report.left:
        least = "at least " if report.at_least else ""
        left = number_of(report.left, "schedule")
        return f"not tried: {least}{left} beyond the limits ({why})"
    if report.at_least:
        return f"not tried: further pairs of faults, beyond the limits ({why})"
    return (
        "not tried: anything, for the time was over before the runs without faults "
        "were done; give more with --time"
    )


# -------------------------------------------------------------------------- JSON


def as_json(report: Report, places: Places) -> dict[str, Any]:
    """The report as plain JSON; equal reports give equal texts."""
    parts = {"shards": report.shards, "missing": [*report.missing]}
    return {
        "version": 1,
        "scripts": [*report.cases],
        "found before": report.former,
        "tried": report.tried,
        "left": report.left,
        "left at least": report.at_least,
        "cut": [*report.cut],
        "unknown": report.unknown,
        "faults": {**report.by_fault},
        "properties": {each: report.verdict(each) for each in report.properties},
        "reasons": {**report.unsure},
        "endless": {**report.endless},
        "failures": [failure_json(*each, places) for each in report.failures],
        "doubted": [failure_json(each, 1, places) for each in report.doubted],
        "broken": [*report.broken],
        **(parts if report.shards > 1 else {}),
    }


def failure_json(failure: Failure, number: int, places: Places) -> dict[str, Any]:
    """A failure as plain JSON, with the number of failures like it."""
    place = place_of(failure, places)
    return {
        "place": None if place is None else {"file": place[0], "line": place[1]},
        "script": failure.case,
        "property": failure.violation.property,
        "message": failure.violation.message,
        "details": [*failure.violation.details],
        "calls": [*failure.violation.calls],
        "objects": [*failure.violation.objects],
        "words": in_words(failure.schedule),
        "schedule": schedule_to_json(failure.schedule),
        "special": failure.special,
        "like it": number,
    }


def as_junit(report: Report, name: str) -> str:
    """The report as JUnit XML: a test for each property."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"fnop check {name}",
        tests=str(len(report.properties)),
        failures=str([*map(report.verdict, report.properties)].count("fail")),
        skipped=str([*map(report.verdict, report.properties)].count("unknown")),
    )
    for each in report.properties:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=each)
        if report.verdict(each) == "unknown":
            ElementTree.SubElement(case, "skipped", message=report.unsure[each])
        for failure, _ in report.failures:
            if failure.violation.property == each:
                lines = [in_words(failure.schedule), *failure.violation.details]
                message = failure.violation.message
                if report.verdict(each) == "fail":
                    found = ElementTree.SubElement(case, "failure", message=message)
                # a failure by special faults alone is reported, but the test passes
                else:
                    found = ElementTree.SubElement(case, "system-out")
                    lines.insert(0, message)
                found.text = "\n".join(lines)
    ElementTree.indent(suite)
    # XML has no control characters, not even as references (XML 1.0: Char).
    return escaped(ElementTree.tostring(suite, encoding="unicode")) + "\n"


def for_github(report: Report, file: str, places: Places) -> Iterator[str]:
    """Workflow commands of GitHub Actions: an error for each failure.

    An error is placed at the handler if it is known, else at the operator's `file`.
    """
    for failure, _ in report.failures[:SHOWN_MAX]:
        level = "warning" if failure.special else "error"
        text = f"{failure.violation.message} ({in_words(failure.schedule)})"
        escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        title = f"fnop check: {failure.violation.property}"
        place = place_of(failure, places)
        where = f"{place[0]},line={place[1]}" if place else file
        yield f"::{level} file={where},title={title}::{escaped}"


def failure_record(case: Case, failure: Failure) -> dict[str, Any]:
    """The failure as its recording's header has it: enough to run it again."""
    return {
        "property": failure.violation.property,
        "message": failure.violation.message,
        "words": in_words(failure.schedule),
        "schedule": schedule_to_json(failure.schedule),
        **case_record(case),
    }


def case_record(case: Case) -> dict[str, Any]:
    """The world of a case and its user's actions, as recordings have them."""
    restored = {"restored": [*case.restored], "start": case.start}
    return {
        "script": script_to_json(case.script),
        "definitions": [*case.definitions],
        "given": [*case.given],
        "namespace": case.namespace,
        **(restored if case.restored else {}),
    }
