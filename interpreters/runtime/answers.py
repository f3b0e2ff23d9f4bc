"""The answers of an API server: outcomes of effects, pages of listings, watch lines.

Pure, and shared by every cluster, real or simulated: production runs what the simulator
exercises. A proxy may have sent an answer, so nothing in it is taken for granted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import orjson
from msgspec import Struct
from returns.result import Failure, Success

from fnop.core.api.resources import Resource
from fnop.core.seam.commands import ListPage
from fnop.core.seam.effect_rules import AnswerForm, rule_of
from fnop.core.seam.inputs import (
    Bookmark,
    ListDone,
    ListItem,
    StreamEnded,
    WatchEvent,
)
from fnop.core.values.body import Body
from fnop.core.values.errors import as_unicode
from fnop.core.values.merge import leaves
from fnop.effects import (
    Answer,
    Applied,
    Apply,
    Conflict,
    Create,
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
from fnop.effects.outcomes import TOO_LARGE
from fnop.effects.regexes import regex
from fnop.effects.values import canonical
from fnop.interpreters.runtime.protocol import INITIAL_EVENTS_END, ApiResponse

__all__ = [
    "BodyOf",
    "ListedPage",
    "is_denial",
    "is_object",
    "listed_page",
    "message_of",
    "outcome_of",
    "page_inputs",
    "refusal_of",
    "refused",
    "version_of",
    "watch_input",
    "with_kind",
]

# The server did not act on the request, and asks the client to try again.
_TRY_AGAIN = frozenset((408, 429, 503))
_CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))


# -------------------------------------------------------------------- listings


class ListedPage(Struct, frozen=True):
    """One page of a collection; a token means that more pages follow."""

    items: tuple[dict[str, Any], ...]
    version: str
    continue_token: str | None


def listed_page(body: Any) -> Success[ListedPage] | Failure[str]:
    """The page that a successful answer holds (Kubernetes API conventions: lists).

    Anything else is a failure: if it were taken for an empty list, all objects would
    count as deleted. Lists of kinds that are not stored, such as ComponentStatus, have
    no resourceVersion; it is "" then.

    >>> listed_page({"metadata": {"resourceVersion": "7"}, "items": None}).unwrap()
    ListedPage(items=(), version='7', continue_token=None)
    >>> listed_page({"kind": "AList", "metadata": {}, "items": []}).unwrap()
    ListedPage(items=(), version='', continue_token=None)
    >>> listed_page({"kind": "Status"}).failure()
    "no list: {'kind': 'Status'}"
    """
    version = "" if _is_unversioned_list(body) else version_of(body)
    if version is None or "items" not in body:
        return Failure(f"no list: {_excerpt_of(body)}")
    items = body["items"] or ()
    for item in items:
        if not is_object(item):
            return Failure(f"no object in a list: {_excerpt_of(item)}")
    token = body["metadata"].get("continue") or None
    return Success(ListedPage(tuple(items), version, token))


def _is_unversioned_list(body: Any) -> bool:
    """Whether the body is a list without a resourceVersion, by its kind."""
    if not isinstance(body, dict) or body.get("metadata") != {}:
        return False
    return str(body.get("kind")).endswith("List")


def with_kind(
    items: Iterable[dict[str, Any]], api_version: Any, kind: str
) -> Iterator[dict[str, Any]]:
    """The items of a listing as objects (Kubernetes API conventions: lists).

    A server omits `apiVersion` and `kind` in them, as all have the same. If only
    metadata is requested, these name the metadata form.

    >>> [*with_kind([{"metadata": {"name": "a"}}], "v1", "Pod")]
    [{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'a'}}]
    """
    head = {"apiVersion": api_version, "kind": kind}
    return (
        {**item, **head} if item.get("kind") == _PARTIAL else {**head, **item}
        for item in items
    )


BodyOf: TypeAlias = Callable[[Any, "bytes | None"], Body]


def page_inputs(
    command: ListPage,
    response: ApiResponse,
    *,
    as_bytes: bool = False,
    body_of: BodyOf = Body,
) -> Iterator[ListItem | ListDone | StreamEnded]:
    """The inputs that result from an answer to a page of a listing, one by one.

    With `as_bytes` each object is kept as JSON text, a fifth of the parsed size.
    `body_of` makes a body of an object and its text.
    """
    stream, resource = command.stream, command.resource
    if response.status != 200:
        yield refused(stream, response)
        return
    match listed_page(response.body):
        case Failure(problem):
            yield StreamEnded(stream, "undecodable", None, problem)
        case Success(page) if not page.version:
            problem = f"a list of no version cannot be followed: {resource.label}"
            yield StreamEnded(stream, "undecodable", None, problem)
        case Success(page):
            for item in with_kind(page.items, resource.api_version, resource.kind):
                text = _text_of(item) if as_bytes else None
                yield ListItem(stream, body_of(item, text))
            yield ListDone(stream, page.version, page.continue_token)


def _text_of(item: dict[str, Any]) -> bytes | None:
    """The JSON text of an object, in a copy of the exact size.

    None if it is nested deeper than the serializer supports: it is kept parsed.
    """
    try:
        return bytes(memoryview(orjson.dumps(item)))  # serializers over-allocate
    except TypeError:
        return None


_PARTIAL = "PartialObjectMetadata"


def _is_partial(found: Any) -> bool:
    return isinstance(found, dict) and found.get("kind") == _PARTIAL


# --------------------------------------------------------------------- watches

StreamInput: TypeAlias = WatchEvent | ListItem | ListDone | Bookmark | StreamEnded


def watch_input(
    stream: int,
    type: str,
    found: Any,
    raw: bytes | None = None,
    resource: Resource | None = None,
    *,
    initial: bool = False,
    body_of: BodyOf = Body,
) -> StreamInput:
    """The input for a line of a watch: its type, its object, the object's text.

    The `initial` lines are the items of a list, up to a bookmark that ends it
    (Kubernetes: streaming lists).

    A line of type ERROR carries the Status that ends the watch. Its code is the code
    that an answer would have had; 410 means that the server no longer keeps the version
    to resume from. Metadata alone is reported as an object of the `resource`. `body_of`
    makes a body of an object and its text.

    >>> status = {"kind": "Status", "code": 410, "message": "too old"}
    >>> end = watch_input(1, "ERROR", status)
    >>> end.reason, end.status, end.message
    ('refused', 410, 'too old')
    """
    if resource is not None and type in _CHANGES and _is_partial(found):
        (found,) = with_kind((found,), resource.api_version, resource.kind)
        raw = None if raw is None else _text_of(found)
    if type in _CHANGES and is_object(found):
        if initial and type != "DELETED":
            return ListItem(stream, body_of(found, raw))
        return WatchEvent(stream, type, body_of(found, raw))
    if type == "BOOKMARK" and (version := version_of(found)):
        if initial and _ends_initial_events(found):
            return ListDone(stream, version)
        return Bookmark(stream, version)
    if type == "ERROR":
        code = found.get("code") if isinstance(found, dict) else None
        known = code if isinstance(code, int) else None
        return StreamEnded(stream, "refused", known, _message_of_status(found))
    problem = f"no watch event: {type} of {_excerpt_of(found)}"
    return StreamEnded(stream, "undecodable", None, as_unicode(problem))


def _ends_initial_events(bookmark: dict[str, Any]) -> bool:
    annotations = bookmark["metadata"].get("annotations")
    return isinstance(annotations, dict) and INITIAL_EVENTS_END in annotations


def refused(stream: int, response: ApiResponse) -> StreamEnded:
    """The end of a listing or a watch that the server answers with an HTTP error."""
    status, advice = response.status, response.retry_after_seconds
    return StreamEnded(stream, "refused", status, message_of(response), advice)


# --------------------------------------------------------------------- objects


def version_of(value: Any) -> str | None:
    """The resourceVersion of an object, a list or a bookmark; None without one.

    >>> version_of({"metadata": {"resourceVersion": "7"}}), version_of(None)
    ('7', None)
    """
    meta = value.get("metadata") if isinstance(value, dict) else None
    version = meta.get("resourceVersion") if isinstance(meta, dict) else None
    return version if version and isinstance(version, str) else None


def is_object(value: Any) -> bool:
    """Whether a value is a Kubernetes object, with at least a version and a name."""
    if version_of(value) is None:
        return False
    name = value["metadata"].get("name")
    return bool(name) and isinstance(name, str)


def _excerpt_of(value: Any) -> str:
    return as_unicode(str(value)[:100])


# -------------------------------------------------------------------- outcomes


def outcome_of(effect: Effect | None, response: ApiResponse) -> Outcome:
    """The outcome that a response means; for a fetched document `effect` is None."""
    if not 200 <= response.status < 300:
        return _outcome_of_error(effect, response)
    body = response.body
    if not _can_answer(effect, body):
        # A proxy has answered, or a part of the server.
        return Unknown(f"the answer has another form: {str(body)[:100]}")
    return _outcome_of_success(effect, body)


def _outcome_of_error(effect: Effect | None, response: ApiResponse) -> Outcome:
    """The outcome of an HTTP error, by its status and by the words of its message."""
    status, body = response.status, response.body
    message, reason = message_of(response), _reason_of_status(body)
    if any(text in message for text in TOO_LARGE):
        message += _words_for_largest(effect)
    if is_denial(body):
        return Refused(status, message + _EXEMPT, reason)
    if status in (404, 410):
        return Missing(message, unserved=not _names_object(body))
    if status == 409:
        managers = _managers_of(body) if isinstance(effect, Apply) else ()
        return Conflict(message, reason or "Conflict", managers)
    if status in _TRY_AGAIN or (status == 401 and effect is not None):
        # 401: credentials are renewed; no handler fails because of that.
        return Unreachable(message, response.retry_after_seconds)
    if status == 500 and _exceeds_limit(message):
        return Refused(413, message, "RequestEntityTooLarge")
    if _UNCALLED in message:
        return Unreachable(message, response.retry_after_seconds)  # nothing written
    if status >= 500:
        # The server may have failed before or after it wrote.
        return Unknown(message)
    if _REJECTED in message:
        message += _words_for_operations(effect)
    return Refused(status, message, reason)


# A phrase of k8s.io/apiserver/pkg/admission/plugin/webhook. A webhook chooses the code
# and the reason of its denial; the API server writes the beginning of the message.
_DENIAL = regex(r'admission webhook "[^"]*" denied the request')
# A webhook whose failure must not be ignored has not answered.
_UNCALLED = "failed calling webhook"
_EXEMPT = "; if the write is this operator's own, let that webhook exempt its account"


def is_denial(body: Any) -> bool:
    """Whether an error is an admission webhook's denial of a write.

    Its code proves nothing. With 401 the credentials may be right, and with 404 nothing
    is missing. With 409 there is no conflict, and with 500 nothing has been written.

    >>> is_denial({"code": 401, "message": 'admission webhook "x" denied the request'})
    True
    >>> is_denial({"code": 401, "reason": "Unauthorized", "message": "Unauthorized"})
    False
    """
    message = body.get("message") if isinstance(body, dict) else None
    return isinstance(message, str) and _DENIAL.match(message) is not None


def _words_for_largest(effect: Effect | None) -> str:
    """The end of a sentence that names the largest field of a write.

    >>> _words_for_largest(Patch(merge={"status": {"report": "x" * 2000, "size": 1}}))
    '; the largest field is status.report, of 2,002 bytes'
    """
    match effect:
        case Patch(merge=dict() as written):
            pass
        case Apply(manifest=written) | Create(manifest=written):
            pass
        case _:
            return ""
    sizes: dict[str, int] = {}
    for path in leaves(written):
        value = written
        for name in path:
            value = value[name]
        sizes[".".join(path)] = len(canonical(value))
    field = max(sizes, key=lambda each: sizes[each])
    return f"; the largest field is {field}, of {sizes[field]:,} bytes"


# API servers say no more than this about a JSON patch that cannot be applied.
_REJECTED = "the server rejected our request due to an error in our request"


def _words_for_operations(effect: Effect | None) -> str:
    """The end of a sentence that lists the operations of a JSON patch.

    >>> step = {"op": "test", "path": "/spec/size", "value": 1}
    >>> _words_for_operations(Patch(json=[step]))
    ': one of its operations fails, test /spec/size'
    """
    if not isinstance(effect, Patch) or not effect.json:
        return ""
    steps = [f"{each.get('op')} {each.get('path')}" for each in effect.json]
    return f": one of its operations fails, {', '.join(steps[:9])}"


def _names_object(body: Any) -> bool:
    """Whether an error is about an object, and not about a path that is not served.

    >>> _names_object({"details": {"name": "a", "kind": "pods"}}), _names_object("404")
    (True, False)
    """
    details = body.get("details") if isinstance(body, dict) else None
    return isinstance(details, dict) and bool(details.get("name"))


def _can_answer(effect: Effect | None, body: Any) -> bool:
    """Whether a body can be an answer to the effect, as far as it shows."""
    if effect is None:
        return True
    if not isinstance(body, dict):
        return False
    if body.get("kind") == "Status" and body.get("status") == "Failure":
        return False  # regardless of the HTTP status
    match effect:
        case List():
            return "items" in body
        case Patch() | Apply():
            return is_object(body)
        case Get():
            return isinstance(body.get("metadata"), dict)
        case _:
            return "kind" in body


def _outcome_of_success(effect: Effect | None, body: Any) -> Outcome:
    form = None if effect is None else rule_of(effect).answer
    if form is AnswerForm.OBJECTS:
        kind = str(body.get("kind") or "").removesuffix("List")
        items = body.get("items") or ()
        return Answer([*with_kind(items, body.get("apiVersion"), kind)])
    if form is AnswerForm.EXISTENCE and body.get("kind") == "Status":
        return Applied(None)
    return Applied(body)


# The errors of etcd, and of the server's etcd client, for more than 1.5 MiB and 2 MiB:
# another attempt would fail, too.
_TOO_LARGE = (
    "etcdserver: request is too large",
    "code = ResourceExhausted desc = trying to send message larger than max",
)


def _exceeds_limit(message: str) -> bool:
    return any(text in message for text in _TOO_LARGE)


# Go quotes the names in causes.
_CONFLICTING = regex(r'conflict with "((?:[^"\\]|\\.)*)"')


def _managers_of(body: Any) -> tuple[str, ...]:
    """The field managers with which a server-side apply conflicts, if it names them.

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


