"""A server of webhooks that changes its certificate while requests come."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fnop.adapters.serving.certificates import Authority, Pair
from fnop.adapters.webhooks.server import WebhookServer
from fnop.core.admission.certificates import Lifetimes
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, Unreachable
from tests.live import SpoiledCluster
from tests.patience import soon
from tests.webhook_servers import Client, certificate_of, next_of, serving

pytest.importorskip("cryptography")
LOCAL: dict[str, Any] = {"addr": "127.0.0.1", "file_check_interval": 0.1}


async def echo(request: Any, **_: Any) -> dict[str, Any]:
    return {"request": request}


class Caller:
    """An API server: it has one configuration, and new connections all the time.

    It uses each configuration a moment later than it was published.
    """

    def __init__(self, configs: AsyncIterator[Any]) -> None:
        self._configs = configs
        self.config: Any = None
        self.bundles = 0
        self.calls = 0
        self.certificates: set[bytes] = set()

    def has_more_than(self, certificates: int) -> bool:
        return len(self.certificates) > certificates

    async def follow(self) -> None:
        async for config in self._configs:
            await asyncio.sleep(0.01)
            self.config = config
            self.bundles += 1

    async def call(self) -> None:
        """Call on a new connection and on a kept one, over and over."""
        await soon(lambda: self.config)
        async with Client(self.config) as kept:
            while True:
                self.certificates.add(await certificate_of(Client(self.config)))
                assert (await kept.send({"n": self.calls})).status == 200
                self.calls += 1


@asynccontextmanager
async def called(server: WebhookServer) -> AsyncIterator[Caller]:
    """Call a server for as long as the block; no call may fail."""
    async with serving(server, echo) as configs:
        caller = Caller(configs)
        tasks = [asyncio.create_task(each()) for each in (caller.follow, caller.call)]
        try:
            await soon(lambda: caller.calls or any(each.done() for each in tasks))
            yield caller
            for each in tasks:
                assert not each.done(), each
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_no_call_fails_while_own_certificates_are_renewed() -> None:
    class Hasty(WebhookServer):
        lifetimes = Lifetimes(authority=60.0, leaf=15.0, overlap=4.0)
        clock = Hurried()

    async with called(Hasty(**LOCAL)) as caller:
        await soon(lambda: caller.bundles >= 3 and len(caller.certificates) >= 5)


class Hurried(SystemClock):
    """A clock on which twenty seconds pass as one; certificates are valid all the same.

    Clients use the true time, so it must not go far ahead.
    """

    def __init__(self) -> None:
        self._began = super().now().wall

    def now(self) -> Any:
        found = super().now()
        passed = found.wall - self._began
        return found._replace(wall=self._began + 20 * passed)


class Mounted:
    """A folder as the kubelet mounts a Secret: it is switched by a symbolic link."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._number = 0

    def put(self, pair: Pair, bundle: bytes) -> None:
        self._number += 1
        data = self.folder / f"..{self._number}"
        data.mkdir()
        (data / "tls.crt").write_bytes(pair.certificate)
        (data / "tls.key").write_bytes(pair.key)
        (data / "ca.crt").write_bytes(bundle)
        link = self.folder / "..tmp"
        link.symlink_to(data.name)
        link.rename(self.folder / "..data")
        for name in ("tls.crt", "tls.key", "ca.crt"):
            with suppress(FileExistsError):
                (self.folder / name).symlink_to(f"..data/{name}")

    @property
    def options(self) -> dict[str, Any]:
        return {
            "certfile": self.folder / "tls.crt",
            "pkeyfile": str(self.folder / "tls.key"),
            "cafile": self.folder / "ca.crt",
        }


async def test_no_call_fails_while_mounted_files_are_switched(tmp_path: Path) -> None:
    mounted, now = Mounted(tmp_path), SystemClock().now().wall
    authority = Authority(now)
    mounted.put(authority.for_server(("127.0.0.1",)), authority.certificate)
    async with called(WebhookServer(**LOCAL, **mounted.options)) as caller:
        for is_new in (False, True, False, True):
            authority = Authority(now) if is_new else authority
            served = len(caller.certificates)
            mounted.put(authority.for_server(("127.0.0.1",)), authority.certificate)
            await soon(partial(caller.has_more_than, served))
        assert caller.bundles >= 3


async def test_a_broken_file_fails_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mounted, authority = Mounted(tmp_path), Authority(SystemClock().now().wall)
    mounted.put(authority.for_server(("127.0.0.1",)), authority.certificate)
    async with called(WebhookServer(**LOCAL, **mounted.options)) as caller:
        mounted.put(Pair(b"broken", b"broken"), authority.certificate)
        await soon(lambda: caplog.records)
        calls = caller.calls
        await soon(lambda: caller.calls > calls + 3)
        assert len(caller.certificates) == 1
        mounted.put(authority.for_server(("127.0.0.1",)), authority.certificate)
        await soon(lambda: len(caller.certificates) == 2)
    [record] = caplog.records
    assert str(tmp_path / "tls.crt") in record.getMessage()


