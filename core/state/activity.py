"""Startup or cleanup: the handlers that run without an object.

An operator has at most one activity at a time; `Lifecycle` holds it.  Its handlers make
attempts as others do, so its record is an `ObjectRecord` as well.
"""

from __future__ import annotations

from typing import NamedTuple

from fnop.core.handlers.handler import Handler
from fnop.core.memory.last_seen import Stored
from fnop.core.memory.observation import Seen
from fnop.core.state.record import Change, ObjectRecord, Work
from fnop.core.values.body import Body, Key
from fnop.core.values.cause import Reason
from fnop.core.values.evolve import quick
from fnop.effects.values import ReadOnlyDict

__all__ = ["ACTIVITY", "Activity", "activity_of"]

# The key of an activity where an object has its own, as in tickets.
ACTIVITY = Key("", "", "")


@quick
class Activity(NamedTuple):
    """The record of the handlers, and when to continue.

    `due` is a monotonic time; None while an answer is awaited.
    """

    record: ObjectRecord
    due: float | None = None

    def at(self, moment: float) -> Activity:
        """The activity, due at this moment or earlier if it already was."""
        due = moment if self.due is None else min(self.due, moment)
        return Activity(self.record, due)


def activity_of(
    handlers: tuple[Handler, ...], memo: ReadOnlyDict, now: float
) -> Activity:
    """The activity of these handlers, due now; it begins with this memo."""
    change = Change(Reason.NOOP, False, Body({}), Seen({}), handlers)
    record = ObjectRecord(Body({}), Stored(), work=Work(change=change), memo=memo)
    return Activity(record, now)
