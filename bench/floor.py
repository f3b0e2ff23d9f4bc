"""The hand-written loop: list, watch, patch; the baseline for fnop and Kopf.

    python -m bench.floor NAMESPACE [OPERATOR]

OPERATOR is one of `LOOPS`, and without it the plain loop.
It is the code that an engineer would write for this one job: a queue of names and a few
workers. So an object is never handled twice at once and always by its newest state.
KUBECONFIG names the server; BENCH_DELETE=1 adds a finalizer.
"""

import asyncio
import os
import signal
import sys

import aiohttp
import orjson

from bench.client import MERGE_PATCH, Json, connect, loop_factory, request

API = "/apis/bench.fnop.dev/v1/namespaces/{}/benchobjects"
FINALIZER = "bench.fnop.dev/floor"
WORKERS = 32
PAGE = 500
# The objects that an index has together.
NEIGHBOURS = 4

Change = tuple[str, Json]  # a sub-path of the object, and the patch to merge there


def decide(body: Json, finalizing: bool) -> Change | None:
    """The next change of an object, if any."""
    meta = body["metadata"]
    finalizers = meta.get("finalizers", [])
    if "deletionTimestamp" in meta:
        rest = [name for name in finalizers if name != FINALIZER]
        return _finalizers(meta, rest) if rest != finalizers else None
    if finalizing and FINALIZER not in finalizers:
        return _finalizers(meta, [*finalizers, FINALIZER])
    result = {"doubled": body["spec"]["number"] * 2}
    if body.get("status", {}).get("create") == result:
        return None
    return "/status", {"status": {"create": result}}


def _finalizers(meta: Json, names: list[str]) -> Change:
    version = meta["resourceVersion"]  # a list is replaced whole: only if unchanged
    return "", {"metadata": {"finalizers": names, "resourceVersion": version}}


class Floor:
    def __init__(self, session: aiohttp.ClientSession, path: str, finalizing: bool):
        self.session, self.path, self.finalizing = session, path, finalizing
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.active: set[str] = set()  # in the queue or in a worker's hands
        self.newest: dict[str, Json] = {}  # the latest states of those since

    def offer(self, body: Json) -> None:
        name = body["metadata"]["name"]
        if name in self.active:
            self.newest[name] = body
        elif decide(body, self.finalizing):
            self.newest[name] = body
            self.active.add(name)
            self.queue.put_nowait(name)

    def forget(self, name: str) -> None:
        """Drop everything about an object that is gone."""

    async def work(self) -> None:
        while True:
            name = await self.queue.get()
            if change := decide(self.newest.pop(name), self.finalizing):
                await self.patch(name, *change)
            self.active.discard(name)
            if later := self.newest.pop(name, None):
                self.offer(later)

    async def patch(self, name: str, subresource: str, change: Json) -> None:
        path = f"{self.path}/{name}{subresource}"
        status, answer = await request(self.session, "PATCH", path, change, MERGE_PATCH)
        if status >= 400 and status not in (404, 409):  # gone, or the watch shows more
            raise RuntimeError(f"PATCH {path}: {answer['message']}")

    async def list(self) -> str:
        more = ""
        while True:
            query = {"limit": str(PAGE), "continue": more}
            async with self.session.get(self.path, params=query) as response:
                response.raise_for_status()
                answer = orjson.loads(await response.read())
            for body in answer["items"]:
                self.offer(body)
            if not (more := answer["metadata"].get("continue", "")):
                return str(answer["metadata"]["resourceVersion"])

    async def watch(self, version: str) -> str | None:
        """Follow one watch; return the version to resume at, or None: list again."""
        query = {"watch": "1", "resourceVersion": version}
        async with self.session.get(self.path, params=query) as response:
            async for line in response.content:
                event = orjson.loads(line)
                if event.get("type") not in ("ADDED", "MODIFIED", "DELETED"):
                    return None  # most likely 410: the version is too old
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    self.forget(event["object"]["metadata"]["name"])
                else:
                    self.offer(event["object"])
        return version

    async def follow(self) -> None:
        version: str | None = None
        while True:
            try:
                version = await self.watch(version or await self.list())
            except aiohttp.ClientError:
                await asyncio.sleep(1)


class Indexed(Floor):
    """The loop with an index: the names of all objects, by a part of their number."""

    def __init__(self, session: aiohttp.ClientSession, path: str, finalizing: bool):
        super().__init__(session, path, finalizing)
        self.names: dict[int, set[str]] = {}

    def offer(self, body: Json) -> None:
        key = body["spec"]["number"] // NEIGHBOURS
        self.names.setdefault(key, set()).add(body["metadata"]["name"])
        super().offer(body)

    async def patch(self, name: str, subresource: str, change: Json) -> None:
        number = change["status"]["create"]["doubled"] // 2
        assert name in self.names[number // NEIGHBOURS]
        await super().patch(name, subresource, change)


class Attended(Floor):
    """The loop with a task for each object, as a daemon: it writes, and then waits."""

    def __init__(self, session: aiohttp.ClientSession, path: str, finalizing: bool):
        super().__init__(session, path, finalizing=True)
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.slots = asyncio.Semaphore(WORKERS)

    async def patch(self, name: str, subresource: str, change: Json) -> None:
        if subresource:
            self.tasks[name] = asyncio.create_task(self.attend(name, change))
        else:
            await super().patch(name, subresource, change)

    async def attend(self, name: str, change: Json) -> None:
        async with self.slots:
            await super().patch(name, "/status", change)
        while True:
            await asyncio.sleep(3600)

    def forget(self, name: str) -> None:
        if task := self.tasks.pop(name, None):
            task.cancel()


LOOPS = {"results": Floor, "indexed": Indexed, "daemons": Attended}


async def run(namespace: str, loop: type[Floor] = Floor) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with connect(os.environ["KUBECONFIG"]) as session:
        floor = loop(session, API.format(namespace), "BENCH_DELETE" in os.environ)
        jobs = [stop.wait(), floor.follow(), *(floor.work() for _ in range(WORKERS))]
        tasks = [asyncio.create_task(job) for job in jobs]
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for task in ended:
            task.result()  # a job ends by itself only when it fails: raise its error


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run(sys.argv[1], LOOPS[sys.argv[2] if sys.argv[2:] else "results"]))
