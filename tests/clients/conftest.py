"""Real clients against `fnop cluster`: a process of its own, over HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.envtest import dying_with_us, end
from tests.simulations import ROOT


@dataclass(frozen=True)
class FnopCluster:
    """A running `fnop cluster`."""

    url: str
    kubeconfig: Path


@contextmanager
def running(folder: Path, *options: str) -> Iterator[FnopCluster]:
    """`fnop cluster` on a free port for as long as the block."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "fnop", "cluster", "--port", "0", *options]
    with (folder / "cluster.log").open("wb") as log:
        child = subprocess.Popen(
            [*dying_with_us(), *command, "--kubeconfig", str(kubeconfig)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    assert child.stdout is not None
    try:
        ready = child.stdout.readline().decode()
        assert ready, (folder / "cluster.log").read_text()
        yield FnopCluster(ready.split()[-1], kubeconfig)
    finally:
        end(child)
        child.stdout.close()
    assert child.returncode == 0
    assert (folder / "cluster.log").read_text() == "", "it has complained"


@pytest.fixture
def fnop_server(tmp_path: Path) -> Iterator[FnopCluster]:
    """A cluster of this test's own."""
    with running(tmp_path) as server:
        yield server
