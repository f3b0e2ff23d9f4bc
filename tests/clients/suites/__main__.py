"""The command: `python -m tests.clients.suites [NAME ...]`.

Each suite whose name contains one of the given words (all, if none is given) runs on a
fresh real API server, if KUBEBUILDER_ASSETS names one, and on a fresh `fnop cluster`.
Everything listens on 127.0.0.1.

Exit status: 0 if all expected tests pass, 1 if not, or if an archive cannot be fetched.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.clients.conftest import running as simulated
from tests.clients.suites.catalogue import SUITES, Suite
from tests.clients.suites.comparing import Outcome, Verdict, table, verdict
from tests.clients.suites.fetching import Unfetched, environment, fetched
from tests.clients.suites.running import run
from tests.cluster import envtest
from tests.simulations import ROOT

CACHE = ROOT / "build" / "clients"


def judged(suite: Suite, python: Path, runs: Path) -> Verdict:
    """Run a suite on the servers that are there."""
    source = fetched(suite.archive, CACHE)
    folder = runs / suite.name.replace(" ", "-").replace(",", "")
    shutil.rmtree(folder, ignore_errors=True)
    real: dict[str, Outcome] | None = None
    with tempfile.TemporaryDirectory(prefix="fnop-clients-") as room:
        if envtest.missing() is None:
            with envtest.running(Path(room) / "real") as server:
                lacking = [*suite.left_out, *suite.not_on_real]
                where = folder / "real"
                real = run(suite, source, python, server.kubeconfig, where, lacking)
        (Path(room) / "here").mkdir()
        with simulated(Path(room) / "here", "--rbac") as served:
            where = folder / "here"
            here = run(suite, source, python, served.kubeconfig, where, suite.left_out)
    return verdict(suite.name, here, real)


def shown(found: Verdict) -> str:
    """The parts to be fixed, or a sentence that all is well."""
    if not found.simulated:
        return f"{found.suite}: no test has run"
    good = "passes" if found.real is None else "as on the real server"
    lines = [f"{found.suite}: {good if found.ok else 'differs'}"]
    lines += [f"  fails here: {node}" for node in found.differing]
    lines += [f"  fails on the real server: {node}" for node in found.unexplained]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.clients.suites",
        description="The suites of other clients, on fnop cluster and a real server.",
    )
    parser.add_argument("words", nargs="*", metavar="NAME", help="part of a name")
    words = parser.parse_args(arguments).words
    chosen = [s for s in SUITES if not words or any(word in s.name for word in words)]
    if not chosen:
        parser.error(f"no suite is called so: {'; '.join(s.name for s in SUITES)}")
    if envtest.missing():
        print(f"without comparison: {envtest.missing()}")
    verdicts: list[Verdict] = []
    problems = 0
    try:
        python = environment(CACHE)
    except Unfetched as problem:
        print(problem, file=sys.stderr)
        return 1
    for suite in chosen:
        try:
            verdicts.append(judged(suite, python, CACHE / "runs"))
        except Unfetched as problem:
            problems += 1
            print(f"{suite.name}: {problem}", file=sys.stderr)
            continue
        print(shown(verdicts[-1]), flush=True)
    print(f"\nPython {platform.python_version()}\n")
    print(table(verdicts))
    print(f"\nwhat they printed: {CACHE / 'runs'}")
    return int(problems > 0 or not all(each.ok for each in verdicts))


if __name__ == "__main__":
    sys.exit(main())
