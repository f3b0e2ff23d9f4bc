"""The command: `python -m bench`.

Every round runs every contender, so that a machine that gets slower in between
slows all of them.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import report, workload
from bench.client import connect, loop_factory
from bench.report import Round
from bench.trial import Failed, Trial
from tests.cluster import envtest

CONTENDERS = ("floor", "fnop", "kopf")
# The same operator with a recording: not in the usual rounds.
RECORDED = ("fnop-ring", "fnop-full")
# An unchanged Kopf operator on fnop; Kopf with lists in chunks.
OF_KOPF = ("kopf-on-fnop", "kopf-chunked")


@dataclass(frozen=True, slots=True)
class Options:
    objects: int
    rounds: int
    only: Sequence[str]
    size: int
    delete_handler: bool
    json: Path | None
    kubeconfig: str | None


@dataclass(frozen=True, slots=True)
class Results:
    rounds: Mapping[str, Sequence[Round]]
    failures: Mapping[str, str]

    def medians(self) -> dict[str, report.Figures]:
        return {
            name: report.medians(map(report.figures, rounds))
            for name, rounds in self.rounds.items()
        }


def options(args: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(CONTENDERS), metavar="NAME,...")
    parser.add_argument("--size", type=int, default=1300, help="bytes of an object")
    parser.add_argument("--delete-handler", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all runs, to a file")
    parser.add_argument("--kubeconfig", help="a test server that already runs")
    given = parser.parse_args(args)
    given.only = given.only.split(",")
    if unknown := set(given.only) - {*CONTENDERS, *RECORDED, *OF_KOPF}:
        parser.error(f"no such contender: {', '.join(sorted(unknown))}")
    if given.objects < 2 or given.rounds < 1:
        parser.error("it takes at least 2 objects and 1 round")
    return Options(**vars(given))


async def measure(given: Options, kubeconfig: str, log: Path) -> Results:
    rounds: defaultdict[str, list[Round]] = defaultdict(list)
    failures: dict[str, str] = {}
    async with connect(kubeconfig) as session, workload.namespace(session) as place:
        await workload.define(session)
        padding = await workload.padding_for(session, place, given.size)
        trial = Trial(session, kubeconfig, place, padding, given.delete_handler, log)
        for number in range(1, given.rounds + 1):
            for name in in_turn(given.only, number):
                if name in failures:
                    continue
                try:
                    found = await one_round(trial, name, given.objects)
                except Failed as error:
                    failures[name] = str(error)
                    say(f"round {number}, {name}: {error}")
                else:
                    rounds[name].append(found)
                    say(f"round {number}, {name}: {summary(found)}")
    return Results({k: v for k, v in rounds.items() if k not in failures}, failures)


def in_turn(names: Sequence[str], number: int) -> Sequence[str]:
    """The order of the contenders in a round: the first in one is the last in the next.

    >>> in_turn(["floor", "fnop"], 1), in_turn(["floor", "fnop"], 2)
    (['floor', 'fnop'], ['fnop', 'floor'])
    """
    return names if number % 2 else names[::-1]


async def one_round(trial: Trial, name: str, objects: int) -> Round:
    return Round(await trial.run(name, 1), await trial.run(name, objects))


def summary(found: Round) -> str:
    run = found.backlog
    return (
        f"{run.wall:.2f} s, CPU {run.cpu:.2f} s, "
        f"{run.peak_mb:.0f} MB, {run.writes} writes"
    )


def conclude(given: Options, results: Results) -> int:
    """Print the results; return 0 if every contender ran and no budget was missed."""
    medians = results.medians()
    verdicts = report.verdicts(medians, given.objects, given.delete_handler)
    deleting = ", with a deletion handler" if given.delete_handler else ""
    loop = "uvloop" if loop_factory() else "asyncio"
    print(
        f"backlog of {given.objects} objects of {given.size} bytes{deleting}; "
        f"medians of {given.rounds} rounds; {loop} loop; {os.cpu_count()} cores\n"
    )
    print(report.table(medians, verdicts) if medians else "no contender finished")
    for name, reason in results.failures.items():
        print(f"\n{name} failed: {reason}")
    if given.json:
        given.json.write_text(json.dumps(asdict(results), indent=1) + "\n")
    missed = [verdict for verdict in verdicts if not verdict.kept]
    return 1 if results.failures or missed else 0


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(args: Sequence[str]) -> int:
    given = options(args)
    if given.kubeconfig is None and (problem := envtest.missing()):
        say(f"bench {problem}")
        return 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kubeconfig = given.kubeconfig or str(
            stack.enter_context(envtest.running(folder / "server")).kubeconfig
        )
        results = asyncio.run(measure(given, kubeconfig, folder / "stderr"))
    return conclude(given, results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
