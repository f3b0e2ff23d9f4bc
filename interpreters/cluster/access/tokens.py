"""Tokens of service accounts: made by TokenRequest, read by authentication.

They are shaped like the JSON Web Tokens of a real cluster, so that clients can read
their claims. But they are derived, not random. Their last part is a digest under the
cluster's seed, which is not a secret, so they do not protect against an attacker.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from hashlib import blake2b
from typing import Any

import orjson

from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.requests.structs import checked
from fnop.interpreters.cluster.storage.store import Cluster, lookup
from fnop.interpreters.cluster.values.objects import Object, timestamp
from fnop.interpreters.cluster.values.status import (
    Fault,
    bad_request,
    conflict,
    invalid,
    method_not_allowed,
    not_found,
    quoted,
)
from fnop.interpreters.runtime.protocol import ApiResponse, User

__all__ = ["ISSUER", "answer_token", "checked_token", "user_of_token"]

ISSUER = "https://kubernetes.default.svc"
GROUP = "authentication.k8s.io"
SERVICE_ACCOUNTS = ("", "serviceaccounts")
DEFAULT_SECONDS, LEAST_SECONDS = 3600, 600
# Tokens are valid this much longer when their object is being deleted.
LEEWAY_SECONDS = 60
# A token may be bound to one of these objects, and expires with it.
BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


# ---------------------------------------------------------------------- making


def answer_token(cluster: Cluster, call: Call) -> ApiResponse:
    """POST on `serviceaccounts/NAME/token`."""
    if call.request.method != "POST":
        raise method_not_allowed()
    spec = _spec(call.request.body)
    account = lookup(cluster, SERVICE_ACCOUNTS, call.key)
    if account is None:
        raise not_found("", "serviceaccounts", call.route.name or "")
    reference = spec.get("boundObjectRef")
    bound = _bound(cluster, account, reference) if reference else {}
    issued, seconds = int(call.now), spec["expirationSeconds"]
    claims = {
        "aud": spec["audiences"],
        "exp": issued + seconds,
        "iat": issued,
        "iss": ISSUER,
        "kubernetes.io": {
            "namespace": call.key[0],
            **bound,
            "serviceaccount": _name_and_uid(account),
        },
        "nbf": issued,
        "sub": f"system:serviceaccount:{call.key[0]}:{call.key[1]}",
    }
    status = {
        "token": _token(cluster, claims),
        "expirationTimestamp": timestamp(issued + seconds),
    }
    body = {
        "kind": "TokenRequest",
        "apiVersion": f"{GROUP}/v1",
        "metadata": {
            "name": call.key[1],
            "namespace": call.key[0],
            "creationTimestamp": timestamp(call.now),
        },
        "spec": {"boundObjectRef": None, **spec},
        "status": status,
    }
    return ApiResponse(201, body)


def _spec(body: Any) -> dict[str, Any]:
    """The spec of a TokenRequest with its defaults."""
    given = checked("TokenRequest", "v1", body)
    if given.get("kind", "TokenRequest") != "TokenRequest":
        raise bad_request(
            "the object provided is unrecognized (must be of type TokenRequest)"
        )
    spec = given.get("spec", {})
    seconds = spec.get("expirationSeconds", DEFAULT_SECONDS)
    why = ""
    if seconds < LEAST_SECONDS:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > 1 << 32:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        message = f"Invalid value: {seconds}: {why}"
        fault = Fault("spec.expirationSeconds", "FieldValueInvalid", message)
        raise invalid(GROUP, "TokenRequest", "", [fault])
    audiences = spec.get("audiences") or [ISSUER]
    return {**spec, "audiences": audiences, "expirationSeconds": seconds}


def _name_and_uid(obj: Object) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _bound(
    cluster: Cluster, account: Object, reference: dict[str, str]
) -> dict[str, Any]:
    """The claim about the object that a token is bound to."""
    kind, name = reference.get("kind", ""), reference.get("name", "")
    version = reference.get("apiVersion", "")
    if kind not in BOUND or version != "v1":
        group, _, number = version.rpartition("/")
        called = f"{group}/{number}, Kind={kind}"
        raise bad_request(f"cannot bind token to object of type {called}")
    namespace = "" if kind == "Node" else account["metadata"]["namespace"]
    obj = lookup(cluster, ("", BOUND[kind]), (namespace, name))
    if obj is None:
        raise not_found("", BOUND[kind], name)
    own = account["metadata"]["name"]
    if kind == "Pod" and (obj.get("spec") or {}).get("serviceAccountName") != own:
        raise bad_request(
            f"cannot bind token for serviceaccount {quoted(own)} to pod running with "
            "different serviceaccount name."
        )
    uid = reference.get("uid")
    if uid and uid != obj["metadata"]["uid"]:
        raise conflict(
            "",
            kind,
            name,
            f"the UID in the bound object reference ({uid}) does not match the UID in "
            "record. The object might have been deleted and then recreated",
        )
    return {kind.lower(): _name_and_uid(obj)}


def _base64_json(value: Any) -> str:
    return urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


def _digest(cluster: Cluster, text: str) -> str:
    key = blake2b(cluster.seed.encode(), digest_size=32).digest()
    digest = blake2b(text.encode(), key=key, digest_size=32).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def _token(cluster: Cluster, claims: dict[str, Any]) -> str:
    text = f"{_base64_json({'alg': 'SIMULATED', 'typ': 'JWT'})}.{_base64_json(claims)}"
    return f"{text}.{_digest(cluster, text)}"


# --------------------------------------------------------------------- reading


def user_of_token(
    cluster: Cluster, token: str, now: float, audiences: tuple[str, ...] = ()
) -> User | None:
    """The user of a token; None if it is unknown, expired, for others, or orphaned."""
    found = checked_token(cluster, token, now, audiences)
    return found if isinstance(found, User) else None


def checked_token(
    cluster: Cluster, token: str, now: float, audiences: tuple[str, ...] = ()
) -> User | str:
    """The user of a token for these `audiences`, or the reason to refuse it."""
    claims = _claims(cluster, token)
    if claims is None:
        return "invalid bearer token"
    problem = _time_problem(claims, now) or _audience_problem(
        claims, audiences or (ISSUER,)
    )
    problem = problem or _owner_problem(cluster, claims["kubernetes.io"], now)
    if problem:
        return f"[invalid bearer token, {problem}]"
    return _user(claims)


def _claims(cluster: Cluster, token: str) -> dict[str, Any] | None:
    text, _, digest = token.rpartition(".")
    if not text or digest != _digest(cluster, text):
        return None
    try:
        payload = text.partition(".")[2]
        found = orjson.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (NotBase64, orjson.JSONDecodeError):
        return None
    return found if isinstance(found, dict) else None


def _time_problem(claims: dict[str, Any], now: float) -> str:
    if now >= claims["exp"]:
        return "service account token has expired"
    if now < claims["nbf"] - LEEWAY_SECONDS:
        return "service account token is not valid yet"
    return ""


def _audience_problem(claims: dict[str, Any], audiences: tuple[str, ...]) -> str:
    if set(audiences) & set(claims["aud"]):
        return ""
    made, wanted = (" ".join(map(quoted, each)) for each in (claims["aud"], audiences))
    return f"token audiences [{made}] is invalid for the target audiences [{wanted}]"


def _owner_problem(cluster: Cluster, private: dict[str, Any], now: float) -> str:
    """The reason to refuse a token whose account or object is gone, or ""."""
    namespace, account = private["namespace"], private["serviceaccount"]
    found = lookup(cluster, SERVICE_ACCOUNTS, (namespace, account["name"]))
    if found is None:
        return f"serviceaccounts {quoted(account['name'])} not found"
    if found["metadata"]["uid"] != account["uid"]:
        return (
            f"service account UID ({found['metadata']['uid']}) does not match claim "
            f"({account['uid']})"
        )
    gone = "service account token has been invalidated"
    if _is_ending(found, now):
        return gone
    for kind, plural in BOUND.items():
        bound = private.get(kind.lower())
        if bound is None:
            continue
        where = "" if kind == "Node" else namespace
        obj = lookup(cluster, ("", plural), (where, bound["name"]))
        if obj is None or obj["metadata"]["uid"] != bound["uid"]:
            return gone
        if _is_ending(obj, now):
            return gone
    return ""


def _is_ending(obj: Object, now: float) -> bool:
    deleted = obj["metadata"].get("deletionTimestamp")
    # Timestamps of one format compare as text.
    return deleted is not None and deleted < timestamp(now - LEEWAY_SECONDS)


def _user(claims: dict[str, Any]) -> User:
    private = claims["kubernetes.io"]
    extra = tuple(
        (f"authentication.kubernetes.io/{kind}-{part}", (private[kind][part],))
        for kind in ("node", "pod")
        if kind in private
        for part in ("name", "uid")
    )
    groups = (
        "system:serviceaccounts",
        f"system:serviceaccounts:{private['namespace']}",
        "system:authenticated",
    )
    return User(claims["sub"], groups, private["serviceaccount"]["uid"], extra)
