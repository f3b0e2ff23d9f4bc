"""Operators' own webhook servers, which use the parts of Kopf's one."""

from __future__ import annotations

import asyncio
import base64
import doctest
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from multidict import CIMultiDict

import fnop
from fnop import kopf
from fnop.adapters.kopf.commands import webhooks as module
from fnop.core.handlers.declare.registry import Registry
from tests.webhook_servers import KIND, fn_of, review_of


class ServiceServer(kopf.WebhookServer):
    """A server with a further route; it is reached by a service."""

    async def __call__(self, fn: Any) -> AsyncIterator[kopf.WebhookClientConfig]:
        own: Any = self
        bundle, context = own._build_ssl()
        app = web.Application()

        async def serve(request: web.Request) -> web.Response:
            answer: web.Response = await own._serve(fn, request)
            return answer

        async def convert(_: web.Request) -> web.Response:
            return web.json_response({"converted": True})

        app.add_routes([web.post("/convert", convert), web.post("/{id:.*}", serve)])
        runner = web.AppRunner(app, handle_signals=False)
        await runner.setup()
        try:
            port = self.port or own._allocate_free_port()
            site = web.TCPSite(runner, self.addr, port, ssl_context=context)
            await site.start()
            scheme = "http" if context is None else "https"
            host = own.host or own.DEFAULT_HOST or own._get_accessible_addr(self.addr)
            found = kopf.WebhookClientConfig(
                url=own._build_url(scheme, host, port, self.path or "")
            )
            if bundle is not None:
                found["caBundle"] = base64.b64encode(bundle).decode()
            yield found
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()


async def _review(request: Any, **more: Any) -> dict[str, Any]:
    return {"got": request, "webhook": more["webhook"], "peer": more["sslpeer"]}


@pytest.mark.parametrize("insecure", [False, True])
async def test_a_subclass_serves_by_the_parts_of_the_server(
    tmp_path: Path, insecure: bool
) -> None:
    dump = tmp_path / "ca.pem"
    server = ServiceServer(addr="127.0.0.1", insecure=insecure, cadump=dump)
    serving: Any = server(_review)
    config = await anext(serving)
    bundle = base64.b64decode(config.get("caBundle") or "")
    trust: Any = True
    if not insecure:
        trust = ssl.create_default_context(cadata=bundle.decode())
        assert dump.read_bytes() == bundle
    async with aiohttp.ClientSession() as session:
        url = f"{config['url']}/a/b"
        async with session.post(url, json={"x": 1}, ssl=trust) as answer:
            found = await answer.json()
        assert found == {"got": {"x": 1}, "webhook": "a/b", "peer": {}}
        async with session.post(url, data="{", ssl=trust) as answer:
            assert answer.status == 400
        async with session.post(f"{config['url']}/convert", ssl=trust) as answer:
            assert await answer.json() == {"converted": True}
    await serving.aclose()


async def test_the_parts_read_the_files_of_a_certificate(tmp_path: Path) -> None:
    made: Any = kopf.WebhookServer(addr="127.0.0.1")
    bundle, pair = made._issued(["localhost"])
    certificate, key, authority = (tmp_path / each for each in ("crt", "key", "ca"))
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    authority.write_bytes(bundle)
    server: Any = kopf.WebhookServer(certfile=certificate, pkeyfile=key)
    assert server._build_ssl()[0] == pair.certificate
    server = kopf.WebhookServer(certfile=certificate, pkeyfile=key, cafile=authority)
    server.verify_cafile = authority
    found, context = server._build_ssl()
    assert found == bundle
    assert context.verify_mode is ssl.CERT_OPTIONAL
    wrong: Any = kopf.WebhookServer(insecure=True, context=context)
    with pytest.raises(ValueError, match="insecure=True takes no context="):
        wrong._build_ssl()


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(module)
    assert (found.attempted, found.failed) == (1, 0)


async def test_the_headers_of_an_own_server_are_plain_texts() -> None:
    registry = Registry()
    seen: list[type] = []

    @fnop.on.validate(KIND, registry=registry, id="looked")
    def looked(headers: Any, **_: Any) -> None:
        seen.extend(type(each) for pair in headers.items() for each in pair)

    headers = CIMultiDict({"Content-Type": "application/json"})
    await fn_of(registry)(review_of(), webhook="looked", headers=dict(headers))
    assert seen == [str, str]
