"""One operator: a collection that it has handled, and restarts over it."""

import asyncio
import re
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import TypeVar

import aiohttp
import orjson

from bench import workload
from bench.__main__ import say
from bench.client import Json, request
from bench.front import RECEIVED
from bench.large.objects import item, name_of
from bench.large.report import Handled, Run
from bench.process import STANDSTILL, Process, cpu_of, environment
from bench.trial import Failed

# An operator is at rest when it uses next to no CPU time for this long.
REST_SECONDS = 3.0
# The longest wait for that; then the operator is measured anyway.
RESTLESS_SECONDS = 120.0
PROGRESS_SECONDS = 10.0
TOO_MANY_REQUESTS = 429
# Enough objects for their mean size.
SAMPLE = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Server:
    """A running API server, and the settings that all runs have in common."""

    session: aiohttp.ClientSession
    kubeconfig: str
    has_front: bool
    deadline: float  # seconds for a preparation, and for a restart
    log: Path

    async def ask(
        self, status: int, method: str, path: str, body: Json | None = None
    ) -> None:
        """Send a request that must get this status; repeat it if the server is busy."""
        while True:
            found, answer = await request(self.session, method, path, body)
            if found == status:
                return
            if found != TOO_MANY_REQUESTS:
                raise Failed(f"{method} {path}: {answer['message']}")
            await asyncio.sleep(1)

    async def namespace(self, name: str) -> None:
        """Create a namespace."""
        body: Json = {"metadata": {"name": name}}
        await self.ask(201, "POST", "/api/v1/namespaces", body)

    async def received(self) -> int | None:
        """The bytes that the API server has sent so far, if a front counts them."""
        if not self.has_front:
            return None
        async with self.session.get(RECEIVED) as response:
            return int(await response.text())

    async def length_for(self, size: int) -> int:
        """The length of an object's own JSON if the server sends *size* bytes."""
        await self.namespace(probing := "bench-probe")
        collection = Collection(self, probing, size)
        await collection.create(0)
        sent = await collection.sample()
        await collection.delete(0)
        return max(0, size - (len(sent[0]) - len(orjson.dumps(item(0, size)))))

    def start(self, contender: str, namespace: str) -> Process:
        family, _, variant = contender.partition("-")
        extra = {"BENCH_LARGE": variant} if variant else {}
        env = environment(self.kubeconfig, False) | extra
        return Process.start(self._command(family, namespace), env, self.log)

    def _command(self, family: str, namespace: str) -> list[str]:
        scope = ["-n", namespace, "--standalone", "--quiet"]
        script = f"bench/large/{family}_operator.py"
        match family:
            case "fnop":
                config = ["--kubeconfig", self.kubeconfig]
                rest = ["fnop", "run", script, *config, *scope]
            case "kopf":
                rest = ["kopf", "run", script, *scope]
            case _:
                rest = ["bench.large.floor", namespace]
        return [sys.executable, "-m", *rest]


