"""Get and list."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import orjson

from fnop.interpreters.cluster.conversion import served
from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.request import Call
from fnop.interpreters.cluster.selectors import selection_of
from fnop.interpreters.cluster.status import bad_request, not_found
from fnop.interpreters.cluster.store import Cluster, Key, Object, lookup, shelf
from fnop.interpreters.protocol import ApiResponse

__all__ = ["get", "list_body", "list_objects", "selected"]


def get(cluster: Cluster, call: Call) -> ApiResponse:
    """GET of one object."""
    kind = call.kind
    obj = lookup(cluster, kind.resource, call.key)
    if obj is None:
        raise not_found(kind.group, kind.plural, call.route.name or "")
    return ApiResponse(200, served(kind.api_version, obj))


def selected(cluster: Cluster, call: Call) -> list[tuple[Key, Object]]:
    """What a collection request addresses, in the order of the keys."""
    namespace = call.route.namespace
    selection = selection_of(call.kind, call.query)
    items = shelf(cluster, call.kind.resource).items()
    return sorted(
        (key, obj)
        for key, obj in items
        if (namespace is None or key[0] == namespace) and selection.holds(obj)
    )


def list_objects(cluster: Cluster, call: Call) -> ApiResponse:
    """GET of a collection, whole or by pages."""
    found = selected(cluster, call)
    limit = _limit(call.query)
    after, version = _continued(call.query, cluster.version)
    if after is not None:
        found = [(key, obj) for key, obj in found if list(key) > after]
    page = found[:limit] if limit else found
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if len(page) < len(found):
        metadata["continue"] = _token(page[-1][0], version)
        if not call.query.get("labelSelector") and not call.query.get("fieldSelector"):
            # How many are left is known only where nothing is filtered out.
            metadata["remainingItemCount"] = len(found) - len(page)
    body = list_body(cluster, call.kind, [obj for _, obj in page])
    body["metadata"] = {**body["metadata"], **metadata}
    return ApiResponse(200, body)


def list_body(cluster: Cluster, kind: Kind, objects: list[Object]) -> dict[str, Any]:
    """A list of objects as a kind's list type."""
    metadata: dict[str, Any] = {"resourceVersion": str(cluster.version)}
    if kind.custom:
        metadata["continue"] = ""
        items = [served(kind.api_version, obj) for obj in objects]
    else:
        # Items of built-in lists do not repeat apiVersion and kind.
        items = [
            {k: v for k, v in item.items() if k != "kind" and k != "apiVersion"}
            for item in (served(kind.api_version, obj) for obj in objects)
        ]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.list_kind,
        "metadata": metadata,
        "items": items,
    }


def _limit(query: dict[str, str]) -> int:
    text = query.get("limit") or "0"
    try:
        return max(0, int(text))
    except ValueError:
        raise bad_request(
            f'strconv.ParseInt: parsing "{text}": invalid syntax'
        ) from None


def _token(last: Key, version: int) -> str:
    text = orjson.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": last})
    return urlsafe_b64encode(text).decode().rstrip("=")


def _continued(query: dict[str, str], version: int) -> tuple[list[str] | None, int]:
    """Where a page begins, and the version at which its list began.

    Later pages show later states here: the real server reads the old revision.
    """
    token = query.get("continue")
    if not token:
        return None, version
    try:
        parsed = orjson.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = parsed["start"]
        return [str(namespace), str(name)], int(parsed["rv"])
    except (ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid") from None
