"""Watches: what was missed, and what an open watch sees of later events."""

from __future__ import annotations

from dataclasses import replace

from fnop.interpreters.cluster.conversion import served
from fnop.interpreters.cluster.kinds import storage_of
from fnop.interpreters.cluster.rbac import authorize
from fnop.interpreters.cluster.read import selected
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
    authorize(cluster, request)
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
    seen = (_seen(call.route, selection, event) for event in missed)
    return tuple(event for event in seen if event is not None)


def _present(cluster: Cluster, call: Call) -> list[StoredEvent]:
    return [
        StoredEvent(
            "ADDED",
            call.kind.resource,
            key[0] or None,
            served(call.kind.api_version, obj),
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
    try:
        selection = selection_of(None, dict(request.query))
    except Refusal:
        return None  # a watch that is refused sees nothing
    return None if route is None else _seen(route, selection, event)


def selects(request: ApiRequest, event: StoredEvent) -> bool:
    """Whether an open watch of that request shows this later event."""
    return seen_by(request, event) is not None


def _seen(route: Route, selection: Selection, event: StoredEvent) -> StoredEvent | None:
    if event.resource != storage_of(route.group, route.plural):
        return None
    if route.namespace is not None and event.namespace != route.namespace:
        return None
    api_version = f"{route.group}/{route.version}" if route.group else route.version
    kind, obj = event.type, event.object
    if selection.labels or selection.fields:
        is_in = kind != "DELETED" and selection.holds(obj)
        was_in = event.previous is not None and selection.holds(event.previous)
        if not is_in and not was_in:
            return None
        kind = "DELETED" if not is_in else "MODIFIED" if was_in else "ADDED"
        if not is_in and event.previous is not None:
            # It is shown as it was last selected, at the version of the change.
            obj = _at_version(event.previous, event.version)
    obj = served(api_version, obj)
    if kind == event.type and obj is event.object:
        return event
    return replace(event, type=kind, object=obj)


def _at_version(obj: Object, version: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
