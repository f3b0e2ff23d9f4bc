"""Ctrl-C while the author's code runs.

Python tells of it by a KeyboardInterrupt, wherever the main thread is; and an author's
code, or its library, may raise one, too.  The first ends the process, the second is a
failure like others.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Interrupted", "interruptible"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed: no author's code has raised it."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` at the end of a block in which Ctrl-C was pressed.

    Within the block it is raised, too, so that a handler which does not return is left;
    there it may be taken for an error of the handler.  Where SIGINT has another
    meaning than Python's own, as in a served operator, or in another thread, to which
    Python sends no signal, nothing changes.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    pressed: Interrupted | None = None

    def hear(_number: int, _frame: object) -> None:
        nonlocal pressed
        pressed = Interrupted()
        raise pressed

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is hear:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if pressed is not None:
            raise pressed  # with its traceback: that is where it was pressed
