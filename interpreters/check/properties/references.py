"""References to missing things: of pods to a ConfigMap, of a Service to pods.

A pod with a reference to a missing thing does not start (CreateContainerConfigError,
FailedMount). An Ingress or a Service without a target serves no requests. The API
server does not refuse such writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster import Cluster

__all__ = [
    "Need",
    "labels_of_pods",
    "missing_in",
    "needs_of",
    "selector_of",
    "unfit_selector",
]

Json = Mapping[str, Any]


class Need(Struct, frozen=True):
    """An object that another cannot do without, and maybe a key in it."""

    plural: str
    name: str
    key: str = ""
    group: str = ""

    def __str__(self) -> str:
        return (
            f"{self.key} of {self.plural}/{self.name}"
            if self.key
            else (f"{self.plural}/{self.name}")
        )


def needs_of(found: Json) -> Iterator[Need]:
    """The needs of an object, and of the pods that it describes in any place.

    >>> claim = {"persistentVolumeClaim": {"claimName": "data"}}
    >>> pod = {"spec": {"containers": [], "volumes": [{"name": "data", **claim}]}}
    >>> [str(each) for each in needs_of(pod)]
    ['persistentvolumeclaims/data']
    >>> backend = {"service": {"name": "web", "port": {"number": 80}}}
    >>> ingress = {"kind": "Ingress", "spec": {"defaultBackend": backend}}
    >>> [str(each) for each in needs_of(ingress)]
    ['services/web']
    """
    spec = found.get("spec") or {}
    yield from _needs_of_kind(str(found.get("kind")), spec)
    for each in _mappings_in(spec):
        if isinstance(each.get("containers"), list):
            yield from _needs_of_pod(each)


def _needs_of_kind(kind: str, spec: Json) -> Iterator[Need]:
    """The objects that an object of a built-in kind refers to by name."""
    if kind == "Ingress":
        for each in _mappings_in(spec):
            yield from _needs(each, {"service": ("services", "name")})
    elif kind == "HorizontalPodAutoscaler":
        target = spec.get("scaleTargetRef") or {}
        if target.get("kind") in _SCALED:
            yield Need(_SCALED[target["kind"]], str(target.get("name")), group="apps")


_SCALED = {"Deployment": "deployments", "StatefulSet": "statefulsets"}


def _mappings_in(found: Any) -> Iterator[Json]:
    """All mappings in a value, the outer ones first."""
    if isinstance(found, dict):
        yield found
        found = [*found.values()]
    if isinstance(found, list):
        for each in found:
            yield from _mappings_in(each)


def _needs_of_pod(spec: Json) -> Iterator[Need]:
    account = spec.get("serviceAccountName")
    if account and account != "default":
        yield Need("serviceaccounts", str(account))
    for volume in _items_at(spec, "volumes"):
        yield from _needs(volume, _VOLUMES)
        for source in _items_at(volume.get("projected"), "sources"):
            yield from _needs(source, _SOURCES)
    for stanza in ("initContainers", "containers"):
        for container in _items_at(spec, stanza):
            for each in _items_at(container, "env"):
                yield from _needs(each.get("valueFrom"), _VALUES)
            for each in _items_at(container, "envFrom"):
                yield from _needs(each, _SOURCES)


# For each referring field: the kind, and the field that has the name.
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


def _items_at(found: Any, key: str) -> Sequence[Json]:
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
    for need in dict.fromkeys(needs_of(found)):
        shelf = cluster.shelves.get((need.group, need.plural))
        there = shelf.get((namespace, need.name)) if shelf else None
        data = {**(there or {}).get("data", {}), **(there or {}).get("binaryData", {})}
        if there is None:
            yield replace(need, key="")
        elif need.key and need.key not in data:
            yield need


def unfit_selector(found: Json, labels: Sequence[Json]) -> Json:
    """The selector of a Service or PodDisruptionBudget, if it matches none of the pods.

    A pod may get a missing label later, as a primary does. It does not get a label that
    it has with another value, nor does it get all of them. The result is empty if a pod
    matches, or if there are no pods.

    >>> service = {"spec": {"selector": {"app": "a", "role": "b"}}}
    >>> unfit_selector(service, [{"app": "x"}, {"app": "y", "role": "b"}])
    {'app': 'a', 'role': 'b'}
    >>> unfit_selector(service, [{"name": "a"}])
    {'app': 'a', 'role': 'b'}
    >>> unfit_selector(service, [{"app": "x"}, {"app": "a"}])
    {}
    >>> budget = {"selector": {"matchLabels": {"app": "a"}}}
    >>> unfit_selector(
    ...     {"kind": "PodDisruptionBudget", "spec": budget}, [{"app": "x"}]
    ... )
    {'app': 'a'}
    """
    selector: Json = (found.get("spec") or {}).get("selector") or {}
    if found.get("kind") == "PodDisruptionBudget":
        selector = selector.get("matchLabels") or {}
    fits = any(
        all(each.get(key, value) == value for key, value in selector.items())
        and selector.keys() & each.keys()
        for each in labels
    )
    return {} if fits or not labels else selector


def selector_of(found: Json) -> Json:
    """The labels by which a Service, or a pod controller, selects its pods.

    >>> selector_of({"kind": "Service", "spec": {"selector": {"app": "a"}}})
    {'app': 'a'}
    >>> selector = {"matchLabels": {"app": "a"}}
    >>> selector_of({"kind": "Deployment", "spec": {"selector": selector}})
    {'app': 'a'}
    """
    selector: Json = (found.get("spec") or {}).get("selector") or {}
    if found.get("kind") == "Service":
        return selector
    return selector.get("matchLabels") or {} if found.get("kind") in _MAKERS else {}


_MAKERS = frozenset(("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"))


def labels_of_pods(found: Any) -> Iterator[Json]:
    """The labels of the pods that an object is, or describes in any place.

    >>> template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}
    >>> [*labels_of_pods({"spec": {"template": template}})]
    [{'app': 'x'}]
    """
    for each in _mappings_in(found):
        spec = each.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield (each.get("metadata") or {}).get("labels") or {}
