"""Objects into and out of a simulated cluster, by manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from fnop.core.api.resources import Resource, path_of as core_path
from fnop.interpreters.cluster.kinds.kinds import Kind, Registry
from fnop.interpreters.runtime.answers import refusal_of
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse

__all__ = [
    "OWN_SERVICE",
    "ObjectProblem",
    "create_all",
    "kind_called",
    "kind_named",
    "path_of",
    "populate",
]

_ORDER = {"CustomResourceDefinition": 0, "Namespace": 1}

Manifest = Mapping[str, Any]

# The service by which pods find the API server; a real server creates it itself.
OWN_SERVICE: Mapping[str, Any] = {
    "metadata": {
        "name": "kubernetes",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "clusterIP": "10.96.0.1",
        "ports": [
            {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}
        ],
    },
}


class ObjectProblem(Exception):
    """The cluster refuses an object; the text names it, and has the reason."""


def path_of(kind: Kind, namespace: str | None, name: str = "") -> str:
    """The path of a kind's objects, or of one of them.

    >>> from fnop.interpreters.cluster.kinds.kinds import builtin_registry
    >>> path_of(kind_named(builtin_registry(), "apps/v1", "Deployment"), "n", "d")
    '/apis/apps/v1/namespaces/n/deployments/d'
    """
    resource = Resource(
        kind.group, kind.version, kind.plural, kind.kind, namespaced=kind.namespaced
    )
    return core_path(resource, namespace, name or None)


def kind_named(registry: Registry, api_version: str, name: str) -> Kind:
    """The kind that a manifest names.  Raises `ObjectProblem`."""
    for kind in registry.by_path.values():
        if kind.kind == name and kind.api_version == api_version and kind.served:
            return kind
    raise ObjectProblem(
        f"the cluster has no kind {name} of {api_version}; add its "
        "CustomResourceDefinition to the manifests"
    )


def kind_called(registry: Registry, name: str) -> Kind:
    """The kind that kubectl means by a name.  Raises `ObjectProblem`.

    >>> from fnop.interpreters.cluster.kinds.kinds import builtin_registry
    >>> kind_called(builtin_registry(), "deploy").kind
    'Deployment'
    """
    resource, _, group = name.lower().partition(".")
    called: dict[str, str] = {}
    for kind in registry.by_path.values():
        names = (kind.plural, kind.singular, kind.kind.lower(), *kind.short_names)
        if resource in names and kind.served and group in ("", kind.group):
            return kind
        label = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        called.update(dict.fromkeys(names, label))
    near = get_close_matches(resource, called, n=1, cutoff=0.75)
    hint = f" (did you mean {called[near[0]]!r}?)" if near else ""
    raise ObjectProblem(f"the cluster has no kind {name}{hint}")


def create_all(
    registry: Callable[[], Registry],
    send: Callable[[ApiRequest], ApiResponse],
    manifests: Iterable[Manifest],
) -> None:
    """Create the objects: definitions first, then namespaces, then the rest.

    Raises `ObjectProblem` with the API server's reason for a refusal.
    """
    for manifest in sorted(manifests, key=lambda each: _ORDER.get(each["kind"], 2)):
        kind = kind_named(registry(), manifest["apiVersion"], manifest["kind"])
        metadata = manifest.get("metadata") or {}
        path = path_of(kind, metadata.get("namespace") or "default")
        response = send(ApiRequest("POST", path, (), dict(manifest)))
        if response.status >= 300:
            raise ObjectProblem(refusal_of(manifest, response))


def populate(
    registry: Callable[[], Registry],
    send: Callable[[ApiRequest], ApiResponse],
    manifests: Iterable[Mapping[str, Any]],
) -> None:
    """Create the objects with which a served cluster begins.

    Raises `ObjectProblem` with the API server's reason for a refusal.
    """
    create_all(registry, send, manifests)
    # Refused if the manifests have one of their own.
    send(ApiRequest("POST", "/api/v1/namespaces/default/services", body=OWN_SERVICE))
