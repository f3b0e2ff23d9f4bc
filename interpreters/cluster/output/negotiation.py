"""Content negotiation by the header Accept.

Objects come unchanged, as rows of a `Table`, or as their metadata alone. YAML is the
same answer in another notation: the code that writes the body checks `wants_yaml`.
Protobuf is not supported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.output.table import cells_of, columns_of, conditions_of
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.storage.store import StoredEvent
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import (
    Refusal,
    bad_request,
    failure,
    quoted,
)
from fnop.interpreters.runtime.protocol import JSON, ApiResponse

__all__ = [
    "PLAIN",
    "Form",
    "discovery_form",
    "form_of",
    "is_plain",
    "negotiated",
    "not_acceptable",
    "presented_event",
    "router_refusal",
    "shaped",
    "wants_yaml",
]


class Form(Struct, frozen=True):
    """The kind as which an object is shown ("": its own), and the notation."""

    kind: str = ""
    version: str = ""
    yaml: bool = False

    @property
    def api_version(self) -> str:
        return f"meta.k8s.io/{self.version}"


PLAIN = Form()

YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
OFFERED = (JSON, YAML)
TABLE = "Table"
PARTIAL, PARTIAL_LIST = "PartialObjectMetadata", "PartialObjectMetadataList"


class Clause(Struct, frozen=True):
    """One part of an Accept header."""

    media: str
    parameters: dict[str, str]

    @property
    def target(self) -> tuple[str, str, str]:
        """The kind, group and version as which an object must be shown."""
        of = self.parameters.get
        return of("as", ""), of("g", ""), of("v", "")


def _clauses(accept: str) -> list[Clause]:
    """The clauses by quality; among equals, the exact ones first."""
    found = []
    for text in (accept or "*/*").split(","):
        media, *parameters = (part.strip() for part in text.split(";"))
        pairs = (part.partition("=") for part in parameters)
        named = {name.strip(): value.strip() for name, _, value in pairs}
        found.append((_weight_of(named.get("q")), Clause(media, named)))
    found.sort(key=lambda one: (-one[0], "*" in one[1].media))
    return [clause for _, clause in found]


def _weight_of(text: str | None) -> float:
    try:
        return 1.0 if text is None else float(text)
    except ValueError:
        return 1.0


def _matches(wanted: str, offered: str) -> bool:
    kind, _, sub = wanted.partition("/")
    whole, _, part = offered.partition("/")
    return kind in ("*", whole) and sub in ("*", part)


def _offers(accept: str) -> Iterator[tuple[Clause, str]]:
    for clause in _clauses(accept):
        for media in OFFERED:
            if _matches(clause.media, media):
                yield clause, media


@lru_cache(maxsize=1024)
def negotiated(accept: str) -> Form | None:
    """The form of objects that an Accept header asks for; None if none is possible.

    >>> negotiated("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
    Form(kind='Table', version='v1', yaml=False)
    >>> negotiated("application/yaml").yaml
    True
    >>> negotiated("text/plain") is None
    True
    """
    for clause, media in _offers(accept):
        kind, group, version = clause.target
        if (kind, group, version) == ("", "", ""):
            return Form(yaml=media == YAML)
        is_known = kind in (TABLE, PARTIAL, PARTIAL_LIST)
        if is_known and group == "meta.k8s.io" and version in ("v1", "v1beta1"):
            return Form(kind, version, media == YAML)
    return None


@lru_cache(maxsize=1024)
def discovery_form(accept: str) -> str | None:
    """The version of aggregated discovery in Accept: "" without one, None for 406.

    >>> discovery_form("application/json;g=apidiscovery.k8s.io;v=v2;as="
    ...                "APIGroupDiscoveryList,application/json")
    'v2'
    """
    for clause, _ in _offers(accept):
        kind, group, version = clause.target
        if (kind, group, version) == ("", "", ""):
            return ""
        is_known = kind == "APIGroupDiscoveryList" and version in ("v2", "v2beta1")
        if is_known and group == "apidiscovery.k8s.io":
            return version
    return None


@lru_cache(maxsize=1024)
def is_plain(accept: str) -> bool:
    """Whether an unchanged answer is acceptable.

    >>> is_plain("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
    True
    """
    return any(clause.target == ("", "", "") for clause, _ in _offers(accept))


@lru_cache(maxsize=1024)
def wants_yaml(accept: str) -> bool:
    """Whether an answer to this Accept header is written as YAML."""
    return next((media for _, media in _offers(accept)), JSON) == YAML


def form_of(kind: Kind, accept: str, *, is_watch: bool = False) -> Form:
    """The form in which a resource must be answered, or 406."""
    if accept == JSON:
        return PLAIN
    if not kind.custom and not _is_produced(accept):
        raise _not_acceptable(is_watch=is_watch)
    form = negotiated(accept)
    if form is None:
        raise not_acceptable((JSON, YAML, PROTOBUF))
    if is_watch and form.yaml:
        streams = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
        raise not_acceptable(streams)
    return form


def not_acceptable(offered: tuple[str, ...]) -> Refusal:
    """406, with the media types on offer."""
    text = f"only the following media types are accepted: {', '.join(offered)}"
    return failure(406, "NotAcceptable", text)


PRODUCED = (JSON, YAML, PROTOBUF)


def _is_produced(accept: str) -> bool:
    """Whether the router of built-in resources lets a request pass.

    It only knows exact names and `*/*`, without parameters.
    """
    names = (text.partition(";")[0].strip() for text in (accept or "*/*").split(","))
    return any(name in ("*/*", *PRODUCED) for name in names)


def _not_acceptable(*, is_watch: bool) -> Refusal:
    offered: tuple[str, ...] = PRODUCED
    if is_watch:
        offered += (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
    return router_refusal(offered)


def router_refusal(offered: tuple[str, ...]) -> Refusal:
    """406 in the words of the router."""
    text = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return failure(406, "NotAcceptable", text, {})


# --------------------------------------------------------------------- shaping


def shaped(call: Call, form: Form, response: ApiResponse) -> ApiResponse:
    """An answer in the requested form; a `Status` keeps its own."""
    body = response.body
    if not form.kind or not isinstance(body, dict) or body.get("kind") == "Status":
        return response
    is_list = "items" in body and body.get("kind") == call.kind.list_kind
    make = SHAPES[form.kind, is_list]
    return replace(response, body=make(call, form, body))


def _table_of_one(call: Call, form: Form, body: Object) -> Object:
    metadata = {"resourceVersion": body["metadata"].get("resourceVersion", "")}
    return _table_of_objects(call, form, [body], metadata)


def _table_of_list(call: Call, form: Form, body: Object) -> Object:
    head = {"kind": call.kind.kind, "apiVersion": call.kind.api_version}
    items = [{**head, **item} for item in body["items"]]
    return _table_of_objects(call, form, items, _list_metadata(body))


def _list_metadata(body: Object) -> Object:
    return {name: value for name, value in body["metadata"].items() if value}


def _table_of_objects(
    call: Call,
    form: Form,
    objects: list[Object],
    metadata: Object,
    *,
    headed: bool = True,
) -> Object:
    include = call.query.get("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise bad_request(
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"{quoted(include)}: must be 'Metadata', 'Object', 'None', or empty"
        )
    # Answers of subresources have no columns of their own.
    of = call.kind if call.route.subresource in (None, "status") else None
    return {
        "kind": TABLE,
        "apiVersion": form.api_version,
        "metadata": metadata,
        "columnDefinitions": columns_of(of) if headed else None,
        "rows": [_row(of, form, obj, include, call.now) for obj in objects],
    }


def _row(
    kind: Kind | None, form: Form, obj: Object, include: str, now: float
) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": cells_of(kind, obj, now)}
    if conditions := conditions_of(kind, obj):
        row["conditions"] = conditions
    row["object"] = obj if include == "Object" else None
    if include == "Metadata":
        row["object"] = _partial(form, obj)
    return row


def _partial(form: Form, obj: Object) -> Object:
    version = {"kind": PARTIAL, "apiVersion": form.api_version}
    return {**version, "metadata": obj["metadata"]}


def _partial_of_one(call: Call, form: Form, body: Object) -> Object:
    return _partial(form, body)


def _partial_list(call: Call, form: Form, body: Object) -> Object:
    return {
        "kind": PARTIAL_LIST,
        "apiVersion": form.api_version,
        "metadata": _list_metadata(body),
        # For an empty list, Go's encoder writes null.
        "items": [_partial(form, item) for item in body["items"]] or None,
    }


def _is_a_list(call: Call, form: Form, body: Object) -> Object:
    text = f"but the requested object is a list ({_go_type(call.kind, 'List')})"
    raise failure(406, "NotAcceptable", f"you requested {PARTIAL}, {text}")


def _is_no_list(call: Call, form: Form, body: Object) -> Object:
    if call.kind.custom:
        raise failure(500, None, "content is not a list")
    text = f"but the requested object is not a list ({_go_type(call.kind)})"
    raise failure(406, "NotAcceptable", f"you requested {PARTIAL_LIST}, {text}")


def _go_type(kind: Kind, suffix: str = "") -> str:
    """The name of an object's internal type in Go."""
    if kind.custom:
        return f"*unstructured.Unstructured{suffix}"
    return f"*{kind.group.partition('.')[0] or 'core'}.{kind.kind}{suffix}"


SHAPES = {
    (TABLE, False): _table_of_one,
    (TABLE, True): _table_of_list,
    (PARTIAL, False): _partial_of_one,
    (PARTIAL, True): _is_a_list,
    (PARTIAL_LIST, False): _is_no_list,
    (PARTIAL_LIST, True): _partial_list,
}


def presented_event(
    call: Call, form: Form, event: StoredEvent, *, headed: bool
) -> StoredEvent | None:
    """An event of a watch in the requested form; None if it cannot be shown.

    Only the first table of a stream is `headed`: it names the columns.
    """
    if not form.kind or event.type == "ERROR":
        return event
    if form.kind == PARTIAL_LIST:
        return None
    if form.kind == PARTIAL:
        return replace(event, object=_partial(form, event.object))
    metadata = {"resourceVersion": event.object["metadata"]["resourceVersion"]}
    table = _table_of_objects(call, form, [event.object], metadata, headed=headed)
    return replace(event, object=table)
