"""The HTTP server of the simulated cluster: what clients send, good and bad."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fnop.adapters.serving import api_server
from tests.patience import patience
from tests.served_clusters import (
    LIMIT,
    MAPS,
    Client,
    asking,
    config_map,
    received,
    serving,
)


@pytest.fixture
def client() -> Iterator[Client]:
    with serving() as found:
        yield found


MERGE = "application/merge-patch+json"


def assert_cut_off(connection: socket.socket, part: bytes) -> None:
    """Send without an end; the server must have enough some time."""
    try:
        for _ in range(10_000):
            connection.sendall(part)
    except (ConnectionError, TimeoutError):
        return
    pytest.fail("the server takes it all")


# ------------------------------------------------------------------- answers


def test_a_request_is_answered_and_the_connection_stays(client: Client) -> None:
    status, body = client.ask("POST", MAPS, config_map("one"))
    assert (status, body["metadata"]["name"]) == (201, "one")
    assert client.answer.headers["Content-Type"] == "application/json"
    assert client.ask("GET", f"{MAPS}/one")[1] == body
    assert client.ask("GET", "/healthz") == (200, "ok")
    assert client.answer.headers["Content-Type"].startswith("text/plain")


def test_json_ends_with_a_newline(client: Client) -> None:
    """As Go's encoder writes it: clients print such bodies one after the other."""
    for path in ("/api/v1/namespaces/default", f"{MAPS}/nothing", MAPS, "/apis"):
        client.http.request("GET", path)
        with client.http.getresponse() as answer:
            body = answer.read()
        assert body.endswith(b"}\n")
        assert int(answer.headers["Content-Length"]) == len(body)


def test_query_parameters_are_unquoted(client: Client) -> None:
    client.ask("POST", MAPS, config_map("one"))
    selector = "fieldSelector=metadata.name%3Done&labelSelector=a%20notin%20(b)"
    _, found = client.ask("GET", f"{MAPS}?{selector}")
    assert [each["metadata"]["name"] for each in found["items"]] == ["one"]


def test_bodies_in_chunks(client: Client) -> None:
    text = json.dumps(config_map("one")).encode()
    client.http.request(
        "POST",
        MAPS,
        iter([text[:10], text[10:]]),
        {"Content-Type": "application/json"},
        encode_chunked=True,
    )
    response = client.http.getresponse()
    response.read()
    assert response.status == 201


def test_yaml_in_and_yaml_out(client: Client) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: 'y'}\n"
    status, _ = client.ask("POST", MAPS, body, "application/yaml")
    assert status == 201
    _, text = client.ask("GET", f"{MAPS}/one", Accept="application/yaml")
    assert client.answer.headers["Content-Type"] == "application/yaml"
    assert 'a: "y"' in text or "a: 'y'" in text


def test_a_client_may_wait_before_its_body(client: Client) -> None:
    connection = client.raw()
    body = json.dumps(config_map("one")).encode()
    connection.sendall(
        f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    )
    assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(body)
    assert received(connection).startswith(b"HTTP/1.1 201 ")
    connection.close()


def test_requests_one_after_the_other_without_waiting(client: Client) -> None:
    connection = client.raw()
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    connection.sendall(one * 500 + last)
    assert received(connection).count(b"HTTP/1.1 200 OK") == 501
    connection.close()


def test_head_has_no_body(client: Client) -> None:
    assert client.ask("HEAD", "/healthz")[1] == ""
    assert client.ask("GET", "/healthz") == (200, "ok")


def test_impersonation_without_rbac_names_the_user(client: Client) -> None:
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
        "metadata": {},
    }
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "team"}
    status, body = client.ask("POST", path, review, **headers)
    assert status == 201
    assert body["status"]["userInfo"]["username"] == "jane"
    assert "team" in body["status"]["userInfo"]["groups"]


# ----------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{bad"),
        ("application/json", b'{"apiVersion": "v1"'),
        ("application/json", b""),
        ("application/json", b"[]"),
        ("application/json", b"\xff\xfe"),
        ("application/json", b"[" * 100_000),
        ("application/yaml", b"a: ["),
        ("application/yaml", b"\xff"),
        ("application/vnd.kubernetes.protobuf", b"{}"),
        ("application/vnd.kubernetes.protobuf", b"k8s\x00\xff\xff\xff"),
    ],
)
def test_bodies_that_are_none(client: Client, content_type: str, body: bytes) -> None:
    for method, path in (("POST", MAPS), ("PUT", f"{MAPS}/one")):
        status, answer = client.ask(method, path, body, content_type)
        assert (status, answer["reason"]) == (400, "BadRequest")
    assert client.ask("GET", "/healthz") == (200, "ok")


