"""`fnop cluster` calls admission webhooks over HTTPS."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.serving.api_server import HttpServer
from fnop.adapters.serving.certificates import Authority
from fnop.adapters.serving.live_cluster import Live
from fnop.adapters.serving.webhook_calls import MOST_BYTES, WebhookCaller
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.runtime.clock import SystemClock
from tests.cluster.envtest import free_ports
from tests.conformance.hooks import Answers, HookServer, answering, serving
from tests.patience import happens, patience

GROUP = "admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
SERVICE = {"namespace": "default", "name": "hooks", "path": "/ok"}


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and the certificate of the webhooks."""
    pytest.importorskip("cryptography")
    folder = tmp_path_factory.mktemp("pki")
    authority = Authority(SystemClock().now().wall)
    pair = authority.for_server(("127.0.0.1", "hooks.default.svc"))
    (folder / "ca.crt").write_bytes(authority.certificate)
    (folder / "server.crt").write_bytes(pair.certificate)
    (folder / "server.key").write_bytes(pair.key)
    return folder


class Served:
    """A served cluster, and its plain client."""

    def __init__(self, live: Live) -> None:
        self.live = live

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any, Any]:
        """Send a request: its status, its body, and the warnings."""
        request = urllib.request.Request(
            self.live.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=patience(20)) as answer:
                found = answer.status, json.loads(answer.read())
                return *found, answer.headers.get_all("Warning")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read()), None

    def create(self, name: str, group: str = "a") -> tuple[int, Any, Any]:
        """Create a ConfigMap, which webhooks for its group review."""
        metadata = {"name": name, "labels": {"group": group}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        return self.send("POST", MAPS, body)

    def register(self, kind: str, client: Any, group: str = "a", **more: Any) -> None:
        """Register a webhook for ConfigMaps of a group."""
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        hook = {
            "name": "a.hooks.test",
            "clientConfig": client,
            "rules": [{**rule, "operations": ["CREATE"]}],
            "objectSelector": {"matchLabels": {"group": group}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }
        body = {
            "apiVersion": GROUP,
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": "hooks"},
            "webhooks": [hook],
        }
        plural = f"{kind.lower()}webhookconfigurations"
        status, found, _ = self.send("POST", f"/apis/{GROUP}/{plural}", body)
        assert status == 201, found


@contextmanager
def served(call: WebhookCaller | None = None) -> Iterator[Served]:
    live = Live(empty_cluster(), call or WebhookCaller({}))
    try:
        yield Served(live)
    finally:
        live.close()


def at(hooks: HookServer, path: str) -> dict[str, str]:
    return {"url": hooks.address + path, "caBundle": hooks.authority}


def test_webhooks_are_called_at_their_urls(pki: Path) -> None:
    patch = base64.b64encode(b'[{"op": "add", "path": "/data", "value": {"a": "b"}}]')
    answers: Answers = {
        "data": answering(
            allowed=True,
            patch=patch.decode(),
            patchType="JSONPatch",
            warnings=["look out"],
        ),
        "no": answering(allowed=False, status={"message": "no way", "code": 403}),
    }
    with serving(answers, pki) as hooks, served() as cluster:
        cluster.register("Mutating", at(hooks, "data"))
        status, body, warnings = cluster.create("a")
        assert (status, body["data"]) == (201, {"a": "b"})
        assert warnings == ['299 - "look out"']
        cluster.register("Validating", at(hooks, "no"))
        status, body, _ = cluster.create("b")
        assert status == 403
        assert body["message"].endswith("denied the request: no way")
        assert [one["hook"] for one in hooks.asked] == ["data", "data", "no"]
        assert cluster.send("GET", f"{MAPS}/b")[0] == 404


def test_large_answers_are_read_to_their_end(pki: Path) -> None:
    """They arrive in many parts."""
    text = "x" * 650_000
    operation = {"op": "add", "path": "/data", "value": {"a": text}}
    patch = base64.b64encode(json.dumps([operation]).encode()).decode()
    assert 850_000 < len(patch) < 950_000
    large = answering(allowed=True, patch=patch, patchType="JSONPatch")
    with serving({"large": large}, pki) as hooks, served() as cluster:
        cluster.register("Mutating", at(hooks, "large"))
        status, body, _ = cluster.create("a")
        assert status == 201, body
        assert body["data"] == {"a": text}


def test_an_answer_over_the_limit_is_an_error_that_says_so(pki: Path) -> None:
    endless = answering(allowed=True, auditAnnotations={"a": "x" * MOST_BYTES})
    with serving({"endless": endless}, pki) as hooks, served() as cluster:
        cluster.register("Validating", at(hooks, "endless"))
        status, body, _ = cluster.create("a")
        assert status == 500
        assert body["message"].endswith(f"its answer has over {MOST_BYTES} bytes")
        assert cluster.send("GET", f"{MAPS}/a")[0] == 404


def test_others_are_answered_while_a_webhook_is_called(pki: Path) -> None:
    """The webhook itself writes to the cluster, before it answers."""
    with served() as cluster:

        def writing(review: Any) -> tuple[int, Any]:
            assert cluster.create("other", group="b")[0] == 201
            return answering(allowed=True)(review)

        with serving({"writes": writing}, pki) as hooks:
            cluster.register("Validating", at(hooks, "writes"))
            assert cluster.create("a")[0] == 201
            # What the webhook wrote has not made it be asked again.
            assert len(hooks.asked) == 1
        assert cluster.send("GET", f"{MAPS}/other")[0] == 200


def test_a_service_is_called_where_it_is_mapped(pki: Path) -> None:
    with serving({"ok": answering(allowed=True)}, pki) as hooks:
        client = {"service": SERVICE, "caBundle": hooks.authority}
        port = hooks.http.server_address[1]
        with served(WebhookCaller({("default", "hooks"): port})) as cluster:
            cluster.register("Validating", client)
            assert cluster.create("a")[0] == 201
            assert len(hooks.asked) == 1
        with served() as cluster:
            cluster.register("Validating", client)
            status, body, _ = cluster.create("a")
        assert status == 500
        assert "--service default/hooks=PORT" in body["message"]


def test_a_webhook_that_cannot_be_called(pki: Path) -> None:
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}/x"
    with served() as cluster:
        cluster.register("Validating", {"url": url})
        cluster.register("Mutating", {"url": url}, failurePolicy="Ignore")
        status, body, _ = cluster.create("a")
    assert status == 500
    called = 'failed calling webhook "a.hooks.test": failed to call webhook: '
    assert f'{called}Post "{url}?timeout=10s": dial tcp' in body["message"]


def test_a_webhook_of_another_authority_is_not_believed(pki: Path) -> None:
    other = base64.b64encode(Authority(SystemClock().now().wall).certificate).decode()
    with serving({"ok": answering(allowed=True)}, pki) as hooks, served() as cluster:
        client = {"url": f"{hooks.address}ok", "caBundle": other}
        cluster.register("Validating", client)
        status, body, _ = cluster.create("a")
        assert status == 500
        assert "x509: " in body["message"]
        assert hooks.asked == []


def test_a_client_that_leaves_takes_its_request_along(pki: Path) -> None:
    with served() as cluster:
        server: HttpServer = cluster.live._server

        def answer(review: Any) -> tuple[int, Any]:
            connection.close()
            assert happens(lambda: len(server.connections) == 0)
            return answering(allowed=True)(review)

        connection = http.client.HTTPConnection(cluster.live.url.partition("//")[2])
        with serving({"late": answer}, pki) as hooks:
            cluster.register("Validating", at(hooks, "late"))
            metadata = {"name": "a", "labels": {"group": "a"}}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            connection.request("POST", MAPS, json.dumps(body))
            assert happens(lambda: hooks.asked)
        assert cluster.send("GET", f"{MAPS}/a")[0] == 404
