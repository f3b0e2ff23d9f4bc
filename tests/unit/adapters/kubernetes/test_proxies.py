"""Proxies as Go chooses them; one that fails is named, without its password."""

from __future__ import annotations

import asyncio
import doctest
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.kubernetes import addresses, proxies
from fnop.adapters.kubernetes.addresses import parsed
from fnop.adapters.kubernetes.client import ConfigurationProblem, connect
from fnop.adapters.kubernetes.proxies import proxy_for
from fnop.adapters.kubernetes.transports import cut
from fnop.adapters.serving.certificates import Authority, server_context
from fnop.core.handlers.declare.connection import ConnectionInfo
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import Unreachable
from tests.scripted_server import GET, Seen, http, server

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("host", "excepted", "not_excepted"),
    [
        (
            "api.corp.test",
            ["api.corp.test", "corp.test", ".corp.test", "*.corp.test", "test", "*"],
            ["other.test", "pi.corp.test", "api.corp.test:1", ".api.corp.test", "10/8"],
        ),
        (
            "api.corp.test",
            [
                "API.Corp.TEST",
                "api.corp.test:443",
                "a, corp.test ,b",
                "[::1],corp.test",
            ],
            ["", ",", ":443", "corp.test:https", "*.api.corp.test", "a*.corp.test"],
        ),
        (
            "192.0.2.7",
            ["192.0.2.7", "192.0.0.0/16", "192.0.2.7/24", "192.0.2.7:443"],
            ["192.0.2.70", "192.1.0.0/16", "192.0.2.7:1", "::/0", "192.0.2."],
        ),
        (
            "192.0.2.7",
            ["192.0.2.7:"],
            # A part of an address is not a domain (CVE-2025-22870).
            ["2.7", ".2.7", "192.0.0.0/255.255.0.0"],
        ),
        (
            "[2001:db8::1]",
            ["2001:db8::1", "2001:db8::/32", "[2001:db8:0::1]:443"],
            ["2001:db9::/32", "[2001:db8::1]:1", "0.0.0.0/0", "[2001:db8::1]"],
        ),
        ("[::ffff:192.0.2.7]", ["192.0.2.7", "192.0.2.0/24"], ["::ffff:0:0/200"]),
    ],
)
def test_no_proxy_excepts_what_it_is_about(
    host: str, excepted: list[str], not_excepted: list[str]
) -> None:
    def found(no_proxy: str) -> str | None:
        environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
        return proxy_for(parsed(f"https://{host}"), environment)

    assert [each for each in excepted if found(each) is not None] == []
    assert [each for each in not_excepted if found(each) != PROXY] == []


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://h", {}, None),
        ("https://h", {"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ("https://h", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://h", {"HTTPS_PROXY": "a:1", "https_proxy": "b:1"}, "http://a:1"),
        ("https://h", {"HTTPS_PROXY": "", "https_proxy": "b:1"}, "http://b:1"),
        ("https://h", {"HTTPS_PROXY": "socks5://p:1"}, "socks5://p:1"),
        ("https://h", {"HTTPS_PROXY": "HTTPS://p:1"}, "https://p:1"),
        ("https://h", {"HTTPS_PROXY": "ftp://p:1"}, "http://p:1"),
        ("https://h", {"HTTP_PROXY": "p:1", "ALL_PROXY": "p:1"}, None),
        ("http://h", {"HTTP_PROXY": "p:1"}, "http://p:1"),
        ("http://h", {"HTTPS_PROXY": "p:1"}, None),
        ("https://h:8443", {"HTTPS_PROXY": "p:1", "NO_PROXY": "h:443"}, "http://p:1"),
        ("http://h", {"HTTP_PROXY": "p:1", "no_proxy": "h:80"}, None),
        *(
            (f"https://{host}", {"HTTPS_PROXY": "p:1", "NO_PROXY": ""}, None)
            for host in ("localhost", "127.0.0.1:6443", "127.8.9.1", "[::1]:6443")
        ),
    ],
)
def test_the_variable_of_the_scheme_counts(
    server: str, environment: Mapping[str, str], proxy: str | None
) -> None:
    assert proxy_for(parsed(server), environment) == proxy
    assert doctest.testmod(proxies).failed == 0
    assert doctest.testmod(addresses).failed == 0


class Said:
    """A source that knows its answer."""

    files: tuple[Path, ...] = ()

    def __init__(self, proxy: str, port: str = "443") -> None:
        self._proxy, self._port = proxy, port

    async def login(self) -> ConnectionInfo:
        server = f"https://cluster.invalid:{self._port}".removesuffix(":443")
        return ConnectionInfo(server=server, insecure=True, proxy_url=self._proxy)


