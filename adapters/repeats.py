"""What goes wrong again and again in a simulated run is shown once, with a count."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fnop.core.commands import Say

__all__ = ["Repeats"]

_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(slots=True)
class _Repeated:
    last: Say
    at: float
    times: int = 1
    objects: set[str] = field(default_factory=set)


class Repeats:
    """Lines of the log go through `say`; `close` tells how often some came again.

    Warnings and errors of one handler with one error are the same, whatever numbers
    are beside the error, such as the next delay, and whichever object they are about.
    """

    def __init__(self, show: Callable[[Say, float], None]) -> None:
        self._show = show
        self._seen: dict[tuple[str, ...], _Repeated] = {}

    def say(self, say: Say, at: float) -> None:
        """Show a line, unless it was shown before."""
        if say.level not in ("warning", "error"):
            self._show(say, at)
            return
        error = say.error or ""
        beside = _NUMBER.sub("0", say.message.replace(error, "")) if error else ""
        key = (say.level, say.handler or "", error, beside or say.message)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = _Repeated(say, at)
            self._show(say, at)
        else:
            found.last, found.at = say, at
            found.times += 1
        if say.subject is not None:
            found.objects.add(say.subject.label)

    def close(self) -> None:
        """Show once more what came again, with the count, without its traceback."""
        for found in self._seen.values():
            if found.times == 1:
                continue
            objects = len(found.objects)
            of = f", of {objects} objects" if objects > 1 else ""
            text = f"{found.last.message} ({found.times} times in all{of})"
            self._show(replace(found.last, message=text, exception=None), found.at)
        self._seen.clear()
