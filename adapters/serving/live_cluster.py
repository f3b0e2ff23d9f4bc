"""A simulated cluster that is served on this machine, next to what uses it.

It runs in real time, in a thread with an event loop of its own: a client that blocks
its own loop does not stop the cluster.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from fnop.adapters.common.plain import echo
from fnop.adapters.serving.api_server import HttpServer
from fnop.adapters.serving.cluster_client import OWN_SERVICE, populate
from fnop.adapters.serving.cluster_host import Caller, Host
from fnop.adapters.serving.cluster_kubeconfig import write_kubeconfig
from fnop.adapters.serving.cluster_login import Admin
from fnop.adapters.serving.webhook_calls import WebhookCaller
from fnop.interpreters.cluster import Cluster, empty_cluster
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.documents import discovered
from fnop.interpreters.simulation.scenario import results

__all__ = ["OF_PODS", "Live", "Served", "served", "served_here"]

# The variables by which clients find the cluster of their pod.
OF_PODS = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


class Live:
    """A cluster that answers requests over HTTP, in a thread of its own."""

    def __init__(self, state: Cluster, call: Caller) -> None:
        self.host = Host(state, SystemClock(), call)
        self._server = HttpServer(self.host, Admin(self.host))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="fnop-cluster", daemon=True
        )
        self._thread.start()
        try:
            port = asyncio.run_coroutine_threadsafe(
                self._server.start("127.0.0.1", 0), self._loop
            ).result()
        except BaseException:
            self._stop_loop()
            raise
        self.url = f"http://127.0.0.1:{port}"

    def answer(self, request: ApiRequest) -> ApiResponse:
        """Answer a request of this process, between those of the clients."""

        async def answered() -> ApiResponse:
            found = self.host.answer(request)
            return found if isinstance(found, ApiResponse) else await found

        return asyncio.run_coroutine_threadsafe(answered(), self._loop).result()

    def populate(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Create objects. Raises `ObjectProblem` for a refusal."""
        populate(lambda: self.host.cluster.registry, self.answer, manifests)

    def objects(self) -> list[dict[str, Any]]:
        """All objects except definitions and those that the cluster began with."""
        own = "Service", OWN_SERVICE["metadata"]["name"]
        return [
            each
            for each in results(self.answer, discovered(self.answer))
            if (each["kind"], each["metadata"]["name"]) != own
        ]

    def close(self) -> None:
        """End all connections, and the thread."""
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result()
        self._stop_loop()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Served(Struct, frozen=True):
    """A served cluster, and the kubeconfig for its clients."""

    live: Live
    kubeconfig: Path

    @property
    def url(self) -> str:
        """The address."""
        return self.live.url


@contextmanager
def served(state: Cluster) -> Iterator[Served]:
    """Serve a cluster over HTTP on a free port of this machine, for the block."""
    with tempfile.TemporaryDirectory(prefix="fnop-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        live = Live(state, WebhookCaller({}))
        try:
            write_kubeconfig(kubeconfig, live.url)
            yield Served(live, kubeconfig)
        finally:
            live.close()


@contextmanager
def served_here() -> Iterator[Live]:
    """Serve an empty cluster that all clients of this process find, and no other one.

    They read `KUBECONFIG`. The variables of a pod would lead some of them to the
    cluster around this process, so they are hidden.
    """
    now = SystemClock().now().wall
    names = ("KUBECONFIG", *OF_PODS)
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        with served(empty_cluster(secrets.token_hex(4), now)) as found:
            os.environ["KUBECONFIG"] = str(found.kubeconfig)
            echo(f"serving a simulated cluster at {found.url}", err=True)
            echo(f"export KUBECONFIG={found.kubeconfig}", err=True)
            yield found.live
    finally:
        os.environ.pop("KUBECONFIG", None)
        os.environ.update(before)