async def told(proxy: str) -> str:
    api = await connect(kubeconfig=None, context=None, source=Said(proxy))
    try:
        with pytest.raises(Unreachable) as problem:
            await api.send(GET)
    finally:
        await api.close()
    assert not problem.value.sent
    return str(problem.value)


@pytest.mark.parametrize("scheme", ["http", "https", "socks5", "socks5h"])
async def test_a_proxy_that_is_down_is_named(scheme: str) -> None:
    text = await told(f"{scheme}://me:s3cr3t@127.0.0.1:1")
    assert text.startswith(f"the proxy {scheme}://***@127.0.0.1:1 cannot be reached: ")
    assert "s3cr3t" not in text


async def test_a_proxy_that_refuses_is_named() -> None:
    async def refuse(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(http(b"", "407 Proxy Authentication Required"))

    async with server(refuse) as (url, _):
        text = await told(url)
    assert text == (
        f"the proxy {url} refuses to connect to https://cluster.invalid: HTTP 407 "
        "Proxy Authentication Required"
    )


@pytest.mark.parametrize("answer", [b"", b"\x05\xff", b"HTTP/1.1 400 No\r\n\r\n"])
async def test_a_proxy_that_speaks_no_socks_is_named(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(3)
        writer.write(answer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    text = await told(f"socks5://127.0.0.1:{port}")
    listening.close()
    assert text.startswith(f"the proxy socks5://127.0.0.1:{port} ")


async def test_a_scheme_that_no_proxy_has_is_refused() -> None:
    with pytest.raises(
        ConfigurationProblem, match="unknown scheme; write one of http,"
    ):
        await connect(kubeconfig=None, context=None, source=Said("ftp://me:s3cr3t@h"))


async def test_the_user_of_a_proxy_is_told_in_utf_8() -> None:
    seen = asyncio.Queue[str]()

    async def refuse(reader: asyncio.StreamReader, writer: Any) -> None:
        seen.put_nowait((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await told(f"http://m%3Ae:%E2%82%AC@127.0.0.1:{port}")
    found = b64encode("m:e:\u20ac".encode()).decode()
    assert f"Proxy-Authorization: Basic {found}" in await seen.get()


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(2**16):
            writer.write(data)
    except OSError:
        pass
    finally:
        cut(writer.transport)


async def through_http(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[str, int]:
    line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode()
    host, _, port = line.removeprefix("CONNECT ").split(" ")[0].rpartition(":")
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    return host, int(port)


async def through_socks(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[str, int]:
    """The handshake of RFC 1928, with a password (RFC 1929) and a name."""
    await reader.readexactly((await reader.readexactly(2))[1])
    writer.write(b"\x05\x02")
    await reader.readexactly((await reader.readexactly(2))[1])
    await reader.readexactly((await reader.readexactly(1))[0])
    writer.write(b"\x01\x00")
    assert (await reader.readexactly(4))[3] == 3, "the proxy resolves the name"
    host = await reader.readexactly((await reader.readexactly(1))[0])
    port = int.from_bytes(await reader.readexactly(2), "big")
    writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
    return host.decode(), port


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
async def test_requests_pass_through_a_proxy(scheme: str) -> None:
    """With TLS to the server inside of it; its name is resolved by the proxy."""
    asked: list[str] = []
    writers: list[asyncio.StreamWriter] = []
    tasks: list[asyncio.Task[None]] = []

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(http(b"{}"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        meet = through_socks if scheme == "socks5" else through_http
        host, port = await meet(reader, writer)
        asked.append(host)
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writers.append(back)
        tasks.extend(
            asyncio.create_task(each)
            for each in (relay(reader, back), relay(there, writer))
        )

    async with server(answer, secure=True) as (url, seen):
        certificate = Authority(SystemClock().now().wall)
        context = server_context(certificate, certificate.for_server(("127.0.0.1",)))
        secure = context if scheme == "https" else None
        listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=secure)
        port = listening.sockets[0].getsockname()[1]
        said = Said(f"{scheme}://me:s3cr3t@127.0.0.1:{port}", url.rpartition(":")[2])
        api = await connect(kubeconfig=None, context=None, source=said)
        for _ in range(2):
            assert (await api.send(GET)).status == 200
        await api.close()
        await asyncio.gather(*tasks)
        listening.close()
        for each in writers:
            cut(each.transport)
        await listening.wait_closed()
        await asyncio.sleep(0)
    assert asked == ["cluster.invalid"]
    assert {each.headers["host"] for each in seen} == {
        f"cluster.invalid:{url.rpartition(':')[2]}"
    }
