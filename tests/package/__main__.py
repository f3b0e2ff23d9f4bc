"""Build the package, install it with each Python, and print sizes and seconds.

    python -m tests.package [PYTHON...]

The dependencies come from the package index. The archives stay in `dist`, as a release
has them; the environments are below `build/package`.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.simulations import ROOT

PLACE = ROOT / "build" / "package"
DIST = ROOT / "dist"
EXAMPLE = ROOT / "examples" / "01-minimal"
# The seconds that a user should not wait longer than, on a calm machine.
INSTALL_SECONDS, START_SECONDS = 15.0, 0.5


class Cost(NamedTuple):
    """The seconds of a command, on the clock and of the CPU."""

    wall: float
    cpu: float


def run(*command: str | Path, folder: Path = PLACE) -> Cost:
    """Run a command without the checkout; its cost. Its output is shown if it fails."""
    hidden = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    before, began = _children(), time.monotonic()
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={name: text for name, text in os.environ.items() if name not in hidden},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        line = " ".join(map(str, command))
        sys.exit(f"{done.stdout[-4000:]}\nfailed with {done.returncode}: {line}")
    return Cost(time.monotonic() - began, _children() - before)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def built() -> tuple[Path, Path]:
    """The sdist and the wheel that is built from it, without those of before."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    return sdist, wheel


def best(*command: str | Path) -> Cost:
    """The cheapest of five runs, after one that fills the caches."""
    return min((run(*command) for _ in range(6)), key=lambda cost: cost.cpu)


def tried(wheel: Path, python: str) -> None:
    """Install the wheel into a fresh environment, run it, and print the seconds."""
    folder = PLACE / f"venv-{Path(python).name}"
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    inner = folder / "bin" / "python"
    install = run(inner, "-m", "pip", "install", "--quiet", wheel)
    run(inner, "-m", "pip", "check")
    print(f"{python}:")
    print(f"  pip install  {install.wall:6.1f} s  (wanted: {INSTALL_SECONDS:.0f} s)")
    command, objects = folder / "bin" / "fnop", EXAMPLE / "object.yaml"
    simulated = ("run", EXAMPLE / "example.py", "--simulate", objects)
    for title, cost in (
        ("an empty Python", best(inner, "-c", "")),
        ("import fnop", best(inner, "-c", "import fnop")),
        ("fnop --help", best(command, "--help")),
        ("fnop run --simulate", best(command, *simulated)),
    ):
        wanted = f"(wanted: {START_SECONDS} s)" if title.startswith("fnop") else ""
        print(f"  {title:<20} {cost.cpu:5.2f} s of CPU  {wanted}", flush=True)


def main(pythons: Sequence[str]) -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    sdist, wheel = built()
    for file in (sdist, wheel):
        print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB")
    for python in pythons or [sys.executable]:
        tried(wheel, python)
    if (uvx := shutil.which("uvx")) is None:
        print("uvx: not tried, as it is not on the PATH")
    else:
        cost = run(uvx, "--from", wheel, "fnop", "--help")
        print(f"uvx --from {wheel.name} fnop --help: {cost.wall:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
