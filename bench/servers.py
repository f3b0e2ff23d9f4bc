"""The API servers that a benchmark can start for its operators."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.process import ROOT
from tests.cluster import crd_server, envtest

__all__ = ["CRD", "FULL", "SERVERS", "missing", "running", "server_words"]

# A whole kube-apiserver; and a server of custom kinds, which has streaming lists.
FULL, CRD = "full", "crd"
SERVERS = (FULL, CRD)


def missing(server: str) -> str | None:
    """The reason why this server cannot be started here, or None."""
    if server == FULL:
        return envtest.missing()
    if shutil.which("openssl") is None:
        return "needs openssl, which makes the certificates of its API server"
    return crd_server.missing()


def server_words(server: str, version: str) -> str:
    """The words for a server in reports.

    >>> server_words("full", "v1.20.2")
    'kube-apiserver v1.20.2'
    >>> server_words("crd", "v1.36")
    'an API server of custom kinds v1.36'
    """
    name = "kube-apiserver" if server == FULL else "an API server of custom kinds"
    return f"{name} {version}"


@contextmanager
def running(server: str, folder: Path, *, controllers: bool = True) -> Iterator[str]:
    """Run a server for as long as the block; the path of a kubeconfig for it.

    The server of custom kinds stands behind its front, and has no controllers.
    """
    if server == FULL:
        with envtest.running(folder, controllers=controllers) as api:
            yield str(api.kubeconfig)
        return
    (folder / "behind").mkdir(parents=True)
    with (
        crd_server.running(folder / "behind") as api,
        in_front_of(api.url, folder) as url,
    ):
        envtest.write_kubeconfigs(folder, url)
        yield str(folder / "kubeconfig")


@contextmanager
def in_front_of(url: str, folder: Path) -> Iterator[str]:
    """The URL of a front with certificates in the folder, in a process of its own."""
    pki = folder / "pki"
    envtest.make_certificates(pki)
    args = [*envtest.dying_with_us(), sys.executable, "-m", "bench.front"]
    args += [url.rpartition(":")[2], str(pki / "server.crt"), str(pki / "server.key")]
    front = subprocess.Popen(args, cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert front.stdout is not None
        port = int(front.stdout.readline())
        yield f"https://127.0.0.1:{port}"
    finally:
        envtest.end(front)
