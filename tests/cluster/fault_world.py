"""An operator under faults, the user, and the conditions that must hold in the end."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fnop
from fnop.adapters.common.loading import resolve
from fnop.adapters.kubernetes.client import connect
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.operator.step import is_settled
from fnop.core.seam.commands import Say
from fnop.interpreters.runtime.run import Runner
from tests.cluster.fault_proxy import Upstream
from tests.patience import patience, soon
from tests.simulations import DEFINITION, example

__all__ = ["REQUEST_SECONDS", "SILENCE_SECONDS", "Operated", "User", "operated"]

KIND = "fnopexamples"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE_PATCH = "application/merge-patch+json"
# Everything above that the operator would wait for, in less time than usual.
SILENCE_SECONDS, REQUEST_SECONDS = patience(0.5), patience(0.3)
# Several pages for a handful of objects.
PAGE = 2
# Checks are expensive if a dozen operators share a server.
POLL_SECONDS = 0.4

Manifest = dict[str, Any]


# ----------------------------------------------------------- the world outside

THINGS: dict[str, int] = {}
CALLS: Counter[tuple[str, str]] = Counter()


async def ensure(token: str) -> str:
    """Make the thing of this token, unless it is there."""
    CALLS["ensure", token] += 1
    THINGS.setdefault(token, 1)
    return f"thing-{token}"


async def release(token: str) -> None:
    CALLS["release", token] += 1
    THINGS.pop(token, None)


# ------------------------------------------------------------------- the operator


def handlers() -> Registry:
    """A conversation with a call and a child, a plain result, and a deletion."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="made")
    async def made(spec: Any, uid: str, logger: Any, **_: Any) -> Manifest:
        thing = await fnop.call(ensure, token=uid)
        data = {"value": str(spec["value"])}
        await fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
        logger.info(f"handled {spec['value']}")
        return {"value": spec["value"], "thing": thing}

    @fnop.on.update(KIND, registry=registry, id="changed")
    def changed(spec: Any, logger: Any, **_: Any) -> Manifest:
        logger.info(f"handled {spec['value']}")
        return {"value": spec["value"]}

    @fnop.on.delete(KIND, registry=registry, id="ended")
    async def ended(uid: str, logger: Any, **_: Any) -> None:
        await fnop.call(release, token=uid)
        logger.info("handled the end")

    @fnop.on.cluster.reached(after=0, registry=registry)
    def reached(**_: Any) -> None: ...

    return registry


class Operated:
    """A running operator and what it has said."""

    def __init__(self, runner: Runner, said: list[Say]) -> None:
        self.runner = runner
        self.said = said

    @property
    def store(self) -> dict[str, Manifest]:
        """The objects that it knows, by name."""
        return {
            key.name: known.body.data
            for key, known in self.runner.state.objects.records.items()
            if key.name and not known.gone
        }

    @property
    def is_settled(self) -> bool:
        return is_settled(self.runner.state)

    @property
    def lines(self) -> list[str]:
        return [
            f"{say.level} {say.subject.label if say.subject else '-'}: {say.message}"
            for say in self.said
        ]

    def handled(self, uid: str) -> list[tuple[str, str]]:
        """The handlers that came to their end for an object, with what they saw."""
        return [
            (say.handler or "", say.message.removeprefix("handled "))
            for say in self.said
            if say.message.startswith("handled ")
            and say.subject is not None
            and say.subject.uid == uid
        ]


@asynccontextmanager
async def operated(
    kubeconfig: Path,
    namespace: str,
    request_seconds: float = REQUEST_SECONDS,
    **changes: Any,
) -> AsyncIterator[Operated]:
    """An operator that runs for as long as the block, and is then stopped."""
    settings = Settings(
        namespaces=(namespace,),
        list_page_limit=PAGE,
        watch_silence_seconds=SILENCE_SECONDS,
    ).replace(**changes)
    said: list[Say] = []
    api = await connect(
        kubeconfig=str(kubeconfig),
        context=None,
        concurrency=settings.request_concurrency,
        request_seconds=request_seconds,
        requests_per_second=settings.requests_per_second,
    )
    runner = Runner(
        Program(handlers().handlers, settings),
        api,
        seed="0",
        resolve=resolve,
        random=os.urandom,
        on_say=said.append,
    )
    task = asyncio.create_task(runner.run())
    try:
        yield Operated(runner, said)
    finally:
        runner.stop("the test is over")
        async with asyncio.timeout(patience(20)):
            await task
        await api.close()


# ----------------------------------------------------------------------- the user


