"""The values of peering: its state, by place, its facts and its decisions."""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import NamedTuple

from msgspec import Struct

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
    "Membership",
    "Peering",
    "PeeringDecision",
    "PeeringFact",
    "Placed",
    "Unseen",
    "has_left",
]


class Existence(Enum):
    """Whether a peering object exists, as far as that is known."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    PRESENT = "present"


class Membership(Struct, frozen=True):
    """The state of one peering object, and of this operator's record in it.

    Times are monotonic. At `good_until` the right to serve ends unless the own record
    is renewed; None before it was written. `looked_at` is the sending time of the last
    answered renewal, whose answer shows everything that was written before. `due` is
    the time of the next request. `sent` are the `lastseen` of own records, the newest
    last. `removals` counts how often others removed the record since its last renewal
    at its usual time. Until `doubled_until`, a record counts that another process has
    written under the own identity. `tidied` is the object's version when dead records
    were removed, or when that was tried. `unheard` is the sending time of a renewal
    without a reply: it may land after a later one, and take the record back.
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
    unheard: float | None = None


class Peering(Struct, frozen=True):
    """The state of peering in this operator.

    `namespaces` are the namespaces of the peering objects, (None,) for the cluster;
    None before they are known. `lacking` are the namespaces without an object, which
    have been logged.
    """

    member: Member
    namespaces: tuple[str | None, ...] | None = None
    memberships: tuple[Membership, ...] = ()
    verdict: PeeringVerdict = Frozen(Why.JOINING)
    serial: int = 0
    is_leaving: bool = False
    lacking: tuple[str | None, ...] = ()


class Placed(Struct, frozen=True):
    """A result of discovery: the served kinds of peering objects, and the namespaces.

    `namespaces` None is the whole cluster. Sent again when a kind is added or removed.
    """

    kinds: tuple[str, ...]
    namespaces: tuple[str, ...] | None = None


class Looked(Struct, frozen=True):
    """A listing or a watch shows the peering object, or None if it is absent."""

    place: PeeringPlace
    body: Body | None


class Unseen(Struct, frozen=True):
    """A listing or a watch of a place has failed, with this message."""

    place: PeeringPlace
    message: str


class Leave(Struct, frozen=True):
    """The operator ends: no request is in flight, and its record is to be removed."""


PeeringFact = Placed | Looked | Unseen | Answered | AlarmRang | Leave


class PeeringDecision(NamedTuple):
    """The result of `advance`; `wake` is monotonic, None means never."""

    peering: Peering
    asks: tuple[PeeringAsk, ...]
    verdict: PeeringVerdict
    effect: Freeze | Resume | None
    wake: float | None
    says: tuple[Say, ...]


def has_left(peering: Peering) -> bool:
    """Whether an operator that ends has removed its records."""
    return peering.is_leaving and all(
        not membership.sent
        or membership.has_left
        or membership.presence is Existence.ABSENT
        for membership in peering.memberships
    )