@dataclass
class Seen:
    """The changes that a watch has shown."""

    handled: dict[str, float] = field(default_factory=dict)  # names, and times
    changed: set[str] = field(default_factory=set)

    def see(self, body: Json) -> None:
        name = body["metadata"]["name"]
        self.changed.add(name)
        if name not in self.handled and workload.handled(body):
            self.handled[name] = time.perf_counter()


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of one namespace."""

    server: Server
    namespace: str
    length: int  # of an object's own JSON

    @property
    def path(self) -> str:
        return workload.path(self.namespace)

    async def create(self, number: int) -> None:
        await self.server.ask(201, "POST", self.path, item(number, self.length))

    async def delete(self, number: int) -> None:
        await self.server.ask(200, "DELETE", f"{self.path}/{name_of(number)}")

    async def fill(self, objects: int) -> None:
        """Create the objects from 1 to *objects*."""
        numbers = iter(range(1, objects + 1))

        async def worker() -> None:
            for number in numbers:
                await self.create(number)

        tasks = [asyncio.create_task(worker()) for _ in range(workload.AT_ONCE)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def sample(self) -> list[bytes]:
        """The JSON of some objects as the server sends them."""
        _, answer = await request(
            self.server.session, "GET", self.path, limit=str(SAMPLE)
        )
        return [orjson.dumps(body) for body in answer["items"]]

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Seen]:
        """All changes during the block."""
        seen = Seen()
        version = await workload.version(self.server.session, self.namespace)

        async def follow(since: str) -> None:
            while True:
                # A busy server ends watches, and refuses new ones.
                with suppress(aiohttp.ClientError, KeyError):
                    async for body in workload.changes(
                        self.server.session, self.namespace, since
                    ):
                        seen.see(body)
                        since = body["metadata"]["resourceVersion"]
                await asyncio.sleep(1)

        following = asyncio.create_task(follow(version))
        try:
            yield seen
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    async def prepare(self, contender: str, objects: int) -> Handled:
        """Create objects 1 to *objects* while the operator runs, which handles them."""
        await self.server.namespace(self.namespace)
        async with self.watched() as seen:
            process = self.server.start(contender, self.namespace)
            telling = asyncio.create_task(tell(contender, seen, objects))
            try:
                await self.guarded(process, self.fill(objects))
                are_done = until(lambda: len(seen.handled) >= objects)
                await self.guarded(process, are_done)
                await self.guarded(process, rest(process))
            finally:
                telling.cancel()
                await process.stop()
        found = await self.sample()
        packed = [zlib.compress(each) for each in found]
        return Handled(mean(map(len, found)), mean(map(len, packed)))

    async def restart(self, contender: str, objects: int) -> Run:
        """Start the operator over handled objects, with a new one on either side."""
        newcomers = (0, objects + 1)
        for number in newcomers:
            await self.create(number)
        try:
            return await self._restart(contender, objects, *map(name_of, newcomers))
        finally:
            for number in newcomers:
                await self.delete(number)

    async def _restart(
        self, contender: str, objects: int, first: str, last: str
    ) -> Run:
        before = await self.server.received()
        async with self.watched() as seen:
            started = time.perf_counter()
            process = self.server.start(contender, self.namespace)
            try:
                are_done = until(lambda: {first, last} <= seen.handled.keys())
                await self.guarded(process, are_done)
                cpu = await self.guarded(process, rest(process))
                status = Path(f"/proc/{process.popen.pid}/status").read_text()
            finally:
                await process.stop()
        after = await self.server.received()
        return Run(
            contender,
            objects,
            first=seen.handled[first] - started,
            last=seen.handled[last] - started,
            cpu=cpu,
            resident=size_in(status, "VmRSS"),
            peak=size_in(status, "VmHWM"),
            received=None if before is None or after is None else after - before,
            others=len(seen.changed - {first, last}),
        )

    async def guarded(self, process: Process, work: Awaitable[T]) -> T:
        """Await the work; fail if the process ends, or the deadline passes, before."""
        working = asyncio.ensure_future(work)
        await asyncio.wait(
            {working, process.exited},
            timeout=self.server.deadline,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if working.done() and not process.exited.done():
            return working.result()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        if process.exited.done():
            code = process.popen.returncode
            raise Failed(f"exited early, with status {code}{process.last_words()}")
        seconds = f"{self.server.deadline:.0f} s"
        raise Failed(f"not done after {seconds}{process.last_words()}")


async def tell(contender: str, seen: Seen, objects: int) -> None:
    """Report the preparation now and then."""
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        done = f"{len(seen.handled):,} of {objects:,}"
        say(f"{contender}: {done} objects are handled")


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.05)


async def rest(process: Process) -> float:
    """Wait until an operator is at rest; return the CPU seconds used by then."""
    before, began = cpu_of(process), time.monotonic()
    while True:
        await asyncio.sleep(REST_SECONDS)
        after = cpu_of(process)
        if after - before <= STANDSTILL:
            return after
        if time.monotonic() - began > RESTLESS_SECONDS:
            say(f"not at rest after {RESTLESS_SECONDS:.0f} s, measured as it is")
            return after
        before = after


def size_in(status: str, name: str) -> int:
    """The bytes of a line of /proc/PID/status.

    >>> size_in("VmHWM:\\t 9 kB\\nVmRSS:\\t 2 kB\\n", "VmRSS")
    2048
    """
    found = re.search(rf"^{name}:\s*(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise ValueError(f"no {name} in the status of a process")
    return 1024 * int(found[1])
