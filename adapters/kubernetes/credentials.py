"""Credentials as found on a machine, for login handlers to return.

Credentials that no login handler returns are found as `kubectl` finds them, plugins
included (`fnop.adapters.kubernetes.kubeconfig`). These functions are for handlers that
inspect or choose credentials.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from returns.result import Failure, Success

from fnop.adapters.kubernetes import service_account
from fnop.adapters.kubernetes.kubeconfig_files import (
    Absent,
    Access,
    Pipes,
    access_in,
    info_of,
    located,
)
from fnop.core.handlers.declare.connection import ConnectionInfo, LoginError

__all__ = ["login_with_kubeconfig", "login_with_service_account"]

# The address of the API server for pods, unless their environment has another.
_INSIDE = "kubernetes.default.svc"
# Sections about a user that only fnop itself runs.
_UNSUPPORTED = ("exec", "auth-provider")


def login_with_kubeconfig(
    *, kubeconfig: str | None = None, context: str | None = None, **_: Any
) -> ConnectionInfo | None:
    """Read credentials from a kubeconfig: for a login handler to call, or to be.

    `kubeconfig` is the file, by default the one in $KUBECONFIG or ~/.kube/config.
    `context` is the context in it, by default the current one. All other arguments of a
    login handler are ignored. Returns None if there is no file. Raises `LoginError` if
    the file cannot be used, or names a credentials plugin, which only fnop itself runs.

        @fnop.on.login()
        def login(**kwargs):
            return fnop.login_with_kubeconfig(context="staging", **kwargs)
    """
    match located(kubeconfig):
        case Success(paths):
            return _info_in(paths, context)
        case Failure(Absent("caller", text)):
            raise LoginError(text)
        case Failure(_):
            return None


def login_with_service_account(**_: Any) -> ConnectionInfo | None:
    """Read the credentials of the pod's service account; None outside of a pod.

    The token is read again at each login. All arguments of a login handler are ignored.

        @fnop.on.login()
        def login(**kwargs):
            return fnop.login_with_service_account(**kwargs)
    """
    token = service_account.token()
    if token is None:
        return None
    host = os.environ.get("KUBERNETES_SERVICE_HOST") or _INSIDE
    port = os.environ.get("KUBERNETES_SERVICE_PORT") or "443"
    host = f"[{host}]" if ":" in host else host
    authority = service_account.authority_file()
    return ConnectionInfo(
        server=f"https://{host}:{port}",
        ca_path=str(authority) if authority.is_file() else None,
        token=token,
        default_namespace=service_account.namespace(),
    )


# A login handler keeps no state between two calls. So this has the contents of the
# pipes that it names, by marks that distinguish pipes with the same path.
_PIPES: dict[tuple[Any, ...], Pipes] = {}


def _pipes_among(paths: tuple[Path, ...]) -> Pipes:
    found = [(path, path.stat()) for path in paths if _is_pipe(path)]
    key = tuple((path, stat.st_dev, stat.st_ino) for path, stat in found)
    return _PIPES.setdefault(key, {}) if key else {}


def _is_pipe(path: Path) -> bool:
    try:
        return path.is_fifo()
    except OSError:
        return False  # reading it raises the reason


def _info_in(paths: tuple[Path, ...], context: str | None) -> ConnectionInfo:
    match access_in(paths, context, _pipes_among(paths)):
        case Success(found):
            return _info_of(found)
        case Failure(text):
            raise LoginError(text)


def _info_of(access: Access) -> ConnectionInfo:
    for key in _UNSUPPORTED:
        if key in access.user:
            raise LoginError(
                f"the kubeconfig says {key!r}, which a login handler cannot answer; "
                "answer None, and fnop uses the kubeconfig itself"
            )
    try:
        return info_of(access)
    except ValueError as problem:
        raise LoginError(f"{access.title}: {problem}") from None