async def test_another_kind_of_key_takes_the_place_of_the_old_one(
    tmp_path: Path,
) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    mounted, now = Mounted(tmp_path), SystemClock().now().wall
    authority = Authority(now)
    mounted.put(rsa_of(authority), authority.certificate)
    server = WebhookServer(**LOCAL, **mounted.options)
    async with serving(server, echo) as configs:
        config = await next_of(configs)
        more = asyncio.ensure_future(next_of(configs))
        first = x509.load_der_x509_certificate(await certificate_of(Client(config)))
        assert first.public_key().key_size == 2048
        mounted.put(authority.for_server(("127.0.0.1",)), authority.certificate)

        async def is_elliptic() -> bool:
            shown = x509.load_der_x509_certificate(await certificate_of(Client(config)))
            return bool(shown.public_key().key_size == 256)

        await soon(is_elliptic)
        assert await is_elliptic()
        more.cancel()
        await asyncio.gather(more, return_exceptions=True)


def rsa_of(authority: Authority) -> Pair:
    """A server's certificate with a key of RSA."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    class Elliptic:
        @staticmethod
        def generate_private_key(curve: Any) -> Any:
            return rsa.generate_private_key(65537, 2048)

        @staticmethod
        def SECP256R1() -> None:
            """No curve."""

    kept = authority._ec
    authority._ec = Elliptic  # type: ignore[assignment]
    try:
        return authority.for_server(("127.0.0.1",))
    finally:
        authority._ec = kept


async def test_a_consumer_that_never_comes_back_delays_a_renewal_alone(
    tmp_path: Path,
) -> None:
    mounted, now = Mounted(tmp_path), SystemClock().now().wall
    authority = Authority(now)
    mounted.put(authority.for_server(("127.0.0.1",)), authority.certificate)
    async with serving(WebhookServer(**LOCAL, **mounted.options), echo) as configs:
        await next_of(configs)
        authority = Authority(now)
        pair = authority.for_server(("127.0.0.1",))
        mounted.put(pair, authority.certificate)
        config = await next_of(configs)

        async def is_new() -> bool:
            shown = await certificate_of(Client(config))
            return shown == ssl.PEM_cert_to_DER_cert(pair.certificate.decode())

        await soon(is_new)


async def test_authorities_of_clients_are_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now, file = SystemClock().now().wall, tmp_path / "clients.pem"
    first, second = Authority(now), Authority(now)
    paths = {}
    for name, authority in (("first", first), ("second", second)):
        pair = authority.for_client("apiserver", ())
        (tmp_path / name).write_bytes(pair.certificate + pair.key)
        paths[name] = str(tmp_path / name)
    file.write_bytes(first.certificate)
    how: dict[str, Any] = {"verify_cafile": file, "verify_mode": ssl.CERT_REQUIRED}
    async with serving(WebhookServer(**LOCAL, **how), echo) as configs:
        config = await next_of(configs)

        async def is_known(name: str) -> bool:
            async with Client(config, paths[name]) as client:
                try:
                    return (await client.send({})).status == 200
                except (aiohttp.ClientError, ssl.SSLError):
                    return False

        assert await is_known("first")
        assert not await is_known("second")
        file.write_text("broken")
        await soon(lambda: caplog.records)
        assert await is_known("first")
        file.write_bytes(second.certificate)
        await soon(partial(is_known, "second"))
        assert not await is_known("first")
    assert "clients.pem has no authorities of clients" in caplog.text


async def test_the_bundle_is_dumped(tmp_path: Path) -> None:
    server = WebhookServer(**LOCAL, cadump=tmp_path / "ca.pem", extra_sans=["x.y"])
    async with serving(server, echo) as configs:
        await next_of(configs)
        assert b"BEGIN CERTIFICATE" in (tmp_path / "ca.pem").read_bytes()


async def test_a_name_that_is_missing_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(WebhookServer(**LOCAL, host="localhost"), echo) as configs:
        client = Client(await next_of(configs))
        for name in ("hooks.ns.svc", "hooks.ns.svc", "localhost"):
            with suppress(OSError):
                _, writer = await asyncio.open_connection(
                    "127.0.0.1", client.port, ssl=client.tls, server_hostname=name
                )
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    warnings = [each.getMessage() for each in caplog.records]
    assert warnings == [
        "a client asks for the webhooks of 'hooks.ns.svc', and the certificate is that "
        "of 127.0.0.1, localhost: give the server host=, or extra_sans= with this name"
    ]


async def test_it_waits_for_the_store_of_its_authority(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from fnop.adapters.webhooks.shared import SharedSecret

    cluster = SpoiledCluster()

    def spoils(request: ApiRequest) -> ApiResponse | None:
        if len(cluster.sent) < 4:
            raise Unreachable("no route", sent=False)
        return None

    cluster.spoils = spoils
    server = WebhookServer(**LOCAL)
    server.store = SharedSecret(cluster, "default", "hooks")
    async with serving(server, echo) as configs, Client(await next_of(configs)) as it:
        assert (await it.send({})).status == 200
    assert [each.getMessage() for each in caplog.records] == [
        "the webhooks are not served yet: the Secret default/hooks is not to be "
        "reached: no route"
    ]


async def test_the_port_is_free_again(tmp_path: Path) -> None:
    async with serving(WebhookServer(**LOCAL), echo) as configs:
        port = Client(await next_of(configs)).port
    with socket.create_server(("127.0.0.1", port)):
        assert os.listdir(tmp_path) == []
