"""A server behind proxies, and kubeconfigs that lead to it or astray.

kubectl and fnop are shown the same kubeconfig and the same environment. What counts is
what the server has seen: who has come, as whom, and through which proxy.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import ssl
import stat
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fnop.adapters.serving.certificates import Authority, server_context
from fnop.interpreters.runtime.clock import SystemClock

__all__ = ["NAME", "Case", "Visit", "World", "cases", "serving", "write"]

# A name that only the proxies resolve.
NAME = "api.reach.test"
PASSWORD = "s3cr3t"
_ANSWER = b'{"major": "1", "minor": "32", "gitVersion": "v1.32.0"}'
_PLUGIN = f"""#!{sys.executable} -IS
import hashlib, json, os, sys
told = os.environ.get("KUBERNETES_EXEC_INFO", "")
found = json.loads(told) if told else None
text = json.dumps([found, sys.argv[1:], os.environ.get("MARK")], sort_keys=True)
status = json.loads(os.environ.get("STATUS", "{{}}"))
if "token" not in status and "clientCertificateData" not in status:
    status["token"] = hashlib.sha256(text.encode()).hexdigest()
print(json.dumps({{
    "kind": "ExecCredential",
    "apiVersion": os.environ.get("ANSWERS") or found["apiVersion"],
    "status": {{}} if "EMPTY" in os.environ else status,
}}))
sys.stderr.write(os.environ.get("SAYS", ""))
sys.exit(int(os.environ.get("EXIT", "0")))
"""


class Visit(NamedTuple):
    """A request as the server has seen it: the credentials, and the address."""

    door: str
    authorization: str
    certificate: str
    impersonation: tuple[tuple[str, str], ...]


class World:
    """The servers and the proxies, by the names of their doors, and their visitors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        now = SystemClock().now().wall
        self.authority, self.stranger = Authority(now), Authority(now)
        names = ("127.0.0.1", "::1", "localhost", NAME)
        self.pair = self.authority.for_server(names)
        self.client = self.authority.for_client("jane", ("dev",))
        self.ports: dict[str, int] = {}
        self.visits: list[Visit] = []
        self.proxies: list[str] = []
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open all doors; one port is closed again."""
        trusted = server_context(self.authority, self.pair)
        strange = self.stranger.for_server(("127.0.0.1", "localhost", NAME))
        distrusted = server_context(self.stranger, strange)
        await self._opened("https", self._serve("https"), trusted)
        await self._opened("strange", self._serve("strange"), distrusted)
        await self._opened("http", self._serve("http"))
        with suppress(OSError):  # a machine without IPv6
            await self._opened("https6", self._serve("https"), trusted, host="::1")
        await self._opened("proxy", self._proxy("proxy"))
        await self._opened("tls proxy", self._proxy("tls proxy"), trusted)
        await self._opened("guarded", self._proxy("guarded", guarded=True))
        await self._opened("refusing", self._proxy("refusing", refuses=True))
        await self._opened("socks", self._socks)
        closed = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        self.ports["down"] = closed.sockets[0].getsockname()[1]
        closed.close()
        await closed.wait_closed()

    async def stop(self) -> None:
        for each in self._servers:
            each.close()
        for task in [*self._open]:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def seen(self) -> tuple[frozenset[Visit], frozenset[str]]:
        """The clients since the last call, and their proxies."""
        found = frozenset(self.visits), frozenset(self.proxies)
        self.visits.clear()
        self.proxies.clear()
        return found

    async def _opened(
        self,
        name: str,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any],
        context: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        async def tended(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._open.add(task)
            try:
                with suppress(OSError, EOFError, ValueError):
                    await serve(reader, writer)
            finally:
                self._open.discard(task)
                writer.transport.abort()

        listening = await asyncio.start_server(tended, host, 0, ssl=context)
        self._servers.append(listening)
        self.ports[name] = listening.sockets[0].getsockname()[1]

    def _serve(self, door: str) -> Callable[..., Any]:
        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            while head := await _head(reader):
                self._note(door, head, _subject(writer))
                writer.write(_http("200 OK", _ANSWER))
                await writer.drain()

        return serve

    def _note(
        self, door: str, head: tuple[str, list[tuple[str, str]]], who: str
    ) -> None:
        _, headers = head
        told = {key.lower(): value for key, value in headers}
        impersonation = [
            (key.lower(), value)
            for key, value in headers
            if key.lower().startswith("impersonate-")
        ]
        self.visits.append(
            Visit(
                door,
                told.get("authorization", ""),
                who,
                tuple(sorted(impersonation)),
            )
        )

    def _proxy(
        self, name: str, *, guarded: bool = False, refuses: bool = False
    ) -> Callable[..., Any]:
        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            while head := await _head(reader):
                self.proxies.append(name)
                (line, _), told = head, {k.lower(): v for k, v in head[1]}
                method, target, _ = line.split(" ")
                wanted = f"Basic {b64encode(f'me:{PASSWORD}'.encode()).decode()}"
                if guarded and told.get("proxy-authorization") != wanted:
                    writer.write(_http("407 Proxy Authentication Required", b""))
                elif refuses:
                    writer.write(_http("403 Forbidden", b""))
                elif method != "CONNECT":
                    host, _, _ = target.removeprefix("http://").partition("/")
                    self._note(self._door_of(*_split(host)), head, "")
                    writer.write(_http("200 OK", _ANSWER))
                else:
                    await self._tunnel(
                        reader,
                        writer,
                        *_split(target),
                        accepted=b"HTTP/1.1 200 OK\r\n\r\n",
                    )
                    return
                await writer.drain()

        return serve

    async def _socks(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """SOCKS version 5, without authentication (RFC 1928)."""
        self.proxies.append("socks")
        _, number = await reader.readexactly(2)
        await reader.readexactly(number)
        writer.write(b"\x05\x00")
        _, _, _, kind = await reader.readexactly(4)
        length = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        raw = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2), "big")
        host = raw.decode() if kind == 3 else ".".join(map(str, raw))
        accepted = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
        await self._tunnel(reader, writer, host, port, accepted=accepted)

    def _door_of(self, host: str, port: int) -> str:
        if host == NAME:
            return "https"
        doors = {number: door for door, number in self.ports.items()}
        return doors.get(port, "down")

    async def _tunnel(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        port: int,
        *,
        accepted: bytes,
    ) -> None:
        inside = self.ports[self._door_of(host, port)]
        far, back = await asyncio.open_connection("127.0.0.1", inside)
        writer.write(accepted)
        try:
            await asyncio.gather(_piped(reader, back), _piped(far, writer))
        finally:
            back.transport.abort()


async def _piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
        await writer.drain()
    writer.transport.abort()


def _split(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":")
    return (host.strip("[]"), int(port)) if host else (target, 80)


async def _head(
    reader: asyncio.StreamReader,
) -> tuple[str, list[tuple[str, str]]] | None:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, OSError):
        return None
    line, *rest = raw.decode("latin-1").split("\r\n")
    pairs = [each.split(": ", 1) for each in rest if ": " in each]
    return line, [(key, value) for key, value in pairs]


def _http(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def _subject(writer: asyncio.StreamWriter) -> str:
    """The common name in the client's certificate."""
    certificate = writer.get_extra_info("peercert") or {}
    found = dict(pair for each in certificate.get("subject", ()) for pair in each)
    return str(found.get("commonName", ""))


