"""Kopf's logins: credentials for fnop, and for the author's own client libraries."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fnop.adapters.kubernetes.credentials import (
    login_with_kubeconfig,
    login_with_service_account,
)
from fnop.core.handlers.declare.connection import ConnectionInfo, LoginError

__all__ = [
    "AiohttpSession",
    "configure_clients",
    "connection_of",
    "login_via_async_client",
    "login_via_client",
    "login_via_pykube",
    "login_with_kubeconfig",
    "login_with_service_account",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AiohttpSession:
    """A session of aiohttp as credentials, which fnop cannot use: it has its own."""

    server: str
    aiohttp_session: Any
    priority: int = 0
    default_namespace: str | None = None
    expiration: Any = None


def connection_of(found: Any) -> ConnectionInfo | None:
    """The result of a login handler as fnop's credentials.

    Raises `LoginError` for what cannot be credentials.
    """
    if found is None or isinstance(found, ConnectionInfo):
        return found
    if isinstance(found, AiohttpSession):
        raise LoginError(
            "fnop makes its own connections: return kopf.ConnectionInfo with the "
            "token or certificate of the session"
        )
    raise LoginError(f"a login handler answers kopf.ConnectionInfo, not {found!r:.60}")


def _current() -> ConnectionInfo | None:
    """The credentials of the kubeconfig or of the pod; None without either."""
    return login_with_service_account() or login_with_kubeconfig()


def login_via_client(*, logger: Any = None, **_: Any) -> ConnectionInfo | None:
    """Configure the official client, and log in with the same credentials.

    None if the library is not installed. Raises `LoginError` if it finds no cluster.
    """
    return _via("kubernetes", _configure_official)


async def login_via_async_client(
    *, logger: Any = None, **_: Any
) -> ConnectionInfo | None:
    """Configure kubernetes_asyncio, and log in with the same credentials."""
    if find_spec("kubernetes_asyncio") is None:
        return None
    await _configure_async()
    return _via("kubernetes_asyncio", lambda: None)


def login_via_pykube(*, logger: Any = None, **_: Any) -> ConnectionInfo | None:
    """Log in as pykube does; it reads its configuration itself."""
    return _via("pykube", lambda: None)


def _via(library: str, configure: Any) -> ConnectionInfo | None:
    if find_spec(library) is None:
        return None
    try:
        configure()
    except Exception as problem:
        raise LoginError(f"{library} cannot be configured: {problem}") from problem
    found = _current()
    if found is None:
        raise LoginError("neither a kubeconfig nor a service account is there")
    return found


def _configure_official() -> None:
    config = import_module("kubernetes.config")
    try:
        config.load_incluster_config()
    except config.ConfigException:
        config.load_kube_config()


async def _configure_async() -> None:
    config = import_module("kubernetes_asyncio.config")
    try:
        config.load_incluster_config()
    except config.ConfigException:
        await config.load_kube_config()


async def configure_clients() -> None:
    """Configure the client libraries that are imported already, as Kopf's logins do.

    Operators use them without a login of their own. A library that finds no cluster is
    left as it is: its own calls say so.
    """
    loaded: Mapping[str, Any] = sys.modules
    if "kubernetes" in loaded:
        try:
            _configure_official()
        except Exception:
            return
    if "kubernetes_asyncio" in loaded:
        try:
            await _configure_async()
        except Exception:
            return
