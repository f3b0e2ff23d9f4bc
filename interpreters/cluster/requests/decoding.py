"""Refuse bodies of an unknown media type, or that cannot be parsed.

The answers follow Kubernetes 1.36; 1.20 differs for patches.
"""

from __future__ import annotations

from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.storage.store import Cluster, lookup
from fnop.interpreters.cluster.values.status import (
    Refusal,
    bad_request,
    unsupported_media_type,
)
from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    MalformedBody,
)

__all__ = ["check_readable"]

YAML, PROTOBUF = "application/yaml", "application/vnd.kubernetes.protobuf"
DECODED = (JSON, YAML, PROTOBUF)
EMPTY = MalformedBody("unexpected end of JSON input")


def check_readable(cluster: Cluster, call: Call) -> None:
    """Refuse a body that cannot be parsed."""
    method = call.request.method
    if method == "PATCH":
        _check_patch(cluster, call)
    elif method in ("POST", "PUT", "DELETE"):
        _check_object(call)


def _check_object(call: Call) -> None:
    request = call.request
    body = request.body
    if body is None:
        # Options of a deletion and bodies of some subresources may be omitted.
        if request.method == "DELETE" or call.route.subresource:
            return
        body = EMPTY
    elif request.content_type not in DECODED:
        raise unsupported_media_type(DECODED)
    if not isinstance(body, MalformedBody):
        return
    if body.number:
        raise _too_large(call, body.number)
    why = body.message
    if request.content_type == JSON:
        why = f"couldn't get version/kind; json parse error: {why}"
    if request.method == "DELETE":
        raise bad_request(why)
    raise bad_request(
        f"the object provided is unrecognized (must be of type {call.kind.kind}): "
        f"{why} ({body.excerpt})"
    )


def _too_large(call: Call, number: str) -> Refusal:
    """The refusal of an object with a number that a float64 cannot hold."""
    why = f"json: cannot unmarshal number {number} into Go value of type float64"
    if call.request.method == "DELETE":
        return bad_request(why)
    kind = call.kind
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
        f"{why}"
    )


def _check_patch(cluster: Cluster, call: Call) -> None:
    request = call.request
    body = request.body
    if request.content_type == APPLY_PATCH:
        if isinstance(body, MalformedBody):
            why = f"error converting YAML to JSON: {body.message}"
            raise bad_request(f"error decoding YAML: {why}")
        return
    if body is None:
        body = EMPTY
    if not isinstance(body, MalformedBody) or not _is_patched(call):
        return
    # A patch is read when it is applied: a missing object is reported first.
    if lookup(cluster, call.kind.resource, call.key) is not None:
        why = body.message
        if body.number:
            is_list = request.content_type == JSON_PATCH
            into = "struct field jsonPatchOp.value" if is_list else "value"
            why = f"json: cannot unmarshal number {body.number} into Go {into} of type "
            why += "float64"
        raise bad_request(f"error decoding patch: {why}")


def _is_patched(call: Call) -> bool:
    """Whether the kind takes patches of this type."""
    content_type = call.request.content_type
    if content_type == STRATEGIC_PATCH:
        return not call.kind.custom
    return content_type in (JSON_PATCH, MERGE_PATCH)
