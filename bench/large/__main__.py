"""The command: `python -m bench.large`.

An operator starts again over a large collection that needs nothing.  While it was down
two objects have come: one sorts before all others, one behind them.  Measured are the
times of their results, the CPU time, and the memory at rest and at its peak.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp

from bench import workload
from bench.__main__ import in_turn, say
from bench.client import connect, loop_factory
from bench.large.report import (
    GOALS_OBJECTS,
    GOALS_SIZE,
    MB,
    Round,
    Run,
    figures,
    verdicts,
)
from bench.large.trial import Collection, Server
from bench.report import Figures, medians, table
from bench.servers import CRD, FULL, SERVERS, missing, running
from bench.trial import Failed

CONTENDERS = ("floor", "fnop", "kopf")
VARIANTS = (
    *("fnop-streaming", "fnop-index"),
    *("kopf-pages", "kopf-streaming", "kopf-index"),
)
NOTES = (
    f"The goals are those of {GOALS_OBJECTS:,} objects of {GOALS_SIZE:,} bytes.",
    "Kopf keeps no objects: only `kopf-index` and `fnop-index` hold the same.",
)
# One operator's problems do not affect the figures of the others.
TROUBLES = (Failed, aiohttp.ClientError)


@dataclass(frozen=True, slots=True)
class Options:
    objects: int
    size: int
    rounds: int
    only: Sequence[str]
    server: str
    deadline: float
    json: Path | None


@dataclass(frozen=True, slots=True)
class Results:
    rounds: dict[str, list[Round]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def finished(self) -> Mapping[str, Sequence[Figures]]:
        return {
            name: [*map(figures, found)]
            for name, found in self.rounds.items()
            if name not in self.failures
        }


def options(args: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench.large", description=__doc__)
    parser.add_argument("--objects", type=int, default=GOALS_OBJECTS)
    parser.add_argument("--size", type=int, default=GOALS_SIZE, help="bytes, when new")
    parser.add_argument("--rounds", type=int, default=3, help="restarts of each")
    parser.add_argument("--only", default=",".join(CONTENDERS), metavar="NAME,...")
    parser.add_argument("--server", choices=SERVERS, default=CRD)
    parser.add_argument("--deadline", type=float, default=3600, metavar="SECONDS")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all runs, to a file")
    given = parser.parse_args(args)
    given.only = given.only.split(",")
    if unknown := set(given.only) - {*CONTENDERS, *VARIANTS}:
        parser.error(f"no such contender: {', '.join(sorted(unknown))}")
    if given.server == FULL and "kopf-streaming" in given.only:
        parser.error("kopf-streaming takes --server crd: 1.20 has no streaming lists")
    if given.objects < 2 or given.rounds < 1:
        parser.error("it takes at least 2 objects and 1 round")
    return Options(**vars(given))


def families(names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The contenders that share handled objects, by the operator that handles them.

    >>> families(["floor", "kopf", "kopf-pages"])
    {'floor': ['floor'], 'kopf': ['kopf', 'kopf-pages']}
    """
    found = defaultdict(list)
    for name in names:
        found[name.partition("-")[0]].append(name)
    return dict(found)


async def measure(
    given: Options, family: str, kubeconfig: str, folder: Path, results: Results
) -> None:
    """Prepare the collection by one operator, and start each of its variants over it.

    Both are first done with a single object.
    """
    async with connect(kubeconfig) as session:
        await workload.define(session)
        has_front = given.server == CRD
        log = folder / "stderr"
        server = Server(session, kubeconfig, has_front, given.deadline, log)
        length = await server.length_for(given.size)
        single = Collection(server, "bench-single", length)
        whole = Collection(server, "bench-whole", length)
        try:
            await single.prepare(family, 1)
            body = await whole.prepare(family, given.objects)
        except TROUBLES as error:
            results.failures[family] = f"while it was prepared: {error}"
            return
        say(f"{family}: all objects are handled, {body.size:,.0f} bytes each")
        names = families(given.only)[family]
        for number in range(1, given.rounds + 1):
            for name in in_turn(names, number):
                if name in results.failures:
                    continue
                try:
                    start = await single.restart(name, 1)
                    run = await whole.restart(name, given.objects)
                except TROUBLES as error:
                    results.failures[name] = str(error)
                    say(f"round {number}, {name}: {error}")
                else:
                    results.rounds.setdefault(name, []).append(Round(start, run, body))
                    say(f"round {number}, {name}: {summary(run)}")


def summary(run: Run) -> str:
    return (
        f"first {run.first:.2f} s, last {run.last:.2f} s, CPU {run.cpu:.2f} s, "
        f"{run.resident / MB:.0f} MB, peak {run.peak / MB:.0f} MB"
    )


def conclude(given: Options, results: Results) -> int:
    """Print the results; return 0 if every contender ran and no goal was missed."""
    found = results.finished()
    judged = verdicts({name: medians(each) for name, each in found.items()})
    loop = "uvloop" if loop_factory() else "asyncio"
    print(
        f"{given.objects:,} objects of {given.size:,} bytes when new; server "
        f"{given.server}; medians of {given.rounds} restarts; {loop} loop; "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end\n"
    )
    print(table(found, judged) if found else "no contender finished")
    print("\n" + "\n".join(NOTES))
    for name, reason in results.failures.items():
        print(f"\n{name} failed: {reason}")
    missed = [verdict for verdict in judged if not verdict.kept]
    return 1 if results.failures or missed else 0


def main(args: Sequence[str]) -> int:
    given = options(args)
    if problem := missing(given.server):
        say(f"bench.large {problem}")
        return 2
    results = Results()
    with tempfile.TemporaryDirectory() as folder:
        for family in families(given.only):
            place = Path(folder) / family
            place.mkdir()
            with running(
                given.server, place / "server", controllers=False
            ) as kubeconfig:
                asyncio.run(measure(given, family, kubeconfig, place, results))
            if given.json:
                given.json.write_text(json.dumps(asdict(results), indent=1) + "\n")
    return conclude(given, results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
