"""The cost of a short simulated run from a fork of a settled one: an explorer's unit.

    python -m bench.suffix [--repeats 7] [--profile edit]

An operator with one kind has settled.  Its handler patches the status, or also makes a
child (by `fnop.adopt`).  Each round forks it and continues with an edit, a restart,
another object, or a whole fault schedule. It prints microseconds of processor time: the
least of the repeats, and the median.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import statistics
import time
from collections.abc import Callable
from typing import Any

import fnop
from fnop.adapters.common.collector import calm_collector
from fnop.core.handlers.program.program import Program
from fnop.interpreters import cluster as simulated
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.interrupts import interruptible
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation.simulation import SimulatedRun

adopting, patching = fnop.Registry(), fnop.Registry()

PATH = "/apis/example.com/v1/namespaces/default/xs"


def _definition(*, roomy: bool) -> dict[str, Any]:
    """The kind of the object; only a permissive status keeps the state of fnop."""
    status: dict[str, Any] = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "phase": {"type": "string"}},
    }
    if roomy:
        status["x-kubernetes-preserve-unknown-fields"] = True
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer", "minimum": 0}},
    }
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "xs.example.com"},
        "spec": {
            "group": "example.com",
            "names": {
                "plural": "xs",
                "singular": "x",
                "kind": "X",
                "listKind": "XList",
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


@fnop.on.create("xs", registry=patching)
@fnop.on.update("xs", registry=patching)
def show(spec: Any, **_: object) -> fnop.Effect:
    return fnop.patch(status={"size": spec["size"], "phase": "Ready"})


@fnop.on.create("xs", registry=adopting)
@fnop.on.update("xs", registry=adopting)
def keep(name: str, spec: Any, **_: object) -> list[fnop.Effect]:
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-child"},
        "data": {"owner": name},
    }
    status = {"size": spec["size"], "phase": "Ready"}
    return [fnop.adopt(child), fnop.patch(status=status)]


def _x(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "X",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"size": 1},
    }


def settled(registry: fnop.Registry, *, roomy: bool) -> SimulatedRun:
    """An operator that has settled in a cluster with one object of its kind."""
    program = Program(registry.handlers)
    run = SimulatedRun(program, simulated.empty_cluster("0", EPOCH))
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    _send(run, ApiRequest("POST", definitions, (), _definition(roomy=roomy)))
    create(run, "x")
    assert run.request(ApiRequest("GET", f"{PATH}/x")).body["status"]["size"] == 1
    return run


def edit(run: SimulatedRun) -> None:
    _send(
        run,
        ApiRequest("PATCH", f"{PATH}/x", (), {"spec": {"size": 2}}, MERGE_PATCH),
    )
    _settle(run)


def restart(run: SimulatedRun) -> None:
    run.crash()
    _settle(run)


def create(run: SimulatedRun, name: str = "y") -> None:
    _send(run, ApiRequest("POST", PATH, (), _x(name)))
    _settle(run)


def schedule(run: SimulatedRun) -> None:
    """Create an object, crash after the child is created, settle; restart twice."""
    _send(run, ApiRequest("POST", PATH, (), _x("y")))
    before = len(run.requests)
    while len(run.requests) == before:
        run.advance()
    run.crash()
    _settle(run)
    restart(run)
    restart(run)


def _send(run: SimulatedRun, request: ApiRequest) -> None:
    response = run.request(request)
    assert response.status < 300, response.body


def _settle(run: SimulatedRun) -> None:
    assert run.settle(), run.unsettled


Play = Callable[[SimulatedRun], None]
ROUNDS: dict[str, tuple[fnop.Registry, bool, Play]] = {
    "fork": (adopting, True, lambda run: None),
    "edit": (patching, True, edit),
    "edit, pruned": (patching, False, edit),
    "edit, child": (adopting, True, edit),
    "restart": (adopting, True, restart),
    "create": (patching, True, create),
    "create, child": (adopting, True, create),
    "schedule": (adopting, True, schedule),
}


def measure(run: SimulatedRun, play: Play, seconds: float = 0.1) -> float:
    """Microseconds of processor time of one round, from as many as fit in `seconds`."""
    rounds, began = 0, time.process_time()
    with interruptible():  # as an explorer handles Ctrl-C: around all of its runs
        while (took := time.process_time() - began) < seconds:
            play(run.fork())
            rounds += 1
    return took / rounds * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--profile", choices=tuple(ROUNDS))
    parser.add_argument("--sort", default="tottime")
    options = parser.parse_args()
    calm_collector()  # as the command does
    if options.profile:
        return profile(options.profile, options.sort)
    for name, (registry, roomy, play) in ROUNDS.items():
        run = settled(registry, roomy=roomy)
        other = run.fork()
        play(other)
        gc.collect()
        measure(run, play)
        found = [measure(run, play) for _ in range(options.repeats)]
        print(
            f"{name:13} {min(found):8.0f} us   median {statistics.median(found):8.0f}"
            f"   {other.steps - run.steps:4} steps"
            f"   {len(other.requests) - len(run.requests):2} requests"
            f"   {1e6 / min(found):8.0f} a second"
        )
    return None


def profile(name: str, sort: str) -> None:
    """Print a profile of a thousand rounds."""
    registry, roomy, play = ROUNDS[name]
    run = settled(registry, roomy=roomy)
    for _ in range(20):
        play(run.fork())
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(1000):
        play(run.fork())
    profiler.disable()
    pstats.Stats(profiler).sort_stats(sort).print_stats(70)


if __name__ == "__main__":
    main()
