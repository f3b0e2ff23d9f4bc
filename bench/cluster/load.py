"""The requests: create, get, patch, list, and a watch with many followers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import orjson

from bench.client import MERGE_PATCH, Json
from bench.cluster.connection import Connection, Target

GROUP, PLURAL, KIND = "load.fnop.dev", "widgets", "Widget"
PATH = f"/apis/{GROUP}/v1/namespaces/default/{PLURAL}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WATCHERS, WRITERS = 10, 4

TEXT, INTEGER = {"type": "string"}, {"type": "integer"}
PART = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": TEXT,
        "image": TEXT,
        "weight": {**INTEGER, "minimum": 0, "default": 1},
        "arguments": {"type": "array", "items": TEXT},
    },
}
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {**INTEGER, "minimum": 0},
        "mode": {**TEXT, "enum": ["fast", "safe"], "default": "safe"},
        "colour": {**TEXT, "maxLength": 20, "pattern": "^[a-z]+$"},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "parts": {
            "type": "array",
            "items": PART,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "padding": TEXT,
    },
}
CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "singular": "widget", "kind": KIND},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": SPEC,
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, size: int = 1300) -> Json:
    """An object of the measured kind, of about a given size in JSON.

    >>> 1290 < len(orjson.dumps(widget("w"))) < 1310
    True
    """
    body: Json = {
        "apiVersion": f"{GROUP}/v1",
        "kind": KIND,
        "metadata": {"name": name, "labels": {"app": "load", "tier": "one"}},
        "spec": {
            "size": 1,
            "colour": "blue",
            "labels": {f"key-{number}": "value" for number in range(10)},
            "parts": [
                {"name": f"part-{number}", "image": "registry/image:1", "weight": 2}
                for number in range(5)
            ],
            "padding": "",
        },
    }
    body["spec"]["padding"] = "x" * (size - len(orjson.dumps(body)))
    return body


@dataclass(frozen=True, slots=True)
class Figures:
    """Per second: requests of one client and of sixteen, and delivered events."""

    create_1: float
    create_16: float
    get_1: float
    get_16: float
    patch_1: float
    patch_16: float
    list_1: float
    list_16: float
    watch: float


Send = Callable[[Connection, int], Awaitable[None]]


async def measure(target: Target, scale: float = 1.0) -> Figures:
    """Run one round on a server, and delete its objects at the end."""
    admin = await target.open()
    await define(admin)
    few, many = max(20, int(300 * scale)), max(64, int(1600 * scale))
    try:
        create_1 = await rate(target, 1, few, creating("one"))
        create_16 = await rate(target, 16, many, creating("many"))
        await emptied(admin)
        await filled(target, 1000)
        return Figures(
            create_1=create_1,
            create_16=create_16,
            get_1=await rate(target, 1, few, getting),
            get_16=await rate(target, 16, many, getting),
            patch_1=await rate(target, 1, few, patching),
            patch_16=await rate(target, 16, many, patching),
            list_1=await rate(target, 1, max(5, few // 20), listing),
            list_16=await rate(target, 16, max(16, many // 20), listing),
            watch=await fanned_out(target, many // 2),
        )
    finally:
        await emptied(admin)
        admin.close()


async def define(admin: Connection) -> None:
    """Create the kind, and wait until the server serves it."""
    status, answer = await admin.send("POST", DEFINITIONS, orjson.dumps(CRD))
    if status not in (201, 409):
        raise RuntimeError(f"cannot create the kind: {answer[:300]!r}")
    for _ in range(200):
        if (await admin.send("GET", PATH))[0] == 200:
            return
        await asyncio.sleep(0.05)
    raise RuntimeError("the kind is not served")


async def emptied(admin: Connection) -> None:
    status, answer = await admin.send("DELETE", PATH)
    if status != 200:
        raise RuntimeError(f"cannot delete: {answer[:300]!r}")


async def filled(target: Target, count: int) -> None:
    await rate(target, 16, count, creating("object"))


async def rate(target: Target, clients: int, count: int, send: Send) -> float:
    """Measure the answered requests per second of a number of clients."""
    connections = [await target.open() for _ in range(clients)]
    numbers = iter(range(count))

    async def client(connection: Connection) -> None:
        for number in numbers:
            await send(connection, number)

    begin = time.perf_counter()
    await asyncio.gather(*map(client, connections))
    spent = time.perf_counter() - begin
    for connection in connections:
        connection.close()
    return count / spent


def expect(wanted: int, answer: tuple[int, bytes]) -> None:
    status, body = answer
    if status != wanted:
        raise RuntimeError(f"{status}, not {wanted}: {body[:300]!r}")


def creating(prefix: str) -> Send:
    async def create(connection: Connection, number: int) -> None:
        body = orjson.dumps(widget(f"{prefix}-{number}"))
        expect(201, await connection.send("POST", PATH, body))

    return create


async def getting(connection: Connection, number: int) -> None:
    expect(200, await connection.send("GET", f"{PATH}/object-{number % 1000}"))


async def patching(connection: Connection, number: int) -> None:
    body = orjson.dumps({"spec": {"size": number + 2}})
    path = f"{PATH}/object-{number % 1000}"
    expect(200, await connection.send("PATCH", path, body, MERGE_PATCH))


async def listing(connection: Connection, number: int) -> None:
    expect(200, await connection.send("GET", PATH))


class Watcher(Connection):
    """Counts the events of a watch up to a number."""

    MARK = b'"type":"MODIFIED"'

    def follow(self, version: str, wanted: int) -> None:
        self._wanted = wanted
        self._tail = b""
        self.complete = asyncio.get_running_loop().create_future()
        path = f"{PATH}?watch=true&resourceVersion={version}&timeoutSeconds=120"
        self._transport.write(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())

    def data_received(self, data: bytes) -> None:
        data = self._tail + data  # a mark may come in two pieces
        self._wanted -= data.count(self.MARK)
        self._tail = data[1 - len(self.MARK) :]
        if self._wanted <= 0 and not self.complete.done():
            self.complete.set_result(None)


async def fanned_out(target: Target, changes: int) -> float:
    """Events per second that reach ten watchers, while four clients write."""
    admin = await target.open()
    page = await admin.json("GET", f"{PATH}?limit=1")
    version = page["metadata"]["resourceVersion"]
    watchers = [await target.connect(Watcher) for _ in range(WATCHERS)]
    for watcher in watchers:
        watcher.follow(version, changes)
    begin = time.perf_counter()

    async def touch(connection: Connection, number: int) -> None:
        body = orjson.dumps({"spec": {"size": number + 100_000}})
        path = f"{PATH}/object-{number % 1000}"
        expect(200, await connection.send("PATCH", path, body, MERGE_PATCH))

    await rate(target, WRITERS, changes, touch)
    async with asyncio.timeout(60):
        await asyncio.gather(*(watcher.complete for watcher in watchers))
    spent = time.perf_counter() - begin
    for connection in (admin, *watchers):
        connection.close()
    return changes * WATCHERS / spent
