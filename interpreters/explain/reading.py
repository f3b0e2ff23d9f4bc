"""Read everything there is about one object, by GET and LIST alone.

A read that the API server refuses is reported, and stops nothing else. Children are
looked up by their metadata, so that the content of Secrets never leaves the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, path_of
from fnop.core.children.marks import SET_LABEL
from fnop.core.children.owned import owners_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.values.body import Body
from fnop.effects.structs import replace
from fnop.interpreters.explain.facts import ChildFact, Evidence
from fnop.interpreters.runtime.answers import is_object, message_of
from fnop.interpreters.runtime.protocol import Api, ApiRequest, Unreachable
from fnop.interpreters.runtime.reading import Expired, Reader, ReadProblem
from fnop.interpreters.runtime.requests import PARTIAL_LIST

__all__ = ["CHILDREN_MAX", "Gatherer", "NotFound"]

# The most children that are reported and whose Events are read. Also the most pages of
# each kind that are searched for children.
CHILDREN_MAX = 30
PAGES_MAX = 4
CONCURRENCY = 16
_NAMED_MAX = 5
_EVENTS_LIMIT = "100"
_EVENTS = Resource("", "v1", "events", "Event")
# Objects of these kinds are reported below a child that owns them; down to this depth.
_WORKLOADS = frozenset((("", "pods"), ("apps", "replicasets"), ("batch", "jobs")))
_DEPTH_MAX = 3
# These kinds belong to no owner, or have too many objects to search.
_SKIPPED = frozenset(("events", "componentstatuses"))


class NotFound(ReadProblem):
    """The object does not exist."""


class Gatherer:
    """Reads what there is about one object; `reader` sends all requests.

    Methods raise `ReadProblem` if the object itself cannot be read, and `Unreachable`
    if the server does not answer.
    """

    def __init__(self, api: Api, reader: Reader | None = None) -> None:
        self.reader = reader or Reader(api, tries_max=3)
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._unread: list[str] = []

    async def object(
        self, resource: Resource, namespace: str | None, name: str
    ) -> dict[str, Any]:
        """The object; raises `NotFound`, or `ReadProblem` for a refusal."""
        place = namespace if resource.namespaced else None
        try:
            path = path_of(resource, place, name)
        except ValueError as problem:
            raise NotFound(f"there is no such object: {problem}") from None
        response = await self.reader.ask(ApiRequest("GET", path))
        where = f" in the namespace {place}" if place else ""
        if response.status == 404:
            other = "; is it in another one (-n)?" if place else ""
            raise NotFound(f"there is no {resource.label} {name!r}{where}{other}")
        if response.status >= 300 or not is_object(response.body):
            raise ReadProblem(
                f"{resource.label} {name!r}{where} cannot be read: "
                f"{message_of(response)}"
            )
        found: dict[str, Any] = response.body
        return found

    async def evidence(
        self,
        catalogue: Catalogue,
        resource: Resource,
        body: dict[str, Any],
        settings: Settings,
        *,
        peering: str,
        wall: float,
    ) -> Evidence:
        """Everything about a read object; `wall` is the time (Unix seconds)."""
        owner = Body(body)
        (leases, peerings, sees), children = await asyncio.gather(
            self._read_operators(catalogue, owner, settings, peering),
            self._children(catalogue, resource, owner, settings),
        )
        events = await self._read_events(owner, [Body(dict(e.body)) for e in children])
        return Evidence(
            resource,
            body,
            wall,
            settings,
            tuple(events),
            tuple(children),
            tuple(leases),
            tuple(peerings),
            sees,
            unread=tuple(dict.fromkeys(self._unread)),
        )

    # ---------------------------------------------------------------- operators

    async def _read_operators(
        self, catalogue: Catalogue, owner: Body, settings: Settings, peering: str
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
        places = (owner.namespace,) if owner.namespace else ()
        name = f"fnop-{settings.operator}"
        leases, problem = await self.reader.leases(catalogue, places, name)
        if problem:
            self._unread.append(f"leases: {problem}")
        found, problems = [], [problem]
        for namespaces in (None, places) if places else (None,):
            some, problem = await self.reader.peerings(catalogue, namespaces, peering)
            found += some
            if problem:
                self._unread.append(f"peering objects: {problem}")
            problems.append(problem)
        bodies = [each.data for each in leases], [each.data for each in found]
        return *bodies, not any(problems)

    # ----------------------------------------------------------------- children

    async def _children(
        self, catalogue: Catalogue, resource: Resource, owner: Body, settings: Settings
    ) -> list[ChildFact]:
        """The children: near ones by their owner references, others by fnop's marks."""
        searches = [*_places_to_search(catalogue, owner, settings)]
        refused: dict[tuple[str, bool], str] = {}

        async def search(
            kind: Resource, place: str | None, labels: str
        ) -> list[ChildFact]:
            async with self._slots:
                return await self._owned_objects(
                    kind, place, labels, owner.uid, refused
                )

        found = await asyncio.gather(*(search(*each) for each in searches))
        self._unread += _words_for_unread(refused)
        children = _children_in_order(
            {_uid(e): e for some in found for e in some}, owner.uid
        )
        if len(children) > CHILDREN_MAX:
            self._unread.append(
                f"{len(children) - CHILDREN_MAX} more of {len(children)} children"
            )
        return [
            *await asyncio.gather(
                *map(self._child_with_status, children[:CHILDREN_MAX])
            )
        ]

    async def _owned_objects(
        self,
        kind: Resource,
        place: str | None,
        labels: str,
        owner: str,
        refused: dict[tuple[str, bool], str],
    ) -> list[ChildFact]:
        """The objects that this owner owns; for workload kinds, those of any owner."""
        selected = (("labelSelector", labels),) if labels else ()
        is_workload = (kind.group, kind.plural) in _WORKLOADS
        found: list[ChildFact] = []
        pages = 0
        try:
            async for page in self.reader.pages(
                kind, place, selected=selected, accept=PARTIAL_LIST
            ):
                if pages == PAGES_MAX:
                    self._unread.append(f"{kind.label} after {PAGES_MAX} pages")
                    break
                pages += 1
                # A server that cannot return metadata alone returns the whole objects.
                found += [
                    ChildFact(kind, {"metadata": each.meta})
                    for each in page
                    if is_workload or any(e.uid == owner for e in owners_of(each))
                ]
        except (ReadProblem, Expired, Unreachable) as problem:
            why = str(problem) or "the listing has expired"
            refused[kind.label, place is None and bool(labels)] = why
        return found

    async def _child_with_status(self, child: ChildFact) -> ChildFact:
        """The child with its status; for a Secret only the metadata."""
        if (child.resource.group, child.resource.plural) == ("", "secrets"):
            return child
        body = Body(dict(child.body))
        path = path_of(child.resource, body.namespace, body.name)
        async with self._slots:
            try:
                response = await self.reader.ask(ApiRequest("GET", path))
            except Unreachable:
                return child
        is_it = response.status < 300 and is_object(response.body)
        return replace(child, body=response.body) if is_it else child

    # ------------------------------------------------------------------- events

    async def _read_events(
        self, owner: Body, children: Iterable[Body]
    ) -> list[dict[str, Any]]:
        async def about(body: Body) -> list[Any]:
            place = body.namespace or "default"
            query = (
                ("fieldSelector", f"involvedObject.uid={body.uid}"),
                ("limit", _EVENTS_LIMIT),
            )
            async with self._slots:
                response = await self.reader.ask(
                    ApiRequest("GET", path_of(_EVENTS, place), query)
                )
            if response.status >= 300:
                self._unread.append(f"Events: {message_of(response)}")
                return []
            items = (
                response.body.get("items") if isinstance(response.body, dict) else None
            )
            return items if isinstance(items, list) else []

        found = await asyncio.gather(*map(about, (owner, *children)))
        return [each for some in found for each in some if isinstance(each, dict)]


