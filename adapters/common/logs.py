"""Log lines for people and for collectors, through the standard `logging`.

Lines about an object come from the logger `fnop.objects`, the others from `fnop`. Lines
that operators log from their own modules take the same form.

Errors are shown as far as they concern the author's code. A traceback begins with the
first line of the author's code and ends with the last. If it has no such line, the
sentence is enough. An error that fnop itself did not expect is shown whole. A failed
connection is not a mistake in a program. It is logged as one line, with the place,
unless details are asked for.

Every record is one line of text, with any content (`fnop.adapters.common.plain`). Only
tracebacks have several lines, and those are indented. URLs have no user and no
password.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from opcode import opmap
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TextIO

import orjson

from fnop.adapters.common.loading import authors_place, is_authors_file
from fnop.adapters.common.plain import block, json_line, one_line
from fnop.adapters.common.tracebacks import (
    begin_at_author,
    has_author,
    is_of_fnop,
    steps_of,
)
from fnop.core.values.errors import CallFailed, described, shortened
from fnop.effects.values import without_userinfo

if TYPE_CHECKING:
    from fnop.core.seam.commands import Say

__all__ = ["Console", "configure", "in_span", "write"]

Level = Literal["debug", "verbose", "info", "warning"]
Format = Literal["text", "plain", "full", "json"]

_LEVELS = {
    "debug": logging.DEBUG,
    "verbose": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_SEVERITIES = {number: name for name, number in _LEVELS.items() if name != "verbose"}
# Dim, yellow, red; ordinary lines have no colour.
_COLOURS = {logging.DEBUG: "2", logging.WARNING: "33", logging.ERROR: "31"}
# An author's line is shown with its place in a chain of errors, whose texts may be
# whole responses of a server.
_TRACEBACK_LENGTH_MAX = 32_000
_OPERATOR = logging.getLogger("fnop")
_OBJECTS = logging.getLogger("fnop.objects")


def configure(
    *,
    level: Level | str,
    format: Format | str,
    prefix: bool | None,
    stream: TextIO | None = None,
) -> Console:
    """Send the log of this process to a stream (standard error if None).

    The level `verbose` is `debug` for fnop and the operator, and `info` for all others.
    `prefix` begins each line with its object; None means: unless the format has the
    object anyway. After another call, the log goes only to the new stream.
    """
    stream = sys.stderr if stream is None else stream
    if prefix is None:
        prefix = format != "json"
    formatter = (
        _JsonFormatter(prefix)
        if format == "json"
        else _TextFormatter(format, prefix, _wants_colours(stream))
    )
    handler = _Handler(stream)
    if level == "verbose":
        handler.addFilter(_is_of_use)
    return Console(_LEVELS[level], handler, formatter)


def _is_of_use(record: logging.LogRecord) -> bool:
    """Whether a line is more than debug output of a library."""
    if record.levelno >= logging.INFO or record.name.partition(".")[0] == "fnop":
        return True
    return is_authors_file(record.pathname, record.name)


class Console:
    """The console's log: turns lines of the core into log records."""

    def __init__(
        self, level: int, handler: logging.Handler, formatter: logging.Formatter
    ) -> None:
        root = logging.getLogger()
        for old in [each for each in root.handlers if isinstance(each, _Handler)]:
            root.removeHandler(old)
        handler.setFormatter(formatter)
        root.addHandler(handler)
        root.setLevel(level)
        self._handler = handler

    def say(self, say: Say, at: float | None = None) -> None:
        """Write one line.

        `at` is the time of a simulated run, in Unix seconds, shown in UTC.
        """
        write(say, at)

    def simulate(self, wall: Callable[[], float]) -> None:
        """Show the time of a simulated run, in UTC, in other modules' lines, too.

        `wall` returns it in Unix seconds.
        """

        def stamp(record: logging.LogRecord) -> bool:
            if not hasattr(record, "simulated"):
                _stamp(record, wall())
            return True

        self._handler.addFilter(stamp)

    def close(self) -> None:
        """Stop writing to the stream."""
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()


def write(say: Say, at: float | None = None) -> None:
    """Write one line to the log of this process, in its present configuration."""
    level = _LEVELS[say.level]
    logger = _OPERATOR if say.subject is None else _OBJECTS
    if not logger.isEnabledFor(level):
        return
    # Not through logger.log(): finding the caller is half of its cost.
    line = _Line(say)
    record = logging.LogRecord(logger.name, level, "", 0, line, None, None)
    record.say = say
    if (span := _SPAN.get()) is not None:
        record.trace_id, record.span_id = span
    if at is not None:
        _stamp(record, at)
    logger.handle(record)


