"""One contender, once: fill a namespace, run the operator over it, measure."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from bench import workload
from bench.cases import Case
from bench.client import Json
from bench.metrics import Writes, parse
from bench.process import PATIENCE, Process, command, cpu_of, environment, idle

DEADLINE = 180.0
CREATIONS_PER_SECOND = 20.0

T = TypeVar("T")
Times = dict[str, float]  # of `time.perf_counter`, by the names of objects


@dataclass(frozen=True, slots=True)
class Run:
    """The measurements of one run of one contender.

    Of edits and creations at a pace, only the work after the start counts.
    """

    contender: str
    objects: int
    wall: (
        float  # seconds from the start of the process, or the work, to the last result
    )
    span: float  # seconds from the first result to the last
    cpu: float  # seconds, user and system; of a backlog the whole life of the process
    peak_mb: float
    writes: int  # to the objects, their status and their children
    events: int  # Kubernetes Events posted
    write_seconds: float  # the sum of the API server's times for the writes
    delays: Sequence[float] = ()  # seconds from a request to its result, in order


class Failed(Exception):
    """The contender did not do the work; the message describes the symptom."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The settings that all runs have in common."""

    session: aiohttp.ClientSession
    kubeconfig: str
    namespace: str
    delete_handler: bool
    log: Path
    python: Sequence[str] = (sys.executable,)  # also a profiler that runs it
    deadline: float = DEADLINE
    quiet: float = workload.QUIET
    patience: float = PATIENCE

    async def run(self, contender: str, case: Case, padding: int) -> Run:
        """Run a contender over a case, with the objects padded to their size."""
        run = self.backlog if case.work == "backlog" else self.live
        return await run(contender, case, padding)

    async def backlog(self, contender: str, case: Case, padding: int) -> Run:
        """Start the operator over new objects; measure its whole life."""
        objects = case.objects
        async with workload.filled(self.session, self.namespace, objects, padding):
            before = await self._writes()
            changes = await self._changes()
            started = time.perf_counter()
            async with self._operating(contender, case) as process:
                done = await self._finished(
                    process, workload.all_done(changes, objects, workload.handled)
                )
                await workload.quiet(changes, self.quiet)
                peak_mb = process.peak_mb()
            after = await self._writes()
        first, last = min(done.values()), max(done.values())
        return Run(
            contender,
            objects,
            last - started,
            last - first,
            process.exited.result(),
            peak_mb,
            after.objects - before.objects,
            after.events - before.events,
            after.seconds - before.seconds,
        )

    async def live(self, contender: str, case: Case, padding: int) -> Run:
        """Edit or create objects while the operator runs; measure from the first."""
        place, objects = (self.session, self.namespace), case.objects
        is_edit = case.work == "edits"
        work: Coroutine[Any, Any, Times] = (
            workload.edit(*place, objects)
            if is_edit
            else workload.create_at(*place, objects, padding, CREATIONS_PER_SECOND)
        )
        is_done = workload.edited if is_edit else workload.handled
        there = objects if is_edit else 1
        async with (
            workload.filled(*place, there, padding),
            self._operating(contender, case) as process,
        ):
            await self._ready(process, there)
            cpu, before = cpu_of(process), await self._writes()
            changes = await self._changes()
            started = time.perf_counter()
            sent, done = await self._finished(
                process, _both(work, workload.all_done(changes, objects, is_done))
            )
            await workload.quiet(changes, self.quiet)
            cpu = await idle(process, self.deadline) - cpu
            after, peak_mb = await self._writes(), process.peak_mb()
        first, last = min(done.values()), max(done.values())
        return Run(
            contender,
            objects,
            last - started,
            last - first,
            cpu,
            peak_mb,
            after.objects - before.objects - objects,  # without those of the harness
            after.events - before.events,
            after.seconds - before.seconds,
            sorted(done[name] - sent[name] for name in sent),
        )

    @asynccontextmanager
    async def _operating(self, contender: str, case: Case) -> AsyncIterator[Process]:
        """The running operator, until the end of the block."""
        args = command(
            contender, self.namespace, self.kubeconfig, self.log.parent, case.operator
        )
        updates = case.work == "edits"
        env = environment(self.kubeconfig, self.delete_handler, contender, updates)
        args = [*self.python, *args[1:]]
        process = Process.start(args, env, self.log, self.patience)
        try:
            yield process
        finally:
            await process.stop()

    async def _ready(self, process: Process, objects: int) -> None:
        """Wait until the operator has handled the first objects, and rests."""
        changes = workload.changes(self.session, self.namespace, "0")
        await self._finished(
            process, workload.all_done(changes, objects, workload.handled)
        )
        await changes.aclose()
        await idle(process, self.deadline)

    async def _changes(self) -> AsyncGenerator[Json, None]:
        """The changes of objects from now on."""
        since = await workload.version(self.session, self.namespace)
        return workload.changes(self.session, self.namespace, since)

    async def _finished(self, process: Process, work: Coroutine[Any, Any, T]) -> T:
        """The result of some work, which fails if the operator ends or is late."""
        working = asyncio.create_task(work)
        await asyncio.wait(
            {working, process.exited},
            timeout=self.deadline,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait({working})  # it changes no object from now on
        if process.exited.done():
            code = process.popen.returncode
            raise Failed(f"exited early, with status {code}{process.last_words()}")
        raise Failed(f"not done after {self.deadline:.0f} s{process.last_words()}")

    async def _writes(self) -> Writes:
        async with self.session.get("/metrics") as response:
            response.raise_for_status()
            return parse(await response.text())


async def _both(
    one: Coroutine[Any, Any, Times], other: Coroutine[Any, Any, Times]
) -> tuple[Times, Times]:
    """The results of both, which run at the same time."""
    first, second = await asyncio.gather(one, other)
    return first, second
