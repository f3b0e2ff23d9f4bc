"""Timers and daemons in virtual time: `python -m bench.background`.

- An hour of a timer every 5 s on 100 objects: 72,000 ticks with one write each.
- 10,000 daemons that sleep, on objects of 1 KB: the memory that they add to the
  process, compared with an operator that has the same objects and nothing to do for
  them.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from typing import Any

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.testing import Simulation

KIND = "fnopexamples"
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "fnopexamples.fnop.dev"},
    "spec": {
        "group": "fnop.dev",
        "scope": "Namespaced",
        "names": {"plural": KIND, "kind": "FnopExample"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def example(number: int, size: int) -> dict[str, Any]:
    return {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "metadata": {"name": f"example-{number:05}", "namespace": "default"},
        "spec": {"text": "x" * size},
    }


def timers(objects: int, interval: float, seconds: float) -> dict[str, float]:
    """The number of ticks, and their cost: seconds of CPU, microseconds for each."""
    registry = Registry()

    @fnop.timer(KIND, registry=registry, interval=interval)
    def tick(runtime: Any, now: Any, **_: Any) -> Any:
        return fnop.patch(status={"at": now.isoformat()})

    things = [example(number, 100) for number in range(objects)]
    sim = Simulation(registry, crds=CRD, objects=things)
    sim.wait(interval)  # started, listed, the first ticks done
    gc.collect()
    before = time.process_time()
    written = version(sim)
    sim.wait(seconds)
    spent = time.process_time() - before
    ticks = version(sim) - written
    return {"ticks": ticks, "seconds": spent, "us_per_tick": 1e6 * spent / ticks}


def version(sim: Simulation) -> int:
    """The number of writes that the cluster has accepted."""
    return max(int(each.meta["resourceVersion"]) for each in sim.objects(KIND))


def idle(objects: int, daemons: bool) -> dict[str, float]:
    """The memory of an idle operator with many objects, in MB, in a child process."""
    command = [sys.executable, "-m", "bench.background", "--memory", str(objects)]
    if daemons:
        command.append("--daemons")
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def memory(objects: int, daemons: bool) -> dict[str, float]:
    registry = Registry()
    if daemons:

        @fnop.daemon(KIND, registry=registry, finalizer=False)
        async def wait(**_: Any) -> None:
            while True:
                await fnop.sleep(3600)

    else:

        @fnop.on.event(KIND, registry=registry)
        def see(**_: Any) -> None: ...

    before = resident()
    sim = Simulation(registry, crds=CRD)
    begun = resident()
    sim.apply([example(number, 1000) for number in range(objects)])
    sim.wait(60)
    gc.collect()
    return {"before": before, "begun": begun, "all": resident()}


def resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.background")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--objects", type=int, default=100)
    parser.add_argument("--idle", type=int, default=10_000, metavar="OBJECTS")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--daemons", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory is not None:
        print(json.dumps(memory(given.memory, given.daemons)))
        return
    if given.minutes:
        found = timers(given.objects, 5, given.minutes * 60)
        print(
            f"timers: {found['ticks']:.0f} ticks in {found['seconds']:.1f} s of CPU, "
            f"{found['us_per_tick']:.0f} us each",
            flush=True,
        )
    if given.idle:
        plain, tended = idle(given.idle, False), idle(given.idle, True)
        print(
            f"{given.idle} objects of 1 KB: {plain['all'] - plain['begun']:.0f} MB in "
            f"cluster and operator, with a daemon each "
            f"{tended['all'] - tended['begun']:.0f} MB beyond start-up"
        )


if __name__ == "__main__":
    main()
