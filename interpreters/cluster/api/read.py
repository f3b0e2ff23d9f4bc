"""Get and list: the present state, an older one, and pages."""

from __future__ import annotations

import json
import posixpath
from base64 import b64decode, urlsafe_b64encode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from immutables import Map
from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster.kinds.conversion import served
from fnop.interpreters.cluster.kinds.crds import CRDS
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.requests.selectors import Selection, selection_of
from fnop.interpreters.cluster.schema.schema import Schema
from fnop.interpreters.cluster.storage.store import (
    Cluster,
    events_after,
    lookup,
    shelf,
    without,
)
from fnop.interpreters.cluster.values.numbers import query_integer, whole
from fnop.interpreters.cluster.values.objects import Key, Object
from fnop.interpreters.cluster.values.status import (
    Fault,
    Refusal,
    bad_request,
    expired,
    failure,
    internal,
    invalid,
    not_found,
    quoted,
)
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = [
    "get",
    "is_false",
    "list_body",
    "list_objects",
    "selected",
    "selection_by",
    "too_large",
    "unparsed_version",
    "watch_faults",
    "whole_number",
]

EXACT, NOT_OLDER = "Exact", "NotOlderThan"


def get(cluster: Cluster, call: Call) -> ApiResponse:
    """GET of one object.

    A resourceVersion asks for a state that is at least as new, which the present state
    is.
    """
    kind = call.kind
    if call.query and (version := call.query.get("resourceVersion")):
        number = whole_number(version)
        if number is None:
            raise internal(unparsed_version(version), bare=True)
        if number > cluster.version:
            raise too_large(number, cluster.version)
    obj = lookup(cluster, kind.resource, call.key)
    if obj is None:
        raise not_found(kind.group, kind.plural, call.route.name or "")
    return ApiResponse(200, served(kind, obj))


# ------------------------------------------------------------------- selecting


def selected(cluster: Cluster, call: Call) -> list[tuple[Key, Object]]:
    """The stored objects that a collection request selects, by key."""
    selection = selection_of(call.kind, call.query)
    objects = shelf(cluster, call.kind.resource)
    return _select_objects(call.route.namespace, selection, objects)


def _select_objects(
    namespace: str | None, selection: Selection, objects: Map[Key, Object]
) -> list[tuple[Key, Object]]:
    items: Iterable[tuple[Key, Object]] = objects.items()
    if namespace is not None:
        items = [item for item in items if item[0][0] == namespace]
    if selection.labels or selection.fields:
        items = [item for item in items if selection.holds(item[1])]
    return sorted(items, key=_place if namespace is None else _name)


def _place(item: tuple[Key, Object]) -> str:
    """The key of an object in etcd, which orders lists: "namespace/name"."""
    namespace, name = item[0]
    return f"{namespace}/{name}" if namespace else name


def _name(item: tuple[Key, Object]) -> str:
    """The sort key within one namespace."""
    return item[0][1]


def _objects_at(cluster: Cluster, kind: Kind, version: int) -> Map[Key, Object] | None:
    """The objects of a kind at a version; None if the history is too short."""
    resource = kind.resource
    later = events_after(cluster, version)
    if later is None:
        return None
    objects = shelf(cluster, resource)
    # Later changes are undone, the last one first.
    for event in reversed(later):
        if event.resource != resource:
            continue
        key = (event.namespace or "", event.object["metadata"]["name"])
        before = event.previous
        objects = without(objects, key) if before is None else objects.set(key, before)
    is_defined_anew = any(event.resource == CRDS for event in later)
    if kind.stored is not None and is_defined_anew:
        return _read_today(cluster, kind.stored, objects)
    return objects


def _read_today(
    cluster: Cluster, schema: Schema, objects: Map[Key, Object]
) -> Map[Key, Object]:
    """Objects of an older version, read through the present schema."""
    kept = events_after(cluster, cluster.history.floor) or ()
    stored = {event.version: event.object for event in kept}
    changed = objects.mutate()
    for key, obj in objects.items():
        written = int(obj["metadata"]["resourceVersion"])
        changed[key] = schema.filled(stored.get(written, obj))
    return changed.finish()


