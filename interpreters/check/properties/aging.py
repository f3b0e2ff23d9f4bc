"""Objects that are made or taken away by the clock.

A timer may take away what has grown old.  Whether that is still there depends on when
it is looked at, and after a fault, which costs time, that is another moment.
"""

from __future__ import annotations

from collections.abc import Iterator

from fnop.core.handlers.program import Program
from fnop.core.handlers.roles import BACKGROUND
from fnop.interpreters.check.differences import Difference
from fnop.interpreters.check.properties.evidence import Seen

__all__ = ["ages", "clocked_in", "is_aged"]


def ages(seen: Seen) -> frozenset[str]:
    """The aliases of objects that handlers make or delete by the clock, with children.

    These are timers and daemons that take `now`: the age of a thing decides what they
    do with it.
    """
    clocked = clocked_in(seen.trial.scene.program)
    if not clocked:
        return frozenset()
    uids = {*_made_or_deleted(seen, clocked)}
    found = set[str]()
    for event in seen.events:
        meta = event.object["metadata"]
        owners = {each["uid"] for each in meta.get("ownerReferences") or ()}
        if meta["uid"] in uids or owners & uids:
            uids.add(meta["uid"])
            found.add(seen.alias_of(event.resource, event.object))
    return frozenset(found)


def clocked_in(program: Program) -> frozenset[str]:
    """The timers and daemons that take `now`, by their ids."""
    return frozenset(
        each.id
        for each in program.handlers
        if each.role in BACKGROUND and "now" in each.signature.wants
    )


def _made_or_deleted(seen: Seen, handlers: frozenset[str]) -> Iterator[str]:
    for event in seen.events:
        write = seen.writes.get(event.version)
        if write is None or handlers.isdisjoint(write.site.handler.split(", ")):
            continue
        if event.object["metadata"]["uid"] == write.subject:
            continue
        if event.type != "MODIFIED" or write.site.verb == "delete":
            yield event.object["metadata"]["uid"]


def is_aged(each: Difference, aliases: frozenset[str]) -> bool:
    """Whether a difference is of one of these objects; `pods/x-* (2)` counts several.

    >>> is_aged(Difference("pods/x-* (2)", "", None, {}), frozenset({"pods/x-*"}))
    True
    """
    return each.alias.partition(" (")[0] in aliases
