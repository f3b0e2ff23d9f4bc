"""The next requests to peering objects: renewals, and removals of records."""

from __future__ import annotations

from math import inf

from fnop.core.peers.asking import PeeringAsk, Pending
from fnop.core.peers.memberships import Existence, Membership, Peering
from fnop.core.peers.peers import (
    Member,
    Peer,
    record_of,
    removal_patch,
    renewal_patch,
)
from fnop.core.seam.replies import PeeringPurpose
from fnop.core.values.now import Now
from fnop.effects import (
    Patch,
    Target,
)
from fnop.effects.structs import replace

__all__ = ["alive", "asking", "late_at", "removal_at", "renewal_at"]

# The timeout of a request, as a part of the record's lifetime.
ANSWER_WITHIN = 1 / 6


# Any peer may remove dead records if the first living one has left them this long.
CLEAN_SECONDS = 60.0


# The number of own records that are recognized if a late watch shows them.
SENT_MAX = 8


def late_at(pending: Pending[PeeringPurpose], member: Member) -> float:
    return pending.sent_at + max(1.0, member.lifetime * ANSWER_WITHIN)


def asking(peering: Peering, now: Now) -> tuple[Peering, tuple[PeeringAsk, ...]]:
    """The requests that are due now, at most one for each place."""
    memberships: list[Membership] = []
    asks: list[PeeringAsk] = []
    serial = peering.serial
    for membership in peering.memberships:
        found = _next_request(membership, peering, now)
        if found is not None:
            serial += 1
            purpose, effect, lastseen = found
            pending = Pending(serial, purpose, now.mono, membership.version)
            membership = replace(
                membership,
                pending=pending,
                sent=(*membership.sent, *lastseen)[-SENT_MAX:],
                tidied=membership.version
                if purpose is PeeringPurpose.CLEAN
                else membership.tidied,
            )
            before = late_at(pending, peering.member)
            asks.append(PeeringAsk(serial, membership.place, effect, before))
        memberships.append(membership)
    return replace(peering, memberships=tuple(memberships), serial=serial), tuple(asks)


def _next_request(
    membership: Membership, peering: Peering, now: Now
) -> tuple[PeeringPurpose, Patch, tuple[str, ...]] | None:
    """The purpose and the patch of the request that is due, and its `lastseen`."""
    member = peering.member
    if membership.presence is not Existence.PRESENT or membership.pending is not None:
        return None
    target = Target(membership.place.kind, member.name, membership.place.namespace)
    if peering.is_leaving:
        if (
            not membership.sent
            or membership.has_left
            or now.mono < removal_at(membership)
        ):
            return None
        return PeeringPurpose.LEAVE, Patch(target, removal_patch([member.identity])), ()
    if renewal_at(membership, member) <= now.mono:
        record = record_of(member.priority, member.lifetime, now.wall)
        patch = Patch(target, renewal_patch(member.identity, record))
        return PeeringPurpose.RENEW, patch, (record["lastseen"],)
    dead = _peers_to_remove(membership, member)
    if dead:
        return (
            PeeringPurpose.CLEAN,
            Patch(target, removal_patch(dead, membership.version)),
            (),
        )
    return None


def removal_at(membership: Membership) -> float:
    """The time to remove the own record: at once, or some time after a failed try."""
    return membership.due if membership.failures else -inf


def renewal_at(membership: Membership, member: Member) -> float:
    """The time of the next renewal: as scheduled, or earlier when a blocking peer dies.

    That peer may have renewed its record unseen; the answer will show it.
    """
    if membership.failures or membership.is_removed:
        return membership.due
    deaths = (
        each.dies
        for each in membership.seen or ()
        if each.dies > membership.looked_at and each.peer.priority >= member.priority
    )
    return min([membership.due, *deaths])


def _peers_to_remove(membership: Membership, member: Member) -> list[str]:
    """The identities of dead peers whose records this operator must remove.

    The first living peer removes them. Any other peer does if the first one does not.
    """
    if membership.tidied == membership.version:
        return []
    is_first = all(member.identity < each.identity for each in alive(membership))
    since = membership.looked_at - (0.0 if is_first else CLEAN_SECONDS)
    return [
        each.peer.identity for each in membership.seen or () if each.forgotten <= since
    ]


def alive(membership: Membership) -> list[Peer]:
    """The peers that are alive, as of the last answered renewal."""
    return [
        each.peer for each in membership.seen or () if each.dies > membership.looked_at
    ]
