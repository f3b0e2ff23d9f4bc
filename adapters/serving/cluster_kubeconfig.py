"""The kubeconfig of a served simulated cluster."""

from __future__ import annotations

import base64
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fnop.adapters.serving.certificates import Pair

__all__ = ["MARK", "KubeconfigProblem", "kubeconfig", "write_kubeconfig"]

# The first line of a file that fnop wrote, and may overwrite.
MARK = "# A simulated cluster's; written by fnop cluster."


class KubeconfigProblem(Exception):
    """The kubeconfig cannot be written; the text is one sentence."""


def kubeconfig(url: str, admin: tuple[bytes, Pair] | None = None) -> dict[str, Any]:
    """The admin's kubeconfig; `admin` is the authority's certificate and a pair.

    >>> kubeconfig("http://127.0.0.1:1")["current-context"]
    'fnop'
    """
    server: dict[str, Any] = {"server": url}
    user: dict[str, Any] = {}
    if admin is not None:
        authority, pair = admin
        server["certificate-authority-data"] = _base64(authority)
        user["client-certificate-data"] = _base64(pair.certificate)
        user["client-key-data"] = _base64(pair.key)
    context = {"cluster": "fnop", "user": "fnop", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fnop",
        "clusters": [{"name": "fnop", "cluster": server}],
        "contexts": [{"name": "fnop", "context": context}],
        "users": [{"name": "fnop", "user": user}],
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def write_kubeconfig(
    path: str | Path, url: str, admin: tuple[bytes, Pair] | None = None
) -> None:
    """Write the kubeconfig, readable only by its owner; never overwrite others' files.

    Raises `KubeconfigProblem`.
    """
    target = Path(path)
    # JSON is YAML.
    text = f"{MARK}\n{json.dumps(kubeconfig(url, admin), indent=1)}\n"
    try:
        if target.exists() and not (target.is_file() and _is_ours(target)):
            raise KubeconfigProblem(
                f"{path} exists and is not of fnop cluster; name another --kubeconfig"
            )
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            fresh.replace(target)
        finally:
            with suppress(OSError):
                fresh.unlink()
    except OSError as problem:
        why = problem.strerror or problem
        raise KubeconfigProblem(f"cannot write {path}: {why}") from problem


def _is_ours(file: Path) -> bool:
    with file.open(encoding="utf-8", errors="replace") as text:
        begin = text.read(1000)
    return not begin.strip() or begin.startswith(MARK)
