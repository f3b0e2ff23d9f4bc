"""AdmissionReviews: the requests in them, and the answers to them.

The API is admission.k8s.io/v1, and v1beta1 of API servers before 1.16. The rules for
answers follow `VerifyAdmissionResponse` in k8s.io/apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from fnop.core.values.table import NOTHING
from fnop.effects.values import shown

__all__ = ["OPERATIONS", "MalformedReview", "Operation", "Request", "request_in"]

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
"""The argument `operation`: what is being done to the object."""
OPERATIONS: tuple[str, ...] = get_args(Operation)

GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")


class MalformedReview(ValueError):
    """A body that is not an AdmissionReview with a request, as the message says."""


class Request(NamedTuple):
    """One write that waits for its admission (`AdmissionRequest`).

    `group`, `version` and `plural` name the resource. `kind` is the object's kind: for
    a subresource it may be another, such as Scale. `old` is the stored object, None for
    a creation; `object` is the object to store, None for a deletion. `uid` is the
    request's uid. `headers` and `peer` come from the connection.
    """

    uid: str
    operation: str
    group: str
    version: str
    plural: str
    kind: str
    subresource: str = ""
    namespace: str | None = None
    name: str = ""
    object: dict[str, Any] | None = None
    old: dict[str, Any] | None = None
    user_info: Mapping[str, Any] = NOTHING
    dry_run: bool = False
    options: Mapping[str, Any] = NOTHING
    headers: Mapping[str, str] = NOTHING
    peer: Mapping[str, Any] = NOTHING
    api_version: str = f"{GROUP}/v1"

    @property
    def present(self) -> dict[str, Any]:
        """The object that the write is about: the new one, else the old one."""
        found = self.object if self.object is not None else self.old
        return {} if found is None else found

    def about(self, body: dict[str, Any] | None) -> Request:
        """Return the request with another object, which it leaves as it is.

        >>> Request("1", "DELETE", "", "v1", "pods", "Pod").about({"kind": "Pod"}).old
        {'kind': 'Pod'}
        """
        old = None if self.operation == "CREATE" else body
        return self._replace(
            object=None if self.operation == "DELETE" else body, old=old
        )

    @property
    def user(self) -> str:
        """The name of the requesting user; "" if it is missing."""
        return str(self.user_info.get("username") or "")

    @property
    def is_ending(self) -> bool:
        """Whether it changes an object that is being deleted.

        Removing a finalizer is such a change: if denied, it would keep the object
        forever.
        """
        metadata = (self.old or {}).get("metadata")
        found = metadata if isinstance(metadata, dict) else {}
        return self.operation != "CREATE" and bool(found.get("deletionTimestamp"))

    @property
    def label(self) -> str:
        """`namespace/name`, as log lines name the object."""
        metadata = self.present.get("metadata")
        named = metadata.get("name") if isinstance(metadata, dict) else None
        name = self.name or str(named or "")
        return f"{self.namespace}/{name}" if self.namespace else name


def request_in(
    review: Any,
    headers: Mapping[str, str] = NOTHING,
    peer: Mapping[str, Any] = NOTHING,
) -> Request:
    """The request in an AdmissionReview, a parsed JSON value.

    Raises `MalformedReview` for other values, and for unknown versions of the API.
    """
    request = _read_request(review)
    operation = _read_operation(request)
    resource = _read_mapping(request, "resource", "request.") or {}
    form = _read_mapping(request, "kind", "request.") or {}
    return Request(
        uid=_read_text(request, "uid", "request."),
        operation=operation,
        group=_read_text(resource, "group", "request.resource.", optional=True),
        version=_read_text(resource, "version", "request.resource."),
        plural=_read_text(resource, "resource", "request.resource."),
        kind=_read_text(form, "kind", "request.kind."),
        subresource=_read_text(request, "subResource", "request.", optional=True),
        namespace=_read_text(request, "namespace", "request.", optional=True) or None,
        name=_read_text(request, "name", "request.", optional=True),
        object=_read_mapping(request, "object", "request."),
        old=_read_mapping(request, "oldObject", "request."),
        user_info=_read_mapping(request, "userInfo", "request.") or NOTHING,
        dry_run=request.get("dryRun") is True,
        options=_read_mapping(request, "options", "request.") or NOTHING,
        headers=headers,
        peer=peer,
        api_version=str(review["apiVersion"]),
    )


def _read_request(review: Any) -> dict[str, Any]:
    """The field `request` of a value that must be an AdmissionReview."""
    if not isinstance(review, dict):
        raise MalformedReview(
            f"the body is not an AdmissionReview, but {shown(review)}; is the address "
            "registered for another purpose?"
        )
    api_version, kind = review.get("apiVersion"), review.get("kind")
    known = [f"{GROUP}/{version}" for version in VERSIONS]
    if kind != "AdmissionReview" or api_version not in known:
        raise MalformedReview(
            f"the body is not an AdmissionReview of {known[0]}, but has the kind "
            f"{shown(kind)} and the apiVersion {shown(api_version)}; register the "
            "webhook with admissionReviewVersions: [v1]"
        )
    request = _read_mapping(review, "request", "")
    if request is None:
        raise MalformedReview("the AdmissionReview has no request")
    return request


def _read_operation(request: Mapping[str, Any]) -> str:
    """The operation; refuses one without the object that it writes."""
    operation = _read_text(request, "operation", "request.")
    if operation not in OPERATIONS:
        raise MalformedReview(
            f"request.operation is {shown(operation)}, and is to be one of "
            f"{', '.join(OPERATIONS)}"
        )
    if operation in ("CREATE", "UPDATE") and request.get("object") is None:
        raise MalformedReview(f"request.object is missing in an {operation}")
    return operation


def _read_mapping(
    within: Mapping[str, Any], name: str, before: str
) -> dict[str, Any] | None:
    found = within.get(name)
    if found is None or isinstance(found, dict):
        return found
    raise MalformedReview(f"{before}{name} is not a mapping, but {shown(found)}")


def _read_text(
    within: Mapping[str, Any], name: str, before: str, *, optional: bool = False
) -> str:
    found = within.get(name)
    if isinstance(found, str) and (found or optional):
        return found
    if found is None and optional:
        return ""
    raise MalformedReview(f"{before}{name} is not a text, but {shown(found)}")
