"""Fold repetitions in a story: an operator that waits repeats the same lines."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from fnop.core.values.errors import number_of
from fnop.effects.structs import replace
from fnop.interpreters.recording.model.times import clock
from fnop.interpreters.recording.questions.story import Line

__all__ = ["Folding"]

# The longest sequence of lines that is searched for.
_LENGTH_MAX = 12
# The parts that differ from call to call: steps, versions, and durations.
_MOMENT = re.compile(
    r"#\d+|\(\d+(\.\d+)? ?(ms|s|min|h)\)|version \d+|resourceVersion=\S+"
)


@dataclass
class Folding:
    """The fold: takes lines in, returns lines.

    A sequence of lines is skipped from its third time on. The repetition is reported
    when another line comes, or when the story ends.
    """

    _recent: deque[str] = field(default_factory=lambda: deque(maxlen=2 * _LENGTH_MAX))
    _cycle: tuple[str, ...] = ()
    _part: list[Line] = field(default_factory=list)
    _times: int = 0
    _last: Line | None = None

    def take(self, line: Line) -> list[Line]:
        """The lines to print after one more has come."""
        key = _key(line)
        if self._cycle and key == self._cycle[len(self._part)]:
            self._part.append(line)
            if len(self._part) == len(self._cycle):
                self._times, self._last = self._times + 1, line
                self._part = []
            return []
        told = self.end()
        self._recent.append(key)
        self._cycle = self._repeated_sequence()
        return [*told, line]

    def end(self) -> list[Line]:
        """The lines that remain: a note about repetitions, and a partial one."""
        told = list[Line]()
        if self._last is not None:
            lines = number_of(len(self._cycle), "line")
            times = number_of(self._times, "more time")
            text = f"... the last {lines}, {times}, until {clock(self._last.wall)}"
            if len(self._cycle) == 1:
                text = f"... the same, {times}, until {clock(self._last.wall)}"
            told.append(replace(self._last, text=text, sort="same"))
        told += self._part
        if told:
            self._recent.clear()
            self._recent.extend(map(_key, self._part))
        self._cycle, self._part, self._times, self._last = (), [], 0, None
        return told

    def _repeated_sequence(self) -> tuple[str, ...]:
        """The shortest sequence that has just come twice; else ()."""
        recent = [*self._recent]
        for length in range(1, len(recent) // 2 + 1):
            if recent[-length:] == recent[-2 * length : -length]:
                return tuple(recent[-length:])
        return ()


def _key(line: Line) -> str:
    """The common part of two lines that say the same about two times."""
    return f"{line.depth} {line.where} {_MOMENT.sub('', line.text)}"