# --------------------------------------------------------------------- listing


class Page(Struct, frozen=True):
    """The part of a list that one request shows, and the version of the list."""

    version: int
    objects: Map[Key, Object]
    after: str = ""  # only keys from this one on
    limit: int = 0


def list_objects(cluster: Cluster, call: Call) -> ApiResponse:
    """GET of a collection, as a whole or in pages."""
    selection = selection_by(call, _list_faults)
    page = _page(cluster, call)
    found = _select_objects(call.route.namespace, selection, page.objects)
    if page.after:
        prefix = "" if call.route.namespace is None else f"{call.route.namespace}/"
        start = prefix + page.after
        found = [item for item in found if _place(item) >= start]
    shown = found[: page.limit] if page.limit else found
    metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
    left = len(found) - len(shown)
    is_full = 0 < page.limit == len(shown)
    if left or (is_full and _may_go_on(call, page, selection, shown[-1])):
        metadata["continue"] = _token(_next_key(call, shown[-1][0]), page.version)
        if not call.query.get("labelSelector") and not call.query.get("fieldSelector"):
            # The number of remaining items is known only if no selector is used.
            metadata["remainingItemCount"] = left
    body = list_body(cluster, call.kind, [obj for _, obj in shown])
    body["metadata"] = {**body["metadata"], **metadata}
    return ApiResponse(200, body)


def _may_go_on(
    call: Call, page: Page, selection: Selection, last: tuple[Key, Object]
) -> bool:
    """Whether a full page promises another one, even if that is empty.

    A server that has filled a page does not look for further selected objects: it is
    enough that there are further keys.
    """
    namespace = call.route.namespace
    if not (selection.labels or selection.fields) or _is_single(call, selection):
        return False
    return any(
        namespace in (None, item[0][0]) and _place(item) > _place(last)
        for item in page.objects.items()
    )


def _is_single(call: Call, selection: Selection) -> bool:
    """Whether a list reads only one key (SelectionPredicate.MatchesSingle)."""
    if call.query.get("continue"):
        return False
    if call.kind.namespaced and call.route.namespace is None:
        return False
    return any(
        test.equal and test.path == ("metadata", "name") for test in selection.fields
    )


def _page(cluster: Cluster, call: Call) -> Page:
    query, resource = call.query, call.kind.resource
    present = Page(cluster.version, shelf(cluster, resource))
    if not query:
        return present
    version, token = query.get("resourceVersion") or "", query.get("continue")
    # The watch cache, which answers for version 0, does not support pages.
    limit = 0 if version == "0" else max(0, query_integer(query.get("limit") or "0"))
    if token:
        if version not in ("", "0"):
            raise bad_request(
                "specifying resource version is not allowed when using continue"
            )
        return _continue_page(cluster, call, token, limit)
    if version in ("", "0"):
        return replace(present, limit=limit)
    number = whole_number(version)
    if number is None:
        raise bad_request(f"invalid resource version: {unparsed_version(version)}")
    if number > cluster.version:
        raise too_large(number, cluster.version)
    match = query.get("resourceVersionMatch")
    # A limit without a match asks for the exact version, as before matches existed.
    if match == NOT_OLDER or not (match or limit):
        return replace(present, limit=limit)
    objects = _objects_at(cluster, call.kind, number)
    if objects is None:
        raise expired("The resourceVersion for the provided list is too old.")
    return Page(number, objects, limit=limit)


def _continue_page(cluster: Cluster, call: Call, token: str, limit: int) -> Page:
    """A later page, at the version that the first one showed."""
    start, version = _parse_token(token)
    if version < 0:
        # A token that asks to go on at the present version, regardless of changes.
        objects = shelf(cluster, call.kind.resource)
        return Page(cluster.version, objects, start, limit)
    if version > cluster.version:
        raise too_large(version, cluster.version)
    kept = _objects_at(cluster, call.kind, version)
    if kept is None:
        refusal = expired(OLD_TOKEN)
        refusal.response.body["metadata"]["continue"] = _token(f"/{start}", -1)
        raise refusal
    return Page(version, kept, start, limit)


