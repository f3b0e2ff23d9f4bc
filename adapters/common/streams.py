r"""Standard streams that take any text and never raise, for all commands.

A terminal may lack characters, a stream may be closed from the beginning, and the
reader of a pipe may stop before its end. None of these is an error of the command, or
of an author's `print`:

- A character that the stream's encoding lacks is written as JSON escapes it.  JSON has
  such characters in strings only, so it stays the same JSON in any encoding.
- A closed stream is replaced by /dev/null.
- What cannot be written is dropped, and noted.  The command ends at its next sentence:
  silently if the reader has stopped, as SIGPIPE would end it.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, TypeVar

__all__ = ["EXIT_UNREAD", "end_if_lost", "prepared", "status_after", "takes"]

_T = TypeVar("_T")

# SIGPIPE ends other commands; shells report it as 128 plus its number.
EXIT_UNREAD = 141
_EXIT_ERROR = 1
_ESCAPES = "fnop.json-escapes"


def _escape_characters(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    found = problem.object[problem.start : problem.end]
    return json.dumps(found)[1:-1], problem.end


codecs.register_error(_ESCAPES, _escape_characters)


class _Output(io.FileIO):
    """The file of a stream; after the first failure it drops further output."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self._former = stream  # otherwise it closes the file when it is collected
        self.problem: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write all of it; wait for a non-blocking file."""
        left = whole = memoryview(data).cast("B")
        while left and self.problem is None:
            try:
                done = super().write(left)
            except OSError as problem:
                self.problem = problem
            else:
                if done is None:
                    select.select((), (self,), ())
                left = left[done or 0 :]
        return len(whole)


@contextmanager
def prepared() -> Iterator[None]:
    """Prepare the standard streams; the block's exit status reports lost output."""
    if sys.stdin is None:  # it was closed when Python began
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout, sys.stderr = (
        _stream_with_escapes(sys.stdout),
        _stream_with_escapes(sys.stderr),
    )
    try:
        yield
    except SystemExit as end:
        end.code = status_after(end.code)
        raise


def _stream_with_escapes(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8", errors=_ESCAPES)
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors=_ESCAPES)
    # A Windows console, and a stream that a test captures, are not such files.
    if type(getattr(stream.buffer, "raw", stream.buffer)) is not io.FileIO:
        return stream
    stream.flush()
    raw = _Output(stream)
    return io.TextIOWrapper(
        # Without a buffer in between if Python should have none (python -u).
        raw if stream.write_through else io.BufferedWriter(raw),
        stream.encoding,
        _ESCAPES,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def status_after(status: _T) -> _T | int:
    """Flush the output: the command's own exit status, if no output is lost."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # an author has closed or replaced it
            stream.flush()
    problem = _problem(sys.stdout)
    return _status(problem) if problem else status


def end_if_lost(stream: TextIO) -> None:
    """End the command if output to a stream is lost."""
    if problem := _problem(stream):
        sys.exit(_status(problem))


def _problem(stream: TextIO) -> OSError | None:
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return raw.problem if isinstance(raw, _Output) else None


def _status(problem: OSError) -> int:
    """The exit status for lost output; print a sentence unless it is a pipe."""
    if problem.errno == errno.EPIPE:
        return EXIT_UNREAD
    sys.stderr.write(f"fnop: the output cannot be written: {problem.strerror}\n")
    return _EXIT_ERROR


def takes(stream: TextIO, text: str) -> bool:
    """Whether the encoding of a stream has all the characters of a text.

    >>> takes(io.TextIOWrapper(io.BytesIO(), encoding="latin-1"), "\u6f22")
    False
    """
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
