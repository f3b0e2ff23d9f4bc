"""Watches: the events at the beginning, and the events that follow.

A stream is `backlog`, then the result of `seen_by` for each later event, and now and
then a `bookmark`. It ends when the kind is no longer served, and when the spec of its
definition is written. `presented` makes tables, or metadata alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from fnop.effects.structs import replace
from fnop.interpreters.cluster.access.rbac import authorize
from fnop.interpreters.cluster.api.read import (
    get,
    is_false,
    selected,
    selection_by,
    too_large,
    unparsed_version,
    watch_faults,
    whole_number,
)
from fnop.interpreters.cluster.kinds.conversion import served
from fnop.interpreters.cluster.kinds.kinds import Kind, Registry, storage_of
from fnop.interpreters.cluster.output.negotiation import (
    form_of,
    presented_event,
    shaped,
)
from fnop.interpreters.cluster.requests.request import Call, call_of, route_of
from fnop.interpreters.cluster.requests.selectors import (
    Selection,
    field_clauses,
    field_selection,
    label_clauses,
)
from fnop.interpreters.cluster.storage.store import Cluster, StoredEvent, events_after
from fnop.interpreters.cluster.values.objects import Object, Resource
from fnop.interpreters.cluster.values.status import (
    Refusal,
    bad_request,
    expired,
    failure,
    internal,
    method_not_allowed,
    no_such_path,
)
from fnop.interpreters.runtime.protocol import (
    INITIAL_EVENTS_END,
    JSON,
    ApiRequest,
    ApiResponse,
)

__all__ = [
    "backlog",
    "bookmark",
    "is_served",
    "is_watch",
    "presented",
    "seen_by",
    "selects",
]


# ------------------------------------------------------------------- addresses


class Address(NamedTuple):
    """The path of a resource, and whether it had the old prefix of watches."""

    path: str
    always: bool = False  # a watch even without the parameter


@lru_cache(maxsize=4096)
def _address(path: str) -> Address:
    """A path without the old prefix of watches.

    >>> _address("/api/v1/watch/namespaces/n/pods/p")
    Address(path='/api/v1/namespaces/n/pods/p', always=True)
    """
    parts = path.strip("/").split("/")
    at = 2 if parts[0] == "api" else 3
    if parts[0] not in ("api", "apis") or parts[at : at + 1] != ["watch"]:
        return Address(path)
    rest = [*parts[:at], *parts[at + 1 :]]
    return Address(f"/{'/'.join(rest)}", always=len(rest) > at)


def is_watch(request: ApiRequest) -> bool:
    """Whether a request opens a stream.

    The parameter `watch` matters for lists only: the GET of one object ignores it.
    """
    if request.method != "GET":
        return False
    path, always = _address(request.path)
    if always:
        return True
    asked = _options(request).get("watch")
    if asked is None or is_false(asked):
        return False
    route = route_of(path)
    return route is not None and route.name is None


def _options(request: ApiRequest) -> dict[str, str]:
    """The query parameters; the first value of a name counts."""
    return dict(reversed(request.query))


# --------------------------------------------------------------------- opening


def backlog(
    cluster: Cluster, request: ApiRequest, now: float = 0.0
) -> ApiResponse | tuple[StoredEvent, ...]:
    """Open a watch: the events since its resourceVersion, or an error.

    Without a resourceVersion, or with "0", the present objects come first as if they
    had just been added. An event of type ERROR ends the stream. It also reports a
    version that is no longer kept, after HTTP 200.
    """
    try:
        authorize(cluster, request)
        return _backlog(cluster, request, now)
    except Refusal as refusal:
        return refusal.response


def _call_of_request(cluster: Cluster, request: ApiRequest, now: float) -> Call:
    path = _address(request.path).path
    addressed = request if path == request.path else replace(request, path=path)
    call = call_of(cluster.registry, addressed, now)
    if call is None:
        raise no_such_path()
    if request.method != "GET":
        raise method_not_allowed()
    return call


def _backlog(
    cluster: Cluster, request: ApiRequest, now: float
) -> ApiResponse | tuple[StoredEvent, ...]:
    call = _call_of_request(cluster, request, now)
    form = form_of(call.kind, request.accept, is_watch=True)
    if call.route.name is not None and not _address(request.path).always:
        return shaped(call, form, get(cluster, call))
    selection = selection_by(call, watch_faults)
    _check_name(call)
    version = call.query.get("resourceVersion") or ""
    number = whole_number(version or "0")
    if number is None:
        raise internal(unparsed_version(version), bare=True)
    try:
        found = _first_events(cluster, call, selection, number)
    except Refusal as refusal:
        body = refusal.response.body
        found = [StoredEvent("ERROR", call.kind.resource, None, body, cluster.version)]
    if not form.kind:
        return tuple(found)
    pages = (
        presented_event(call, form, event, headed=index == 0)
        for index, event in enumerate(found)
    )
    return tuple(event for event in pages if event is not None)


def _check_name(call: Call) -> None:
    """Refuse a field selector that names another object than the path."""
    fields = field_clauses(call.query.get("fieldSelector", ""))
    if call.route.name is None or not fields or isinstance(fields, str):
        return
    names = [f.value for f in fields if f.name == "metadata.name" and f.equal]
    if names[:1] != [call.route.name]:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")


def _first_events(
    cluster: Cluster, call: Call, selection: Selection, version: int
) -> list[StoredEvent]:
    """The first events of a stream; a `Refusal` becomes its only event."""
    if call.query.get("timeoutSeconds", "").startswith("-"):
        raise failure(500, "InternalError", "context deadline exceeded")
    initial = call.query.get("sendInitialEvents")
    wants_state = initial is not None and not is_false(initial)
    if wants_state and version > cluster.version:
        raise too_large(version, cluster.version)
    if version == 0 or wants_state:
        found = (
            []
            if initial is not None and not wants_state
            else _present_as_events(cluster, call)
        )
        if wants_state and _allows_bookmarks(call.query):
            found.append(_bookmark(cluster, call, {INITIAL_EVENTS_END: "true"}))
        return found
    missed = events_after(cluster, version)
    if missed is None:
        floor = cluster.history.floor
        raise expired(f"too old resource version: {version} ({floor})")
    view = _view(call.request.path, call.request.query)
    assert view is not None  # it has been checked
    view = view._replace(selection=selection, name=call.route.name, since=0)
    seen = (_event_in_view(view, event, cluster.registry) for event in missed)
    return [event for event in seen if event is not None]


def _present_as_events(cluster: Cluster, call: Call) -> list[StoredEvent]:
    return [
        StoredEvent(
            "ADDED",
            call.kind.resource,
            key[0] or None,
            served(call.kind, obj),
            int(obj["metadata"]["resourceVersion"]),
        )
        for key, obj in selected(cluster, call)
        if call.route.name in (None, key[1])
    ]


# ------------------------------------------------------------------- bookmarks


def _allows_bookmarks(query: dict[str, str]) -> bool:
    asked = query.get("allowWatchBookmarks")
    return asked is not None and not is_false(asked)


def bookmark(
    cluster: Cluster, request: ApiRequest, now: float = 0.0
) -> StoredEvent | None:
    """The bookmark of a watch at this version, or None if it does not want one.

    Real servers send one every minute or so, and one before a stream's time is over. It
    is `presented` already.
    """
    if not _allows_bookmarks(_options(request)):
        return None
    try:
        call = _call_of_request(cluster, request, now)
        form = form_of(call.kind, request.accept, is_watch=True)
        event = _bookmark(cluster, call, {})
        return presented_event(call, form, event, headed=False)
    except Refusal:
        return None  # a watch that is refused, or has ended, gets none


def _bookmark(cluster: Cluster, call: Call, annotations: dict[str, str]) -> StoredEvent:
    metadata: dict[str, Any] = {"resourceVersion": str(cluster.version)}
    if annotations:
        metadata["annotations"] = annotations
    kind = call.kind
    head = {"kind": kind.kind, "apiVersion": kind.api_version}
    obj = {**head, "metadata": metadata}
    return StoredEvent("BOOKMARK", kind.resource, None, obj, cluster.version)


def is_served(
    cluster: Cluster, request: ApiRequest, opened: Cluster | None = None
) -> bool:
    """Whether an open watch still has the kind that it was `opened` for.

    The real server ends the streams of a definition when its spec is written, or when
    one of its versions is removed. They do not end while it is being deleted.
    """
    kind = _kind(cluster, request)
    before = kind if opened is None else _kind(opened, request)
    if kind is None or before is None:
        return False
    return kind is before or kind == replace(before, terminating=kind.terminating)


def _kind(cluster: Cluster, request: ApiRequest) -> Kind | None:
    try:
        return _call_of_request(cluster, request, 0.0).kind
    except Refusal:
        return None


# ------------------------------------------------------------------ following


class View(NamedTuple):
    """The objects that an open watch follows."""

    resource: Resource
    path: tuple[str, str, str]  # group, version, plural
    namespace: str | None
    name: str | None
    selection: Selection
    since: int  # changes up to this version are not shown


@lru_cache(maxsize=4096)
def _view(path: str, query: tuple[tuple[str, str], ...]) -> View | None:
    """The view of a request for a watch; None if the request is refused."""
    found, always = _address(path)
    route = route_of(found)
    named = dict(reversed(query))
    labels = label_clauses(named.get("labelSelector", ""))
    fields = field_clauses(named.get("fieldSelector", ""))
    if route is None or isinstance(labels, str) or isinstance(fields, str):
        return None
    group, version = route.group, route.version
    tests = field_selection(None, fields, (group, route.plural))
    return View(
        storage_of(group, route.plural),
        (group, version, route.plural),
        route.namespace,
        route.name if always else None,
        Selection(labels, tests),
        whole_number(named.get("resourceVersion") or "0") or 0,
    )


def seen_by(
    request: ApiRequest, event: StoredEvent, registry: Registry
) -> StoredEvent | None:
    """The event that an open watch shows for a later change, or None.

    A change that moves an object into the selection is an addition to it. One that
    moves it out is a deletion.
    """
    view = _view(request.path, request.query)
    return None if view is None else _event_in_view(view, event, registry)


def selects(request: ApiRequest, event: StoredEvent, registry: Registry) -> bool:
    """Whether an open watch of that request shows this later event."""
    return seen_by(request, event, registry) is not None


def presented(
    cluster: Cluster,
    request: ApiRequest,
    event: StoredEvent,
    now: float,
    *,
    headed: bool = False,
) -> StoredEvent | None:
    """An event of `seen_by` in the form that the watch's Accept header asks for.

    `headed` says that it is the first event of its stream: a table then names its
    columns. Return None if the event cannot be shown.
    """
    if request.accept == JSON:
        return event
    try:
        call = _call_of_request(cluster, request, now)
        form = form_of(call.kind, request.accept, is_watch=True)
        return presented_event(call, form, event, headed=headed)
    except Refusal:
        return None  # the kind is gone


def _event_in_view(
    view: View, event: StoredEvent, registry: Registry
) -> StoredEvent | None:
    resource, path, namespace, name, selection, since = view
    if event.resource != resource:
        return None
    if namespace is not None and event.namespace != namespace:
        return None
    if event.version <= since:
        return None
    if name is not None and event.object["metadata"]["name"] != name:
        return None
    found: StoredEvent | None = event
    if selection.labels or selection.fields:
        found = _event_in_selection(selection, event)
    asked = registry.by_path.get(path)
    if found is None or asked is None:
        return found
    obj = served(asked, found.object)
    return found if obj is found.object else replace(found, object=obj)


def _event_in_selection(selection: Selection, event: StoredEvent) -> StoredEvent | None:
    """The event as a change of the selection; None if the object is never in it."""
    before, after = event.previous, event.object
    is_in = event.type != "DELETED" and selection.holds(after)
    was_in = before is not None and selection.holds(before)
    if not is_in and not was_in:
        return None
    if is_in:
        kind = "MODIFIED" if was_in else "ADDED"
        return event if kind == event.type else replace(event, type=kind)
    assert before is not None, "the object was selected"
    # The object is shown as it was last selected, at the version of the change.
    shown = _with_version(before, event.version)
    return replace(event, type="DELETED", object=shown)


def _with_version(obj: Object, version: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
