"""A real API server that serves custom kinds only, of a current Kubernetes version.

It has features that Kubernetes 1.20 lacks: CEL rules, strict field validation,
selectable fields, watches that begin with a list. It has no built-in kinds but
definitions, no namespaces (any name counts as created), no users, no garbage collector.

The binary is the one that FNOP_CRD_APISERVER names, or `crd-apiserver-1.36` in the
folder KUBEBUILDER_ASSETS; next to it is `etcd-3.5` or `etcd`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cluster.envtest import (
    ApiServer,
    assets,
    etcd_flags,
    free_ports,
    http_ok,
    serving,
)

__all__ = ["missing", "running"]


def binary() -> Path:
    """The API server; it may be a file that does not exist."""
    named = os.environ.get("FNOP_CRD_APISERVER")
    return Path(named) if named else assets() / "crd-apiserver-1.36"


def etcd() -> Path:
    """The etcd next to it: the current one if there are two."""
    current = binary().parent / "etcd-3.5"
    return current if current.exists() else current.with_name("etcd")


def missing() -> str | None:
    """Why no such API server can be started here, or None."""
    if all(os.access(path, os.X_OK) for path in (binary(), etcd())):
        return None
    return (
        "needs a CRD-only API server: set FNOP_CRD_APISERVER to the binary, "
        "with etcd beside it"
    )


@contextmanager
def running(folder: Path) -> Iterator[ApiServer]:
    """Start both in the folder; end them on the way out, whatever happens."""
    etcd_port, peer_port, port = free_ports(3)
    anyone = ssl._create_unverified_context()  # its certificate is its own
    api = ApiServer(f"https://127.0.0.1:{port}", folder, anyone)
    flags = [
        f"-etcd=http://127.0.0.1:{etcd_port}",
        f"-port={port}",
        f"-cert-dir={folder / 'pki'}",
    ]
    with ExitStack() as started:
        started.enter_context(
            serving(
                etcd(),
                etcd_flags(folder, etcd_port, peer_port),
                folder,
                lambda: http_ok(etcd_port, "/health"),
            )
        )
        started.enter_context(
            serving(binary(), flags, folder, lambda: http_ok(port, "/readyz", anyone))
        )
        started.callback(api.close)
        yield api
