"""The service account of the pod that fnop runs in (Kubernetes: service accounts).

Kubelet mounts its token, its namespace and the cluster's authority in one folder.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["FOLDER", "authority_file", "namespace", "token", "token_file"]

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def token_file() -> Path:
    """The path of the token; kubelet replaces it before it expires."""
    return FOLDER / "token"


def authority_file() -> Path:
    """The path of the certificate of the cluster's authority."""
    return FOLDER / "ca.crt"


def token() -> str | None:
    """The present token; None outside of a pod. Raises `OSError`."""
    return _text_of(token_file())


def namespace() -> str | None:
    """The namespace that the pod runs in; None outside of a pod.  Raises `OSError`."""
    return _text_of(FOLDER / "namespace")


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text("utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
