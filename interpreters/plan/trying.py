"""Compare a plan with the API server's own answers to its requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fnop.effects.structs import replace
from fnop.interpreters.plan.changes import Shown
from fnop.interpreters.plan.facts import Change, Tried, Write
from fnop.interpreters.plan.fields import (
    changed_fields,
    known_part,
    unknown_of,
    without_server_fields,
)

__all__ = ["compared", "corrected", "is_foreseen", "stored_after_all", "tries_of"]

Json = dict[str, Any]


def tries_of(writes: Iterable[Write]) -> tuple[Write, ...]:
    """The requests that the server can answer in its present state.

    They are the requests of the first round, and only the first one for each object: a
    later request needs the effect of the first. Objects in a namespace that the plan
    creates are skipped, too.
    """
    found: dict[Any, Write] = {}
    made: set[str] = set()
    for each in writes:
        if each.round > 1 or each.is_event:
            continue
        if each.place.kind == "Namespace" and each.before is None:
            made.add(each.place.name)
        if each.place.namespace not in made:
            found.setdefault(each.place, each)
    return tuple(found.values())


def is_foreseen(write: Write, status: int) -> bool:
    """Whether the server answers like the simulated one about the object's new state.

    A refusal is reported although it is foreseen: the server was asked for it.
    """
    return write.status == status and not write.is_refused


def compared(
    write: Write, other: Json | None, answer: Any, shown: Shown
) -> Tried | None:
    """The fields that the server would store differently from the simulated one.

    `other` is the object in a second run: fields that differ there are not compared.
    None if nothing differs, and for deletions.
    """
    if write.method == "DELETE" or not isinstance(answer, dict):
        return None
    after, real = shown(write.after, answer)
    # If the simulated server refuses a write, all its fields would be stored
    # differently.
    unknown = not write.is_refused and (
        True if other is None else unknown_of(write.after, other)
    )
    mine, theirs = (
        without_server_fields(known_part(each, unknown) or {}, new=True)
        for each in (after, real)
    )
    fields = changed_fields(mine, theirs)
    return Tried(write.place, "", fields) if fields else None


def stored_after_all(write: Write, status: int, answer: Any) -> Write | None:
    """The write as the server has answered it, if only the simulated one refuses it."""
    if not write.is_refused or status >= 300 or not isinstance(answer, dict):
        return None
    return replace(write, after=answer, status=status, message="")


def corrected(changes: Iterable[Change], known: Sequence[Change]) -> tuple[Change, ...]:
    """The changes, with the `known` ones in place of the guesses for an object.

    The guesses follow from a refusal, such as a deletion of an unchangeable object.
    """
    places = {each.place for each in known}
    rest = [each for each in changes if each.place not in places]
    return (*known, *rest)
