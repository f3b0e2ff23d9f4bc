"""Reviews by a server of webhooks: fnop's next to Kopf's, in one run.

    python -m bench.admission [--rounds 5] [--seconds 3] [--size 3000] [--paced 500]

Each server is a process of its own on one core, and has one mutation. The other core
sends reviews of an object over TLS 1.3, on connections that are kept. Both servers have
the same certificate, and take turns in each round. It prints medians over the rounds:
reviews in a second over eight connections, and the time of an answer if one review
comes after the other, or if they come at a fixed rate.
"""

# Types are checked without the bench extra, too: then Kopf is missing.
# mypy: disable-error-code="import-not-found, untyped-decorator"

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

GROUP, PLURAL, KIND = "example.com", "claims", "Claim"
NAME = f"{PLURAL}.{GROUP}"
CONNECTIONS = 8
# Requests before the clock is read.
WARM_UP = 200


# ------------------------------------------------------------------- the servers


def sized(spec: Any, patch: Any, **_: Any) -> None:
    """Set a default (a mutation)."""
    if "class" not in spec:
        patch.spec["class"] = "standard"


def serve_fnop(options: dict[str, Any]) -> AsyncIterator[Any]:
    """fnop's server, with the handler."""
    import fnop
    from fnop.adapters.common.loading import resolve
    from fnop.adapters.webhooks.answering import answering
    from fnop.core.handlers.declare.registry import Registry
    from fnop.core.handlers.program.program import Program
    from fnop.interpreters.runtime.run import Runner

    registry = Registry()
    fnop.on.mutate(NAME, registry=registry)(sized)
    nowhere: Any = None  # the handler sends it no requests
    program = Program(tuple(registry.handlers))
    runner = Runner(program, nowhere, seed="1", resolve=resolve, random=os.urandom)
    return fnop.WebhookServer(**options)(answering(runner.review))


def serve_kopf(options: dict[str, Any]) -> AsyncIterator[Any]:
    """Kopf's server, with the same handler."""
    import kopf
    from kopf._cogs.structs import ephemera, references
    from kopf._core.engines import admission, indexing
    from kopf._core.reactor import inventory

    registry = kopf.OperatorRegistry()
    kopf.on.mutate(NAME, registry=registry)(sized)
    insights = references.Insights()
    insights.webhook_resources.add(
        references.Resource(GROUP, "v1", PLURAL, KIND, namespaced=True)
    )
    memo: Any = ephemera.Memo()
    fn = functools.partial(
        admission.serve_admission_request,
        settings=kopf.OperatorSettings(),
        registry=registry,
        insights=insights,
        memories=inventory.ResourceMemories(),
        memobase=memo,
        indices=indexing.OperatorIndexers().indices,
    )
    found: AsyncIterator[Any] = kopf.WebhookServer(**options)(fn)
    return found


SERVERS: dict[str, Callable[[dict[str, Any]], AsyncIterator[Any]]] = {
    "fnop": serve_fnop,
    "kopf": serve_kopf,
}


async def serve(name: str, folder: str) -> None:
    """Serve until the harness closes the input."""
    options = {
        "addr": "127.0.0.1",
        "certfile": f"{folder}/tls.crt",
        "pkeyfile": f"{folder}/tls.key",
        "cafile": f"{folder}/ca.crt",
    }
    configs = SERVERS[name](options)  # it serves as long as this is referenced
    config = await anext(configs)
    print(config["url"], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)


# -------------------------------------------------------------------- the client


def review_of(size: int) -> bytes:
    """The review of an object with about this number of bytes."""
    fields: dict[str, Any] = {"size": 5}
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": KIND,
        "metadata": {"name": "c", "namespace": "default", "labels": {"a": "b"}},
        "spec": fields,
    }
    while len(orjson.dumps(body)) < size:
        number = len(fields)
        fields[f"field{number}"] = {
            "name": f"n{number}",
            "ports": [80, 443],
            "on": True,
        }
    resource = {"group": GROUP, "version": "v1", "resource": PLURAL}
    kind = {"group": GROUP, "version": "v1", "kind": KIND}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        **{"kind": kind, "requestKind": kind},
        **{"resource": resource, "requestResource": resource},
        **{"name": "c", "namespace": "default", "operation": "CREATE"},
        "userInfo": {"username": "admin", "uid": "1", "groups": ["system:masters"]},
        **{"object": body, "oldObject": None, "dryRun": False},
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    kinds = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return orjson.dumps({**kinds, "request": request})


