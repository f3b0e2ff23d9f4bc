"""Watches: what was missed, and what an open watch sees of later events."""

from __future__ import annotations

from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.read import selected, served
from fnop.interpreters.cluster.request import Call, Route, call_of, route_of
from fnop.interpreters.cluster.selectors import Selection, selection_of
from fnop.interpreters.cluster.status import (
    Refusal,
    expired,
    internal,
    method_not_allowed,
    no_such_path,
)
from fnop.interpreters.cluster.store import (
    Cluster,
    Object,
    StoredEvent,
    events_after,
)
from fnop.interpreters.protocol import ApiRequest, ApiResponse

__all__ = ["backlog", "seen_by", "selects"]


def backlog(
    cluster: Cluster, request: ApiRequest
) -> ApiResponse | tuple[StoredEvent, ...]:
    """Open a watch: the events since its resourceVersion, or an error.

    Without a resourceVersion, or with "0", the present objects come first as
    if they had just been added.
    """
    try:
        return _backlog(cluster, request)
    except Refusal as refusal:
        return refusal.response


def _backlog(cluster: Cluster, request: ApiRequest) -> tuple[StoredEvent, ...]:
    call = call_of(cluster.registry, request, 0.0)
    if call is None:
        raise no_such_path()
    if request.method != "GET":
        raise method_not_allowed()
    selection = selection_of(call.kind, call.query)
    version = call.query.get("resourceVersion") or "0"
    if not version.isdecimal():
        raise internal(
            f'resourceVersion: Invalid value: "{version}": '
            f'strconv.ParseUint: parsing "{version}": invalid syntax',
            bare=True,
        )
    if version == "0":
        return tuple(_present(cluster, call))
    missed = events_after(cluster, int(version))
    if missed is None:
        floor = cluster.history.floor
        raise expired(f"too old resource version: {version} ({floor})")
    seen = (_seen(call.route, call.kind, selection, event) for event in missed)
    return tuple(event for event in seen if event is not None)


def _present(cluster: Cluster, call: Call) -> list[StoredEvent]:
    return [
        StoredEvent(
            "ADDED",
            call.kind.resource,
            key[0] or None,
            served(call.kind, obj),
            int(obj["metadata"]["resourceVersion"]),
        )
        for key, obj in selected(cluster, call)
    ]


def seen_by(request: ApiRequest, event: StoredEvent) -> StoredEvent | None:
    """What an open watch shows of a later event, if anything.

    A change that moves an object into the selection is an addition to it, one
    that moves it out a deletion.
    """
    route = route_of(request.path)
    if route is None:
        return None
    query = dict(request.query)
    return _seen(route, None, selection_of(None, query), event)


def selects(request: ApiRequest, event: StoredEvent) -> bool:
    """Whether an open watch of that request shows this later event."""
    return seen_by(request, event) is not None


def _seen(
    route: Route, kind: Kind | None, selection: Selection, event: StoredEvent
) -> StoredEvent | None:
    if event.resource != (route.group, route.plural):
        return None
    if route.namespace is not None and event.namespace != route.namespace:
        return None
    version = f"{route.group}/{route.version}" if route.group else route.version
    if not selection.labels and not selection.fields:
        return _versioned(event, version)
    is_in = event.type != "DELETED" and selection.holds(event.object)
    was_in = event.previous is not None and selection.holds(event.previous)
    if is_in:
        kind_of_event = "MODIFIED" if was_in else "ADDED"
        shown = event.object
    elif was_in and event.previous is not None:
        kind_of_event = "DELETED"
        shown = _at_version(event.previous, event.version)
    else:
        return None
    return _versioned(
        StoredEvent(
            kind_of_event, event.resource, event.namespace, shown, event.version
        ),
        version,
    )


def _at_version(obj: Object, version: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}


def _versioned(event: StoredEvent, api_version: str) -> StoredEvent:
    if event.object["apiVersion"] == api_version:
        return event
    shown = {**event.object, "apiVersion": api_version}
    return StoredEvent(
        event.type,
        event.resource,
        event.namespace,
        shown,
        event.version,
        event.previous,
    )
