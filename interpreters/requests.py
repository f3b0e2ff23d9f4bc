"""Translation of commands to API requests, and of API responses to outcomes.

Pure, and shared by every cluster, real or simulated: what the simulator
exercises is what production runs.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from fnop.core.api.resources import Selectors, path_of
from fnop.core.seam.commands import Fetch, ListPage, Perform, Watch
from fnop.effects import (
    Answer,
    Applied,
    Apply,
    Conflict,
    Create,
    Delete,
    Effect,
    Get,
    List,
    Missing,
    Outcome,
    Patch,
    Refused,
    Unknown,
    Unreachable,
)
from fnop.interpreters.protocol import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
)

__all__ = [
    "ListedPage",
    "is_object",
    "list_request",
    "listed_page",
    "outcome_of",
    "request_for",
    "version_of",
    "watch_request",
]

# The server did not act on the request, and says to try again.
_TRY_AGAIN = frozenset((408, 429, 503))


def request_for(command: Perform, manager: str) -> ApiRequest:
    """The request of an effect that speaks to the API server.

    `manager` is the operator's name in managed fields.
    """
    resource, name = command.resource, command.name
    assert resource is not None, "only effects with an address become requests"
    writer = (("fieldManager", manager),)
    match command.effect:
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
        case effect:
            raise AssertionError(f"{effect.kind} is no request to the API server")


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
    query += _selected(command.selectors)
    path = path_of(command.resource, command.namespace)
    return ApiRequest("GET", path, tuple(query))


def _selected(selectors: Selectors) -> list[tuple[str, str]]:
    named = (
        ("labelSelector", selectors.labels),
        ("fieldSelector", selectors.fields),
    )
    return [(name, value) for name, value in named if value]


class ListedPage(NamedTuple):
    """One page of a collection; with a token there are more."""

    items: tuple[dict[str, Any], ...]
    version: str
    continue_token: str | None


def listed_page(body: Any) -> ListedPage:
    """The page that a successful answer holds (Kubernetes API conventions: lists).

    Raises `ValueError` for anything else: what is no list must not be taken for an
    empty one, since all objects would count as deleted.

    >>> listed_page({"metadata": {"resourceVersion": "7"}, "items": None})
    ListedPage(items=(), version='7', continue_token=None)
    """
    version = version_of(body)
    if version is None or "items" not in body:
        raise ValueError(f"no list: {str(body)[:100]}")
    items = body["items"] or ()
    for item in items:
        if not is_object(item):
            raise ValueError(f"no object in a list: {str(item)[:100]}")
    return ListedPage(tuple(items), version, body["metadata"].get("continue") or None)


def version_of(value: Any) -> str | None:
    """The resourceVersion of an object, a list or a bookmark; None where there is none.

    >>> version_of({"metadata": {"resourceVersion": "7"}}), version_of(None)
    ('7', None)
    """
    meta = value.get("metadata") if isinstance(value, dict) else None
    version = meta.get("resourceVersion") if isinstance(meta, dict) else None
    return version if version and isinstance(version, str) else None


def is_object(value: Any) -> bool:
    """Whether it is a Kubernetes object, which has a version and a name at least."""
    if version_of(value) is None:
        return False
    name = value["metadata"].get("name")
    return bool(name) and isinstance(name, str)


def watch_request(command: Watch) -> ApiRequest:
    """The request of a watch; bookmarks keep its version fresh while it is idle."""
    query = (
        ("watch", "true"),
        ("resourceVersion", command.version),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(command.timeout_seconds)),
        *_selected(command.selectors),
    )
    return ApiRequest("GET", path_of(command.resource, command.namespace), query)


def fetch_request(command: Fetch) -> ApiRequest:
    """The request of a document of the API server."""
    accept, seconds = command.accept, command.seconds
    return ApiRequest("GET", command.path, accept=accept, seconds=seconds)


def outcome_of(effect: Effect | None, response: ApiResponse) -> Outcome:
    """The outcome that a response means; `effect` None is a fetched document."""
    status, body = response.status, response.body
    if 200 <= status < 300 and not _can_answer(effect, body):
        # Something in between has answered, or half of the server.
        return Unknown(f"the answer has another form: {str(body)[:100]}")
    if 200 <= status < 300:
        return _success(effect, body)
    message, reason = message_of(response)
    if status in (404, 410):
        return Missing(message, unserved=not _names_object(body))
    if status == 409:
        managers = _managers_of(body) if isinstance(effect, Apply) else ()
        return Conflict(message, reason or "Conflict", managers)
    if status in _TRY_AGAIN or (status == 401 and effect is not None):
        # 401: credentials are renewed; no handler has failed because of that.
        return Unreachable(message, response.retry_after_seconds)
    if status == 500 and any(text in message for text in _TOO_LARGE):
        return Refused(413, message, "RequestEntityTooLarge")
    if status >= 500:
        # It may have failed before or after it wrote.
        return Unknown(message)
    return Refused(status, message, reason)


def _names_object(body: Any) -> bool:
    """Whether an error is about an object; that of a path that is not served is not.

    >>> _names_object({"details": {"name": "a", "kind": "pods"}}), _names_object("404")
    (True, False)
    """
    details = body.get("details") if isinstance(body, dict) else None
    return isinstance(details, dict) and bool(details.get("name"))


def _can_answer(effect: Effect | None, body: Any) -> bool:
    """Whether a body is what the effect asks for, as far as can be told."""
    if effect is None:
        return True
    if not isinstance(body, dict):
        return False
    if body.get("kind") == "Status" and body.get("status") == "Failure":
        return False  # whatever the HTTP status says
    match effect:
        case List():
            return "items" in body
        case Patch() | Apply():
            return is_object(body)
        case Get():
            return isinstance(body.get("metadata"), dict)
        case _:
            return "kind" in body


def _success(effect: Effect | None, body: Any) -> Outcome:
    if isinstance(effect, List):
        kind = str(body.get("kind") or "").removesuffix("List")
        version = body.get("apiVersion")
        items = body.get("items") or []
        # Items of a listing come without their kind (API conventions: lists).
        return Answer([{"apiVersion": version, "kind": kind, **item} for item in items])
    if isinstance(effect, Delete) and body.get("kind") == "Status":
        return Applied(None)
    return Applied(body)


# The errors of etcd, and of the server's client of it, for more than 1.5 MiB, and 2:
# another attempt would fail, too.
_TOO_LARGE = (
    "etcdserver: request is too large",
    "code = ResourceExhausted desc = trying to send message larger than max",
)
# Names in causes are quoted as Go does it.
_CONFLICTING = re.compile(r'conflict with "((?:[^"\\]|\\.)*)"')


def _managers_of(body: Any) -> tuple[str, ...]:
    """The field managers with which a server-side apply conflicts, if they are told.

    >>> cause = {"message": 'conflict with "kubectl" using v1', "field": ".data.a"}
    >>> _managers_of({"details": {"causes": [cause, cause]}})
    ('kubectl',)
    """
    details = body.get("details") if isinstance(body, dict) else None
    causes = details.get("causes") if isinstance(details, dict) else None
    messages = [
        str(cause.get("message")) if isinstance(cause, dict) else ""
        for cause in (causes if isinstance(causes, list) else ())
    ]
    found = [_CONFLICTING.match(message) for message in messages]
    if None in found:
        return ()
    return tuple(sorted({match[1] for match in found if match is not None}))


def message_of(response: ApiResponse) -> tuple[str, str]:
    """The message and the reason of an error's `Status`.

    Of a long value that the message repeats, such as the whole object (Kubernetes:
    field.Invalid), only the beginning is left: the message is logged, and stored.
    """
    body = response.body if isinstance(response.body, dict) else {}
    message = str(body.get("message") or f"HTTP status {response.status}")
    return _LONG_VALUE.sub(r'\1..."', message), str(body.get("reason") or "")


# A value in quotes of Go, of more than 200 signs; what is kept are 60 of them.
_SIGN = r'(?:[^"\\]|\\.)'
_LONG_VALUE = re.compile(rf'(Invalid value: "{_SIGN}{{60}}){_SIGN}{{140,}}"', re.DOTALL)
