"""Requests as verbs on resources."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from fnop.effects.structs import beside
from fnop.interpreters.cluster.admission.questions import Ask, unreached
from fnop.interpreters.cluster.admission.webhooks import Beside, none_beside
from fnop.interpreters.cluster.kinds.kinds import Kind, Registry
from fnop.interpreters.cluster.values.objects import Key
from fnop.interpreters.cluster.values.status import no_such_path, unknown_resource
from fnop.interpreters.runtime.protocol import ApiRequest

__all__ = ["Attributes", "Call", "Route", "attributes_of", "call_of", "route_of"]


class Route(NamedTuple):
    """The parts of a resource path; a part that the path lacks is None."""

    group: str
    version: str
    namespace: str | None
    plural: str
    name: str | None
    subresource: str | None


@beside("warnings", "ask", "beside")
class Call(Struct, frozen=True):
    """A request that names a served resource."""

    request: ApiRequest
    kind: Kind
    route: Route
    query: dict[str, str]
    now: float
    # The warnings for the client, noted on the way to the answer.
    warnings: list[str] = []
    # Asks the admission webhooks.
    ask: Ask = unreached
    # Returns webhooks in addition to the registered ones.
    beside: Beside = none_beside

    @property
    def key(self) -> Key:
        """The key under which the named object is stored."""
        return (self.route.namespace or "", self.route.name or "")

    @property
    def dry_run(self) -> bool:
        """Whether the request asks for a dry run."""
        return self.query.get("dryRun") == "All"


@lru_cache(maxsize=4096)
def route_of(path: str) -> Route | None:
    """Split a resource path; None if it is not a resource path.

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
        if rest[2] != "proxy":
            return None
        rest = rest[:3]  # the rest is for the target of the proxy
    plural, name, subresource = [*rest, None, None][:3]
    assert plural is not None
    return Route(group, version, namespace, plural, name, subresource)


def kind_at(registry: Registry, route: Route) -> Kind:
    """The kind that a route addresses, or the 404 that a server answers."""
    kind = registry.by_path.get((route.group, route.version, route.plural))
    if kind is None or not kind.served:
        raise _unserved_route(registry, route)
    if kind.namespaced:
        # Only lists and watches reach across namespaces.
        if route.namespace is None and route.name is not None:
            raise no_such_path() if kind.custom else unknown_resource()
    elif route.namespace is not None:
        raise no_such_path() if kind.custom else unknown_resource()
    return kind


def _unserved_route(registry: Registry, route: Route) -> Exception:
    for kind in registry.by_path.values():
        if (kind.group, kind.version) == route[:2] and not kind.custom:
            return unknown_resource()
    return no_such_path()


def call_of(
    registry: Registry,
    request: ApiRequest,
    now: float,
    ask: Ask = unreached,
    beside: Beside = none_beside,
) -> Call | None:
    """Resolve a request; None if its path is not a resource path."""
    route = route_of(request.path)
    if route is None:
        return None
    kind = kind_at(registry, route)
    query = dict(request.query)
    return Call(request, kind, route, query, now, ask=ask, beside=beside)


# ------------------------------------------------- what permission is asked for


class Attributes(NamedTuple):
    """The attributes of a request for authorization (authorizer.Attributes).

    `path` is the path of a request that is not for a resource; the other parts are then
    empty.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined(self) -> str:
        """The resource as rules name it: with its subresource."""
        return (
            f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        )


VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


def attributes_of(request: ApiRequest) -> Attributes:
    """Read a request as the server does before it knows any resource.

    The rules come from RequestInfoFactory.NewRequestInfo in
    k8s.io/apiserver/pkg/endpoints/request.

    >>> attributes_of(ApiRequest("GET", "/api/v1/namespaces/n/pods")).verb
    'list'
    >>> attributes_of(ApiRequest("GET", "/version"))[::6]
    ('get', '/version')
    """
    found = _attributes(request.method, request.path)
    if not found.name and not found.path:
        if found.verb == "get":
            return _list_attributes(found, request.query)
        if found.verb == "delete":
            return found._replace(verb="deletecollection")
    return found


@lru_cache(maxsize=4096)
def _attributes(method: str, path: str) -> Attributes:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    has_group = parts[0] == "apis"
    if parts[0] not in ("api", "apis") or len(parts) < (4 if has_group else 3):
        return Attributes(method.lower(), path=path)
    group, rest = (parts[1], parts[3:]) if has_group else ("", parts[2:])
    verb = VERBS.get(method, "")
    if rest[0] in ("watch", "proxy") and len(rest) > 1:
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        # A Namespace itself is requested in that namespace.
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    resource, name, subresource = [*rest, "", ""][:3]
    return Attributes(verb, group, resource, subresource, namespace, name)


def _list_attributes(
    found: Attributes, query: tuple[tuple[str, str], ...]
) -> Attributes:
    """Treat a GET without a name as a list or watch, perhaps of just one object."""
    verb, name = "list", ""
    for key, value in query:
        if key == "watch" and value.lower() not in ("false", "0"):
            verb = "watch"
        elif key == "fieldSelector":
            name = _selected_name(value)
    return found._replace(verb=verb, name=name)


def _selected_name(selector: str) -> str:
    """The one name that a field selector allows, or "".

    >>> _selected_name("spec.x=1,metadata.name=q")
    'q'
    """
    for term in selector.split(","):
        field, _, name = term.replace("==", "=").partition("=")
        if field == "metadata.name":
            # Only a name that could be part of a path counts (IsValidPathSegmentName).
            return "" if name in (".", "..") or "/" in name or "%" in name else name
    return ""
