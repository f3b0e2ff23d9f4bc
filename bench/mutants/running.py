"""All mutants of all operators, in processes."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from bench.mutants.judging import Outcome, Subjected, judge
from bench.mutants.mutators import Mutant, mutants_of
from bench.mutants.subjects import ON_PURPOSE, Subject, subjects

__all__ = ["Judged", "chosen", "judged_all"]


class Judged(NamedTuple):
    """The results of a subject: its mutants, and the alarms that it raises itself.

    `seconds` are processor time; `purposes` are alarms that it raises on purpose.
    """

    name: str
    seconds: float
    alarms: list[str]
    purposes: list[str]
    outcomes: list[Outcome]


class Task(NamedTuple):
    """A subject by its name, a folder for its mutants, and their number per sort."""

    name: str
    folder: str
    each: int


def chosen(found: Iterable[Mutant], each: int) -> list[Mutant]:
    """A number `each` of mutants of each sort, evenly spread over them; with 0 all.

    The source determines their start, so that not all are from the first lines.
    """
    kept: list[Mutant] = []
    for _, group in groupby(found, key=lambda mutant: mutant.operator):
        several = [*group]
        number = min(each or len(several), len(several))
        begin = crc32(several[0].source.encode())
        places = (place * len(several) // number for place in range(number))
        kept += [several[i] for i in sorted((begin + p) % len(several) for p in places)]
    return kept


def judged_all(found: Sequence[Subject], each: int, jobs: int) -> Iterator[Judged]:
    """Judge the mutants of all subjects, one after the other, in their order."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        tasks = [Task(subject.name, folder, each) for subject in found]
        if jobs == 1:
            yield from map(judged, tasks)
            return
        with ProcessPoolExecutor(jobs, context) as pool:
            yield from pool.map(judged, tasks)


def judged(task: Task) -> Judged:
    """Judge the mutants of a subject."""
    subject = next(found for found in subjects() if found.name == task.name)
    begun = time.process_time()
    subjected = Subjected(subject)
    outcomes = []
    mutants = chosen(mutants_of(subject.file.read_text()), task.each)
    for number, mutant in enumerate(mutants):
        stem = f"mutant_{task.name.replace('-', '_')}_{number:03}"
        file = Path(task.folder) / f"{stem}.py"
        file.write_text(mutant.source)
        outcomes.append(judge(subjected, mutant, file))
    alarms: dict[bool, list[str]] = {False: [], True: []}
    for (_, name), words in subjected.alarms.items():
        on_purpose = name in ON_PURPOSE.get(task.name, ())
        alarms[on_purpose].append(f"{words} ({name})")
    seconds = time.process_time() - begun
    return Judged(task.name, seconds, alarms[False], alarms[True], outcomes)
