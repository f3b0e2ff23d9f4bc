"""The bytes of a log stream as lines: split, timed, joined, selected and limited.

The lines do not depend on how the bytes are split into parts. Memory is bounded: one
unfinished line, one event of several lines, and the last part.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from msgspec import Struct

from fnop.core.values.backoff import Allowance, drawn, put_back
from fnop.core.values.log_lines import (
    NANOS,
    LogLine,
    LogMark,
    LogPlace,
    nanoseconds_of,
    second_of,
)

__all__ = ["BATCH_LINES", "Batch", "LogReader", "Sieve"]

# Lines between two tracebacks of Python that belong together.
_CHAINS = (
    "During handling of the above exception",
    "The above exception was the direct cause",
)
# Lines without indentation that continue a traceback of Python or Java.
_GOES_ON = ("Caused by: ", "... ", *_CHAINS)
_TRACEBACK = "Traceback (most recent call last)"

# The maximum number of lines in one batch.
BATCH_LINES = 100
# The maximum number of lines in one event of several lines.
EVENT_LINES = 500


class Sieve(NamedTuple):
    """The lines that one handler wants: those with a match, this many a second."""

    handler: str
    regex: re.Pattern[str] | None = None
    rate: float | None = None


class Batch(Struct, frozen=True):
    """Lines for handlers, and the place in the log after them.

    `dropped` counts lines beyond a rate by handler, and `cut` counts lines that were
    too long. `remark` is a message of kubelet itself, not a line of the container.
    """

    lines: tuple[LogLine, ...]
    mark: LogMark | None
    dropped: tuple[tuple[str, int], ...] = ()
    cut: int = 0
    remark: str = ""


class _Since:
    """The number of lines with a time in a second or later, and the first time."""

    __slots__ = ("first", "second", "seen")

    def __init__(self, second: int, first: int) -> None:
        self.second, self.first, self.seen = second, first, 0


class _Position:
    """A reader's place in the log, from the times of the lines.

    Lines up to the mark `after` come a second time. If the first line is not the one of
    that mark, the log `is_elsewhere`.
    """

    __slots__ = (
        "_after",
        "_earlier",
        "_last",
        "_later",
        "_not_before",
        "_to_skip",
        "is_elsewhere",
    )

    def __init__(self, after: LogMark | None, not_before: int | None) -> None:
        self._not_before = not_before
        # The log's previous place, as long as lines come a second time.
        self._after = after
        self._to_skip = 0 if after is None else after.seen
        self.is_elsewhere = False
        self._earlier: _Since | None = None
        self._later: _Since | None = None
        self._last = 0

    @property
    def mark(self) -> LogMark | None:
        """The place after the last line."""
        if self._after is not None or self._earlier is None:
            return self._after
        since = self._earlier
        return LogMark(since.second, since.seen, since.first, self._last)

    @property
    def missing(self) -> int:
        """The number of lines that still come a second time."""
        return 0 if self._after is None else self._to_skip or 0

    def passes(self, time: int) -> bool:
        """Count a line of this time; return whether it was not seen before."""
        after = self._after
        if after is not None and time < after.second * NANOS:
            return False
        begins = self._earlier is None
        self._count_line(time)
        if after is None:
            return self._not_before is None or time >= self._not_before
        if self._to_skip is None:
            if time <= after.last:
                return False
            self._after = None
            return True
        if begins and time != after.first:
            self.is_elsewhere = True
            return False
        self._to_skip -= 1
        if self._to_skip <= 0:
            self._after = None
        return False

    def _count_line(self, time: int) -> None:
        second = time // NANOS
        later, earlier = self._later, self._earlier
        self._last = max(self._last, time)
        if later is None or earlier is None or second > later.second:
            is_next = later is not None and second == later.second + 1
            earlier = later if is_next else _Since(second - 1, time)
            assert earlier is not None
            later = self._later = _Since(second, time)
            self._earlier = earlier
        if second >= later.second:
            later.seen += 1
        if second >= earlier.second:
            earlier.seen += 1


class _Sifter:
    """Gives lines to the handlers that want them, within their rates."""

    __slots__ = ("_allowances", "_sieves", "dropped")

    def __init__(self, sieves: tuple[Sieve, ...]) -> None:
        self._sieves = sieves
        self._allowances = {
            each.handler: Allowance(each.rate, max(1.0, each.rate), max(1.0, each.rate))
            for each in sieves
            if each.rate is not None
        }
        # The number of lines beyond a rate, by handler.
        self.dropped: dict[str, int] = {}

    def sift(self, time: int, text: str, now: float, found: list[LogLine]) -> None:
        """Add the line to those `found`, once for each handler that gets it."""
        for handler, regex, rate in self._sieves:
            if regex is not None and regex.search(text) is None:
                continue
            if rate is not None:
                allowance, wait = drawn(self._allowances[handler], now)
                if wait > 0:
                    allowance = put_back(allowance)
                    self.dropped[handler] = self.dropped.get(handler, 0) + 1
                self._allowances[handler] = allowance
                if wait > 0:
                    continue
            found.append(LogLine(handler, time, text))


class LogReader:
    """Reads one stream.

    With `multiline` an event may have several lines: a traceback, or all lines from one
    that matches a pattern to the next such line. Lines, and events, that are longer
    than `limit` bytes are cut. Lines up to the mark `after`, and those before
    `not_before` (nanoseconds), are skipped. If the log does not begin at that mark, it
    is another file, or the log of another instance. Then the reader `is_elsewhere`, and
    returns nothing.
    """

    def __init__(
        self,
        sieves: tuple[Sieve, ...],
        *,
        limit: int,
        multiline: re.Pattern[str] | bool = False,
        after: LogMark | None = None,
        not_before: int | None = None,
    ) -> None:
        self._limit, self._multiline = limit, multiline
        self._sifter = _Sifter(sieves)
        self._position = _Position(after, not_before)
        # Complete lines, and the beginning of the next one.
        self._lines: deque[bytes] = deque()
        self._rest = b""
        # The event of several lines that is not yet complete.
        self._event: list[str] = []
        self._event_bytes = self._event_time = 0
        self._before_event: LogMark | None = after
        self._second_text, self._second = b"", 0
        self._cut = 0
        self._remark = ""

    @property
    def mark(self) -> LogMark | None:
        """The place after the last line that is not held back."""
        if self._event:
            return self._before_event
        return self._position.mark

    @property
    def is_elsewhere(self) -> bool:
        """Whether the log does not begin at the mark that it was to continue after."""
        return self._position.is_elsewhere

    def feed(self, data: bytes) -> None:
        """Take bytes in."""
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = self._cut_line(whole[0])
            self._rest = b""
            self._lines.extend(whole)
        self._rest = self._cut_line(rest)

    def _cut_line(self, data: bytes) -> bytes:
        """Return the line so far, without the part beyond the limit."""
        line = self._rest + data if self._rest else data
        # The time of the line is before it.
        most = self._limit + 64
        return line if len(line) <= most else line[:most]

    @property
    def holds_event(self) -> bool:
        """Whether an event of several lines may be incomplete."""
        return bool(self._event)

    def batch(self, now: float, *, rests: bool = False) -> Batch | None:
        """Return the next lines; None if the bytes so far give nothing to report.

        If the log `rests` for a while, an event of several lines is complete. `now` is
        monotonic.
        """
        found: list[LogLine] = []
        while self._lines and len(found) < BATCH_LINES and not self._remark:
            self._take_line(self._lines.popleft(), now, found)
            if self.is_elsewhere:
                return None
        if self.is_elsewhere:
            return None
        if rests and not self._lines and len(found) < BATCH_LINES:
            self._emit_event(found, now)
        dropped = self._sifter.dropped
        if not (found or dropped or self._cut or self._remark):
            return None
        told = Batch(
            tuple(found),
            self.mark,
            tuple(sorted(dropped.items())),
            self._cut,
            self._remark,
        )
        self._sifter.dropped, self._cut, self._remark = {}, 0, ""
        return told

    @property
    def place(self) -> LogPlace | None:
        """The log's present place; None if unknown."""
        if self.is_elsewhere or self._lines:
            return None
        position = self._position
        return LogPlace(position.mark, len(self._rest), position.missing)

    @property
    def remark(self) -> str:
        """A message from kubelet instead of a line that was not reported yet."""
        return self._remark

    def rest(self, now: float) -> tuple[LogLine, ...]:
        """Return the held-back lines, as if the log ended; nothing is read then.

        These are the event of several lines, and a line without an end.
        """
        found: list[LogLine] = []
        if self.is_elsewhere:
            return ()
        if self._rest:
            self._take_line(self._rest, now, found)
        self._emit_event(found, now)
        return tuple(found)

    def _take_line(self, line: bytes, now: float, found: list[LogLine]) -> None:
        stamp, _, content = line.partition(b" ")
        time = self._time_of(stamp)
        if time is None:
            text = line.decode(errors="replace").strip()
            self._remark = self._remark or text[:500]
            return
        place = self._position.mark if self._multiline else None
        if not self._position.passes(time):
            return
        if len(content) > self._limit:
            content, self._cut = content[: self._limit], self._cut + 1
        text = content.decode(errors="replace").removesuffix("\r")
        if not self._multiline:
            self._sifter.sift(time, text, now, found)
            return
        is_full = (
            len(self._event) >= EVENT_LINES
            or self._event_bytes + len(content) > self._limit
        )
        if not self._event or is_full or self._is_first_line(text):
            self._emit_event(found, now)
            self._before_event, self._event_time, self._event_bytes = place, time, 0
        self._event.append(text)
        self._event_bytes += len(content)

    def _is_first_line(self, line: str) -> bool:
        """Whether a line is the first one of another event."""
        if isinstance(self._multiline, re.Pattern):
            return self._multiline.search(line) is not None
        if not line or line[0].isspace() or line.startswith(_GOES_ON):
            return False
        last = next((each for each in reversed(self._event) if each), "")
        if last.startswith(_CHAINS):
            return False
        # The error itself comes after the frames, which are indented.
        is_python = any(each.startswith(_TRACEBACK) for each in self._event)
        return not (is_python and last[:1].isspace())

    def _emit_event(self, found: list[LogLine], now: float) -> None:
        """Return the event that was held back."""
        if self._event:
            text = "\n".join(self._event)
            self._event = []
            self._sifter.sift(self._event_time, text, now, found)

    def _time_of(self, stamp: bytes) -> int | None:
        """The time of a line; None without one."""
        # Most lines are in the same second as the previous one.
        if len(stamp) == 30 and stamp[19:20] == b"." and stamp[29:] == b"Z":
            try:
                if stamp[:19] != self._second_text:
                    self._second = second_of(f"{stamp[:19].decode()}Z")
                    self._second_text = stamp[:19]
                return self._second * NANOS + int(stamp[20:29])
            except ValueError:
                return None
        if not 20 <= len(stamp) <= 35:
            return None
        return nanoseconds_of(stamp.decode(errors="replace"))
