"""Kopf's logins: credentials for fnop, and for the author's own client libraries."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from fnop.adapters.kopf.arguments.connections import ConnectionInfo
from fnop.adapters.kopf.declaring.registry import Entry, OperatorRegistry
from fnop.adapters.kubernetes import credentials
from fnop.core.handlers.declare import connection
from fnop.core.handlers.declare.connection import LoginError
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


def connection_of(found: Any) -> connection.ConnectionInfo | None:
    """The result of a login handler as fnop's credentials.

    Raises `LoginError` for what cannot be credentials.
    """
    if found is None or isinstance(found, connection.ConnectionInfo):
        return found
    if isinstance(found, AiohttpSession):
        raise LoginError(
            "fnop makes its own connections: return kopf.ConnectionInfo with the "
            "token or certificate of the session"
        )
    raise LoginError(f"a login handler answers kopf.ConnectionInfo, not {found!r:.60}")


def login_with_kubeconfig(**kwargs: Any) -> ConnectionInfo | None:
    """Read credentials from a kubeconfig, as fnop's own function of this name does."""
    return ConnectionInfo.of(credentials.login_with_kubeconfig(**kwargs))


def login_with_service_account(**kwargs: Any) -> ConnectionInfo | None:
    """Read credentials of the pod, as fnop's own function of this name does."""
    return ConnectionInfo.of(credentials.login_with_service_account(**kwargs))


class _Cluster(NamedTuple):
    """The kubeconfig and the context that the user has chosen, if any."""

    kubeconfig: str | None
    context: str | None

    @property
    def is_chosen(self) -> bool:
        return self.kubeconfig is not None or self.context is not None

    def connection(self) -> ConnectionInfo | None:
        """The credentials of the pod or of the kubeconfig; None without either."""
        found = None if self.is_chosen else login_with_service_account()
        return found or login_with_kubeconfig(**self._asdict())

    def configure(self, config: Any) -> Any:
        """Let a library load the configuration; an awaitable if it is asynchronous."""
        options = {"config_file": self.kubeconfig, "context": self.context}
        given = {name: value for name, value in options.items() if value is not None}
        if self.is_chosen:
            return config.load_kube_config(**given)
        try:
            return config.load_incluster_config()
        except config.ConfigException:
            return config.load_kube_config()


def login_via_client(
    *, kubeconfig: str | None = None, context: str | None = None, **_: Any
) -> ConnectionInfo | None:
    """Configure the official client, and log in with the same credentials.

    None if the library is not installed. Raises `LoginError` if it finds no cluster.
    """
    if find_spec("kubernetes") is None:
        return None
    cluster = _Cluster(kubeconfig, context)
    try:
        cluster.configure(import_module("kubernetes.config"))
    except Exception as problem:
        raise _unusable("kubernetes", problem) from problem
    return _connection("kubernetes", cluster)


async def login_via_async_client(
    *, kubeconfig: str | None = None, context: str | None = None, **_: Any
) -> ConnectionInfo | None:
    """Configure kubernetes_asyncio, and log in with the same credentials."""
    if find_spec("kubernetes_asyncio") is None:
        return None
    cluster = _Cluster(kubeconfig, context)
    loading = cluster.configure(import_module("kubernetes_asyncio.config"))
    if loading is not None:
        await loading
    return _connection("kubernetes_asyncio", cluster)


def login_via_pykube(
    *, kubeconfig: str | None = None, context: str | None = None, **_: Any
) -> ConnectionInfo | None:
    """Log in as pykube does; it reads its configuration itself."""
    if find_spec("pykube") is None:
        return None
    return _connection("pykube", _Cluster(kubeconfig, context))


def _connection(library: str, cluster: _Cluster) -> ConnectionInfo | None:
    try:
        return cluster.connection()
    except LoginError:  # credentials plugins, for example, which only fnop runs
        return None
    except Exception as problem:
        raise _unusable(library, problem) from problem


def _unusable(library: str, problem: Exception) -> LoginError:
    return LoginError(f"{library} cannot be configured: {problem}")


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
    if recorded is not None:
        return _entries(e for e in DEFAULT_LOGINS if e.__name__ in recorded)
    found: list[Any] = []
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
