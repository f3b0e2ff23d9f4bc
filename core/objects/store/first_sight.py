"""The record of an object that this process sees for the first time."""

from __future__ import annotations

from msgspec import Struct

from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Kind
from fnop.core.memory.observation import see
from fnop.core.memory.stored_state import (
    UNSTORED,
    Stored,
    Unreadable,
    read_stored,
    restated,
)
from fnop.core.memory.takeover import taken_over
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body

__all__ = ["FirstSight", "first_sight"]


class FirstSight(Struct, frozen=True):
    """The record, and the `problem` if the stored state cannot be read.

    Such an object counts as handled before. The state may be that of a predecessor.
    """

    record: ObjectRecord
    problem: str = ""
    is_of_predecessor: bool = False


def first_sight(
    kind: Kind, settings: Settings, body: Body, *, listed: bool
) -> FirstSight:
    """Read the stored state of an object, by this operator or by its predecessor.

    `listed` means that the object existed before this process.
    """
    match _stored_state(kind, settings, body):
        case Unreadable(problem):
            seen = Stored(see(body, kind.observation))
            record = ObjectRecord(body, seen, readable=False, initial=listed)
            return FirstSight(record, problem)
        case None:
            return _sight_by_predecessor(kind, settings, body, listed=listed)
        case stored:
            restored = restated(stored, body, kind.observation)
            return FirstSight(ObjectRecord(body, restored, initial=listed))


def _stored_state(
    kind: Kind, settings: Settings, body: Body
) -> Stored | Unreadable | None:
    """The state that this operator has stored on an object."""
    places = settings.places
    if places.format is None:
        return read_stored(places.text(body), body.uid)
    found: Stored | Unreadable | None = places.read_formatted(body, kind.observation)
    return found


def _sight_by_predecessor(
    kind: Kind, settings: Settings, body: Body, *, listed: bool
) -> FirstSight:
    """The record of an object without our state, maybe with a predecessor's."""
    kopf = settings.predecessor
    if kopf is None:
        return FirstSight(ObjectRecord(body, UNSTORED, initial=listed))
    handlers = [each.id for each in kind.changes]
    match taken_over(body, kopf, kind.observation, handlers):
        case Unreadable(problem):
            seen = Stored(see(body, kind.observation))
            record = ObjectRecord(body, seen, readable=False)
            return FirstSight(record, problem, is_of_predecessor=True)
        case stored:
            return FirstSight(ObjectRecord(body, stored or UNSTORED, initial=listed))
