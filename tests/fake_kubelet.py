"""A kubelet that only serves logs, behind a real API server.

kube-apiserver passes GET `pods/NAME/log` on to the kubelet of the pod's node: to
`/containerLogs/NAMESPACE/POD/CONTAINER` at the address and the port in the node's
status.  Unless it has an authority for kubelets, it accepts any certificate.

The answers are the same as kubelet's (pkg/kubelet/server,
pkg/kubelet/kuberuntime/logs): the head comes with the first line, lines before
`sinceTime` are skipped one by one, and a log that is followed ends with its container.
The kubelet keeps the log of the present instance of a container and of the one before.

`FakeKubelet` serves in a thread of its own; all of its methods may be called from any
thread.  `Pods` creates the node and its pods on an API server.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

from fnop.adapters.serving.certificates import Authority

__all__ = ["FakeKubelet", "Pods"]

HOST = "127.0.0.1"
MERGE_PATCH = "application/merge-patch+json"
NANOS = 1_000_000_000
# A time as kubelet prints it, and the blank behind it.
STAMP_BYTES = 31
# The most lines of one chunk.
CHUNK_LINES = 2000

Json = dict[str, Any]


def stamp(nanoseconds: int) -> bytes:
    """A time as kubelet prints it (RFC3339NanoFixed).

    >>> stamp(1_500_000_000)
    b'1970-01-01T00:00:01.500000000Z'
    """
    second, rest = divmod(nanoseconds, NANOS)
    return b"%s.%09dZ" % (_second(second), rest)


_SECONDS: dict[int, bytes] = {}


def _second(second: int) -> bytes:
    """The text of a second, which many lines share."""
    found = _SECONDS.get(second)
    if found is None:
        if len(_SECONDS) > 100:
            _SECONDS.clear()
        found = f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}".encode()
        _SECONDS[second] = found
    return found


class Place(NamedTuple):
    """A container."""

    namespace: str
    pod: str
    container: str


@dataclass(eq=False)
class Instance:
    """The log of one instance of a container; `forgotten` lines were rotated away."""

    number: int
    id: str
    times: list[int] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    forgotten: int = 0
    has_ended: bool = False
    followers: set[asyncio.Event] = field(default_factory=set)

    def forget(self, keep: int) -> None:
        """Rotate lines away that no reader can request later."""
        surplus = len(self.lines) - keep
        if surplus > keep:
            del self.lines[:surplus], self.times[:surplus]
            self.forgotten += surplus


class Options(NamedTuple):
    """PodLogOptions as kubelet gets them."""

    follows: bool
    timestamps: bool
    previous: bool
    since: int
    tail: int | None


class Refused(Exception):
    """An answer with another status than 200."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class FakeKubelet:
    """Serves the logs of containers until it is closed.

    Each instance keeps the last `keep` lines, or somewhat more; all by default.
    """

    def __init__(self, *, keep: int | None = None) -> None:
        self.asked: list[tuple[Place, dict[str, str]]] = []
        """The requests so far: the container, and the options."""
        self.port = 0
        self._keep = keep
        self._instances: dict[Place, list[Instance]] = {}
        self._cuts: dict[Place, list[int]] = {}
        # How often the next bytes of a log are cut in the middle.
        self._halves: Counter[Place] = Counter()
        self._ids = itertools.count(1)
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        # Guards what the thread and its callers change.
        self._lock = threading.RLock()
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="kubelet")
        self._thread.start()
        ready.wait()

    # ---------------------------------------------------------------- containers

    def begin(self, namespace: str, pod: str, container: str) -> str:
        """Start the next instance of a container; its containerID."""
        place = Place(namespace, pod, container)
        with self._lock:
            known = self._instances.setdefault(place, [])
            if known:
                self.end(*place)
            number = known[-1].number + 1 if known else 0
            made = Instance(number, f"fake://{next(self._ids):08}")
            self._instances[place] = [*known[-1:], made]
            return made.id

    def write(
        self,
        namespace: str,
        pod: str,
        container: str,
        *lines: str | bytes,
        at: list[int] | None = None,
    ) -> None:
        """Let a container write lines, now or at times in nanoseconds of Unix time."""
        with self._lock:
            found = self._instances[Place(namespace, pod, container)][-1]
            assert not found.has_ended, "its container has ended"
            times = at or [time.time_ns()] * len(lines)
            for moment, line in zip(times, lines, strict=True):
                text = line if isinstance(line, bytes) else line.encode()
                found.lines.append(b"%s %s\n" % (stamp(moment), text))
            found.times.extend(times)
            if self._keep is not None:
                found.forget(self._keep)
            self._wake(found)

    def end(self, namespace: str, pod: str, container: str) -> None:
        """End a container; logs of it that are followed end, too."""
        with self._lock:
            found = self._instances[Place(namespace, pod, container)][-1]
            found.has_ended = True
            self._wake(found)

    def remove(self, namespace: str, pod: str) -> None:
        """Forget a pod whose containers have ended."""
        with self._lock:
            for place in [*self._instances]:
                if place[:2] == (namespace, pod):
                    self.end(*place)
                    del self._instances[place]

    def status(self, namespace: str, pod: str, container: str) -> Json:
        """The status of a container, as kubelet reports it."""
        with self._lock:
            known = self._instances[Place(namespace, pod, container)]
            *before, present = known
            last = {"terminated": _terminated(before[-1])} if before else {}
            state: Json = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
            if present.has_ended:
                state = {"terminated": _terminated(present)}
            return {
                **{"name": container, "image": "i", "imageID": "i"},
                **{"ready": not present.has_ended, "restartCount": present.number},
                **{"containerID": present.id, "state": state, "lastState": last},
            }

    # --------------------------------------------------------------- connections

    def cut(self, namespace: str, pod: str, container: str, *after: int) -> None:
        """Cut the next connections of a log, each after this number of bytes of it."""
        with self._lock:
            self._cuts.setdefault(Place(namespace, pod, container), []).extend(after)

    def halve(self, namespace: str, pod: str, container: str) -> None:
        """Cut the next bytes of a log in the middle, whichever connection they take."""
        with self._lock:
            self._halves[Place(namespace, pod, container)] += 1

    def cuts_left(self, namespace: str, pod: str, container: str) -> int:
        """The number of cuts that are still to come."""
        place = Place(namespace, pod, container)
        return len(self._cuts.get(place, ())) + self._halves[place]

    def asked_for(self, namespace: str, pod: str) -> list[dict[str, str]]:
        """The options of the requests so far about a pod."""
        return [given for place, given in self.asked if place[:2] == (namespace, pod)]

    def followers(self, namespace: str, pod: str, container: str) -> int:
        """The number of connections that follow a container now."""
        known = self._instances.get(Place(namespace, pod, container), ())
        return sum(len(each.followers) for each in known)

    def close(self) -> None:
        """End the server, and the connections with it."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> FakeKubelet:
        return self

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ---------------------------------------------------------------- the server

    def _wake(self, instance: Instance) -> None:
        for event in tuple(instance.followers):
            self._loop.call_soon_threadsafe(event.set)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        serving = asyncio.start_server(self._serve, HOST, 0, ssl=_server_tls())
        server = self._loop.run_until_complete(serving)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for writer in self._open:
                writer.transport.abort()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            ended = asyncio.gather(*left, return_exceptions=True)
            self._loop.run_until_complete(ended)
            self._loop.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one request; kube-apiserver connects again for the next one."""
        self._open.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ", 2)[1].decode()
            hangs_up = asyncio.ensure_future(reader.read(1))
            answering = asyncio.ensure_future(self._answer(target, writer))
            try:
                # A reader that leaves is noticed also while nothing is written.
                await asyncio.wait(
                    (hangs_up, answering), return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                for task in (hangs_up, answering):
                    if not task.done():
                        task.cancel()
                await asyncio.gather(hangs_up, answering, return_exceptions=True)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        url = urlsplit(target)
        given = dict(parse_qsl(url.query))
        try:
            place, found, cut = self._found(url.path, given)
        except Refused as refusal:
            text = str(refusal).encode()
            writer.write(
                b"HTTP/1.1 %d Refused\r\nContent-Type: text/plain\r\n"
                b"Content-Length: %d\r\nConnection: close\r\n\r\n%s"
                % (refusal.status, len(text), text)
            )
            await writer.drain()
            return
        await self._show(place, found, _options(given), writer, cut)

    def _found(
        self, path: str, given: dict[str, str]
    ) -> tuple[Place, Instance, int | None]:
        """The instance whose log is asked for, and after how many bytes to cut."""
        _, verb, *names = path.split("/")
        if verb != "containerLogs" or len(names) != 3:
            raise Refused(404, "404: Page Not Found")
        with self._lock:
            place = Place(*names)
            self.asked.append((place, given))
            known = self._instances.get(place)
            if not known:
                raise Refused(404, "pod does not exist")
            instance = known[-1]
            if given.get("previous") == "true":
                if len(known) == 1:
                    raise Refused(
                        400,
                        f'previous terminated container "{place.container}" in pod '
                        f'"{place.pod}" not found',
                    )
                instance = known[0]
            cuts = self._cuts.get(place)
            return place, instance, cuts.pop(0) if cuts else None

    def _is_halved(self, place: Place) -> bool:
        """Whether the bytes that come now are cut in the middle."""
        with self._lock:
            if not self._halves[place]:
                return False
            self._halves[place] -= 1
            return True

    async def _show(
        self,
        place: Place,
        instance: Instance,
        options: Options,
        writer: asyncio.StreamWriter,
        cut: int | None,
    ) -> None:
        event = asyncio.Event()
        if options.follows:
            with self._lock:
                instance.followers.add(event)
        try:
            has_begun = False
            for data in _texts(instance, options, self._lock):
                if data is None:
                    await event.wait()
                    event.clear()
                    continue
                head = b"" if has_begun else _HEAD
                has_begun = True
                chunk = b"%x\r\n%s\r\n" % (len(data), data)
                if self._is_halved(place):
                    cut = len(data) // 2
                if cut is not None and cut <= len(data):
                    # In the middle of a chunk: it never ends.
                    shown = len(chunk) - len(data) - 2 + cut
                    writer.write(head + chunk[:shown])
                    await writer.drain()
                    writer.transport.abort()
                    return
                cut = None if cut is None else cut - len(data)
                writer.write(head + chunk)
                await writer.drain()
            writer.write((b"" if has_begun else _HEAD) + b"0\r\n\r\n")
            await writer.drain()
        finally:
            with self._lock:
                instance.followers.discard(event)


_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)


