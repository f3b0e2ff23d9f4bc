"""Where an operator meets its peers, and what it knows there: the values of peering."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import NamedTuple

from fnop.core.peers.asking import PeeringAsk, PeeringPlace, Pending
from fnop.core.peers.freezing import (
    Frozen,
    PeeringVerdict,
    Why,
)
from fnop.core.peers.peers import (
    MalformedRecord,
    Member,
    SeenPeer,
)
from fnop.core.seam.commands import Say
from fnop.core.seam.inputs import AlarmRang, Answered
from fnop.core.seam.replies import PeeringPurpose
from fnop.core.values.body import Body
from fnop.effects import (
    Freeze,
    Resume,
)

__all__ = [
    "Existence",
    "Leave",
    "Looked",
    "Peering",
    "PeeringDecision",
    "PeeringFact",
    "Placed",
    "Seat",
    "Unseen",
    "has_left",
]


class Existence(Enum):
    """What is known of a peering object."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    PRESENT = "present"


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

    place: PeeringPlace
    presence: Existence = Existence.UNKNOWN
    uid: str = ""
    version: str = ""
    seen: tuple[SeenPeer, ...] | None = None
    malformed: tuple[MalformedRecord, ...] = ()
    good_until: float | None = None
    looked_at: float = -inf
    due: float = 0.0
    pending: Pending[PeeringPurpose] | None = None
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
    verdict: PeeringVerdict = Frozen(Why.JOINING)  # noqa: RUF009 (an immutable value)
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

    place: PeeringPlace
    body: Body | None


@dataclass(frozen=True, slots=True)
class Unseen:
    """A listing or a watch of a place has failed, in these words."""

    place: PeeringPlace
    message: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The operator ends: nothing is under way any more, its record shall go."""


PeeringFact = Placed | Looked | Unseen | Answered | AlarmRang | Leave


class PeeringDecision(NamedTuple):
    """What follows from a fact; `wake` is monotonic, None for never."""

    peering: Peering
    asks: tuple[PeeringAsk, ...]
    verdict: PeeringVerdict
    effect: Freeze | Resume | None
    wake: float | None
    says: tuple[Say, ...]


def has_left(peering: Peering) -> bool:
    """Whether an operator that ends has nothing more to wait for."""
    return peering.is_leaving and all(
        not seat.sent or seat.has_left or seat.presence is Existence.ABSENT
        for seat in peering.seats
    )
