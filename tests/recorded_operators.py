"""Recordings of operators that call functions outside, made by the command."""

from __future__ import annotations

from pathlib import Path

from tests.commands import Done, fnop
from tests.simulations import ROOT

__all__ = ["MODELS", "OBJECT", "recorded_run", "run_again"]

OBJECT = ROOT / "examples" / "01-minimal" / "object.yaml"
MODELS = """
def price_of(**_):
    return 7
"""


def recorded_run(folder: Path, source: str, name: str) -> Path:
    """The folder with an operator and models, and a recording of a run: `run.fnop`."""
    (folder / name).write_text(source)
    (folder / "models.py").write_text(MODELS)
    done = run_again(folder, name)
    assert done.status == 0, done.err
    return folder


def run_again(folder: Path, name: str, recording: str = "run.fnop") -> Done:
    """Run an operator of the folder in the simulated cluster, and record it."""
    simulated = ("--simulate", OBJECT, "--calls", "models.py")
    return fnop("run", name, *simulated, "--record", recording, folder=folder)
