"""`python -m bench.suite PLAN [TREE...]`: mutants of fnop's own modules, and its tests.

PLAN is a JSON file: a mapping from modules, such as `core/values/pace.py`, to the tests
that should notice mutants of them, as arguments of pytest.  COUNT mutants of each
module (4) are drawn by SEED (7).  A mutant is killed if a test fails.  With several
trees, such as checkouts before and after a change of the tests, each mutant is tried in
all of them. The plan of another tree is PLAN with that tree's number, from 1, before
its suffix, if such a file exists. The modules come from the first tree.

A tree is copied first, so that it is not changed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.mutants.mutators import Mutant, mutants_of

COUNT = int(os.environ.get("COUNT", "4"))
SEED = int(os.environ.get("SEED", "7"))
# A mutant may loop forever: then the tests hang, and it is killed.
LIMIT_SECONDS = float(os.environ.get("LIMIT_SECONDS", "600"))
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache")

Plan = dict[str, list[str]]


class Tree(NamedTuple):
    """A copy of a checkout, its interpreter, and its plan of tests."""

    folder: Path
    python: Path
    plan: Plan


class Tried(NamedTuple):
    """A mutant of a module: whether each tree's tests have killed it."""

    module: str
    mutant: Mutant
    killed: tuple[bool, ...]


def drawn(folder: Path, plan: Plan) -> Iterator[tuple[str, Mutant]]:
    """The mutants to try, module by module."""
    source = random.Random(SEED)
    for module in plan:
        found = mutants_of((folder / module).read_text())
        for each in source.sample(found, min(COUNT, len(found))):
            yield module, each


def kills(tree: Tree, module: str, mutant: Mutant) -> bool:
    """Whether the tests of a tree fail with a mutant in place of a module."""
    file = tree.folder / module
    text = file.read_text()
    file.write_text(mutant.source)
    command = ["-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [tree.python, *command, "-m", "not long", *tree.plan[module]],
            cwd=tree.folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        return done.returncode == 1 or done.returncode == 2
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(text)


def main(plan: Path, trees: Sequence[Path]) -> int:
    """Try all mutants; 1 if the first tree kills one that another tree misses."""
    lost = 0
    with tempfile.TemporaryDirectory() as beside:
        copies = []
        for number, tree in enumerate(trees):
            folder = Path(beside, str(number))
            shutil.copytree(tree, folder, symlinks=True, ignore=_LEFT_OUT)
            own = plan.with_suffix(f".{number}{plan.suffix}") if number else plan
            given = own if own.exists() else plan
            python = tree.resolve() / ".venv" / "bin" / "python"
            copies.append(Tree(folder, python, json.loads(given.read_text())))
        tried = []
        with ThreadPoolExecutor(len(copies)) as pool:
            for module, mutant in drawn(copies[0].folder, copies[0].plan):
                killed = tuple(pool.map(lambda t: kills(t, module, mutant), copies))  # noqa: B023
                tried.append(Tried(module, mutant, killed))
                words = " ".join("killed" if each else "ALIVE " for each in killed)
                print(f"{words}  {module}:{mutant.line} {mutant.words}", flush=True)
        lost = sum(each.killed[0] and not all(each.killed) for each in tried)
        sums = [sum(each.killed[n] for each in tried) for n in range(len(copies))]
    print(f"{len(tried)} mutants; killed: {sums}; lost: {lost}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [*map(Path, sys.argv[2:] or ["."])]))
