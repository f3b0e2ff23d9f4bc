"""This process among its peers: its identity, from the command line and the machine."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from typing import Any

from fnop.adapters.kubernetes import service_account
from fnop.core.api.namespaces import has_patterns
from fnop.core.handlers.declare.settings import Settings
from fnop.core.peers.lease import Candidate, candidate_identity
from fnop.core.peers.peers import (
    DEV_PRIORITY,
    LIFETIME_SECONDS,
    Member,
    Mode,
    manual_identity,
    own_identity,
)

__all__ = ["candidate_of", "facts", "member_of", "person", "replicated"]


def facts() -> dict[str, Any]:
    """The facts that identify this process: its user, its host, its pod."""
    host = socket.gethostname()
    return {"user": _user(), "host": host, "pod_id": os.environ.get("POD_ID") or None}


def _user() -> str:
    """The user's name; a container's user may have only a number."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return str(os.getuid()) if hasattr(os, "getuid") else "nobody"


def person(given: str | None) -> str:
    """The name of a person who freezes and resumes operators."""
    return given or manual_identity(**facts())


def member_of(
    *,
    peering: str | None = None,
    priority: int = 0,
    dev: bool = False,
    lifetime: int = LIFETIME_SECONDS,
    standalone: bool = False,
    identity: str | None = None,
    wall: float,
) -> Member | None:
    """The operator's membership of a peering; None if it does not look for peers.

    A named `peering` has to exist; without a name, "default" is used if it exists.
    """
    if standalone:
        return None
    if identity is None:
        identity = own_identity(wall=wall, token=secrets.token_hex(2), **facts())
    return Member(
        identity,
        DEV_PRIORITY if dev else priority,
        lifetime,
        name=peering or "default",
        mode=Mode.AUTO if peering is None else Mode.MANDATORY,
    )


def candidate_of(
    operator: str, namespaces: tuple[str, ...] | None, lease_namespace: str | None
) -> Candidate:
    """The replica's candidacy for the lease `fnop-<operator>`.

    The lease's namespace is the requested one, the pod's own, the only served one, or
    `default`.
    """
    where = lease_namespace
    if where is None:
        where = service_account.namespace()
    if where is None and namespaces and not has_patterns(namespaces):
        where = namespaces[0]
    host = os.environ.get("POD_ID") or socket.gethostname()
    identity = candidate_identity(host, secrets.token_hex(4))
    return Candidate(identity, where or "default", f"fnop-{operator}")


def replicated(settings: Settings) -> Settings:
    """The settings of a simulated replica, which is a candidate among others."""
    lease = f"fnop-{settings.operator}"
    return settings.replace(election=Candidate("replica-1", "default", lease))
