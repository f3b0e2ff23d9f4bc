"""The door to a simulated world, for the threads of an operator's handlers.

The simulator has one thread, and the world changes only there. While a handler runs,
the simulator stands at the door: it does what the handler's threads ask for, one after
the other. So equal beginnings lead to equal ends.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue

__all__ = ["PATIENCE_SECONDS", "Door"]

# The longest time in which a handler may ask for nothing, in real seconds.
PATIENCE_SECONDS = 20.0


class Door:
    """The requests of other threads, in the order in which they come."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def ask(self, work: Callable[[], None]) -> None:
        """Let the simulator do something; from any thread, at once."""
        self._asked.put(work)

    def serve(
        self, is_done: Callable[[], bool], seconds: float = PATIENCE_SECONDS
    ) -> bool:
        """Do what is asked until `is_done`; False if nothing comes for too long."""
        while not is_done():
            try:
                work = self._asked.get(timeout=seconds)
            except Empty:
                return False
            work()
        return True
