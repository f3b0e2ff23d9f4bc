"""Begin and take activities: handlers that run without an object."""

from __future__ import annotations

from fnop.core.api.cluster_changes import ClusterChange
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Role
from fnop.core.state.activity import ACTIVITY, activity_of, key_of_change
from fnop.core.state.turn import Turn
from fnop.core.values.body import Key
from fnop.effects.structs import replace

__all__ = ["begin_activity", "begin_change", "take_activity"]


def begin_activity(turn: Turn, role: Role) -> None:
    """Begin startup or cleanup, if there are handlers for it."""
    handlers = turn.program.activity(role)
    if handlers:
        begun = activity_of(handlers, turn.lifecycle.memo, turn.now.mono)
        turn.lifecycle = turn.lifecycle.with_activity(ACTIVITY, begun)


def begin_change(turn: Turn, handler: Handler, change: ClusterChange) -> None:
    """Start a handler's work on a change of the cluster."""
    begun = activity_of((handler,), turn.lifecycle.memo, turn.now.mono, change)
    key = key_of_change(turn.next_serial())
    turn.lifecycle = turn.lifecycle.with_activity(key, begun)


def take_activity(turn: Turn) -> Key | None:
    """Take an activity that is due now; afterwards it is not due."""
    life = turn.lifecycle
    for key, activity in life.served_activities:
        if activity.due is not None and activity.due <= turn.now.mono:
            turn.lifecycle = life.with_activity(key, replace(activity, due=None))
            return key
    return None
