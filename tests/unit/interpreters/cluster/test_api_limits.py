"""The HTTP server of the simulated cluster: limits against hostile clients."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from fnop.adapters.serving import api_limits, api_server
from fnop.adapters.serving.api_limits import ConnectionLimits, stranger
from fnop.adapters.serving.api_server import HttpServer
from fnop.interpreters.cluster.storage import limits, store
from tests.patience import eventually
from tests.served_clusters import (
    LIMIT,
    MAPS,
    Client,
    asking,
    config_map,
    received,
    serving,
)
from tests.simulations import ROOT


@pytest.fixture
def client() -> Iterator[Client]:
    with serving() as found:
        yield found


def server_of(client: Client) -> HttpServer:
    live = client.cluster._live
    assert live is not None
    return live._server


# ------------------------------------------------------------------ from whom

OURS = ("localhost", "LOCALHOST:8001", "127.0.0.1:1", "127.1.2.3", "[::1]:8001")
OTHERS = (
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:8001",
    "10.0.0.1",
    "0.0.0.0",
    "[::2]",
    "evil@localhost",
    "localhost:8001:x",
    "localhost,evil.example",
    "localhost/",
    "",
)


@pytest.mark.parametrize("host", OURS)
def test_the_names_of_this_machine_are_served(client: Client, host: str) -> None:
    for origin in ((), (f"Origin: http://{host}",), (f"Origin: https://{host}",)):
        connection = client.raw()
        connection.sendall(asking("/healthz", f"Host: {host}", *origin))
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        connection.close()


@pytest.mark.parametrize(
    "headers",
    [
        *((f"Host: {host}",) for host in OTHERS),
        *((f"Origin: http://{host}",) for host in OTHERS),
        ("Origin: null",),
        ("Origin: file://",),
        ("Origin: chrome-extension://abc",),
        ("Sec-Fetch-Site: cross-site",),
    ],
)
def test_other_sites_are_refused(client: Client, headers: tuple[str, ...]) -> None:
    """DNS rebinding, and requests that a page sends elsewhere."""
    body = json.dumps(config_map("one"))
    connection = client.raw()
    named = [*headers, f"Content-Length: {len(body)}", "Connection: close"]
    head = asking(MAPS, *named).replace(b"GET", b"POST")
    connection.sendall(head + body.encode())
    head, _, text = received(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 ")
    answer = json.loads(text)
    assert (answer["kind"], answer["reason"]) == ("Status", "Forbidden")
    assert "localhost alone" in answer["message"]
    assert client.ask("GET", f"{MAPS}/one")[0] == 404
    connection.close()


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_any_other_host_is_a_stranger(host: bytes, origin: bytes) -> None:
    for headers in ({b"host": host}, {b"host": b"localhost", b"origin": origin}):
        refusal = stranger(headers)
        assert refusal is not None
        assert refusal.status == 403


def test_a_client_of_its_own_origin_says_so_twice(client: Client) -> None:
    connection = client.raw()
    site = ("Origin: http://localhost:3000", "Sec-Fetch-Site: cross-site")
    connection.sendall(asking("/healthz", *site))
    assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
    connection.close()


# In the words of kube-apiserver, 1.20 and 1.36.
@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GARBAGE\r\n\r\n", "400 Bad Request"),
        (
            b"GET /version HTTP/1.1\r\nX: y\r\n\r\n",
            "400 Bad Request: missing required Host header",
        ),
        (
            b"GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "400 Bad Request",
        ),
        (
            asking("/version", "X-A: " + "a" * 1_100_000),
            "431 Request Header Fields Too Large",
        ),
        (
            asking("/version?x=" + "a" * 1_100_000),
            "431 Request Header Fields Too Large",
        ),
        (
            asking("/version", *(f"X-{n}: {'a' * 1000}" for n in range(1100))),
            "431 Request Header Fields Too Large",
        ),
    ],
)
def test_what_is_no_request_is_told_as_by_a_real_server(
    client: Client, sent: bytes, said: str
) -> None:
    connection = client.raw()
    connection.sendall(sent)
    assert received(connection).decode() == (
        f"HTTP/1.1 {said}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Connection: close\r\n\r\n{said}"
    )
    connection.close()


def test_a_long_header_is_still_one(client: Client) -> None:
    connection = client.raw()
    connection.sendall(asking("/healthz", "X-A: " + "a" * 1_000_000))
    assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
    connection.close()


# ------------------------------------------------------------------- how long


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("idle", "head", "request"):
        monkeypatch.setattr(
            ConnectionLimits, name, 1.0
        )  # a busy machine is slow to send
    for name in ("farewell", "look"):
        monkeypatch.setattr(ConnectionLimits, name, 0.05)


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"", b""),
        (b"GET /healthz HT", b"HTTP/1.1 400 Bad Request"),
        (asking("/healthz")[:-2], b"HTTP/1.1 400 Bad Request"),
        (asking("/healthz"), b"HTTP/1.1 200 OK"),
        (
            asking(MAPS, "Content-Length: 9").replace(b"GET", b"POST") + b"{",
            b"HTTP/1.1 504 Gateway Timeout",
        ),
    ],
)
@pytest.mark.usefixtures("hurried")
def test_who_says_no_more_is_left(sent: bytes, answered: bytes) -> None:
    with serving() as client:
        connection = client.raw()
        connection.sendall(sent)
        assert received(connection).startswith(answered)
        eventually(lambda: not server_of(client).connections)
        connection.close()


@pytest.mark.usefixtures("hurried")
def test_who_does_not_read_is_left() -> None:
    with serving() as client:
        for number in range(10):
            client.cluster.apply(config_map(f"map-{number}", 900_000))
        slow = client.raw(window=4096)
        slow.sendall(asking(MAPS))
        eventually(lambda: server_of(client).held > 0)
        eventually(lambda: not server_of(client).connections)
        assert server_of(client).held == 0
        slow.close()


@pytest.mark.usefixtures("hurried")
def test_watches_stay() -> None:
    with serving() as client:
        watch = client.raw()
        watch.sendall(asking(f"{MAPS}?watch=1"))
        watch.recv(1000)
        other = client.raw()
        other.sendall(asking("/healthz"))
        assert b"200 OK" in received(other), "which has been idle for as long"
        assert client.watches() == 1
        watch.close()
        other.close()


# ------------------------------------------------------------------- how much


def test_the_oldest_idle_connection_makes_room(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "CONNECTIONS_MAX", 3)
    watches = [client.raw(), client.raw()]
    for each in watches:
        each.sendall(asking(f"{MAPS}?watch=1"))
        each.recv(1000)
    idle = client.raw()
    idle.sendall(asking("/healthz"))
    idle.recv(1000)
    fourth = client.raw()
    fourth.sendall(asking(f"{MAPS}?watch=1"))
    assert fourth.recv(1000).startswith(b"HTTP/1.1 200 OK")
    assert received(idle) == b""
    fifth = client.raw()
    answer = received(fifth)
    assert answer.startswith(b"HTTP/1.1 429 Too Many Requests")
    assert b"Retry-After: 1" in answer
    assert client.watches() == 3
    for each in (*watches, idle, fourth, fifth):
        each.close()


def test_bodies_that_do_not_end_are_bounded_together(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "HELD_BYTES", LIMIT)
    connection = client.raw()
    head = asking(MAPS, f"Content-Length: {LIMIT}").replace(b"GET", b"POST")
    connection.sendall(head + b"x" * (LIMIT - 1))
    eventually(lambda: server_of(client).held == LIMIT - 1)
    status, answer = client.ask("POST", MAPS, config_map("one", 900_000))
    assert (status, answer["reason"]) == (429, "TooManyRequests")
    assert client.answer.headers["Retry-After"] == "1"
    assert client.ask("POST", MAPS, config_map("two"))[0] == 201
    connection.close()
    eventually(lambda: server_of(client).held == 0)
    assert client.ask("POST", MAPS, config_map("one"))[0] == 201


def test_answers_that_nobody_reads_are_bounded_together(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "HELD_BYTES", 4 * 1024 * 1024)
    for number in range(10):
        client.cluster.apply(config_map(f"map-{number}", 900_000))
    slow = client.raw(window=4096)
    slow.sendall(asking(MAPS))
    eventually(lambda: server_of(client).is_full)
    assert client.ask("GET", MAPS)[0] == 429
    slow.close()
    eventually(lambda: server_of(client).held == 0)
    assert client.ask("GET", MAPS)[0] == 200


def test_nothing_is_held_for_those_who_are_served(client: Client) -> None:
    for number in range(3):
        client.ask("POST", MAPS, config_map(f"map-{number}", 500_000))
        client.ask("GET", MAPS)
    client.ask("POST", MAPS, config_map("large", LIMIT))
    assert server_of(client).held == 0


def test_the_limits_are_told_in_the_docs() -> None:
    page = (ROOT / "docs/reference/cluster-command.md").read_text()
    mib = api_limits.HELD_BYTES // 1024**2, limits.QUOTA_BYTES // 1024**2
    limit = ConnectionLimits
    for said in (
        f"| connections | {api_limits.CONNECTIONS_MAX:,} |",
        f"waiting for a header | {limit.idle:g} s; {limit.head:g} s,",
        f"has read an answer | {limit.request:g} s |",
        f"{mib[0]} MiB of memory",
        f"{mib[1]} MiB of JSON",
        f"{store.HISTORY_BYTES // 1024**2} MiB of JSON",
    ):
        assert said in page
