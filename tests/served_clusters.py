"""A simulated cluster that is served over HTTP, and a client of it."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from fnop.adapters.testing.cluster_fixture import SimulatedCluster
from fnop.interpreters.cluster import Off
from tests.patience import patience

MAPS = "/api/v1/namespaces/default/configmaps"
LIMIT = 3 * 1024 * 1024


class Client:
    """One keep-alive connection to a served cluster."""

    def __init__(self, address: tuple[str, int], cluster: SimulatedCluster) -> None:
        self.address = address
        self.cluster = cluster
        self.others: list[http.client.HTTPConnection | socket.socket] = []
        self.http = self.connected()

    def connected(self) -> http.client.HTTPConnection:
        """One more connection, closed at the end."""
        made = http.client.HTTPConnection(*self.address, timeout=patience(20))
        self.others.append(made)
        return made

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        content_type: str = "application/json",
        **headers: str,
    ) -> tuple[int, Any]:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        self.http.request(method, path, data, {"Content-Type": content_type, **headers})
        self.answer = self.http.getresponse()
        text = self.answer.read()
        try:
            return self.answer.status, json.loads(text)
        except ValueError:
            return self.answer.status, text.decode()

    def raw(self, *, window: int = 0) -> socket.socket:
        """Another connection without any HTTP of its own, closed at the end."""
        connection = socket.socket()
        self.others.append(connection)
        if window:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        connection.settimeout(patience(20))
        connection.connect(self.address)
        return connection

    def watches(self) -> int:
        live = self.cluster._live
        assert live is not None
        return live.host.watches


@contextmanager
def serving() -> Iterator[Client]:
    cluster = SimulatedCluster()
    cluster.pace("root-ca", Off())  # no other controller makes config maps
    with cluster.serve() as served:
        where = urlsplit(served.url)
        assert where.hostname is not None
        assert where.port is not None
        client = Client((where.hostname, where.port), cluster)
        try:
            yield client
        finally:
            # Even if a test ends early: open resources are reported in another test.
            for connection in client.others:
                connection.close()


def config_map(name: str, size: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"text": "x" * size},
    }


def asking(path: str, *headers: str) -> bytes:
    """A request without a body."""
    named = (
        [] if any(each.startswith("Host") for each in headers) else ["Host: localhost"]
    )
    return "\r\n".join((f"GET {path} HTTP/1.1", *named, *headers, "", "")).encode()


def received(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)
