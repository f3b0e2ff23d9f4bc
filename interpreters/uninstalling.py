"""Taking an operator's marks off all objects of a cluster.

Collections are read page by page, and worked on page by page: what is remembered does
not grow with the cluster.  Each step may be repeated, so whoever is interrupted begins
again and finds less to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from returns.result import Failure, Success

from fnop.core.api import discovery as discovering
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.discovery import Discovery
from fnop.core.api.namespaces import has_patterns, served_namespaces
from fnop.core.api.resources import Resource, path_of
from fnop.core.handlers.settings import Settings
from fnop.core.operator.uninstalling import (
    Tally,
    alive_peers,
    lease_holder,
    marks_of,
    next_removal,
    tallied,
)
from fnop.core.peers.lease import LEASES
from fnop.core.peers.peering import kinds_for
from fnop.core.values.backoff import backoff_seconds, heeding
from fnop.core.values.body import Body
from fnop.core.values.evolve import replace
from fnop.interpreters.answers import (
    ListedPage,
    is_object,
    listed_page,
    message_of,
    outcome_of,
)
from fnop.interpreters.protocol import (
    MERGE_PATCH,
    Api,
    ApiRequest,
    ApiResponse,
    Unreachable,
)

__all__ = ["UninstallProblem", "Uninstaller"]

PAGE_LIMIT = 500
CONCURRENCY = 16
# Requests that fail for now: half a minute altogether.
_TRIES_MAX = 8
# An aggregated API that is down must not hold everything up.
_DISCOVERY_TRIES_MAX = 3
# An object that somebody else writes, too, is decided anew this often.
_ROUNDS_MAX = 20
_LISTINGS_MAX = 10

_TRY_AGAIN = frozenset((408, 429))


class UninstallProblem(Exception):
    """Something cannot be looked at; the text says what and why."""


class _Expired(Exception):
    """The listing took longer than the server remembers: it begins again."""


class Uninstaller:
    """An operator's marks in a cluster: counted, and taken off.

    `settings` are the operator's.  `pause` waits so many seconds, `jitter` is a number
    from 0 to 1.  Methods raise `UninstallProblem`, and `Unreachable` when the server
    stays away.
    """

    def __init__(
        self,
        api: Api,
        settings: Settings,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self._api = api
        self._settings = settings
        self._pause = pause
        self._jitter = jitter
        self._slots = asyncio.Semaphore(CONCURRENCY)

    # ---------------------------------------------------------- what there is

    async def catalogue(self) -> tuple[Catalogue, str | None]:
        """The kinds that are served, and why some could not be read."""
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
                *(self._ask(each, _DISCOVERY_TRIES_MAX) for each in requests)
            )
            for key, response in zip(asked, answers, strict=True):
                outcome = outcome_of(None, response)
                found, more = discovering.answered(found, key, outcome)
                pages += more
        if found.problem is not None and not found.resources:
            raise UninstallProblem(
                f"the API server refuses this operator: {found.problem}"
            )
        return found.catalogue, found.problem

    async def namespaces(self, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The namespaces that are meant; None: all."""
        if given is None or not has_patterns(given):
            return given
        resource = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
        present = [
            body.name async for page in self._pages(resource, None) for body in page
        ]
        return served_namespaces(given, present)

    async def running(
        self,
        catalogue: Catalogue,
        namespaces: tuple[str, ...] | None,
        *,
        lease: str,
        peering: str,
        wall: float,
    ) -> list[str]:
        """Signs of operators that still run, one sentence each (`wall`: Unix time).

        What cannot be looked at tells nothing.
        """
        signs = []
        for body in await self._leases(catalogue, namespaces, lease):
            if holder := lease_holder(body, wall):
                signs.append(f"{holder} holds the lease {lease} in {body.namespace}")
        for body in await self._peerings(catalogue, namespaces, peering):
            if alive := alive_peers(body, wall):
                names = ", ".join(each.identity for each in alive)
                where = f" in {body.namespace}" if body.namespace else ""
                signs.append(f"alive in the peering object {peering}{where}: {names}")
        return signs

    async def _leases(
        self,
        catalogue: Catalogue,
        namespaces: tuple[str, ...] | None,
        name: str,
    ) -> list[Body]:
        """The operator's leases: in the whole cluster, or where one may look."""
        resource = _of_key(catalogue, LEASES)
        if resource is None:
            return []
        selected = (("fieldSelector", f"metadata.name={name}"),)
        for places in ((None,), namespaces or ()):
            found: list[Body] = []
            refused = False
            for place in places:
                request = ApiRequest("GET", path_of(resource, place), selected)
                response = await self._ask(request)
                refused = refused or response.status >= 300
                if response.status < 300:
                    found += map(Body, _page(resource, response).items)
            if found or not refused:
                return found
        return []

    async def _peerings(
        self,
        catalogue: Catalogue,
        namespaces: tuple[str, ...] | None,
        name: str,
    ) -> list[Body]:
        found = []
        for key in kinds_for(namespaces):
            resource = _of_key(catalogue, key)
            for place in (namespaces or (None,)) if resource is not None else ():
                assert resource is not None
                request = ApiRequest("GET", path_of(resource, place, name))
                response = await self._ask(request)
                if response.status < 300 and is_object(response.body):
                    found.append(Body(response.body))
        return found

    # -------------------------------------------------------------- the marks

    async def count(
        self, resource: Resource, namespaces: tuple[str, ...] | None
    ) -> Tally:
        """Count the objects of a kind that carry marks, and name some."""
        for _ in range(_LISTINGS_MAX):
            try:
                return await self._count(resource, namespaces)
            except _Expired:
                continue
        raise _never_listed(resource)

    async def _count(
        self, resource: Resource, namespaces: tuple[str, ...] | None
    ) -> Tally:
        tally = Tally()
        for place in _places(resource, namespaces):
            async for page in self._pages(resource, place):
                for body in page:
                    tally = tallied(tally, marks_of(body, self._settings))
        return tally

    async def strip(
        self,
        resource: Resource,
        namespaces: tuple[str, ...] | None,
        progress: Callable[[int], None] = lambda done: None,
    ) -> tuple[int, dict[str, str]]:
        """Take the marks off all objects of a kind.

        Answers how many objects are without them now, and why others are not, by name.
        `progress` is told the first after each page.
        """
        done: set[str] = set()
        failed: dict[str, str] = {}
        for _ in range(_LISTINGS_MAX):
            try:
                for place in _places(resource, namespaces):
                    async for page in self._pages(resource, place):
                        await self._strip_page(resource, page, done, failed)
                        progress(len(done))
                return len(done), failed
            except _Expired:
                continue
        raise _never_listed(resource)

    async def _strip_page(
        self,
        resource: Resource,
        page: Iterable[Body],
        done: set[str],
        failed: dict[str, str],
    ) -> None:
        async def strip(body: Body) -> None:
            async with self._slots:
                problem = await self._strip(resource, body)
            if problem is None:
                done.add(body.uid)
            else:
                failed[_title(body)] = problem

        try:
            async with asyncio.TaskGroup() as group:
                for body in page:
                    marks = marks_of(body, self._settings)
                    if marks.any and _title(body) not in failed:
                        group.create_task(strip(body))
        except BaseExceptionGroup as problems:
            # The others were cancelled: what one of them meets, all of them meet.
            raise problems.exceptions[0] from None

    async def _strip(self, resource: Resource, body: Body) -> str | None:
        """Take the marks off one object; why that is not possible, or None."""
        namespace, name = body.namespace, body.name
        refused: dict[str, str] = {}
        for _ in range(_ROUNDS_MAX):
            due = next_removal(body, resource, self._settings, without=refused)
            if due is None:
                return "; ".join(refused.values()) or None
            endpoint, patch = due
            path = path_of(resource, namespace, name, endpoint)
            manager = (("fieldManager", self._settings.marker),)
            request = ApiRequest("PATCH", path, manager, patch, MERGE_PATCH)
            response = await self._ask(request)
            if response.status == 409:
                read = ApiRequest("GET", path_of(resource, namespace, name))
                response = await self._ask(read)
            if response.status == 404:
                return None  # it is gone, and its marks with it
            if response.status < 300 and is_object(response.body):
                body = Body(response.body)
            else:
                refused[endpoint] = message_of(response)
        return "somebody else writes it again and again; is the operator running?"

    # --------------------------------------------------------------- requests

    async def _pages(
        self, resource: Resource, namespace: str | None
    ) -> AsyncIterator[tuple[Body, ...]]:
        token: str | None = None
        while True:
            query = [("limit", str(PAGE_LIMIT))]
            query += [("continue", token)] if token else []
            path = path_of(resource, namespace)
            response = await self._ask(ApiRequest("GET", path, tuple(query)))
            if response.status == 410 and token:
                raise _Expired
            if response.status >= 300:
                message = message_of(response)
                raise UninstallProblem(f"{resource.label} cannot be listed: {message}")
            page = _page(resource, response)
            yield tuple(map(Body, page.items))
            token = page.continue_token
            if token is None:
                return

    async def _ask(
        self, request: ApiRequest, tries_max: int = _TRIES_MAX
    ) -> ApiResponse:
        """The answer; a server in trouble is asked again, after a while.

        A write that may have arrived is sent again as well: it is bound to a version.
        """
        for tries in range(1, tries_max):
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
            raise UninstallProblem(f"{resource.label} cannot be listed: {problem}")


def _of_key(catalogue: Catalogue, key: str) -> Resource | None:
    return next((each for each in catalogue.resources if each.key == key), None)


def _places(
    resource: Resource, namespaces: tuple[str, ...] | None
) -> tuple[str | None, ...]:
    """The paths of a kind's listings: the whole cluster's, or some namespaces'."""
    if namespaces is None or not resource.namespaced:
        return (None,)
    return namespaces


def _title(body: Body) -> str:
    return f"{body.namespace}/{body.name}" if body.namespace else body.name


def _never_listed(resource: Resource) -> UninstallProblem:
    return UninstallProblem(
        f"{resource.label} cannot be listed: each listing expired before its end"
    )
