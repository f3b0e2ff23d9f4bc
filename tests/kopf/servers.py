"""The servers of stories: a real API server, and a simulated cluster."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import yaml

from tests.clients.conftest import running as served
from tests.cluster.envtest import ApiServer, make_certificates, running as real

__all__ = ["SERVERS"]


@contextmanager
def simulated(folder: Path) -> Iterator[ApiServer]:
    """`fnop cluster` with TLS. As on the real server, nobody schedules or runs pods."""
    make_certificates(folder / "pki")
    with served(folder, "--tls", "--controllers", "kubelet=off") as cluster:
        found = yaml.safe_load(cluster.kubeconfig.read_text())
        api = ApiServer(cluster.url, folder, _tls_of(found, folder))
        try:
            yield api
        finally:
            api.close()


def _tls_of(
    kubeconfig: dict[str, list[dict[str, dict[str, str]]]], folder: Path
) -> ssl.SSLContext:
    (cluster,), (user,) = kubeconfig["clusters"], kubeconfig["users"]

    def text(data: str) -> str:
        return base64.b64decode(data).decode()

    tls = ssl.create_default_context(
        cadata=text(cluster["cluster"]["certificate-authority-data"])
    )
    pair = folder / "admin.pem"
    pair.write_text(
        text(user["user"]["client-key-data"])
        + text(user["user"]["client-certificate-data"])
    )
    tls.load_cert_chain(pair)
    return tls


SERVERS: dict[str, Callable[[Path], AbstractContextManager[ApiServer]]] = {
    "real": real,
    "simulated": simulated,
}
