"""The server of webhooks: Kopf's protocol, HTTP, and limits of time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib.util
import socket
import ssl
import sys
import threading
import warnings
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest

import fnop
from fnop.adapters.serving.certificates import Authority
from fnop.adapters.webhooks.answering import Asked, answering
from fnop.adapters.webhooks.protocol import WebhookFn
from fnop.adapters.webhooks.server import WebhookServer
from fnop.core.api.reviews import MalformedReview
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.interpreters.runtime.clock import SystemClock
from tests.patience import soon
from tests.webhook_servers import (
    KIND,
    Client,
    fn_of,
    next_of,
    review_of,
    serving,
)

pytest.importorskip("cryptography")
LOCAL: dict[str, Any] = {"addr": "127.0.0.1"}


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @fnop.on.mutate(KIND, registry=registry, id="sized")
    def sized(spec: Any, patch: Any, **_: Any) -> None:
        if "size" not in spec:
            patch.spec["size"] = 1

    @fnop.on.validate(KIND, registry=registry, id="small/enough")
    def small(spec: Any, warnings: list[str], **_: Any) -> None:
        if spec["size"] > 100:
            raise fnop.Denied("it is too large", field="spec.size")
        if spec["size"] > 10:
            warnings.append("it is large")

    return registry


async def echo(request: Any, **given: Any) -> dict[str, Any]:
    """Answer with what the function of a server is given."""
    return {"request": request, **{name: given[name] for name in sorted(given)}}


async def test_reviews_are_answered_over_tls(registry: Registry) -> None:
    async with serving(WebhookServer(**LOCAL), fn_of(registry)) as configs:
        config = await next_of(configs)
        assert config["url"].startswith("https://127.0.0.1:")
        async with Client(config) as client:
            changed = await client.send(review_of())
            warned = await client.send(review_of(size=11))
            denied = await client.send(review_of(size=101, api="v1beta1"))
    assert changed.response["allowed"]
    patch = orjson.loads(base64.b64decode(changed.response["patch"]))
    assert patch == [{"op": "add", "path": "/spec/size", "value": 1}]
    assert warned.response["warnings"] == ["it is large"]
    assert denied.body["apiVersion"] == "admission.k8s.io/v1beta1"
    assert denied.response["uid"] == review_of()["request"]["uid"]
    assert not denied.response["allowed"]
    assert denied.response["status"]["message"] == "it is too large"


async def test_the_path_names_the_webhook(registry: Registry) -> None:
    server = WebhookServer(**LOCAL, path="hooks/of/mine")
    async with serving(server, fn_of(registry)) as configs:
        config = await next_of(configs)
        assert config["url"].endswith("/hooks/of/mine")
        async with Client(config) as client:
            by_id = await client.send(review_of(size=101), "/small/enough")
            by_quoted_id = await client.send(review_of(size=101), "/small%2Fenough")
            by_group = await client.send(review_of(size=101), "/small-enough")
            other = await client.send(review_of(size=101), "/sized")
            unknown = await client.send(review_of(size=101), "/gone")
            outside = await client.send(review_of(), "/../../elsewhere")
    denials = [each.response["allowed"] for each in (by_id, by_quoted_id, by_group)]
    denied_message = by_id.response["status"]["message"]
    assert denials == [False, False, False]
    assert other.response["allowed"]
    # Another version's, as during a rollout: all are asked.
    assert unknown.response["status"]["message"] == denied_message
    assert outside.status == 404


async def test_the_function_is_given_the_connection() -> None:
    async with (
        serving(WebhookServer(**LOCAL), echo) as configs,
        Client(await next_of(configs)) as client,
    ):
        found = await client.send({"a": 1}, "/w", headers={"X-Special": "1"})
    assert found.body["request"] == {"a": 1}
    assert found.body["webhook"] == "w"
    assert found.body["headers"]["X-Special"] == "1"
    assert found.body["sslpeer"] == {}


async def test_answers_are_as_those_of_kopfs_server(registry: Registry) -> None:
    kopf = pytest.importorskip("kopf")
    fn = fn_of(registry)
    reviews = [review_of(), review_of(size=11), review_of(size=101)]
    found = []
    for server in (WebhookServer(**LOCAL), kopf.WebhookServer(**LOCAL, insecure=True)):
        async with serving(server, fn) as configs, Client(await next_of(configs)) as it:
            answers = [await it.send(each, "/sized") for each in reviews]
            answers.append(await it.send([]))
            found.append([(each.status, each.body) for each in answers])
    assert found[0] == found[1]
    assert [status for status, _ in found[0]] == [200, 200, 200, 400]


# ------------------------------------------------- classes that are written for Kopf


class Inheriting(fnop.WebhookServer):
    """The tunnel to a service, as it is written for Kopf."""

    async def __call__(self, fn: WebhookFn) -> AsyncIterator[Any]:
        async for config in super().__call__(fn):
            config["url"] = None
            config["service"] = fnop.WebhookClientConfigService(
                name="hooks", namespace="ns", port=443
            )
            yield config


class Containing:
    """The same, but not a server itself."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    async def __call__(self, fn: WebhookFn) -> AsyncIterator[Any]:
        server = fnop.WebhookServer(**self.options)
        async for config in server(fn):
            service = {"name": "hooks", "namespace": "ns", "port": 443}
            yield {"caBundle": config["caBundle"], "service": service}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.mark.parametrize("kind", [Inheriting, Containing])
