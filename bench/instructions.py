"""Instructions of an operator, counted by valgrind: `python -m bench.instructions`.

Each contender runs under `valgrind --tool=callgrind` over 1, 201 and 601 objects of the
backlog. The first count is the start. The last difference is the cost of the other
objects: by then all connections are open, whose TLS handshakes cost 6 million each.
Counts hardly depend on the machine's load. They exclude the kernel, such as its part of
sending and receiving.
"""

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bench import workload
from bench.__main__ import add_to, say, setting
from bench.cases import CASES, CONTENDERS, FLOOR, Case
from bench.client import connect
from bench.trial import Failed, Trial
from tests.cluster import envtest

SECTION = "instructions"
OBJECTS = 400
# The objects of a run after which all connections are open.
WARM = 201
# Callgrind makes a process some 50 times slower.
DEADLINE, QUIET, PATIENCE = 1800.0, 10.0, 300.0
MILLION = 1e6
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Count:
    """Instructions of one contender."""

    start: int  # of a run with one object
    per_object: float


def missing() -> str | None:
    """The reason why nothing can be counted here, or None."""
    if shutil.which("valgrind") is None:
        return "is skipped: valgrind is not installed, which counts the instructions"
    return envtest.missing()


def total_of(text: str) -> int:
    """The instructions in a file of callgrind.

    >>> total_of("events: Ir\\nfn=(1)\\n1 20\\ntotals: 1250\\n")
    1250
    """
    return int(_TOTAL.findall(text)[-1])


async def counted(trial: Trial, contender: str, case: Case, folder: Path) -> int:
    """The instructions of one run of a contender."""
    padding = await workload.padding_for(trial.session, trial.namespace, case.size)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        tool = ["valgrind", "--quiet", "--tool=callgrind", "--trace-children=no"]
        python = [*tool, f"--callgrind-out-file={place}/out.%p", sys.executable]
        await replace(trial, python=python).run(contender, case, padding)
        files = [*Path(place).glob("out.*")]
        if not files:
            raise Failed("valgrind has written no file: the operator was killed")
        return sum(total_of(file.read_text(errors="replace")) for file in files)


async def measure(
    only: Sequence[str], objects: int, kubeconfig: str, folder: Path
) -> tuple[dict[str, Count], dict[str, object]]:
    """The counts of each contender, and the setting."""
    found = {}
    async with connect(kubeconfig) as session, workload.namespace(session) as place:
        await workload.define(session)
        log = folder / "stderr"
        trial = Trial(
            session,
            kubeconfig,
            place,
            delete_handler=False,
            log=log,
            deadline=DEADLINE,
            quiet=QUIET,
            patience=PATIENCE,
        )
        one, warm, more = (
            replace(CASES["backlog"], objects=n) for n in (1, WARM, WARM + objects)
        )
        for name in only:
            await trial.run(name, one, 0)  # its bytecode is kept from now on
            start = await counted(trial, name, one, folder)
            least = await counted(trial, name, warm, folder)
            whole = await counted(trial, name, more, folder)
            found[name] = Count(start, (whole - least) / objects)
            say(f"{name}: {start / MILLION:,.0f} million at the start")
        return found, dict(await setting(session))


def table(found: dict[str, Count]) -> str:
    """A Markdown table: a contender per line, with ratios to the hand-written loop.

    >>> print(table({"floor": Count(10**9, 1e6), "fnop": Count(2 * 10**9, 2.5e6)}))
    | | instructions at the start, million | per object, million |
    |---|--:|--:|
    | floor | 1,000, 1.0 x | 1.00, 1.0 x |
    | fnop | 2,000, 2.0 x | 2.50, 2.5 x |
    """
    head = "| | instructions at the start, million | per object, million |"
    return "\n".join((head, "|---|--:|--:|", *_lines(found)))


def _lines(found: dict[str, Count]) -> Iterator[str]:
    floor = found.get(FLOOR)
    for name, count in found.items():
        start = f"{count.start / MILLION:,.0f}"
        each = f"{count.per_object / MILLION:.2f}"
        if floor:
            start += f", {count.start / floor.start:.1f} x"
            each += f", {count.per_object / floor.per_object:.1f} x"
        yield f"| {name} | {start} | {each} |"


def main(args: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.instructions", description=__doc__
    )
    parser.add_argument("--only", default=",".join(CONTENDERS), metavar="NAME,...")
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="add to its results")
    given = parser.parse_args(args)
    if (reason := missing()) is not None:
        say(f"bench.instructions {reason}")
        return 0 if shutil.which("valgrind") is None else 2
    os.environ["PYTHONHASHSEED"] = "0"  # the order of sets is the same in each run
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(envtest.running(folder / "server"))
        found, where = asyncio.run(
            measure(
                given.only.split(","), given.objects, str(server.kubeconfig), folder
            )
        )
    print(table(found))
    if given.json:
        counts = {
            "objects": given.objects,
            "setting": where,
            "start": {name: each.start for name, each in found.items()},
            "per object": {name: each.per_object for name, each in found.items()},
        }
        add_to(given.json, SECTION, counts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
