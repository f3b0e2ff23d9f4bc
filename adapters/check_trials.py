"""The schedules of a check, tried in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import orjson

from fnop.adapters.endings import warn
from fnop.interpreters.check.campaign import Campaign, Result, Task, within
from fnop.interpreters.check.explore import Verdict, digest_of
from fnop.interpreters.check.properties.evidence import Violation

__all__ = ["OtherOrder", "digests_of", "in_processes"]

# Schedules that a process is given at a time.
CHUNK = 8
_working: tuple[Campaign, Sequence[Task]] | None = None


def in_processes(
    campaign: Campaign,
    tasks: Sequence[Task],
    jobs: int,
    goes_on: Callable[[Result], bool],
) -> None:
    """Let several processes try the tasks; they begin as copies of this one."""
    places = [
        range(start, min(start + CHUNK, len(tasks)))
        for start in range(0, len(tasks), CHUNK)
    ]
    global _working  # what the copies are to have
    _working = campaign, tasks
    context = multiprocessing.get_context("fork")
    with context.Pool(jobs, _as_a_worker) as pool:
        found = chain.from_iterable(pool.imap(_tried_in_process, places))
        for result in within(found, campaign.options.budget):
            if not goes_on(result):
                break


def _as_a_worker() -> None:
    """Let the first process alone answer signals: it ends its workers."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _tried_in_process(places: Iterable[int]) -> list[Result]:
    assert _working is not None
    campaign, tasks = _working
    return [campaign.tried(tasks[place]) for place in places]


# ------------------------------------------------------------------- another order


def digests_of(campaign: Campaign) -> dict[str, str]:
    """The digests of the benign runs, by case: the same in any process."""
    return {
        each.case.name: digest_of(each.reference.benign.seen)
        for each in campaign.explorers
    }


class OtherOrder:
    """The benign runs in a process whose sets and dicts have another order."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    @contextmanager
    def begun(cls, arguments: Sequence[str]) -> Iterator[OtherOrder]:
        """Call `fnop` with these arguments once more, until the end of the block."""
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        given = [each for each in arguments if each not in ("-q", "--quiet")]
        with subprocess.Popen(
            [sys.executable, "-m", "fnop", *given, "--digests", "--quiet"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                yield cls(process)
            finally:
                process.kill()

    def differing(self, campaign: Campaign) -> Iterator[Result]:
        """A violation for each case that ends otherwise in the other process."""
        text, _ = self._process.communicate()
        if self._process.returncode:
            warn("the run under another hash seed could not be done")
            return
        found, own = orjson.loads(text), digests_of(campaign)
        for number, explorer in enumerate(campaign.explorers):
            name = explorer.case.name
            if found.get(name) != own[name]:
                message = (
                    f"the script {name!r} goes otherwise under another PYTHONHASHSEED: "
                    "a handler depends on the order of a set, or on hash(); sort it"
                )
                violation = Violation("pure", message)
                yield Result(Task(number, ()), (Verdict((), (violation,)),))
