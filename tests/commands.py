"""The commands `fnop` and `pytest` as processes, as a user has them."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.simulations import ROOT

__all__ = ["Done", "fnop", "pytest_of"]

# The longest that a command may take where all cores are busy: then it hangs.
LIMIT_SECONDS = 180.0


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it has cost."""

    status: int
    out: str
    err: str
    cpu_seconds: float

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The objects on stdout."""
        return [each for each in yaml.safe_load_all(self.out) if each]

    @property
    def complaint(self) -> str:
        """The last thing said on stderr, with the lines indented under it."""
        return re.split(r"\n(?=\S)", self.err.rstrip())[-1]


def fnop(
    *args: str | Path,
    folder: Path,
    python: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
    stdin: str = "",
    limit: float = LIMIT_SECONDS,
) -> Done:
    """Run the command in a folder, with no cluster configured, for `limit` seconds."""
    # -P, as for the installed script: the present folder is not on the path.
    command = ("-P", *python, "-m", "fnop", *map(str, args))
    own = {"HOME": str(folder), "PYTHONPATH": str(ROOT), **(variables or {})}
    return _done(command, folder, own, stdin, limit)


def pytest_of(*args: str | Path, folder: Path, limit: float = LIMIT_SECONDS) -> Done:
    """Run pytest in a folder, with fnop's plugin alone.

    Plugins of others have no part in a test of an operator, and take longer to import
    than it takes.
    """
    plugins = ("-p", "fnop.adapters.pytest_plugin", "-p", "no:cacheprovider")
    command = ("-m", "pytest", "-q", *plugins, *map(str, args))
    own = {"HOME": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return _done(command, folder, own, "", limit)


def _done(
    command: Iterable[str],
    folder: Path,
    variables: Mapping[str, str],
    stdin: str,
    limit: float,
) -> Done:
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    before = _cpu_seconds()
    found = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**env, **variables},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    cpu = _cpu_seconds() - before
    return Done(found.returncode, found.stdout, found.stderr, cpu)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
