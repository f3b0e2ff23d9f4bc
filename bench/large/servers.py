"""The API servers that the bench starts, one for each operator."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.process import ROOT
from tests.cluster import crd_server, envtest

__all__ = ["SERVERS", "missing"]


def missing(server: str) -> str | None:
    """The reason why this server cannot be started here, or None."""
    if server == "full":
        return envtest.missing()
    if shutil.which("openssl") is None:
        return "needs openssl, which makes the certificates of its API server"
    return crd_server.missing()


@contextmanager
def full(folder: Path) -> Iterator[str]:
    """A whole kube-apiserver, without controllers; the path of its kubeconfig."""
    with envtest.running(folder, controllers=False) as api:
        yield str(api.kubeconfig)


@contextmanager
def custom_only(folder: Path) -> Iterator[str]:
    """The server of custom kinds behind its front; the path of a kubeconfig for it."""
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
    args = [*envtest.dying_with_us(), sys.executable, "-m", "bench.large.front"]
    args += [url.rpartition(":")[2], str(pki / "server.crt"), str(pki / "server.key")]
    front = subprocess.Popen(args, cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert front.stdout is not None
        port = int(front.stdout.readline())
        yield f"https://127.0.0.1:{port}"
    finally:
        envtest.end(front)


SERVERS: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    "crd": custom_only,
    "full": full,
}
