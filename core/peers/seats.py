"""Where an operator meets its peers, and what it knows there: the values of peering."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import NamedTuple

from fnop.core.peers.freezing import (
    Frozen,
    Verdict,
    Why,
)
from fnop.core.peers.peers import (
    Malformed,
    Member,
    Sighting,
)
from fnop.core.seam.commands import Say
from fnop.core.seam.inputs import AlarmRang, Answered
from fnop.core.values.body import Body
from fnop.effects import (
    Effect,
    Freeze,
    Resume,
)

__all__ = [
    "Ask",
    "Fact",
    "Leave",
    "Looked",
    "Move",
    "Peering",
    "Pending",
    "Place",
    "Placed",
    "Presence",
    "Purpose",
    "Seat",
    "Unseen",
    "has_left",
]


class Place(NamedTuple):
    """The address of a peering object; its name is the member's."""

    kind: str  # plural.version.group
    namespace: str | None

    @property
    def label(self) -> str:
        """`plural.group`, and where, as people call it."""
        plural, _, rest = self.kind.partition(".")
        inside = f" in {self.namespace}" if self.namespace else ""
        return f"{plural}.{rest.partition('.')[2]}{inside}"


class Presence(Enum):
    """What is known of a peering object."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    PRESENT = "present"


class Purpose(Enum):
    """What a request is for."""

    RENEW = "renew"
    CLEAN = "clean"
    LEAVE = "leave"


class Pending(NamedTuple):
    """A request under way, since this monotonic moment.

    `version` is that of the object which was known then: the answer is not older,
    unless the API server was restored from a backup meanwhile.
    """

    number: int
    purpose: Purpose
    sent_at: float
    version: str = ""


@dataclass(frozen=True, slots=True)
class Seat:
    """This operator's place in one peering object.

    Moments are monotonic.  `good_until` is when the right to serve ends unless the own
    record is renewed, None before it was written; `looked_at` when the last renewal
    that was answered was sent: the answer shows all that was written before.  `due` is
    when the next request may be sent.  `sent` are the `lastseen` of own records, the
    latest last.  `removals` counts how often the record was taken away since it last
    was renewed in its usual time; `doubled_until` is how long a record counts that
    another process has written under the own identity.  `tidied` is the version of
    which dead records were removed, or were tried to be.
    """

    place: Place
    presence: Presence = Presence.UNKNOWN
    uid: str = ""
    version: str = ""
    seen: tuple[Sighting, ...] | None = None
    malformed: tuple[Malformed, ...] = ()
    good_until: float | None = None
    looked_at: float = -inf
    due: float = 0.0
    pending: Pending | None = None
    failures: int = 0
    trouble: str = ""
    sent: tuple[str, ...] = ()
    is_removed: bool = False
    removals: int = 0
    doubled_until: float = -inf
    tidied: str = ""
    has_left: bool = False


@dataclass(frozen=True, slots=True)
class Peering:
    """All that this operator knows of its peers.

    `namespaces` are those in which it meets them, (None,) for the cluster; None before
    they are known.  `lacking` are those without an object, which the log has named.
    """

    member: Member
    namespaces: tuple[str | None, ...] | None = None
    seats: tuple[Seat, ...] = ()
    verdict: Verdict = Frozen(Why.JOINING)  # noqa: RUF009 (an immutable value)
    serial: int = 0
    is_leaving: bool = False
    lacking: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """Discovery is over, for now: these kinds are served, and looked at, there.

    `namespaces` None is the whole cluster.  To be said again when a kind comes or goes.
    """

    kinds: tuple[str, ...]
    namespaces: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """A listing or a watch shows the peering object, or that it is not there (None)."""

    place: Place
    body: Body | None


@dataclass(frozen=True, slots=True)
class Unseen:
    """A listing or a watch of a place has failed, in these words."""

    place: Place
    message: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The operator ends: nothing is under way any more, its record shall go."""


Fact = Placed | Looked | Unseen | Answered | AlarmRang | Leave


class Ask(NamedTuple):
    """A request to send; its answer is an `Answered` of this number, if one comes.

    From `before` on (monotonic) the answer is not waited for: what has not been sent by
    then need not be.
    """

    number: int
    place: Place
    effect: Effect
    before: float


class Move(NamedTuple):
    """What follows from a fact; `wake` is monotonic, None for never."""

    peering: Peering
    asks: tuple[Ask, ...]
    verdict: Verdict
    effect: Freeze | Resume | None
    wake: float | None
    says: tuple[Say, ...]


def has_left(peering: Peering) -> bool:
    """Whether an operator that ends has nothing more to wait for."""
    return peering.is_leaving and all(
        not seat.sent or seat.has_left or seat.presence is Presence.ABSENT
        for seat in peering.seats
    )
