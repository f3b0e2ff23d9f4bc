"""A run from the command line."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.cluster.churn.plans import Plan
from tests.cluster.churn.proving import proved
from tests.cluster.churn.running import churn
from tests.cluster.envtest import missing


def main() -> int:
    """Make a run; exit with status 1 if something was not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.churn")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--objects", type=int, default=500)
    parser.add_argument("--bound", type=float, default=120.0)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--no-outages", action="store_true")
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="record each process, and look whether the recordings replay",
    )
    parser.add_argument("--folder", type=Path, help="where logs are kept (a new one)")
    given = parser.parse_args()
    if (reason := missing()) is not None:
        print(reason, file=sys.stderr)
        return 2
    folder = given.folder or Path(tempfile.mkdtemp(prefix="churn-"))
    folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        given.seconds,
        given.seed,
        given.objects,
        given.bound,
        not given.no_outages,
        given.replicas,
        given.recorded,
    )
    report = asyncio.run(churn(plan, folder))
    print(report)
    print(f"the operator's log, its ledger and a trace are in {folder}")
    problems = [*report.violations]
    if plan.recorded:
        proof = proved(sorted(folder.glob("operator-*.fnop")), folder)
        print(proof)
        problems += proof.problems
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
