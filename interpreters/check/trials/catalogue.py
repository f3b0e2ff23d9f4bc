"""The catalogue of faults: all kinds, in the order in which they are tried.

Each module of `fnop.interpreters.check.faults` has a `BEHAVIOUR`, and is found here.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check import faults
from fnop.interpreters.check.state.behaviour import Behaviour, Performed
from fnop.interpreters.check.state.kinds import (
    Fault,
    FaultKind,
    Place,
    Schedule,
    Site,
    Trait,
)
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.runtime.protocol import ApiRequest

__all__ = [
    "BEHAVIOURS",
    "BY_NAME",
    "FAULTS",
    "admitted",
    "answer",
    "begin",
    "heal",
    "release",
    "schedule_from_json",
    "schedule_to_json",
    "strike_event",
    "strike_rest",
]

# The number of equal requests that a fault answers that repeats.
BURST = 3


def _found() -> Iterator[Behaviour]:
    """The behaviours, in the order of their modules, in which they also end."""
    for each in pkgutil.iter_modules(faults.__path__):
        behaviour = import_module(f"{faults.__name__}.{each.name}").BEHAVIOUR
        assert isinstance(behaviour, Behaviour)
        yield behaviour


_ALL = tuple(_found())
# The behaviour of each kind, by the kind's name.
BEHAVIOURS: Mapping[str, Behaviour] = {
    kind.name: each for each in _ALL for kind in each.kinds
}
# In the order of the trials: cheap and productive faults come first.
FAULTS: tuple[FaultKind, ...] = tuple(
    sorted((kind for each in _ALL for kind in each.kinds), key=lambda kind: kind.rank)
)
BY_NAME: Mapping[str, FaultKind] = {each.name: each for each in FAULTS}


def answer(
    state: TrialState, command: Perform, site: Site, performed: Performed
) -> Outcome | None:
    """The outcome of a request or a call, struck or not. Raises `Crashed`."""
    for each in _ALL:
        if (refusal := each.refuses(state, site)) is not None:
            return refusal
    like, bursts = (site.handler, site.verb, site.target), state.in_force.bursts
    if like in bursts:
        fault, left = bursts.pop(like)
        if left > 1:
            bursts[like] = fault, left - 1
    else:
        due = state.due(site)
        if due is None:
            return performed()
        fault = due
        if fault.kind.has(Trait.REPEATS):
            bursts[like] = fault, BURST - 1
    behaviour = BEHAVIOURS[fault.kind.name]
    return behaviour.answer(state, fault, command, site, performed)


def admitted(state: TrialState, request: ApiRequest) -> ApiRequest:
    """The request, as faults that last change it."""
    for each in _ALL:
        request = each.admits(state, request)
    return request


def strike_event(state: TrialState, fault: Fault, source: str) -> None:
    """Strike a watch event, or lines of a log, that are about to arrive."""
    BEHAVIOURS[fault.kind.name].strike_event(state, fault, source)


def strike_rest(state: TrialState, fault: Fault) -> bool:
    """Strike when everything has settled; whether it has to settle again."""
    return BEHAVIOURS[fault.kind.name].strike_rest(state, fault)


def begin(state: TrialState) -> None:
    """Let those faults strike that last for the whole script."""
    for fault in [each for each in state.left if each.site.place is Place.RUN]:
        state.left.remove(fault)
        state.struck.append(fault)
        BEHAVIOURS[fault.kind.name].begin(state, fault)


def release(state: TrialState) -> bool:
    """End what lasts until a rest, or until an action has settled; whether it did."""
    return any([each.release(state) for each in _ALL])


def heal(state: TrialState) -> None:
    """End all faults: what was held arrives, rivals take back what was theirs."""
    state.is_healed = True
    state.left.clear()
    state.in_force.bursts.clear()
    for each in _ALL:
        each.heal(state)


def schedule_to_json(schedule: Schedule) -> list[dict[str, Any]]:
    """A schedule as plain JSON.

    >>> site = Site(Place.CALL, "c", "call", "create_vpc", 2)
    >>> (found,) = schedule_to_json((Fault(BY_NAME["F17:error"], site),))
    >>> found["fault"], found["site"]["nth"]
    ('F17:error', 2)
    """
    return [
        {
            "fault": each.kind.name,
            "site": {**each.site._asdict(), "place": each.site.place.value},
            **({"detail": each.detail} if each.detail else {}),
        }
        for each in schedule
    ]


def schedule_from_json(found: Iterable[Mapping[str, Any]]) -> Schedule:
    """The schedule of `schedule_to_json`.

    Raises `ValueError`, with a sentence, for anything else.
    """
    try:
        return tuple(_fault_from_json(each) for each in found)
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"this is not a schedule of faults: {problem!r}") from None


def _fault_from_json(found: Mapping[str, Any]) -> Fault:
    name, site = found["fault"], found["site"]
    if name not in BY_NAME:
        raise ValueError(
            f"there is no fault {name!r}; choose from {', '.join(BY_NAME)}"
        )
    place, number = Place(site["place"]), int(site.get("nth", 1))
    handler, verb, target = (str(site[key]) for key in ("handler", "verb", "target"))
    where = Site(place, handler, verb, target, number)
    return Fault(BY_NAME[name], where, str(found.get("detail", "")))
