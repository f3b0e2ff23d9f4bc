"""Kopf's webhook servers: fnop's server, with the names of local clusters' hosts."""

from __future__ import annotations

import json
import ssl
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from urllib.parse import urlunsplit

from aiohttp import web

from fnop.adapters.serving.certificates import (
    SKEW_SECONDS,
    Authority as Signer,
    Pair,
)
from fnop.adapters.webhooks.certificates import (
    Served,
    common_name,
    content_of,
    context_with,
    named_hosts,
)
from fnop.adapters.webhooks.connections import Refusal
from fnop.adapters.webhooks.protocol import WebhookFn
from fnop.adapters.webhooks.server import (
    WebhookServer as OwnServer,
    reachable_address,
    sockets_at,
)

__all__ = [
    "WebhookAutoServer",
    "WebhookAutoTunnel",
    "WebhookDockerDesktopServer",
    "WebhookK3dServer",
    "WebhookMinikubeServer",
    "WebhookNgrokTunnel",
    "WebhookServer",
]


class WebhookServer(OwnServer):
    """fnop's server, with the parts of Kopf's that subclasses use.

    Operators write `__call__` with other routes or with a `service` in the place of
    the URL. Their servers use these methods, which fnop's own server does not need.
    """

    @staticmethod
    async def _serve(fn: WebhookFn, request: web.Request) -> web.Response:
        """Answer one review; the last part of the path is the name of the webhook."""
        transport = request.transport
        peer = transport.get_extra_info("peercert") if transport else None
        try:
            review = json.loads(await request.text())
        except ValueError as problem:
            raise Refusal(400, f"the body is not JSON: {problem}") from None
        found = await fn(
            review,
            webhook=request.match_info.get("id"),
            headers=dict(request.headers),
            sslpeer=peer or {},
        )
        return web.json_response(found)

    @staticmethod
    def _allocate_free_port() -> int:
        """A port that is free now."""
        (socket,) = sockets_at(None, None)
        with socket:
            return int(socket.getsockname()[1])

    @staticmethod
    def _get_accessible_addr(addr: str | None) -> str:
        """The address at which a wildcard address is reached."""
        return reachable_address(addr)

    @staticmethod
    def _build_url(schema: str, host: str, port: int, path: str) -> str:
        """The URL of a host; it has no port if that is the usual one.

        >>> WebhookServer._build_url("https", "::1", 443, "/a")
        'https://[::1]/a'
        """
        name = f"[{host}]" if ":" in host else host
        is_usual = (schema, port) in (("http", 80), ("https", 443))
        return urlunsplit(
            (schema, name if is_usual else f"{name}:{port}", path, "", "")
        )

    def _build_ssl(self) -> tuple[bytes | None, ssl.SSLContext | None]:
        """The authorities for clients, and the TLS settings; None for HTTP."""
        if self.insecure and self.context is not None:
            raise ValueError("insecure=True takes no context=: leave out one of them")
        bundle = self.cadata
        if bundle is None and self.cafile is not None:
            bundle = content_of(self.cafile)
        context = self.context
        if context is None and not self.insecure:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        if context is not None:
            self._verify_clients(context)
            if self.certfile is not None and self.pkeyfile is not None:
                context.load_cert_chain(self.certfile, self.pkeyfile, self.password)
                bundle = content_of(self.certfile) if bundle is None else bundle
            else:
                bundle = self._certified(context)
        if self.cadump is not None and bundle is not None:
            Path(self.cadump).write_bytes(bundle)
        return bundle, context

    def _verify_clients(self, context: ssl.SSLContext) -> None:
        if self.verify_mode is not None:
            context.verify_mode = self.verify_mode
        if self.verify_cafile or self.verify_capath or self.verify_cadata:
            context.load_verify_locations(
                self.verify_cafile, self.verify_capath, self.verify_cadata
            )
            if context.verify_mode is ssl.CERT_NONE:
                context.verify_mode = ssl.CERT_OPTIONAL

    def _certified(self, context: ssl.SSLContext) -> bytes:
        """Load a new certificate, and return its authority."""
        addr = reachable_address(self.addr)
        host = self.host or self.DEFAULT_HOST or addr
        bundle, pair = self._issued((host, addr, *self.extra_sans))
        context_with(Served(pair, bundle, ()), context)
        return bundle

    @classmethod
    def _issued(cls, hosts: Collection[str]) -> tuple[bytes, Pair]:
        now, names = cls.clock.now().wall, named_hosts(hosts)
        signer = Signer(now, cls.lifetimes.authority, "fnop webhooks")
        valid = now - SKEW_SECONDS, now + cls.lifetimes.authority
        pair = signer.for_server(names, common_name(names)[:64], valid)
        return signer.certificate, pair


class _HostedServer(WebhookServer):
    """A server that the API server of a local cluster reaches by a known name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"host": self.DEFAULT_HOST, **options})


class WebhookK3dServer(_HostedServer):
    """A server on this machine, for a cluster of k3d."""

    DEFAULT_HOST: ClassVar[str | None] = "host.k3d.internal"


class WebhookMinikubeServer(_HostedServer):
    """A server on this machine, for a cluster of minikube."""

    DEFAULT_HOST: ClassVar[str | None] = "host.minikube.internal"


class WebhookDockerDesktopServer(_HostedServer):
    """A server on this machine, for the cluster of Docker Desktop."""

    DEFAULT_HOST: ClassVar[str | None] = "host.docker.internal"


class _Refused:
    """A server that fnop does not have; the text says what to use.

    An operator may make one and then decide for another. It does not start with this.
    """

    REMEDY: str

    def __init__(self, **_options: Any) -> None:
        self.refusal = f"kopf.{type(self).__name__}: {self.REMEDY}"

    async def __call__(self, _fn: Any) -> NoReturn:
        raise NotImplementedError(self.refusal)


class WebhookNgrokTunnel(_Refused):
    """A tunnel of ngrok."""

    REMEDY = "fnop opens no tunnel; run ngrok, and name it in WebhookServer(host=...)"


class WebhookAutoTunnel(_Refused):
    """A detected server, or a tunnel."""

    REMEDY = "fnop opens no tunnel; use WebhookAutoServer() or WebhookServer(host=...)"


class WebhookAutoServer(WebhookServer):
    """A server whose host is that of the detected local cluster."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
