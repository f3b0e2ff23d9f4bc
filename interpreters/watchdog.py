"""Names a handler that does not come back.

A handler is driven on the loop's own thread, so one that blocks, or runs in a circle,
holds up everything.  Nobody can end it; but a thread beside can tell where it is.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType

__all__ = ["Watchdog"]

# So long may a step take before it is named; and again after as long.
PATIENCE_SECONDS = 5.0


class Watchdog:
    """Watches the thread that makes it, from `begin` to `end` of each step."""

    def __init__(
        self, say: Callable[[str], None], patience: float = PATIENCE_SECONDS
    ) -> None:
        self._say = say
        self._patience = patience
        self._thread = threading.get_ident()
        self._step = 0  # odd while one is under way
        self._over = threading.Event()
        watch = threading.Thread(target=self._watch, name="fnop-watchdog", daemon=True)
        watch.start()

    def begin(self) -> None:
        self._step += 1

    def end(self) -> None:
        self._step += 1

    def close(self) -> None:
        """Stop watching."""
        self._over.set()

    def _watch(self) -> None:
        seen, since = self._step, 0
        while not self._over.wait(self._patience):
            if self._step != seen or not seen % 2:
                seen, since = self._step, 0
                continue
            since += 1
            where = _innermost(sys._current_frames().get(self._thread))
            seconds = since * self._patience
            self._say(
                f"the operator stands still for {seconds:g} s, at {where}; move slow "
                "work into fnop.call, or into an impure handler"
            )


def _innermost(frame: FrameType | None) -> str:
    """Where a thread is: the last place outside of the standard library."""
    places = traceback.extract_stack(frame) if frame is not None else []
    for place in reversed(places):
        if "/lib/python" not in place.filename.replace("\\", "/"):
            return f"{place.filename}:{place.lineno} in {place.name}"
    return "an unknown place"
