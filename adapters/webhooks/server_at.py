"""A webhook server for an address, which may differ from the server's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fnop.adapters.webhooks.addresses import Address, hosts_of
from fnop.adapters.webhooks.protocol import WebhookClientConfig, WebhookFn
from fnop.adapters.webhooks.server import WebhookServer

if TYPE_CHECKING:
    from fnop.adapters.webhooks.certificates import Store

__all__ = ["server_at"]


class _Elsewhere:
    """A webhook server that is reached at another address than its own."""

    def __init__(self, server: Any, client: Mapping[str, Any]) -> None:
        self._server = server
        self._client = dict(client)

    @property
    def store(self) -> Store | None:
        """The store in which replicas share their authority."""
        store: Store | None = self._server.store
        return store

    @store.setter
    def store(self, store: Store | None) -> None:
        self._server.store = store

    def distrust(self, client: WebhookClientConfig) -> str:
        """The reason why the API server would refuse the certificate; "" if not known.

        At a URL, another server may be in front of this one, with another certificate.
        """
        if client.get("service") is None:
            return ""
        why: str = self._server.distrust(client)
        return why

    async def __call__(self, fn: WebhookFn) -> AsyncIterator[WebhookClientConfig]:
        """Serve, and yield the address with the server's own authorities."""
        async with self._server, aclosing(self._server(fn)) as clients:
            async for own in clients:
                found: Any = {**self._client}
                if bundle := own.get("caBundle"):
                    found["caBundle"] = bundle
                yield found


def server_at(address: Address) -> Any:
    """A webhook server for an address."""
    hosts = hosts_of(address.client)
    server = WebhookServer(
        addr=address.host,
        port=address.port,
        path=urlsplit(address.client.get("url", "")).path,
        host=hosts[0] if hosts else None,
        extra_sans=hosts[1:],
        certfile=address.certificate,
        pkeyfile=address.key,
        cafile=address.bundle,
    )
    return _Elsewhere(server, address.client) if address.client else server
