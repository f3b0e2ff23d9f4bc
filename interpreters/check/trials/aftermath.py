"""The time after a run without faults: the work that continues without the user.

Timers and daemons change systems outside, and fields in which they count. Their values
depend on the moment of the look: after a fault, which costs time, they differ.
Everything else must be as in the run without faults, also if the operator has timers.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from msgspec import Struct

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import BACKGROUND
from fnop.effects.structs import replace
from fnop.interpreters.check.state.worlds import outside_of, world_of
from fnop.interpreters.check.trials import traffic
from fnop.interpreters.check.trials.differences import Volatile, differences
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.simulation.simulation import CannotFork

__all__ = ["Aftermath", "aftermath_of"]

# Timers are followed until the shortest was called this often.
CALLS_MAX = 300
# The virtual seconds within which a field that changes with time is expected to do so.
DRIFT_SECONDS = 180.0


class Aftermath(Struct, frozen=True):
    """Systems outside (by alias), and fields, that change by themselves after a run.

    `vain` are sentences about requests that are repeated in vain.
    """

    systems: frozenset[str] = frozenset()
    fields: frozenset[tuple[str, str]] = frozenset()
    vain: tuple[str, ...] = ()

    def explains(self, alias: str, path: str) -> bool:
        """Whether time alone may explain the value of an object's field."""
        return alias in self.systems or (alias, path) in self.fields


def aftermath_of(trial: Trial, volatile: Volatile) -> Aftermath:
    """Follow a run after its end: everything that goes on by itself.

    All systems may change if the run does not settle. The same holds for daemons, which
    may begin something at any time, and for timers of an unknown pace.
    """
    handlers = trial.scene.program.handlers
    background = [each for each in handlers if each.role in BACKGROUND]
    before = outside_of(trial.run.calls.models) if background else {}
    at_rest = not trial.is_endless and not trial.journal.unsettled
    seconds = _time_of_two_calls(background) if at_rest else None
    everything = Aftermath(frozenset(before))
    if trial.is_endless or not handlers:
        return everything
    later = _once_more(trial)
    window, spans = traffic.Window(later), [traffic.SECONDS]
    spans += [DRIFT_SECONDS] if background else []
    spans += [seconds] if before and seconds is not None else []
    later.wait(trial.run.clock.elapsed + max(spans))
    found = replace(everything, vain=window.told(handlers))
    if background and at_rest:
        found = replace(found, fields=_changed_fields(trial, later, volatile))
    if seconds is not None:
        after = outside_of(later.run.calls.models)
        changed = (alias for alias, text in before.items() if after[alias] != text)
        found = replace(found, systems=frozenset(changed))
    return found


def _once_more(trial: Trial) -> Trial:
    """The same run at its end: a fork, or a repetition of a run in this process."""
    try:
        return trial.fork()
    except CannotFork:
        return Trial(trial.scene).play()


def _changed_fields(
    trial: Trial, later: Trial, volatile: Volatile
) -> frozenset[tuple[str, str]]:
    """The aliases and paths of fields that differ later."""
    before, after = (
        world_of(each.run.cluster, each.scene.bare, None, each.drawn, each.storage)
        for each in (trial, later)
    )
    found = differences(before, after, volatile)
    return frozenset((each.alias, each.path) for each in found)


def _time_of_two_calls(background: list[Handler]) -> float | None:
    """The time that calls each timer twice; None if it is unknown."""
    schedules = [each.schedule for each in background if each.schedule is not None]
    paces = [each.interval for each in schedules if _is_number(each.interval)]
    given = [each.initial_delay for each in schedules]
    given += [each.idle or 0.0 for each in schedules]
    delays = [each for each in given if _is_number(each)]
    if not paces or len(paces) < len(background) or len(delays) < len(given):
        return None
    longest = 2 * max(paces) + sum(delays)
    return longest if longest <= CALLS_MAX * min(paces) else None


def _is_number(found: Any) -> TypeGuard[float]:
    return isinstance(found, int | float)
