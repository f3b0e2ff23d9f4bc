"""Whether webhooks are served at an address."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from fnop.adapters.webhooks import liveness
from fnop.adapters.webhooks.liveness import is_served
from fnop.adapters.webhooks.server import WebhookServer
from tests.commands import closed_port
from tests.patience import patience


async def unasked(request: Any, **_: Any) -> dict[str, Any]:
    raise AssertionError("nobody sends a review")


@asynccontextmanager
async def served(**how: Any) -> AsyncIterator[Any]:
    """A client configuration, as the API server has it of one webhook."""
    server = WebhookServer(addr="127.0.0.1", **how)
    serving: Any = server(unasked)
    async with server, aclosing(serving) as clients:
        client = await anext(clients)
        yield {**client, "url": f"{client['url']}/judge"}


async def test_a_server_is_there_until_it_is_closed() -> None:
    async with served(path="/hooks") as client:
        assert await is_served(client)
    assert not await is_served(client)


async def test_one_that_wants_a_certificate_of_its_clients_is_there() -> None:
    async with served(verify_mode=ssl.CERT_REQUIRED) as client:
        assert await is_served(client)
    assert not await is_served(client)


async def test_another_program_at_its_port_is_not_it() -> None:
    async with served() as former, served() as other:
        assert not await is_served({**former, "url": other["url"]})


async def test_without_an_authority_the_machine_s_are_trusted() -> None:
    async with served() as client:
        assert not await is_served({"url": client["url"]})
        assert not await is_served({**client, "caBundle": "none"})


@pytest.mark.parametrize(("status", "there"), [(404, True), (502, False)])
async def test_a_tunnel_may_have_lost_its_other_end(
    monkeypatch: pytest.MonkeyPatch, status: int, there: bool
) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(status=status)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    try:
        port = closed_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        url = f"http://127.0.0.1:{port}/judge"
        monkeypatch.setattr(liveness, "SECONDS", patience(2))
        assert await is_served({"url": url}) is there
    finally:
        await runner.cleanup()
