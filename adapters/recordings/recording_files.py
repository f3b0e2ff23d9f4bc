"""The files that recordings are written to; only their owner may read them."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import orjson
from msgspec import Struct

from fnop.effects.structs import replace

if sys.platform != "win32":
    import fcntl

import fnop
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command, Perform, Subject
from fnop.core.seam.inputs import Answered, Input
from fnop.core.values.errors import number_of
from fnop.core.values.now import Now
from fnop.interpreters.recording.format.blocks import is_block
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.format.ring import (
    SIZE_BYTES,
    Failure,
    Ring,
    Step,
    failure_in,
    size_of,
)
from fnop.interpreters.recording.redaction import Redaction

__all__ = [
    "Background",
    "RingFiles",
    "is_compressed",
    "opened",
    "recorder_to",
]

# A handler that fails again and again is worth one file a minute, not thousands.
_PAUSE_SECONDS = 60.0
_FILES_MAX = 20
# The seconds to wait for answers to requests about a failure's object.
_ANSWER_SECONDS = 5.0
_UNWRITTEN = "the recording cannot be written: {}"


def opened(path: Path) -> BinaryIO:
    """An empty file that only its owner may read, and no other process writes.

    Raises `OSError`, also for a pipe without a reader, and for a file that another
    process has opened in this way.
    """
    file = _open_locked(path)
    if _is_regular(file):
        file.truncate(0)
    return file


def _open_locked(path: Path) -> BinaryIO:
    """A file to be written by this process alone, with its present content."""
    # Without O_NONBLOCK the opening of a pipe would wait for a reader.
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    while True:
        try:
            file = os.fdopen(os.open(path, flags, 0o600), "wb")
        except OSError as problem:
            if problem.errno == errno.ENXIO:
                raise OSError(f"{path} is a pipe, and nobody reads it") from None
            raise
        try:
            if sys.platform == "win32":  # has no such pipes, modes and locks
                return file
            os.set_blocking(file.fileno(), True)
            if not _is_regular(file):
                return file
            _lock(file, path)
            if _is_at(path, file):
                os.fchmod(file.fileno(), 0o600)
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # it has been renamed since


def _is_regular(file: BinaryIO) -> bool:
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other processes from writing the file; the lock ends with this process."""
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileExistsError(
            f"{path} is being written by another process: give each a name of its own"
        ) from None
    except OSError:
        pass  # some file systems have no locks