class Connection:
    """A kept connection, with the least possible HTTP."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        self._reader, self._writer = reader, writer
        head = (
            "POST /sized?timeout=10s HTTP/1.1\r\nHost: localhost\r\n"
            "Content-Type: application/json\r\nUser-Agent: kube-apiserver-admission\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._request = head.encode() + body

    async def ask(self) -> float:
        """Send a review; return the seconds until its answer is here."""
        began = time.perf_counter()
        self._writer.write(self._request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        took = time.perf_counter() - began
        assert head.startswith(b"http/1.1 200"), head
        assert b"JSONPatch" in answer, answer
        return took

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


class Figures(NamedTuple):
    """One server in one round: reviews in a second, and milliseconds of answers."""

    rate: float
    alone_p50: float
    alone_p99: float
    paced_p50: float
    paced_p99: float
    cpu: float  # of the server, for each review of the first measure


async def measure(
    url: str, bundle: str, pid: int, given: argparse.Namespace
) -> Figures:
    """Send reviews to a server in the three ways."""
    context = ssl.create_default_context(cafile=bundle)
    port, body = urlsplit(url).port, review_of(given.size)
    links = [
        Connection(*await asyncio.open_connection("127.0.0.1", port, ssl=context), body)
        for _ in range(CONNECTIONS)
    ]
    for _ in range(WARM_UP // CONNECTIONS):
        await asyncio.gather(*(each.ask() for each in links))
    before, began = cpu_of(pid), time.perf_counter()
    counts = await asyncio.gather(*(asks(each, given.seconds) for each in links))
    took, cpu = time.perf_counter() - began, cpu_of(pid) - before
    alone = await asks(links[0], given.seconds)
    paced = await at_rate(links, given.paced, given.seconds)
    for each in links:
        each.close()
    count = sum(map(len, counts))
    return Figures(count / took, *spread(alone), *spread(paced), cpu=1000 * cpu / count)


async def asks(link: Connection, seconds: float) -> list[float]:
    """Send one review after the other."""
    found, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        found.append(await link.ask())
    return found


async def at_rate(links: list[Connection], rate: int, seconds: float) -> list[float]:
    """Send reviews at their times, with or without answers to the ones before.

    The time of an answer counts from the planned time of its review.
    """
    found: list[float] = []
    began, moments = time.perf_counter(), iter(range(int(rate * seconds)))

    async def send(link: Connection) -> None:
        for number in moments:
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            late = max(0.0, time.perf_counter() - due)
            found.append(late + await link.ask())

    await asyncio.gather(*map(send, links))
    return found


def spread(times: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile, in milliseconds."""
    ordered = sorted(times)
    return (
        1000 * statistics.median(ordered),
        1000 * ordered[int(len(ordered) * 0.99)],
    )


def cpu_of(pid: int) -> float:
    """The seconds of processor time that a process has taken (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ------------------------------------------------------------------- the harness


@asynccontextmanager
async def served(name: str, folder: str) -> AsyncIterator[tuple[str, int]]:
    """A server in a process on a core of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.admission", "--serve", name, folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(process.pid, {cores[0]})
    try:
        yield (await process.stdout.readline()).decode().strip(), process.pid
    finally:
        process.stdin.close()
        await process.wait()


async def compare(given: argparse.Namespace) -> dict[str, Figures]:
    """All rounds; the medians by server."""
    from fnop.adapters.serving.certificates import Authority

    found: dict[str, list[Figures]] = {name: [] for name in SERVERS}
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(time.time())
        pair = authority.for_server(("127.0.0.1",))
        place = Path(folder)
        (place / "tls.crt").write_bytes(pair.certificate)
        (place / "tls.key").write_bytes(pair.key)
        (place / "ca.crt").write_bytes(authority.certificate)
        bundle = str(place / "ca.crt")
        for number in range(given.rounds):
            names = [*SERVERS] if number % 2 else [*reversed(SERVERS)]
            for name in names:
                async with served(name, folder) as (url, pid):
                    figures = await measure(url, bundle, pid, given)
                    found[name].append(figures)
    return {
        name: Figures(*map(statistics.median, zip(*several, strict=True)))
        for name, several in found.items()
    }


def main() -> None:
    """Compare both servers, or be one of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--size", type=int, default=3000)
    parser.add_argument("--paced", type=int, default=500)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(*given.serve))
        return
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    found = asyncio.run(compare(given))
    print(f"{'':24}" + "".join(f"{name:>10}" for name in found))
    for label, field in (
        ("reviews in a second", "rate"),
        ("CPU of a review, ms", "cpu"),
        ("one by one, p50 ms", "alone_p50"),
        ("one by one, p99 ms", "alone_p99"),
        (f"{given.paced}/s, p50 ms", "paced_p50"),
        (f"{given.paced}/s, p99 ms", "paced_p99"),
    ):
        values = (getattr(each, field) for each in found.values())
        print(f"{label:24}" + "".join(f"{value:10.2f}" for value in values))


if __name__ == "__main__":
    main()
