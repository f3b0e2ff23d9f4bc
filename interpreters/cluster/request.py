"""From an HTTP request to a verb on a resource."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from fnop.interpreters.cluster.kinds import Kind, Registry
from fnop.interpreters.cluster.status import no_such_path, unknown_resource
from fnop.interpreters.cluster.store import Key
from fnop.interpreters.protocol import ApiRequest

__all__ = ["Call", "Route", "call_of", "route_of"]


class Route(NamedTuple):
    """The parts of a resource path; what a path does not name is None."""

    group: str
    version: str
    namespace: str | None
    plural: str
    name: str | None
    subresource: str | None


@dataclass(frozen=True, slots=True)
class Call:
    """A request that names a resource which is served."""

    request: ApiRequest
    kind: Kind
    route: Route
    query: dict[str, str]
    now: float

    @property
    def key(self) -> Key:
        """Where the named object is stored."""
        return (self.route.namespace or "", self.route.name or "")

    @property
    def dry_run(self) -> bool:
        """Everything happens except the storing."""
        return self.query.get("dryRun") == "All"


@lru_cache(maxsize=4096)
def route_of(path: str) -> Route | None:
    """Split a resource path, or None where the path is not one.

    >>> route_of("/apis/apps/v1/namespaces/n/deployments/d/scale")[2:]
    ('n', 'deployments', 'd', 'scale')
    >>> route_of("/api/v1/namespaces/n")[2:]
    (None, 'namespaces', 'n', None)
    >>> route_of("/version") is None
    True
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = None
    # `namespaces/N/status` and `/finalize` are subresources of N itself.
    if (
        rest[0] == "namespaces"
        and len(rest) > 2
        and not (group == "" and len(rest) == 3 and rest[2] in ("status", "finalize"))
    ):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = [*rest, None, None][:3]
    assert plural is not None
    return Route(group, version, namespace, plural, name, subresource)


def kind_at(registry: Registry, route: Route) -> Kind:
    """The kind that a route addresses, or the 404 that a server answers."""
    kind = registry.by_path.get((route.group, route.version, route.plural))
    if kind is None or not kind.served:
        raise _unserved(registry, route)
    if kind.namespaced:
        # Only lists and watches reach across namespaces.
        if route.namespace is None and route.name is not None:
            raise no_such_path() if kind.custom else unknown_resource()
    elif route.namespace is not None:
        raise no_such_path() if kind.custom else unknown_resource()
    return kind


def _unserved(registry: Registry, route: Route) -> Exception:
    for kind in registry.by_path.values():
        if (kind.group, kind.version) == route[:2] and not kind.custom:
            return unknown_resource()
    return no_such_path()


def call_of(registry: Registry, request: ApiRequest, now: float) -> Call | None:
    """Resolve a request; None where the path is no resource path."""
    route = route_of(request.path)
    if route is None:
        return None
    kind = kind_at(registry, route)
    return Call(request, kind, route, dict(request.query), now)
