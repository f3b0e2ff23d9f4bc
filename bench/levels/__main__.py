"""The command: `python -m bench.levels`.

A thousand objects have four ConfigMaps each, kept by a reconcile handler.  Measured are
the requests at rest and after a restart, the repair of what another client has changed,
a plan of some repairs, and the CPU time of a change that concerns no handler, next to
that of a mere spy.  Requests are those that the API server has counted, less those that
it counts without operator.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import aiohttp
import orjson

from bench import workload
from bench.client import MERGE_PATCH, Json, connect, request
from bench.process import IDLE_SECONDS, Process, environment, idle
from tests.cluster import envtest

HERE = Path(__file__).parent
PADDING = 200
REPAIRS = 50
DRIFTED = 3
DEADLINE_SECONDS = 300.0
_SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = {"APPLY", "PATCH", "POST", "PUT", "DELETE", "DELETECOLLECTION"}
# The resources that an operator may ask for without a change.
_ASKED = {workload.PLURAL, "configmaps", "events", "customresourcedefinitions"}


class Requests(NamedTuple):
    """Requests of some time: writes of objects, Events, and all others."""

    writes: int
    events: int
    reads: int

    def less(self, other: Requests) -> Requests:
        return Requests(*(mine - its for mine, its in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{self.writes} writes, {self.events} Events, {self.reads} reads"


def requests_in(text: str) -> Requests:
    """Read the counters of an answer to GET /metrics.

    >>> sample = 'apiserver_request_total{resource="events",verb="POST"} 2'
    >>> str(requests_in(sample))
    '0 writes, 2 Events, 0 reads'
    """
    found: Counter[str] = Counter()
    for labels, value in _SAMPLE.findall(text):
        label = dict(_LABEL.findall(labels))
        if label["resource"] in _ASKED:
            is_write = label["verb"] in _WRITES
            is_event = is_write and label["resource"] == "events"
            sort = "events" if is_event else "writes" if is_write else "reads"
            found[sort] += int(float(value))
    return Requests(found["writes"], found["events"], found["reads"])


class Bench:
    """One API server, one namespace, and the objects in it."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        place: str,
        kubeconfig: str,
        objects: int,
        folder: Path,
    ) -> None:
        self.session, self.place = session, place
        self.kubeconfig, self.objects, self.folder = kubeconfig, objects, folder

    @property
    def config_maps(self) -> str:
        return f"/api/v1/namespaces/{self.place}/configmaps"

    async def requests(self) -> Requests:
        async with self.session.get("/metrics") as response:
            response.raise_for_status()
            return requests_in(await response.text())

    async def quiet(self) -> Requests:
        """Wait until requests stop for a while: a new server is busy with itself."""
        before = await self.requests()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                await asyncio.sleep(3 * IDLE_SECONDS)
                after = await self.requests()
                if after == before:
                    return after
                before = after

    @asynccontextmanager
    async def running(self, name: str, *options: str) -> AsyncIterator[Process]:
        """An operator of this folder, until the end of the block."""
        tool = "kopf" if name == "kopf" else "fnop"
        args = [sys.executable, "-m", tool, "run", str(HERE / f"{name}_operator.py")]
        if tool == "fnop":
            args += ["--kubeconfig", self.kubeconfig]
        args += ["-n", self.place, "--standalone", "--quiet", *options]
        log = self.folder / f"{name}.log"
        process = Process.start(args, environment(self.kubeconfig, False), log)
        try:
            yield process
        finally:
            await process.stop()

    async def synced(self) -> None:
        """Wait until all objects are as their handler wants them."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                bodies = await workload.bodies(self.session, self.place)
                if sum(map(_is_synced, bodies)) == self.objects:
                    return
                await asyncio.sleep(0.5)

    async def touch(self, number: int, data: Json) -> None:
        url = f"{self.config_maps}/object-{number:05}-1"
        status, answer = await request(
            self.session, "PATCH", url, {"data": data}, MERGE_PATCH
        )
        if status != 200:
            raise RuntimeError(f"cannot change a ConfigMap: {answer['message']}")


def _is_synced(body: Json) -> bool:
    told = body.get("status", {}).get("conditions", ())
    return {"Synced", "Ready"} <= {e["type"] for e in told if e["status"] == "True"}


# ------------------------------------------------------------------- what is measured


async def at_rest(bench: Bench, process: Process | None, seconds: float) -> Requests:
    """The requests in a period without any change."""
    if process is not None:
        await idle(process, DEADLINE_SECONDS)
    before = await bench.quiet()
    await asyncio.sleep(seconds)
    return (await bench.requests()).less(before)


class Repair(NamedTuple):
    """The seconds from another client's change until it is undone, in order."""

    seconds: Sequence[float]
    requests: Requests


async def repaired(bench: Bench, times: int) -> Repair:
    """Change a field that the handler wants, in one child after another."""
    found: list[float] = []
    before = await bench.requests()
    for number in range(times):
        since = await _version(bench)
        async with bench.session.get(
            bench.config_maps, params={"watch": "1", "resourceVersion": since}
        ) as response:
            began = time.perf_counter()
            await bench.touch(number, {"number": "changed"})
            async with asyncio.timeout(DEADLINE_SECONDS):
                async for line in response.content:
                    body = orjson.loads(line)["object"]
                    if body["data"]["number"] == str(number):
                        break
            found.append(time.perf_counter() - began)
    await asyncio.sleep(IDLE_SECONDS)
    asked = (await bench.requests()).less(before)
    # The harness lists, watches and changes, each once.
    mine = Requests(times, 0, 2 * times)
    return Repair(sorted(found), asked.less(mine))


