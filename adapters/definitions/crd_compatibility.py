"""Definitions compared with released ones, and tried on the objects of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fnop.adapters.common.manifests import ManifestProblem, read_manifests
from fnop.core.api.resources import Resource, segment
from fnop.core.api.statuses import DEFINITIONS
from fnop.interpreters.plan.compatibility import breaking_changes
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import Api, ApiRequest
from fnop.interpreters.runtime.reading import Reader, ReadProblem
from fnop.interpreters.simulation.tried_definitions import cluster_with, refusal_of

__all__ = ["breaks_of_file", "breaks_of_live"]

Definition = Mapping[str, Any]
# The largest number of objects of one kind that are named.
NAMED_MOST = 20


def breaks_of_file(
    definitions: Sequence[Definition], file: str
) -> Iterator[tuple[str, str]]:
    """The breaking changes since the definitions in a file, each with its kind.

    Raises `ManifestProblem` unless the file has definitions of apiextensions.k8s.io/v1.
    """
    released = {
        each["metadata"]["name"]: each
        for each in read_manifests([file])
        if each.get("kind") == "CustomResourceDefinition"
    }
    if not released:
        raise ManifestProblem(f"{file} has no definition (CustomResourceDefinition)")
    for name, found in released.items():
        _check(found, f"{file}: {name}")
    for each in definitions:
        name = each["metadata"]["name"]
        if name in released:
            yield from _named_breaks(name, released.pop(name), each)
    for name in released:
        yield name, "the kind is gone"


def _check(definition: Definition, name: str) -> None:
    """Raise `ManifestProblem` unless a definition is of apiextensions.k8s.io/v1."""
    spec = definition.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    if (
        not isinstance(spec, dict)
        or not isinstance(spec.get("names"), dict)
        or not isinstance(versions, list)
        or not all(
            isinstance(e, dict) and isinstance(e.get("name"), str) for e in versions
        )
    ):
        raise ManifestProblem(
            f"{name} is not a definition of apiextensions.k8s.io/v1: it lacks "
            "spec.names, or spec.versions with names"
        )


def _named_breaks(
    name: str, before: Definition, after: Definition
) -> Iterator[tuple[str, str]]:
    for change in breaking_changes(before, after):
        yield name, str(change)


async def breaks_of_live(
    definitions: Sequence[Definition], api: Api
) -> list[tuple[str, str]]:
    """The breaking changes since the definitions of a cluster, and the objects there.

    An object is named if the new definition could not store it. Raises `ReadProblem`
    for objects that may not be read, and `Unreachable`.
    """
    found: list[tuple[str, str]] = []
    reader = Reader(api)
    for each in definitions:
        name = each["metadata"]["name"]
        path = f"{DEFINITIONS}{segment(name)}"
        response = await reader.ask(ApiRequest("GET", path))
        if response.status == 404:
            continue  # the kind is new
        if response.status >= 300:
            raise ReadProblem(f"{name} cannot be read: {message_of(response)}")
        found += _named_breaks(name, response.body, each)
        found += [
            (name, text) async for text in _refused_objects(reader, response.body, each)
        ]
    return found


async def _refused_objects(
    reader: Reader, before: Definition, after: Definition
) -> Any:
    """The live objects that the new definition refuses, each with the reason."""
    versions = [each["name"] for each in after["spec"]["versions"]]
    served = [e["name"] for e in before["spec"]["versions"] if e.get("served")]
    both = [each for each in served if each in versions]
    if not served or not versions:
        return
    read = _resource(before, (both or served)[0])
    tried = _resource(after, (both or versions)[0])
    cluster, count = cluster_with(after), 0
    async for page in reader.pages(read, None):
        for body in page:
            why = refusal_of(cluster, tried, dict(body.data), SystemClock().now().wall)
            if why:
                count += 1
                if count <= NAMED_MOST:
                    where = f"{body.namespace}/" if body.namespace else ""
                    yield f"{where}{body.name} is no longer valid: {why}"
    if count > NAMED_MOST:
        yield f"{count - NAMED_MOST} further objects are no longer valid"


def _resource(definition: Definition, version: str) -> Resource:
    spec = definition["spec"]
    names = spec["names"]
    return Resource(
        spec["group"],
        version,
        names["plural"],
        names["kind"],
        namespaced=spec.get("scope") == "Namespaced",
    )
