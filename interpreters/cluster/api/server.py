"""`answer`: one request, one answer."""

from __future__ import annotations

import re

from fnop.effects.structs import replace
from fnop.interpreters.cluster.access.escalation import check_escalation
from fnop.interpreters.cluster.access.policy import bootstrap
from fnop.interpreters.cluster.access.rbac import authorize, authorize_creation
from fnop.interpreters.cluster.access.reviews import answer_review
from fnop.interpreters.cluster.admission.questions import Ask, unreached
from fnop.interpreters.cluster.admission.webhooks import Beside, none_beside
from fnop.interpreters.cluster.api.delete import delete, delete_collection
from fnop.interpreters.cluster.api.discovery import discover
from fnop.interpreters.cluster.api.read import get, list_objects
from fnop.interpreters.cluster.api.scale import answer_scale
from fnop.interpreters.cluster.api.subresources import SUBRESOURCES, bind_named
from fnop.interpreters.cluster.api.write import Answer, create, patch, update
from fnop.interpreters.cluster.kinds.kinds import builtin_registry
from fnop.interpreters.cluster.output.negotiation import form_of, shaped
from fnop.interpreters.cluster.requests.decoding import check_readable
from fnop.interpreters.cluster.requests.request import Call, call_of
from fnop.interpreters.cluster.requests.warnings import bounded
from fnop.interpreters.cluster.storage.commit import NAMESPACES
from fnop.interpreters.cluster.storage.limits import check_stored
from fnop.interpreters.cluster.storage.store import Cluster, StoredEvent, bare
from fnop.interpreters.cluster.values.status import (
    Refusal,
    method_not_allowed,
    not_found,
    unknown_resource,
)
from fnop.interpreters.runtime.protocol import JSON, ApiRequest, ApiResponse

__all__ = ["answer", "empty_cluster"]

REGISTRY = builtin_registry()
FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
RBAC_PATH = "/apis/rbac.authorization.k8s.io/v1"
EPOCH = 1_700_000_000.0


def empty_cluster(
    seed: str = "0", now: float = EPOCH, *, rbac: bool = False
) -> Cluster:
    """A cluster after its first start, with namespaces only.

    With `rbac` it also has the first roles, and asks users for permission.

    >>> empty_cluster().version
    104
    """
    cluster = bare(seed, 100, REGISTRY)
    for name in FIRST_NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        request = ApiRequest("POST", "/api/v1/namespaces", body=body)
        cluster, _, _ = answer(cluster, request, now)
    if not rbac:
        return cluster
    for plural, body in bootstrap():
        request = ApiRequest("POST", f"{RBAC_PATH}/{plural}", body=body)
        cluster, _, _ = answer(cluster, request, now)
    return replace(cluster, rbac=True)


def upgraded(cluster: Cluster, release: str) -> Cluster:
    """The cluster with a server of another release, such as "1.37" or "1.37.2".

    It serves the same kinds. Raises `ValueError` for any other text.
    """
    return replace(cluster, release=release_of(release))


def release_of(text: str) -> str:
    """The release that a text names, with its patch number.

    >>> release_of("1.37")
    '1.37.0'

    Raises `ValueError` for any other text.
    """
    if not re.fullmatch(r"[0-9]+\.[0-9]+(\.[0-9]+)?", text):
        raise ValueError(f"a release is such as 1.37 or 1.37.2, not {text!r:.40}")
    return text if text.count(".") == 2 else f"{text}.0"


