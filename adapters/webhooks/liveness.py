"""Whether the webhooks at an address are served, as the API server would find it."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp

__all__ = ["is_served"]

# A process that takes longer does not answer the API server in time, either.
SECONDS = 2.0


async def is_served(client: Mapping[str, Any]) -> bool:
    """Whether a server answers at the `url` of a client configuration.

    A server error comes from a tunnel whose other end is gone.
    """
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    url = f"{client['url']}/healthz"
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, ssl=_trust(client), allow_redirects=False) as response,
        ):
            return response.status < 500
    except (aiohttp.ClientError, OSError, ValueError) as problem:
        return _sends_us_away(problem)


def _sends_us_away(problem: Exception) -> bool:
    """Whether a server was there, which may require a client certificate.

    It sends an alert then, or ends the connection.
    """
    cause = getattr(problem, "os_error", problem)
    is_ended = isinstance(cause, ConnectionResetError | aiohttp.ServerDisconnectedError)
    return is_ended or "alert" in str(cause).lower()


def _trust(client: Mapping[str, Any]) -> ssl.SSLContext:
    """The authorities of a webhook: its own, or the machine's."""
    bundle = client.get("caBundle")
    if not bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
