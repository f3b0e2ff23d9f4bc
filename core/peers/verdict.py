"""The verdict of peering, from the states of all peering objects."""

from __future__ import annotations

from fnop.core.peers.freezing import (
    Frozen,
    PeeringVerdict,
    Serving,
    Why,
    precedence,
    together,
)
from fnop.core.peers.memberships import (
    Existence,
    Membership,
    Peering,
)
from fnop.core.peers.peers import (
    Member,
    Mode,
)
from fnop.core.peers.renewing import alive
from fnop.core.values.now import Now

__all__ = ["judge", "lacking_in", "scope_of", "verdict_of"]

# The operator freezes after this many removals of its own record by others.
REMOVALS_MAX = 3


def verdict_of(peering: Peering, now: Now) -> PeeringVerdict:
    """The verdict of all places: the most important reason of any counts everywhere."""
    if peering.is_leaving:
        return Frozen(Why.LEFT)
    if peering.member.mode is Mode.STANDALONE:
        return Serving()
    if peering.namespaces is None:
        return Frozen(Why.JOINING)
    found = [
        judge(membership, peering.member, now) for membership in peering.memberships
    ]
    if peering.member.mode is Mode.MANDATORY:
        found += [Frozen(Why.MISSING, (), (scope_of(n),)) for n in lacking_in(peering)]
    return together(found)


def judge(membership: Membership, member: Member, now: Now) -> PeeringVerdict:
    """The verdict of one place; the first condition that holds decides.

    A place without an object serves; `Mode.MANDATORY` is checked in `verdict_of`.
    """
    where = membership.place.label
    is_good = membership.good_until is not None and now.mono < membership.good_until
    by_rank = precedence(alive(membership), member.priority, where)
    if membership.presence is Existence.ABSENT:
        return Serving()
    if membership.presence is Existence.UNKNOWN:
        why = Why.UNSEEN if membership.trouble else Why.JOINING
    elif isinstance(by_rank, Frozen):
        return by_rank
    elif now.mono < membership.doubled_until:
        why, is_good = Why.DOUBLED, False
    elif membership.removals >= REMOVALS_MAX:
        why, is_good = Why.REMOVED, False
    elif membership.good_until is None and not membership.trouble:
        why = Why.JOINING
    else:
        why = Why.UNRENEWED
    return Serving() if is_good else Frozen(why, (), (where,), membership.trouble)


def lacking_in(peering: Peering) -> tuple[str | None, ...]:
    """The namespaces that are known to have no peering object."""
    return tuple(
        namespace
        for namespace in peering.namespaces or ()
        if all(
            membership.presence is Existence.ABSENT
            for membership in peering.memberships
            if membership.place.namespace == namespace
        )
    )


def scope_of(namespace: str | None) -> str:
    return f"in {namespace}" if namespace else "in the cluster"
