"""SIGUSR1 during `fnop run`: it requests the recording, and never ends the run.

The default action of the signal is to kill the process. So fnop handles it from the
beginning to the end, with or without a recording.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.values.now import Now

if TYPE_CHECKING:
    from fnop.adapters.recordings.recording_files import Background, RingFiles
    from fnop.interpreters.recording.format.recorder import Recorder

__all__ = ["Asked", "AskedInSimulation", "harmless"]

_NO_RECORDING = (
    "SIGUSR1 asks for the recording, and there is none; begin one with "
    "`fnop run ... --record FILE`"
)


@contextmanager
def harmless() -> Iterator[None]:
    """Let SIGUSR1 do nothing, instead of ending the process; in the main thread.

    An ignored signal would be ignored in subprocesses, too: so it has a handler.
    """
    with _call_on_signal(lambda: None):
        yield


@contextmanager
def _call_on_signal(act: Callable[[], None]) -> Iterator[None]:
    """Let SIGUSR1 call a function, between any two instructions of the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "SIGUSR1"):  # Windows does not have it
        yield
        return
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: act())
    try:
        yield
    finally:
        # None is a handler that was not set by Python.
        signal.signal(signal.SIGUSR1, before or signal.SIG_DFL)


class Asked:
    """Write down a recorder's content when SIGUSR1 requests it.

    `path` is the recording; `tell` is called with the sentences.
    """

    def __init__(
        self,
        recorder: Recorder | RingFiles | Background | None,
        path: str | None,
        tell: Callable[[str], None],
    ) -> None:
        self._recorder, self._path, self._tell = recorder, path, tell

    @contextmanager
    def in_loop(self) -> Iterator[None]:
        """Answer between the steps of the running event loop."""
        loop = asyncio.get_running_loop()
        with _call_on_signal(lambda: _call_in_loop(loop, self.answer)):
            yield

    def answer(self) -> None:
        """Write it down, and report its place."""
        from fnop.adapters.recordings.recording_files import Background, RingFiles

        written = f"all of the run so far can be read in {self._path}"
        match self._recorder:
            case None:
                self._tell(_NO_RECORDING)
            case RingFiles() as ring:
                ring.dump("asked")
            case Background() as background:
                background.save(written)
            case recorder:
                recorder.save()
                problem = recorder.problem
                self._tell(
                    f"the recording has ended: {problem}" if problem else written
                )


def _call_in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(act)


class AskedInSimulation:
    """An observer that answers SIGUSR1 after the next step of a simulated run.

    The signal may come during a step's recording.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked, self._is_open = asked, False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signal within the block; answer it at its end at the latest."""
        with _call_on_signal(self._ask):
            yield
        self._answer()

    def _ask(self) -> None:
        self._is_open = True

    def observe(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        """Answer, if it was requested."""
        self._answer()

    def _answer(self) -> None:
        if self._is_open:
            self._is_open = False
            self._asked.answer()
