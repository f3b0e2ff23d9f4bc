"""Webhooks of a running operator: served, registered, and unregistered at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.adapters.kubernetes import service_account
from fnop.adapters.webhooks import running as webhooks_running
from fnop.adapters.webhooks.addresses import Address
from fnop.adapters.webhooks.server_at import server_at
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.commands import closed_port
from tests.patience import patience, soon
from tests.webhook_clusters import GROUP, NAME, Cluster

KIND = "fnopexamples.fnop.dev"
CLIENT = {"url": "https://hooks.example.com", "caBundle": "QQ==", "service": None}


class Server:
    """A webhook server that yields values on request."""

    def __init__(self, cluster: Cluster, *clients: Any) -> None:
        self.cluster = cluster
        self.clients: asyncio.Queue[Any] = asyncio.Queue()
        for each in clients or (CLIENT,):
            self.clients.put_nowait(each)
        self.starts = 0
        # What was registered when it was closed.
        self.closed: list[list[str]] = []
        self.answer: Any = None

    async def __call__(self, fn: Any) -> AsyncIterator[Any]:
        self.starts += 1
        self.answer = fn
        try:
            while True:
                client = await self.clients.get()
                if isinstance(client, Exception):
                    raise client
                if client is None:
                    return
                yield client
        finally:
            self.closed.append(self.cluster.urls)


class InContext(Server):
    """A server that is a context, too."""

    entered = 0

    async def __aenter__(self) -> InContext:
        self.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.entered -= 1


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check again soon: the awaited work is not in another process."""
    monkeypatch.setattr(webhooks_running, "LINGER_SECONDS", 0.0)
    monkeypatch.setattr(webhooks_running, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(webhooks_running, "PAUSE_MOST_SECONDS", 0.02)
    for each in ("begun", "go on"):
        GATES[each] = asyncio.Event()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def registry() -> Registry:
    found = Registry()

    @fnop.on.validate(KIND, registry=found, id="judge")
    def judge(spec: fnop.Spec, **_: Any) -> None:
        if spec.get("wrong"):
            raise fnop.Denied("it is wrong")

    return found


def operator(
    cluster: Cluster, registry: Registry, server: Any = None, **more: Any
) -> fnop.operator:
    return fnop.operator(
        registry=registry, standalone=True, api=cluster, webhooks=server, **more
    )


def review(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "operation": "CREATE",
            "kind": {"group": "fnop.dev", "version": "v1", "kind": "FnopExample"},
            "resource": {
                "group": "fnop.dev",
                "version": "v1",
                "resource": "fnopexamples",
            },
            "namespace": "default",
            "object": {"metadata": {"name": "x"}, "spec": spec},
        },
    }


async def ready(running: fnop.Running) -> None:
    async with asyncio.timeout(patience(10)):
        await running.ready()


async def test_they_are_served_before_they_are_registered_and_until_after(
    cluster: Cluster, registry: Registry
) -> None:
    server = Server(cluster)
    async with operator(cluster, registry, server) as running:
        assert cluster.urls == []
        await ready(running)
        assert cluster.urls == ["https://hooks.example.com/judge"]
        assert running.health().is_ready
        for wrong in (False, True):
            found = await server.answer(review(wrong=wrong), webhook="judge")
            assert found["response"]["allowed"] is not wrong
        assert cluster.stored("mutating") is None
    assert server.closed == [[]]
    assert cluster.urls == []


async def test_until_then_it_is_not_ready(cluster: Cluster, registry: Registry) -> None:
    server = Server(cluster, CLIENT)
    server.clients.get_nowait()
    async with operator(cluster, registry, server) as running:
        await soon(lambda: "the webhook server does not serve yet" in unready(running))
        server.clients.put_nowait(CLIENT)
        await ready(running)
        assert running.health().is_ready