def _texts(
    instance: Instance, options: Options, lock: threading.RLock
) -> Iterator[bytes | None]:
    """The parts of the answer; None if the reader has to wait for the next line."""
    with lock:
        end = instance.forgotten + len(instance.lines)
    at = instance.forgotten if options.tail is None else max(0, end - options.tail)
    while True:
        with lock:  # lines may be rotated away meanwhile
            has_ended = instance.has_ended
            first = max(0, at - instance.forgotten)
            lines = instance.lines[first : first + CHUNK_LINES]
            times = instance.times[first : first + CHUNK_LINES]
            at = instance.forgotten + first + len(lines)
        if lines:
            if options.since > min(times):
                pairs = zip(times, lines, strict=True)
                lines = [line for each, line in pairs if each >= options.since]
            if not options.timestamps:
                lines = [each[STAMP_BYTES:] for each in lines]
            if lines:
                yield b"".join(lines)
        elif has_ended or not options.follows:
            return
        else:
            yield None


def _options(given: dict[str, str]) -> Options:
    since, moment = 0, given.get("sinceTime")
    if "sinceSeconds" in given:
        since = time.time_ns() - int(given["sinceSeconds"]) * NANOS
    if moment is not None:
        # kube-apiserver passes whole seconds on.
        since = max(since, int(datetime.fromisoformat(moment).timestamp()) * NANOS)
    tail = given.get("tailLines")
    return Options(
        given.get("follow") == "true",
        given.get("timestamps") == "true",
        given.get("previous") == "true",
        since,
        None if tail is None else int(tail),
    )