async def test_a_tunnel_to_a_service_runs_as_it_is(
    registry: Registry, kind: Any
) -> None:
    port = free_port()
    server = kind(**LOCAL, port=port, host="hooks.ns.svc")
    async with serving(server, fn_of(registry)) as configs:
        config = await next_of(configs)
        assert config["service"] == {"name": "hooks", "namespace": "ns", "port": 443}
        assert config.get("url") is None
        local = {**config, "url": f"https://127.0.0.1:{port}"}
        async with Client(local) as client:  # type: ignore[arg-type]
            assert (await client.send(review_of())).response["allowed"]
        _, writer = await asyncio.open_connection(
            "127.0.0.1",
            port,
            ssl=client.tls,
            server_hostname="hooks.ns.svc",
        )
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def is_closed() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) != 0

    await soon(is_closed)


@pytest.mark.parametrize(
    ("options", "host"),
    [
        ({"addr": "127.0.0.1"}, "127.0.0.1"),
        ({"addr": "0.0.0.0"}, "127.0.0.1"),
        ({}, "localhost"),
        ({"addr": "localhost"}, "localhost"),
        ({"addr": "127.0.0.1", "host": "localhost"}, "localhost"),
    ],
)
async def test_it_is_reached_at_the_name_that_it_reports(
    options: Any, host: str
) -> None:
    async with (
        serving(WebhookServer(**options), echo) as configs,
        Client(await next_of(configs)) as client,
    ):
        assert client.host == host
        assert (await client.send({})).status == 200


async def test_a_port_in_use_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with serving(WebhookServer(**LOCAL, port=port), echo) as configs:
            with pytest.raises(
                OSError, match=f"cannot be served at 127.0.0.1:{port}: "
            ):
                await next_of(configs)


async def test_it_speaks_http_only_if_asked_to() -> None:
    async with serving(WebhookServer(**LOCAL, insecure=True), echo) as configs:
        config = await next_of(configs)
        assert "caBundle" not in config
        async with Client(config) as client:
            assert (await client.send({})).status == 200
    async with serving(
        WebhookServer(**LOCAL, insecure=True, cadata=b"of a proxy"), echo
    ) as configs:
        found = await next_of(configs)
        assert base64.b64decode(found["caBundle"]) == b"of a proxy"
    both = WebhookServer(insecure=True, context=ssl.create_default_context())
    async with serving(both, echo) as configs:
        with pytest.raises(ValueError, match="insecure=True takes no context="):
            await next_of(configs)


