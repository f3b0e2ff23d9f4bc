"""Transports of connections, as asyncio has them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

__all__ = ["cut"]


def cut(transport: asyncio.BaseTransport | None) -> None:
    """Close a connection at once, and drop unsent data.

    Under Python 3.11.0 to 3.11.2 a TLS transport that was closed twice has no protocol
    left to abort, and fails.
    """
    if isinstance(transport, asyncio.WriteTransport):
        with suppress(AttributeError):
            transport.abort()