def _terminated(instance: Instance) -> Json:
    return {
        **{"exitCode": 0, "reason": "Completed", "containerID": instance.id},
        **dict.fromkeys(("startedAt", "finishedAt"), "2026-01-01T00:00:00Z"),
    }


def _server_tls() -> ssl.SSLContext:
    pair = Authority(time.time_ns() / NANOS).for_server((HOST,), "fake kubelet")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    return context


# ------------------------------------------------------------- on the API server


class Raw(Protocol):
    """A plain client of the API server."""

    def raw(
        self, method: str, path: str, body: Any = None, content_type: str = ...
    ) -> tuple[int, Any]: ...


class Pods:
    """The pods of a namespace on a node, which is made for them, and their kubelet."""

    def __init__(
        self, api: Raw, port: int, namespace: str, kubelet: FakeKubelet | None = None
    ) -> None:
        self.api, self.namespace, self._kubelet = api, namespace, kubelet
        self.node = f"node-of-{namespace}"
        self._ask("POST", "/api/v1/nodes", node(self.node, port))

    @property
    def kubelet(self) -> FakeKubelet:
        """The kubelet, if it is in this process."""
        assert self._kubelet is not None, "the kubelet is in another process"
        return self._kubelet

    def path(self, name: str = "", sub: str = "") -> str:
        """The path of a pod, or of all."""
        parts = ("/api/v1/namespaces", self.namespace, "pods", name, sub)
        return "/".join(filter(None, parts))

    def create(self, name: str, *containers: str, **metadata: Any) -> None:
        """Create a pod that is bound to the node; no container runs yet."""
        self._ask("POST", self.path(), self.manifest(name, *containers, **metadata))

    def manifest(self, name: str, *containers: str, **metadata: Any) -> Json:
        """A pod that is bound to the node."""
        made = [{"name": each, "image": "i"} for each in containers or ("c",)]
        return {
            **{"apiVersion": "v1", "kind": "Pod"},
            "metadata": {"name": name, "namespace": self.namespace, **metadata},
            "spec": {"nodeName": self.node, "containers": made},
        }

    def run(self, name: str, *containers: str) -> None:
        """Start the next instance of containers, and show it."""
        for each in containers or ("c",):
            self.kubelet.begin(self.namespace, name, each)
        self.show(name, *containers)

    def end(self, name: str, *containers: str) -> None:
        """End containers, and show it."""
        for each in containers or ("c",):
            self.kubelet.end(self.namespace, name, each)
        self.show(name, *containers)

    def show(self, name: str, *containers: str) -> None:
        """Write the status of a pod as its kubelet knows it."""
        found = [
            self.kubelet.status(self.namespace, name, each)
            for each in containers or ("c",)
        ]
        self.set_status(name, found)

    def set_status(self, name: str, containers: list[Json]) -> None:
        """Write the statuses of the containers of a pod."""
        body = {"status": {"phase": "Running", "containerStatuses": containers}}
        self._ask("PATCH", self.path(name, "status"), body, MERGE_PATCH)

    def write(
        self, name: str, *lines: str, container: str = "c", at: list[int] | None = None
    ) -> None:
        """Let a container write lines."""
        self.kubelet.write(self.namespace, name, container, *lines, at=at)

    def delete(self, name: str) -> None:
        """Delete a pod at once, as kubelet does when its containers have ended."""
        self._ask("DELETE", self.path(name), {"gracePeriodSeconds": 0})

    def close(self) -> None:
        """Delete the node."""
        self._ask("DELETE", f"/api/v1/nodes/{self.node}")

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> None:
        status, answer = self.api.raw(method, path, body, content_type)
        assert status in (200, 201, 202), json.dumps(answer)


def node(name: str, port: int) -> Json:
    """A node whose kubelet is reached at a port of this machine."""
    return {
        **{"apiVersion": "v1", "kind": "Node"},
        "metadata": {"name": name},
        "status": {
            "addresses": [{"type": "InternalIP", "address": HOST}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }
