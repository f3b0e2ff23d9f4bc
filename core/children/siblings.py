"""Several reconcilers of one object.

They share one condition `Synced`, so it reports the worst state among them. A child
belongs to one handler alone: otherwise each would undo what the other has applied.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fnop.core.values.body import Key
from fnop.core.values.table import NOTHING
from fnop.effects.desired import StatusCondition

__all__ = [
    "MESSAGE_MAX",
    "SYNCED",
    "Beside",
    "as_desired",
    "has_failed",
    "left_unchanged",
    "not_selected",
]

# The condition that reports whether all children are as desired.
SYNCED = "Synced"
MESSAGE_MAX = 1024
# The reasons of a condition that is not True: the first one is the worst.
_WORST = ("HandlerFailed", "Failing", "Pending", "LeftUnchanged", "NotSelected")


def as_desired() -> StatusCondition:
    """The verdict of a handler whose children are all as desired."""
    return StatusCondition(SYNCED, "True", "AsDesired", "all is as desired")


def has_failed(why: str) -> StatusCondition:
    """The verdict of a handler that failed before it desired anything."""
    return StatusCondition(SYNCED, "False", "HandlerFailed", why[:MESSAGE_MAX])


def left_unchanged() -> StatusCondition:
    """The report of a handler that leaves its children as they are."""
    told = "the handler leaves its children as they are"
    return StatusCondition(SYNCED, "Unknown", "LeftUnchanged", told)


def not_selected(handler: str) -> StatusCondition:
    """The report of a handler with children that has stopped selecting its object."""
    told = (
        f"the object does not fit the filters of {handler} any more: its children "
        "stay as they are"
    )
    return StatusCondition(SYNCED, "Unknown", "NotSelected", told)


class Beside(Struct, frozen=True):
    """A handler, and the known facts about the others of the same object.

    `verdicts` are their last reports about their children, by their ids, and `claims`
    are the handlers by the children that they desire. With `awaits`, one of them is yet
    to be called for the object as it is now.
    """

    handler: str = ""
    verdicts: Mapping[str, StatusCondition] = NOTHING
    claims: Mapping[Key, str] = NOTHING
    awaits: bool = False

    def told(self, own: StatusCondition | None) -> StatusCondition | None:
        """The condition of the object, including this handler's own part.

        None if no handler has reported anything, or if a handler that may fail is
        awaited.

        >>> done, failed = as_desired(), has_failed("no size")
        >>> Beside("a").told(failed).message
        'no size'
        >>> Beside("a", {"b": failed}).told(done).message
        'b: no size'
        >>> Beside("a", {"b": done}).told(done).status
        'True'
        >>> Beside("a", awaits=True).told(done)
        """
        if self.awaits and (own is None or own.status == "True"):
            return None
        parts = {**self.verdicts}
        if own is not None:
            parts[self.handler] = own
        if any(each.reason != "NotSelected" for each in parts.values()):
            # Another handler may have taken its place.
            parts = {k: e for k, e in parts.items() if e.reason != "NotSelected"}
        wrong = {k: each for k, each in sorted(parts.items()) if each.status != "True"}
        if not wrong:
            return as_desired() if parts else None
        if own is not None and not self.verdicts:
            return own
        lines = (f"{name}: {each.message}" for name, each in wrong.items())
        worst = min(wrong.values(), key=lambda each: _WORST.index(each.reason))
        text = "; ".join(lines)[:MESSAGE_MAX]
        return StatusCondition(SYNCED, worst.status, worst.reason, text)

    def claimed(self, key: Key) -> str:
        """The reason not to make a child that another handler desires, or ""."""
        other = self.claims.get(key)
        if other is None:
            return ""
        return (
            f"is desired by the handlers {other} and {self.handler}, and is left to "
            f"{other}; let one of them alone desire it"
        )
