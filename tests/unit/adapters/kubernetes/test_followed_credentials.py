"""Credentials and certificates that change on disk are followed, and leave no trace."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from fnop.adapters.kubernetes import service_account
from fnop.adapters.kubernetes.client import (
    FILES_SECONDS,
    RENEWAL_SECONDS,
    KubernetesApi,
    connect,
)
from fnop.adapters.kubernetes.credentials import login_with_kubeconfig
from fnop.adapters.kubernetes.http_connection import Broken
from fnop.adapters.kubernetes.http_pool import Pool
from fnop.adapters.kubernetes.kubeconfig import find_source
from fnop.adapters.kubernetes.tls import tls_context
from fnop.adapters.kubernetes.transports import cut
from fnop.adapters.serving.certificates import Authority, server_context
from fnop.core.handlers.declare.connection import ConnectionInfo
from fnop.interpreters.runtime.clock import SystemClock, VirtualClock
from fnop.interpreters.runtime.protocol import ApiRequest, Unreachable

GET = ApiRequest("GET", "/x")
NOW = SystemClock().now().wall


class Door:
    """A server with TLS that can be replaced by one of another authority."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.people: list[str] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: list[asyncio.StreamWriter] = []

    async def open(
        self,
        authority: Authority,
        *,
        asks: bool = False,
        names: tuple[str, ...] = ("127.0.0.1",),
    ) -> None:
        context = server_context(authority, authority.for_server(names))
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=context
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for each in self._open:
            cut(each.transport)
        await self._server.wait_closed()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._open.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lines = dict(e.split(": ", 1) for e in head.split("\r\n") if ": " in e)
                self.tokens.append(lines.get("Authorization", ""))
                subject = (writer.get_extra_info("peercert") or {}).get("subject", ())
                names = dict(pair for each in subject for pair in each)
                self.people.append(names.get("commonName", ""))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        except (asyncio.IncompleteReadError, OSError):
            pass


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    found = Door()
    yield found
    await found.close()


def written(
    folder: Path, door: Door, cluster: dict[str, Any], user: dict[str, Any]
) -> str:
    """A kubeconfig of two contexts, which differ in their token."""
    server = {"server": f"https://127.0.0.1:{door.port}", **cluster}
    document = {
        "current-context": "here",
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": name}}
            for name in ("here", "there")
        ],
        "clusters": [{"name": "c", "cluster": server}],
        "users": [
            {"name": "here", "user": user},
            {"name": "there", "user": {"token": "of there"}},
        ],
    }
    file = folder / "config"
    file.write_text(json.dumps(document))
    return str(file)


class Following:
    """A connection, and the clock by which it checks files."""

    def __init__(self, api: KubernetesApi, clock: VirtualClock) -> None:
        self.api, self.clock = api, clock

    async def send(self, *, later: float = FILES_SECONDS) -> int:
        self.clock.advance_to(self.clock.now().mono + later)
        return (await self.api.send(GET)).status


@asynccontextmanager
async def following(file: str | None) -> AsyncIterator[Following]:
    clock = VirtualClock()
    api = await connect(kubeconfig=file, context=None, clock=clock)
    try:
        yield Following(api, clock)
    finally:
        await api.close()


def encoded(content: bytes) -> str:
    return b64encode(content).decode()


async def test_tokens_are_those_of_the_moment(tmp_path: Path, door: Door) -> None:
    authority, token = Authority(NOW), tmp_path / "token"
    await door.open(authority)
    cluster = {"certificate-authority-data": encoded(authority.certificate)}
    token.write_text("first")
    file = written(tmp_path, door, cluster, {"tokenFile": "token"})
    async with following(file) as found:
        await found.send()
        token.write_text("the second")
        await found.send(later=1.0)  # it is not looked at each time
        await found.send()
        written(tmp_path, door, cluster, {"token": "a third one"})
        await found.send()
    assert door.tokens == [
        f"Bearer {each}" for each in ("first", "first", "the second", "a third one")
    ]


async def test_who_selects_another_context_moves_no_operator(
    tmp_path: Path, door: Door
) -> None:
    authority = Authority(NOW)
    await door.open(authority)
    cluster = {"certificate-authority-data": encoded(authority.certificate)}
    file = Path(written(tmp_path, door, cluster, {"token": "of here"}))
    async with following(str(file)) as found:
        await found.send()
        document = json.loads(file.read_text())
        file.write_text(json.dumps({**document, "current-context": "there"}))
        await found.send()
    assert door.tokens == ["Bearer of here"] * 2


