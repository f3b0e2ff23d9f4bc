"""Remove an operator's marks from all objects of a cluster.

Collections are read and processed page by page, so that memory does not grow with the
cluster. Each step may be repeated: after an interruption, a user starts again and finds
less to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from fnop.core.admission.configurations import CONFIGURATIONS
from fnop.core.admission.keeping import is_kept_by
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.namespaces import has_patterns, served_namespaces
from fnop.core.api.resources import Resource, path_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.operator.uninstalling import (
    Tally,
    alive_peers,
    lease_holder,
    marks_of,
    next_removal,
    tallied,
)
from fnop.core.values.body import Body
from fnop.interpreters.runtime.answers import is_object, message_of
from fnop.interpreters.runtime.protocol import MERGE_PATCH, Api, ApiRequest
from fnop.interpreters.runtime.reading import Expired, Reader, ReadProblem

__all__ = ["Configuration", "Uninstaller"]

CONCURRENCY = 16
# If another client writes an object, too, its change is decided again this often.
_ROUNDS_MAX = 20
_LISTINGS_MAX = 10


class Configuration(NamedTuple):
    """A webhook configuration, and its kind."""

    resource: Resource
    body: Body

    @property
    def label(self) -> str:
        return f"{self.resource.kind} {self.body.name}"

    @property
    def webhooks(self) -> int:
        """The number of its webhooks."""
        found = self.body.data.get("webhooks")
        return len(found) if isinstance(found, list) else 0


class Uninstaller:
    """An operator's marks in a cluster: counts and removes them.

    `settings` are the operator's settings; `reader`, which has `pause` and `jitter`,
    sends all requests. Methods raise `ReadProblem`, and `Unreachable` when the server
    does not answer.
    """

    def __init__(
        self,
        api: Api,
        settings: Settings,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self.reader = Reader(api, pause=pause, jitter=jitter)
        self._settings = settings
        self._slots = asyncio.Semaphore(CONCURRENCY)

    # ---------------------------------------------------------- what there is

    async def namespaces(self, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The namespaces to process; None: all."""
        if given is None or not has_patterns(given):
            return given
        resource = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
        pages = self.reader.pages(resource, None)
        present = [body.name async for page in pages for body in page]
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

        Objects that cannot be read give no sign.
        """
        signs = []
        leases, _ = await self.reader.leases(catalogue, namespaces, lease)
        peerings, _ = await self.reader.peerings(catalogue, namespaces, peering)
        for body in leases:
            if holder := lease_holder(body, wall):
                signs.append(f"{holder} holds the lease {lease} in {body.namespace}")
        for body in peerings:
            if alive := alive_peers(body, wall):
                names = ", ".join(each.identity for each in alive)
                where = f" in {body.namespace}" if body.namespace else ""
                signs.append(f"alive in the peering object {peering}{where}: {names}")
        return signs

    # ------------------------------------------------ webhook configurations

    async def configurations(self, catalogue: Catalogue) -> list[Configuration]:
        """The webhook configurations that the operator has written, under any name."""
        served = {each.key for each in catalogue.resources}
        found: list[Configuration] = []
        for resource in CONFIGURATIONS.values():
            if resource.key in served:
                found += await self._kept_configurations(resource)
        return found

    async def _kept_configurations(self, resource: Resource) -> list[Configuration]:
        operator = self._settings.operator
        for _ in range(_LISTINGS_MAX):
            try:
                return [
                    Configuration(resource, body)
                    async for page in self.reader.pages(resource, None)
                    for body in page
                    if is_kept_by(operator, body.data)
                ]
            except Expired:
                continue
        raise _listing_problem(resource)

    async def unregister(self, configuration: Configuration) -> str | None:
        """Delete a webhook configuration; return the reason of a failure, or None.

        A configuration that was created again under the same name stays.
        """
        resource, body = configuration
        path = path_of(resource, None, body.name)
        same = {"preconditions": {"uid": body.uid}}
        response = await self.reader.ask(ApiRequest("DELETE", path, body=same))
        is_gone = response.status < 300 or response.status in (404, 409)
        return None if is_gone else message_of(response)

    # -------------------------------------------------------------- the marks

    async def count(
        self, resource: Resource, namespaces: tuple[str, ...] | None
    ) -> Tally:
        """Count the objects of a kind that carry marks, and name some."""
        for _ in range(_LISTINGS_MAX):
            try:
                return await self._count(resource, namespaces)
            except Expired:
                continue
        raise _listing_problem(resource)

    async def _count(
        self, resource: Resource, namespaces: tuple[str, ...] | None
    ) -> Tally:
        tally = Tally()
        for place in _listing_namespaces(resource, namespaces):
            async for page in self.reader.pages(resource, place):
                for body in page:
                    tally = tallied(tally, marks_of(body, self._settings))
        return tally

    async def strip(
        self,
        resource: Resource,
        namespaces: tuple[str, ...] | None,
        progress: Callable[[int], None] = lambda done: None,
    ) -> tuple[int, dict[str, str]]:
        """Remove the marks from all objects of a kind.

        Returns the number of objects that are now without them, and why others are not,
        by name. `progress` gets that number after each page.
        """
        done: set[str] = set()
        failed: dict[str, str] = {}
        for _ in range(_LISTINGS_MAX):
            try:
                for place in _listing_namespaces(resource, namespaces):
                    async for page in self.reader.pages(resource, place):
                        await self._strip_page(resource, page, done, failed)
                        progress(len(done))
                return len(done), failed
            except Expired:
                continue
        raise _listing_problem(resource)

    async def _strip_page(
        self,
        resource: Resource,
        page: Iterable[Body],
        done: set[str],
        failed: dict[str, str],
    ) -> None:
        async def strip(body: Body) -> None:
            async with self._slots:
                problem = await self._strip_object(resource, body)
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
            # The others were cancelled: they all meet the same problem.
            raise problems.exceptions[0] from None

    async def _strip_object(self, resource: Resource, body: Body) -> str | None:
        """Remove the marks from one object; return the reason of a failure, or None."""
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
            response = await self.reader.ask(request)
            if response.status == 409:
                read = ApiRequest("GET", path_of(resource, namespace, name))
                response = await self.reader.ask(read)
            if response.status == 404:
                return None  # the object is gone, and its marks with it
            if response.status < 300 and is_object(response.body):
                body = Body(response.body)
            else:
                refused[endpoint] = message_of(response)
        return "somebody else writes it again and again; is the operator running?"


def _listing_namespaces(
    resource: Resource, namespaces: tuple[str, ...] | None
) -> tuple[str | None, ...]:
    """The paths of a kind's listings: for the whole cluster, or for namespaces."""
    if namespaces is None or not resource.namespaced:
        return (None,)
    return namespaces


def _title(body: Body) -> str:
    return f"{body.namespace}/{body.name}" if body.namespace else body.name


def _listing_problem(resource: Resource) -> ReadProblem:
    return ReadProblem(
        f"{resource.label} cannot be listed: each listing expired before its end"
    )
