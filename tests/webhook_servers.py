"""Servers of webhooks in tests: reviews to send, and who sends them."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import aiohttp
import orjson

from fnop.adapters.common.loading import resolve
from fnop.adapters.webhooks.answering import answering
from fnop.adapters.webhooks.protocol import WebhookClientConfig, WebhookFn
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.runtime.protocol import Api
from fnop.interpreters.runtime.run import Runner
from tests.patience import patience

GROUP = "example.com"
KIND = f"claims.{GROUP}"
T = TypeVar("T")


def review_of(
    operation: str = "CREATE", old: Any = None, api: str = "v1", **spec: Any
) -> dict[str, Any]:
    """The AdmissionReview of a claim, as an API server sends it."""
    new = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Claim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": spec,
    }
    request: dict[str, Any] = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": GROUP, "version": "v1", "kind": "Claim"},
        "resource": {"group": GROUP, "version": "v1", "resource": "claims"},
        "name": "c",
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": "admin", "groups": ["system:authenticated"]},
        "object": None if operation == "DELETE" else new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {
        "apiVersion": f"admission.k8s.io/{api}",
        "kind": "AdmissionReview",
        "request": request,
    }


DEFAULTS = Settings()


def fn_of(registry: Registry, settings: Settings = DEFAULTS) -> WebhookFn:
    """The function for servers, of an operator with these handlers."""
    nowhere = cast(Api, None)  # the handlers ask it nothing
    program = Program(tuple(registry.handlers), settings)
    runner = Runner(program, nowhere, seed="1", resolve=resolve, random=os.urandom)
    return answering(runner.review)


@dataclass(frozen=True)
class Answer:
    """A client's answer."""

    status: int
    text: str
    body: Any = None

    @property
    def response(self) -> dict[str, Any]:
        """The response in an AdmissionReview."""
        assert self.body["kind"] == "AdmissionReview", self.text
        found: dict[str, Any] = self.body["response"]
        return found


class Client:
    """Sends requests to a server of webhooks, as its configuration says."""

    def __init__(
        self, config: WebhookClientConfig, certificate: str | None = None
    ) -> None:
        url = config["url"]
        assert url is not None
        self.url = url
        parts = urlsplit(url)
        self.host, self.port = str(parts.hostname), parts.port or 443
        self.tls: ssl.SSLContext | bool = False
        if parts.scheme == "https":
            self.tls = trusting(config)
            if certificate is not None:
                self.tls.load_cert_chain(certificate)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(patience(20)),
            connector=aiohttp.TCPConnector(ssl=self.tls if self.tls else True),
        )
        return self

    async def __aexit__(self, *_: Any) -> None:
        assert self._session is not None
        await self._session.close()
        await asyncio.sleep(0)

    async def send(
        self,
        body: Any,
        path: str = "/",
        *,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a body: bytes as they are, anything else as JSON."""
        assert self._session is not None
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        # Files of bytes: aiohttp warns of other large bodies.
        async with self._session.request(
            method, self.url + path, headers=headers, data=BytesIO(data)
        ) as answer:
            is_json = answer.content_type == "application/json"
            return Answer(
                answer.status,
                await answer.text(),
                await answer.json() if is_json else None,
            )

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare connection, for input that is not HTTP."""
        return await asyncio.open_connection(self.host, self.port, ssl=self.tls or None)


def trusting(config: WebhookClientConfig) -> ssl.SSLContext:
    """TLS settings of a client that trusts the bundle and nothing else."""
    bundle = config["caBundle"]
    assert bundle is not None
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())


async def certificate_of(client: Client) -> bytes:
    """The certificate that a new connection is shown."""
    _, writer = await client.connect()
    shown = writer.get_extra_info("ssl_object").getpeercert(True)
    writer.close()
    await writer.wait_closed()
    assert isinstance(shown, bytes)
    return shown


@asynccontextmanager
async def serving(server: Any, fn: WebhookFn) -> AsyncIterator[AsyncIterator[Any]]:
    """A server, by Kopf's protocol: what it yields, until the block ends."""
    if hasattr(server, "__aenter__"):
        async with server:
            yield server(fn)
    else:
        found = server(fn)
        try:
            yield found
        finally:
            await found.aclose()


async def next_of(configs: AsyncIterator[T]) -> T:
    """The next thing that a server yields."""
    async with asyncio.timeout(patience(20)):
        return await anext(configs)
