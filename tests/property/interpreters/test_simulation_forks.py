"""Forks of a simulated run: a fork at any step ends as the run itself."""

import gc
import weakref
from typing import Any

import pytest

from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import CannotFork, SimulatedRun
from tests.simulations import ROOT, Scenario, example_handlers, manifests_of

EXAMPLES = sorted(
    path.parent.name
    for path in (ROOT / "examples").glob("*/object.yaml")
    # Their operators are made by another file, or take part in peering.
    if (path.parent / "example.py").exists() and path.parent.name[:2] not in ("06",)
)
# Examples with a timer that counts go on for ever: a while is enough.
SECONDS = 30.0
FORKS_MAX = 30  # at every second turn


def world(run: SimulatedRun) -> Any:
    """Everything there is: objects, their versions, and the operator's requests."""
    shelves = {key: dict(objects) for key, objects in run.cluster.shelves.items()}
    return run.cluster.version, shelves, run.requests, run.clock.elapsed


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_fork_at_any_turn_ends_like_the_run(name: str) -> None:
    program = Program(example_handlers(name), Settings())
    run = SimulatedRun(program, empty_cluster(now=EPOCH))
    apply_manifests(run, manifests_of(name))
    forks: list[SimulatedRun] = []
    turns = 0
    while run.advance(SECONDS):
        turns += 1
        if turns % 2 and len(forks) < FORKS_MAX:
            try:
                forks.append(run.fork())
            except CannotFork:
                assert run.threads.calls
    assert forks
    for fork in forks:
        fork.settle(seconds=SECONDS - fork.clock.elapsed)
        assert world(fork) == world(run)


def test_a_fork_is_apart_from_its_run() -> None:
    run = Scenario(example_handlers("02-children"), manifests_of("02-children"))
    run.settle()
    before = world(run)
    fork = run.fork()
    fork.crash()
    fork.settle()
    for kind in ("fnopexamples", "pods"):
        for each in run.objects(kind):
            Scenario.delete(fork, kind, each["metadata"]["name"])  # type: ignore[arg-type]
    fork.wait(60)
    assert world(run) == before
    assert world(fork) != before


def test_a_fork_that_nobody_has_any_more_is_freed_at_once() -> None:
    """Not by the garbage collector: an explorer makes thousands of forks a second."""
    run = Scenario(example_handlers("02-children"), manifests_of("02-children"))
    run.settle()
    fork = run.fork()
    fork.crash()
    fork.settle()
    freed = weakref.ref(fork), weakref.ref(fork.machine)
    gc.disable()
    try:
        del fork
        assert [each() for each in freed] == [None, None]
    finally:
        gc.enable()