OLD_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue "
    "token in this response to retrieve the remainder of the results. Continuing with "
    "the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may "
    "show up in the list."
)


def _without_type(obj: Object) -> Object:
    """An item of a built-in list, without apiVersion and kind."""
    item = obj.copy()
    item.pop("apiVersion", None)
    item.pop("kind", None)
    return item


def list_body(cluster: Cluster, kind: Kind, objects: list[Object]) -> dict[str, Any]:
    """The list object that holds these objects of a kind."""
    metadata: dict[str, Any] = {"resourceVersion": str(cluster.version)}
    items = [served(kind, obj) for obj in objects]
    if kind.custom:
        metadata["continue"] = ""
    else:
        items = [_without_type(item) for item in items]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.list_kind,
        "metadata": metadata,
        "items": items,
    }


# --------------------------------------------------------------------- options


def is_false(text: str) -> bool:
    """Whether the API reads a boolean as false: "false" and "0"; all else is true.

    >>> [is_false(text) for text in ("FALSE", "0", "no", "")]
    [True, True, False, False]
    """
    return text == "0" or text.lower() == "false"


def whole_number(text: str) -> int | None:
    """A resource version, as strconv.ParseUint reads it.

    >>> whole_number("17"), whole_number("-1"), whole_number("x")
    (17, None, None)
    """
    if not (text.isascii() and text.isdecimal()):
        return None
    number = whole(text)
    return number if number < 2**64 else None


def unparsed_version(text: str) -> str:
    """The message about a resource version that is not a number."""
    why = "invalid syntax"
    if text.isascii() and text.isdecimal():
        why = "value out of range"
    return (
        f"resourceVersion: Invalid value: {quoted(text)}: "
        f"strconv.ParseUint: parsing {quoted(text)}: {why}"
    )


def _check_numbers(query: Mapping[str, str]) -> None:
    for name in ("timeoutSeconds", "limit"):
        if (text := query.get(name)) is not None:
            query_integer(text)


def selection_by(
    call: Call, faults_of: Callable[[Mapping[str, str]], list[Fault]]
) -> Selection:
    """Check the options of a list or watch and return its selectors.

    The order of the checks follows the real server. First come values that cannot be
    parsed, then combinations that are not allowed, then fields that the kind does not
    have.
    """
    if not call.query:
        return selection_of(call.kind, call.query)
    _check_numbers(call.query)
    selection_of(None, call.query)
    if faults := faults_of(call.query):
        raise invalid("meta.k8s.io", "ListOptions", "", faults)
    return selection_of(call.kind, call.query)


