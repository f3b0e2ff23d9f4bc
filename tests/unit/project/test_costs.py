"""What fnop costs by counts that are the same on each machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache

import pytest

from bench.costs import TOLERANCE, committed, measured, version
from tests.simulations import ROOT

KNOWN = committed(version())


@pytest.mark.skipif(
    KNOWN is None,
    reason=f"bench/costs.json has no figures for Python {version()}: "
    "`python -m bench.costs --write` adds them",
)
def test_the_core_executes_the_committed_number_of_instructions() -> None:
    found, known = measured(), KNOWN or {}
    changed = [
        f"{name}: {count:,} instead of {known[name]:,} ({count / known[name] - 1:+.1%})"
        for name, count in found.items()
        if abs(count / known[name] - 1) > TOLERANCE
    ]
    assert found.keys() == known.keys()
    assert not changed, (
        "the bytecode instructions of the core have changed, in rounds of "
        f"bench.suffix: {'; '.join(changed)}. If this is intended, or a gain: "
        "`python -m bench.costs --write`, and give the reason in the commit."
    )


MINIMAL = "examples/01-minimal"
RUN = ("fnop", "run", f"{MINIMAL}/example.py", "--simulate", f"{MINIMAL}/object.yaml")
# The last line on stdout has the modules; a command ends by raising SystemExit.
SCRIPT = """\
import atexit, sys
atexit.register(lambda: print("", *sorted(sys.modules), sep="\\n", end=" "))
{}
"""
STARTS = {
    "import fnop": "import fnop",
    "fnop run --simulate": f"sys.argv = {[*RUN]!r}; import fnop.__main__ as command; "
    "command.main()",
}
# The modules of fnop that a start loads. After a change: the new number, and the reason
# in the commit.
MODULES = {"import fnop": 84, "fnop run --simulate": 394}
# Packages that these starts do not load; `fnop run` on a cluster may need some.
ABSENT: dict[str, Sequence[str]] = {
    "fnop run --simulate": (
        *("aiohttp", "aiohttp_socks", "yarl", "multidict", "httptools"),
        *("kubernetes_asyncio", "cryptography", "uvloop", "httpx", "requests"),
        *("hypothesis", "pytest", "_pytest", "pydantic", "jinja2", "kopf"),
        *("opentelemetry", "prometheus_client", "cronsim", "celpy", "cel_expr_python"),
        *("email", "http", "unittest", "doctest", "pdb", "multiprocessing"),
    ),
    "import fnop": (
        *("click", "yaml", "returns", "pyrsistent", "immutables", "jsonpatch", "re2"),
        *("asyncio", "logging", "socket", "ssl", "subprocess"),
    ),
}
ABSENT["import fnop"] = (*ABSENT["import fnop"], *ABSENT["fnop run --simulate"])


@cache
def loaded(start: str) -> frozenset[str]:
    """The modules that a new process has loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(STARTS[start])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("start", STARTS)
def test_a_start_loads_no_more_modules_of_fnop(start: str) -> None:
    found = [each for each in loaded(start) if each.partition(".")[0] == "fnop"]
    most = int(MODULES[start] * (1 + TOLERANCE))
    assert MODULES[start] / 2 < len(found) <= most, (
        f"{start} loads {len(found)} modules of fnop, and {most} at most are allowed: "
        "import later what this start does not need, or commit to the new number in "
        "MODULES, with the reason."
    )


@pytest.mark.parametrize("start", STARTS)
def test_a_start_does_not_load_what_it_does_not_need(start: str) -> None:
    found = {each.partition(".")[0] for each in loaded(start)}
    assert found & {*ABSENT[start]} == set()