@pytest.mark.parametrize(
    "content_type",
    [
        MERGE,
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ],
)
def test_patches_that_are_none(client: Client, content_type: str) -> None:
    client.ask("POST", MAPS, config_map("one"))
    query = "?fieldManager=me" if "apply" in content_type else ""
    status, answer = client.ask("PATCH", f"{MAPS}/one{query}", b"{bad", content_type)
    assert (status, answer["kind"]) == (400, "Status")


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NO_JSON = "couldn't get version/kind; json parse error: "


# As Kubernetes 1.36 answers.
@pytest.mark.parametrize(
    ("method", "content_type", "body", "code", "message"),
    [
        (
            "POST",
            "application/json",
            b"{bad",
            400,
            f"{UNRECOGNIZED}{NO_JSON}invalid character 'b' looking for beginning of "
            "object key string ({bad)",
        ),
        (
            "POST",
            "application/json",
            b"hello",
            400,
            f"{UNRECOGNIZED}{NO_JSON}invalid character 'h' looking for beginning of "
            "value (68656c6c6f)",
        ),
        (
            "PUT",
            "application/json",
            b'{"apiVersion":"v1","kind":"ConfigMap"',
            400,
            f"{UNRECOGNIZED}{NO_JSON}unexpected end of JSON input "
            '({"apiVersion":"v1","kind":"Con ...)',
        ),
        (
            "POST",
            "application/json",
            b"",
            400,
            f"{UNRECOGNIZED}{NO_JSON}unexpected end of JSON input (<empty>)",
        ),
        (
            "PATCH",
            MERGE,
            b"{bad",
            400,
            "error decoding patch: invalid character 'b' looking for beginning of "
            "object key string",
        ),
        (
            "PATCH",
            MERGE,
            b"",
            400,
            "error decoding patch: unexpected end of JSON input",
        ),
        (
            "DELETE",
            "application/json",
            b"{bad",
            400,
            f"{NO_JSON}invalid character 'b' looking for beginning of object key "
            "string",
        ),
        (
            "POST",
            "text/plain",
            b"{}",
            415,
            "the body of the request was in an unknown format - accepted media types "
            "include: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        ),
    ],
)
def test_what_a_broken_body_is_told(
    client: Client, method: str, content_type: str, body: bytes, code: int, message: str
) -> None:
    client.ask("POST", MAPS, config_map("one"))
    path = MAPS if method == "POST" else f"{MAPS}/one"
    status, answer = client.ask(method, path, body, content_type)
    assert (status, answer["message"]) == (code, message)


def test_a_body_that_is_too_large(client: Client) -> None:
    status, answer = client.ask("POST", MAPS, config_map("one", LIMIT))
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")
    assert answer["message"] == "Request entity too large: limit is 3145728"
    assert client.ask("GET", "/healthz") == (200, "ok")


def test_a_body_that_never_ends_is_cut_off(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "PATIENCE_BYTES", 4 * 1024 * 1024)
    connection = client.raw()
    head = f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999"
    connection.sendall(f"{head}\r\n\r\n".encode())
    assert_cut_off(connection, b"x" * 65536)
    connection.close()
    assert client.ask("GET", "/healthz") == (200, "ok")


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"FETCH / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(client: Client, sent: bytes) -> None:
    connection = client.raw()
    connection.sendall(sent)
    assert received(connection).startswith(b"HTTP/1.1 400 ")
    connection.close()


def test_a_header_that_never_ends_is_refused(client: Client) -> None:
    connection = client.raw()
    connection.sendall(b"GET / HTTP/1.1\r\n")
    assert_cut_off(connection, b"X-Header: " + b"x" * 65536 + b"\r\n")
    connection.close()
    assert client.ask("GET", "/healthz") == (200, "ok")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/nothings",
        "/apis/nobody.dev/v1/things",
        "/api/v1/namespaces/default/configmaps/a/b/c/d",
        "/api/v1/%ff%fe",
        "/" + "x" * 5000,
    ],
)
def test_paths_of_nothing(client: Client, path: str) -> None:
    assert client.ask("GET", path)[0] == 404
    assert client.ask("POST", path, config_map("one"))[0] in (404, 405)