class User:
    """A user who makes changes past every fault, and remembers them."""

    def __init__(self, upstream: Upstream, namespace: str) -> None:
        self.upstream = upstream
        self.namespace = namespace
        self.ended: list[str] = []
        """The uids of what was deleted, and had a finalizer."""

    @property
    def collection(self) -> str:
        return f"/apis/fnop.dev/v1/namespaces/{self.namespace}/{KIND}"

    async def define(self) -> None:
        """A namespace, and the kind, which is served in a moment."""
        body = {"apiVersion": "v1", "kind": "Namespace"}
        metadata = {"metadata": {"name": self.namespace}}
        await self._ask("POST", "/api/v1/namespaces", {**body, **metadata})
        status, answer = await self.upstream.ask("POST", DEFINITIONS, DEFINITION)
        assert status in (201, 409), answer

        async def is_served() -> bool:
            return (await self.upstream.ask("GET", self.collection))[0] == 200

        await soon(is_served, every=0.1)

    async def create(self, name: str, value: int) -> None:
        manifest = example(name, value=value)
        manifest["metadata"]["namespace"] = self.namespace
        await self._ask("POST", self.collection, manifest)

    async def edit(self, name: str, value: int) -> None:
        await self._ask("PATCH", self._path(name), {"spec": {"value": value}})

    async def delete(self, name: str) -> None:
        """Delete it, and leave its end to the operator, if that knows it already."""
        metadata = (await self._ask("GET", self._path(name)))["metadata"]
        if metadata.get("finalizers"):
            self.ended.append(metadata["uid"])
        await self._ask("DELETE", self._path(name))

    async def remove(self, name: str) -> None:
        """Take it away at once, whatever its finalizers say."""
        await self._ask("DELETE", self._path(name))
        # It may have gone by itself in between.
        body = {"metadata": {"finalizers": None}}
        path = self._path(name)
        status, answer = await self.upstream.ask("PATCH", path, body, MERGE_PATCH)
        assert status in (200, 404), answer

    async def objects(self) -> dict[str, Manifest]:
        found = await self._ask("GET", self.collection)
        return {each["metadata"]["name"]: each for each in found["items"]}

    async def children(self) -> Counter[str]:
        """The number of children, by their owner's uid."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        found = await self._ask("GET", path)
        return Counter(
            owner["uid"]
            for each in found["items"]
            for owner in each["metadata"].get("ownerReferences", ())
        )

    def _path(self, name: str) -> str:
        return f"{self.collection}/{name}"

    async def _ask(self, method: str, path: str, body: Manifest | None = None) -> Any:
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        status, answer = await self.upstream.ask(method, path, body, kind)
        assert status in (200, 201, 202), answer
        return answer


# ------------------------------------------------------------- what has to hold


async def unmet(user: User, operator: Operated) -> list[str]:
    """The deviations after everything is over; nothing, in the end."""
    live, store = await user.objects(), operator.store
    children = await user.children()
    found = [f"{name} is known, and gone" for name in store.keys() - live.keys()]
    if not operator.is_settled:
        found.append("something is under way")
    for name, each in live.items():
        uid = each["metadata"]["uid"]
        if store.get(name) != each:
            found.append(f"{name} is not as the operator knows it")
        found += [f"{name}: {problem}" for problem in _unhandled(each, operator)]
        if children[uid] != 1:
            found.append(f"{name} has {children[uid]} children")
        if THINGS.get(uid) != 1:
            found.append(f"{name} has no thing outside")
    for uid in user.ended:
        if [each for each in operator.handled(uid) if each[0] == "ended"] == []:
            found.append(f"the end of {uid} is not handled")
    return found


def _unhandled(each: Manifest, operator: Operated) -> Iterator[str]:
    value = str(each["spec"]["value"])
    uid, status = each["metadata"]["uid"], each.get("status") or {}
    handled = operator.handled(uid)
    if not handled or handled[-1][1] != value:
        yield f"{value} is not handled, but {handled}"
        return
    result = status.get(handled[-1][0]) or {}
    if str(result.get("value")) != value:
        yield f"{handled[-1]} is not written, but {status}"


def repeated(user: User, operator: Operated) -> list[str]:
    """The repeated actions that had already been done: nothing, at any time."""
    uids = {say.subject.uid for say in operator.said if say.subject is not None}
    found = []
    for uid in filter(None, uids):
        handled = operator.handled(uid)
        twice = [each for each, count in Counter(handled).items() if count > 1]
        made = [each for each in handled if each[0] == "made"]
        if twice or len(made) > 1:
            found.append(f"{uid} was handled as {handled}")
        for call in ("ensure", "release"):
            if CALLS[call, uid] > 1:
                found.append(f"{call} was called {CALLS[call, uid]} times for {uid}")
    return found


async def until_met(
    user: User, operator: Operated, context: Sequence[str] = ()
) -> None:
    """Wait until nothing is unmet."""
    problems: list[str] = []

    async def is_met() -> bool:
        problems[:] = await unmet(user, operator)
        return not problems

    def told() -> str:
        return "\n".join([*problems, *context, *operator.lines[-40:]])

    await soon(is_met, otherwise=told, every=POLL_SECONDS)
