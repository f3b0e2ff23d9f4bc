"""Startup or cleanup: the handlers that run without an object.

An operator has at most one activity at a time, and its lifecycle keeps it.  Its
handlers make attempts as others do, so their record has the form of an object's.
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

# What an activity has in the place of an object's key, as in tickets.
ACTIVITY = Key("", "", "")


@quick
class Activity(NamedTuple):
    """The handlers' record, and when to go on (monotonic; None: when answered)."""

    record: ObjectRecord
    due: float | None = None

    def at(self, moment: float) -> Activity:
        """Due then, or earlier if it is due earlier."""
        due = moment if self.due is None else min(self.due, moment)
        return Activity(self.record, due)


def activity_of(
    handlers: tuple[Handler, ...], memo: ReadOnlyDict, now: float
) -> Activity:
    """The activity of these handlers, due now; it begins with this memo."""
    change = Change(Reason.NOOP, False, Body({}), Seen({}), handlers)
    record = ObjectRecord(Body({}), Stored(), work=Work(change=change), memo=memo)
    return Activity(record, now)