def test_huge_and_impossible_limits(client: Client) -> None:
    client.ask("POST", MAPS, config_map("one"))
    status, found = client.ask("GET", f"{MAPS}?limit=9223372036854775807")
    assert (status, len(found["items"])) == (200, 1)
    for text in ("99999999999999999999999", "x", "1e3"):
        assert client.ask("GET", f"{MAPS}?limit={text}")[0] == 400


def test_an_upgrade_is_answered_with_a_status(client: Client) -> None:
    client.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )
    connection = client.raw()
    path = "/api/v1/namespaces/default/pods/p/exec?command=ls"
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    head, _, body = received(connection).partition(b"\r\n\r\n")
    assert int(head.split()[1]) >= 400
    assert json.loads(body)["kind"] == "Status"
    connection.close()


def test_a_mistake_of_ours_is_an_internal_error(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr("fnop.interpreters.cluster.answer", broken)
    status, answer = client.ask("GET", MAPS)
    assert (status, answer["reason"]) == (500, "InternalError")
    assert "was not answered" in caplog.text


# ------------------------------------------------------------------- watches


def lines(response: http.client.HTTPResponse, count: int) -> list[dict[str, Any]]:
    return [json.loads(response.readline()) for _ in range(count)]


def watching(client: Client, query: str = "", path: str = MAPS) -> Any:
    """An open watch, on a connection of its own."""
    connection = client.connected()
    connection.request("GET", f"{path}?watch=1{query}")
    return connection.getresponse()


def test_a_watch_shows_what_is_there_and_what_comes(client: Client) -> None:
    client.ask("POST", MAPS, config_map("one"))
    watch = watching(client)
    assert watch.status == 200
    assert watch.headers["Transfer-Encoding"] == "chunked"
    client.ask("PATCH", f"{MAPS}/one", {"data": {"text": "y"}}, MERGE)
    client.ask("DELETE", f"{MAPS}/one")
    found = lines(watch, 3)
    assert [each["type"] for each in found] == ["ADDED", "MODIFIED", "DELETED"]
    assert found[1]["object"]["data"] == {"text": "y"}
    watch.close()


def test_watches_see_only_what_they_select(client: Client) -> None:
    named = watching(client, "&fieldSelector=metadata.name%3Dtwo")
    elsewhere = watching(client, path="/api/v1/namespaces/kube-system/configmaps")
    everywhere = watching(client, path="/api/v1/configmaps")
    client.ask("POST", MAPS, config_map("one"))
    client.ask("POST", MAPS, config_map("two"))
    other = "/api/v1/namespaces/kube-system/configmaps"
    client.ask("POST", other, config_map("three"))
    assert lines(named, 1)[0]["object"]["metadata"]["name"] == "two"
    assert lines(elsewhere, 1)[0]["object"]["metadata"]["name"] == "three"
    assert len(lines(everywhere, 3)) == 3
    for watch in (named, elsewhere, everywhere):
        watch.close()


def test_a_watch_ends_with_its_time_and_the_connection_stays(client: Client) -> None:
    query = "watch=1&timeoutSeconds=1&allowWatchBookmarks=1"
    status, text = client.ask("GET", f"{MAPS}?{query}")
    assert status == 200
    assert text["type"] == "BOOKMARK"
    assert client.ask("GET", "/healthz") == (200, "ok")


def test_a_version_of_long_ago_is_an_error_event(client: Client) -> None:
    status, event = client.ask("GET", f"{MAPS}?watch=1&resourceVersion=1")
    assert (status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
    assert client.ask("GET", "/healthz") == (200, "ok")


def test_refused_watches(client: Client) -> None:
    for query in ("labelSelector=!!", "timeoutSeconds=x"):
        status, answer = client.ask("GET", f"{MAPS}?watch=1&{query}")
        assert (status, answer["kind"]) == (400, "Status")
    assert client.watches() == 0


def test_tables_have_their_heads_once(client: Client) -> None:
    connection = client.connected()
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    connection.request("GET", f"{MAPS}?watch=1", headers={"Accept": table})
    watch = connection.getresponse()
    client.ask("POST", MAPS, config_map("one"))
    client.ask("POST", MAPS, config_map("two"))
    first, second = (each["object"] for each in lines(watch, 2))
    assert first["columnDefinitions"]
    assert not second["columnDefinitions"]
    names = [each["rows"][0]["object"]["metadata"]["name"] for each in (first, second)]
    assert names == ["one", "two"], "each event comes once"
    watch.close()


def test_watches_end_when_their_kind_goes(client: Client) -> None:
    names = {"plural": "things", "kind": "Thing"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "a.dev", "scope": "Cluster", "names": names, "versions": [version]}
    root = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.a.dev"},
        "spec": spec,
    }
    assert client.ask("POST", root, body)[0] == 201
    watch = watching(client, path="/apis/a.dev/v1/things")
    # Its spec is written: informers must list again.
    change = {"spec": {"names": {"shortNames": ["th"]}}}
    assert client.ask("PATCH", f"{root}/things.a.dev", change, MERGE)[0] == 200
    assert watch.read() == b""
    watch = watching(client, path="/apis/a.dev/v1/things")
    assert client.ask("DELETE", f"{root}/things.a.dev")[0] == 200
    assert watch.read() == b""
    assert client.watches() == 0


def test_who_vanishes_is_forgotten(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = threading.Event()
    live = client.cluster._live
    assert live is not None
    forget = live.host.forget

    def forgetting(*args: Any) -> None:
        forget(*args)
        gone.set()

    monkeypatch.setattr(live.host, "forget", forgetting)
    connection = client.raw()
    connection.sendall(asking(f"{MAPS}?watch=1"))
    connection.recv(100)
    assert client.watches() == 1
    connection.close()
    assert gone.wait(patience(20))
    assert client.watches() == 0


def test_who_reads_too_slowly_is_cut_off(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "LATE_BYTES", 1024 * 1024)
    slow = client.raw(window=4096)
    slow.sendall(asking(f"{MAPS}?watch=1"))
    slow.recv(100)
    fast = watching(client)
    client.ask("POST", MAPS, config_map("one"))
    lines(fast, 1)
    for number in range(2000):
        text = f"{number}-" + "x" * 200_000
        client.ask("PATCH", f"{MAPS}/one", {"data": {"text": text}}, MERGE)
        assert lines(fast, 1)[0]["object"]["data"]["text"] == text
        if client.watches() == 1:
            break
    else:
        pytest.fail("the slow client is still served")
    fast.close()
    slow.close()


def test_a_slow_beginning_is_not_held_in_memory(client: Client) -> None:
    for number in range(40):
        client.ask("POST", MAPS, config_map(f"map-{number}", 200_000))
    slow = client.raw(window=4096)
    slow.sendall(asking(f"{MAPS}?watch=1&timeoutSeconds=1"))
    slow.recv(100)
    assert client.ask("GET", "/healthz") == (200, "ok")
    live = client.cluster._live
    assert live is not None
    sizes = [
        each._transport.get_write_buffer_size() for each in live._server.connections
    ]
    assert max(sizes) < 1024 * 1024
    slow.close()


def test_closing_ends_watches_in_order() -> None:
    with serving() as client:
        watch = watching(client)
        assert client.watches() == 1
        live = client.cluster._live
        assert live is not None
        asyncio.run_coroutine_threadsafe(live._server.close(), live._loop).result()
        assert watch.read() == b""


# ------------------------------------------------------- bodies that mean harm


def test_bodies_that_would_fill_the_memory_are_refused(client: Client) -> None:
    """Stored objects can be written again; aliases are not expanded without end."""
    path = "/api/v1/namespaces/default/configmaps"
    deep = '{"metadata":{"name":"x"},"a":' + "[" * 300 + "]" * 300 + "}"
    status, answer = client.ask("POST", path, deep.encode())
    assert (status, "exceeded max depth" in answer["message"]) == (400, True)
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    for level in range(1, 9):
        items = ",".join([f"*a{level - 1}"] * 10)
        bomb += f"a{level}: &a{level} [{items}]\n"
    status, answer = client.ask("POST", path, bomb.encode(), "application/yaml")
    assert (status, "excessive aliasing" in answer["message"]) == (400, True)
    assert client.ask("GET", "/healthz") == (200, "ok")


def test_a_watch_of_an_endless_time_is_answered(client: Client) -> None:
    watch = watching(client, "&timeoutSeconds=" + "9" * 5000)
    assert watch.status in (200, 400)
    watch.close()
    assert client.ask("GET", "/healthz") == (200, "ok")


def test_kubectl_hears_that_a_kind_is_not_known(client: Client) -> None:
    """It falls back to version 2 as protobuf, and goes on only if that is answered."""
    form = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    connection = client.connected()
    connection.request("GET", "/openapi/v2", headers={"Accept": form})
    response = connection.getresponse()
    answered = form.replace("@", ".")  # an @ cannot stand in a media type
    assert (response.status, response.headers["Content-Type"]) == (200, answered)
    assert b"Kubernetes" in response.read()
