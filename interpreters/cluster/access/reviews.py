"""Reviews: questions about the user and its rights, asked by creating an object.

Nothing is stored: the answer is the object that was sent, with a status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fnop.interpreters.cluster.access.rbac import (
    Decision,
    Rule,
    decide,
    grants_of,
    missing_roles,
)
from fnop.interpreters.cluster.access.tokens import ISSUER, checked_token
from fnop.interpreters.cluster.requests.body import decoded
from fnop.interpreters.cluster.requests.request import Attributes, Call
from fnop.interpreters.cluster.requests.structs import STRUCTS, checked
from fnop.interpreters.cluster.storage.store import Cluster
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import (
    Fault,
    Refusal,
    bad_request,
    invalid,
    method_not_allowed,
    quoted,
    unknown_resource,
)
from fnop.interpreters.runtime.protocol import ApiResponse, User

__all__ = ["answer_review"]

GROUP = "authorization.k8s.io"
# The user of requests that do not name one.
ADMIN = User("admin", ("system:masters", "system:authenticated"))


def answer_review(cluster: Cluster, call: Call) -> ApiResponse:
    """Answer a request to a kind that can only be created."""
    if call.route.name or call.route.subresource:
        raise unknown_resource()
    if call.request.method != "POST":
        raise method_not_allowed()
    review = _review_in_namespace(call, decoded(call.kind, call.request.body))
    fields = checked(call.kind.kind, call.kind.version, review)
    review = {**review, "spec": fields.get("spec", {})}
    if "spec" not in STRUCTS[call.kind.kind]:
        del review["spec"]
    status = ANSWERS[call.kind.kind](cluster, call, review)
    return ApiResponse(201, {**review, "status": status})


def _review_in_namespace(call: Call, review: Object) -> Object:
    """The review in the namespace of the request, if the request has one."""
    if not call.route.namespace:
        return review
    if (
        review["metadata"].get("namespace", call.route.namespace)
        != call.route.namespace
    ):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent "
            "on the request"
        )
    metadata = {**review["metadata"], "namespace": call.route.namespace}
    return {**review, "metadata": metadata}


def _spec(review: Object) -> dict[str, Any]:
    spec: dict[str, Any] = review["spec"]
    return spec


def _user_of(call: Call) -> User:
    return call.request.user or ADMIN


# --------------------------------------------------------------- authorization


def _own_access(cluster: Cluster, call: Call, review: Object) -> Object:
    spec = _spec(review)
    _check([*_metadata_faults(review), *_attribute_faults(spec)])
    return _access_status(cluster, _user_of(call), spec)


def _others_access(cluster: Cluster, call: Call, review: Object) -> Object:
    spec = _spec(review)
    _check(
        [*_metadata_faults(review), *_attribute_faults(spec), *_subject_faults(spec)]
    )
    return _access_status(cluster, _named_user(spec), spec)


def _local_access(cluster: Cluster, call: Call, review: Object) -> Object:
    spec, namespace = _spec(review), call.route.namespace or ""
    faults = [*_attribute_faults(spec), *_subject_faults(spec)]
    faults += _local_faults(spec, namespace)
    _check(faults)
    return _access_status(cluster, _named_user(spec), spec)


def _local_faults(spec: dict[str, Any], namespace: str) -> Iterator[Fault]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != namespace:
        value = quoted(resource.get("namespace", ""))
        yield _fault(
            "resourceAttributes.namespace", value, "must match metadata.namespace"
        )
    if other is not None:
        yield _fault(
            "nonResourceAttributes",
            _attributes_text(other),
            "disallowed on this kind of request",
        )


def _check(faults: list[Fault]) -> None:
    if faults:
        raise _without_kind(invalid(GROUP, "", "", faults))


def _without_kind(refusal: Refusal) -> Refusal:
    # These registries do not name the kind of the invalid object.
    del refusal.response.body["details"]["kind"]
    return refusal


def _metadata_faults(review: Object) -> Iterator[Fault]:
    metadata = review["metadata"]
    if metadata:
        message = f"Invalid value: {quoted(str(metadata))}: must be empty"
        yield Fault("metadata", "FieldValueInvalid", message)


def _attribute_faults(spec: dict[str, Any]) -> Iterator[Fault]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        why = "cannot be specified in combination with resourceAttributes"
        yield _fault("nonResourceAttributes", _attributes_text(other), why)
    if resource is None and other is None:
        why = (
            "exactly one of nonResourceAttributes or resourceAttributes must be "
            "specified"
        )
        yield _fault("resourceAttributes", '"null"', why)


def _subject_faults(spec: dict[str, Any]) -> Iterator[Fault]:
    if not spec.get("user") and not spec.get("groups"):
        yield _fault("user", '""', "at least one of user or group must be specified")


def _fault(field: str, value: str, why: str) -> Fault:
    return Fault(f"spec.{field}", "FieldValueInvalid", f"Invalid value: {value}: {why}")


def _attributes_text(attributes: dict[str, Any]) -> str:
    path, verb = (quoted(str(attributes.get(name, ""))) for name in ("path", "verb"))
    return f"authorization.NonResourceAttributes{{Path:{path}, Verb:{verb}}}"


def _named_user(spec: dict[str, Any]) -> User:
    extra = spec.get("extra") or {}
    return User(
        spec.get("user", ""),
        tuple(spec.get("groups") or ()),
        spec.get("uid", ""),
        tuple((key, tuple(values)) for key, values in sorted(extra.items())),
    )


def _access_status(cluster: Cluster, user: User, spec: dict[str, Any]) -> Object:
    decision = decide(cluster, user, _attributes(spec))
    return _status(decision)


def _attributes(spec: dict[str, Any]) -> Attributes:
    other = spec.get("nonResourceAttributes")
    if other is not None:
        # An invalid path still does not count as a resource.
        return Attributes(other.get("verb", ""), path=other.get("path") or "?")
    named = spec["resourceAttributes"]
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(*(named.get(name, "") for name in names))


def _status(decision: Decision) -> Object:
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _own_rules(cluster: Cluster, call: Call, review: Object) -> Object:
    namespace = _spec(review).get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    user = _user_of(call)
    grants = grants_of(cluster, user, namespace)
    rules = [rule for grant in grants for rule in grant.rules]
    status: Object = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)}
            for rule in rules
            if rule.urls
        ],
        "incomplete": False,
    }
    missing = missing_roles(grants)
    if missing:
        status["evaluationError"] = missing
    return status


def _resource_rule(rule: Rule) -> Object:
    parts = {
        "verbs": rule.verbs,
        "apiGroups": rule.groups,
        "resources": rule.resources,
        "resourceNames": rule.names,
    }
    return {name: list(values) for name, values in parts.items() if values}


# -------------------------------------------------------------- authentication


def _token(cluster: Cluster, call: Call, review: Object) -> Object:
    spec = _spec(review)
    if review["metadata"].get("namespace"):
        raise bad_request("namespace is not allowed on this type")
    token = spec.get("token")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    audiences = tuple(spec.get("audiences") or (ISSUER,))
    found = checked_token(cluster, token, call.now, audiences)
    if isinstance(found, str):
        return {"user": {}, "error": found}
    accepted = [each for each in audiences if each]
    return {"authenticated": True, "user": _user_info(found), "audiences": accepted}


def _user_review(cluster: Cluster, call: Call, review: Object) -> Object:
    return {"userInfo": _user_info(_user_of(call))}


def _user_info(user: User) -> Object:
    parts = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
    }
    return {name: value for name, value in parts.items() if value}


ANSWERS: dict[str, Callable[[Cluster, Call, Object], Object]] = {
    "LocalSubjectAccessReview": _local_access,
    "SelfSubjectAccessReview": _own_access,
    "SelfSubjectRulesReview": _own_rules,
    "SubjectAccessReview": _others_access,
    "SelfSubjectReview": _user_review,
    "TokenReview": _token,
}
