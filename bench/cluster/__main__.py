"""The command: `python -m bench.cluster`.

The simulated cluster behind HTTP (`fnop cluster`) next to kube-apiserver and etcd, both
with TLS, in interleaved rounds; then the simulated cluster by itself.
"""

import argparse
import asyncio
import base64
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields
from pathlib import Path

import yaml

from bench.client import client_tls, loop_factory, named
from bench.cluster import inside
from bench.cluster.connection import Target
from bench.cluster.load import Figures, measure
from bench.process import ROOT, peak_of
from tests.cluster import envtest

READY_SECONDS = 20.0
# The figures that the simulated cluster has to reach, as multiples of the real one's.
BUDGETS = {"create": 2.0, "patch": 2.0, "get": 1.0, "list": 1.0, "watch": 1.0}
INSIDE_BUDGETS: dict[str, tuple[float, Callable[[float, float], bool]]] = {
    "plain_patches": (10_000, float.__ge__),
    "typed_patches": (1_000, float.__ge__),
    "fork_us": (10, float.__le__),
    "memory_mb": (150, float.__le__),
}


def target_of(kubeconfig: Path) -> Target:
    """The server of a kubeconfig's current context, as that context's user."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = named(config, "context", config["current-context"])
    cluster = named(config, "cluster", context["cluster"])
    user = named(config, "user", context["user"])
    if not cluster["server"].startswith("https"):
        return Target(cluster["server"], None)
    if "token" in user:
        given = cluster.get("certificate-authority-data")
        pem = base64.b64decode(given).decode() if given else None
        found = cluster.get("certificate-authority")
        tls = ssl.create_default_context(cadata=pem, cafile=found)
        return Target(cluster["server"], tls, user["token"])
    return Target(cluster["server"], client_tls(cluster, user))


@contextmanager
def simulated(folder: Path) -> Iterator[tuple[Target, Callable[[], float], float]]:
    """`fnop cluster` with TLS; its peak memory in MB, and its seconds to readiness."""
    kubeconfig, log = folder / "simulated.kubeconfig", folder / "simulated.log"
    command = [sys.executable, "-m", "fnop", "cluster", "--port", "0", "--tls"]
    # Installed packages are compiled, so code that runs from its source must be, too.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig)],
            cwd=ROOT,
            env=kept,
            stdout=subprocess.PIPE,
            stderr=output,
        )
    try:
        assert child.stdout is not None
        if not child.stdout.readline():
            raise RuntimeError(f"fnop cluster ended: {log.read_text()[-500:]}")
        ready = time.perf_counter() - begin
        status = Path(f"/proc/{child.pid}/status")
        yield target_of(kubeconfig), lambda: peak_of(status.read_text()), ready
    finally:
        child.terminate()
        child.wait(READY_SECONDS)


def medians(rounds: Sequence[Figures]) -> Figures:
    """Each figure's median."""
    found = (
        statistics.median(getattr(one, name.name) for one in rounds)
        for name in fields(Figures)
    )
    return Figures(*found)


def table(real: Figures, ours: Figures) -> tuple[str, list[str]]:
    """A Markdown table, and the missed budgets."""
    lines = ["|  | kube-apiserver + etcd | fnop cluster | ratio |", "| --- " * 4 + "|"]
    missed = []
    for name, figure in asdict(real).items():
        mine = asdict(ours)[name]
        verb, _, clients = name.partition("_")
        many = "s" if clients == "16" else ""
        label = f"{verb}, {clients} client{many}" if clients else "events to 10 watches"
        lines.append(f"| {label} | {figure:,.0f} | {mine:,.0f} | {mine / figure:.1f} |")
        if mine / figure < BUDGETS[verb]:
            missed.append(f"{label}: {mine / figure:.2f}, not {BUDGETS[verb]}")
    return "\n".join(lines), missed


def inside_report(found: inside.Inside) -> tuple[str, list[str]]:
    lines, missed = [], []
    for name, figure in asdict(found).items():
        budget, keeps = INSIDE_BUDGETS.get(name, (None, float.__ge__))
        bound = "" if budget is None else f" (budget {budget:,})"
        lines.append(f"{name}: {figure:,.2f}{bound}")
        if budget is not None and not keeps(float(figure), float(budget)):
            missed.append(f"{name}: {figure:,.2f}, not {budget:,}")
    return "\n".join(lines), missed


def main(args: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of request counts")
    parser.add_argument("--inside", action="store_true", help="only without servers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all rounds")
    given = parser.parse_args(args)
    text, missed = inside_report(inside.measure())
    print(text, flush=True)
    if given.inside:
        return conclude(missed)
    if problem := envtest.missing():
        print(f"bench {problem}", file=sys.stderr)
        return 2
    rounds: dict[str, list[Figures]] = {"real": [], "ours": []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real = stack.enter_context(envtest.running(folder / "real"))
        ours, memory, ready = stack.enter_context(simulated(folder))
        print(f"fnop cluster: ready after {ready:.2f} s, {memory():.0f} MB", flush=True)
        targets = {"real": target_of(real.kubeconfig), "ours": ours}
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            for number in range(1, given.rounds + 1):
                for name, target in targets.items():
                    found = runner.run(measure(target, given.scale))
                    rounds[name].append(found)
                    print(f"round {number}, {name}: {found}", file=sys.stderr)
        print(f"peak memory of fnop cluster: {memory():.0f} MB")
    shown, late = table(medians(rounds["real"]), medians(rounds["ours"]))
    print(shown)
    if given.json:
        every = {name: [asdict(one) for one in found] for name, found in rounds.items()}
        given.json.write_text(json.dumps(every, indent=1) + "\n")
    return conclude([*missed, *late])


def conclude(missed: Sequence[str]) -> int:
    for line in missed:
        print(f"missed {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
