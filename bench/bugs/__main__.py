"""`python -m bench.bugs [NAME...]`: the bugs that the explorer finds, and the cost.

The first column of each line is the bug. Then the line shows whether an expected
property found it, by which schedule, and after how many schedules and milliseconds.
Last comes the number of alarms that all single faults raise for the operator without
the bug. JOBS is the number of processes, by default one for each core.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

from bench.bugs.cases import BUGS, Bug, bug_in, case_of
from fnop.adapters.common.collector import calm_collector
from fnop.interpreters.check.campaign.explore import Explorer
from fnop.interpreters.check.state.kinds import in_words

# A search that has not found a bug by then counts as missed.
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
    """Try all single faults on the operator without the bug; return the alarms."""
    explorer = Explorer(case_of(bug.folder, "fixed"))
    found: list[str] = []
    schedules = explorer.singles()
    for verdict in (explorer.benign, *map(explorer.tried, schedules)):
        for each in verdict.violations:
            found.append(
                f"{in_words(verdict.schedule)}: {each.property}: {each.message}"
            )
    return len(schedules) + 1, found


class Result(NamedTuple):
    """The result of a search, and the alarms for the operator without the bug."""

    bug: Bug
    found: Found | None
    schedules: int
    alarms: list[str]
    seconds: float


def result_of(folder: Path) -> Result:
    """Search for a bug, and for alarms on the operator without it."""
    begun = time.process_time()
    bug = bug_in(folder)
    found = None if bug.impossible else search(bug)
    number, raised = alarms(bug) if (folder / "fixed.py").exists() else (0, [])
    return Result(bug, found, number, raised, time.process_time() - begun)


def main(wanted: list[str]) -> int:
    """Print a line for each bug, and the totals."""
    folders = [
        each for each in BUGS if not wanted or any(map(each.name.startswith, wanted))
    ]
    calm_collector()  # as the command does
    begun = time.monotonic()
    processes = int(os.environ.get("JOBS", os.cpu_count() or 1))
    results = []
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for result in pool.imap(result_of, folders, chunksize=1):
            _print(result)
            results.append(result)
    missed = [e.bug.slug for e in results if not e.bug.impossible and not _is_hit(e)]
    alarmed = [each.bug.slug for each in results if each.alarms]
    founds = [each.found for each in results if each.found and each.found.hit]
    _totals(len(results), founds, missed, alarmed)
    cpu = sum(each.seconds for each in results)
    print(f"{time.monotonic() - begun:.0f} s, {cpu:.0f} s of CPU time")
    return 1 if missed or alarmed else 0


def _is_hit(result: Result) -> bool:
    return result.found is not None and result.found.hit


def _print(result: Result) -> None:
    bug, found = result.bug, result.found
    if bug.impossible:
        line = f"impossible here: {bug.impossible}"
    elif found is None:
        line = "MISSED"
    elif not found.hit:
        line = f"HALF ({found.property}) {found.words}"
    else:
        cost = f"{found.schedules:5} {found.seconds * 1e3:7.0f} ms"
        line = f"{found.property:14} {cost}  {found.words}"
    print(f"{bug.slug:36} {line}")
    alarms = f"{len(result.alarms)} alarms in {result.schedules} schedules"
    print(f"{'':36} fixed: {alarms}", flush=True)
    for each in result.alarms[:5]:
        print(f"{'':38} {each[:400]}", flush=True)


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
