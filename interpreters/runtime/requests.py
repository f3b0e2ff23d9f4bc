"""Translation of commands to API requests; `answers` reads the responses.

Pure, and shared by every cluster, real or simulated: production runs what the simulator
exercises.
"""

from __future__ import annotations

from typing import Any

from fnop.core.api.resources import Resource, Selectors, path_of
from fnop.core.seam.commands import Fetch, FollowLog, ListPage, Perform, Watch
from fnop.core.seam.effect_rules import Sent
from fnop.core.values.log_lines import NANOS, text_of_time
from fnop.effects import Apply, Create, Delete, Get, List, Patch
from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    ApiRequest,
)

__all__ = [
    "PARTIAL_LIST",
    "fetch_request",
    "list_request",
    "log_request",
    "request_for",
    "watch_request",
]

PODS = Resource("", "v1", "pods", "Pod")
# The metadata of objects; a server that does not support it sends whole objects.
_META = "g=meta.k8s.io;v=v1"
PARTIAL = f"{JSON};as=PartialObjectMetadata;{_META},{JSON}"
PARTIAL_LIST = f"{JSON};as=PartialObjectMetadataList;{_META},{JSON}"


def request_for(command: Perform, manager: str) -> ApiRequest:
    """The request of an effect that addresses the API server.

    `manager` is the operator's name in managed fields.
    """
    resource, name, effect = command.resource, command.name, command.effect
    assert resource is not None, "only effects with an address become requests"
    assert isinstance(effect, Sent), f"{effect.kind} has no request of its own"
    writer = (("fieldManager", manager),)
    match effect:
        case Get():
            return ApiRequest("GET", path_of(resource, command.namespace, name))
        case List(label_selector=labels, field_selector=fields):
            query = (("labelSelector", labels), ("fieldSelector", fields))
            given = tuple((key, value) for key, value in query if value)
            return ApiRequest("GET", path_of(resource, command.namespace), given)
        case Create(manifest=manifest):
            path = path_of(resource, command.namespace)
            return ApiRequest("POST", path, writer, manifest)
        case Patch(merge=merge, json=steps, subresource=sub):
            path = path_of(resource, command.namespace, name, sub or "")
            if steps:
                return ApiRequest("PATCH", path, writer, list(steps), JSON_PATCH)
            return ApiRequest("PATCH", path, writer, merge, MERGE_PATCH)
        case Apply(manifest=manifest, force=force):
            path = path_of(resource, command.namespace, name)
            query_ = (*writer, ("force", "true")) if force else writer
            return ApiRequest("PATCH", path, query_, manifest, APPLY_PATCH)
        case Delete() as delete:
            path = path_of(resource, command.namespace, name)
            return ApiRequest("DELETE", path, (), _delete_options(delete))


def _delete_options(delete: Delete) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {
        key: value
        for key, value in (
            ("uid", delete.uid),
            ("resourceVersion", delete.resource_version),
        )
        if value
    }
    if preconditions:
        options["preconditions"] = preconditions
    if delete.propagation:
        options["propagationPolicy"] = delete.propagation
    return options


def list_request(command: ListPage) -> ApiRequest:
    """The request of one page of a collection."""
    query = [("limit", str(command.limit))]
    if command.continue_token:
        query.append(("continue", command.continue_token))
    query += _selector_query(command.selectors)
    path = path_of(command.resource, command.namespace)
    accept = PARTIAL_LIST if command.metadata_only else JSON
    return ApiRequest("GET", path, tuple(query), accept=accept)


def _selector_query(selectors: Selectors) -> list[tuple[str, str]]:
    named = (
        ("labelSelector", selectors.labels),
        ("fieldSelector", selectors.fields),
    )
    return [(name, value) for name, value in named if value]


def watch_request(command: Watch) -> ApiRequest:
    """The request of a watch; bookmarks keep its version fresh while it is idle."""
    since = (("resourceVersion", command.version),) if command.version else _INITIAL
    query = (
        ("watch", "true"),
        *since,
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(command.timeout_seconds)),
        *_selector_query(command.selectors),
    )
    path = path_of(command.resource, command.namespace)
    accept = PARTIAL if command.metadata_only else JSON
    return ApiRequest("GET", path, query, accept=accept)


# Without a version: the present objects, read as consistently as a list.
_INITIAL = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))


def log_request(command: FollowLog) -> ApiRequest:
    """The request of a log; each line of the log has its time."""
    query = [("container", command.container), ("timestamps", "true")]
    if command.follows:
        query.append(("follow", "true"))
    if command.previous:
        query.append(("previous", "true"))
    if command.tail is not None:
        query.append(("tailLines", str(command.tail)))
    # The API server only passes whole seconds on.
    if command.after is not None:
        since = command.after.second * NANOS
        query.append(("sinceTime", text_of_time(since)))
    elif command.moment is not None:
        query.append(("sinceTime", text_of_time(command.moment)))
    elif command.seconds is not None:
        query.append(("sinceSeconds", str(command.seconds)))
    path = path_of(PODS, command.namespace, command.name, "log")
    return ApiRequest("GET", path, tuple(query), accept="*/*")


def fetch_request(command: Fetch) -> ApiRequest:
    """The request of a document of the API server."""
    accept, seconds = command.accept, command.seconds
    return ApiRequest("GET", command.path, accept=accept, seconds=seconds)
