"""The actions on one object; `next_action` returns one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.handler import Handler
from fnop.core.memory.observation import Seen
from fnop.core.memory.progress import Progress
from fnop.core.memory.stored_state import Stored
from fnop.core.objects.decide.background import (
    RescheduleRun,
    ScheduleRun,
    ShowChange,
    StartRun,
    StopRun,
    UnscheduleRun,
)
from fnop.core.objects.decide.reconcilers import (
    AwaitChildren,
    CallReconciler,
    LeaveReconciler,
    StopReconciler,
    clearing,
    collecting,
)
from fnop.core.objects.decide.selection import Circumstances
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import Change, ObjectRecord, PendingEvent
from fnop.core.state.writing import Contents, Writing

__all__ = [
    "Abandon",
    "Action",
    "Cancel",
    "Conclude",
    "Continue",
    "ContinueWrite",
    "Expire",
    "Forget",
    "HandleEvent",
    "Overlook",
    "ReadLive",
    "RecordInMemory",
    "Rest",
    "StartAttempt",
    "TimeOut",
    "Write",
    "cleared_first",
    "collected",
    "earlier",
    "first_due",
    "is_due",
]


class Rest(Struct, frozen=True):
    """Nothing to do before `until` (monotonic), or before something happens."""

    until: float | None = None


class Continue(Struct, frozen=True):
    """Continue an invocation; `ends` are the ends of sub-handlers that it awaits."""

    invocation: Invocation
    ends: Mapping[str, Any] | None = None


class HandleEvent(Struct, frozen=True):
    """Call an event handler for a watch event."""

    pending_event: PendingEvent


class StartAttempt(Struct, frozen=True):
    """Start an attempt of a handler for this change."""

    handler: Handler
    change: Change
    progress: Progress


class Conclude(Struct, frozen=True):
    """End a handler whose sub-handlers have all ended; `failed` names a failed one."""

    handler: Handler
    progress: Progress
    failed: str = ""


class TimeOut(Struct, frozen=True):
    """End a handler whose deadline has come while it has no attempt under way.

    The handler waits for its next attempt, or for its sub-handlers; `why` says which.
    """

    handler: Handler
    progress: Progress
    why: str


class Abandon(Struct, frozen=True):
    """End an attempt of a sub-handler whose parent handler has ended."""

    invocation: Invocation


class Cancel(Struct, frozen=True):
    """End all conversations about the change: it is outdated."""


class Expire(Struct, frozen=True):
    """End a waiting conversation that has passed its handler's timeout."""

    invocation: Invocation


class Write(Struct, frozen=True):
    """Write the object."""

    contents: Contents


class ContinueWrite(Struct, frozen=True):
    """Send the next request of a write, whose time has come."""

    writing: Writing


class RecordInMemory(Struct, frozen=True):
    """Store the state in this process only: the object needs no change.

    With `released`, the deletion of an object that others hold has been handled.
    """

    stored: Stored
    ends: bool
    released: bool = False


class Overlook(Struct, frozen=True):
    """Remember the state of an object that no handler matches, in this process only."""

    seen: Seen


class ReadLive(Struct, frozen=True):
    """Read the object live: the watch has not shown an own write in time."""


class Forget(Struct, frozen=True):
    """Drop the record of an object that is gone and has no work under way."""


Action = (
    Rest
    | Continue
    | HandleEvent
    | ScheduleRun
    | StartRun
    | ShowChange
    | StopRun
    | RescheduleRun
    | UnscheduleRun
    | CallReconciler
    | StopReconciler
    | LeaveReconciler
    | StartAttempt
    | Conclude
    | TimeOut
    | Abandon
    | Cancel
    | Expire
    | Write
    | ContinueWrite
    | RecordInMemory
    | Overlook
    | ReadLive
    | Forget
)


def cleared_first(
    at: Circumstances, record: ObjectRecord
) -> CallReconciler | Rest | None:
    """The next action about children that are deleted before their owner, if any."""
    match clearing(at, record) if at.kind.reconcilers else None:
        case AwaitChildren(until):
            return Rest(until)
        case found:
            return found


def collected(at: Circumstances, record: ObjectRecord) -> CallReconciler | Rest | None:
    """The deletion of the object itself, if its owner is gone."""
    match collecting(at, record) if at.kind.owned_by else None:
        case AwaitChildren(until):
            return Rest(until)
        case found:
            return found


def is_due(moment: float | None, at: Circumstances) -> bool:
    return moment is not None and moment <= at.now.mono


def first_due(invocations: tuple[Invocation, ...]) -> float | None:
    if not invocations:
        return None
    moments = [due for each in invocations if (due := each.due) is not None]
    return min(moments, default=None)


def earlier(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
