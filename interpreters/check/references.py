"""References of pods to what nobody has made: a ConfigMap, a Secret, a claim.

A pod that refers to what is not there does not start (CreateContainerConfigError,
FailedMount), and no write is refused for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fnop.interpreters.cluster import Cluster

__all__ = ["Need", "missing_in", "needs_of"]

Json = Mapping[str, Any]


class Need(NamedTuple):
    """An object that a pod cannot do without, and maybe a key in it."""

    plural: str
    name: str
    key: str = ""

    def __str__(self) -> str:
        return (
            f"{self.key} of {self.plural}/{self.name}"
            if self.key
            else (f"{self.plural}/{self.name}")
        )


def needs_of(found: Any) -> Iterator[Need]:
    """The needs of the pods that an object describes, wherever it does so.

    >>> claim = {"persistentVolumeClaim": {"claimName": "data"}}
    >>> pod = {"spec": {"containers": [], "volumes": [{"name": "data", **claim}]}}
    >>> [str(each) for each in needs_of(pod)]
    ['persistentvolumeclaims/data']
    """
    if isinstance(found, dict):
        if isinstance(found.get("containers"), list):
            yield from _needs_of_pod(found)
        for each in found.values():
            yield from needs_of(each)
    elif isinstance(found, list):
        for each in found:
            yield from needs_of(each)


def _needs_of_pod(spec: Json) -> Iterator[Need]:
    for volume in _several(spec, "volumes"):
        yield from _needs(volume, _VOLUMES)
        for source in _several(volume.get("projected"), "sources"):
            yield from _needs(source, _SOURCES)
    for stanza in ("initContainers", "containers"):
        for container in _several(spec, stanza):
            for each in _several(container, "env"):
                yield from _needs(each.get("valueFrom"), _VALUES)
            for each in _several(container, "envFrom"):
                yield from _needs(each, _SOURCES)


# By the field that refers: the kind, and the field that has the name.
_VOLUMES = {
    "configMap": ("configmaps", "name"),
    "secret": ("secrets", "secretName"),
    "persistentVolumeClaim": ("persistentvolumeclaims", "claimName"),
}
_SOURCES = {
    "configMap": ("configmaps", "name"),
    "secret": ("secrets", "name"),
    "configMapRef": ("configmaps", "name"),
    "secretRef": ("secrets", "name"),
}
_VALUES = {
    "configMapKeyRef": ("configmaps", "name"),
    "secretKeyRef": ("secrets", "name"),
}


def _several(found: Any, key: str) -> Sequence[Json]:
    value = found.get(key) if isinstance(found, dict) else None
    several = value if isinstance(value, list) else ()
    return [each for each in several if isinstance(each, dict)]


def _needs(found: Any, table: Mapping[str, tuple[str, str]]) -> Iterator[Need]:
    for field, (plural, name) in table.items():
        each = found.get(field) if isinstance(found, dict) else None
        if isinstance(each, dict) and each.get(name) and not each.get("optional"):
            yield Need(plural, str(each[name]), str(each.get("key") or ""))


def missing_in(cluster: Cluster, found: Json) -> Iterator[Need]:
    """The needs of an object that are not met in its namespace."""
    namespace = found["metadata"].get("namespace") or ""
    for need in dict.fromkeys(needs_of(found.get("spec"))):
        shelf = cluster.shelves.get(("", need.plural))
        there = shelf.get((namespace, need.name)) if shelf else None
        data = {**(there or {}).get("data", {}), **(there or {}).get("binaryData", {})}
        if there is None:
            yield need._replace(key="")
        elif need.key and need.key not in data:
            yield need