# ---------------------------------------------------------------------- errors


def message_of(response: ApiResponse) -> str:
    """The message of an error: the message of its `Status`, or the HTTP status.

    Long values that the message repeats, such as the whole object, are cut to their
    beginning (Kubernetes: field.Invalid). The message is logged, and stored.

    >>> message_of(ApiResponse(403, {"message": "no"}))
    'no'
    >>> message_of(ApiResponse(502, None))
    'HTTP status 502'
    """
    return _message_of_status(response.body) or f"HTTP status {response.status}"


def refusal_of(manifest: Mapping[str, Any], response: ApiResponse) -> str:
    """A sentence about a manifest that the API server has refused, with the remedy.

    >>> found = ApiResponse(404, {"message": "gone", "details": {"kind": "namespaces"}})
    >>> refusal_of({"kind": "Pod", "metadata": {"name": "a"}}, found)
    'Pod a is refused: gone; add its Namespace to the manifests'
    """
    meta = manifest.get("metadata") or {}
    name = meta.get("name") or meta.get("generateName")
    found = f"{manifest['kind']} {name} is refused: {message_of(response)}"
    details = response.body.get("details") if isinstance(response.body, dict) else None
    if response.status == 404 and (details or {}).get("kind") == "namespaces":
        return f"{found}; add its Namespace to the manifests"
    return found


def _message_of_status(body: Any) -> str:
    """The message of a `Status`, or ""."""
    message = str(body.get("message") or "") if isinstance(body, dict) else ""
    return _LONG_VALUE.sub(r'\1..."', message)


def _reason_of_status(body: Any) -> str:
    return str(body.get("reason") or "") if isinstance(body, dict) else ""


# A Go-quoted value of more than 200 characters; 60 of them are kept.
_SIGN = r'(?:[^"\\]|\\.)'
_LONG_VALUE = regex(rf'(Invalid value: "{_SIGN}{{60}}){_SIGN}{{140,}}"', re.DOTALL)
