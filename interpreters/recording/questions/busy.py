"""The calls of handlers that do something: a request, a change, a failure, a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fnop.interpreters.recording.model.attempts import Attempt, Attempts

__all__ = ["Busy", "Call", "call_of"]

Json = Mapping[str, Any]

# A call by the step in which it began, and its number.
Call = tuple[int, int]

# A handler that asks only for these changes nothing.
_WAITS = frozenset(("Sleep", "Wait"))


def call_of(attempt: Attempt) -> Call:
    """The key of an attempt's call, unique in a recording."""
    return attempt.step, attempt.number


@dataclass
class Busy:
    """The fold: `calls` are those that have done something, unlike the others."""

    attempts: Attempts = field(default_factory=Attempts)
    calls: set[Call] = field(default_factory=set)

    def add(self, record: Json) -> None:
        """Take one record in. Raises the same errors as `Attempts.add`."""
        known = {each.number: each for each in self.attempts.add(record)}
        known |= self.attempts.open
        if "gap" in record:  # calls may have done anything in the gap
            self.calls |= {call_of(each) for each in known.values()}
        for command in record.get("commands", ()):
            self.calls |= {
                call_of(each) for each in known.values() if _is_activity(command, each)
            }


def _is_activity(command: Json, attempt: Attempt) -> bool:
    """Whether a command counts as something that an attempt does."""
    match command:
        case {"do": "Asked", "attempt": number, "effect": {"is": kind}}:
            return number == attempt.number and kind not in _WAITS
        case {"do": "Ended", "attempt": number}:
            return number == attempt.number and not _is_nothing(command)
        case {"do": "Say", "level": level} if level not in ("warning", "error"):
            return False
        case {"do": "Say" | "Perform", "handler": str(names), "subject": where}:
            by = {each.strip() for each in names.split(",")}
            return attempt.handler in by and attempt.where == where
        case _:
            return False


def _is_nothing(end: Json) -> bool:
    patches = [each for each in end.get("patches", ()) if each]
    return not (end.get("plan") or patches or end.get("failure") or end.get("parts"))
