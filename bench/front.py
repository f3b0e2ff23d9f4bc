"""A front of the CRD-only API server that adds what operators look for first.

    python -m bench.front PORT CERTIFICATE KEY

It answers the roots of discovery, keeps namespaces, and counts the Events that it
accepts and forgets. Writes that the server would refuse as too many wait. All other
bytes go through unchanged, as they come.
`tests.cluster.crd_front` reads each answer, which would delay a large collection. The
front prints its own port, and answers GET /received with the number of bytes that the
server behind it has sent.
"""

import asyncio
import re
import ssl
import sys
from asyncio import sslproto
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

import orjson

from bench.workload import GROUP
from tests.cluster.crd_front import groups_of

BUFFER = 2**20
RECEIVED = "/received"
METRICS = "/metrics"
# The server refuses further writes when it has 200. A whole kube-apiserver queues them
# (priority and fairness), and sets no limit for administrators.
WRITES_MOST = 180
# Of each connection on either side, instead of 256 KB: Kopf opens one for each object.
TLS_BUFFER = 2**15
_JSON = "application/json"
_NAMESPACES = "/api/v1/namespaces"


def _resource(
    plural: str, kind: str, verbs: Sequence[str], *, namespaced: bool
) -> dict[str, Any]:
    return {
        "name": plural,
        "singularName": "",
        "namespaced": namespaced,
        "kind": kind,
        "verbs": verbs,
    }


ROOTS: Mapping[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        # Kopf does not start without namespaces, and posts nothing without Events.
        "resources": [
            _resource(
                "namespaces",
                "Namespace",
                ["create", "delete", "get", "list", "watch"],
                namespaced=False,
            ),
            _resource("events", "Event", ["create", "patch"], namespaced=True),
        ],
    },
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": groups_of(["apiextensions.k8s.io/v1", f"{GROUP}/v1"]),
    },
}
_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
_EVENTS = re.compile(rf"{_NAMESPACES}/[^/]+/events(/[^/]+)?")
_NAMESPACE = re.compile(rf"{_NAMESPACES}/([^/]+)")

_YES = (["1"], ["true"])  # values of a query


class Front:
    """The server behind the front, and what the front itself keeps."""

    def __init__(
        self, port: int, tls: ssl.SSLContext | None, writes_most: int = WRITES_MOST
    ) -> None:
        self.port, self.tls = port, tls
        self.received = 0  # bytes that the server has sent
        self.events: dict[str, int] = {}  # requests that write one, by their verbs
        self.namespaces: dict[str, Any] = {}
        self.seats = asyncio.Semaphore(writes_most)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one connection; a client sends a request after the last answer."""
        passage = Passage(self, writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                method, target = head.decode("latin-1").split(" ", 2)[:2]
                if target == METRICS:
                    writer.write(await self.metrics())
                elif (answer := self.answer(method, target, body)) is not None:
                    writer.write(answer)
                else:
                    await passage.send(method, head + body)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two has closed
        finally:
            passage.close()
            writer.close()

    def answer(self, method: str, target: str, body: bytes = b"") -> bytes | None:
        """The answer to a request for one of the front's own paths."""
        path, _, query = target.partition("?")
        if path == RECEIVED:
            return answer_of(200, self.received)
        if path in ROOTS:
            return answer_of(200, ROOTS[path])
        if path == _NAMESPACES:
            return self._namespaces(method, query, body)
        if found := _NAMESPACE.fullmatch(path):
            return self._namespace(method, found[1])
        if method != "GET" and _EVENTS.fullmatch(path):
            self.events[method] = self.events.get(method, 0) + 1
            return answer_with(201 if method == "POST" else 200, _JSON, body)
        return None

    def _namespaces(self, method: str, query: str, body: bytes) -> bytes:
        if method == "POST":
            given = orjson.loads(body)
            name = given["metadata"]["name"]
            if name in self.namespaces:
                return refusal(409, "AlreadyExists", name)
            self.namespaces[name] = namespace_of(name)
            return answer_of(201, self.namespaces[name])
        asked = parse_qs(query)
        if asked.get("watch") in _YES:
            is_list = asked.get("sendInitialEvents") in _YES
            return watch_of(streamed(self.namespaces.values()) if is_list else [])
        return answer_of(
            200,
            {
                "kind": "NamespaceList",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": "1"},
                "items": [*self.namespaces.values()],
            },
        )

    def _namespace(self, method: str, name: str) -> bytes:
        if name not in self.namespaces:
            return refusal(404, "NotFound", name)
        if method == "DELETE":
            return answer_of(200, self.namespaces.pop(name))
        return answer_of(200, self.namespaces[name])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.tls, limit=BUFFER
        )

    async def metrics(self) -> bytes:
        """The server's metrics, with the requests for Events as it would count them."""
        reader, writer = await self.connect()
        # By HTTP/1.0 an answer has no chunks, and ends with its connection.
        writer.write(f"GET {METRICS} HTTP/1.0\r\n\r\n".encode())
        _, _, text = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        lines = (
            f'apiserver_request_total{{code="200",resource="events",verb="{verb}"}} {n}'
            for verb, n in self.events.items()
        )
        return answer_with(200, "text/plain", text + "\n".join([*lines, ""]).encode())


