"""`python -m bench.sweep [NAME...]`: a search for false alarms, and its cost.

It tries every single fault, pairs, and random schedules (these two without special
faults) on the examples and on the fixed operators of bench/bugs. Names that begin with
`mutants/` use the scripts of bench/mutants. An alarm is a bug in the operator, in the
simulator, or in the property.

PAIRS and RANDOM_SCHEDULES are the numbers for each operator, spread over its scripts.
So is SINGLES if it is set. Otherwise all single faults are tried, which takes a quarter
of an hour for an operator that acts every second. With LEADER_ELECT each operator is
one of two replicas. FAULTS, such as F15, limits the single faults.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench.bugs.cases import BUGS, case_of
from bench.mutants.subjects import ON_PURPOSE, cases_of as scripts_of, subjects
from fnop.adapters.common.collector import calm_collector
from fnop.adapters.common.loading import handlers_of_file, module_of_file
from fnop.adapters.kubernetes.identity import replicated
from fnop.adapters.testing.cases import cases_of, subjects_for
from fnop.adapters.testing.models import models_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer, Verdict, is_special
from fnop.interpreters.check.state.kinds import in_words

ROOT = Path(__file__).resolve().parents[1]
# The files of operators with an unusual file name.
OPERATORS = {
    "17-models": "orders.py",
    "18-definitions": "databases.py",
    "deployment": "operator.py",
}
# ... and the folders of their objects, if these are not their own.
OBJECTS = {"deployment": "02-children"}
# Folders of examples without an operator.
NO_OPERATOR = ("checking", "monitoring")
# The number of pairs with one first fault: the most different ones come first.
PAIRS_OF_ONE = 20
# The number of alarms that are printed for one operator.
SHOWN = int(os.environ.get("SHOWN", "5"))
SINGLES = int(os.environ.get("SINGLES", "1000000"))
PAIRS = int(os.environ.get("PAIRS", "300"))
RANDOM = int(os.environ.get("RANDOM_SCHEDULES", "300"))
LEADER_ELECT = bool(os.environ.get("LEADER_ELECT"))
FAULTS = tuple(os.environ.get("FAULTS", "").split())


class Swept(NamedTuple):
    """The results of the schedules of one operator."""

    name: str
    singles: int
    pairs: int
    randoms: int
    unknown: int
    seconds: float
    alarms: list[str]
    # Alarms from several processes without a lease, or from a restored backup: `fnop
    # check` reports them, but does not fail.
    specials: list[str]


def operators(*, examples_only: bool = False) -> dict[str, Path]:
    """The examples and the fixed operators: the folder of each, by name."""
    folders = [
        each
        for each in sorted((ROOT / "examples").iterdir())
        if each.is_dir() and each.name not in NO_OPERATOR
    ]
    if not examples_only:
        folders += [each for each in BUGS if (each / "fixed.py").exists()]
    return {each.name: each for each in folders}


@cache
def cases_named(name: str) -> tuple[Case, ...]:
    """The cases of an operator: an example has the cases of its default scripts.

    Names that begin with `mutants/` use scripts of bench/mutants.
    """
    where, _, of = name.rpartition("/")
    if where:
        subject = next(each for each in subjects() if each.name == of)
        return tuple(scripts_of(subject, subject.file))
    folder = operators()[name]
    if folder in BUGS:
        return (case_of(folder, "fixed"),)
    file = folder / OPERATORS.get(name, "example.py")
    objects = file.parents[1] / OBJECTS.get(name, name) / file.name
    program = Program(handlers_of_file(file), Settings())
    beside = [folder / each for each in ("models.py", "script.py")]
    named = [[module_of_file(each)] if each.exists() else [] for each in beside]
    module = next(iter(named[1]), None)
    calls = models_of(*named)
    return tuple(
        cases_of(
            program,
            subjects_for(program, str(objects), (), ()),
            calls=calls,
            module=module,
        )
    )


def elected(case: Case) -> Case:
    """A case in which one of two replicas leads."""
    settings = replicated(case.program.settings)
    program = Program(case.program.handlers, settings)
    former = case.former and Program(case.former.handlers, settings)
    return case._replace(program=program, former=former)


def swept(name: str) -> Swept:
    """Try the schedules of one operator."""
    begun = time.process_time()
    cases = cases_named(name)
    if LEADER_ELECT:
        cases = tuple(map(elected, cases))
    allowed = ON_PURPOSE.get(name.rpartition("/")[2], set())
    alarms, specials = list[str](), list[str]()
    counts = [0, 0, 0]
    unknown = 0

    def judge(verdict: Verdict, explorer: Explorer, sort: int) -> None:
        nonlocal unknown
        counts[sort] += 1
        unknown += not verdict.struck
        for each in verdict.violations:
            if each.property not in allowed:
                sure = each in explorer.confirmed(verdict)
                doubt = "" if sure else " (in doubt)"
                words = in_words(verdict.schedule)
                case = explorer.case.name
                found = specials if is_special(verdict.schedule) else alarms
                found.append(
                    f"[{case}] {words}: {each.property}: {each.message}{doubt}"
                )

    for case in cases:
        explorer = Explorer(case)
        judge(explorer.benign, explorer, 0)
        singles = explorer.singles()
        if FAULTS:
            singles = [e for e in singles if e[0].kind.name.startswith(FAULTS)]
        for schedule in singles[: SINGLES // len(cases)]:
            judge(explorer.tried(schedule), explorer, 0)
        # A pair that begins with a special fault is reported, and does not fail a
        # check. An external resource that was created for an object has no owner once a
        # backup has forgotten it.
        for schedule in (each for each in singles if not is_special(each)):
            if counts[1] >= PAIRS * (cases.index(case) + 1) // len(cases):
                break
            for verdict in islice(explorer.pairs(schedule), PAIRS_OF_ONE):
                judge(verdict, explorer, 1)
        for schedule in explorer.random(RANDOM // len(cases)):
            judge(explorer.tried(schedule), explorer, 2)
    singles_, pairs, randoms = counts
    seconds = time.process_time() - begun
    return Swept(name, singles_, pairs, randoms, unknown, seconds, alarms, specials)


def main(wanted: list[str]) -> int:
    """Print a line for each operator, and its alarms."""
    calm_collector()  # as the command does
    names = [
        each
        for each in (*operators(), *(f"mutants/{each.name}" for each in subjects()))
        if any(map(each.startswith, wanted)) or not (wanted or "/" in each)
    ]
    processes = int(os.environ.get("JOBS", os.cpu_count() or 1))
    alarmed = 0
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for found in pool.imap(swept, names, chunksize=1):
            ms = 1e3 * found.seconds / (found.singles + found.pairs + found.randoms)
            print(
                f"{found.name:36} {found.singles:6} singles {found.pairs:6} pairs "
                f"{found.randoms:6} random {found.unknown:5} unknown "
                f"{len(found.alarms):4} alarms {len(found.specials):3} special "
                f"{ms:6.1f} ms each",
                flush=True,
            )
            for each in (*found.alarms[:SHOWN], *found.specials[:SHOWN]):
                print(f"    {each}", flush=True)
            alarmed += bool(found.alarms)
    return 1 if alarmed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