@contextmanager
def serving(folder: Path) -> Iterator[World]:
    """The world, which lives in a thread of its own."""
    world, loop = World(folder), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(world.start(), loop).result()
        yield world
    finally:
        asyncio.run_coroutine_threadsafe(world.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


# ---------------------------------------------------------------------- the cases


class Case(NamedTuple):
    """Kubeconfigs, by the names of their files, and an environment.

    `told` are the choices that have made it.
    """

    documents: Mapping[str, Any]
    environment: Mapping[str, str]
    told: tuple[str, ...]


Choice = tuple[str, Any]
_Choices = list[Choice]


def _b64(data: bytes) -> str:
    return b64encode(data).decode()


def _servers(world: World) -> _Choices:
    ports = world.ports
    https, http = ports["https"], ports["http"]
    found = [
        ("by address", f"https://127.0.0.1:{https}"),
        ("by name", f"https://localhost:{https}"),
        ("behind a proxy", f"https://{NAME}:6443"),
        ("behind a proxy, usual port", f"https://{NAME}"),
        ("with a path", f"https://127.0.0.1:{https}/k8s/clusters/a/"),
        ("without a scheme", f"127.0.0.1:{https}"),
        ("plain", f"http://127.0.0.1:{http}"),
        ("plain behind a proxy", f"http://{NAME}"),
        ("plain without a scheme", f"localhost:{http}"),
        ("of strangers", f"https://127.0.0.1:{ports['strange']}"),
        ("down", f"https://127.0.0.1:{ports['down']}"),
        ("with a query", f"https://127.0.0.1:{https}/?a=b#c"),
        ("of another scheme", "ftp://127.0.0.1"),
        ("with a user", f"https://u:p@127.0.0.1:{https}"),
    ]
    if "https6" in ports:
        found.append(("of IPv6", f"https://[::1]:{ports['https6']}"))
    return found


def _authorities(world: World) -> _Choices:
    own, other = world.authority.certificate, world.stranger.certificate
    broken = b"-----BEGIN CERTIFICATE-----\nYWJjZA==\n-----END CERTIFICATE-----\n"
    bundle = "# Bündel\n".encode() + other + b"some words\n" + broken + own
    data, file = "certificate-authority-data", "certificate-authority"
    (world.folder / "ca.pem").write_bytes(own)
    (world.folder / "bundle.pem").write_bytes(bundle)
    lines = "\n".join(_b64(own)[i : i + 60] for i in range(0, len(_b64(own)), 60))
    return [
        ("authority", {data: _b64(own)}),
        ("authority in lines", {data: lines}),
        ("authority's file", {file: "ca.pem"}),
        ("authority's file, whole path", {file: str(world.folder / "ca.pem")}),
        ("a bundle", {file: "bundle.pem"}),
        ("a bundle as data", {data: _b64(bundle)}),
        ("the server's own certificate", {data: _b64(world.pair.certificate)}),
        ("both authorities", {data: _b64(own), file: "ca.pem"}),
        ("no authority", {}),
        ("another authority", {data: _b64(other)}),
        ("an authority that is missing", {file: "nowhere.pem"}),
        ("an authority that is not PEM", {data: _b64(b"none")}),
        ("an authority that is not base64", {data: "%"}),
        ("an authority that is a number", {data: 5}),
        ("insecure", {"insecure-skip-tls-verify": True}),
        ("secure", {"insecure-skip-tls-verify": False, data: _b64(own)}),
        (
            "insecure with an authority",
            {"insecure-skip-tls-verify": True, file: "ca.pem"},
        ),
        ("insecure as a text", {"insecure-skip-tls-verify": "true"}),
        ("a name", {"tls-server-name": NAME, data: _b64(own)}),
        ("another name", {"tls-server-name": "other.test", data: _b64(own)}),
        ("empty fields", {file: "", data: "", "proxy-url": "", "tls-server-name": ""}),
    ]


def _proxies(world: World) -> _Choices:
    ports = world.ports
    return [
        ("http", f"http://127.0.0.1:{ports['proxy']}"),
        ("https", f"https://localhost:{ports['tls proxy']}"),
        ("socks5", f"socks5://127.0.0.1:{ports['socks']}"),
        ("socks5h", f"socks5h://127.0.0.1:{ports['socks']}"),
        ("with a password", f"http://me:{PASSWORD}@127.0.0.1:{ports['guarded']}"),
        ("without its password", f"http://127.0.0.1:{ports['guarded']}"),
        ("refusing", f"http://127.0.0.1:{ports['refusing']}"),
        ("down", f"http://127.0.0.1:{ports['down']}"),
        ("socks that is down", f"socks5://127.0.0.1:{ports['down']}"),
        ("of another scheme", f"ftp://127.0.0.1:{ports['proxy']}"),
        ("without a scheme", f"127.0.0.1:{ports['proxy']}"),
    ]


def _plugins(world: World) -> _Choices:
    client = world.client
    v1, v1beta1 = (f"client.authentication.k8s.io/{v}" for v in ("v1", "v1beta1"))
    whole, relative = str(world.folder / "plugin"), "./plugin"
    certificate = {
        "clientCertificateData": client.certificate.decode(),
        "clientKeyData": client.key.decode(),
    }
    half = {"clientCertificateData": certificate["clientCertificateData"]}

    def plugin(version: str = v1, /, **fields: Any) -> dict[str, Any]:
        usual = {"apiVersion": version, "command": whole, "interactiveMode": "Never"}
        return {key: e for key, e in (usual | fields).items() if e is not None}

    def env(**values: str) -> list[dict[str, str]]:
        return [{"name": name, "value": value} for name, value in values.items()]

    def status(**values: str) -> dict[str, Any]:
        return plugin(env=env(STATUS=json.dumps(values)))

    return [
        ("plugin", plugin()),
        ("plugin beside the file", plugin(command=relative)),
        ("plugin with the cluster", plugin(provideClusterInfo=True)),
        ("plugin with arguments", plugin(args=["a", "b c"], env=env(MARK="m"))),
        ("older plugin", plugin(v1beta1, interactiveMode=None)),
        ("plugin that may ask", plugin(interactiveMode="IfAvailable")),
        ("plugin that must ask", plugin(interactiveMode="Always")),
        ("plugin of no mode", plugin(interactiveMode=None)),
        ("plugin of another mode", plugin(interactiveMode="Sometimes")),
        ("plugin of an old version", plugin("client.authentication.k8s.io/v1alpha1")),
        ("plugin of no version", plugin(apiVersion=None)),
        ("plugin of no command", plugin(command=None)),
        ("plugin that is missing", plugin(command="no-such-plugin", installHint="Buy")),
        ("plugin that fails", plugin(env=env(EXIT="3", SAYS="go away"))),
        ("plugin that says nothing", plugin(env=env(EMPTY="1"))),
        ("plugin of another answer", plugin(env=env(ANSWERS=v1beta1))),
        ("plugin with a certificate", status(**certificate)),
        ("plugin with both", status(**certificate, token="both")),
        ("plugin with half a certificate", status(**half)),
        (
            "plugin that expires",
            status(token="t", expirationTimestamp="2100-01-01T00:00:00Z"),
        ),
        (
            "plugin that expires at no time",
            status(token="t", expirationTimestamp="soon"),
        ),
        (
            "plugin with nulls",
            plugin(args=[None], env=[{"name": "MARK", "value": None}]),
        ),
        ("plugin with a number", plugin(args=[5])),
    ]


def _users(world: World) -> _Choices:
    client, folder = world.client, world.folder
    for name, content in (("cert.pem", client.certificate), ("key.pem", client.key)):
        (folder / name).write_bytes(content)
    authority, crlf = world.authority.certificate, (b"\n", b"\r\n")
    der = ssl.PEM_cert_to_DER_cert(client.certificate.decode())
    for name, content in (
        ("chain.pem", client.certificate + authority),
        ("windows.pem", client.certificate.replace(*crlf)),
        ("windows-key.pem", client.key.replace(*crlf)),
        ("both.pem", client.key + client.certificate),
        ("der", der),
    ):
        (folder / name).write_bytes(content)
    (folder / "token").write_text("from a file\n".replace(" ", "-"))
    (folder / "empty").write_text("")
    certificate = {"client-certificate-data": _b64(client.certificate)}
    key = {"client-key-data": _b64(client.key)}
    other_key = {"client-key-data": _b64(world.pair.key)}
    files = {"client-certificate": "cert.pem", "client-key": "key.pem"}
    impersonating = {"token": "t", "as": "system:serviceaccount:a:b"}
    found: _Choices = [
        ("token", {"token": "abc"}),
        ("token with a line's end", {"token": "abc\n"}),
        ("nobody", {}),
        ("token's file", {"tokenFile": "token"}),
        ("both tokens", {"tokenFile": "token", "token": "abc"}),
        ("token's file that is missing", {"tokenFile": "nowhere"}),
        ("token's file that is empty", {"tokenFile": "empty"}),
        ("missing file beside a token", {"tokenFile": "nowhere", "token": "abc"}),
        ("a token that is a number", {"token": 5}),
        ("an empty token", {"token": "", "username": ""}),
        ("password", {"username": "me", "password": "p:w"}),
        ("user without a password", {"username": "me"}),
        ("password without a user", {"password": "pw"}),
        ("token and password", {"token": "abc", "username": "me", "password": "p"}),
        ("certificate", certificate | key),
        ("certificate's files", files),
        (
            "certificate and its chain",
            {"client-certificate": "chain.pem", "client-key": "key.pem"},
        ),
        (
            "certificate of Windows",
            {"client-certificate": "windows.pem", "client-key": "windows-key.pem"},
        ),
        (
            "certificate with its key",
            {"client-certificate": "both.pem", "client-key": "both.pem"},
        ),
        (
            "certificate that is DER",
            {"client-certificate": "der", "client-key": "key.pem"},
        ),
        ("certificate and token", certificate | key | {"token": "abc"}),
        ("certificate twice", certificate | key | files),
        ("certificate alone", certificate),
        ("key alone", key),
        ("certificate with another key", certificate | other_key),
        ("certificate that is missing", files | {"client-certificate": "nowhere"}),
        ("impersonation", impersonating),
        ("impersonation of a group", impersonating | {"as-groups": ["a", "b/c"]}),
        (
            "impersonation in full",
            impersonating
            | {"as-uid": "7", "as-user-extra": {"a.b/c": ["1", "2"], "Größe": ["ß"]}},
        ),
        ("impersonation of nobody", {"token": "t", "as-groups": ["a"]}),
        ("impersonation of a number", {"token": "t", "as": 5}),
        ("extra that is not a list", impersonating | {"as-user-extra": {"a": "b"}}),
        ("gcp", {"auth-provider": {"name": "gcp", "config": {}}}),
        ("oidc", {"auth-provider": {"name": "oidc", "config": _oidc(4_000_000_000)}}),
        ("oidc that expired", {"auth-provider": {"name": "oidc", "config": _oidc(5)}}),
        (
            "oidc beside a token",
            {"token": "t", "auth-provider": {"name": "oidc", "config": _oidc(5)}},
        ),
    ]
    plugins = [(name, {"exec": each}) for name, each in _plugins(world)]
    plugin = {"exec": _plugins(world)[0][1]}
    failing = {"exec": dict(_plugins(world))["plugin that fails"]}
    password = {"username": "a", "password": "b"}
    several: _Choices = [
        ("plugin beside a token", plugin | {"token": "t"}),
        ("plugin beside a password", plugin | password),
        ("failing plugin beside a password", failing | password),
        ("plugin beside a certificate", plugin | files),
        ("plugin beside a provider", plugin | {"auth-provider": {"name": "oidc"}}),
    ]
    oidc = {"auth-provider": {"name": "oidc", "config": _oidc(4_000_000_000)}}
    sealed = ("provider beside a certificate", {**files, **oidc})
    return [*found, *plugins, *several, sealed]


def _oidc(expiry: int) -> dict[str, str]:
    claims = _b64(json.dumps({"exp": expiry}).encode()).rstrip("=")
    return {
        "idp-issuer-url": "https://127.0.0.1:1",
        "client-id": "fnop",
        "id-token": f"e30.{claims}.x",
    }


_NO_PROXY: _Choices = [
    *(("NO_PROXY", each) for each in (NAME, f".{NAME}", "reach.test", ".reach.test")),
    *(
        ("NO_PROXY", each)
        for each in (f"{NAME}:6443", f"{NAME}:1", "*", "*.test", "test")
    ),
    *(
        ("NO_PROXY", each)
        for each in (NAME.upper(), "", " 10.0.0.0/8 , .test ", "pi.reach.test")
    ),
    *(
        ("NO_PROXY", each)
        for each in ("127.0.0.0/8", "other.test,", "[::1]:443", "localhost")
    ),
    ("no_proxy", "reach.test"),
]


def _environments(world: World) -> _Choices:
    found: _Choices = [("no environment", {})]
    for name, proxy in _proxies(world):
        found.append((f"HTTPS_PROXY {name}", {"HTTPS_PROXY": proxy}))
    usual = _proxies(world)[0][1]
    found += [
        ("https_proxy", {"https_proxy": usual}),
        ("HTTP_PROXY", {"HTTP_PROXY": usual}),
        ("ALL_PROXY", {"ALL_PROXY": usual}),
        ("both", {"HTTPS_PROXY": usual, "https_proxy": _proxies(world)[7][1]}),
        ("an empty proxy", {"HTTPS_PROXY": "", "https_proxy": usual}),
    ]
    found += [
        (
            f"{variable}={value!r}",
            {"HTTPS_PROXY": usual, "HTTP_PROXY": usual, variable: value},
        )
        for variable, value in _NO_PROXY
    ]
    return found


def cases(world: World, count: int, seed: int) -> Iterator[Case]:
    """Cases, most of them valid except for one choice or two."""
    source = random.Random(seed)
    plugin = world.folder / "plugin"
    plugin.write_text(_PLUGIN)
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    rows: list[tuple[str, _Choices, float]] = [
        ("server", _servers(world), 0.5),
        ("authority", _authorities(world), 0.4),
        ("user", _users(world), 0.7),
        ("proxy-url", [("no proxy-url", None), *_proxies(world)], 0.3),
        ("environment", _environments(world), 0.5),
        ("files", _LAYOUTS, 0.3),
    ]
    for _ in range(count):
        chosen = [
            source.choice(choices) if source.random() < often else choices[0]
            for _, choices, often in rows
        ]
        named = dict(zip((row[0] for row in rows), chosen, strict=True))
        cluster = {"server": named["server"][1], **named["authority"][1]}
        if named["proxy-url"][1] is not None:
            cluster["proxy-url"] = named["proxy-url"][1]
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": named["user"][1]}],
        }
        told = tuple(f"{row}: {choice[0]}" for row, choice in named.items())
        yield Case(named["files"][1](document), named["environment"][1], told)