async def test_old_versions_of_tls_are_refused() -> None:
    async with serving(WebhookServer(**LOCAL), echo) as configs:
        client = Client(await next_of(configs))
        assert isinstance(client.tls, ssl.SSLContext)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            client.tls.minimum_version = ssl.TLSVersion.TLSv1
            client.tls.maximum_version = ssl.TLSVersion.TLSv1_1
        client.tls.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await client.connect()


async def test_settings_of_ones_own_are_used() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    async with serving(WebhookServer(**LOCAL, context=context), echo) as configs:
        client = Client(await next_of(configs))
        _, writer = await client.connect()
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        writer.close()
        await writer.wait_closed()


# ------------------------------------------------------------- who the client is


async def test_a_client_may_have_to_show_a_certificate(tmp_path: Any) -> None:
    authority = Authority(SystemClock().now().wall)
    pair = authority.for_client("apiserver", ("masters",))
    (tmp_path / "client.pem").write_bytes(pair.certificate + pair.key)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    known: dict[str, Any] = {
        "file": {"verify_cafile": tmp_path / "ca.pem"},
        "text": {"verify_cadata": authority.certificate.decode()},
        "bytes": {"verify_cadata": authority.certificate},
    }
    for options in known.values():
        async with serving(WebhookServer(**LOCAL, **options), echo) as configs:
            config = await next_of(configs)
            async with Client(config) as unknown:
                assert (await unknown.send({})).body["sslpeer"] == {}
            async with Client(config, str(tmp_path / "client.pem")) as client:
                peer = (await client.send({})).body["sslpeer"]
                assert [["commonName", "apiserver"]] in peer["subject"]
    strict = WebhookServer(
        **LOCAL, verify_cafile=tmp_path / "ca.pem", verify_mode=ssl.CERT_REQUIRED
    )
    async with serving(strict, echo) as configs:
        config = await next_of(configs)
        async with Client(config, str(tmp_path / "client.pem")) as client:
            assert (await client.send({})).status == 200
        async with Client(config) as unknown:
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await unknown.send({})


async def test_authorities_of_clients_that_are_none_are_named(tmp_path: Any) -> None:
    (tmp_path / "ca.pem").write_text("none")
    server = WebhookServer(**LOCAL, verify_cafile=tmp_path / "ca.pem")
    async with serving(server, echo) as configs:
        with pytest.raises(ValueError, match=r"ca\.pem has no authorities of clients"):
            await next_of(configs)


# -------------------------------------------------------------------------- HTTP


async def test_what_is_no_review_is_an_http_error(registry: Registry) -> None:
    async with (
        serving(WebhookServer(**LOCAL), fn_of(registry)) as configs,
        Client(await next_of(configs)) as client,
    ):
        plain = await client.send(b"{")
        other = await client.send({"kind": "Pod"})
        packed = await client.send(b"", headers={"Content-Encoding": "gzip"})
        read = await client.send(b"", "/sized", method="GET")
        healthy = await client.send(b"", "/healthz", method="GET")
        again = await client.send(review_of())
    assert (plain.status, plain.body["reason"]) == (400, "BadRequest")
    assert plain.body["message"].startswith("the body is not JSON: ")
    assert (other.status, other.body["kind"]) == (400, "Status")
    assert "not an AdmissionReview" in other.body["message"]
    assert (packed.status, read.status) == (415, 405)
    assert (healthy.status, healthy.text) == (200, "ok")
    assert again.response["allowed"]


async def test_what_fails_without_a_reason_is_in_the_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(request: Any, **_: Any) -> dict[str, Any]:
        raise KeyError("a secret")

    async with (
        serving(WebhookServer(**LOCAL), broken) as configs,
        Client(await next_of(configs)) as client,
    ):
        found = await client.send({})
    assert (found.status, found.body["reason"]) == (500, "InternalError")
    assert "secret" not in found.text
    assert "a secret" in caplog.text