@pytest.mark.parametrize("replaced", ["before it is looked at", "in time"])
async def test_the_authority_of_a_pod_may_be_replaced(
    tmp_path: Path, door: Door, monkeypatch: pytest.MonkeyPatch, replaced: str
) -> None:
    """Kubelet replaces a link to the folder of all its files."""

    def mount(name: str, authority: Authority) -> None:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "ca.crt").write_bytes(authority.certificate)
        for each in ("token", "namespace"):
            (folder / each).write_text(name)
        link = tmp_path / "..data.new"
        link.symlink_to(folder)
        link.replace(tmp_path / "..data")

    before, after = Authority(NOW), Authority(NOW)
    await door.open(before)
    mount("one", before)
    monkeypatch.setattr(service_account, "FOLDER", tmp_path / "..data")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(door.port))
    async with following(None) as found:
        assert await found.send() == 200
        await door.close()
        await door.open(after)
        if replaced == "in time":
            mount("two", after)
            assert await found.send() == 200
        else:
            with pytest.raises(Unreachable, match="authority"):
                await found.send()
            mount("two", after)
            # Not all that long, and no restart: TLS that fails is reason enough.
            assert await found.send(later=5.0) == 200
    assert door.tokens == ["Bearer one", "Bearer two"]


async def test_a_client_certificate_may_be_replaced(tmp_path: Path, door: Door) -> None:
    authority, other = Authority(NOW), Authority(NOW)

    def give(name: str, signer: Authority) -> None:
        pair = signer.for_client(name, ())
        (tmp_path / "cert.pem").write_bytes(pair.certificate)
        (tmp_path / "key.pem").write_bytes(pair.key)

    await door.open(authority, asks=True)
    give("jane", authority)
    cluster = {"insecure-skip-tls-verify": True}
    user = {"client-certificate": "cert.pem", "client-key": "key.pem"}
    file = written(tmp_path, door, cluster, user)
    async with following(file) as found:
        assert await found.send() == 200
        give("john", authority)
        assert await found.send() == 200
        await door.close()
        await door.open(other, asks=True)
        with pytest.raises(Unreachable):
            await found.send()
        give("judy", other)
        assert await found.send() == 200
    assert door.people == ["jane", "john", "judy"]


async def test_a_file_that_is_being_written_harms_nobody(
    tmp_path: Path, door: Door
) -> None:
    authority = Authority(NOW)
    await door.open(authority)
    cluster = {"certificate-authority-data": encoded(authority.certificate)}
    file = Path(written(tmp_path, door, cluster, {"token": "first"}))
    async with following(str(file)) as found:
        whole = file.read_text()
        file.write_text(whole[:40])
        assert await found.send() == 200
        file.write_text(whole.replace("first", "second"))
        assert await found.send() == 200
    assert door.tokens == ["Bearer first", "Bearer second"]


