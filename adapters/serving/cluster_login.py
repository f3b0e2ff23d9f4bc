"""Authentication: client certificates, bearer tokens, impersonation."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

from fnop.adapters.serving.api_server import Credentials
from fnop.adapters.serving.cluster_host import Host
from fnop.interpreters.cluster.access.impersonation import impersonated
from fnop.interpreters.cluster.access.tokens import user_of_token
from fnop.interpreters.cluster.values.status import failure
from fnop.interpreters.runtime.protocol import ApiResponse, User

__all__ = [
    "EVERYBODY",
    "Admin",
    "Authentication",
    "TokenProblem",
    "read_tokens",
    "user_of",
]

EVERYBODY = "system:authenticated"
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


class TokenProblem(Exception):
    """A token file cannot be used; the text is one sentence."""


def read_tokens(path: str) -> dict[str, User]:
    """The users of a file as of kube-apiserver's --token-auth-file, by token.

    Each line is `token,user,uid` and optionally `,"group1,group2"`.
    Raises `TokenProblem`.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise TokenProblem(f"the token file {path} cannot be read: {why}") from problem
    found: dict[str, User] = {}
    for line, row in rows:
        if not any(row):
            continue
        token, name, uid, *rest = [*map(str.strip, row), "", ""][: max(3, len(row))]
        if len(row) < 3 or not token or not name:
            raise TokenProblem(
                f'{path}:{line} is not a token; write: token,user,uid,"group1,group2"'
            )
        groups = [each.strip() for each in rest[0].split(",")] if rest else []
        found[token] = User(name, (*filter(None, groups), EVERYBODY), uid)
    return found


def user_of(certificate: Mapping[str, Any]) -> User:
    """The user of a client certificate: its common name, its organizations.

    >>> user_of({"subject": ((("organizationName", "a"),), (("commonName", "b"),))})
    User(name='b', groups=('a', 'system:authenticated'), uid='', extra=())
    """
    pairs = [pair for parts in certificate["subject"] for pair in parts]
    names = [value for key, value in pairs if key == "commonName"]
    groups = [value for key, value in pairs if key == "organizationName"]
    return User(names[-1] if names else "", (*groups, EVERYBODY))


class Authentication:
    """Authenticates as kube-apiserver does: by certificate, by token, else anonymously.

    Without RBAC, anonymous requests are refused: then no permission could be withheld
    from them.
    """

    def __init__(self, host: Host, tokens: Mapping[str, User]) -> None:
        self._host = host
        self._tokens = tokens

    def __call__(self, given: Credentials) -> User | ApiResponse | None:
        user = self._authenticate(given)
        if user is None:
            return failure(401, "Unauthorized", "Unauthorized").response
        if not given.impersonate:
            return user
        return acting_as(self._host, user, given)

    def _authenticate(self, given: Credentials) -> User | None:
        if given.certificate:
            return user_of(given.certificate)
        scheme, _, token = (given.authorization or "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and token:
            known = self._tokens.get(token)
            return known or user_of_token(self._host.cluster, token, self._host.now)
        return ANONYMOUS if self._host.cluster.rbac else None


class Admin:
    """A login that lets every client do everything, and impersonate any user."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __call__(self, given: Credentials) -> User | ApiResponse | None:
        return acting_as(self._host, None, given) if given.impersonate else None


def acting_as(
    host: Host, user: User | None, given: Credentials
) -> User | ApiResponse | None:
    """The user whom a request impersonates."""
    return impersonated(host.cluster, user, given.impersonate)
