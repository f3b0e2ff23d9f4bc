"""The work: small custom objects, each to get a result into its status."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from time import perf_counter as now
from typing import Any

import aiohttp
import orjson

from bench.client import MERGE_PATCH, Json, request

GROUP = "bench.fnop.dev"
PLURAL = "benchobjects"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AT_ONCE = 16
QUIET = 1.0  # seconds without a change: then the operator has done all its work
EDITED = 1_000_000  # numbers from here are those of edited objects

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


def edited(body: Json) -> bool:
    """Whether the right result of an edit is in the status.

    >>> edited({"spec": {"number": 2}, "status": {"create": {"doubled": 4}}})
    False
    """
    return handled(body) and body["spec"]["number"] >= EDITED


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
    await _in_parallel(create(session, name, n, padding) for n in range(objects))


async def create(
    session: aiohttp.ClientSession, name: str, number: int, padding: int
) -> None:
    status, answer = await request(session, "POST", path(name), item(number, padding))
    if status != 201:
        raise RuntimeError(f"cannot create an object: {answer['message']}")


async def create_at(
    session: aiohttp.ClientSession,
    name: str,
    objects: int,
    padding: int,
    per_second: float,
) -> dict[str, float]:
    """Create objects at an even pace; return the times of the requests by name.

    Their numbers begin with 1: the object with number 0 is there already.
    """
    sent: dict[str, float] = {}
    began = now()
    async with asyncio.TaskGroup() as group:
        for number in range(1, objects + 1):
            await asyncio.sleep(began + number / per_second - now())
            sent[item(number, 0)["metadata"]["name"]] = now()
            group.create_task(create(session, name, number, padding))
    return sent


async def edit(
    session: aiohttp.ClientSession, name: str, objects: int
) -> dict[str, float]:
    """Give each object another number; return the times of the requests by name."""
    sent: dict[str, float] = {}

    async def change(number: int) -> None:
        edited_name = item(number, 0)["metadata"]["name"]
        body: Json = {"spec": {"number": EDITED + number}}
        sent[edited_name] = now()
        url = f"{path(name)}/{edited_name}"
        status, answer = await request(session, "PATCH", url, body, MERGE_PATCH)
        if status != 200:
            raise RuntimeError(f"cannot edit an object: {answer['message']}")

    await _in_parallel(change(number) for number in range(objects))
    return sent


async def clear(session: aiohttp.ClientSession, name: str) -> None:
    """Delete the objects, with any finalizers that the operator has left on them."""
    await request(session, "DELETE", f"/api/v1/namespaces/{name}/configmaps")
    await request(session, "DELETE", path(name))

    async def release(body: Json) -> None:
        url = f"{path(name)}/{body['metadata']['name']}"
        change: Json = {"metadata": {"finalizers": None}}
        await request(session, "PATCH", url, change, MERGE_PATCH)

    await _in_parallel(release(body) for body in await bodies(session, name))


async def streams(session: aiohttp.ClientSession, name: str) -> bool:
    """Whether the server streams a list as the beginning of a watch."""
    query = {
        "watch": "1",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "1",
    }
    async with session.get(path(name), params=query) as response:
        text = await response.read()
        return response.status == 200 and b"k8s.io/initial-events-end" in text


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
) -> AsyncGenerator[Json, None]:
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


async def all_done(
    stream: AsyncIterator[Json], objects: int, is_done: Callable[[Json], bool]
) -> dict[str, float]:
    """Wait until this number of objects is done; return the times by name.

    The times are those of `time.perf_counter`.
    """
    done: dict[str, float] = {}
    async for body in stream:
        name = body["metadata"]["name"]
        if name not in done and is_done(body):
            done[name] = now()
        if len(done) == objects:
            break
    return done


async def quiet(stream: AsyncIterator[Json], seconds: float = QUIET) -> None:
    """Wait until no object has changed for some seconds."""
    with suppress(TimeoutError):
        while True:
            await asyncio.wait_for(anext(stream), seconds)


async def _in_parallel(jobs: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run *jobs*, a few at once."""
    waiting = iter(jobs)

    async def worker() -> None:
        for job in waiting:
            await job

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())
