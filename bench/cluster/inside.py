"""The simulated cluster by itself: no sockets, no threads, one call after the other."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench.cluster.load import CRD, DEFINITIONS, PATH, widget
from fnop.interpreters.cluster import Cluster, answer, empty_cluster
from fnop.interpreters.runtime.protocol import JSON, MERGE_PATCH, ApiRequest

NOW = 1_700_000_000.0
MAPS = "/api/v1/namespaces/default/configmaps"
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Inside:
    """Calls per second; microseconds of a fork of 10,000 objects, and of a write to
    it; MB of 10,000 objects of 2 KB."""

    plain_patches: float
    typed_patches: float
    creates: float
    gets: float
    fork_us: float
    forked_write_us: float
    memory_mb: float


def measure(count: int = 5000) -> Inside:
    """Measure everything in this process; only the memory needs a fresh one."""
    cluster = sent(empty_cluster(), "POST", DEFINITIONS, CRD)
    for number in range(100):
        cluster = sent(cluster, "POST", MAPS, config_map(f"map-{number}", 1300))
        cluster = sent(cluster, "POST", PATH, widget(f"widget-{number}"))
    fork_us, forked_write_us = fork_microseconds()
    return Inside(
        plain_patches=rate(cluster, count, plain_patch),
        typed_patches=rate(cluster, count, typed_patch),
        creates=rate(cluster, count, creation),
        gets=rate(cluster, count, reading),
        fork_us=fork_us,
        forked_write_us=forked_write_us,
        memory_mb=memory_mb(),
    )


def sent(cluster: Cluster, method: str, path: str, body: object = None) -> Cluster:
    request = ApiRequest(method, path, (), body, JSON, JSON, "bench/1")
    cluster, response, _ = answer(cluster, request, NOW)
    if response.status >= 300:
        raise RuntimeError(f"{method} {path}: {response.body}")
    return cluster


def config_map(name: str, size: int) -> dict[str, object]:
    metadata = {"name": name, "labels": {"app": "load"}}
    data = {f"key-{number}": "x" * (size // 20 - 10) for number in range(20)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": data,
    }


def plain_patch(number: int) -> ApiRequest:
    body = {"data": {"key-1": str(number)}}
    path = f"{MAPS}/map-{number % 100}"
    return ApiRequest("PATCH", path, (), body, MERGE_PATCH, JSON, "bench/1")


def typed_patch(number: int) -> ApiRequest:
    body = {"spec": {"size": number + 2}}
    path = f"{PATH}/widget-{number % 100}"
    return ApiRequest("PATCH", path, (), body, MERGE_PATCH, JSON, "bench/1")


def creation(number: int) -> ApiRequest:
    body = widget(f"new-{number}")
    return ApiRequest("POST", PATH, (), body, JSON, JSON, "bench/1")


def reading(number: int) -> ApiRequest:
    return ApiRequest("GET", f"{PATH}/widget-{number % 100}")


def rate(
    cluster: Cluster, count: int, request_of: Callable[[int], ApiRequest]
) -> float:
    """Answers per second; the time advances by a millisecond each time."""
    requests = [request_of(number) for number in range(count)]
    begin = time.perf_counter()
    for number, request in enumerate(requests):
        cluster, response, _ = answer(cluster, request, NOW + number / 1000)
        if response.status >= 300:
            raise RuntimeError(f"{request.path}: {response.body}")
    return count / (time.perf_counter() - begin)


def populated(count: int = 10_000, size: int = 2000) -> Cluster:
    """A cluster with a number of custom objects."""
    cluster = sent(empty_cluster(), "POST", DEFINITIONS, CRD)
    for number in range(count):
        # Through JSON, as from a client: nothing is shared beforehand.
        body = orjson.loads(orjson.dumps(widget(f"widget-{number}", size)))
        cluster = sent(cluster, "POST", PATH, body)
    return cluster


def fork_microseconds(forks: int = 1000) -> tuple[float, float]:
    """A fork of 10,000 objects: to keep the value; and to write to a kept one."""
    original = populated()
    requests = [typed_patch(number) for number in range(forks)]
    begin = time.perf_counter()
    kept = [original for _ in requests]
    between = time.perf_counter()
    changed = [
        answer(fork, one, NOW)[0] for fork, one in zip(kept, requests, strict=True)
    ]
    end = time.perf_counter()
    # No fork has seen another one's writes.
    assert {fork.version for fork in changed} == {original.version + 1}
    return (between - begin) / forks * 1e6, (end - between) / forks * 1e6


def memory_mb() -> float:
    """The memory that 10,000 objects of 2 KB add to a process that has only started."""
    script = (
        "from bench.cluster.inside import *\n"
        "before = resident_mb(); kept = populated()\n"
        "print(resident_mb() - before)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True
    )
    return float(found.stdout)


def resident_mb() -> float:
    """The resident memory of this process at this moment (Linux)."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
