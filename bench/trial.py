"""One contender, once: fill a namespace, run the operator over it, measure."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench import workload
from bench.client import Json
from bench.metrics import Writes, parse
from bench.process import Process, command, environment

DEADLINE = 120.0


@dataclass(frozen=True, slots=True)
class Run:
    """The measurements of one run of one contender."""

    contender: str
    objects: int
    wall: float  # seconds from the start of the process to the last result
    span: float  # seconds from the first result to the last
    cpu: float  # seconds, user and system, of the whole life of the process
    peak_mb: float
    writes: int  # to the objects and their status
    events: int  # Kubernetes Events posted
    write_seconds: float  # the sum of the API server's times for the writes


class Failed(Exception):
    """The contender did not do the work; the message describes the symptom."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The settings that all runs have in common."""

    session: aiohttp.ClientSession
    kubeconfig: str
    namespace: str
    padding: int
    delete_handler: bool
    log: Path

    async def run(self, contender: str, objects: int) -> Run:
        async with workload.filled(self.session, self.namespace, objects, self.padding):
            before = await self._writes()
            wall, span, cpu, peak_mb = await self._operate(contender, objects)
            after = await self._writes()
        return Run(
            contender,
            objects,
            wall,
            span,
            cpu,
            peak_mb,
            writes=after.objects - before.objects,
            events=after.events - before.events,
            write_seconds=after.seconds - before.seconds,
        )

    async def _operate(
        self, contender: str, objects: int
    ) -> tuple[float, float, float, float]:
        args = command(contender, self.namespace, self.kubeconfig, self.log.parent)
        env = environment(self.kubeconfig, self.delete_handler, contender)
        since = await workload.version(self.session, self.namespace)
        started = time.perf_counter()
        process = Process.start(args, env, self.log)
        changes = workload.changes(self.session, self.namespace, since)
        try:
            results = await _finished(process, changes, objects)
            peak_mb = process.peak_mb()
        finally:
            cpu = await process.stop()
        return results.last - started, results.last - results.first, cpu, peak_mb

    async def _writes(self) -> Writes:
        async with self.session.get("/metrics") as response:
            response.raise_for_status()
            return parse(await response.text())


async def _finished(
    process: Process, changes: AsyncIterator[Json], objects: int
) -> workload.Results:
    """The time at which the work was done; fails if the deadline passes first."""
    working = asyncio.create_task(workload.all_handled(changes, objects))
    await asyncio.wait(
        {working, process.exited},
        timeout=DEADLINE,
        return_when=asyncio.FIRST_COMPLETED,
    )
    if process.exited.done():
        working.cancel()
        code = process.popen.returncode
        raise Failed(f"exited early, with status {code}{process.last_words()}")
    if not working.done():
        working.cancel()
        raise Failed(f"not done after {DEADLINE:.0f} s{process.last_words()}")
    return working.result()
