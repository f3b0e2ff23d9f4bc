"""How quickly an operator may follow the changes that it makes itself.

Whoever writes at each call what it is called for would be called without end; and so
would two operators that undo each other's writes.  The first few turns of such a loop
come at once, later ones after pauses that grow.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CALM", "LOOP_CHANGES", "Pace", "paced"]

# So many own changes, one soon after the other, are no loop yet.
LOOP_CHANGES = 10
_PAUSE_SECONDS_MAX = 60.0
_QUIET_SECONDS = 1.0


class Pace(NamedTuple):
    """`changes` of an object by the operator itself, one soon after the other.

    The last one came at `last`, and nothing begins because of them before `until`
    (monotonic seconds).
    """

    changes: int = 0
    last: float = 0.0
    until: float = 0.0

    @property
    def is_loop(self) -> bool:
        return self.changes > LOOP_CHANGES


CALM = Pace()


def paced(pace: Pace, now: float) -> Pace:
    """The pace after one more own change at `now`; a quiet while begins it anew.

    >>> pace = CALM
    >>> for _ in range(12):
    ...     pace = paced(pace, 100.0)
    >>> pace.until - 100.0, paced(pace, 200.0).changes
    (2.0, 1)
    """
    is_quiet = now - pace.last > 2 * _pause(pace.changes) + _QUIET_SECONDS
    count = 1 if is_quiet else pace.changes + 1
    return Pace(count, now, now + _pause(count))


def _pause(count: int) -> float:
    """The pause after so many changes, in seconds; it doubles up to a minute."""
    extra = count - LOOP_CHANGES
    return min(2.0 ** min(extra - 1, 30), _PAUSE_SECONDS_MAX) if extra > 0 else 0.0
