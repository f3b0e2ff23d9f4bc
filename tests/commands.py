"""The commands `fnop` and `pytest` as processes, as a user has them."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from tests.forked import Forker, needs_an_own_start
from tests.patience import patience
from tests.simulations import ROOT

__all__ = [
    "MINIMAL",
    "PYTEST",
    "Done",
    "begun",
    "closed_port",
    "fnop",
    "heard",
    "kubeconfig",
    "manifest",
    "pytest_of",
    "write",
]

# The longest that a command may take on a calm machine: then it hangs.
LIMIT_SECONDS = 30.0


@dataclass(frozen=True)
class Done:
    """The end of a command, and its cost."""

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
    """Run the command in a folder, with no cluster configured.

    It is killed after `patience(limit)`.
    """
    given = variables or {}
    own = {"HOME": str(folder), "PYTHONPATH": str(ROOT), **given}
    if not python and not needs_an_own_start(given):
        return _forked(_FNOP, [*map(str, args)], folder, own, stdin, limit)
    # -P, as for the installed script: the present folder is not on the path.
    command = ("-P", *python, "-m", "fnop", *map(str, args))
    return _done(command, folder, own, stdin, limit)


def pytest_of(*args: str | Path, folder: Path, limit: float = LIMIT_SECONDS) -> Done:
    """Run pytest in a folder, with fnop's plugin alone.

    Plugins of others have no part in a test of an operator, and take longer to import
    than it takes.
    """
    plugins = ("-p", "fnop.adapters.testing.pytest_plugin", "-p", "no:cacheprovider")
    own = {"HOME": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return _forked(_PYTEST, ["-q", *plugins, *map(str, args)], folder, own, "", limit)


_FNOP = Forker(
    "fnop",
    ("fnop.adapters.cli.main", "fnop.adapters.testing.simulating", "fnop.testing"),
)
# Without the plugin: pytest rewrites the assertions of what it imports itself.
_PYTEST = Forker("pytest", ("pytest", "fnop.testing"))


def _forked(
    forker: Forker,
    arguments: list[str],
    folder: Path,
    variables: Mapping[str, str],
    stdin: str,
    limit: float,
) -> Done:
    with tempfile.TemporaryDirectory() as beside:
        streams = [Path(beside, name) for name in ("stdin", "stdout", "stderr")]
        for each in streams:
            each.write_text(stdin if each.name == "stdin" else "")
        env = {**_kept(), **variables}
        status, cpu = forker.run(arguments, folder, env, streams, patience(limit))
        out, err = (each.read_text() for each in streams[1:])
    return Done(status, out, err, cpu)


def _kept() -> dict[str, str]:
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _done(
    command: Iterable[str],
    folder: Path,
    variables: Mapping[str, str],
    stdin: str,
    limit: float,
) -> Done:
    before = _cpu_seconds()
    found = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**_kept(), **variables},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=patience(limit),
        check=False,
    )
    cpu = _cpu_seconds() - before
    return Done(found.returncode, found.stdout, found.stderr, cpu)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Without what it does not need, and what it would leave behind.
PYTEST = ("pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:xdist")


MINIMAL = """
import fnop

@fnop.on.create("fnopexamples")
def created(name):
    return {"seen": name}
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(dedent(text))
    return path


def manifest(folder: Path, name: str, *objects: dict[str, Any]) -> Path:
    return write(folder, name, yaml.safe_dump_all(objects))


def kubeconfig(folder: Path, server: str) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
    }
    return write(folder, "kubeconfig", yaml.safe_dump(content))


def closed_port() -> int:
    """A port of the loopback interface without a listener."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def begun(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command of fnop that goes on, and whose output is one stream."""
    with subprocess.Popen(
        [sys.executable, "-m", "fnop", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        # A pipe that stays silent would hold the test up for ever.
        limit = threading.Timer(patience(60), child.kill)
        limit.start()
        try:
            yield child
        finally:
            limit.cancel()
            child.kill()


def heard(child: subprocess.Popen[str], words: str) -> str:
    """The next line with these words."""
    assert child.stdout is not None
    lines = []
    for line in child.stdout:
        lines.append(line)
        if words in line:
            return line
    raise AssertionError(f"not said: {words!r}, but {lines}")
