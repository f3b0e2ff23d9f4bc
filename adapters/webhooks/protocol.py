"""The protocol between an operator and a webhook server, as in Kopf.

A server is a callable that takes a function from reviews to answers. It yields client
configurations: once when it serves, and again whenever one has changed. It may be an
async context manager, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, TypedDict

__all__ = [
    "WebhookClientConfig",
    "WebhookClientConfigService",
    "WebhookFn",
    "WebhookServerProtocol",
]


class WebhookClientConfigService(TypedDict, total=False):
    """The service through which the API server calls a webhook.

    For example:

        fnop.WebhookClientConfigService(namespace="operators", name="hooks", port=443)
    """

    namespace: str | None
    name: str | None
    path: str | None
    port: int | None


class WebhookClientConfig(TypedDict, total=False):
    """The way of the API server to a webhook: a `url`, or a `service`.

    Each webhook's name is added to the path. `caBundle` is base64 of PEM; without it
    the API server trusts the authorities of its machine.

        fnop.WebhookClientConfig(url="https://10.0.0.1:9443/hooks", caBundle=bundle)
    """

    caBundle: str | None
    url: str | None
    service: WebhookClientConfigService | None


class WebhookFn(Protocol):
    """Answer an AdmissionReview, a parsed JSON value, with another one.

    `webhook` is the last part of the request's path, `sslpeer` the client's certificate
    as `ssl.SSLSocket.getpeercert` returns it. An answer that is an HTTP error is raised
    as `aiohttp.web.HTTPException`.

        response = await fn(review, webhook="shrinks-not", headers={}, sslpeer={})
    """

    async def __call__(
        self,
        request: Any,
        *,
        webhook: str | None = None,
        headers: Mapping[str, str] | None = None,
        sslpeer: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]: ...


class WebhookServerProtocol(Protocol):
    """A server of webhooks, or a tunnel to one.

    For example:

        async def tunnel(fn):
            async for config in fnop.WebhookServer(port=9443)(fn):
                yield {**config, "url": "https://tunnel.example.com"}
    """

    def __call__(self, fn: WebhookFn, /) -> AsyncIterator[WebhookClientConfig]:
        """Serve, and yield client configurations until the iterator is closed."""
        ...
