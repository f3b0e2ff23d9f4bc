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
    # uvloop's transports share no class with asyncio's.
    abort = getattr(transport, "abort", None)
    if abort is not None:
        with suppress(AttributeError):
            abort()