# The ids of the trace and of the span that lines belong to now.
_SPAN: ContextVar[tuple[str, str] | None] = ContextVar("span", default=None)


@contextmanager
def in_span(trace_id: str, span_id: str) -> Iterator[None]:
    """Let lines within the block have the ids of a span, as hexadecimal numbers.

    Their names in records and in JSON are those that OpenTelemetry asks for.
    """
    token = _SPAN.set((trace_id, span_id))
    try:
        yield
    finally:
        _SPAN.reset(token)


def _stamp(record: logging.LogRecord, at: float) -> None:
    record.created, record.msecs = at, at % 1 * 1000
    record.simulated = True


class _Line:
    """A line in the form that other formatters expect."""

    __slots__ = ("_say",)

    def __init__(self, say: Say) -> None:
        self._say = say

    def __str__(self) -> str:
        return _text(self._say, named=True)


class _Handler(logging.StreamHandler[TextIO]):
    """fnop's own log handler; it ignores a closed stream."""

    def emit(self, record: logging.LogRecord) -> None:
        if not self.stream.closed:
            super().emit(record)


def _wants_colours(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


# -------------------------------------------------------------------- text


class _TextFormatter(logging.Formatter):
    """`[2026-01-01 12:00:00,000] fnop.objects [INFO] [default/example] message`.

    The format *plain* is the message alone, *full* has columns.
    """

    def __init__(self, format: str, prefix: bool, colours: bool) -> None:
        super().__init__()
        self._plain, self._columns = format == "plain", format == "full"
        self._prefix, self._colours = prefix, colours

    def format(self, record: logging.LogRecord) -> str:
        say: Say | None = getattr(record, "say", None)
        if say is None:
            text = _message_and_traceback(self, record)
        else:
            text = _text(say, named=self._prefix)
        text = without_userinfo(text)
        if not self._plain:
            return self._line_head(record) + text
        # Only continuations of the line before begin with a blank.
        return "\\x20" + text[1:] if text[:1] == " " else text

    def _line_head(self, record: logging.LogRecord) -> str:
        name, level = one_line(record.name), record.levelname
        if self._columns:
            name, level = f"{name:<20.20}", f"{level:<8.8}"
        if self._colours and record.levelno in _COLOURS:
            level = f"\x1b[{_COLOURS[record.levelno]}m{level}\x1b[0m"
        simulated = hasattr(record, "simulated")
        second = _second_text(int(record.created), simulated)
        return f"[{second},{int(record.msecs):03d}] {name} [{level}] "


@lru_cache(maxsize=4)
def _second_text(seconds: int, in_utc: bool) -> str:
    when = time.gmtime(seconds) if in_utc else time.localtime(seconds)
    return time.strftime("%Y-%m-%d %H:%M:%S", when)


def _text(say: Say, *, named: bool) -> str:
    """The object if it is to be named, the message, its fields, and the error."""
    text = say.message
    if named and say.subject is not None:
        text = f"[{say.subject.label}] {text}"
    if say.fields:
        text += "".join(f" {name}={value!r}" for name, value in say.fields)
    shown = None if say.exception is None else _traceback(say.exception)
    if shown is not None:
        return f"{one_line(text)}\n{block(shown)}"
    if say.error and say.error not in say.message:
        text += f": {say.error}"
    if say.exception is not None and (place := _place(say.exception)):
        text += f" (at {place})"
    return one_line(text)


def _traceback(problem: BaseException) -> str | None:
    """The part of the traceback about the author's code, if it has one.

    An unexpected error within fnop keeps all its lines.
    """
    if not _OBJECTS.isEnabledFor(logging.DEBUG) and _is_of_connection(problem):
        return None
    begin_at_author(problem)
    steps = [*steps_of(problem)]
    is_meant = _is_meant(problem, steps)
    if is_meant and not has_author(problem):
        return None
    found = traceback.TracebackException.from_exception(problem, compact=True)
    if is_meant:
        ours = [*map(is_of_fnop, steps)]
        del found.stack[len(steps) - ours[::-1].index(False) :]
    text = "".join(found.format()).rstrip("\n")
    return shortened(text, _TRACEBACK_LENGTH_MAX)


def _place(problem: BaseException) -> str:
    """The author's line at which a connection failed; or ""."""
    return authors_place(_error_of_call(problem)) if _is_of_connection(problem) else ""


def _error_of_call(problem: BaseException) -> BaseException:
    """The error of a called function, instead of the one that its caller gets."""
    if isinstance(problem, CallFailed) and problem.__cause__ is not None:
        return problem.__cause__
    return problem


# The numbers of errors that have no class of their own.
_UNREACHED = frozenset(
    (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH)
)


def _is_of_connection(problem: BaseException) -> bool:
    """Whether a remote end was not reached: refused, cut, too late, not found.

    Clients wrap such an error into one of their own. But an error of Python itself that
    is raised while another is handled is a mistake in the program.
    """
    found: BaseException | None = _error_of_call(problem)
    is_python = type(found).__module__ == "builtins"
    if is_python and not isinstance(found, OSError):
        return False
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        if isinstance(found, (ConnectionError, TimeoutError, socket.gaierror)):
            return True
        if isinstance(found, OSError) and found.errno in _UNREACHED:
            return True
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return False


def _is_meant(problem: BaseException, steps: Sequence[TracebackType]) -> bool:
    """Whether fnop raises it for the author: by a `raise`, or at an awaited effect.

    Any other error from within fnop is a fault in fnop.
    """
    if not steps or not is_of_fnop(steps[-1]):
        return False
    code = steps[-1].tb_frame.f_code
    is_raised = code.co_code[steps[-1].tb_lasti] == opmap["RAISE_VARARGS"]
    return code.co_name == "__await__" or (
        is_raised and not isinstance(problem, AssertionError)
    )


def _message_and_traceback(
    formatter: logging.Formatter, record: logging.LogRecord
) -> str:
    text = one_line(_message(record))
    if record.exc_info:
        text += "\n" + block(formatter.formatException(record.exc_info))
    return text


def _message(record: logging.LogRecord) -> str:
    """The message of an author's line, even if its arguments do not fit into it.

    Python's own handlers write a traceback to standard error, without fnop's format.
    """
    try:
        return record.getMessage()
    except Exception as problem:
        where = f"{record.filename}:{record.lineno}"
        text, given = _shown(record.msg), _shown(record.args)
        return (
            f"{text} with {given} is not a message: {described(problem)} (at {where})"
        )


def _shown(value: Any) -> str:
    """A value as text, even if it cannot be converted."""
    try:
        return value if isinstance(value, str) else repr(value)
    except Exception:
        return f"(a {type(value).__name__} that has no text)"


# -------------------------------------------------------------------- JSON


class _JsonFormatter(logging.Formatter):
    """One JSON object a line; `object` is the object that the line is about."""

    def __init__(self, prefix: bool) -> None:
        super().__init__()
        self._prefix = prefix

    def format(self, record: logging.LogRecord) -> str:
        say: Say | None = getattr(record, "say", None)
        line = self._foreign_line(record) if say is None else self._line(say)
        for name, value in line.items():
            if isinstance(value, str):
                line[name] = without_userinfo(value)
        when = datetime.fromtimestamp(record.created, UTC)
        head = {
            "timestamp": when.isoformat(timespec="milliseconds"),
            "severity": _SEVERITIES.get(record.levelno, record.levelname.lower()),
            "logger": record.name,
        }
        for name in ("trace_id", "span_id"):
            if hasattr(record, name):
                head[name] = getattr(record, name)
        # The author's fields do not replace those of the line.
        return _json(line | head)

    def _line(self, say: Say) -> dict[str, Any]:
        line: dict[str, Any] = dict(say.fields)
        subject = say.subject
        line["message"] = say.message
        if subject is not None:
            if self._prefix:
                line["message"] = f"[{subject.label}] {say.message}"
            line["object"] = {
                "apiVersion": subject.api_version,
                "kind": subject.kind,
                "name": subject.name,
                "namespace": subject.namespace,
                "uid": subject.uid,
            }
        if say.handler is not None:
            line["handler"] = say.handler
        if say.error is not None:
            line["error"] = say.error
        shown = None if say.exception is None else _traceback(say.exception)
        if shown is not None:
            line["traceback"] = shown
        elif say.exception is not None and (place := _place(say.exception)):
            line["place"] = place
        return line

    def _foreign_line(self, record: logging.LogRecord) -> dict[str, Any]:
        line: dict[str, Any] = {k: v for k, v in vars(record).items() if k not in _OWN}
        line["message"] = _message(record)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return line


# The attributes of each record of Python's log: any others are the author's `extra=`.
_OWN = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "say"}


def _json(line: dict[str, Any]) -> str:
    """The line as JSON, without characters that act on a terminal."""
    try:
        return json_line(
            orjson.dumps(line, default=_text_of, option=_ANY_KEYS).decode()
        )
    except TypeError:  # integers of more than 64 bits, half a surrogate pair
        return json.dumps(line, default=_text_of, skipkeys=True)


_ANY_KEYS = orjson.OPT_NON_STR_KEYS


def _text_of(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return _shown(value)