async def waits_for_ever(**_: Any) -> None:
    await asyncio.Event().wait()


async def test_an_answer_comes_before_the_api_server_gives_up(
    registry: Registry,
) -> None:
    how: Any = {"impure": True, "ignore_failures": True, "id": "scans"}
    fnop.on.validate(KIND, registry=registry, **how)(waits_for_ever)
    async with (
        serving(WebhookServer(**LOCAL), fn_of(registry)) as configs,
        Client(await next_of(configs)) as client,
    ):
        found = await client.send(review_of(), "/?timeout=600ms")
    assert found.response["allowed"]
    [warning] = found.response["warnings"]
    assert warning.startswith("scans gave no answer")
    words = "scans was not done within 0.3 s, the time of its webhook less a margin"
    assert words in warning


FREE = threading.Event()


def hangs(**_: Any) -> None:
    FREE.wait()


def quick(**_: Any) -> None: ...


async def test_calls_that_never_end_are_named_where_others_find_no_thread(
    registry: Registry,
) -> None:
    how: Any = {"impure": True, "ignore_failures": True}
    fnop.on.validate(KIND, registry=registry, id="hangs", **how)(hangs)
    fnop.on.validate(KIND, registry=registry, id="quick", **how)(quick)
    FREE.clear()
    try:
        async with (
            serving(
                WebhookServer(**LOCAL), fn_of(registry, Settings(call_threads=1))
            ) as configs,
            Client(await next_of(configs)) as client,
        ):
            first = await client.send(review_of(), "/hangs?timeout=200ms")
            second = await client.send(review_of(), "/quick?timeout=200ms")
    finally:
        FREE.set()
    assert "hangs was not done within 0.1 s" in first.response["warnings"][0]
    [warning] = second.response["warnings"]
    assert "quick was not begun within 0.1 s: calls of" in warning
    assert "hangs (1) hold all threads" in warning


async def test_a_function_that_hangs_is_given_up() -> None:
    async def hangs(request: Any, **_: Any) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async with (
        serving(WebhookServer(**LOCAL), hangs) as configs,
        Client(await next_of(configs)) as client,
    ):
        found = await client.send({}, "/?timeout=100ms")
    assert found.status == 504
    assert found.body["message"] == "there was no answer within 0.1 s"


async def test_the_time_is_that_of_the_query() -> None:
    seen: list[float] = []

    async def review(body: Any, *, seconds: float, **_: Any) -> Any:
        seen.append(seconds)
        raise MalformedReview("none")

    async with (
        serving(WebhookServer(**LOCAL), answering(review)) as configs,
        Client(await next_of(configs)) as client,
    ):
        for query in ("?timeout=20s", "", "?timeout=1m&timeout=2s", "?timeout=x"):
            await client.send({}, f"/{query}")
    limits = [18.0, 9.0, 27.0, 9.0]
    assert all(0 < found <= limit for found, limit in zip(seen, limits, strict=True))
    assert seen[0] > limits[1]
    assert seen[2] > limits[0]
    assert Asked("2s").left <= 1.5


async def test_requests_under_way_are_answered_at_the_end() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(request: Any, **_: Any) -> dict[str, Any]:
        begun.set()
        await go.wait()
        return {"done": True}

    server = WebhookServer(**LOCAL)
    async with Client(await next_of(configs := server(slow))) as client:
        request = asyncio.create_task(client.send({}))
        await begun.wait()
        closing = asyncio.create_task(configs.aclose())  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        go.set()
        assert (await request).body == {"done": True}
        await closing


def test_without_the_library_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert importlib.util.find_spec("cryptography")
    monkeypatch.setitem(sys.modules, "cryptography", None)

    async def begin() -> None:
        await next_of(WebhookServer()(echo))

    with pytest.raises(Exception, match=r"pip install 'fnop\[tls\]'"):
        asyncio.run(begin())
