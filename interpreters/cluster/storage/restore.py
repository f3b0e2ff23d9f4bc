"""A cluster as it was found elsewhere: objects are inserted unchanged.

All decisions of a real API server about an object stay: its uid, versions, generation,
managed fields, times and status. Nothing is admitted, defaulted or validated again. No
watch sees an event, and no controller is reminded: for them the objects have always
existed. Each object is marked as found elsewhere; see `requests/found.py` for its
updates.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from fnop.effects.structs import replace
from fnop.interpreters.cluster.kinds.conversion import to_storage
from fnop.interpreters.cluster.kinds.crds import CRDS, registry_with
from fnop.interpreters.cluster.kinds.kinds import (
    Kind,
    Registry,
    builtin_registry,
    earlier_kinds,
    kinds_of_crd,
)
from fnop.interpreters.cluster.storage.selections import reselected
from fnop.interpreters.cluster.storage.store import (
    EMPTY_SHELF,
    Cluster,
    bare,
    reindexed,
    size_of,
    without,
)
from fnop.interpreters.cluster.values.objects import Object

__all__ = ["blank_cluster", "describing", "restored", "serving_earlier"]

Path = tuple[str, str, str]


def blank_cluster(
    seed: str, version: int, serves: Container[Path] | None = None
) -> Cluster:
    """A cluster without any object, whose next change has the version after `version`.

    It serves the built-in kinds whose (group, version, plural) is in `serves`, also in
    versions of older servers. By default it serves all kinds in their present version.

    >>> blank_cluster("0", 7, {("", "v1", "pods")})
    <Cluster at version 7 with 0 objects>
    """
    registry = builtin_registry()
    if serves is not None:
        # The present version comes last: controllers use this version.
        every = (*earlier_kinds(registry), *registry.by_path.values())
        kinds = (e for e in every if (e.group, e.version, e.plural) in serves)
        registry = Registry({}, {}).with_kinds(tuple(kinds))
    return bare(seed, version, registry)


def describing(cluster: Cluster, definitions: Iterable[Object]) -> Cluster:
    """The cluster serving more kinds, whose definitions are not objects in it.

    They stand for kinds that are served without a CustomResourceDefinition, or whose
    definition cannot be read.
    """
    registry = cluster.registry
    for each in definitions:
        registry = registry.with_kinds(kinds_of_crd(each))
    return replace(cluster, registry=registry)


def serving_earlier(cluster: Cluster, api_version: str, kind: str) -> Cluster | None:
    """The cluster serving a built-in kind only in an earlier version.

    None if the version does not exist. A server shows objects in the version that it
    prefers, so it has no later one.

    >>> cluster = serving_earlier(blank_cluster("0", 0), "batch/v1beta1", "CronJob")
    >>> [path[1] for path in cluster.registry.by_path if path[2] == "cronjobs"]
    ['v1beta1']
    """
    for each in earlier_kinds(builtin_registry()):
        if (each.api_version, each.kind) == (api_version, kind):
            rest = cluster.registry.without(each.group, each.plural)
            return replace(cluster, registry=rest.with_kinds((each,)))
    return None


def restored(cluster: Cluster, path: Path, objects: Iterable[Object]) -> Cluster:
    """The cluster with these objects, read at the (group, version, plural).

    An established definition serves its kinds. Raises `KeyError` for a kind that the
    cluster does not serve.
    """
    for each in objects:
        cluster = _restore_object(cluster, cluster.registry.by_path[path], each)
    return cluster


def _restore_object(cluster: Cluster, kind: Kind, found: Object) -> Cluster:
    metadata = found["metadata"]
    key = metadata.get("namespace", ""), metadata["name"]
    new, resource = to_storage(kind, found), kind.resource
    shelf = cluster.shelves.get(resource, EMPTY_SHELF)
    old = shelf.get(key)
    registry = cluster.registry
    if resource == CRDS:
        registry = registry_with(registry, new, old)
    return replace(
        cluster,
        # Versions are opaque in the protocol; etcd's versions are numbers.
        version=max(cluster.version, _number(metadata.get("resourceVersion"))),
        registry=registry,
        shelves={**cluster.shelves, resource: shelf.set(key, new)},
        owned=reindexed(cluster.owned, resource, key, old, new),
        selections=reselected(cluster.selections, resource, key, old, new),
        size=cluster.size + size_of(new) - (0 if old is None else size_of(old)),
        raw=without(cluster.raw, (resource, key)),
        found=cluster.found.set((resource, key), None),
    )


def _number(version: str | None) -> int:
    return int(version) if version and version.isdecimal() else 0
