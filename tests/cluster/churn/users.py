"""The users that change the objects, and the required end states."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.cluster.churn.failing import Process
from tests.cluster.churn.judging import MARKER, Judge, Manifest, view_of
from tests.cluster.churn.plans import Plan
from tests.cluster.fault_proxy import (
    Upstream,
)
from tests.cluster.fault_world import DEFINITIONS, MERGE_PATCH
from tests.cluster.operators.churning import TOUCHED
from tests.patience import patience
from tests.simulations import DEFINITION, example

__all__ = ["User", "unmet"]

HOLD = "churn.example/hold"


@dataclass
class Item:
    """An object as the user remembers it."""

    name: str
    uid: str
    values: list[tuple[int, int]]
    touched: int = 0
    held: bool = False
    release_at: float | None = None  # monotonic; None: it is not deleted


class User:
    """Make changes past every fault; some get lost while the servers are away."""

    def __init__(
        self, upstream: Upstream, namespace: str, judge: Judge, plan: Plan
    ) -> None:
        self.upstream = upstream
        self.namespace = namespace
        self.judge = judge
        self.plan = plan
        self.changes: Counter[str] = Counter()
        self.items: dict[str, Item] = {}
        self.deleted: dict[str, Item] = {}
        self._random = random.Random(f"{plan.seed} user")
        self._numbers = iter(range(1, 10**9))

    @property
    def collection(self) -> str:
        return f"/apis/fnop.dev/v1/namespaces/{self.namespace}/fnopexamples"

    async def define(self) -> None:
        metadata = {"metadata": {"name": self.namespace}}
        body = {"apiVersion": "v1", "kind": "Namespace", **metadata}
        await self.upstream.ask("POST", "/api/v1/namespaces", body)
        await self.upstream.ask("POST", DEFINITIONS, DEFINITION)
        async with asyncio.timeout(patience(20)):
            while (await self.upstream.ask("GET", self.collection))[0] != 200:
                await asyncio.sleep(0.1)

    async def act(self) -> None:
        """One change."""
        draw, full = self._random.random(), len(self.items) >= self.plan.objects
        if not self.items or (not full and draw < 0.35):
            await self._create()
            return
        item = self._random.choice(list(self.items.values()))
        verbs: list[tuple[float, Callable[[Item], Awaitable[None]]]] = [
            (0.45, self._edit),
            (0.60, self._revert),
            (0.70, self._touch),
            (0.80, self._hold),
            (1.00, self._delete),
        ]
        draw = self._random.random()
        await next(verb for below, verb in verbs if draw < below)(item)

    async def _create(self) -> None:
        number = next(self._numbers)
        # Names come again.
        name = f"object-{self._random.randrange(self.plan.objects * 2)}"
        if name in self.items or name in self.deleted:
            return
        values = (number, self._random.randrange(100))
        manifest = example(name, value=values[0], other=values[1])
        manifest["metadata"]["namespace"] = self.namespace
        held = self._random.random() < 0.25
        if held:
            manifest["metadata"]["finalizers"] = [HOLD]
        body = await self._ask("create", "POST", self.collection, manifest)
        if body is not None:
            self.items[name] = Item(name, body["metadata"]["uid"], [values], held=held)

    async def _edit(self, item: Item) -> None:
        value, other = item.values[-1]
        if self._random.random() < 0.7:
            value = next(self._numbers)
        if self._random.random() < 0.5:
            other = self._random.randrange(100)
        await self._write(item, "edit", (value, other))

    async def _revert(self, item: Item) -> None:
        await self._write(item, "revert", self._random.choice(item.values[-3:]))

    async def _write(self, item: Item, verb: str, values: tuple[int, int]) -> None:
        change = {"spec": {"value": values[0], "other": values[1]}}
        if await self._patch(item, verb, change) is not None:
            item.values.append(values)

    async def _touch(self, item: Item) -> None:
        item.touched += 1
        change = {"metadata": {"annotations": {TOUCHED: str(item.touched)}}}
        await self._patch(item, "touch", change)

    async def _hold(self, item: Item) -> None:
        if item.held:
            return
        found = await self._ask("look", "GET", f"{self.collection}/{item.name}")
        if found is None:
            return
        metadata = found["metadata"]
        change = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [*metadata.get("finalizers", ()), HOLD],
            }
        }
        item.held = await self._patch(item, "hold", change) is not None

    async def _delete(self, item: Item) -> None:
        later = self._random.choice((0.2, 2.0, 10.0, 30.0))
        path = f"{self.collection}/{item.name}"
        answer = await self._ask("delete", "DELETE", path)
        if answer is None or answer["kind"] == "Status":
            # Gone at once: the API server had read it before a finalizer was added, and
            # compares no version then (1.20 and 1.36: see the page on reliability). Or
            # its fate is unknown; an operator that still sees it reports it.
            self.judge.held.discard(item.uid)
        if answer is not None:
            del self.items[item.name]
            item.release_at = time.monotonic() + later * self._random.random()
            self.deleted[item.name] = item

    async def release(self, *, all_of_them: bool = False) -> None:
        """Take the own finalizer away when it is time."""
        for item in list(self.deleted.values()):
            assert item.release_at is not None
            if all_of_them or time.monotonic() >= item.release_at:
                await self._release(item)

    async def _release(self, item: Item) -> None:
        path = f"{self.collection}/{item.name}"
        status, found = await self._asked("GET", path)
        if status == 404 or (status == 200 and found["metadata"]["uid"] != item.uid):
            self.judge.gone.setdefault(item.uid, time.time())
            del self.deleted[item.name]
        if status != 200:
            return
        finalizers = found["metadata"].get("finalizers", [])
        if HOLD in finalizers:
            change = {
                "metadata": {
                    "resourceVersion": found["metadata"]["resourceVersion"],
                    "finalizers": [each for each in finalizers if each != HOLD],
                }
            }
            await self._patch(item, "release", change)

    async def _patch(self, item: Item, verb: str, change: Manifest) -> Manifest | None:
        path = f"{self.collection}/{item.name}"
        return await self._ask(verb, "PATCH", path, change, MERGE_PATCH)

    async def _ask(
        self,
        verb: str,
        method: str,
        path: str,
        body: Manifest | None = None,
        kind: str = "application/json",
    ) -> Manifest | None:
        """Return the answer; None if it got lost, or if the server refused it."""
        status, answer = await self._asked(method, path, body, kind)
        self.judge.trace.append(f"{time.time():.3f} USER {verb} {path} {body} {status}")
        if status not in (200, 201, 202):
            self.changes["lost"] += 1
            return None
        self.changes[verb] += 1
        if answer.get("kind") == "FnopExample":
            self.judge.saw(answer)
        return dict(answer)

    async def _asked(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        try:
            async with asyncio.timeout(20):
                return await self.upstream.ask(method, path, body, kind)
        except (aiohttp.ClientError, TimeoutError):
            return 0, None

    async def listed(self, path: str) -> list[Manifest] | None:
        status, found = await self._asked("GET", path)
        return list(found["items"]) if status == 200 else None

    async def look(self) -> None:
        """Take over what has become of objects whose changes got lost."""
        found = await self.listed(self.collection)
        if found is None:
            return
        for name in self.items.keys() - {each["metadata"]["name"] for each in found}:
            del self.items[name]
        for body in found:
            metadata, spec = body["metadata"], body["spec"]
            self.judge.saw(body)
            name, held = metadata["name"], HOLD in metadata.get("finalizers", ())
            values = [(spec["value"], spec["other"])]
            item = Item(name, metadata["uid"], values, held=held)
            if "deletionTimestamp" in metadata:
                self.items.pop(name, None)
                item.release_at = time.monotonic() + 5
                self.deleted.setdefault(name, item)
            elif name not in self.items:
                self.items[name] = item


async def unmet(
    user: User, processes: Sequence[Process], *, collected: bool
) -> list[str]:
    """The deviations after everything is over; nothing, in the end.

    `collected` means that there is a garbage collector.
    """
    await user.release(all_of_them=True)
    objects = await user.listed(user.collection)
    path = f"/api/v1/namespaces/{user.namespace}/configmaps"
    maps = await user.listed(path)
    if objects is None or maps is None:
        return ["the API server does not answer"]
    children = Counter(
        (owner["uid"], "follower" if name.endswith("-follower") else "made")
        for name, owner in _owned(maps)
    )
    found = []
    for body in objects:
        name, uid = body["metadata"]["name"], body["metadata"]["uid"]
        if "deletionTimestamp" in body["metadata"]:
            found.append(f"{name} is not gone: {body['metadata'].get('finalizers')}")
            continue
        found += [f"{name} {uid}: {each}" for each in _unhandled(body)]
        if children[uid, "made"] != 1 or children[uid, "follower"] > 1:
            found.append(f"{name} has the children {children[uid, 'made']}")
        if not any(user.judge.daemons[each.pid, uid] for each in processes):
            found.append(f"{name} {uid} is not followed")
    live = {body["metadata"]["uid"] for body in objects}
    found += [
        f"{user.judge.names[uid]} {uid} is gone, and its end was not handled"
        for uid in user.judge.held - user.judge.ended - live
    ]
    # An operator that has lost the lease ends its daemons, and makes no further calls.
    alone = len(processes) == 1
    found += [f"{name} is nobody's" for name, owner in _owned(maps) if not owner]
    found += [
        f"a daemon follows {user.judge.names.get(uid, uid)}, which is gone"
        for (pid, uid), count in user.judge.daemons.items()
        if alone and pid == processes[0].pid and count > 0 and uid not in live
    ]
    if collected:
        found += [
            f"{name} has outlived its owner"
            for name, owner in _owned(maps)
            if owner and owner["uid"] not in live
        ]
    return found


def _owned(maps: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """The children with their owner, or with an empty one."""
    for each in maps:
        metadata = each["metadata"]
        if metadata["name"] != "kube-root-ca.crt":
            owners = metadata.get("ownerReferences") or [{}]
            yield metadata["name"], owners[0]


def _unhandled(body: Manifest) -> Iterator[str]:
    spec, status = body["spec"], body.get("status") or {}
    done = [status[name] for name in ("made", "changed") if name in status]
    last = max(done, key=view_of, default=None)
    if last is None or last["value"] != spec["value"]:
        yield f"value {spec['value']} is not handled, but {done}"
    fielded = status.get("fielded/spec.other")
    if fielded is None or fielded["other"] != spec["other"]:
        yield f"other {spec['other']} is not handled, but {fielded}"
    stored = json.loads(status.get(MARKER) or "{}")
    under_way = {
        name: each
        for name, each in stored.get("progress", {}).items()
        if each.get("finished") is None and each.get("aim")
    }
    if stored.get("creating") or under_way:
        yield f"it is still under way: {stored}"
    for each in status.get("conditions", ()):
        if each["type"] == MARKER and each["status"] != "True":
            yield f"it says {each['reason']}: {each['message']}"
