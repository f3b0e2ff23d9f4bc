"""Turns: the handlers of one object are called one after the other, as in Kopf.

The core starts a handler of watch events next to other handlers of the same object.
Kopf's authors rely on their order, for example for values in a memo.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Turns"]


class Turns:
    """A queue for each object, by its uid. It is used on one event loop only."""

    def __init__(self) -> None:
        # The lock of each object, with the number of those that have it or wait for it.
        self._queues: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, uid: str) -> AsyncIterator[None]:
        """Wait until all who came before have left."""
        lock, count = self._queues.get(uid) or (asyncio.Lock(), 0)
        self._queues[uid] = lock, count + 1
        try:
            async with lock:
                yield
        finally:
            _, count = self._queues[uid]
            if count > 1:
                self._queues[uid] = lock, count - 1
            else:
                del self._queues[uid]

    def __contains__(self, uid: str) -> bool:
        return uid in self._queues

    def __len__(self) -> int:
        return len(self._queues)
