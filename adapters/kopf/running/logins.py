"""Kopf's logins: credentials for fnop, and for the author's own client libraries."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fnop.adapters.kopf.declaring.registry import Entry, OperatorRegistry
from fnop.adapters.kubernetes.credentials import (
    login_with_kubeconfig,
    login_with_service_account,
)
from fnop.core.handlers.declare.connection import ConnectionInfo, LoginError
from fnop.core.handlers.declare.roles import Role
from fnop.core.values.errors import ErrorsMode

__all__ = [
    "DEFAULT_LOGINS",
    "AiohttpSession",
    "connection_of",
    "default_logins",
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


def _via(library: str, configure: Callable[[], None]) -> ConnectionInfo | None:
    """Log in with the library's credentials, once it is configured."""
    if find_spec(library) is None:
        return None
    try:
        configure()
        return _current()
    except LoginError:  # credentials plugins, for example, which only fnop runs
        return None
    except Exception as problem:
        raise LoginError(f"{library} cannot be configured: {problem}") from problem


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


def default_logins(
    registry: OperatorRegistry, recorded: Collection[str] | None = None
) -> list[Entry]:
    """The logins of an operator without any: by the libraries that are installed.

    They configure these libraries, which handlers use. kubernetes_asyncio comes with
    fnop, so it counts only if the operator has imported it. With the ids of `recorded`
    handlers, they are those of the recording: other libraries may be installed here.
    """
    if any(each.role is Role.LOGIN for each in registry.entries):
        return []
    found: list[Any] = []
    if recorded is not None:
        found = [each for each in DEFAULT_LOGINS if each.__name__ in recorded]
        return _entries(found)
    if find_spec("pykube") is not None:
        found.append(login_via_pykube)
    if find_spec("kubernetes") is not None:
        found.append(login_via_client)
    elif "kubernetes_asyncio" in sys.modules:
        found.append(login_via_async_client)
    return _entries(found)


# All that can be among the default logins.
DEFAULT_LOGINS = (login_via_pykube, login_via_client, login_via_async_client)


def _entries(logins: Iterable[Any]) -> list[Entry]:
    options = {"errors": ErrorsMode.IGNORED}
    return [Entry(Role.LOGIN, (), options, fn) for fn in logins]
