"""The life of an operator, as a state machine.

| in          | event      | next        | at most | meanwhile
|-------------|------------|-------------|---------|-----------------------------------
| NEW         | BEGUN      | STARTING    |         | startup handlers
| STARTING    | STARTED    | DISCOVERING |         | the kinds of the API server
| DISCOVERING | DISCOVERED | SERVING     |         | everything
| SERVING     | `settled`  | STANDBY     |         | another replica leads: no handlers
| SERVING     | `settled`  | FROZEN      |         | another goes before: no streams
| any before  | `stopping` | STOPPING    | 10 s    | the rest of what is under way
| STOPPING    | QUIET      | CLEANING    | 60 s    | cleanup handlers
| CLEANING    | CLEANED    | LEAVING     | 5 s     | peers and the lease are left
| any         | `ended`    | ENDED       |         | nothing
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from fnop.core.handlers.settings import Settings
from fnop.core.state.activity import Activity
from fnop.core.values.evolve import quick
from fnop.core.values.now import Now
from fnop.effects.values import ReadOnlyDict

__all__ = [
    "CLEANUP_SECONDS",
    "HELD",
    "IN_SERVICE",
    "REPEAT_SECONDS",
    "Lifecycle",
    "Milestone",
    "Phase",
    "advance",
    "ended",
    "failed",
    "is_late",
    "repeats_stop",
    "settled",
    "stopping",
]

# A terminal and its wrapper often both pass a signal on: one stop within this time.
REPEAT_SECONDS = 1.0
# How long a stopping operator waits for what is under way.
STOP_SECONDS = 10.0
# How long cleanup handlers may take.
CLEANUP_SECONDS = 60.0
# How long the peers and the lease may take to be left.
LEAVE_SECONDS = 5.0


class Phase(Enum):
    """Where an operator stands in its life."""

    NEW = "new"
    STARTING = "starting"  # startup handlers
    DISCOVERING = "discovering"
    SERVING = "serving"
    STANDBY = "standby"  # another replica leads: everything is followed, nothing done
    FROZEN = "frozen"  # another operator goes before
    STOPPING = "stopping"  # what is under way comes to its end
    CLEANING = "cleaning"  # cleanup handlers
    LEAVING = "leaving"  # the peers, and the lease
    ENDED = "ended"


# Phases in which no handler is called, and no request sent for one.
HELD = (Phase.STANDBY, Phase.FROZEN)
# Phases in which the operator knows what there is, and would handle it.
IN_SERVICE = (Phase.SERVING, *HELD)
# Phases that a stop has led to.
_ENDING = (Phase.STOPPING, Phase.CLEANING, Phase.LEAVING)


class Milestone(Enum):
    """What leads from one phase to the next."""

    BEGUN = auto()
    STARTED = auto()  # all startup handlers have ended
    DISCOVERED = auto()
    QUIET = auto()  # nothing is under way any more
    CLEANED = auto()  # all cleanup handlers have ended


_NEXT = {
    (Phase.NEW, Milestone.BEGUN): Phase.STARTING,
    (Phase.STARTING, Milestone.STARTED): Phase.DISCOVERING,
    (Phase.DISCOVERING, Milestone.DISCOVERED): Phase.SERVING,
    (Phase.STOPPING, Milestone.QUIET): Phase.CLEANING,
    (Phase.CLEANING, Milestone.CLEANED): Phase.LEAVING,
}

_LIMITS = {
    Phase.STOPPING: STOP_SECONDS,
    Phase.CLEANING: CLEANUP_SECONDS,
    Phase.LEAVING: LEAVE_SECONDS,
}


@quick
class Lifecycle(NamedTuple):
    """Where an operator stands, and what startup handlers have made of it."""

    phase: Phase = Phase.NEW
    # When the stop was asked for, and when its present phase ends (monotonic).
    stopping_since: float | None = None
    stop_by: float | None = None
    # The exit status of a stop in order: 1 where an activity has failed.
    exit_status: int = 0
    # Every served kind has been listed once, and that was told.
    ready: bool = False
    # A handler's reason to keep still.
    frozen: str | None = None
    # As startup handlers have changed them.
    settings: Settings | None = None
    # Startup or cleanup handlers that have not ended.
    activity: Activity | None = None
    # What activities remember: each object's memo begins with it.
    memo: ReadOnlyDict = ReadOnlyDict()


def advance(life: Lifecycle, now: Now, event: Milestone) -> Lifecycle:
    """The life after an event; as it is, where the event means nothing to its phase.

    >>> advance(Lifecycle(), Now(0.0, 0.0), Milestone.BEGUN).phase
    <Phase.STARTING: 'starting'>
    >>> advance(Lifecycle(Phase.SERVING), Now(0.0, 0.0), Milestone.BEGUN).phase
    <Phase.SERVING: 'serving'>
    """
    phase = _NEXT.get((life.phase, event))
    return life if phase is None else _entered(life, phase, now)


def _entered(life: Lifecycle, phase: Phase, now: Now) -> Lifecycle:
    limit = _LIMITS.get(phase)
    stop_by = life.stop_by if limit is None else now.mono + limit
    return life._replace(phase=phase, stop_by=stop_by)


def settled(life: Lifecycle, phase: Phase) -> Lifecycle:
    """The verdicts of peers and of the lease call for this phase, while in service."""
    return life._replace(phase=phase) if life.phase in IN_SERVICE else life


def stopping(life: Lifecycle, now: Now) -> Lifecycle:
    """Somebody wants the operator to end; nothing changes where it is ending."""
    if life.phase in (*_ENDING, Phase.ENDED):
        return life
    begun = life._replace(stopping_since=now.mono)
    return _entered(begun, Phase.STOPPING, now)


def failed(life: Lifecycle) -> Lifecycle:
    """An activity has failed: the operator ends with the exit status 1."""
    return life._replace(exit_status=1)


def repeats_stop(life: Lifecycle, now: Now) -> bool:
    """Whether a further wish to end comes long enough after the first to mean more."""
    since = life.stopping_since
    is_repeat = since is not None and now.mono < since + REPEAT_SECONDS
    return life.phase in _ENDING and not is_repeat


def ended(life: Lifecycle) -> Lifecycle:
    """The operator ends, in whatever phase it is."""
    return life._replace(phase=Phase.ENDED)


def is_late(life: Lifecycle, now: Now) -> bool:
    """Whether the present phase of the end has taken as long as it may."""
    return life.stop_by is not None and life.stop_by <= now.mono