async def test_nothing_of_a_kubeconfig_is_written_to_a_disk(
    tmp_path: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no folder"))
    authority = Authority(NOW)
    pair = authority.for_client("jane", ())
    await door.open(authority, asks=True)
    cluster = {"certificate-authority-data": encoded(authority.certificate)}
    user = {
        "client-certificate-data": encoded(pair.certificate),
        "client-key-data": encoded(pair.key),
    }
    handles = len(os.listdir("/proc/self/fd"))
    async with following(written(tmp_path, door, cluster, user)) as found:
        assert len(os.listdir("/proc/self/fd")) <= handles + 1, "no memory is held"
        assert await found.send() == 200
    assert door.people == ["jane"]
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


async def test_what_a_server_says_of_our_certificate_is_heeded(
    tmp_path: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TLS 1.3 it says so after the handshake: what was sent seems to break."""
    authority = Authority(NOW)
    await door.open(authority, asks=True)
    cluster = {"certificate-authority-data": encoded(authority.certificate)}

    def log_in_as(name: str) -> str:
        pair = authority.for_client(name, ())
        user = {"client-certificate-data": encoded(pair.certificate)}
        user["client-key-data"] = encoded(pair.key)
        return written(tmp_path, door, cluster, user)

    alert = ssl.SSLError(1, "[SSL] sslv3 alert certificate expired (_ssl.c:2580)")
    alert.reason = "SSLV3_ALERT_CERTIFICATE_EXPIRED"
    send, left = Pool.send, [alert, alert]

    async def sent(*args: Any, **options: Any) -> Any:
        if left:
            raise Broken("closed", answered=False) from left.pop()
        return await send(*args, **options)

    async with following(log_in_as("old")) as found:
        monkeypatch.setattr(Pool, "send", sent)
        with pytest.raises(Unreachable, match="take the client certificate: certifica"):
            await found.send(later=0.0)
        log_in_as("new")
        assert await found.send(later=RENEWAL_SECONDS) == 200
    assert door.people == ["new"]


@pytest.mark.parametrize("bits", [1024, 2048])
async def test_keys_of_rsa_are_taken_as_by_kubectl(bits: int, tmp_path: Path) -> None:
    private = rsa.generate_private_key(65537, bits)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "me")])
    moment = datetime.fromtimestamp(NOW, UTC)
    certificate = (
        x509.CertificateBuilder(name, name, private.public_key(), 1)
        .not_valid_before(moment - timedelta(days=1))
        .not_valid_after(moment + timedelta(days=1))
        .sign(private, SHA256())
        .public_bytes(Encoding.PEM)
    )
    plain = PrivateFormat.TraditionalOpenSSL, NoEncryption()
    key = private.private_bytes(Encoding.PEM, *plain)
    info = ConnectionInfo(
        server="https://127.0.0.1",
        certificate_data=Authority(NOW).for_client("other", ()).key + certificate,
        private_key_data=b"the key\n" + key + certificate,
    )
    before = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).get_ciphers()
    assert tls_context(info).get_ciphers() == before


@pytest.mark.parametrize("name", ["127.0.0.1", "api.reach.test.", "API.reach.test"])
async def test_a_name_may_end_with_a_dot(tmp_path: Path, door: Door, name: str) -> None:
    authority = Authority(NOW)
    await door.open(authority, names=("api.reach.test", "127.0.0.1"))
    cluster = {"certificate-authority-data": encoded(authority.certificate)}
    cluster["tls-server-name"] = name
    async with following(written(tmp_path, door, cluster, {"token": "t"})) as found:
        assert await found.send() == 200


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
async def test_a_pipe_is_read_once(tmp_path: Path, door: Door) -> None:
    """`fnop run --kubeconfig <(...)`, and what PowerShell writes: UTF-16."""
    authority = Authority(NOW)
    await door.open(authority)
    cluster = {"certificate-authority-data": encoded(authority.certificate)}
    file = Path(written(tmp_path, door, cluster, {"token": "t"}))
    text = file.read_text().encode("utf-16")
    file.unlink()
    os.mkfifo(file)
    telling = asyncio.create_task(asyncio.to_thread(file.write_bytes, text))
    found = await asyncio.to_thread(find_source, str(file), None)
    login = await asyncio.to_thread(lambda: asyncio.run(found.login()))
    await telling
    assert found.files == ()
    assert await found.login() == login
    assert login.token == "t"


def text_of(token: str) -> bytes:
    return f"""\
current-context: one
contexts: [{{name: one, context: {{cluster: one, user: one}}}}]
clusters: [{{name: one, cluster: {{server: "https://127.0.0.1:1"}}}}]
users: [{{name: one, user: {{token: {token}}}}}]
""".encode()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
async def test_two_logins_by_pipes_of_one_name_are_two(tmp_path: Path) -> None:
    file = tmp_path / "pipe"
    os.mkfifo(file)
    found = []
    for token in ("first", "second"):
        telling = asyncio.to_thread(file.write_bytes, text_of(token))
        task = asyncio.create_task(telling)
        source = find_source(str(file), None)
        await asyncio.to_thread(lambda: asyncio.run(source.login()))  # noqa: B023
        await task
        found.append(source)
    file.unlink()
    tokens = [(await each.login()).token for each in (*found, *found)]
    assert tokens == ["first", "second"] * 2


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no pipes by their numbers")
def test_two_login_handlers_by_pipes_of_one_number_are_two() -> None:
    number, tokens = 0, []
    for token in ("first", "second"):
        reading, writing = os.pipe()
        os.write(writing, text_of(token))
        os.close(writing)
        number = number or os.dup(reading)
        os.dup2(reading, number)
        os.close(reading)
        for _ in range(2):  # a handler is called again
            info = login_with_kubeconfig(kubeconfig=f"/dev/fd/{number}")
            assert info is not None
            tokens.append(info.token)
    os.close(number)
    assert tokens == ["first", "first", "second", "second"]