async def _version(bench: Bench) -> str:
    _, answer = await request(bench.session, "GET", bench.config_maps, limit="1")
    return str(answer["metadata"]["resourceVersion"])


async def per_event(bench: Bench, process: Process, value: str) -> float:
    """CPU seconds for each change of a field that no handler wants."""
    before = await idle(process, DEADLINE_SECONDS)
    waiting = iter(range(bench.objects))

    async def worker() -> None:
        for number in waiting:
            await bench.touch(number, {"theirs": value})

    async with asyncio.TaskGroup() as group:
        for _ in range(workload.AT_ONCE):
            group.create_task(worker())
    return (await idle(process, DEADLINE_SECONDS) - before) / bench.objects


# ----------------------------------------------------------------------- the command


async def measure(kubeconfig: str, folder: Path, given: argparse.Namespace) -> None:
    objects, window = given.objects, given.rest
    async with connect(kubeconfig) as session, workload.namespace(session) as place:
        await workload.define(session)
        bench = Bench(session, place, kubeconfig, objects, folder)
        await workload.fill(session, place, objects, PADDING)
        nobody = await at_rest(bench, None, window)
        before = await bench.requests()
        async with bench.running("level") as process:
            await first_run(bench, process, window, nobody)
        await planned(bench)
        before = await bench.requests()
        async with bench.running("level") as process:
            await asyncio.sleep(IDLE_SECONDS)
            cpu = await idle(process, DEADLINE_SECONDS)
            asked = (await bench.requests()).less(before)
            say(f"started again with {cpu:.1f} s of CPU: {asked}")
            asked = (await at_rest(bench, process, window)).less(nobody)
            say(f"at rest for {window:.0f} s: {asked}")
        await events(bench, given.rounds, given.spies.split(","))


async def first_run(
    bench: Bench, process: Process, window: float, nobody: Requests
) -> None:
    before, began = await bench.requests(), time.perf_counter()
    await bench.synced()
    took, cpu = time.perf_counter() - began, await idle(process, DEADLINE_SECONDS)
    asked = (await bench.requests()).less(before)
    say(f"made in {took:.1f} s with {cpu:.1f} s of CPU: {asked}")
    asked = (await at_rest(bench, process, window)).less(nobody)
    say(f"at rest for {window:.0f} s: {asked}")
    drift = await repaired(bench, REPAIRS)
    late = quantiles(drift.seconds, n=20)[-1]
    say(
        f"{REPAIRS} repairs: median {1e3 * median(drift.seconds):.0f} ms, "
        f"95 % within {1e3 * late:.0f} ms, longest {1e3 * drift.seconds[-1]:.0f} ms: "
        f"{drift.requests}"
    )
    say(f"peak memory: {process.peak_mb():.0f} MB")


async def planned(bench: Bench) -> None:
    """Call `fnop plan` after some children have drifted, while no operator runs."""
    for number in range(DRIFTED):
        await bench.touch(number, {"number": "changed"})
    before, began = await bench.requests(), time.perf_counter()
    args = [sys.executable, "-m", "fnop", "plan", str(HERE / "level_operator.py")]
    args += ["--kubeconfig", bench.kubeconfig, "-n", bench.place]
    log = bench.folder / "plan.log"
    process = Process.start(args, environment(bench.kubeconfig, False), log)
    cpu = await process.exited
    if process.popen.returncode != 0:
        raise RuntimeError(f"fnop plan has failed:{process.last_words()}")
    took = time.perf_counter() - began
    asked = (await bench.requests()).less(before)
    say(f"planned {DRIFTED} repairs in {took:.1f} s with {cpu:.1f} s of CPU: {asked}")


async def events(bench: Bench, rounds: int, spies: Sequence[str]) -> None:
    """The next round's order reverses this round's."""
    found: dict[str, list[float]] = {name: [] for name in ("level", *spies)}
    for number in range(rounds):
        for name in list(found)[:: 1 if number % 2 else -1]:
            async with bench.running(name) as process:
                await asyncio.sleep(IDLE_SECONDS)
                spent = await per_event(bench, process, f"{name} {number}")
            found[name].append(spent)
            say(f"round {number + 1}, {name}: {1e6 * spent:.0f} us of CPU for an event")
    base = median(found["spy"])
    for name, each in found.items():
        say(f"{name}: {1e6 * median(each):.0f} us, {median(each) / base:.2f} x the spy")


def say(text: str) -> None:
    print(text, flush=True)


def main(args: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.levels", description=__doc__)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rest", type=float, default=30, metavar="SECONDS")
    parser.add_argument("--spies", default="spy,kopf", metavar="NAME,...")
    given = parser.parse_args(args)
    if (reason := envtest.missing()) is not None:
        print(reason, file=sys.stderr)
        return 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(envtest.running(folder / "server"))
        asyncio.run(measure(str(server.kubeconfig), folder, given))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
