"""The life of an operator, as a state machine.

| in          | event      | next        | at most | meanwhile
|-------------|------------|-------------|---------|-----------------------------------
| NEW         | BEGUN      | STARTING    |         | startup handlers
| STARTING    | STARTED    | DISCOVERING |         | discovery
| DISCOVERING | DISCOVERED | SERVING     |         | all handlers
| SERVING     | `settled`  | STANDBY     |         | another replica leads: no handlers
| SERVING     | `settled`  | FROZEN      |         | a peer outranks it: no streams
| any before  | `stopping` | STOPPING    | grace   | attempts and requests end
| STOPPING    | QUIET      | CLEANING    | 60 s    | cleanup handlers
| CLEANING    | CLEANED    | LEAVING     | grace   | leaves peers, releases the lease
| any         | `ended`    | ENDED       |         | nothing

STOPPING and LEAVING share `grace_period_seconds` of the settings.
"""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from fnop.core.handlers.declare.settings import Settings
from fnop.core.state.activity import Activity
from fnop.core.values.body import Key
from fnop.core.values.now import Now
from fnop.core.values.table import NOTHING, Table
from fnop.effects.structs import replace
from fnop.effects.values import ReadOnlyDict

__all__ = [
    "CLEANUP_SECONDS",
    "IN_SERVICE",
    "REPEAT_SECONDS",
    "SUSPENDED",
    "TELL_AFTER_SECONDS",
    "Lifecycle",
    "Milestone",
    "Phase",
    "advance",
    "cancels_at",
    "ended",
    "failed",
    "is_late",
    "repeats_stop",
    "settled",
    "stopping",
]

# A terminal and its wrapper often both forward a signal. Signals within this time count
# as one stop.
REPEAT_SECONDS = 1.0
# The time limit of cleanup handlers.
CLEANUP_SECONDS = 60.0
# The parts of the grace period: for attempts and requests to end, and for leaving. The
# rest is left for the process to exit.
_STOPPING_SHARE, _LEAVING_SHARE = 0.7, 0.2
# A stop that takes longer logs what it waits for.
TELL_AFTER_SECONDS = 1.0


class Phase(Enum):
    """The phase of an operator's life."""

    NEW = "new"
    STARTING = "starting"  # startup handlers
    DISCOVERING = "discovering"
    SERVING = "serving"
    STANDBY = "standby"  # another replica leads: fnop watches all, and calls no handler
    FROZEN = "frozen"  # another operator has a higher priority
    STOPPING = "stopping"  # attempts and requests end
    CLEANING = "cleaning"  # cleanup handlers
    LEAVING = "leaving"  # leaves the peers, releases the lease
    ENDED = "ended"


# In these phases fnop calls no handler, and sends no request for one.
SUSPENDED = (Phase.STANDBY, Phase.FROZEN)
# Phases after discovery and before a stop.
IN_SERVICE = (Phase.SERVING, *SUSPENDED)
# Phases of a stop.
_ENDING = (Phase.STOPPING, Phase.CLEANING, Phase.LEAVING)


class Milestone(Enum):
    """An event that leads from one phase to the next."""

    BEGUN = auto()
    STARTED = auto()  # all startup handlers have ended
    DISCOVERED = auto()
    QUIET = auto()  # no attempt and no request remains
    CLEANED = auto()  # all cleanup handlers have ended


_NEXT = {
    (Phase.NEW, Milestone.BEGUN): Phase.STARTING,
    (Phase.STARTING, Milestone.STARTED): Phase.DISCOVERING,
    (Phase.DISCOVERING, Milestone.DISCOVERED): Phase.SERVING,
    (Phase.STOPPING, Milestone.QUIET): Phase.CLEANING,
    (Phase.CLEANING, Milestone.CLEANED): Phase.LEAVING,
}


def _seconds_of_phase(phase: Phase, grace: float) -> float | None:
    """The seconds that a phase of a stop may take."""
    match phase:
        case Phase.STOPPING:
            return grace * _STOPPING_SHARE
        case Phase.CLEANING:
            return CLEANUP_SECONDS
        case Phase.LEAVING:
            return grace * _LEAVING_SHARE
        case _:
            return None


