"""The cause of reconciling an object: the events since the last time.

One table over six facts gives one of seven reasons; the first matching row decides. The
handlers to call are then found by the reason, their roles, and their filters.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from typing import NamedTuple

from msgspec import Struct

__all__ = ["HANDLED", "TABLE", "Cause", "Facts", "Reason", "detect_cause"]


class Reason(StrEnum):
    """The reason why an object is reconciled."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RESUME = "resume"
    NOOP = "noop"
    FREE = "free"
    GONE = "gone"


# The reasons that handlers can be registered for.
HANDLED = frozenset((Reason.CREATE, Reason.UPDATE, Reason.DELETE, Reason.RESUME))


class Facts(NamedTuple):
    """The facts that decide; in a row of the table, None matches both.

    - gone: the watch has sent DELETED, or a listing no longer has the object
    - deleting: metadata.deletionTimestamp is set
    - blocked: the deletion waits for this operator: its finalizer is on the object, or
      handlers that need no finalizer select it
    - seen: the object has been handled before
    - changed: a field that a handler observes differs from that time
    - initial: first seen in this process's first listing, not handled since
    """

    gone: bool | None
    deleting: bool | None
    blocked: bool | None
    seen: bool | None
    changed: bool | None
    initial: bool | None


class Cause(Struct, frozen=True):
    """The reason, and whether handlers for resuming are called, too."""

    reason: Reason
    initial: bool


ANY = None
TABLE: tuple[tuple[Facts, Reason], ...] = (
    #      gone  deleting blocked seen  changed initial
    (Facts(True, ANY, ANY, ANY, ANY, ANY), Reason.GONE),
    # The operator's finalizer is removed; another one holds the object.
    (Facts(ANY, True, False, ANY, ANY, ANY), Reason.FREE),
    (Facts(ANY, True, True, ANY, ANY, ANY), Reason.DELETE),
    (Facts(ANY, False, ANY, False, ANY, ANY), Reason.CREATE),
    (Facts(ANY, False, ANY, True, False, True), Reason.RESUME),
    (Facts(ANY, False, ANY, True, False, False), Reason.NOOP),
    (Facts(ANY, False, ANY, True, True, ANY), Reason.UPDATE),
)

# A new object cannot be resumed. Neither can one that is already handled.
_NEVER_INITIAL = frozenset((Reason.CREATE, Reason.NOOP))


def _first_matching_cause(facts: Facts) -> Cause:
    for row, reason in TABLE:
        if all(
            want is None or want == have for want, have in zip(row, facts, strict=True)
        ):
            return Cause(reason, bool(facts.initial) and reason not in _NEVER_INITIAL)
    raise AssertionError(f"the cause table does not cover {facts}")


_DECISIONS = {
    facts: _first_matching_cause(facts)
    for facts in (Facts(*bits) for bits in product((False, True), repeat=6))
}


def detect_cause(facts: Facts) -> Cause:
    """The cause for these facts; total over all 64 combinations.

    >>> detect_cause(Facts(False, False, False, False, True, True))
    Cause(reason=<Reason.CREATE: 'create'>, initial=False)
    """
    return _DECISIONS[facts]
