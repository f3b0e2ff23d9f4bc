"""The journal of a trial: all that it writes down, for those who judge it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from fnop.core.operator.step import State
from fnop.core.seam.commands import Say
from fnop.interpreters.check.state.records import (
    Glimpse,
    Happened,
    Kept,
    Phase,
    Refusal,
    Rejection,
    Reviewed,
    Unrest,
    Visit,
    Write,
)
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.simulation.externals import forked

__all__ = ["AtRest", "End", "Healed", "Journal", "Reviews", "fork_of"]

T = TypeVar("T")


def fork_of(found: T) -> T:
    """Copy a dataclass with its containers: from then on they change apart.

    >>> first = Reviews()
    >>> second = fork_of(first)
    >>> second.unanswered += 1
    >>> first.unanswered, first.decided is second.decided
    (0, False)
    """
    names = [each.name for each in fields(found)]  # type: ignore[arg-type]
    return type(found)(**{name: _copy_of(getattr(found, name)) for name in names})


def _copy_of(value: Any) -> Any:
    match value:
        case list() | dict() | set() | Kept():
            return value.copy()
        case Reviews():
            return fork_of(value)
        case _:
            return value


class AtRest(NamedTuple):
    """The world when everything had settled after an action of the user.

    `time` is in virtual seconds. The operator's `state` is kept for admission handlers,
    and the digests of systems `outside` in a run without faults.
    """

    cluster: Cluster
    time: float
    state: State | None = None
    outside: Mapping[str, bytes] | None = None


class End(Struct, frozen=True):
    """The cluster at the end of a phase; the time is None if the phase never ended."""

    cluster: Cluster
    time: float | None = None


class Healed(Struct, frozen=True):
    """The world when all faults had ended.

    `crashes` counts the processes that had begun again, or in another's place. `work`
    is everything that a restart without any work leaves unchanged.
    """

    calls: Mapping[str, Any] = {}
    crashes: int = 0
    work: tuple[Any, ...] = ()


@dataclass
class Reviews:
    """Reviews of writes by the operator's admission handlers."""

    decided: list[Reviewed] = field(default_factory=list)
    # Reviews without an answer in time, and whether a write went on without one.
    unanswered: int = 0
    are_skipped: bool = False


@dataclass
class Journal:
    """The events of a trial, the worlds at its rests, and those at its ends.

    `since` is in virtual seconds. `actors` are the makers of changes, each from a
    version of the cluster on. `story` has the acts of the user, the operator and the
    faults. `lines` are the warnings and errors of the log. `said` are all log lines,
    each with its phase and the number of actions before it, as long as no fault is to
    strike. `stray` are the uids of objects whose creation landed late. `users` are
    pairs: the uid of an object, and the uid of a handled object whose handler has read
    or written it. `rests` are by the number of actions.
    """

    beginning: Cluster
    since: float = 0.0
    counts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    visits: list[Visit] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    lines: list[tuple[Phase, Say]] = field(default_factory=list)
    said: list[tuple[Phase, int, Say]] = field(default_factory=list)
    story: list[Happened] = field(default_factory=list)
    actors: list[tuple[int, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    reviews: Reviews = field(default_factory=Reviews)
    kept: Kept = field(default_factory=Kept.nothing)
    users: set[tuple[str, str]] = field(default_factory=set)
    stray: set[str] = field(default_factory=set)
    rests: dict[int, AtRest] = field(default_factory=dict)
    ends: dict[Phase, End] = field(default_factory=dict)
    unsettled: dict[Phase, Unrest] = field(default_factory=dict)
    healed: Healed = field(default_factory=Healed)

    @property
    def denied(self) -> frozenset[int]:
        """The numbers of the user's actions that the operator's handlers prevented."""
        return frozenset(each.place for each in self.refusals if each.is_own)

    @property
    def outside(self) -> list[Mapping[str, bytes]]:
        """The state of systems outside at each rest of a run without faults."""
        found = (each.outside for each in self.rests.values())
        return [each for each in found if each is not None]

    def maker_of(self, version: int) -> str:
        """The actor that has made a version of the cluster; "" if that is unknown."""
        place = bisect_left(self.actors, version, key=lambda begun: begun[0]) - 1
        return self.actors[place][1] if place >= 0 else ""

    def glimpse(self, version: int, wall: float, calls: Mapping[Any, Any]) -> None:
        """Keep the state of external systems at a version of the cluster."""
        found = self.kept.glimpses
        if found and found[-1].version == version:
            found.pop()
        found.append(Glimpse(version, wall, forked(calls)))