def _is_at(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def recorder_to(
    path: Path,
    program: Program,
    redaction: Redaction,
    tell: Callable[[str], None] = lambda sentence: None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Recorder:
    """The recorder of a run from its beginning; the header has `more`, too.

    An earlier recording in that file, such as that left by a crashed process, gets a
    number, `run.1.fnop`, and `tell` is called with a sentence about it. Raises
    `OSError`, also for a file that is not a recording, and for a file that another
    process is writing.
    """
    while True:
        file = _open_locked(path)
        try:
            if not _is_regular(file) or not path.stat().st_size:
                header = {**header_of(program, fnop.__version__), **more}
                return Recorder(file, header, redaction)
            kept = _rename_recording(path)
        except BaseException:
            file.close()
            raise
        file.close()
        tell(f"the recording that was in {path} is in {kept} now")


def _rename_recording(path: Path) -> Path:
    """The recording in a file, under the first free number."""
    if not is_compressed(path):
        raise FileExistsError(
            f"{path} is there, and is not a recording: give another name"
        )
    for number in count(1):
        kept = path.with_name(f"{path.stem}.{number}{path.suffix}")
        try:
            kept.touch(0o600, exist_ok=False)  # a rename replaces an existing file
        except FileExistsError:
            continue
        return path.rename(kept)
    raise AssertionError("numbers do not end")


def is_compressed(path: Path) -> bool:
    """Whether a file begins as a recording does."""
    with path.open("rb") as file:
        return is_block(file.read(4))


class _Reviewed(Struct, frozen=True):
    """A review that waits to be written."""

    now: Now
    review: dict[str, Any]
    decision: dict[str, Any]


class Background:
    """Let a recorder write in a thread of its own: the run never waits for a disk.

    At most `size` bytes of steps, by an estimate, wait to be written. If there are
    more, the following ones are dropped, and the recording has a gap with their number.
    `tell` is called with a sentence if the recording ends before the run.
    """

    def __init__(
        self,
        recorder: Recorder,
        tell: Callable[[str], None],
        size: int = SIZE_BYTES,
    ) -> None:
        self._recorder, self._tell = recorder, tell
        self._limit, self._waiting, self._dropped = size, 0, 0
        # A step, a number of dropped ones, or a sentence for the time when all is
        # written.
        self._steps: deque[tuple[Step | _Reviewed | int | str, int]] = deque()
        self._changed = threading.Condition()
        self._is_over = False
        self._late: Exception | None = None
        self._thread = threading.Thread(
            target=self._write, name="fnop-recording", daemon=True
        )
        self._thread.start()

    @property
    def problem(self) -> Exception | None:
        """The reason why the recording is incomplete, if it is."""
        return self._late or self._recorder.problem

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Queue one step for writing, or count it as dropped."""
        if self.problem is not None:
            return
        size = size_of(input, commands)
        with self._changed:
            if self._waiting + size > self._limit:
                self._dropped += 1
                return
            self._tell_gap()
            self._steps.append((Step(now, input, commands), size))
            self._waiting += size
            if len(self._steps) == 1:
                self._changed.notify()

    def reviewed(
        self, now: Now, review: dict[str, Any], decision: dict[str, Any]
    ) -> None:
        """Queue a review for writing, unless the disk is too slow."""
        if self.problem is not None:
            return
        size = len(orjson.dumps(review)) + len(orjson.dumps(decision))
        with self._changed:
            if self._waiting + size > self._limit:
                return
            self._steps.append((_Reviewed(now, review, decision), size))
            self._waiting += size
            if len(self._steps) == 1:
                self._changed.notify()

    def save(self, sentence: str) -> None:
        """Make everything so far readable in the file; then report the sentence."""
        if self.problem is not None:
            self._tell(f"the recording has ended: {self.problem}")
            return
        with self._changed:
            self._tell_gap()
            self._steps.append((sentence, 0))
            self._changed.notify()

    def _tell_gap(self) -> None:
        if self._dropped:
            self._steps.append((self._dropped, 0))
            self._dropped = 0

    def _write(self) -> None:
        """Write the queue, and once a second the content of the recorder."""
        while True:
            with self._changed:
                if not self._steps and not self._is_over:
                    self._changed.wait(_FLUSH_SECONDS)
                if not self._steps and self._is_over:
                    return
                item, size = self._steps.popleft() if self._steps else (None, 0)
                self._waiting -= size
            self._take(item)
            if self._recorder.problem is not None:
                self._tell(f"the recording ends here: {self._recorder.problem}")
                return

    def _take(self, item: Step | _Reviewed | int | str | None) -> None:
        match item:
            case None:
                self._recorder.save()
            case str(sentence):
                self._recorder.save()
                if self._recorder.problem is None:
                    self._tell(sentence)
            case int(count):
                self._recorder.gap(count)
            case Step(now, input, commands):
                self._recorder.observe(now, input, commands)
            case _Reviewed(now, review, decision):
                self._recorder.reviewed(now, review, decision)

    def close(self) -> None:
        """Write the rest and close the file; do not wait for a disk that hangs."""
        with self._changed:
            self._tell_gap()
            self._is_over = True
            self._changed.notify()
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive():
            self._late = TimeoutError(
                f"its disk did not take it in {_CLOSE_SECONDS:g} s"
            )
        else:
            self._recorder.close()


_FLUSH_SECONDS = 1.0
_CLOSE_SECONDS = 30.0


class _Due(Struct, frozen=True):
    """A failure that is written down once its object's status reports it.

    That is, once later requests for its object have been answered.
    """

    why: str
    subject: Subject | None
    by: float
    is_asked: bool = False
    unanswered: frozenset[int] = frozenset()

    def after(self, input: Input, commands: Iterable[Command]) -> _Due:
        """The same failure after one more step."""
        requests = {
            each.id
            for each in commands
            if isinstance(each, Perform) and each.subject == self.subject
        }
        answered = {input.id} if isinstance(input, Answered) else set()
        return replace(
            self,
            is_asked=self.is_asked or bool(requests),
            unanswered=(self.unanswered | requests) - answered,
        )

    def is_over(self, now: Now) -> bool:
        is_told = self.subject is None or (self.is_asked and not self.unanswered)
        return is_told or now.mono > self.by


class RingFiles:
    """The last part of a run, written to a folder after a failure, or on request.

    It is written in a thread of its own. `tell` is called with a sentence for each
    file. Raises `OSError` if the folder cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        program: Program,
        fields: Sequence[str],
        tell: Callable[[str], None],
        ring: Ring | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder, self._program, self._fields = folder, program, fields
        self._tell = tell
        # Digests of the code at the start: a file may change later.
        self._header = header_of(program, fnop.__version__)
        self.ring = Ring() if ring is None else ring
        self._threads: list[threading.Thread] = []
        self._failures = 0
        self._failed_at = float("-inf")
        self._due: _Due | None = None
        self._now = Now(0.0, 0.0)
        # A recorder may have one: this one writes nothing of the run itself.
        self.problem: Exception | None = None

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Remember one step; write the last ones if it shows a failure."""
        self._now = now
        self.ring.observe(now, input, commands)
        match failure_in(commands):
            case Failure("ended" as why):
                self._write_due()
                self.dump(why)
            case Failure(why, subject) if self._is_worth_a_file(now):
                self._failures, self._failed_at = self._failures + 1, now.mono
                self._due = _Due(why, subject, now.mono + _ANSWER_SECONDS)
            case _:
                pass
        if self._due is not None:
            self._due = self._due.after(input, commands)
            if self._due.is_over(now):
                self._write_due()

    def _is_worth_a_file(self, now: Now) -> bool:
        is_pausing = now.mono - self._failed_at < _PAUSE_SECONDS
        return not is_pausing and self._failures < _FILES_MAX

    def _write_due(self) -> None:
        if self._due is not None:
            due, self._due = self._due, None
            self.dump(due.why)

    def dump(self, why: str) -> None:
        """Write the remembered steps now; `why` becomes a part of the file's name.

        If a folder cannot be written to, that is reported, and the run continues.
        """
        steps, dropped = self.ring.steps(), self.ring.dropped
        moment = datetime.fromtimestamp(self._now.wall, UTC).strftime("%Y%m%dT%H%M%SZ")
        name = f"{self._program.settings.operator}-{moment}-{why}"
        try:
            path = self._create_file(name)
        except OSError as problem:
            self._tell(_UNWRITTEN.format(problem))
            return
        thread = threading.Thread(
            target=self._write, args=(path, [*steps], dropped), name="fnop-recording"
        )
        self._threads.append(thread)
        thread.start()

    def _create_file(self, name: str) -> Path:
        """An empty file of that name; of another one if such a file exists.

        If another program has removed the folder, it is made again. Raises `OSError`.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        number, path = 1, self._folder / f"{name}.fnop"
        while path.exists():
            number += 1
            path = self._folder / f"{name}-{number}.fnop"
        path.touch(mode=0o600)  # reserved, also before the thread begins
        return path

    def _write(self, path: Path, steps: Sequence[Step], dropped: int) -> None:
        try:
            redaction = Redaction(secrets.token_bytes(16), self._program, self._fields)
            header = self._header | ({"dropped": dropped} if dropped else {})
            recorder = Recorder(opened(path), header, redaction)
            for now, input, commands in steps:
                recorder.observe(now, input, commands)
            recorder.close()
        except OSError as problem:
            self._tell(_UNWRITTEN.format(problem))
            return
        if recorder.problem is not None:
            self._tell(f"the recording {path} is not complete: {recorder.problem}")
            return
        count = number_of(len(steps), "step")
        self._tell(f"the last {count} of the run are recorded in {path}")

    def close(self) -> None:
        """Wait until all files are written."""
        self._write_due()
        for thread in self._threads:
            thread.join()