async def test_what_is_done_to_the_configurations_is_told(
    cluster: Cluster, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    fnop.on.validate(KIND, registry=registry, id="kept", persistent=True)(_nothing)
    label = f"ValidatingWebhookConfiguration {NAME}"

    def said(text: str) -> int:
        return caplog.messages.count(text.format(label))

    with caplog.at_level(logging.INFO):
        async with operator(cluster, registry, Server(cluster)) as running:
            await ready(running)
            assert said("webhooks are registered: {}") == 1
            path = f"{GROUP}/validatingwebhookconfigurations/{NAME}"
            cluster.request(ApiRequest("DELETE", path))
            await soon(lambda: bool(cluster.urls))
            await soon(lambda: said("somebody has deleted {}; it is there again") == 1)
            assert said("webhooks are registered: {}") == 1
    assert cluster.urls == ["https://hooks.example.com/kept"]
    assert (
        said(
            "webhooks are unregistered: {}; persistent webhooks stay registered, and "
            f"their failure policies decide: kept.{NAME}"
        )
        == 1
    )


def _nothing(**_: Any) -> None: ...


def unready(running: fnop.Running) -> tuple[str, ...]:
    return running.health().unready


# Of a loop each, and so of a test.
GATES: dict[str, asyncio.Event] = {}


async def slow(**_: Any) -> None:
    GATES["begun"].set()
    await GATES["go on"].wait()


async def test_a_review_under_way_at_the_end_is_answered(
    cluster: Cluster, registry: Registry
) -> None:
    fnop.on.validate(KIND, registry=registry, id="slow", impure=True)(slow)
    server = Server(cluster)
    async with operator(cluster, registry, server) as running:
        await ready(running)
        answer = asyncio.create_task(server.answer(review(), webhook="slow"))
        await GATES["begun"].wait()
        running.stop()
        await soon(lambda: cluster.urls == [])
        assert not answer.done()
        assert not server.closed
        GATES["go on"].set()
        assert (await answer)["response"]["allowed"]
        await running.ended()
    assert len(server.closed) == 1


@pytest.mark.parametrize("kind", [Server, InContext])
async def test_what_the_server_yields_next_is_registered(
    cluster: Cluster, registry: Registry, kind: type[Server]
) -> None:
    server = kind(cluster)
    async with operator(cluster, registry, server) as running:
        await ready(running)
        server.clients.put_nowait({"url": "https://other.example.com/a/"})
        await soon(lambda: cluster.urls == ["https://other.example.com/a/judge"])
    assert getattr(server, "entered", 0) == 0


async def test_a_server_is_asked_for_more_once_clients_know(
    cluster: Cluster, registry: Registry
) -> None:
    other = {"url": "https://other.example.com"}
    server = Server(cluster, CLIENT, other)
    cluster.fails = lambda request: 503 if request.method == "POST" else None
    async with operator(cluster, registry, server) as running:
        await soon(lambda: any("refuses" in each for each in unready(running)))
        assert server.clients.qsize() == 1
        cluster.fails = lambda request: None
        await soon(lambda: cluster.urls == ["https://other.example.com/judge"])


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (OSError("the port is taken"), "the port is taken"),
        (None, "it has ended"),
        ({"caBundle": "QQ=="}, "it yields a mapping of caBundle; yield"),
        ({"service": {"name": "a"}}, "it yields a mapping of service; yield"),
        ("https://a", "it yields 'https://a'"),
    ],
)
async def test_a_server_that_fails_is_started_again(
    cluster: Cluster,
    registry: Registry,
    caplog: pytest.LogCaptureFixture,
    bad: Any,
    said: str,
) -> None:
    server = Server(cluster, bad, CLIENT)
    with caplog.at_level(logging.WARNING):
        async with operator(cluster, registry, server) as running:
            await ready(running)
            assert server.starts == 2
    assert any(
        "the webhook server has failed, and is started again" in each and said in each
        for each in caplog.messages
    )


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (403, "grant it the rights that fnop rbac prints: for a test"),
        (422, "the API server refuses ValidatingWebhookConfiguration"),
        (404, "does not serve admissionregistration.k8s.io/v1"),
        (0, "nobody is there"),
    ],
)
async def test_an_error_is_one_line_and_tried_again(
    cluster: Cluster,
    registry: Registry,
    caplog: pytest.LogCaptureFixture,
    status: int,
    said: str,
) -> None:
    cluster.fails = lambda request: (
        status if request.method == "POST" and request.path.startswith(GROUP) else None
    )

    def tries() -> int:
        return sum(
            each.method == "POST" and each.path.startswith(GROUP)
            for each in cluster.asked
        )

    with caplog.at_level(logging.WARNING):
        async with operator(cluster, registry, Server(cluster)) as running:
            await soon(lambda: tries() > 2)
            assert not running.has_ended
            assert not running.health().is_ready
            cluster.fails = lambda request: None
            await ready(running)
    part = said.partition(":")[0]
    assert sum(part in each for each in caplog.messages) == 1


