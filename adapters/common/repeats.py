"""Folding of repeated log lines in a simulated run: a few are shown, then a count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fnop.core.seam.commands import Say
from fnop.effects.regexes import regex
from fnop.effects.structs import replace

__all__ = ["Repeats"]

_NUMBER = regex(r"\d+(\.\d+)?")
# The number of times that a line is shown, by level: successes may well repeat.
_SHOWN_MAX = {"info": 10, "warning": 1, "error": 1}


@dataclass(slots=True)
class _Repeated:
    last: Say
    at: float
    times: int = 0
    objects: set[str] = field(default_factory=set)

    @property
    def is_folded(self) -> bool:
        return self.times > _SHOWN_MAX[self.last.level]


class Repeats:
    """Pass log lines on by `say`; `close` reports how often the folded ones came.

    Warnings and errors of one handler with one error are the same. The object and
    numbers next to the error, such as the next delay, do not matter. Lines about
    successes are the same if they are about one object and differ only in numbers. Only
    a loop repeats them without end.
    """

    def __init__(self, show: Callable[[Say, float], None]) -> None:
        self._show = show
        self._seen: dict[tuple[str, ...], _Repeated] = {}

    def say(self, say: Say, at: float) -> None:
        """Show a line, unless it was already shown often enough."""
        if say.level not in _SHOWN_MAX or (say.level == "info" and not say.handler):
            self._show(say, at)
            return
        found = self._seen.setdefault(_key(say), _Repeated(say, at))
        found.last, found.at = say, at
        found.times += 1
        if not found.is_folded:
            self._show(say, at)
        if say.subject is not None:
            found.objects.add(say.subject.label)

    def close(self, at: float) -> None:
        """Show the last of each group of folded lines, with its count.

        The run has ended `at` this wall time. The latest line is shown last.
        """
        folded = [each for each in self._seen.values() if each.is_folded]
        for found in sorted(folded, key=lambda each: each.at):
            objects = len(found.objects)
            of = f", of {objects} objects" if objects > 1 else ""
            text = f"{found.last.message} ({found.times} times in all{of})"
            self._show(replace(found.last, message=text, exception=None), at)
        self._seen.clear()


def _key(say: Say) -> tuple[str, ...]:
    """The key under which log lines count as repetitions of one another."""
    error = say.error or ""
    if say.level == "info":
        whose = say.subject
        about = "" if whose is None else f"{whose.resource} {whose.label}"
        beside = _NUMBER.sub("0", say.message)
        return (say.level, say.handler or "", about, error, beside)
    beside = _NUMBER.sub("0", say.message.replace(error, "")) if error else ""
    return (say.level, say.handler or "", error, beside or say.message)
