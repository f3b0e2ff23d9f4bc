"""Credentials as they are found on a machine, for login handlers to answer.

What no login handler answers is found as `kubectl` finds it, plugins included
(`fnop.adapters.kubeconfig`).  These are for handlers that want to look, or to choose.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fnop.core.handlers.connection import ConnectionInfo, LoginError

__all__ = ["login_with_kubeconfig", "login_with_service_account"]

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# Where the API server is for pods, unless their environment says otherwise.
_INSIDE = "kubernetes.default.svc"
# The entries of a kubeconfig for which a `ConnectionInfo` has no field.
_UNSUPPORTED = ("exec", "auth-provider", "as", "as-groups", "as-uid", "tls-server-name")

Section = dict[str, Any]


def login_with_kubeconfig(
    *, kubeconfig: str | None = None, context: str | None = None, **_: Any
) -> ConnectionInfo | None:
    """Read credentials from a kubeconfig: for a login handler to call, or to be.

    `kubeconfig` is the file, by default that in $KUBECONFIG or ~/.kube/config;
    `context` is the context in it, by default the current one. All else that a login
    handler is given is ignored. Answers None where there is no file. Raises
    `LoginError` where the file cannot be used, or names a credentials plugin, which
    only fnop itself runs.

        @fnop.on.login()
        def login(**kwargs):
            return fnop.login_with_kubeconfig(context="staging", **kwargs)
    """
    found = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    paths = [Path(each).expanduser() for each in found.split(os.pathsep) if each]
    files = [path for path in paths if path.is_file()]
    if not files:
        if kubeconfig:
            raise LoginError(f"the kubeconfig {kubeconfig} does not exist")
        return None
    merged = _Merged()
    for file in files:
        merged.add(file)
    return _info_of(merged, context)


def login_with_service_account(**_: Any) -> ConnectionInfo | None:
    """Read the credentials of the pod's service account; None outside of a pod.

    The token is read anew at each login. All that a login handler is given is ignored.

        @fnop.on.login()
        def login(**kwargs):
            return fnop.login_with_service_account(**kwargs)
    """
    token = _text_of(_ACCOUNT / "token")
    if token is None:
        return None
    host = os.environ.get("KUBERNETES_SERVICE_HOST") or _INSIDE
    port = os.environ.get("KUBERNETES_SERVICE_PORT") or "443"
    host = f"[{host}]" if ":" in host else host
    authority = _ACCOUNT / "ca.crt"
    return ConnectionInfo(
        server=f"https://{host}:{port}",
        ca_path=str(authority) if authority.is_file() else None,
        token=token,
        default_namespace=_text_of(_ACCOUNT / "namespace"),
    )


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except FileNotFoundError:
        return None


class _Merged:
    """Several kubeconfigs as one: of each name the first file counts, as in kubectl."""

    def __init__(self) -> None:
        self.context = ""
        self.sections: dict[str, dict[str, Section]] = {}
        self.names: list[str] = []

    def add(self, file: Path) -> None:
        import yaml

        try:
            document = yaml.safe_load(file.read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
            why = " ".join(str(problem).split())
            raise LoginError(f"the kubeconfig {file} cannot be read: {why}") from None
        if not isinstance(document, dict):
            raise LoginError(f"the kubeconfig {file} holds no mapping")
        self.names.append(str(file))
        self.context = self.context or str(document.get("current-context") or "")
        for plural, kind in _KINDS.items():
            section = document.get(plural)
            found = self.sections.setdefault(plural, {})
            for each in section if isinstance(section, list) else ():
                value = each.get(kind) if isinstance(each, dict) else None
                if isinstance(value, dict):
                    found.setdefault(str(each.get("name")), _beside(file, value))

    def named(self, plural: str, name: Any) -> Section:
        """Raises `LoginError` where there is none of the name."""
        found = self.sections.get(plural, {})
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            where, kind = ", ".join(self.names), _KINDS[plural]
            raise LoginError(
                f"there is no {kind} {name!r} in {where}; there is {known}"
            )
        return found[name]


_KINDS = {"contexts": "context", "clusters": "cluster", "users": "user"}
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def _beside(file: Path, section: Mapping[str, Any]) -> Section:
    """Files that it names without a folder are beside it."""
    paths = {
        key: str(file.parent / Path(str(section[key])).expanduser())
        for key in _FILES
        if section.get(key)
    }
    return {**section, **paths}


def _info_of(merged: _Merged, name: str | None) -> ConnectionInfo:
    context = merged.named("contexts", name or merged.context)
    cluster = merged.named("clusters", context.get("cluster"))
    user = merged.named("users", context.get("user")) if context.get("user") else {}
    for key in _UNSUPPORTED:
        if user.get(key) or cluster.get(key):
            raise LoginError(
                f"the kubeconfig says {key!r}, which a login handler cannot answer; "
                "answer None, and fnop uses the kubeconfig itself"
            )
    token = user.get("token")
    if user.get("tokenFile"):  # what it says counts before the other, as in kubectl
        token = _text_of(Path(user["tokenFile"])) or token
    try:
        return ConnectionInfo(
            server=str(cluster.get("server") or ""),
            default_namespace=context.get("namespace"),
            **_either(cluster, "ca", "certificate-authority"),
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
            proxy_url=cluster.get("proxy-url"),
            token=token,
            username=user.get("username") if token is None else None,
            password=user.get("password") if token is None else None,
            **_either(user, "certificate", "client-certificate"),
            **_either(user, "private_key", "client-key"),
        )
    except ValueError as problem:
        raise LoginError(f"{', '.join(merged.names)}: {problem}") from None


def _either(section: Section, field: str, key: str) -> dict[str, Any]:
    """The data of a file itself, or else the path to it, as in kubectl."""
    if data := section.get(f"{key}-data"):
        return {f"{field}_data": data}
    return {f"{field}_path": section.get(key)}
