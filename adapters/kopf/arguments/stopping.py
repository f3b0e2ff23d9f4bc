"""The argument `stopped` of Kopf's daemons and timers."""

from __future__ import annotations

import asyncio
import enum
import threading
from typing import Any

__all__ = ["DaemonStopped", "DaemonStoppingReason"]


class DaemonStoppingReason(enum.Flag):
    """Why a daemon is to stop, and the stages of its end, as in `stopped.reason`."""

    DONE = enum.auto()
    FILTERS_MISMATCH = enum.auto()
    RESOURCE_DELETED = enum.auto()
    OPERATOR_PAUSING = enum.auto()
    OPERATOR_EXITING = enum.auto()
    DAEMON_SIGNALLED = enum.auto()
    DAEMON_CANCELLED = enum.auto()
    DAEMON_ABANDONED = enum.auto()


class DaemonStopped:
    """Whether a daemon is to stop: true or false, and something to wait for.

    A function waits by `stopped.wait(seconds)`, and a coroutine awaits it. Both return
    something that is true once the daemon is to stop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        # The event loop of a coroutine; None for a thread.
        self._loop = loop
        self._flag = threading.Event()
        self._event = asyncio.Event() if loop is not None else None
        self.reason: DaemonStoppingReason | None = None

    def set(self, reason: str) -> None:
        """Ask the daemon to stop, with a reason of fnop's; from any thread.

        Any other word counts as a cancellation: the core cancels calls with its own.
        """
        reasons = DaemonStoppingReason.__members__
        self.add(reasons.get(reason.upper(), DaemonStoppingReason.DAEMON_CANCELLED))
        self._flag.set()
        if self._loop is not None and self._event is not None:
            self._loop.call_soon_threadsafe(self._event.set)

    def add(self, reason: DaemonStoppingReason) -> None:
        """Note a reason, or a stage of its end, in addition to those before."""
        self.reason = reason if self.reason is None else self.reason | reason

    @property
    def is_abandoned(self) -> bool:
        """Whether it was cancelled, and did not end in time."""
        reason = self.reason
        return reason is not None and DaemonStoppingReason.DAEMON_ABANDONED in reason

    def is_set(self) -> bool:
        """Whether the daemon is to stop."""
        return self._flag.is_set()

    def __bool__(self) -> bool:
        return self.is_set()

    def __await__(self) -> Any:
        return self._awaited(None).__await__()

    def wait(self, timeout: float | None = None) -> Any:
        """Wait until the daemon is to stop, at most `timeout` seconds."""
        if self._event is not None:
            return self._awaited(timeout)
        self._flag.wait(timeout)
        return self

    async def _awaited(self, timeout: float | None) -> DaemonStopped:
        assert self._event is not None, "only coroutines await it"
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            pass
        return self

    def __repr__(self) -> str:
        reason = "no" if self.reason is None else self.reason.name
        return f"<{type(self).__name__}: {reason}>"
