"""Handlers that run without an object: at startup, at cleanup, for the cluster.

Such a handler makes attempts as others do, so its record is also an `ObjectRecord`. An
operator has at most one activity of its own life at a time, startup or cleanup. It also
has one for each handler of each change of the cluster. `Lifecycle` holds them.
"""

from __future__ import annotations

from msgspec import Struct

from fnop.core.api.cluster_changes import ClusterChange
from fnop.core.handlers.declare.handler import Handler
from fnop.core.memory.observation import Seen
from fnop.core.memory.stored_state import UNSTORED
from fnop.core.state.record import Change, ObjectRecord, Work
from fnop.core.values.body import Body, Key
from fnop.core.values.cause import Reason
from fnop.effects.structs import replace
from fnop.effects.values import ReadOnlyDict

__all__ = ["ACTIVITY", "Activity", "activity_of", "is_activity", "key_of_change"]

# The key of startup and cleanup in place of an object's key, as in tickets.
ACTIVITY = Key("", "", "")
# In place of the resource in an object's key.
_OF_CLUSTER = "cluster"
_WITHOUT_OBJECTS = (ACTIVITY.resource, _OF_CLUSTER)


def key_of_change(number: int) -> Key:
    """The key of a handler's work on a change of the cluster."""
    return Key(_OF_CLUSTER, "", str(number))


def is_activity(key: Key) -> bool:
    """Whether a key belongs to an activity, and not to an object.

    >>> is_activity(ACTIVITY), is_activity(Key("pods.v1.", "default", "a"))
    (True, False)
    """
    return key.resource in _WITHOUT_OBJECTS


class Activity(Struct, frozen=True):
    """The record of the handlers, and when to continue.

    `due` is a monotonic time; None while it awaits an answer. `change` is the change of
    the cluster that it handles.
    """

    record: ObjectRecord
    due: float | None = None
    change: ClusterChange | None = None

    def at(self, moment: float) -> Activity:
        """Return the activity, due at this moment, or earlier if it already was."""
        due = moment if self.due is None else min(self.due, moment)
        return replace(self, due=due)


def activity_of(
    handlers: tuple[Handler, ...],
    memo: ReadOnlyDict,
    now: float,
    change: ClusterChange | None = None,
) -> Activity:
    """The activity of these handlers, due now; it begins with this memo."""
    noop = Change(Reason.NOOP, False, Body({}), Seen({}), handlers)
    record = ObjectRecord(Body({}), UNSTORED, work=Work(change=noop), memo=memo)
    return Activity(record, now, change)
