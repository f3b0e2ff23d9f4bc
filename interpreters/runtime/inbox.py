"""The inputs and the tasks of one running operator."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any

from fnop.core.seam.inputs import Input

__all__ = ["Inbox", "Tasks"]

# Watches are not read further once this number of inputs wait.
_INPUTS_MAX = 256


class Inbox:
    """The inputs on their way to the operator, in the order of their arrival."""

    __slots__ = ("_inputs", "_room", "_wake")

    def __init__(self) -> None:
        self._inputs: deque[Input] = deque()
        self._wake = asyncio.Event()
        # Set when watches may put more into the inbox.
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._inputs)

    def __iter__(self) -> Iterator[Input]:
        return iter(self._inputs)

    def put(self, input: Input) -> None:
        """Add an input at the end."""
        self._inputs.append(input)
        self._wake.set()

    def take(self) -> Input:
        """Remove the oldest input, and return it."""
        found = self._inputs.popleft()
        if len(self._inputs) < _INPUTS_MAX:
            self._room.set()
        return found

    async def wait(self) -> None:
        """Wait until something has arrived since the last wait."""
        await self._wake.wait()
        self._wake.clear()

    async def has_room(self) -> None:
        """Wait until watches may put more into the inbox."""
        while len(self._inputs) >= _INPUTS_MAX:
            self._room.clear()
            await self._room.wait()


class Tasks:
    """The tasks of one operator, which end with it."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine beside all others."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def cancel(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
        for task in tuple(self._running):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._running, return_exceptions=True)