def answer(
    cluster: Cluster,
    request: ApiRequest,
    now: float,
    ask: Ask = unreached,
    beside: Beside = none_beside,
) -> tuple[Cluster, ApiResponse, tuple[StoredEvent, ...]]:
    """Answer any request: the next cluster, the response, and the events for watches.

    `now` is the wall clock in Unix seconds. A request that cannot be served is answered
    as a real server answers it; nothing is raised.

    `ask` calls the admission webhooks that review the request, one after the other. An
    exception from it is passed on and leaves no trace. A caller that must wait for a
    webhook raises one, waits, and asks for the answer again. `beside` returns webhooks
    that are asked without being registered.
    """
    try:
        authorize(cluster, request)
        call = call_of(cluster.registry, request, now, ask, beside)
        if call is None:
            return cluster, discover(cluster.registry, request, cluster.release), ()
    except Refusal as refusal:
        return cluster, refusal.response, ()
    try:
        plain = request.accept == JSON
        outcome = (_answered if plain else _answer_in_form)(cluster, call)
        if outcome[2]:
            check_stored(cluster, outcome[0], outcome[2])
    except Refusal as refusal:
        outcome = cluster, refusal.response, ()
    if call.warnings or call.kind.deprecation:
        return _with_warnings(call, outcome)
    return outcome


def _with_warnings(call: Call, outcome: Answer) -> Answer:
    """The answer with its warnings, each text once, and limited in number."""
    cluster, response, events = outcome
    texts = dict.fromkeys(filter(None, (call.kind.deprecation, *call.warnings)))
    return cluster, replace(response, warnings=bounded(tuple(texts))), events


def _answer_checked_call(cluster: Cluster, call: Call) -> Answer:
    """Answer, and refuse what only the body or the result shows to be forbidden.

    The state is a value: if a write turns out to be forbidden, its result is dropped.
    """
    authorize_creation(cluster, call)
    if call.request.method == "POST":
        check_escalation(cluster, call, call.request.body)
        return _dispatch(cluster, call)
    outcome = _dispatch(cluster, call)
    if call.request.method in ("PUT", "PATCH"):
        check_escalation(cluster, call, outcome[1].body)
    return outcome


def _answer_in_form(cluster: Cluster, call: Call) -> Answer:
    """Answer in the form that the Accept header asks for."""
    form = form_of(call.kind, call.request.accept)
    cluster, response, events = _answered(cluster, call)
    try:
        response = shaped(call, form, response)
    except Refusal as refusal:
        # The write stands, even if its answer cannot be shown.
        response = refusal.response
    return cluster, response, events


def _answered(cluster: Cluster, call: Call) -> Answer:
    if call.request.method != "GET":
        check_readable(cluster, call)
    if call.request.user is None or not cluster.rbac:
        return _dispatch(cluster, call)
    return _answer_checked_call(cluster, call)


def _answer_to_post(cluster: Cluster, call: Call) -> Answer:
    """Answer a POST of a kind that can only be created: a Binding or a review."""
    if call.kind.plural == "bindings":
        return bind_named(cluster, call)
    return cluster, answer_review(cluster, call), ()


def _dispatch(cluster: Cluster, call: Call) -> Answer:
    if call.kind.create_only:
        return _answer_to_post(cluster, call)
    if call.route.subresource:
        special = SUBRESOURCES.get((call.kind.resource, call.route.subresource))
        if special is not None:
            return special.answer(cluster, call)
        _check_subresource(call)
        if call.route.subresource == "scale":
            return answer_scale(cluster, call)
    match call.request.method:
        case "GET" if call.route.name:
            return cluster, get(cluster, call), ()
        case "GET":
            return cluster, list_objects(cluster, call), ()
        case "POST":
            return create(cluster, call)
        case "PUT":
            return update(cluster, call)
        case "PATCH":
            return patch(cluster, call)
        case "DELETE" if call.route.name:
            return delete(cluster, call)
        case "DELETE" if call.kind.resource != NAMESPACES:
            return delete_collection(cluster, call)
        case _:
            raise method_not_allowed()


def _check_subresource(call: Call) -> None:
    kind, name = call.kind, call.route.subresource
    if (name == "status" and kind.status) or (name == "scale" and kind.scale):
        return
    if kind.custom:
        raise not_found(kind.group, kind.plural, call.route.name or "")
    raise unknown_resource()
