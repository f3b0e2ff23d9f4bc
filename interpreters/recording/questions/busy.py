"""The calls of handlers that do something: a request, a change, a failure, a line."""

from __future__ import annotations

from dataclasses import dataclass, field

from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.effects import is_waiting
from fnop.interpreters.recording.model.history import History, Question, Step

__all__ = ["Busy", "Call", "call_of"]

# A call by the step in which it began, and its number.
Call = tuple[int, int]


def call_of(attempt: Attempt) -> Call:
    """The key of an attempt's call, unique in a recording."""
    return attempt.step, attempt.number


@dataclass
class Busy(Question):
    """The calls that have done something, unlike the others."""

    history: History = field(default_factory=History)
    calls: set[Call] = field(default_factory=set)

    def miss(self, gap: records.Gap) -> None:
        """Take note of missing steps: open calls may have done anything there."""
        self.calls |= {call_of(each) for each in self.history.attempts.open.values()}

    def see(self, step: Step) -> None:
        """Take one step in."""
        for command in step.commands:
            self.calls |= {
                call_of(each)
                for each in step.attempts.values()
                if _is_activity(command, each)
            }


def _is_activity(command: records.Command, attempt: Attempt) -> bool:
    """Whether a command counts as something that an attempt does."""
    match command:
        case records.Asked(attempt=number, effect=effect):
            return number == attempt.number and not is_waiting(effect["is"])
        case records.Ended(attempt=number):
            return number == attempt.number and not command.is_nothing
        case records.Say(is_trouble=False):
            return False
        case (
            records.Say(handler=names, subject=where)
            | records.Perform(handler=names, subject=where)
        ):
            by = {each.strip() for each in names.split(",")}
            return bool(names) and attempt.handler in by and attempt.where == where
        case _:
            return False
