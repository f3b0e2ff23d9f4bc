"""Ctrl-C while the author's code runs.

Python tells of it by a KeyboardInterrupt, wherever the main thread is; and an author's
code, or its library, may raise one, too.  The first ends the process, the second is a
failure like others.  SIGTERM, and the alarm at the end of a time, are the same where a
command has given them Python's handler of Ctrl-C (`signal.default_int_handler`).
"""

from __future__ import annotations

import signal
import threading
from threading import get_ident
from types import FrameType, TracebackType
from typing import NoReturn

__all__ = ["Interrupted", "interruptible"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed: no author's code has raised it."""


# Windows has no alarm.
_NAMES = ("SIGINT", "SIGTERM", "SIGALRM")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


def _interrupts(number: int) -> bool:
    """Whether a signal is told by a KeyboardInterrupt; one in the background is not."""
    return signal.getsignal(number) is signal.default_int_handler


class _Ear:
    """The handler of these signals within the outermost block."""

    def __init__(self) -> None:
        self.thread = get_ident()
        self.pressed: Interrupted | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self.pressed = Interrupted()
        raise self.pressed


# The ear of the main thread: no other gets signals.
_ear: _Ear | None = None


class interruptible:
    """Raise `Interrupted` at the end of a block in which Ctrl-C was pressed.

    Within the block it is raised, too, so that a handler which does not return is left;
    there it may be taken for an error of the handler.  Where SIGINT has another
    meaning than Python's own, as in a served operator, or in another thread, to which
    Python sends no signal, nothing changes.  A block within another costs nearly
    nothing: a run of thousands of steps opens one around them all.
    """

    __slots__ = ("_is_outermost",)

    def __enter__(self) -> None:
        global _ear
        self._is_outermost = (
            _ear is None
            and threading.current_thread() is threading.main_thread()
            and any(map(_interrupts, _SIGNALS))
        )
        if self._is_outermost:
            ear = _Ear()
            for number in filter(_interrupts, _SIGNALS):
                signal.signal(number, ear)
            _ear = ear

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        steps: TracebackType | None,
    ) -> None:
        global _ear
        ear = _ear
        if ear is None or ear.thread != get_ident():
            return
        if self._is_outermost:
            _ear = None
            for number in _SIGNALS:
                if signal.getsignal(number) is ear:
                    signal.signal(number, signal.default_int_handler)
        if ear.pressed is not None:
            raise ear.pressed  # with its traceback: that is where it was pressed
