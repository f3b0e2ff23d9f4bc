"""SIGUSR1 ends no run: it asks for the recording, whether there is one or not."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from fnop.adapters.cli.dump_signal import Asked, AskedInSimulation, harmless
from fnop.adapters.testing.cluster_fixture import SimulatedCluster
from fnop.core.seam.inputs import AlarmRang
from fnop.core.values.now import Now
from fnop.interpreters.recording.format.reader import read_header, read_records
from tests.commands import (
    MINIMAL,
    begun,
    fnop,
    heard,
    manifest,
    write,
)
from tests.patience import patience
from tests.simulations import DEFINITION, example

NO_RECORDING = "there is none; begin one with `fnop run ... --record FILE`"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an operator and an object."""
    write(tmp_path, "operator.py", MINIMAL)
    manifest(tmp_path, "object.yaml", DEFINITION, example())
    return tmp_path


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Popen[str]]:
    """An operator that has handled an object of a simulated cluster."""
    cluster = SimulatedCluster()
    cluster.apply([DEFINITION, example()])
    with cluster.serve() as served:
        kubeconfig = ("--kubeconfig", str(served.kubeconfig))
        with begun(folder, "run", "operator.py", "-A", *kubeconfig, *options) as it:
            heard(it, "created succeeded")
            yield it


def ask(operator: Popen[str], words: str) -> str:
    operator.send_signal(signal.SIGUSR1)
    return heard(operator, words)


def end(operator: Popen[str]) -> None:
    operator.send_signal(signal.SIGTERM)
    assert operator.wait(patience(20)) == 0


def steps_in(path: Path) -> int:
    """The number of steps that can be read in a file."""
    with path.open("rb") as file:
        records = read_records(file)
        read_header(records)
        return sum(1 for each in records if each is not None)


def test_without_a_recording_it_is_told_how_to_begin_one(place: Path) -> None:
    with serving(place) as operator:
        for _ in range(2):
            assert ask(operator, "SIGUSR1").strip().endswith(NO_RECORDING)
        end(operator)


def test_all_of_a_full_recording_can_be_read_then(place: Path) -> None:
    with serving(place, "--record", "run.fnop") as operator:
        ask(operator, "all of the run so far can be read in run.fnop")
        assert steps_in(place / "run.fnop") > 5
        ask(operator, "all of the run so far can be read in run.fnop")
        end(operator)


def test_a_ring_is_written_each_time(place: Path) -> None:
    ring = ("--record", "runs", "--record-mode", "ring")
    with serving(place, *ring) as operator:
        for _ in range(2):
            ask(operator, "of the run are recorded in runs")
        assert len([*(place / "runs").glob("*-asked*.fnop")]) == 2
        end(operator)


BLOCKED = """
import os, signal, sys, time
import fnop

os.kill(os.getpid(), signal.SIGUSR1)

@fnop.on.create("fnopexamples")
def created(**_):
    os.kill(os.getpid(), signal.SIGUSR1)
"""


@pytest.mark.parametrize("record", ["", "run.fnop"])
def test_a_simulated_run_goes_on(record: str, place: Path) -> None:

    write(place, "blocked.py", BLOCKED)
    options = ("--record", record) if record else ()
    done = fnop(
        *("run", "blocked.py", "--no-guard", *options, "--simulate", "object.yaml"),
        folder=place,
    )
    assert done.status == 0, done
    words = f"so far can be read in {record}" if record else NO_RECORDING
    assert done.err.count(words) == 1, "while it was loaded there was nothing yet"


def test_in_a_simulation_it_is_answered_between_two_steps() -> None:
    told: list[str] = []
    between = AskedInSimulation(Asked(None, None, told.append))
    with between.listening():
        os.kill(os.getpid(), signal.SIGUSR1)
        assert not told, "the signal may come in the midst of a step"
        between.observe(Now(0, 0), AlarmRang(), ())
        assert len(told) == 1
        between.observe(Now(1, 1), AlarmRang(), ())
        os.kill(os.getpid(), signal.SIGUSR1)
    assert len(told) == 2, "the last one is answered at the end"


def test_the_former_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with harmless():
        os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) is before


def test_in_another_thread_signals_are_left_as_they_are() -> None:
    before = signal.getsignal(signal.SIGUSR1)

    def look() -> object:
        with harmless():
            return signal.getsignal(signal.SIGUSR1)

    async def elsewhere() -> object:
        return await asyncio.to_thread(look)

    assert asyncio.run(elsewhere()) is before
