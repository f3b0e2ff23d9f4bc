"""A certificate that the API server would refuse is reported before registration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.adapters.serving.certificates import Authority, Pair
from fnop.adapters.webhooks import running as webhooks_running
from fnop.adapters.webhooks.addresses import Address
from fnop.adapters.webhooks.certificates import Served, facts_of
from fnop.adapters.webhooks.server import WebhookServer
from fnop.adapters.webhooks.server_at import server_at
from fnop.adapters.webhooks.trust import refusal_of
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.runtime.clock import SystemClock
from tests.commands import closed_port
from tests.patience import soon
from tests.webhook_clusters import Cluster

KIND = "fnopexamples.fnop.dev"
HOST = "claims.prod.svc"
DAY = 86_400.0


def leaf(
    authority: Authority, *names: str, days: tuple[float, float] = (-1, 1)
) -> Pair:
    now = SystemClock().now().wall
    valid = now + days[0] * DAY, now + days[1] * DAY
    return authority.for_server(names, names[0] if names else HOST, valid)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(SystemClock().now().wall - 3 * DAY, 30 * DAY)


def served(pair: Pair) -> Served:
    return Served(pair, b"", (), facts_of(pair.certificate).names)


@pytest.mark.parametrize(
    ("names", "days", "host", "refusal"),
    [
        ((HOST,), (-1, 1), HOST, ""),
        (("*.prod.svc",), (-1, 1), HOST, ""),
        (("127.0.0.1", "::1"), (-1, 1), "::1", ""),
        (
            ("other.prod.svc",),
            (-1, 1),
            HOST,
            f"it is that of other.prod.svc; get one for {HOST}",
        ),
        (
            ("127.0.0.1",),
            (-1, 1),
            "10.0.0.1",
            "it is that of 127.0.0.1; get one for 10.0.0.1",
        ),
        ((), (-1, 1), HOST, f"it is that of no name; get one for {HOST}"),
        ((HOST,), (-2, -1), HOST, "it, or its authority, has expired; renew it"),
    ],
)
def test_a_client_refuses_other_names_and_what_has_expired(
    authority: Authority, names: Any, days: Any, host: str, refusal: str
) -> None:
    found = served(leaf(authority, *names, days=days))
    assert refusal_of(found, authority.certificate, host) == refusal


def test_a_client_refuses_what_another_authority_has_signed(
    authority: Authority,
) -> None:
    found = served(leaf(Authority(SystemClock().now().wall), HOST))
    assert "another one" in refusal_of(found, authority.certificate, HOST)
    assert refusal_of(found, b"no certificate", HOST) == ""  # other code reports that


def registry() -> Registry:
    found = Registry()
    fnop.on.validate(KIND, registry=found, id="judge")(lambda **_: None)
    return found


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_running, "LINGER_SECONDS", 0.0)
    monkeypatch.setattr(webhooks_running, "PAUSE_MOST_SECONDS", 0.02)


def write(folder: Path, pair: Pair) -> None:
    """Replace the file, which is read at any time."""
    new = folder / "new"
    new.write_bytes(pair.certificate + pair.key)
    os.replace(new, folder / "tls")


async def test_behind_a_service_it_is_registered_once_it_is_trusted(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, leaf(authority, "other.prod.svc"))
    (tmp_path / "ca").write_bytes(authority.certificate)
    tls, cafile = str(tmp_path / "tls"), str(tmp_path / "ca")
    listen = f"127.0.0.1:{closed_port()}"
    service = {"service": {"namespace": "prod", "name": "claims"}}
    server = server_at(Address(listen, service, tls, tls, cafile))
    server._server.file_check_interval = 0.02
    cluster = Cluster()
    async with fnop.operator(
        registry=registry(), standalone=True, api=cluster, webhooks=server
    ):
        why = f"{HOST}:443: it is that of other.prod.svc; get one for {HOST}"
        why = why.replace(f"{HOST}:443", "the Service prod/claims:443")
        await soon(lambda: why in caplog.text)
        assert cluster.stored() is None
        write(tmp_path, leaf(authority, HOST))
        await soon(lambda: cluster.stored() is not None)


class Tunnel(WebhookServer):
    """It is reached at an address with a certificate of its own."""

    async def __call__(self, fn: Any) -> Any:
        async for config in super().__call__(fn):
            yield {**config, "url": "https://tunnel.example.com"}


@pytest.mark.parametrize("at_url", [True, False])
async def test_what_stands_before_it_may_have_another_certificate(
    authority: Authority, tmp_path: Path, at_url: bool
) -> None:
    write(tmp_path, leaf(authority, "localhost"))
    tls, ca = str(tmp_path / "tls"), str(tmp_path / "ca")
    (tmp_path / "ca").write_bytes(authority.certificate)
    listen = f"127.0.0.1:{closed_port()}"
    url = {"url": "https://tunnel.example.com"}
    server: Any = Tunnel(certfile=tls, cafile=ca, addr="127.0.0.1", host="localhost")
    if at_url:
        server = server_at(Address(listen, url, tls, tls, ca))
    cluster = Cluster()
    async with fnop.operator(
        registry=registry(), standalone=True, api=cluster, webhooks=server
    ):
        await soon(lambda: cluster.urls == [f"{url['url']}/judge"])
