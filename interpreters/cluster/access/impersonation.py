"""Impersonation: the Impersonate-* headers of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from fnop.interpreters.cluster.access.rbac import decide, not_permitted
from fnop.interpreters.cluster.requests.request import Attributes
from fnop.interpreters.cluster.storage.store import Cluster
from fnop.interpreters.runtime.protocol import ApiResponse, User

__all__ = ["impersonated", "service_account_of"]

USER, GROUP, UID = "impersonate-user", "impersonate-group", "impersonate-uid"
EXTRA = "impersonate-extra-"
AUTHENTICATION = "authentication.k8s.io"
ANYBODY, NOBODY = "system:authenticated", "system:unauthenticated"
ANONYMOUS = "system:anonymous"
ACCOUNT = re.compile(
    r"system:serviceaccount:([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)"
    r":([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?)"
)


def service_account_of(username: str) -> tuple[str, str] | None:
    """The namespace and name in the username of a service account.

    >>> service_account_of("system:serviceaccount:default:robot")
    ('default', 'robot')
    >>> service_account_of("robot") is None
    True
    """
    match = ACCOUNT.fullmatch(username)
    return (match[1], match[3]) if match else None


def impersonated(
    cluster: Cluster, user: User | None, headers: Iterable[tuple[str, str]]
) -> User | ApiResponse | None:
    """The user that a request acts as, by its headers, or a refusal.

    `headers` are all headers of the request. Without a `user`, or without RBAC, no
    permission is needed. The rules come from the filter WithImpersonation.
    """
    named = [(name.lower(), value) for name, value in headers]
    given = [(name, value) for name, value in named if name.startswith("impersonate-")]
    wanted, extra = dict(given), _extra_values(given)
    groups = [value for name, value in given if name == GROUP and value]
    name, uid = wanted.get(USER, ""), wanted.get(UID, "")
    if not name:
        return _no_user_error(given) if groups or uid or extra else user
    asked = [_user_attributes(name), *map(_group_attributes, groups)]
    asked += _extra_attributes(extra)
    if uid:
        asked.append(Attributes("impersonate", AUTHENTICATION, "uids", name=uid))
    refused = _find_refusal(cluster, user, asked)
    if refused is not None:
        return refused
    extras = tuple((key, tuple(values)) for key, values in extra.items())
    return User(name, _groups(name, groups), uid, extras)


def _extra_values(given: list[tuple[str, str]]) -> dict[str, list[str]]:
    """The values of the headers Impersonate-Extra-*, by their keys."""
    extra: dict[str, list[str]] = {}
    for name, value in given:
        if name.startswith(EXTRA) and value:
            extra.setdefault(unquote(name.removeprefix(EXTRA)), []).append(value)
    return extra


def _no_user_error(given: list[tuple[str, str]]) -> ApiResponse:
    """The answer, in plain text, to a group or extra without a user."""
    what = ", ".join(f"{name}: {value}" for name, value in given)
    return ApiResponse(
        500,
        f"Internal Server Error: requested [{what}] without impersonating a user\n",
    )


def _user_attributes(name: str) -> Attributes:
    account = service_account_of(name)
    if account is None:
        return Attributes("impersonate", "", "users", name=name)
    return Attributes("impersonate", "", "serviceaccounts", "", *account)


def _group_attributes(group: str) -> Attributes:
    return Attributes("impersonate", "", "groups", name=group)


def _extra_attributes(extra: dict[str, list[str]]) -> Iterator[Attributes]:
    for key, values in extra.items():
        for value in values:
            yield Attributes(
                "impersonate", AUTHENTICATION, "userextras", key, name=value
            )


def _find_refusal(
    cluster: Cluster, user: User | None, asked: list[Attributes]
) -> ApiResponse | None:
    if user is None:
        return None
    for wanted in asked:
        decision = decide(cluster, user, wanted)
        if not decision.allowed:
            return not_permitted(user, wanted, decision.reason).response
    return None


def _groups(name: str, groups: list[str]) -> tuple[str, ...]:
    """The impersonated groups, and the groups that every user of this name has."""
    account = service_account_of(name)
    if account is not None and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
    everybody = NOBODY if name == ANONYMOUS else ANYBODY
    if ANYBODY in groups or NOBODY in groups:
        return tuple(groups)
    return (*groups, everybody)
