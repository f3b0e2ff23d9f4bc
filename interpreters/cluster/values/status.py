"""The `Status` bodies of refusals.

Shapes and texts follow `k8s.io/apimachinery/pkg/api/errors`: clients read `reason` and
`details`, people read `message`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from msgspec import Struct

from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = [
    "Fault",
    "Refusal",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "failure",
    "forbidden",
    "internal",
    "invalid",
    "method_not_allowed",
    "no_such_path",
    "not_found",
    "quoted",
    "success",
    "unknown_resource",
    "unsupported_media_type",
]


class Refusal(Exception):
    """Ends the handling of a request with an error response.

    It never leaves `answer`, which returns the response that it carries.
    """

    def __init__(self, response: ApiResponse) -> None:
        super().__init__(response.status)
        self.response = response


class Fault(Struct, frozen=True):
    """One cause of a 422: a field, a reason, a message."""

    field: str
    reason: str
    message: str


def failure(
    code: int, reason: str | None, message: str, details: dict[str, Any] | None = None
) -> Refusal:
    """The refusal with a `Status` of these parts.

    >>> failure(409, "Conflict", "no").response.body["code"]
    409
    """
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason is not None:
        body["reason"] = reason
    if details is not None:
        body["details"] = details
    body["code"] = code
    return Refusal(ApiResponse(code, body))


def success(details: dict[str, Any]) -> ApiResponse:
    """The `Status` that answers a deletion whose object is gone."""
    return ApiResponse(
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        },
    )


def _details(group: str, plural: str, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = plural
    return details


def _qualified_name(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


def no_such_path() -> Refusal:
    """404 in plain text, for a path below an unknown group."""
    return Refusal(ApiResponse(404, "404 page not found\n"))


def unknown_resource() -> Refusal:
    """404 for a resource that a known built-in group does not have."""
    return failure(
        404, "NotFound", "the server could not find the requested resource", {}
    )


def not_found(group: str, plural: str, name: str) -> Refusal:
    """404 for an object."""
    message = f"{_qualified_name(group, plural)} {quoted(name)} not found"
    return failure(404, "NotFound", message, _details(group, plural, name))


def already_exists(
    group: str, plural: str, name: str, *, is_going: bool = False
) -> Refusal:
    """409 for a create under a name that is taken, or is being deleted."""
    message = f"{_qualified_name(group, plural)} {quoted(name)} already exists"
    if is_going:
        message = f"object is being deleted: {message}"
    return failure(409, "AlreadyExists", message, _details(group, plural, name))


MODIFIED = (
    "the object has been modified; "
    "please apply your changes to the latest version and try again"
)


def conflict(group: str, plural: str, name: str, why: str = MODIFIED) -> Refusal:
    """409 for a write whose precondition does not hold."""
    message = (
        f"Operation cannot be fulfilled on {_qualified_name(group, plural)} "
        f"{quoted(name)}: {why}"
    )
    return failure(409, "Conflict", message, _details(group, plural, name))


def bad_request(message: str) -> Refusal:
    """400."""
    return failure(400, "BadRequest", message)


def internal(message: str, *, bare: bool = False) -> Refusal:
    """500; `bare` without reason, as for errors that the server did not classify."""
    if bare:
        return failure(500, None, message)
    return failure(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        {"causes": [{"message": message}]},
    )


def forbidden(
    group: str,
    plural: str,
    name: str,
    why: str,
    causes: Sequence[dict[str, Any]] = (),
) -> Refusal:
    """403 from admission."""
    details = _details(group, plural, name)
    if causes:
        details["causes"] = list(causes)
    message = f"{_qualified_name(group, plural)} {quoted(name)} is forbidden: {why}"
    return failure(403, "Forbidden", message, details)


def invalid(group: str, kind: str, name: str, faults: Sequence[Fault]) -> Refusal:
    """422 with its causes, in the order in which they were found."""
    texts = [f"{fault.field}: {fault.message}" for fault in faults]
    # Aggregated errors are listed once each and, if several, in brackets.
    unique = list(dict.fromkeys(texts))
    text = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    details = _details(group, kind, name)
    details["causes"] = [
        {"reason": fault.reason, "message": fault.message, "field": fault.field}
        for fault in faults
    ]
    message = f"{_qualified_name(group, kind)} {quoted(name)} is invalid: {text}"
    return failure(422, "Invalid", message, details)


def method_not_allowed() -> Refusal:
    """405."""
    return failure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
    )


def unsupported_media_type(accepted: Sequence[str]) -> Refusal:
    """415, naming the accepted media types."""
    return failure(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types "
        f"include: {', '.join(accepted)}",
    )


def expired(message: str) -> Refusal:
    """410: the requested version is no longer kept."""
    return failure(410, "Expired", message)


def quoted(text: str) -> str:
    """Go's `%q` for the strings that occur in names.

    >>> quoted('a"b')
    '"a\\\\"b"'
    """
    return orjson.dumps(text).decode()