def _list_faults(query: Mapping[str, str]) -> list[Fault]:
    """The faults in the options of a list (ValidateListOptions)."""
    faults = []
    match = query.get("resourceVersionMatch")
    version = query.get("resourceVersion")
    if match:
        if not version:
            faults.append(
                _forbidden_match("is forbidden unless resourceVersion is provided")
            )
        if query.get("continue"):
            faults.append(_forbidden_match("is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER):
            faults.append(_unsupported_match(match, EXACT, NOT_OLDER, ""))
        if match == EXACT and version == "0":
            faults.append(
                _forbidden_match('"exact" is forbidden for resourceVersion "0"')
            )
    if "sendInitialEvents" in query:
        text = "Forbidden: sendInitialEvents is forbidden for list"
        faults.append(Fault("sendInitialEvents", "FieldValueForbidden", text))
    return faults


def watch_faults(query: Mapping[str, str]) -> list[Fault]:
    """The faults in the options of a watch (validateWatchOptions)."""
    faults = []
    match = query.get("resourceVersionMatch")
    is_asked = "sendInitialEvents" in query
    if is_asked and match != NOT_OLDER:
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        faults.append(_match_fault(f"Forbidden: {text}"))
    if match:
        if not is_asked:
            faults.append(
                _forbidden_match(
                    "is forbidden for watch unless sendInitialEvents is provided"
                )
            )
        if match != NOT_OLDER:
            faults.append(_unsupported_match(match, NOT_OLDER))
    if query.get("continue"):
        faults.append(_forbidden_match("is forbidden when continue is provided"))
    return faults


def _match_fault(message: str, reason: str = "FieldValueForbidden") -> Fault:
    return Fault("resourceVersionMatch", reason, message)


def _forbidden_match(why: str) -> Fault:
    return _match_fault(f"Forbidden: resourceVersionMatch {why}")


def _unsupported_match(match: str, *known: str) -> Fault:
    values = ", ".join(map(quoted, known))
    return _match_fault(
        f"Unsupported value: {quoted(match)}: supported values: {values}",
        "FieldValueNotSupported",
    )


def too_large(version: int, current: int) -> Refusal:
    """504: the version is in the future; the real server waits a while for it."""
    return failure(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {current}",
        {
            "causes": [
                {
                    "reason": "ResourceVersionTooLarge",
                    "message": "Too large resource version",
                }
            ],
            "retryAfterSeconds": 1,
        },
    )


# ---------------------------------------------------------------------- tokens


def _next_key(call: Call, last: Key) -> str:
    """The first key after `last`, in the form of continue tokens."""
    place = last[1] if call.route.namespace is not None else "/".join(last)
    return f"/{place.lstrip('/')}\0"


def _token(start: str, version: int) -> str:
    text = orjson.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return urlsafe_b64encode(text).decode().rstrip("=")


class Unusable(Exception):
    """A continue token cannot be read; the message says why."""


def _parse_token(token: str) -> tuple[str, int]:
    """The key at which a page begins, and the version of its list."""
    try:
        return _start_of_page(_decode_token(token))
    except Unusable as problem:
        text = f"invalid continue token: continue key is not valid: {problem}"
        raise bad_request(text) from None


BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def _decode_token(token: str) -> dict[str, Any]:
    strange = next((i for i, letter in enumerate(token) if letter not in BASE64), None)
    if strange is None and len(token) % 4 == 1:
        strange = len(token) - 1
    if strange is not None:
        raise Unusable(f"illegal base64 data at input byte {strange}")
    try:
        text = b64decode(token + "=" * (-len(token) % 4), altchars=b"-_")
        found = json.loads(text.decode(errors="replace"))
    except NoBase64:
        raise Unusable("illegal base64 data") from None
    except json.JSONDecodeError as problem:
        raise Unusable(_json_problem(problem)) from None
    except RecursionError:
        raise Unusable("exceeded max depth") from None
    if not isinstance(found, dict | None):
        raise Unusable(
            f"json: cannot unmarshal {_json_type(found)} into Go value of type "
            "storage.continueToken"
        )
    return found or {}


def _json_problem(problem: json.JSONDecodeError) -> str:
    """The message of Go's decoder about a continue token, in the cases that matter."""
    rest = problem.doc[problem.pos :]
    if not rest.strip():
        return "unexpected end of JSON input"
    return f"invalid character {_rune(rest[0])} looking for beginning of value"


def _rune(letter: str) -> str:
    return "'\\''" if letter == "'" else f"'{quoted(letter)[1:-1]}'"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    for type_, name in ((dict, "object"), (list, "array"), (str, "string")):
        if isinstance(value, type_):
            return name
    return "number"


def _start_of_page(found: dict[str, Any]) -> tuple[str, int]:
    version, start = found.get("rv") or 0, found.get("start") or ""
    form = found.get("v") or ""
    for name, value, type_, go in (
        ("v", form, str, "string"),
        ("rv", version, int, "int64"),
        ("start", start, str, "string"),
    ):
        if not isinstance(value, type_) or isinstance(value, bool):
            raise Unusable(
                f"json: cannot unmarshal {_json_type(value)} into Go struct field "
                f"continueToken.{name} of type {go}"
            )
    if form != "meta.k8s.io/v1":
        raise Unusable(f"server does not recognize this encoded version {form}")
    if version == 0:
        raise Unusable(
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        )
    if not start:
        raise Unusable("encoded start key empty (version meta.k8s.io/v1)")
    key = start if start.startswith("/") else f"/{start}"
    # A token must not lead out of the collection that the request addresses.
    if posixpath.normpath(key) != key:
        raise Unusable(start)
    return key[1:], version
