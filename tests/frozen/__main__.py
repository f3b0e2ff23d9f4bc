"""Build an operator with each builder, run it, and say which of them runs.

    python -m tests.frozen [BUILDER...]

Builders are installed into an environment of their own, below `build/frozen`. One that
cannot be had is named, and does not fail the others.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipapp
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.simulations import ROOT

PLACE = ROOT / "build" / "frozen"
BIN = PLACE / "venv" / "bin"
EXAMPLE = ROOT / "examples" / "01-minimal"
COMMAND = """
from fnop.adapters.cli.main import main

if __name__ == "__main__":
    main()
"""
# The operator is a part of the program: PyInstaller follows the import.
OWN = """
import sys

import minimal
from fnop.adapters.cli.main import main

if __name__ == "__main__":
    main(["run", "-m", minimal.__name__, *sys.argv[1:]])
"""
# There is no cluster at port 1: the operator has begun when it reports that.
EMBEDDED = """
import asyncio
import logging

import fnop
import minimal

begun = asyncio.Event()

class Heard(logging.Handler):
    def emit(self, record):
        if "cannot be reached" in record.getMessage():
            begun.set()

async def begin():
    logging.getLogger().addHandler(Heard())
    async with fnop.operator(kubeconfig="kubeconfig"):
        await begun.wait()

logging.basicConfig(level=logging.INFO)
asyncio.run(begin())
"""
KUBECONFIG = """
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere}}]
"""
SIMULATE = ("--simulate", "object.yaml")
SETTLED = "message: example-1 shall run for 1m"
BEGUN = "the API server cannot be reached"


class Unavailable(Exception):
    """A builder cannot be installed here."""


class Sort(NamedTuple):
    """A builder and what it builds: a program, how it is run, and what it says."""

    builder: str
    title: str
    build: Callable[[], Sequence[str]]
    arguments: Sequence[str]
    expected: str = SETTLED


def done(*command: str | Path) -> str:
    """The output of a command in the folder of the operator."""
    found = subprocess.run(
        [*map(str, command)],
        cwd=PLACE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=600,
        check=False,
    )
    if found.returncode:
        raise RuntimeError(found.stdout[-2000:])
    return found.stdout


def installed(*packages: str) -> None:
    """Install packages into the environment of the builders."""
    try:
        done(BIN / "python", "-m", "pip", "install", "--quiet", *packages)
    except RuntimeError as problem:
        raise Unavailable(str(problem).strip().rpartition("\n")[2]) from problem


def wheel() -> Path:
    """The wheel of this working copy."""
    (found,) = PLACE.glob("fnop-*.whl")
    return found


def _pyinstaller(name: str, text: str) -> Sequence[str]:
    installed("pyinstaller>=6.5")
    (PLACE / f"{name}.py").write_text(text, "utf-8")
    done(BIN / "pyinstaller", "--log-level=ERROR", "--noconfirm", f"{name}.py")
    return [str(PLACE / "dist" / name / name)]


def _zipapp() -> Sequence[str]:
    """The archive has fnop and the operator, and none of what is compiled."""
    folder = PLACE / "zipped"
    shutil.rmtree(folder, ignore_errors=True)
    target = ("--no-deps", "--target", str(folder), str(wheel()))
    done(BIN / "python", "-m", "pip", "install", "--quiet", *target)
    shutil.copy(PLACE / "minimal.py", folder)
    (folder / "__main__.py").write_text(OWN, "utf-8")
    zipapp.create_archive(folder, PLACE / "zipapp.pyz")
    done(BIN / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "fnop")
    return [str(BIN / "python"), "zipapp.pyz"]


def _shiv() -> Sequence[str]:
    installed("shiv>=1.0.6")
    done(BIN / "shiv", "-q", "-c", "fnop", "-o", "fnop.shiv", wheel())
    return [sys.executable, "fnop.shiv"]


def _pex() -> Sequence[str]:
    installed("pex>=2.20")
    done(BIN / "pex", wheel(), "-c", "fnop", "-o", "fnop.pex")
    return [sys.executable, "fnop.pex"]


FILE = ("run", "minimal.py", *SIMULATE)
SORTS = (
    Sort(
        "pyinstaller",
        "the command, with the operator as a file",
        lambda: _pyinstaller("command", COMMAND),
        FILE,
    ),
    Sort(
        "pyinstaller",
        "the operator, with the command",
        lambda: _pyinstaller("own", OWN),
        SIMULATE,
    ),
    Sort(
        "pyinstaller",
        "the operator, embedded",
        lambda: _pyinstaller("embedded", EMBEDDED),
        (),
        BEGUN,
    ),
    Sort("shiv", "the command, with the operator as a file", _shiv, FILE),
    Sort("pex", "the command, with the operator as a file", _pex, FILE),
    # The last one: it takes fnop out of the environment.
    Sort("zipapp", "the operator, with the command", _zipapp, SIMULATE),
)


def prepare() -> None:
    """Make the environment of the builders, and the folder of the operator."""
    PLACE.mkdir(parents=True, exist_ok=True)
    for old in PLACE.glob("fnop-*.whl"):
        old.unlink()
    venv.create(PLACE / "venv", with_pip=True)
    done(BIN / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", ROOT)
    installed("--force-reinstall", "--no-deps", str(wheel()))
    installed(str(wheel()))
    shutil.copy(EXAMPLE / "example.py", PLACE / "minimal.py")
    shutil.copy(EXAMPLE / "object.yaml", PLACE)
    (PLACE / "kubeconfig").write_text(KUBECONFIG, "utf-8")


def verdict(sort: Sort) -> str:
    """The result, in a word or a sentence."""
    try:
        said = done(*sort.build(), *sort.arguments)
    except Unavailable as problem:
        return f"not tried, for {sort.builder} cannot be installed: {problem}"
    except (RuntimeError, OSError, subprocess.SubprocessError) as problem:
        return f"FAILED: {problem}"
    return "passed" if sort.expected in said else f"FAILED: {said[-2000:]}"


def main(builders: Sequence[str]) -> int:
    prepare()
    failed = False
    for sort in SORTS:
        if builders and sort.builder not in builders:
            continue
        found = verdict(sort)
        failed |= found.startswith("FAILED")
        print(f"{sort.builder}: {sort.title}: {found}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
