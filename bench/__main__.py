"""The command: `python -m bench`.

Every round runs every contender, so that a machine that gets slower in between
slows all of them.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import aiohttp

from bench import cases, report, workload
from bench.cases import CASES, CONTENDERS, FURTHER, OF_STREAMS, STREAMING, Case
from bench.client import connect, loop_factory, request
from bench.report import Figures, Round, Verdict
from bench.servers import CRD, FULL, SERVERS, missing, running, server_words
from bench.trial import Failed, Run, Trial


@dataclass(frozen=True, slots=True)
class Options:
    cases: Sequence[Case]
    rounds: int
    only: Sequence[str]
    delete_handler: bool
    json: Path | None
    server: str
    kubeconfig: str | None


@dataclass(frozen=True, slots=True)
class Result:
    """A case: the figures of each contender in each round, or why it has failed."""

    case: Case
    rounds: dict[str, list[Figures]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def finished(self) -> dict[str, list[Figures]]:
        return {k: v for k, v in self.rounds.items() if k not in self.failures}

    def verdicts(self, delete_handler: bool) -> list[Verdict]:
        """fnop has budgets for a backlog of small objects without children."""
        backlog = CASES["backlog"]
        if (self.case.work, self.case.operator) != (backlog.work, backlog.operator):
            return []
        if self.case.size > backlog.size:
            return []
        medians = {k: report.medians(v) for k, v in self.finished().items()}
        return report.verdicts(medians, self.case.objects, delete_handler)


def options(args: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--case",
        default=cases.USUAL,
        metavar="NAME,...",
        help=f"some of {', '.join(CASES)}, or {cases.ALL} (default: %(default)s)",
    )
    parser.add_argument("--objects", type=int, help="instead of the number of a case")
    parser.add_argument("--size", type=int, help="bytes of an object, likewise")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only",
        metavar="NAME,...",
        help=f"default: {','.join(CONTENDERS)}; with `--server {CRD}` "
        f"{','.join(OF_STREAMS)}",
    )
    parser.add_argument("--delete-handler", action="store_true")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write all figures to a file, and keep its other cases",
    )
    server = parser.add_mutually_exclusive_group()
    server.add_argument(
        "--server",
        choices=SERVERS,
        default=FULL,
        help=f"the server to start: {FULL}, a whole kube-apiserver, or {CRD}, one of "
        "custom kinds that has streaming lists (default: %(default)s)",
    )
    server.add_argument("--kubeconfig", help="a test server that already runs")
    given = parser.parse_args(args)
    usual = OF_STREAMS if given.server == CRD else CONTENDERS
    only = given.only.split(",") if given.only else usual
    if unknown := set(only) - {*CONTENDERS, *FURTHER}:
        parser.error(f"no such contender: {', '.join(sorted(unknown))}")
    try:
        chosen = cases.named(given.case)
    except KeyError as error:
        parser.error(f"no such case: {error.args[0]}")
    changes = {k: v for k in ("objects", "size") if (v := getattr(given, k))}
    chosen = [replace(e, **changes) for e in chosen if {*only} & {*e.contenders}]
    if given.server == CRD:  # which has no ConfigMaps
        chosen = [each for each in chosen if each.operator != "parents"]
    if not chosen:
        parser.error("none of these contenders takes part in any of these cases")
    if any(each.objects < 2 for each in chosen) or given.rounds < 1:
        parser.error("it takes at least 2 objects and 1 round")
    return Options(
        chosen,
        given.rounds,
        only,
        given.delete_handler,
        given.json,
        given.server,
        given.kubeconfig,
    )


class Bench:
    """One API server, one namespace, and the results so far."""

    def __init__(self, trial: Trial, results: Sequence[Result]) -> None:
        self.trial, self.results = trial, results
        self.paddings: dict[int, int] = {}
        self.starts: dict[tuple[str, str], Run] = {}  # of a round

    async def warm_up(self, only: Sequence[str]) -> None:
        """Run each contender with a single object, so that its bytecode is kept."""
        single = replace(CASES["backlog"], objects=1)
        for name in only:
            with suppress(Failed):  # then it fails in the rounds, too
                await self.trial.run(name, single, 0)

    async def round(self, number: int, only: Sequence[str]) -> None:
        """Run all contenders over all cases."""
        self.starts.clear()
        for result in self.results:
            names = [each for each in only if each in result.case.contenders]
            for name in in_turn(names, number):
                if name in result.failures:
                    continue
                words = f"round {number}, {result.case.name}, {name}"
                try:
                    found = await self.one(result.case, name)
                except (Failed, TimeoutError) as error:
                    result.failures[name] = str(error) or "it does not rest"
                    say(f"{words}: {result.failures[name]}")
                else:
                    figures = report.figures(result.case, found)
                    result.rounds.setdefault(name, []).append(figures)
                    say(f"{words}: {summary(found.run)}")

    async def one(self, case: Case, name: str) -> Round:
        """A contender with a single object, once in each round, and in a case."""
        key = name, case.operator
        if key not in self.starts:
            single = replace(case, work="backlog", objects=1)
            self.starts[key] = await self.trial.run(name, single, 0)
        padding = await self.padding(case.size)
        return Round(self.starts[key], await self.trial.run(name, case, padding))

    async def padding(self, size: int) -> int:
        if size not in self.paddings:
            session, place = self.trial.session, self.trial.namespace
            self.paddings[size] = await workload.padding_for(session, place, size)
        return self.paddings[size]


async def measure(
    given: Options, kubeconfig: str, log: Path
) -> tuple[Sequence[Result], Mapping[str, Any]]:
    """The results of all cases, and the setting in which they were measured."""
    results = [Result(each) for each in given.cases]
    async with connect(kubeconfig) as session, workload.namespace(session) as place:
        await workload.define(session)
        only = given.only
        skipped = [each for each in only if each in STREAMING]
        if skipped and not await workload.streams(session, place):
            names = ", ".join(skipped)
            say(f"skipped, for the server has no streaming lists: {names}")
            only = [each for each in only if each not in skipped]
        trial = Trial(session, kubeconfig, place, given.delete_handler, log)
        bench = Bench(trial, results)
        await bench.warm_up(only)
        for number in range(1, given.rounds + 1):
            await bench.round(number, only)
        return results, await setting(session)


async def setting(session: aiohttp.ClientSession) -> Mapping[str, Any]:
    """The versions and the number of cores, on which the figures depend."""
    _, answer = await request(session, "GET", "/version")
    found = {"python": platform.python_version(), "server": version_of(answer)}
    for name in ("kopf", "aiohttp", "orjson", "uvloop"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, "cores": os.cpu_count()}


def version_of(answer: Mapping[str, str]) -> str:
    """The version of a server; a build without a release has only two numbers.

    >>> version_of({"major": "1", "minor": "20", "gitVersion": "v1.20.2"})
    'v1.20.2'
    >>> version_of({"major": "1", "minor": "36", "gitVersion": "v0.0.0-master+x"})
    'v1.36'
    """
    found = answer["gitVersion"]
    is_release = not found.startswith("v0.0.0")
    return found if is_release else f"v{answer['major']}.{answer['minor']}"


def in_turn(names: Sequence[str], number: int) -> Sequence[str]:
    """The order of the contenders in a round: the first in one is the last in the next.

    >>> in_turn(["floor", "fnop"], 1), in_turn(["floor", "fnop"], 2)
    (['floor', 'fnop'], ['fnop', 'floor'])
    """
    return names if number % 2 else names[::-1]


def summary(run: Run) -> str:
    return (
        f"{run.wall:.2f} s, CPU {run.cpu:.2f} s, "
        f"{run.peak_mb:.0f} MB, {run.writes} writes"
    )


def conclude(
    given: Options, results: Sequence[Result], setting: Mapping[str, Any]
) -> int:
    """Print the results; return 0 if every contender ran and no budget was missed."""
    deleting = "with a deletion handler; " if given.delete_handler else ""
    loop = "uvloop" if loop_factory() else "asyncio"
    print(
        f"medians of {given.rounds} rounds (least-most), and ratios to the floor; "
        f"{deleting}{loop} loop; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} "
        f"at the end; {server_words(given.server, setting['server'])}"
    )
    is_good = True
    for result in results:
        case, rounds = result.case, result.finished()
        judged = result.verdicts(given.delete_handler)
        print(f"\n{case.name}: {case.words}, {case.objects:,} of {case.size:,} bytes\n")
        print(report.table(rounds, judged) if rounds else "no contender finished")
        for name, reason in result.failures.items():
            print(f"\n{name} failed: {reason}")
        is_good &= not result.failures and all(each.kept for each in judged)
    if given.json:
        store(given.json, results, setting, given.server)
    return 0 if is_good else 1


def store(
    file: Path,
    results: Sequence[Result],
    setting: Mapping[str, Any],
    server: str = FULL,
) -> None:
    """Write the results of cases to a file."""
    for each in results:
        found = {
            "objects": each.case.objects,
            "size": each.case.size,
            "setting": dict(setting),
            "rounds": each.rounds,
            "failures": each.failures,
        }
        add_to(file, section_of(each.case.name, server), found)


def section_of(case: str, server: str) -> str:
    """The section of a case; servers do not share them.

    >>> section_of("backlog", "full"), section_of("backlog", "crd")
    ('backlog', 'backlog-crd')
    """
    return case if server == FULL else f"{case}-{server}"


def add_to(file: Path, section: str, found: Mapping[str, Any]) -> None:
    """Write a section of a file; its other sections stay as they are."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    kept[section] = found
    file.write_text(json.dumps(kept, indent=1) + "\n")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(args: Sequence[str]) -> int:
    given = options(args)
    if given.kubeconfig is None and (problem := missing(given.server)):
        say(f"bench {problem}")
        return 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kubeconfig = given.kubeconfig or stack.enter_context(
            running(given.server, folder / "server")
        )
        results, setting = asyncio.run(measure(given, kubeconfig, folder / "stderr"))
    return conclude(given, results, setting)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