def _places_to_search(
    catalogue: Catalogue, owner: Body, settings: Settings
) -> Iterable[tuple[Resource, str | None, str]]:
    """The places to look for children: the kind, the namespace, and a label selector.

    Kubernetes allows owner references within a namespace, and to cluster-scoped owners.
    All other children carry fnop's label. A namespaced owner has such children only if
    the operator's finalizer is on it.
    """
    far = not owner.namespace or settings.own_finalizer in owner.finalizers
    for kind in catalogue.resources:
        if not kind.preferred or "list" not in kind.verbs or kind.plural in _SKIPPED:
            continue
        if owner.namespace and kind.namespaced:
            yield kind, owner.namespace, ""
        if far:
            near = not owner.namespace and not kind.namespaced
            yield kind, None, "" if near else SET_LABEL


def _words_for_unread(refused: Mapping[tuple[str, bool], str]) -> list[str]:
    """The kinds that could not be read: in the object's namespace, and beyond."""
    told = []
    for is_far in (False, True):
        whys = {label: why for (label, far), why in refused.items() if far == is_far}
        if not whys:
            continue
        names, more = sorted(whys)[:_NAMED_MAX], len(whys) - _NAMED_MAX
        kinds = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        where = " in other namespaces" if is_far else ""
        told.append(f"children{where} of the kinds {kinds}: {whys[names[0]]}")
    return told


def _uid(fact: ChildFact) -> str:
    return Body(dict(fact.body)).uid


def _children_in_order(facts: Mapping[str, ChildFact], owner: str) -> list[ChildFact]:
    """The children of an owner by name, each followed by the objects it owns itself."""
    below: dict[str, list[tuple[str, ChildFact]]] = {}
    for uid, fact in facts.items():
        for each in owners_of(Body(dict(fact.body))):
            below.setdefault(each.uid, []).append((uid, fact))
    found: dict[str, ChildFact] = {}

    def descend(above: str, depth: int) -> None:
        ordered = sorted(below.get(above, ()), key=lambda each: _title(each[1]))
        for uid, fact in ordered:
            if uid not in found:
                found[uid] = replace(fact, depth=depth)
                if depth < _DEPTH_MAX:
                    descend(uid, depth + 1)

    descend(owner, 0)
    return [*found.values()]


def _title(fact: ChildFact) -> tuple[str, str]:
    return fact.resource.label, Body(dict(fact.body)).name