Document = dict[str, Any]


def _one(document: Document) -> Mapping[str, Any]:
    return {"config": document}


def _without(*keys: str) -> Callable[[Document], Mapping[str, Any]]:
    return lambda found: {"config": {k: v for k, v in found.items() if k not in keys}}


def _in_two(document: Document) -> Mapping[str, Any]:
    users = {"users": document["users"]}
    rest = {key: each for key, each in document.items() if key != "users"}
    return {"missing": None, "config": rest, "empty": {}, "other": users}


def _twice(document: Document) -> Mapping[str, Any]:
    """The first file has a user of that name, too, and counts."""
    users = [{"name": "u", "user": {"token": "first"}}]
    return {"config": {"users": users}, "other": document}


def _with_context(context: Any) -> Callable[[Document], Mapping[str, Any]]:
    contexts = [{"name": "here", "context": context}]
    return lambda document: {"config": {**document, "contexts": contexts}}


_LAYOUTS: _Choices = [
    ("one", _one),
    ("two", _in_two),
    ("a user twice", _twice),
    ("no version", _without("apiVersion", "kind")),
    ("no current context", _without("current-context")),
    ("no users", _without("users")),
    ("a context without a user", _with_context({"cluster": "c"})),
    ("a context without a cluster", _with_context({"user": "u"})),
    ("a namespace", _with_context({"cluster": "c", "user": "u", "namespace": "n"})),
    ("a namespace that is a number", _with_context({"cluster": "c", "namespace": 5})),
    ("JSON", lambda document: {"config": json.dumps(document)}),
    ("a byte order mark", lambda document: {"config": "\ufeff" + json.dumps(document)}),
    (
        "Windows",
        lambda document: {"config": yaml.safe_dump(document).replace("\n", "\r\n")},
    ),
    ("comments", lambda document: {"config": f"# ü\n---\n{yaml.safe_dump(document)}"}),
    (
        "unknown fields",
        lambda document: {"config": {**document, "wish": 5, "extensions": []}},
    ),
    ("no mapping", lambda document: {"config": "- 1"}),
    (
        "a list that is a mapping",
        lambda document: {"config": {**document, "users": {}}},
    ),
    (
        "an entry twice",
        lambda document: {
            "config": {
                **document,
                "users": [
                    *document["users"],
                    {"name": "u", "user": {"token": "second"}},
                ],
            }
        },
    ),
    ("all files missing", lambda document: {"missing": None}),
]


def write(world: World, case: Case) -> str:
    """Write the files of a case; the value of KUBECONFIG."""
    paths = []
    for name, document in case.documents.items():
        path = world.folder / name
        path.unlink(missing_ok=True)
        if document is not None:
            text = document if isinstance(document, str) else yaml.safe_dump(document)
            path.write_bytes(text.encode())
        paths.append(str(path))
    return os.pathsep.join(paths)
