"""`python -m bench.bugs [NAME...]`: what the explorer finds of the bugs, and how soon.

The first column of each line is the bug; then whether it was found by a property that
is expected, by which schedule, after how many schedules and milliseconds, and how many
alarms all single faults raise for the operator without the bug.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import NamedTuple

from bench.bugs.cases import BUGS, Bug, bug_in, case_of
from fnop.interpreters.check.explore import Explorer
from fnop.interpreters.check.faults import in_words

# A search that has not found a bug by then has missed it.
SCHEDULES_MAX = 2_000


class Found(NamedTuple):
    """The result of a search."""

    property: str
    words: str
    schedules: int
    seconds: float
    hit: bool


def search(bug: Bug) -> Found | None:
    """Search for a bug until a property is violated."""
    begun = time.process_time()
    explorer = Explorer(case_of(bug.folder, "buggy"))
    tried = 0
    other: Found | None = None
    for schedule in [(), *explorer.singles()][:SCHEDULES_MAX]:
        verdict = explorer.benign if not schedule else explorer.tried(schedule)
        tried += 1
        if not verdict.violations:
            continue
        names = [each.property for each in explorer.confirmed(verdict)]
        hits = [each for each in names if each in bug.properties]
        seconds = time.process_time() - begun
        if hits:
            return Found(hits[0], in_words(schedule), tried, seconds, True)
        if names and other is None:
            other = Found(names[0], in_words(schedule), tried, seconds, False)
    return other


def alarms(bug: Bug) -> tuple[int, list[str]]:
    """Try all single faults on the operator without the bug; what they find."""
    explorer = Explorer(case_of(bug.folder, "fixed"))
    found: list[str] = []
    schedules = explorer.singles()
    for verdict in (explorer.benign, *map(explorer.tried, schedules)):
        for each in verdict.violations:
            found.append(
                f"{in_words(verdict.schedule)}: {each.property}: {each.message}"
            )
    return len(schedules) + 1, found


def main(wanted: list[str]) -> int:
    """Print a line for each bug, and the totals."""
    bugs = [bug_in(each) for each in BUGS]
    if wanted:
        bugs = [each for each in bugs if any(each.slug.startswith(w) for w in wanted)]
    founds: list[Found] = []
    missed, alarmed = [], []
    for bug in bugs:
        found = None if bug.impossible else search(bug)
        number, raised = alarms(bug) if (bug.folder / "fixed.py").exists() else (0, [])
        founds += [found] if found and found.hit else []
        if raised:
            alarmed.append(bug.slug)
        if bug.impossible:
            line = f"impossible here: {bug.impossible}"
        elif found is None or not found.hit:
            missed.append(bug.slug)
            line = (
                "MISSED" if found is None else f"HALF ({found.property}) {found.words}"
            )
        else:
            cost = f"{found.schedules:5} {found.seconds * 1e3:7.0f} ms"
            line = f"{found.property:14} {cost}  {found.words}"
        print(f"{bug.slug:36} {line}")
        print(f"{'':36} fixed: {len(raised)} alarms in {number} schedules")
        for each in raised[:5]:
            print(f"{'':38} {each[:400]}")
    _totals(len(bugs), founds, missed, alarmed)
    return 1 if missed or alarmed else 0


def _totals(
    bugs: int, founds: list[Found], missed: list[str], alarmed: list[str]
) -> None:
    print()
    if founds:
        schedules = [each.schedules for each in founds]
        seconds = [each.seconds for each in founds]
        print(
            f"{len(founds)} of {bugs} found; schedules: median "
            f"{statistics.median(schedules):g}, most {max(schedules)}; seconds: median "
            f"{statistics.median(seconds):.3f}, most {max(seconds):.2f}"
        )
    print(f"missed: {', '.join(missed) or 'none'}")
    print(f"alarms on fixed ones: {', '.join(alarmed) or 'none'}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
