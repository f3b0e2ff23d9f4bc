"""Recordings of two replicas: one leads, the other one takes over."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import fnop
from fnop.core.handlers.declare.settings import Settings
from fnop.core.peers.lease import Candidate
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.recordings import Recording
from tests.simulations import Scenario, example

__all__ = ["record_replicas"]

registry = fnop.Registry()


@fnop.reconcile("fnopexamples", owns=["configmaps"], registry=registry)
def keep(name: str, spec: Any, **_: object) -> Any:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"n": str(spec["n"])},
    }
    return fnop.desired([config])


def _settings(name: str) -> Settings:
    return Settings(traces=True, election=Candidate(name, "default", "operator"))


def record_replicas(folder: Path) -> list[Path]:
    """Write the recordings of two replicas, `pod-a.fnop` and `pod-b.fnop`.

    The first one creates a child, and repairs it. Then it stops, the second one leads,
    and repairs the child once more.
    """
    one, two = (Recording(registry, _settings(name)) for name in ("pod-a", "pod-b"))
    first = Scenario(
        registry,
        [example(n=1)],
        settings=_settings("pod-a"),
        observers=(one.recorder,),
    )
    work([first], 5.0)
    second = SimulatedRun(
        *(two.program, first.cluster),
        seed="2",
        clock=first.clock,
        observers=(two.recorder,),
    )
    work([first, second], 10.0)
    first.delete("configmaps", "example-1")
    work([first, second], 10.0)
    first.stop("SIGTERM")
    work([first, second], 5.0)
    second.catch_up(first.cluster)
    first.cluster = second.cluster
    first.delete("configmaps", "example-1")
    second.catch_up(first.cluster)
    work([second], 10.0)
    paths = []
    for name, recording in (("pod-a", one), ("pod-b", two)):
        recording.records()
        paths.append(folder / f"{name}.fnop")
        paths[-1].write_bytes(recording.written())
    return paths


def work(runs: list[SimulatedRun], seconds: float) -> None:
    """Let runs in one cluster work, each step of theirs at its time."""
    clock = runs[0].clock
    end = clock.elapsed + seconds
    for _ in count():
        is_idle = True
        for run in runs:
            for other in runs:
                if other.cluster.version > run.cluster.version:
                    run.catch_up(other.cluster)
            while run.advance(clock.elapsed, recurring=True):
                is_idle = False
        if not is_idle:
            continue
        due = [run.next_at(recurring=True) for run in runs]
        due += [run.controllers_at() for run in runs]
        later = [each for each in due if each is not None and each > clock.elapsed]
        now = min([*later, end])
        clock.advance_to(now)
        if now >= end:
            return
