"""The calls of Python functions in fnop, by the parts of the program.

    python -m bench.calls [--objects 300] [--json FILE]

cProfile counts them in an operator that runs over one object of the backlog, and over
301. The first count is the start, and the difference is the work for the other objects.
A call of a built-in function counts for the part that makes it.
"""

import argparse
import asyncio
import pstats
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import workload
from bench.__main__ import add_to, say, setting
from bench.cases import CASES, FNOP, Case
from bench.client import connect
from bench.trial import Trial
from tests.cluster import envtest

SECTION = "calls"
OBJECTS = 300
OTHERS = "the standard library, others"
# The first part whose folder or module is in the path of a file.
PARTS: Mapping[str, Sequence[str]] = {
    "core: decisions": ("/core/", "/effects/"),
    "interpreters: effects": ("/interpreters/",),
    "adapters: requests, watches": ("/adapters/",),
    "HTTP and the client library": (
        *("/aiohttp", "/yarl/", "/multidict/", "/httptools/", "/kubernetes_asyncio/"),
        *("/http/", "/urllib/"),
    ),
    "event loop, sockets, TLS": ("/asyncio/", "/selectors.py", "/ssl.py", "/socket.py"),
    "imports": ("importlib",),
}

Function = tuple[str, int, str]  # file, line, name


def part_of(file: str) -> str:
    """The part of the program that a file belongs to.

    >>> part_of("/fnop/core/operator/step.py"), part_of("/lib/python3/asyncio/tasks.py")
    ('core: decisions', 'event loop, sockets, TLS')
    """
    found = (name for name, parts in PARTS.items() if any(p in file for p in parts))
    return next(found, OTHERS)


def calls_in(stats: Mapping[Function, Any]) -> Counter[str]:
    """The calls in a profile, by the part that is called, or that calls a built-in."""
    found: Counter[str] = Counter(dict.fromkeys((*PARTS, OTHERS), 0))
    for (file, _, _), (_, calls, _, _, callers) in stats.items():
        if file != "~":
            found[part_of(file)] += calls
            continue
        for (caller, _, _), (_, made, _, _) in callers.items():
            found[part_of(caller)] += made
    return found


async def counted(trial: Trial, case: Case, folder: Path, padding: int) -> Counter[str]:
    """The calls in one run of fnop."""
    file = folder / f"{case.objects}.profile"
    python = (sys.executable, "-m", "cProfile", "-o", str(file))
    await replace(trial, python=python).run(FNOP, case, padding)
    return calls_in(pstats.Stats(str(file)).stats)  # type: ignore[attr-defined]


async def measure(kubeconfig: str, objects: int, folder: Path) -> dict[str, Any]:
    """The calls of the start and of an object, by part."""
    one, more = (replace(CASES["backlog"], objects=n) for n in (1, 1 + objects))
    async with connect(kubeconfig) as session, workload.namespace(session) as place:
        await workload.define(session)
        padding = await workload.padding_for(session, place, one.size)
        log = folder / "stderr"
        trial = Trial(session, kubeconfig, place, delete_handler=False, log=log)
        await trial.run(FNOP, one, padding)  # its bytecode is kept from now on
        start = await counted(trial, one, folder, padding)
        whole = await counted(trial, more, folder, padding)
        return {
            "objects": objects,
            "setting": await setting(session),
            "start": dict(start),
            "per object": {k: (whole[k] - start[k]) / objects for k in start},
        }


def main(args: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.calls")
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="add to its results")
    given = parser.parse_args(args)
    if (reason := envtest.missing()) is not None:
        say(f"bench.calls {reason}")
        return 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(envtest.running(folder / "server"))
        found = asyncio.run(measure(str(server.kubeconfig), given.objects, folder))
    for part, calls in found["per object"].items():
        print(
            f"{part:30} {found['start'][part]:8,} at the start {calls:8.1f} an object"
        )
    if given.json:
        add_to(given.json, SECTION, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
