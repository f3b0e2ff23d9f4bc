"""AdmissionReviews: requests as webhooks get them, and the meaning of their answers.

The rules come from k8s.io/apiserver/pkg/admission/plugin/webhook/request, and from
`ToStatusErr` in the package errors next to it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fnop.interpreters.cluster.admission.questions import Reply, Unreached
from fnop.interpreters.cluster.admission.webhooks import Form, Webhook, Write
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.values.golang import go_name
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Refusal, quoted
from fnop.interpreters.runtime.protocol import ApiResponse, User

__all__ = ["Uncalled", "Verdict", "request_of", "review_of", "verdict_of"]

GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")


class Uncalled(Exception):
    """A webhook that could not be asked, or whose answer is invalid."""


class Verdict(Struct, frozen=True):
    """The answer of a webhook."""

    warnings: tuple[str, ...]
    # The refusal of the write; None if it is allowed.
    denial: Refusal | None
    # The JSON text of a patch; empty if there is none.
    patch: bytes


# ------------------------------------------------------------------- the request


def request_of(
    write: Write, kind: Kind, new: Object | None, old: Object | None
) -> dict[str, Any]:
    """The request of a review of a write, in the version of `kind`, without a uid.

    `new` and `old` are its objects in that version.
    """
    form = write.form
    asked = _resource(write.kind)
    result = {
        "kind": (form or _form_of(kind))._asdict(),
        "resource": _resource(kind),
        "subResource": write.subresource,
        "requestKind": (form or _form_of(write.kind))._asdict(),
        "requestResource": asked,
        "requestSubResource": write.subresource,
        "name": write.name,
        "namespace": write.namespace,
        "operation": write.operation,
        "userInfo": _user_info(write.user),
        "object": new,
        "oldObject": old,
        "dryRun": write.dry_run,
        "options": dict(write.options),
    }
    # `omitempty` in Go.
    empty = ("subResource", "requestSubResource", "name", "namespace")
    return {k: v for k, v in result.items() if v or k not in empty}


def _form_of(kind: Kind) -> Form:
    return Form(kind.group, kind.version, kind.kind)


def _resource(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _user_info(user: User) -> dict[str, Any]:
    result = {
        "username": user.name,
        "uid": user.uid,
        "groups": [*user.groups],
        "extra": {name: [*values] for name, values in user.extra},
    }
    return {name: value for name, value in result.items() if value}


def review_of(webhook: Webhook, request: Mapping[str, Any]) -> dict[str, Any]:
    """The AdmissionReview in the first version of a webhook that the server knows."""
    wanted = webhook.spec.get("admissionReviewVersions") or ()
    version = next((each for each in wanted if each in VERSIONS), VERSIONS[0])
    named = {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}"}
    return {**named, "request": dict(request)}


# -------------------------------------------------------------------- the answer


def verdict_of(
    webhook: Webhook, review: Mapping[str, Any], reply: Reply, *, mutating: bool
) -> Verdict:
    """The meaning of a reply to a review; raises `Uncalled` if it is invalid."""
    if isinstance(reply, Unreached):
        raise Uncalled(f"failed to call webhook: {reply.message}")
    body = _decode_review(review, reply.body)
    try:
        response = _verify_response(review, body, mutating=mutating)
    except Uncalled as problem:
        raise Uncalled(f"received invalid webhook response: {problem}") from None
    patch = b""
    if mutating and response.get("patch"):
        patch = base64.b64decode(response["patch"])
        if response.get("patchType", "JSONPatch") != "JSONPatch":
            kind = quoted(response["patchType"])
            raise Uncalled(f"unsupported patch type {kind}")
    denial = None
    if response.get("allowed") is not True:
        denial = _denial(webhook.name, response.get("status") or {})
    return Verdict(tuple(response.get("warnings") or ()), denial, patch)


GO_TYPE = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
SCHEME = 'in scheme "k8s.io/apiserver/pkg/util/webhook/client.go:74"'


def _decode_review(review: Mapping[str, Any], body: Any) -> dict[str, Any]:
    """A body as an AdmissionReview; null is a review without fields."""
    before = "failed to call webhook: "
    if body == "":
        raise Uncalled(
            f"{before}0-length response with status code: 200 and content type: "
            "application/json"
        )
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise Uncalled(
            f"{before}couldn't get version/kind; json parse error: json: cannot "
            f"unmarshal {go_name(body)} into {GO_TYPE}"
        )
    version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    known = [f"{GROUP}/{each}" for each in VERSIONS]
    if kind and version and (version not in known or kind != "AdmissionReview"):
        raise Uncalled(
            f'{before}no kind "{kind}" is registered for version "{version}" {SCHEME}'
        )
    if version in known and version != review["apiVersion"]:
        given, wanted = (
            f"({each.rpartition('/')[2]}.AdmissionReview)"
            for each in (version, review["apiVersion"])
        )
        raise Uncalled(f"{before}converting {given} to {wanted}: unknown conversion")
    if problem := _wrong_type_in(body.get("response")):
        raise Uncalled(f"{before}json: cannot unmarshal {problem}")
    return body


FIELDS: dict[str, type] = {
    "uid": str,
    "allowed": bool,
    "status": dict,
    "patch": str,
    "patchType": str,
    "auditAnnotations": dict,
    "warnings": list,
}
NAMES = {str: "string", bool: "bool", dict: "v1.Status", list: "[]string"}


def _wrong_type_in(response: Any) -> str:
    """The field of a response with a wrong type; "" if there is none."""
    at = "Go struct field AdmissionReview.response"
    if response is None:
        return ""
    if not isinstance(response, dict):
        return f"{go_name(response)} into {at} of type v1.AdmissionResponse"
    for name, wanted in FIELDS.items():
        value = response.get(name)
        if value is not None and not isinstance(value, wanted):
            return f"{go_name(value)} into {at}.{name} of type {NAMES[wanted]}"
    for warning in response.get("warnings") or ():
        if not isinstance(warning, str):
            return f"{go_name(warning)} into {at}.warnings of type string"
    return _misfit_status(response.get("status") or {}) or _misfit_patch(response)


def _misfit_status(status: Mapping[str, Any]) -> str:
    at = "Go struct field Status.response.status"
    for name, wanted in (("message", str), ("reason", str), ("code", int)):
        value = status.get(name)
        is_whole = type(value) is int
        if value is not None and not (
            is_whole if wanted is int else isinstance(value, wanted)
        ):
            told = "int32" if wanted is int else "string"
            return f"{go_name(value)} into {at}.{name} of type {told}"
    return ""


def _misfit_patch(response: Mapping[str, Any]) -> str:
    try:
        base64.b64decode(response.get("patch") or "", validate=True)
    except binascii.Error:
        return (
            "string into Go struct field AdmissionReview.response.patch of type []uint8"
        )
    return ""


def _verify_response(
    review: Mapping[str, Any], body: dict[str, Any], *, mutating: bool
) -> dict[str, Any]:
    """The response of an AdmissionReview (VerifyAdmissionResponse)."""
    response: dict[str, Any] | None = body.get("response")
    if response is None:
        raise Uncalled("webhook response was absent")
    if not review["apiVersion"].endswith("/v1"):
        return response  # v1beta1 asks for neither uid nor kind nor patchType
    uid, given = review["request"]["uid"], response.get("uid") or ""
    if given != uid:
        raise Uncalled(f"expected response.uid={quoted(uid)}, got {quoted(given)}")
    version, kind = body.get("apiVersion") or "/", body.get("kind") or ""
    if (version, kind) != (review["apiVersion"], "AdmissionReview"):
        wanted = f"{review['apiVersion']}, Kind=AdmissionReview"
        raise Uncalled(
            f"expected webhook response of {wanted}, got {version}, Kind={kind}"
        )
    if problem := _misplaced_patch(response, mutating=mutating):
        raise Uncalled(problem)
    return response


def _misplaced_patch(response: Mapping[str, Any], *, mutating: bool) -> str:
    patch, kind = response.get("patch"), response.get("patchType")
    if not mutating:
        if patch:
            return "validating webhook may not return response.patch"
        return (
            ""
            if kind is None
            else "validating webhook may not return response.patchType"
        )
    if patch and kind is None:
        return "webhook returned response.patch but not response.patchType"
    if not patch and kind is not None:
        return "webhook returned response.patchType but not response.patch"
    return 'webhook returned invalid response.patchType of ""' if kind == "" else ""


# Status fields that a denial keeps unchanged.
KEPT = ("reason", "details")


def _denial(name: str, status: Mapping[str, Any]) -> Refusal:
    """The refusal of a write that a webhook has denied (ToStatusErr)."""
    denied = f"admission webhook {quoted(name)} denied the request"
    message, reason = status.get("message"), status.get("reason")
    why = message or reason
    code = max(status.get("code") or 0, 400)
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": status.get("metadata") or {},
        "status": "Failure",
        "message": f"{denied}: {why}" if why else f"{denied} without explanation",
    }
    body |= {name: status[name] for name in KEPT if status.get(name) not in (None, "")}
    body["code"] = code
    details = status.get("details")
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return Refusal(ApiResponse(code, body, seconds))