async def test_at_first_both_are_registered_or_none(
    cluster: Cluster, registry: Registry
) -> None:
    @fnop.on.mutate(KIND, registry=registry, id="fill")
    def fill(**_: Any) -> None: ...

    def refuses(request: ApiRequest) -> int | None:
        return 403 if f"{GROUP}/mutating" in request.path else None

    cluster.fails = refuses
    async with operator(cluster, registry, Server(cluster)) as running:
        await soon(lambda: any(map(refuses, cluster.asked)))
        assert not running.health().is_ready
        assert cluster.stored() is None
        cluster.fails = lambda request: None
        await ready(running)
        assert cluster.stored("mutating") is not None
        assert cluster.urls
        cluster.fails = refuses
        # What was written stays, and so does the operator's readiness.
        assert running.health().is_ready
        cluster.fails = lambda request: None
    assert cluster.urls == []


@pytest.mark.parametrize(
    ("version", "is_named"),
    [
        (("1", "20"), False),
        (("1", "20+"), False),
        (("1", "21"), True),
        (("2", "0"), True),
        (("", ""), True),
    ],
)
async def test_namespaces_are_named_if_the_server_labels_them(
    cluster: Cluster, registry: Registry, version: tuple[str, str], is_named: bool
) -> None:
    send = cluster.send

    async def answering(request: ApiRequest) -> ApiResponse:
        if request.path == "/version":
            return ApiResponse(200, dict(zip(("major", "minor"), version, strict=True)))
        return await send(request)

    cluster.send = answering  # type: ignore[method-assign]
    server = Server(cluster)
    async with operator(cluster, registry, server, namespaces=["default"]) as running:
        await ready(running)
        found = cluster.stored()
        assert found is not None
        assert bool(found["webhooks"][0]["namespaceSelector"]) is is_named
        # It is for the operator to know which namespaces it serves.
        for namespace, allowed in (("default", False), ("other", True)):
            wrong = review(wrong=True)
            wrong["request"]["namespace"] = namespace
            answer = await server.answer(wrong)
            assert answer["response"]["allowed"] is allowed


async def test_without_a_server_there_is_a_warning_and_no_end(
    cluster: Cluster, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with operator(cluster, registry) as running:
            await ready(running)
            assert running.health().is_ready
    (line,) = (each for each in caplog.messages if "nobody will ask them" in each)
    assert "(judge)" in line
    assert "--webhooks" in line


async def test_without_a_server_what_a_killed_process_has_left_is_told(
    cluster: Cluster, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    left = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": f"judge.{NAME}",
                "clientConfig": {"url": "https://127.0.0.1:1/judge"},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
            }
        ],
    }
    path = f"{GROUP}/validatingwebhookconfigurations"
    assert cluster.request(ApiRequest("POST", path, (), left)).status == 201
    with caplog.at_level(logging.WARNING):
        async with operator(cluster, registry) as running:
            await ready(running)
    (line,) = (each for each in caplog.messages if "nobody will ask them" in each)
    assert (
        f"nobody answers the webhooks of ValidatingWebhookConfiguration {NAME}" in line
    )
    assert "fnop uninstall" in line


