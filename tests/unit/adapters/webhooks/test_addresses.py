"""Servers of webhooks that are reached at another address than their own."""

from __future__ import annotations

import base64
import ssl
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest

from fnop.adapters.webhooks.addresses import Address
from fnop.adapters.webhooks.server_at import server_at
from tests.commands import closed_port


async def answer(request: Any, *, webhook: str | None = None, **_: Any) -> Any:
    return {"asked": webhook, **request}


@pytest.mark.parametrize("path", ["", "/base", "/base/of/it/"])
async def test_what_is_registered_leads_to_the_webhook(path: str) -> None:
    port = closed_port()
    url = f"https://localhost:{port}{path}"
    server = server_at(Address(f"127.0.0.1:{port}", {"url": url}))
    async with aclosing(server(answer)) as clients:
        found = await anext(clients)
        assert found["url"] == url
        trust = ssl.create_default_context(
            cadata=base64.b64decode(found["caBundle"]).decode()
        )
        # As a configuration has it: with the webhook's name at the end.
        place = f"{url.rstrip('/')}/judge"
        async with (
            aiohttp.ClientSession() as session,
            session.post(place, json={"a": 1}, ssl=trust) as response,
        ):
            assert await response.json() == {"asked": "judge", "a": 1}


async def test_a_service_s_certificate_has_its_names() -> None:
    port = closed_port()
    service = {"namespace": "prod", "name": "claims", "port": 8443}
    server = server_at(Address(f"127.0.0.1:{port}", {"service": service}))
    assert server.store is None
    async with aclosing(server(answer)) as clients:
        found = await anext(clients)
        assert found["service"] == service
        trust = ssl.create_default_context(
            cadata=base64.b64decode(found["caBundle"]).decode()
        )
        async with aiohttp.ClientSession() as session:
            for name in ("claims.prod.svc", "claims.prod.svc.cluster.local"):
                async with session.post(
                    f"https://127.0.0.1:{port}/judge",
                    json={},
                    ssl=trust,
                    server_hostname=name,
                ) as response:
                    assert await response.json() == {"asked": "judge"}
