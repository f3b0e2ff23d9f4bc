"""Objects that the clock creates or deletes.

A timer may delete what has grown old. Whether it still exists depends on the moment of
the look. After a fault, which costs time, that is another moment.
"""

from __future__ import annotations

from fnop.core.handlers.declare.roles import BACKGROUND
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.properties.evidence import Seen
from fnop.interpreters.check.trials.differences import Difference

__all__ = ["ages", "clocked_in", "is_aged"]


def ages(seen: Seen) -> frozenset[tuple[str, str]]:
    """The aliases and stanzas that handlers create, write or delete by the clock.

    These handlers are timers and daemons that take `now`: the age of an object decides
    what they do with it. Objects that they create or delete count as a whole, with
    their children. The handled object counts with its status.
    """
    clocked = clocked_in(seen.trial.scene.program)
    if not clocked:
        return frozenset()
    uids = set[str]()
    found = set[tuple[str, str]]()
    for event in seen.events:
        meta = event.object["metadata"]
        alias = seen.alias_of(event.resource, event.object)
        write = seen.writes.get(event.version)
        if write is not None and not clocked.isdisjoint(write.site.handler.split(", ")):
            if meta["uid"] == write.subject:
                found.add((alias, "status"))
            elif event.type != "MODIFIED" or write.site.verb == "delete":
                uids.add(meta["uid"])
        owners = {each["uid"] for each in meta.get("ownerReferences") or ()}
        if meta["uid"] in uids or owners & uids:
            uids.add(meta["uid"])
            found.add((alias, ""))
    return frozenset(found)


def clocked_in(program: Program) -> frozenset[str]:
    """The timers and daemons that take `now`, by their ids."""
    return frozenset(
        each.id
        for each in program.handlers
        if each.role in BACKGROUND and "now" in each.signature.wants
    )


def is_aged(each: Difference, several: frozenset[tuple[str, str]]) -> bool:
    """Whether a difference is in these parts; `pods/x-* (2)` counts several.

    >>> is_aged(Difference("pods/x-* (2)", "", None, {}), frozenset({("pods/x-*", "")}))
    True
    >>> one = Difference("xs/x", ".spec.size", 1, 2)
    >>> is_aged(one, frozenset({("xs/x", "status")}))
    False
    """
    alias, path = each.alias.partition(" (")[0], each.path.strip(".")
    return (alias, "") in several or (alias, path.partition(".")[0]) in several
