"""A front of the CRD-only API server that adds what operators look for first.

    python -m bench.large.front PORT CERTIFICATE KEY

It answers the roots of discovery itself, and passes on all other bytes unchanged.
`tests.cluster.crd_front` reads each answer, which would delay a large collection. It
prints its own port, and answers GET /received with the number of bytes that the server
behind it has sent.
"""

import asyncio
import re
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from bench.workload import GROUP
from tests.cluster.crd_front import groups_of

BUFFER = 2**20
RECEIVED = "/received"
ROOTS: Mapping[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        # Kopf does not start without it.
        "resources": [
            {
                "name": "namespaces",
                "singularName": "",
                "namespaced": False,
                "kind": "Namespace",
                "verbs": ["get", "list", "watch"],
            }
        ],
    },
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": groups_of(["apiextensions.k8s.io/v1", f"{GROUP}/v1"]),
    },
}
_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Front:
    """The server behind the front, and the bytes that it has sent."""

    def __init__(self, port: int) -> None:
        self.port, self.received = port, 0
        self.anyone = ssl._create_unverified_context()  # its certificate is its own

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one connection; a client sends a request after the last answer."""
        behind: Connection | None = None
        returning: asyncio.Task[None] | None = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                path = head.split(b" ", 2)[1].partition(b"?")[0].decode()
                if (answer := self.answer(path)) is not None:
                    writer.write(answer)
                    continue
                if behind is None:
                    behind = await asyncio.open_connection(
                        "127.0.0.1", self.port, ssl=self.anyone, limit=BUFFER
                    )
                    returning = asyncio.create_task(self.pass_on(behind[0], writer))
                behind[1].write(head + body)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two has closed
        finally:
            if returning is not None:
                returning.cancel()
            if behind is not None:
                behind[1].close()
            writer.close()

    def answer(self, path: str) -> bytes | None:
        """The answer to one of the front's own paths."""
        found = self.received if path == RECEIVED else ROOTS.get(path)
        if found is None:
            return None
        body = orjson.dumps(found)
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
        return f"{head}{len(body)}\r\n\r\n".encode() + body

    async def pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while part := await source.read(BUFFER):
                self.received += len(part)
                target.write(part)
                await target.drain()
        target.close()


async def run(port: int, certificate: str, key: str) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    front = Front(port)
    server = await asyncio.start_server(
        front.serve, "127.0.0.1", 0, ssl=tls, limit=BUFFER
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
