"""Systems outside that timers and daemons change while all else rests.

What such a system holds depends on when it is looked at: after a fault, which costs
time, it is otherwise.  Any other one has to be as in the run without faults, also where
the operator has timers.  The same goes for fields of objects in which a timer counts.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from fnop.core.handlers.handler import Handler
from fnop.core.handlers.roles import BACKGROUND
from fnop.interpreters.check.differences import Volatile, differences
from fnop.interpreters.check.records import has_background
from fnop.interpreters.check.trial import Trial
from fnop.interpreters.check.worlds import outside_of, world_of
from fnop.interpreters.simulation import CannotFork

__all__ = ["drifting_in", "ticking_in"]

# Timers are followed as long as the shortest is called so often, and no longer.
CALLS_MAX = 300
# Virtual seconds in which a field that changes with time is expected to do so.
DRIFT_SECONDS = 180.0


def ticking_in(trial: Trial) -> frozenset[str]:
    """The aliases of the systems that change after the end of a run without faults.

    The run goes on until each timer was called twice.  Where it does not come to rest,
    and where there are daemons, which may begin something after any time, or timers of
    an unknown pace, these are all systems.
    """
    handlers = trial.scene.program.handlers
    background = [each for each in handlers if each.role in BACKGROUND]
    before = outside_of(trial.run.calls)
    if not (background and before):
        return frozenset()
    seconds = _seconds(background)
    if seconds is None or trial.is_endless or trial.unsettled:
        return frozenset(before)
    try:
        later = trial.fork()
    except CannotFork:
        return frozenset(before)
    later.wait(trial.run.clock.elapsed + seconds)
    after = outside_of(later.run.calls)
    return frozenset(alias for alias, text in before.items() if after[alias] != text)


def _seconds(background: list[Handler]) -> float | None:
    """The time in which each timer is called twice; None where nobody knows it."""
    schedules = [each.schedule for each in background if each.schedule is not None]
    paces = [each.interval for each in schedules if _is_number(each.interval)]
    given = [each.initial_delay for each in schedules]
    given += [each.idle or 0.0 for each in schedules]
    delays = [each for each in given if _is_number(each)]
    if len(paces) < len(background) or len(delays) < len(given):
        return None
    longest = 2 * max(paces) + sum(delays)
    return longest if longest <= CALLS_MAX * min(paces) else None


def _is_number(found: Any) -> TypeGuard[float]:
    return isinstance(found, int | float)


def drifting_in(trial: Trial, volatile: Volatile) -> frozenset[tuple[str, str]]:
    """The aliases and paths of fields that timers change after the end of a run."""
    is_over = trial.is_endless or bool(trial.unsettled)
    if is_over or not has_background(trial.scene.program):
        return frozenset()
    try:
        later = trial.fork()
    except CannotFork:
        return frozenset()
    later.wait(trial.run.clock.elapsed + DRIFT_SECONDS)
    before, after = (
        world_of(each.run.cluster, each.scene.bare, drawn=each.drawn)
        for each in (trial, later)
    )
    found = differences(before, after, volatile)
    return frozenset((each.alias, each.path) for each in found)