class Lifecycle(Struct, frozen=True):
    """The phase of an operator, and the changes that startup handlers have made."""

    phase: Phase = Phase.NEW
    # The time when the stop was requested, and when its present phase ends (monotonic).
    stopping_since: float | None = None
    stop_by: float | None = None
    grace: float = 0.0
    # When to log what the stop waits for (monotonic); None once logged.
    tell_at: float | None = None
    # The exit status of an orderly stop: 1 if an activity has failed.
    exit_status: int = 0
    # Every served kind has been listed once, and that was reported.
    ready: bool = False
    # The reason why a handler has frozen the operator.
    frozen: str | None = None
    # The settings as changed by startup handlers; None if unchanged.
    settings: Settings | None = None
    # Handlers that run without an object, and have not ended, by their keys.
    activities: Table[Key, Activity] = NOTHING
    # The memo of activities, which each object's memo starts with.
    memo: ReadOnlyDict = ReadOnlyDict()

    def with_activity(self, key: Key, activity: Activity) -> Lifecycle:
        """Return the lifecycle with this state of an activity."""
        return replace(self, activities=self.activities.set(key, activity))

    def without_activity(self, key: Key) -> Lifecycle:
        """Return the lifecycle after the end of an activity."""
        return replace(self, activities=self.activities.discard(key))

    def with_activity_due(self, key: Key, at: float) -> Lifecycle:
        """Return the lifecycle with an activity that continues at `at` (monotonic)."""
        activity = self.activities.get(key)
        return self if activity is None else self.with_activity(key, activity.at(at))

    @property
    def served_activities(self) -> tuple[tuple[Key, Activity], ...]:
        """The activities that continue in the present phase.

        An activity about the cluster waits while another replica leads.
        """
        found = tuple(self.activities.items())
        if found and self.phase in SUSPENDED:
            return tuple(each for each in found if each[1].change is None)
        return found


def advance(life: Lifecycle, now: Now, event: Milestone) -> Lifecycle:
    """Return the lifecycle after an event, unchanged if the phase does not expect it.

    >>> advance(Lifecycle(), Now(0.0, 0.0), Milestone.BEGUN).phase
    <Phase.STARTING: 'starting'>
    >>> advance(Lifecycle(Phase.SERVING), Now(0.0, 0.0), Milestone.BEGUN).phase
    <Phase.SERVING: 'serving'>
    """
    phase = _NEXT.get((life.phase, event))
    return life if phase is None else _enter_phase(life, phase, now)


def _enter_phase(life: Lifecycle, phase: Phase, now: Now) -> Lifecycle:
    limit = _seconds_of_phase(phase, life.grace)
    stop_by = life.stop_by if limit is None else now.mono + limit
    return replace(life, phase=phase, stop_by=stop_by)


def settled(life: Lifecycle, phase: Phase) -> Lifecycle:
    """Return the lifecycle in the phase that peers and lease require, if in service."""
    return replace(life, phase=phase) if life.phase in IN_SERVICE else life


def stopping(life: Lifecycle, now: Now, grace: float) -> Lifecycle:
    """Return the lifecycle after a requested stop; unchanged if it is already ending.

    `grace` is the time that it may take, in seconds, not counting the cleanup handlers.
    """
    if life.phase in (*_ENDING, Phase.ENDED):
        return life
    tell_at = now.mono + TELL_AFTER_SECONDS
    begun = replace(life, stopping_since=now.mono, grace=grace, tell_at=tell_at)
    return _enter_phase(begun, Phase.STOPPING, now)


def failed(life: Lifecycle) -> Lifecycle:
    """Return the lifecycle after a failed activity: the exit status will be 1."""
    return replace(life, exit_status=1)


def repeats_stop(life: Lifecycle, now: Now) -> bool:
    """Whether a repeated stop request is too late to be the first one, forwarded."""
    since = life.stopping_since
    is_repeat = since is not None and now.mono < since + REPEAT_SECONDS
    return life.phase in _ENDING and not is_repeat


def ended(life: Lifecycle) -> Lifecycle:
    """Return the lifecycle after the operator's end, from any phase."""
    return replace(life, phase=Phase.ENDED)


def cancels_at(life: Lifecycle, now: Now, drain: float) -> float | None:
    """The time (monotonic) when handlers of changes are cancelled; None while serving.

    A stop lets them go on for `drain` seconds. Without the right to serve, they are
    cancelled at once. Those that a pause of peering does not end can take their time.
    """
    if life.phase in (Phase.SERVING, Phase.FROZEN):
        return None
    since = life.stopping_since
    return now.mono if since is None else since + drain


def is_late(life: Lifecycle, now: Now) -> bool:
    """Whether the present phase of a stop has reached its time limit."""
    return life.stop_by is not None and life.stop_by <= now.mono
