"""The command `fnop` as a process, as a user has it."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.simulations import ROOT

__all__ = ["Done", "fnop"]


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
    limit: float = 60,
) -> Done:
    """Run the command in a folder, with no cluster configured, for `limit` seconds."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    before = _cpu_seconds()
    found = subprocess.run(
        # -P, as for the installed script: the present folder is not on the path.
        [sys.executable, "-P", *python, "-m", "fnop", *map(str, args)],
        cwd=folder,
        env={**env, "HOME": str(folder), "PYTHONPATH": str(ROOT), **(variables or {})},
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
