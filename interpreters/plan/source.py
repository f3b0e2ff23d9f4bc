"""The cluster that a plan is for: it can be read, and nothing else.

A `Need` of a rehearsal is a collection, or one object. It is read once, however often
the rehearsal requests it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, Selectors, path_of
from fnop.interpreters.runtime.answers import is_object, with_kind
from fnop.interpreters.runtime.protocol import JSON, ApiRequest, ApiResponse, Asked
from fnop.interpreters.runtime.reading import Expired, Reader, ReadProblem

__all__ = ["Cluster", "GetOnly", "Known", "Need"]

CONCURRENCY = 16
# A listing that takes longer than the server remembers starts again this often.
_LISTINGS_MAX = 10
# From this number of objects of one kind and namespace on, one listing is cheaper than
# a request for each.
_MANY = 5


class GetOnly:
    """An API that can only be read: it has no method that could write.

    `reads` counts the requests.
    """

    def __init__(self, api: Asked) -> None:
        self.__api = api
        self.reads = 0

    async def get(
        self,
        path: str,
        query: tuple[tuple[str, str], ...] = (),
        *,
        accept: str = JSON,
        seconds: float | None = None,
    ) -> ApiResponse:
        """Answer a GET. Raises `Unreachable` when no answer came."""
        self.reads += 1
        request = ApiRequest("GET", path, query, accept=accept, seconds=seconds)
        return await self.__api.send(request)

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Answer a request that reads. Raises `TypeError` for any other request."""
        if request.method != "GET" or request.body is not None:
            raise TypeError(f"a plan sends no {request.method}")
        return await self.get(
            request.path,
            request.query,
            accept=request.accept,
            seconds=request.seconds,
        )


class Need(Struct, frozen=True):
    """A collection that has to be known, or with a `name` an object.

    `namespace` is "" for objects without one, None for all namespaces.
    """

    resource: Resource
    namespace: str | None
    name: str = ""
    selectors: Selectors = Selectors()

    @property
    def path(self) -> str:
        """The path at which it is read."""
        return path_of(self.resource, self.namespace or None, self.name or None)

    @property
    def collection(self) -> Need:
        """All objects of its kind and namespace."""
        return Need(self.resource, self.namespace)


class Known(Struct, frozen=True):
    """The answer to a need: the objects, or the refusal to show them."""

    need: Need
    objects: tuple[dict[str, Any], ...] = ()
    version: str = ""
    refusal: ApiResponse | None = None

    def object(self, namespace: str | None, name: str) -> dict[str, Any] | None:
        """One of the objects."""
        for each in self.objects:
            metadata = each["metadata"]
            place = metadata.get("namespace", "")
            if (place, metadata["name"]) == (namespace or "", name):
                return each
        return None


class Cluster:
    """A real cluster as a plan sees it.

    Methods raise `ReadProblem` if the server's answer does not come from a Kubernetes
    API, and `Unreachable` if it does not answer.
    """

    def __init__(
        self,
        api: Asked,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self.api = GetOnly(api)
        self._reader = Reader(self.api, pause=pause, jitter=jitter)
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._known: dict[Need, Known] = {}

    @property
    def reads(self) -> int:
        """The number of requests so far."""
        return self.api.reads

    async def catalogue(self) -> tuple[Catalogue, str | None]:
        """The kinds that are served, and the reason if some could not be read."""
        return await self._reader.catalogue()

    async def read(self, needs: Iterable[Need]) -> list[Known]:
        """Read all that is needed; many objects of one kind as a collection."""
        needs = list(dict.fromkeys(needs))
        missing = [each for each in needs if self._answer(each) is None]
        await self._note(self._large_collections(missing))
        left = [each for each in missing if self._answer(each) is None]
        await self._note(left)
        answers = (self._answer(each) for each in needs)
        return list({id(each): each for each in answers if each is not None}.values())

    def _answer(self, need: Need) -> Known | None:
        """The answer to a need that was read by itself, or with its collection."""
        known = self._known.get(need)
        whole = self._known.get(need.collection)
        if known is None and whole is not None and whole.refusal is None:
            return whole
        return known

    def _large_collections(self, needs: Iterable[Need]) -> list[Need]:
        """The unknown collections with many needed objects."""
        named = Counter(each.collection for each in needs if each.name)
        return [
            each
            for each, count in named.items()
            if count >= _MANY and each not in self._known
        ]

    async def _note(self, needs: Iterable[Need]) -> None:
        for known in await asyncio.gather(*map(self._read, needs)):
            self._known[known.need] = known

    async def again(self, needs: Iterable[Need]) -> dict[Need, dict[str, Any] | None]:
        """The objects as they are by now, None for those that no longer exist.

        Objects that cannot be read are skipped.
        """
        before, self._known = self._known, {}
        try:
            return await self.objects(needs)
        finally:
            self._known = before

    async def objects(self, needs: Iterable[Need]) -> dict[Need, dict[str, Any] | None]:
        """The objects, None for missing ones, without those that cannot be read."""
        wanted = list(needs)
        await self.read(wanted)
        answers = {each: self._answer(each) for each in wanted}
        return {
            need: known.object(need.namespace, need.name)
            for need, known in answers.items()
            if known is not None and known.refusal is None
        }

    async def _read(self, need: Need) -> Known:
        async with self._slots:
            return await (
                self._read_object(need) if need.name else self._list_collection(need)
            )

    async def _read_object(self, need: Need) -> Known:
        response = await self._reader.ask(ApiRequest("GET", need.path))
        if response.status == 404:
            return Known(need)
        if response.status >= 300:
            return Known(need, refusal=response)
        if not is_object(response.body):
            raise ReadProblem(f"{need.path} is answered with no object")
        return Known(need, (response.body,))

    async def _list_collection(self, need: Need) -> Known:
        for _ in range(_LISTINGS_MAX):
            with suppress(Expired):
                return await self._read_pages(need)
        label = need.resource.label
        raise ReadProblem(f"{label} cannot be listed: it takes longer than is kept")

    async def _read_pages(self, need: Need) -> Known:
        """The whole collection; raises `Expired` if it has to begin again."""
        resource, selectors = need.resource, need.selectors
        chosen = (
            ("labelSelector", selectors.labels),
            ("fieldSelector", selectors.fields),
        )
        selected = tuple(each for each in chosen if each[1])
        objects: list[dict[str, Any]] = []
        token: str | None = ""
        version = ""
        while token is not None:
            page = await self._reader.page(
                resource, need.namespace or None, token, selected=selected
            )
            if isinstance(page, ApiResponse):
                # The plan may define a kind that the server does not serve yet.
                is_new = page.status == 404
                return Known(need) if is_new else Known(need, refusal=page)
            objects += with_kind(page.items, resource.api_version, resource.kind)
            token, version = page.continue_token, page.version
        return Known(need, tuple(objects), version)
