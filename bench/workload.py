"""The work: small custom objects, each to get a result into its status."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from time import perf_counter as now
from typing import Any, NamedTuple

import aiohttp
import orjson

from bench.client import MERGE_PATCH, Json, request

GROUP = "bench.fnop.dev"
PLURAL = "benchobjects"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AT_ONCE = 16
QUIET = 1.0  # seconds without a change: then the operator has done all its work

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "singular": "benchobject", "kind": "BenchObject"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _ANYTHING, "status": _ANYTHING},
                    }
                },
            }
        ],
    },
}


def path(namespace: str) -> str:
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/{PLURAL}"


def item(number: int, padding: int) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "BenchObject",
        "metadata": {"name": f"object-{number:05}"},
        "spec": {"number": number, "padding": "x" * padding},
    }


def handled(body: Json) -> bool:
    """Whether the right result is in the status.

    >>> handled({"spec": {"number": 2}, "status": {"create": {"doubled": 4}}})
    True
    >>> handled({"spec": {"number": 2}})
    False
    """
    result = body.get("status", {}).get("create", {})
    return bool(result.get("doubled") == 2 * body["spec"]["number"])


async def define(session: aiohttp.ClientSession) -> None:
    """Create the kind, and wait until the server serves it."""
    status, answer = await request(session, "POST", CRDS, CRD)
    if status not in (201, 409):
        raise RuntimeError(f"cannot create the kind: {answer['message']}")
    for _ in range(100):
        status, _answer = await request(session, "GET", path("default"))
        if status == 200:
            return
        await asyncio.sleep(0.1)
    raise RuntimeError(f"the kind is not served: {status}")


@asynccontextmanager
async def namespace(session: aiohttp.ClientSession) -> AsyncIterator[str]:
    """A namespace of its own."""
    name = f"bench-{os.getpid()}"
    body: Json = {"metadata": {"name": name}}
    status, answer = await request(session, "POST", "/api/v1/namespaces", body)
    if status != 201:
        raise RuntimeError(f"cannot create namespace {name}: {answer['message']}")
    try:
        yield name
    finally:
        await request(session, "DELETE", f"/api/v1/namespaces/{name}")


async def padding_for(session: aiohttp.ClientSession, name: str, size: int) -> int:
    """The padding that makes an object *size* bytes long as the server sends it."""
    async with filled(session, name, 1, padding=0):
        body = (await bodies(session, name))[0]
    return max(0, size - len(orjson.dumps(body)))


@asynccontextmanager
async def filled(
    session: aiohttp.ClientSession, name: str, objects: int, padding: int
) -> AsyncIterator[None]:
    """A namespace full of new objects, which are deleted afterwards."""
    try:
        await fill(session, name, objects, padding)
        yield
    finally:
        await clear(session, name)


async def fill(
    session: aiohttp.ClientSession, name: str, objects: int, padding: int
) -> None:
    async def create(number: int) -> None:
        status, answer = await request(
            session, "POST", path(name), item(number, padding)
        )
        if status != 201:
            raise RuntimeError(f"cannot create an object: {answer['message']}")

    await _in_parallel(create(number) for number in range(objects))


async def clear(session: aiohttp.ClientSession, name: str) -> None:
    """Delete the objects, with any finalizers that the operator has left on them."""
    await request(session, "DELETE", path(name))

    async def release(body: Json) -> None:
        url = f"{path(name)}/{body['metadata']['name']}"
        change: Json = {"metadata": {"finalizers": None}}
        await request(session, "PATCH", url, change, MERGE_PATCH)

    await _in_parallel(release(body) for body in await bodies(session, name))


async def bodies(session: aiohttp.ClientSession, name: str) -> list[Json]:
    _, answer = await request(session, "GET", path(name))
    found: list[Json] = answer["items"]
    return found


async def version(session: aiohttp.ClientSession, name: str) -> str:
    """The version at which a watch would begin now."""
    _, answer = await request(session, "GET", path(name), limit="1")
    return str(answer["metadata"]["resourceVersion"])


async def changes(
    session: aiohttp.ClientSession, name: str, since: str
) -> AsyncIterator[Json]:
    """Each changed object since a version, as one more client of the server.

    A server under load ends watches that fall behind. Then this resumes from there or,
    if that is too long ago, treats all objects as changed.
    """
    while True:
        query = {"watch": "1", "resourceVersion": since}
        async with session.get(path(name), params=query) as response:
            async for line in response.content:
                event = orjson.loads(line)
                if event.get("type") not in ("ADDED", "MODIFIED"):
                    since = await version(session, name)
                    for body in await bodies(session, name):
                        yield body
                    break
                since = event["object"]["metadata"]["resourceVersion"]
                yield event["object"]


class Results(NamedTuple):
    """The times of the first and the last result, by `time.perf_counter`."""

    first: float
    last: float


async def all_handled(stream: AsyncIterator[Json], objects: int) -> Results:
    """Wait for the results of all objects, until all is quiet; return their times."""
    done: dict[str, float] = {}  # names, and times
    async for body in stream:
        name = body["metadata"]["name"]
        if name not in done and handled(body):
            done[name] = now()
        if len(done) == objects:
            break
    with suppress(TimeoutError):
        while True:
            await asyncio.wait_for(anext(stream), QUIET)
    return Results(min(done.values()), max(done.values()))


async def _in_parallel(jobs: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run *jobs*, a few at once."""
    waiting = iter(jobs)

    async def worker() -> None:
        for job in waiting:
            await job

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())
