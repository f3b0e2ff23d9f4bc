"""The logs of pods over HTTP: clients follow them, fast and slowly."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Iterator
from typing import Any

import pytest

from fnop.adapters.serving import api_server
from fnop.adapters.serving.api_limits import ConnectionLimits
from fnop.adapters.serving.cluster_host import Host
from fnop.interpreters.runtime.protocol import MERGE_PATCH
from tests.patience import eventually, patience
from tests.served_clusters import Client, asking, received, serving

PODS = "/api/v1/namespaces/default/pods"
LOG = f"{PODS}/p/log"
NOTE = "simulated.fnop.dev/log"


def pod(name: str = "p", policy: str = "Always", **notes: str) -> dict[str, Any]:
    """A pod whose container writes a line when it starts."""
    named = {
        f"simulated.fnop.dev/{each.replace('_', '-')}": value
        for each, value in notes.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {NOTE: "one\n", **named}},
        "spec": {
            "restartPolicy": policy,
            "containers": [{"name": "c", "image": "i"}],
        },
    }


@pytest.fixture
def client() -> Iterator[Client]:
    with serving() as found:
        found.cluster.apply(pod())
        eventually(lambda: phase(found) == "Running")
        yield found


def phase(client: Client) -> str:
    found = client.cluster.get("pod", "p")
    assert found is not None
    text: str = found["status"]["phase"]
    return text


def host_of(client: Client) -> Host:
    live = client.cluster._live
    assert live is not None
    return live.host


def write(client: Client, text: str) -> None:
    """Let the container write, in the thread of the server."""
    live = client.cluster._live
    assert live is not None

    async def write() -> None:
        live.host.write_log("default", "p", None, text)

    asyncio.run_coroutine_threadsafe(write(), live._loop).result(patience(20))


def following(client: Client, query: str = "") -> http.client.HTTPResponse:
    connection = client.connected()
    connection.request("GET", f"{LOG}?follow=true{query}")
    return connection.getresponse()


def test_a_log_is_plain_text(client: Client) -> None:
    assert client.ask("GET", LOG) == (200, "one\n")
    assert client.answer.headers["Content-Type"] == "text/plain"
    assert client.ask("GET", f"{LOG}?tailLines=-1")[0] == 422
    assert client.answer.headers["Content-Type"] == "application/json"


def test_a_followed_log_goes_on_until_the_pod_is_gone(client: Client) -> None:
    log = following(client)
    assert log.headers["Content-Type"] == "text/plain"
    assert log.headers["Transfer-Encoding"] == "chunked"
    assert log.readline() == b"one\n"
    write(client, "two \u00e9\nthree")
    assert [log.readline(), log.readline()] == ["two \u00e9\n".encode(), b"three\n"]
    note = {"metadata": {"annotations": {NOTE: "one\nfour\n"}}}
    client.ask("PATCH", f"{PODS}/p", note, MERGE_PATCH)
    assert log.readline() == b"four\n"
    client.cluster.delete("pod", "p")
    assert log.read() == b""
    assert not host_of(client)._logs
    log.close()


def test_the_connection_of_a_log_is_used_again(client: Client) -> None:
    connection = client.connected()
    for _ in range(2):
        connection.request("GET", f"{LOG}?follow=true&limitBytes=2")
        log = connection.getresponse()
        assert log.read() == b"on"
    connection.request("GET", f"{LOG}?follow=true&container=x")
    refused = connection.getresponse()
    assert (refused.status, b"not valid" in refused.read()) == (400, True)


def test_a_log_ends_with_its_container(client: Client) -> None:
    client.cluster.apply(pod("q", "Never", run_for="0s"))
    path = f"{PODS}/q/log"
    eventually(lambda: client.ask("GET", path)[0] == 200)
    assert client.ask("GET", f"{path}?follow=true") == (200, "one\n")


def test_a_reader_that_leaves_is_forgotten(client: Client) -> None:
    connection = client.raw()
    connection.sendall(asking(f"{LOG}?follow=true"))
    connection.recv(1000)
    eventually(lambda: len(host_of(client)._logs) == 1)
    connection.close()
    eventually(lambda: not host_of(client)._logs)


def test_closing_the_server_ends_logs_in_order() -> None:
    with serving() as client:
        client.cluster.apply(pod())
        eventually(lambda: phase(client) == "Running")
        log = following(client)
        assert log.readline() == b"one\n"
        live = client.cluster._live
        assert live is not None
        asyncio.run_coroutine_threadsafe(live._server.close(), live._loop).result()
        assert log.read() == b""


def test_a_reader_that_is_too_slow_is_cut_off(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "LATE_BYTES", 1024 * 1024)
    slow = client.raw(window=4096)
    slow.sendall(asking(f"{LOG}?follow=true"))
    slow.recv(100)
    for _ in range(2000):
        write(client, "x" * 200_000)
        if not host_of(client)._logs:
            break
    else:
        pytest.fail("the slow reader is still served")
    live = client.cluster._live
    assert live is not None
    eventually(lambda: live._server.held == 0)


def held_by(client: Client) -> int:
    live = client.cluster._live
    assert live is not None
    return live._server.held


def fill(client: Client) -> int:
    """Write until a reader that does not read is late; the bytes that were written."""
    count = 0
    while not held_by(client) or count < 2 * 1024 * 1024:
        write(client, "x" * 199_999)
        count += 200_000
    return count


def test_a_slow_reader_gets_the_end_of_a_log(client: Client) -> None:
    slow = client.raw(window=4096)
    slow.sendall(asking(f"{LOG}?follow=true", "Connection: close"))
    slow.recv(1)
    count = fill(client)
    client.cluster.delete("pod", "p")
    eventually(lambda: client.ask("GET", LOG)[0] == 404)
    _, _, text = received(slow).partition(b"one\n")
    assert text.count(b"x") == count // 200_000 * 199_999
    assert text.endswith(b"\r\n0\r\n\r\n")
    eventually(lambda: held_by(client) == 0)


def test_a_reader_who_does_not_read_the_end_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ConnectionLimits, "request", 1.0)
    monkeypatch.setattr(ConnectionLimits, "look", 0.05)
    with serving() as client:
        client.cluster.apply(pod())
        eventually(lambda: phase(client) == "Running")
        slow = client.raw(window=4096)
        slow.sendall(asking(f"{LOG}?follow=true"))
        slow.recv(1)
        fill(client)
        client.cluster.delete("pod", "p")
        eventually(lambda: held_by(client) == 0)
        assert not host_of(client)._logs