async def test_what_is_not_managed_is_served_alone(
    cluster: Cluster, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(cluster)
    settings = Settings(admission_server=server)
    with caplog.at_level(logging.INFO):
        async with operator(cluster, registry, settings=settings) as running:
            await ready(running)
            assert (await server.answer(review()))["response"]["allowed"]
    asked = {each.method for each in cluster.asked if each.path.startswith(GROUP)}
    assert asked <= {"GET"}
    assert len(server.closed) == 1
    place = "webhooks are served at https://hooks.example.com, and not registered"
    assert caplog.messages.count(place) == 1


@pytest.mark.parametrize("status", [None, 403, 0])
async def test_what_leads_elsewhere_is_told_once_if_it_may_be_read(
    cluster: Cluster,
    registry: Registry,
    caplog: pytest.LogCaptureFixture,
    status: int | None,
) -> None:
    fnop.on.validate(KIND, registry=registry, id="kept", persistent=True)(_nothing)
    async with operator(cluster, registry, Server(cluster)) as running:
        await ready(running)
    assert cluster.urls == ["https://hooks.example.com/kept"]
    cluster.fails = lambda request: status if request.path.startswith(GROUP) else None
    server = Server(cluster, *({"url": f"https://other{n}"} for n in (1, 2)))
    settings = Settings(admission_server=server)
    with caplog.at_level(logging.WARNING):
        async with operator(cluster, registry, settings=settings) as running:
            await ready(running)
            await soon(lambda: server.clients.empty())
            assert running.health().is_ready
    said = [each for each in caplog.messages if "hooks.example.com/kept" in each]
    assert bool(said) is (status is None)
    assert all("this operator serves its webhooks at https://other" in e for e in said)


async def test_a_startup_handler_may_choose_the_server_and_the_name(
    cluster: Cluster, registry: Registry
) -> None:
    server = Server(cluster)

    @fnop.on.startup(registry=registry)
    def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(admission_server=server, admission_managed=NAME)

    async with operator(cluster, registry) as running:
        await soon(lambda: bool(cluster.urls))
        await ready(running)


async def test_a_kind_that_comes_later_is_registered_then(
    cluster: Cluster, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    found = Registry()

    @fnop.on.validate("laters.example.com", registry=found, id="late")
    def late(**_: Any) -> None: ...

    async with operator(
        cluster,
        found,
        Server(cluster),
        settings=Settings(rediscovery_seconds=0.1),
    ):
        await soon(lambda: any("none will be called" in e for e in caplog.messages))
        cluster.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", LATER)
        await soon(lambda: bool(cluster.urls))


LATER = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "laters.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "laters", "singular": "later", "kind": "Later"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


async def test_a_local_address_is_not_registered_with_a_distant_server(
    cluster: Cluster, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(cluster, {"url": "https://localhost:9443"})
    async with operator(cluster, registry, server):
        await soon(lambda: any("does not reach" in each for each in caplog.messages))
        assert cluster.urls == []


async def test_without_admission_handlers_no_server_is_started(
    cluster: Cluster, registry: Registry
) -> None:
    kept = fnop.on.validate(KIND, registry=registry, id="kept", persistent=True)
    kept(lambda **_: None)
    async with operator(cluster, registry, Server(cluster)) as running:
        await ready(running)
    # The former version's configurations stay, without a server to answer.
    assert cluster.urls == ["https://hooks.example.com/kept"]
    found = Registry()

    @fnop.on.create(KIND, registry=found)
    def made(**_: Any) -> None: ...

    server = Server(cluster)
    async with operator(cluster, found, server) as running:
        await ready(running)
        await soon(lambda: cluster.urls == [])
    assert server.starts == 0


@pytest.mark.parametrize("account", ["", "system:serviceaccount:prod:claims"])
async def test_the_operator_s_own_account_is_found_out(
    cluster: Cluster, registry: Registry, account: str
) -> None:
    def answered(request: ApiRequest) -> ApiResponse | None:
        if not request.path.endswith("/selfsubjectreviews"):
            return None
        if "v1beta1" not in request.path:
            return ApiResponse(404, {})
        return ApiResponse(201, {"status": {"userInfo": {"username": account}}})

    send = cluster.send

    async def answering(request: ApiRequest) -> ApiResponse:
        return answered(request) or await send(request)

    cluster.send = answering  # type: ignore[method-assign]
    async with operator(cluster, registry, Server(cluster)) as running:
        await ready(running)
    made = str([each.body for each in cluster.asked if each.method == "POST"])
    assert ("not-by-the-operator" in made) is bool(account)
    assert account in made


@pytest.mark.parametrize("is_pod", [True, False])
async def test_the_replicas_of_a_pod_share_their_authority(
    cluster: Cluster,
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_pod: bool,
) -> None:
    if is_pod:
        (tmp_path / "namespace").write_text("prod")
    monkeypatch.setattr(service_account, "FOLDER", tmp_path)
    cluster.post("/api/v1/namespaces", {"metadata": {"name": "prod"}})
    listen = f"127.0.0.1:{closed_port()}"
    server = server_at(Address(listen, {"service": SERVICE}))
    async with operator(cluster, registry, server) as running:
        await ready(running)
        path = "/api/v1/namespaces/prod/secrets/fnop-webhooks-default"
        found = cluster.request(ApiRequest("GET", path))
        assert (found.status == 200) is is_pod
        stored = cluster.stored()
        assert stored is not None
        client = stored["webhooks"][0]["clientConfig"]
        assert client["service"]["path"] == "/judge"
        if is_pod:
            data = found.body["data"]["ca.crt"]
            assert client["caBundle"] == data


SERVICE = {"namespace": "prod", "name": "claims"}


async def test_it_ends_at_once_if_asked_twice(
    cluster: Cluster, registry: Registry
) -> None:
    server = Server(cluster)
    fnop.on.validate(KIND, registry=registry, id="slow", impure=True)(slow)
    async with operator(cluster, registry, server) as running:
        await ready(running)
        answer = asyncio.create_task(server.answer(review(), webhook="slow"))
        await GATES["begun"].wait()
        running.stop()
        await soon(lambda: cluster.urls == [])

        def asked_again() -> bool:
            running.stop()
            return running.has_ended

        await soon(asked_again)
        await asyncio.wait({answer})
    assert len(server.closed) == 1
