"""The brake on loops: pauses between changes that the operator makes itself.

A handler that changes, at each call, the field that leads to its calls would be called
without end. So would two operators that undo each other's writes. The first few rounds
of such a loop come at once, later ones after growing pauses.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fnop.effects.structs import replace

__all__ = [
    "CALM",
    "FOLLOWED_CHANGES",
    "LOOP_CHANGES",
    "ROLLOUT_CHANGES",
    "Author",
    "Pace",
    "culprits",
    "is_quiet",
    "paced",
]

# The maximum number of own changes in quick succession that are not yet a loop.
LOOP_CHANGES = 10
# The same for a handler whose desired children change at each call, such as one that
# replaces many children one after another.
ROLLOUT_CHANGES = 30
# The same for a handler that settles between two of its changes: they follow others'
# changes.
FOLLOWED_CHANGES = 300
_PAUSE_SECONDS_MAX = 60.0
_QUIET_SECONDS = 1.0
# A handler that has made fewer changes does not keep the loop going.
_ROUNDS_LEAST = 3


class Author(Struct, frozen=True):
    """A handler's share in the changes: their number, and the `fields` of the last one.

    All changes of one `attempt` count once.
    """

    times: int
    fields: tuple[str, ...] = ()
    attempt: int | None = None


class Pace(Struct, frozen=True):
    """A series of `changes` of an object by the operator itself.

    The last change came at `last`. No handler starts because of the changes before
    `until` (monotonic seconds). `authors` are the handlers that made them, by id. More
    than `most` of them are a loop.
    """

    changes: int = 0
    last: float = 0.0
    until: float = 0.0
    authors: tuple[tuple[str, Author], ...] = ()
    most: int = LOOP_CHANGES

    @property
    def is_loop(self) -> bool:
        return self.changes > self.most

    @property
    def pause(self) -> float:
        """The pause after the last change, in seconds; it doubles up to a minute."""
        extra = self.changes - self.most
        return min(2.0 ** min(extra - 1, 30), _PAUSE_SECONDS_MAX) if extra > 0 else 0.0


CALM = Pace()


def paced(
    pace: Pace,
    now: float,
    by: Mapping[str, tuple[str, ...]],
    attempt: int | None = None,
    began: float | None = None,
) -> Pace:
    """Return the pace after one more own change; after a quiet time it restarts.

    `by` maps each handler to the fields that it changed, in this `attempt` if known. An
    attempt that `began` soon after the last change follows it, however long it takes.

    >>> pace = CALM
    >>> for _ in range(12):
    ...     pace = paced(pace, 100.0, {"count": ("/spec/n",)})
    >>> pace.until - 100.0, paced(pace, 200.0, {}).changes
    (2.0, 1)
    >>> paced(paced(CALM, 1.0, {"a": ()}, 7), 1.0, {"a": ()}, 7).changes
    1
    >>> paced(paced(CALM, 1.0, {}), 60.0, {}, began=1.5).changes
    2
    """
    if is_quiet(pace, now if began is None else began):
        pace = Pace(most=pace.most)
    authors = dict(pace.authors)
    fresh = False
    for name, fields in by.items():
        before = authors.get(name, Author(0))
        is_same = attempt is not None and before.attempt == attempt
        fresh |= not is_same
        authors[name] = Author(before.times + (not is_same), fields, attempt)
    count = pace.changes + (fresh or not by)
    made = Pace(count, now, authors=tuple(authors.items()), most=pace.most)
    return replace(made, until=now + made.pause)


def is_quiet(pace: Pace, now: float) -> bool:
    """Whether the last own change is long ago, so that the next begins a new series.

    >>> is_quiet(CALM, 5.0), is_quiet(Pace(11, 4.0), 5.0)
    (True, False)
    """
    return not pace.changes or now - pace.last > 2 * pace.pause + _QUIET_SECONDS


def culprits(pace: Pace) -> dict[str, tuple[str, ...]]:
    """The handlers that keep a loop going, with their fields; empty without a loop.

    A handler that made a few changes next to the loop does not count.

    >>> authors = (("done", Author(1)), ("one", Author(6, ("/a",))), ("two", Author(5)))
    >>> culprits(Pace(12, authors=authors))
    {'one': ('/a',), 'two': ()}
    """
    most = max((each.times for _, each in pace.authors), default=0)
    if not pace.is_loop or most < _ROUNDS_LEAST:
        return {}
    return {name: each.fields for name, each in pace.authors if 2 * each.times >= most}
