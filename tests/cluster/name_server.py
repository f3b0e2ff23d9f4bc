"""A name server on loopback, as the example 21-records wants it."""

from __future__ import annotations

import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

__all__ = ["NameServer"]


class NameServer:
    """`PUT /OWNER` with a mapping of names to addresses; `records` are what it has.

    With `trouble` it answers late, and some requests with an error, before or after
    they have been done.
    """

    def __init__(self, trouble: random.Random | None = None) -> None:
        self.records: dict[str, dict[str, str]] = {}
        self._trouble, self._lock = trouble, threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                size = int(self.headers["Content-Length"])
                status = server.put(self.path[1:], json.loads(self.rfile.read(size)))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: what was asked for is in `records`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def put(self, owner: str, records: dict[str, str]) -> int:
        """Take the records of an owner; the HTTP status."""
        fate = "done"
        if self._trouble is not None:
            with self._lock:
                fate = self._trouble.choice(["done"] * 6 + ["refused", "unknown"])
                pause = self._trouble.uniform(0, 0.3)
            time.sleep(pause)
        with self._lock:
            if fate != "refused":
                self.records.pop(owner, None)
                if records:
                    self.records[owner] = records
        return 200 if fate == "done" else 503

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
