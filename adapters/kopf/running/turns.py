"""Turns: the handlers of one object are called one after the other, as in Kopf.

The core starts a handler of watch events next to other handlers of the same object.
Kopf's authors rely on their order, for example for values in a memo. They also rely on
`settings.queueing.worker_limit`, the number of objects of a kind that may have their
turn at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from fnop.adapters.kopf.declaring.settings import QueueingSettings

__all__ = ["Turns"]


class Turns:
    """A queue for each object, by its uid. It is used on one event loop only."""

    def __init__(self, settings: QueueingSettings) -> None:
        self._settings = settings
        # The lock of each object, with the number of those that have it or wait for it.
        self._queues: dict[str, tuple[asyncio.Lock, int]] = {}
        # The workers of each kind that has had a limit.
        self._workers: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def of(self, uid: str, kind: str) -> AsyncIterator[None]:
        """Wait until those before have left, and a worker of the kind is free."""
        lock, count = self._queues.get(uid) or (asyncio.Lock(), 0)
        self._queues[uid] = lock, count + 1
        try:
            async with lock, self._workers_of(kind) or nullcontext():
                yield
        finally:
            _, count = self._queues[uid]
            if count > 1:
                self._queues[uid] = lock, count - 1
            else:
                del self._queues[uid]

    def are_free(self, uid: str, kind: str) -> bool:
        """Whether a call about an object would begin at once."""
        workers = self._workers_of(kind)
        return uid not in self._queues and (workers is None or not workers.locked())

    def _workers_of(self, kind: str) -> asyncio.Semaphore | None:
        """The workers of a kind; None if there is no limit.

        As in Kopf, a later change of the setting does not count for the kind.
        """
        limit = self._settings.worker_limit
        if limit is not None and kind not in self._workers:
            self._workers[kind] = asyncio.Semaphore(limit)
        return self._workers.get(kind)

    def __len__(self) -> int:
        return len(self._queues)
