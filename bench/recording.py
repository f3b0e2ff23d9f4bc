"""The cost of a recording: time and bytes for each effect that the operator has sent.

    python -m bench.recording [--objects 300] [--repeats 7] [--profile WORKLOAD]

An operator makes objects ready in the simulated cluster, and a user edits each of them
once. The steps are kept; then only their recording is timed. `status` patches the
status, `child` also adopts a ConfigMap, `levels` is examples/19-database with its four
children. It prints microseconds of processor time (the least of the repeats), bytes
before and after compression, and the number of steps read per second.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import io
import pstats
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from bench import suffix
from fnop.adapters.common.collector import calm_collector
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command, Perform
from fnop.core.seam.inputs import Input
from fnop.core.values.now import Now
from fnop.interpreters import cluster as simulated
from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.recordings import inflated
from tests.simulations import example_handlers, is_definition, manifests_of

Step = tuple[Now, Input, tuple[Command, ...]]


class Steps:
    """An observer that keeps all steps."""

    def __init__(self) -> None:
        self.found: list[Step] = []

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        self.found.append((now, input, commands))


class Workload(NamedTuple):
    """A program that has run, and its steps."""

    program: Program
    steps: list[Step]

    @property
    def effects(self) -> int:
        """The number of effects that were sent to the world."""
        return sum(isinstance(e, Perform) for *_, each in self.steps for e in each)


class Cost(NamedTuple):
    """Microseconds and bytes for each effect; steps read per second."""

    micros: float
    raw: float
    compressed: float
    read: float


def workload(name: str, objects: int) -> Workload:
    """Create, settle, edit each, settle."""
    match name:
        case "status":
            handlers: Any = suffix.patching.handlers
        case "child":
            handlers = suffix.adopting.handlers
        case _:
            handlers = example_handlers("19-database")
    program, steps = Program(handlers, Settings(traces=True)), Steps()
    run = SimulatedRun(program, simulated.empty_cluster("0", EPOCH), observers=[steps])
    if name == "levels":
        manifests = manifests_of("19-database")
        definitions = [each for each in manifests if is_definition(each)]
        (manifest,) = (each for each in manifests if not is_definition(each))
        path = "/apis/fnop.dev/v1/namespaces/default/databases"
        edit: dict[str, Any] = {"spec": {"size": 2}}
    else:
        definitions, path = [suffix._definition(roomy=True)], suffix.PATH
        manifest, edit = suffix._x(""), {"spec": {"size": 2}}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for each in definitions:
        suffix._send(run, ApiRequest("POST", crds, (), each))
    suffix._settle(run)
    for number in range(objects):
        meta = {"name": f"x{number}", "namespace": "default"}
        made = {**manifest, "metadata": meta}
        suffix._send(run, ApiRequest("POST", path, (), made))
    suffix._settle(run)
    for number in range(objects):
        one = f"{path}/x{number}"
        suffix._send(run, ApiRequest("PATCH", one, (), edit, MERGE_PATCH))
    suffix._settle(run)
    return Workload(program, steps.found)


def recorded(found: Workload) -> bytes:
    """The file of a recorded run."""
    file = _Kept()
    redaction = Redaction(b"0" * 16, found.program)
    recorder = Recorder(file, header_of(found.program, "bench"), redaction)
    for step in found.steps:
        recorder.observe(*step)
    recorder.close()
    if recorder.problem is not None:
        raise recorder.problem
    return file.getvalue()


class _Kept(io.BytesIO):
    def close(self) -> None:
        """Keep the recording."""


def measure(found: Workload, repeats: int) -> Cost:
    """The least of some recordings, and of readings of each."""
    effects, times, readings = found.effects, [], []
    for _ in range(repeats):
        gc.collect()
        began = time.process_time()
        data = recorded(found)
        times.append(time.process_time() - began)
        began = time.process_time()
        records = read_records(io.BytesIO(data))
        read_header(records)
        count = sum(1 for _ in records)
        readings.append(time.process_time() - began)
    assert count == len(found.steps), (count, len(found.steps))
    raw = inflated(data)
    return Cost(
        min(times) / effects * 1e6,
        len(raw) / effects,
        len(data) / effects,
        count / min(readings),
    )


WORKLOADS = ("status", "child", "levels")


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--profile", choices=WORKLOADS)
    options = parser.parse_args(None if arguments is None else [*arguments])
    if options.profile:
        profile(workload(options.profile, options.objects))
        return
    calm_collector()
    for name in WORKLOADS:
        found = workload(name, options.objects)
        gc.collect()
        gc.freeze()
        cost = measure(found, options.repeats)
        print(
            f"{name:8} {cost.micros:6.1f} us {cost.raw:7.0f} B "
            f"{cost.compressed:5.0f} B compressed   of {found.effects} effects in "
            f"{len(found.steps)} steps   {cost.read:9,.0f} steps read a second"
        )


def profile(found: Workload) -> None:
    """Print a profile of the time."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(5):
        recorded(found)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    main()
