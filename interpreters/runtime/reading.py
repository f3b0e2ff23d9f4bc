"""Read a cluster for a person: kinds, collections, and signs of operators.

Requests that fail temporarily are sent again, after a while. Collections are read page
by page, so that memory does not grow with the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from returns.result import Failure, Success

from fnop.core.api import discovery as discovering
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.discovery import Discovery
from fnop.core.api.resources import Resource, path_of
from fnop.core.peers.lease import LEASES
from fnop.core.peers.peering import kinds_for
from fnop.core.values.backoff import backoff_seconds, heeding
from fnop.core.values.body import Body
from fnop.effects.structs import replace
from fnop.interpreters.runtime.answers import (
    ListedPage,
    is_object,
    listed_page,
    message_of,
    outcome_of,
)
from fnop.interpreters.runtime.protocol import (
    JSON,
    ApiRequest,
    ApiResponse,
    Asked,
    Unreachable,
)

__all__ = ["PAGE_LIMIT", "Expired", "ReadProblem", "Reader"]

PAGE_LIMIT = 500
# Attempts at a request that fails temporarily: half a minute altogether.
_TRIES_MAX = 8
# An aggregated API that is down must not delay everything.
_DISCOVERY_TRIES_MAX = 3

_TRY_AGAIN = frozenset((408, 429))


class ReadProblem(Exception):
    """Something cannot be read; the text says what and why."""


class Expired(Exception):
    """The listing took longer than the server remembers: it begins again."""


class Reader:
    """Reads from an API server.

    `pause` waits the given number of seconds, `jitter` is a number from 0 to 1. A
    request is sent at most `tries_max` times. Methods raise `ReadProblem`, and
    `Unreachable` when the server does not answer.
    """

    def __init__(
        self,
        api: Asked,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = lambda: 0.5,
        tries_max: int = _TRIES_MAX,
    ) -> None:
        self._api = api
        self._pause = pause
        self._jitter = jitter
        self._tries_max = tries_max

    async def catalogue(self) -> tuple[Catalogue, str | None]:
        """The kinds that are served, and the reason why some could not be read."""
        number, pages = 0, [discovering.Document(path) for path in discovering.ROOTS]
        found: Discovery = discovering.begun({})
        patience = discovering.patience_seconds(0)
        while pages:
            asked = dict(enumerate(pages, number))
            number, pages = number + len(asked), []
            found = replace(found, pending=found.pending.update(asked))
            requests = [
                ApiRequest("GET", page.path, accept=page.accept, seconds=patience)
                for page in asked.values()
            ]
            answers = await asyncio.gather(
                *(self.ask(each, _DISCOVERY_TRIES_MAX) for each in requests)
            )
            for key, response in zip(asked, answers, strict=True):
                outcome = outcome_of(None, response)
                found, more = discovering.answered(found, key, outcome)
                pages += more
        if found.problem is not None and not found.resources:
            raise ReadProblem(f"the API server refuses this operator: {found.problem}")
        return found.catalogue, found.problem

    async def pages(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        selected: tuple[tuple[str, str], ...] = (),
        accept: str = JSON,
    ) -> AsyncIterator[tuple[Body, ...]]:
        """The objects of a collection; raises `Expired` if it must begin again.

        `selected` are parameters such as a label selector.
        """
        token: str | None = ""
        while token is not None:
            page = await self.page(
                resource, namespace, token, selected=selected, accept=accept
            )
            if isinstance(page, ApiResponse):
                message = message_of(page)
                raise ReadProblem(f"{resource.label} cannot be listed: {message}")
            yield tuple(map(Body, page.items))
            token = page.continue_token

    async def page(
        self,
        resource: Resource,
        namespace: str | None,
        token: str,
        *,
        selected: tuple[tuple[str, str], ...] = (),
        accept: str = JSON,
    ) -> ListedPage | ApiResponse:
        """One page of a collection, or the refusal to show it; "" begins it.

        Raises `Expired` if the collection has to begin again.
        """
        more = (("continue", token),) if token else ()
        query = (("limit", str(PAGE_LIMIT)), *selected, *more)
        path = path_of(resource, namespace)
        response = await self.ask(ApiRequest("GET", path, query, accept=accept))
        if response.status == 410 and token:
            raise Expired
        return response if response.status >= 300 else _page(resource, response)

    async def leases(
        self,
        catalogue: Catalogue,
        namespaces: tuple[str, ...] | None,
        name: str,
    ) -> tuple[list[Body], str]:
        """The leases of a name: in the whole cluster, or in the readable namespaces.

        Also the reason why some could not be read, or "".
        """
        resource = _resource_with_key(catalogue, LEASES)
        if resource is None:
            return [], ""
        selected = (("fieldSelector", f"metadata.name={name}"),)
        problem = ""
        for places in ((None,), namespaces or ()):
            found: list[Body] = []
            refused = ""
            for place in places:
                request = ApiRequest("GET", path_of(resource, place), selected)
                response = await self.ask(request)
                if response.status < 300:
                    found += map(Body, _page(resource, response).items)
                else:
                    refused = message_of(response)
            if found or not refused:
                return found, refused
            problem = refused
        return [], problem

    async def peerings(
        self,
        catalogue: Catalogue,
        namespaces: tuple[str, ...] | None,
        name: str,
    ) -> tuple[list[Body], str]:
        """The peering objects of a name: of the cluster, or of these namespaces.

        Also the reason why some could not be read, or "".
        """
        found = []
        problem = ""
        for key in kinds_for(namespaces):
            resource = _resource_with_key(catalogue, key)
            for place in (namespaces or (None,)) if resource is not None else ():
                assert resource is not None
                request = ApiRequest("GET", path_of(resource, place, name))
                response = await self.ask(request)
                if response.status < 300 and is_object(response.body):
                    found.append(Body(response.body))
                elif response.status != 404:
                    problem = message_of(response)
        return found, problem

    async def ask(
        self, request: ApiRequest, tries_max: int | None = None
    ) -> ApiResponse:
        """Return the answer; a server in trouble is asked again, after a while.

        A write that may have arrived is also sent again: bind it to a version.
        """
        for tries in range(1, tries_max or self._tries_max):
            advice: float | None = None
            try:
                response = await self._api.send(request)
            except Unreachable:
                pass
            else:
                if response.status < 500 and response.status not in _TRY_AGAIN:
                    return response
                advice = response.retry_after_seconds
            wait = backoff_seconds(tries, self._jitter())
            await self._pause(heeding(advice, wait))
        return await self._api.send(request)


def _page(resource: Resource, response: ApiResponse) -> ListedPage:
    match listed_page(response.body):
        case Success(page):
            return page
        case Failure(problem):
            raise ReadProblem(f"{resource.label} cannot be listed: {problem}")


def _resource_with_key(catalogue: Catalogue, key: str) -> Resource | None:
    return next((each for each in catalogue.resources if each.key == key), None)
