"""Handle Ctrl-C while the author's code runs.

Python raises a KeyboardInterrupt for it at any point of the main thread. An author's
code, or its library, may raise one, too. The first ends the process, the second is an
ordinary failure. SIGTERM, and the alarm at the end of a time limit, work the same way
if a command has given them Python's handler of Ctrl-C (`signal.default_int_handler`).
"""

from __future__ import annotations

import signal
import threading

# `signal.getsignal` makes an enum of each answer, at twenty times the cost.
from _signal import getsignal as _handler_of  # type: ignore[import-not-found]
from signal import default_int_handler
from threading import get_ident
from types import FrameType, TracebackType
from typing import NoReturn

__all__ = ["Interrupted", "interruptible"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed: the author's code has not raised it."""


# Windows has no alarm.
_NAMES = ("SIGINT", "SIGTERM", "SIGALRM")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class _Ear:
    """The handler of these signals within the outermost block."""

    def __init__(self) -> None:
        self.thread = get_ident()
        self.pressed: Interrupted | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self.pressed = Interrupted()
        raise self.pressed


# The ear of the main thread: other threads get no signals.
_ear: _Ear | None = None


class interruptible:
    """Raise `Interrupted` at the end of a block if Ctrl-C was pressed within it.

    It is also raised within the block, so that a handler which does not return is left.
    There it may be taken for an error of the handler. Nothing changes if SIGINT has
    another meaning than Python's own, as in a served operator. Nothing changes in other
    threads either, because Python sends them no signals. A block within another costs
    nearly nothing: a run of thousands of steps opens one around them all.
    """

    __slots__ = ("_is_outermost",)

    def __enter__(self) -> None:
        global _ear
        self._is_outermost = False
        # In the background no signal interrupts; in a served operator none does.
        if _ear is not None or default_int_handler not in map(_handler_of, _SIGNALS):
            return
        if threading.current_thread() is threading.main_thread():
            self._is_outermost, ear = True, _Ear()
            for number in _SIGNALS:
                if _handler_of(number) is default_int_handler:
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
                if _handler_of(number) is ear:
                    signal.signal(number, default_int_handler)
        if ear.pressed is not None:
            raise ear.pressed  # with its traceback, which shows where it was pressed
