"""The schedules of a check, tried in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain

import orjson

from fnop.adapters.common.endings import warn
from fnop.adapters.common.programs import python
from fnop.interpreters.check.campaign.campaign import Campaign, within
from fnop.interpreters.check.campaign.explore import (
    Case,
    Verdict,
    benign_run,
    digest_of,
)
from fnop.interpreters.check.campaign.reports import Result, Task
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.runtime.watchdog import PATIENCE_SECONDS, Onlooker

__all__ = ["HASH_SEEDS", "OtherOrder", "digests_of", "in_processes", "onlooker"]

# Number of schedules that a process gets at a time.
CHUNK = 8
_working: tuple[Campaign, Sequence[Task]] | None = None


def in_processes(
    campaign: Campaign,
    tasks: Sequence[Task],
    jobs: int,
    goes_on: Callable[[Result], bool],
) -> None:
    """Let several processes try the tasks; they start as copies of this one."""
    places = [
        range(start, min(start + CHUNK, len(tasks)))
        for start in range(0, len(tasks), CHUNK)
    ]
    global _working  # for the copies
    _working = campaign, tasks
    try:
        pool = multiprocessing.get_context("fork").Pool(jobs, _ignore_interrupts)
    # A system without fork, or without a place for semaphores (Linux: /dev/shm).
    except (ImportError, OSError, ValueError) as problem:
        warn(f"one process tries all schedules, for there can be no others: {problem}")
        with onlooker():
            campaign.run(tasks, lambda result, *_: goes_on(result))
        return
    with pool:
        found = chain.from_iterable(pool.imap(_tried_in_process, places))
        for result in within(found, campaign.options.budget):
            if not goes_on(result):
                break


def onlooker() -> Onlooker:
    """Warn, from now on, about a handler of this thread that does not return."""
    return Onlooker(warn, Machine.feed, PATIENCE_SECONDS)


def _ignore_interrupts() -> None:
    """Ignore SIGINT, so that only the first process answers signals.

    It ends its workers.
    """
    onlooker()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _tried_in_process(places: Iterable[int]) -> list[Result]:
    assert _working is not None
    campaign, tasks = _working
    return [campaign.tried(tasks[place]) for place in places]


# ------------------------------------------------------------------- another order


# The hash seeds under which the runs without faults are compared, independent of this
# process's seed. In one of 16 sets, two words have the same order under all of these
# seeds; three words in one of 1296. Each seed takes a process, half a second, and those
# runs.
HASH_SEEDS = ("1", "2", "3", "4", "5")

_ORDER = (
    "the script {!r} goes otherwise under another PYTHONHASHSEED: a handler depends on "
    "the order of a set, or on hash(); sort it"
)
_MEMORY = (
    "the script {!r} goes otherwise in another process: a handler depends on id(), or "
    "on the order of objects that have no __hash__ of their own; name things by what "
    "they are for"
)

# By the scripts' names.
Digests = Mapping[str, str]


def digests_of(cases: Iterable[Case]) -> dict[str, str]:
    """The digests of the benign runs, by case: the same in any process."""
    return {each.name: digest_of(benign_run(each)) for each in cases}


class OtherOrder:
    """The benign runs in processes whose sets have other orders, some `at_once`."""

    def __init__(self, begin: Callable[[str], Running], at_once: int) -> None:
        self._begin, self._at_once = begin, at_once
        self._begun: list[Running] = []
        self.go_on()

    @classmethod
    @contextmanager
    def begun(cls, arguments: Sequence[str], at_once: int) -> Iterator[OtherOrder]:
        """Call `fnop` with these arguments several times, until the end of the block.

        Their hash seeds are fixed, so that each call gives an operator the same
        verdict. Raises `OSError` if no process can be started.
        """
        given = [each for each in arguments if each not in ("-q", "--quiet")]
        with ExitStack() as stack:

            def begin(seed: str) -> Running:
                program, path = python()
                variables = {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
                process = subprocess.Popen(
                    [program, "-m", "fnop", *given, "--digests", "--quiet"],
                    env={**os.environ, **variables},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                stack.enter_context(process)
                stack.callback(process.kill)
                return process

            yield cls(begin, at_once)

    def go_on(self) -> None:
        """Start further processes when earlier ones have ended."""
        under_way = sum(each.poll() is None for each in self._begun)
        for seed in HASH_SEEDS[len(self._begun) :][: self._at_once - under_way]:
            self._begun.append(self._begin(seed))

    @property
    def is_done(self) -> bool:
        """Whether all of them have ended."""
        ended = [each for each in self._begun if each.poll() is not None]
        return len(ended) == len(HASH_SEEDS)

    def differing(self, campaign: Campaign) -> Iterator[Result]:
        """Yield a violation for each case that does not end alike in all processes."""
        found: list[Digests | None] = []
        while len(found) < len(HASH_SEEDS):
            self.go_on()
            found.append(_said_by(self._begun[len(found)]))
        told = [each for each in found if each is not None]
        if len(told) < len(found):
            warn("the runs under other hash seeds could not be done")
            return
        names = [each.case.name for each in campaign.explorers]
        differing = [each for each in names if len({e.get(each) for e in told}) > 1]
        again = _said_by(self._begin(HASH_SEEDS[0])) if differing else None
        for name in differing:
            is_alike = again is None or again.get(name) == told[0].get(name)
            message = (_ORDER if is_alike else _MEMORY).format(name)
            task = Task(names.index(name), ())
            yield Result(task, (Verdict((), (Violation("pure", message),)),))


Running = subprocess.Popen[bytes]


def _said_by(process: Running) -> Digests | None:
    """The digests that a process has printed at its end; None if it has failed."""
    text, _ = process.communicate()
    found: dict[str, str] | None = None if process.returncode else orjson.loads(text)
    return found
