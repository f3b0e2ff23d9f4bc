"""A front of the CRD-only API server that adds what operators look for first.

That server has no root of discovery; here are `/api`, without versions, and `/apis`.
All else goes through, watches as they come.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = ["in_front_of"]

VERSIONS = ("apiextensions.k8s.io/v1", "fnop.dev/v1")
_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive", "host")


def groups_of(versions: Iterable[str]) -> list[dict[str, Any]]:
    """The groups of these versions, as the root of discovery has them."""
    found: dict[str, list[dict[str, str]]] = {}
    for each in versions:
        group, version = each.split("/")
        named = {"groupVersion": each, "version": version}
        found.setdefault(group, []).append(named)
    return [
        {"name": group, "versions": named, "preferredVersion": named[0]}
        for group, named in found.items()
    ]


@contextmanager
def in_front_of(
    url: str, folder: Path, versions: Iterable[str] = VERSIONS
) -> Iterator[Path]:
    """Serve the front for as long as the block; the path of a kubeconfig for it.

    It lists these versions, such as "fnop.dev/v1".
    """
    place = urlsplit(url).netloc
    groups = groups_of(versions)
    roots: dict[str, dict[str, Any]] = {
        "/api": {"kind": "APIVersions", "versions": []},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
    }
    anyone = ssl._create_unverified_context()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            root = roots.get(self.path.partition("?")[0])
            if root is not None:
                self._answer(json.dumps(root).encode())
                return
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size) if size else None
            kept = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            kept["Accept-Encoding"] = "identity"
            upstream = http.client.HTTPSConnection(place, context=anyone, timeout=600)
            try:
                upstream.request(self.command, self.path, body, kept)
                self._pass_on(upstream.getresponse())
            except (OSError, http.client.HTTPException):
                self.close_connection = True  # the client sees a broken connection
            finally:
                upstream.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _pass_on(self, found: http.client.HTTPResponse) -> None:
            self.send_response(found.status)
            for name, value in found.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while part := found.read1(65_536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: it only passes on."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Nothing: clients are killed on purpose."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kubeconfig = folder / "kubeconfig.front"
    there = {"server": f"http://127.0.0.1:{server.server_port}"}
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": there}],
                "contexts": [
                    {"name": "test", "context": {"cluster": "test", "user": "test"}}
                ],
                "users": [{"name": "test", "user": {"token": "anyone"}}],
            }
        )
    )
    try:
        yield kubeconfig
    finally:
        server.shutdown()
        server.server_close()