class Passage:
    """The way from one connection to the server, and back."""

    def __init__(self, front: Front, client: asyncio.StreamWriter) -> None:
        self.front, self.client = front, client
        self.server: asyncio.StreamWriter | None = None
        self.returning: asyncio.Task[None] | None = None
        self.is_seated = False

    async def send(self, method: str, request: bytes) -> None:
        """Send a request; a write waits while the server has enough of them."""
        if method != "GET":
            await self.front.seats.acquire()
            self.is_seated = True
        if self.server is None:
            source, self.server = await self.front.connect()
            self.returning = asyncio.create_task(self.pass_on(source))
        self.server.write(request)

    async def pass_on(self, source: asyncio.StreamReader) -> None:
        """Pass on all answers as they come; the first bytes of one end a write."""
        with suppress(OSError):
            while part := await source.read(BUFFER):
                self.leave_seat()
                self.front.received += len(part)
                self.client.write(part)
                await self.client.drain()
        self.client.close()

    def leave_seat(self) -> None:
        if self.is_seated:
            self.front.seats.release()
        self.is_seated = False

    def close(self) -> None:
        if self.returning is not None:
            self.returning.cancel()
        if self.server is not None:
            self.server.close()
        self.leave_seat()


def namespace_of(name: str) -> dict[str, Any]:
    """A namespace as the API server sends it."""
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "1"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def streamed(found: Iterable[Any]) -> Iterator[Any]:
    """The events of a streaming list, which ends with a bookmark."""
    yield from ({"type": "ADDED", "object": each} for each in found)
    end = {"k8s.io/initial-events-end": "true"}
    meta = {"resourceVersion": "1", "annotations": end}
    mark = {"kind": "Namespace", "apiVersion": "v1", "metadata": meta}
    yield {"type": "BOOKMARK", "object": mark}


def watch_of(events: Iterable[Any]) -> bytes:
    """The beginning of a watch, which stays open without further events.

    No namespace changes while an operator runs.
    """
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {_JSON}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    lines = (orjson.dumps(each) + b"\n" for each in events)
    chunks = (b"%x\r\n%s\r\n" % (len(line), line) for line in lines)
    return head.encode() + b"".join(chunks)


def refusal(status: int, reason: str, name: str) -> bytes:
    """The answer about a namespace that exists already, or does not exist."""
    message = f'namespaces "{name}": {reason}'
    found = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
    return answer_of(status, {**found, "reason": reason, "message": message})


def answer_of(status: int, found: Any) -> bytes:
    """A whole answer with this JSON."""
    return answer_with(status, _JSON, orjson.dumps(found))


def answer_with(status: int, content_type: str, body: bytes) -> bytes:
    """A whole answer with this body."""
    head = (
        f"HTTP/1.1 {status} {'OK' if status < 400 else 'Refused'}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def run(port: int, certificate: str, key: str) -> None:
    sslproto.SSLProtocol.max_size = TLS_BUFFER
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    # The server's certificate is its own.
    front = Front(port, ssl._create_unverified_context())
    server = await asyncio.start_server(
        front.serve, "127.0.0.1", 0, ssl=tls, limit=BUFFER
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
