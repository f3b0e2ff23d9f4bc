"""Peering: a state machine that decides which of several operators serves.

Operators that could serve the same objects have records in peering objects
(`fnop.core.peers.peers`). Each writes its own record there, and reads the others'. An
operator that reads a higher priority than its own freezes, and serves again when that
record is gone. Operators of the same priority all freeze, as none of them has
precedence.

    advance(peering, now, fact, jitter)
        -> PeeringDecision(peering', asks, verdict, effect, wake, says)

A fact is a result of discovery (`Placed`), of a listing or a watch (`Looked`,
`Unseen`), an answer (`Answered`), an alarm, or `Leave`. An ask is a request to send,
whose `Answered` has its number. `wake` is the time of the next call if nothing happens
before (monotonic seconds). `effect` is `Freeze` or `Resume` if the verdict needs one.
An operator begins frozen. Its first `Resume` comes when it has read all peering objects
and written its own record.

The rules are Kopf's unless noted otherwise:

- A cluster-wide operator has its records in cluster-scoped objects, others in an object
  in each of their namespaces. An operator serves everywhere or nowhere. It takes part
  in all objects of its name, of Kopf's two groups and of fnop's own.
- `Mode.AUTO` takes part if such objects exist; `Mode.MANDATORY` freezes until one
  exists in each namespace (or in the cluster); `Mode.STANDALONE` reads none.
- The right to serve ends before the own record expires for the others: an operator that
  cannot renew it freezes (Kopf continues; two operators are active).
- The answer to a renewal shows all records. So an operator whose watch is late or
  broken still sees its peers at each renewal.
- The first living operator removes dead records, on the condition that nothing has
  changed meanwhile (Kopf: all do, and a record that was just renewed may be removed).
- A record that another client removes is written again. A peer that removes it again
  and again takes this operator for dead, and may be serving. So this one freezes.
- A record under the own identity that another process has written is a peer's, too.

- A peer is dead when a renewal that was sent after the end of its lifetime shows no
  change of its record. For a peer that blocks, an additional renewal is sent at that
  time (Kopf does so, too).

Peering is a convention between people who run operators, not a lock. Between a peer's
first record and the watch event that shows it to this operator, both are active. The
lock is `fnop.core.peers.election`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

from fnop.core.peers.asking import PeeringPlace, Pending
from fnop.core.peers.freezing import (
    Serving,
    transition,
)
from fnop.core.peers.memberships import (
    Existence,
    Leave,
    Looked,
    Membership,
    Peering,
    PeeringDecision,
    PeeringFact,
    Placed,
    Unseen,
)
from fnop.core.peers.peers import (
    MalformedRecord,
    Member,
    Mode,
    Peer,
    parse_peer,
    parse_peers,
    sight,
)
from fnop.core.peers.renewing import asking, late_at, removal_at, renewal_at
from fnop.core.peers.verdict import lacking_in, scope_of, verdict_of
from fnop.core.seam.commands import Say
from fnop.core.seam.inputs import AlarmRang, Answered
from fnop.core.seam.replies import Next, PeeringPurpose, message_of, next_after
from fnop.core.values.backoff import backoff_seconds
from fnop.core.values.body import Body, is_behind
from fnop.core.values.now import Now
from fnop.effects import (
    Applied,
    Conflict,
    Missing,
    Outcome,
    Refused,
    Unknown,
    Unreachable,
)
from fnop.effects.structs import replace

__all__ = ["CLUSTER_KINDS", "NAMESPACED_KINDS", "advance", "begin", "kinds_for"]

# The kinds of peering objects, as keys of `Resource`.
CLUSTER_KINDS = (
    "clusterfnoppeerings.v1.fnop.dev",
    "clusterkopfpeerings.v1.kopf.dev",
    "clusterkopfpeerings.v1.zalando.org",
)
NAMESPACED_KINDS = (
    "fnoppeerings.v1.fnop.dev",
    "kopfpeerings.v1.kopf.dev",
    "kopfpeerings.v1.zalando.org",
)

# The parts of a record's lifetime that pass before its renewal (Kopf: 5 to 10 s before
# its end, which leaves little for a second try), and before the right to serve ends.
_RENEW_AFTER = (0.6, 0.7)
_SERVE_FOR = 0.9
# A serving operator continues for this long (seconds) while it reads a new object for
# the first time, or writes its own record again.
GRACE_SECONDS = 5.0


# --------------------------------------------------------------------- state


def begin(member: Member) -> Peering:
    """The state of an operator that has read no peering object; it is frozen."""
    return Peering(member)


def kinds_for(namespaces: Iterable[str] | None) -> tuple[str, ...]:
    """The kinds of peering objects for the served namespaces; None means all.

    >>> kinds_for(["default"])[0]
    'fnoppeerings.v1.fnop.dev'
    """
    return CLUSTER_KINDS if namespaces is None else NAMESPACED_KINDS


# --------------------------------------------------------------------- facts


def advance(
    peering: Peering, now: Now, fact: PeeringFact, jitter: float = 0.5
) -> PeeringDecision:
    """Apply a fact to the state, and decide; any fact is valid in any state.

    `jitter`, from 0 to 1, spreads the renewals of operators that began together.
    """
    says: list[Say] = []
    if peering.member.mode is not Mode.STANDALONE:
        peering = _take_fact(peering, now, fact, jitter, says)
        peering = _give_up_requests(peering, now)
        peering = _announce_lacking(peering, says)
    elif isinstance(fact, Leave):
        peering = replace(peering, is_leaving=True)
    peering, asks = asking(peering, now)
    verdict = verdict_of(peering, now)
    effect, line = transition(peering.verdict, verdict, peering.member)
    if line is not None:
        says.append(line)
    peering = replace(peering, verdict=verdict)
    return PeeringDecision(
        peering, asks, verdict, effect, _wake_time(peering, now), tuple(says)
    )


# ---------------------------------------------------------------------- fold


def _take_fact(
    peering: Peering, now: Now, fact: PeeringFact, jitter: float, says: list[Say]
) -> Peering:
    member = peering.member
    # A serving operator continues while a new object is read for the first time.
    serves = isinstance(peering.verdict, Serving)
    grace = now.mono + GRACE_SECONDS if serves else None
    match fact:
        case Placed():
            return _place_memberships(peering, fact, grace)
        case Looked(place, body):
            return _with_memberships(
                peering,
                place,
                lambda membership: _look_at_object(
                    _with_grace(membership, grace), member, body, now, says
                ),
            )
        case Unseen(place, message):
            return _with_memberships(
                peering,
                place,
                lambda membership: _note_failed_watch(membership, message),
            )
        case Answered(number, outcome):
            asked = _place_of_request(peering, number)
            return _with_memberships(
                peering,
                asked,
                lambda membership: _answered(
                    membership, member, outcome, now, jitter, says
                ),
            )
        case Leave():
            memberships = tuple(
                replace(membership, due=now.mono) for membership in peering.memberships
            )
            return replace(peering, is_leaving=True, memberships=memberships)
        case AlarmRang():
            return peering


def _with_memberships(
    peering: Peering,
    place: PeeringPlace | None,
    change: Callable[[Membership], Membership],
) -> Peering:
    memberships = tuple(
        change(membership) if membership.place == place else membership
        for membership in peering.memberships
    )
    return replace(peering, memberships=memberships)


def _place_of_request(peering: Peering, number: int) -> PeeringPlace | None:
    """The place of a pending request; None for any other number."""
    for membership in peering.memberships:
        if membership.pending is not None and membership.pending.number == number:
            return membership.place
    return None


def _place_memberships(peering: Peering, fact: Placed, grace: float | None) -> Peering:
    known = {membership.place: membership for membership in peering.memberships}
    namespaces = (None,) if fact.namespaces is None else fact.namespaces
    places = [PeeringPlace(kind, each) for each in namespaces for kind in fact.kinds]
    memberships = tuple(
        known.get(place) or Membership(place, good_until=grace) for place in places
    )
    return replace(peering, namespaces=namespaces, memberships=memberships)


def _with_grace(membership: Membership, grace: float | None) -> Membership:
    return (
        replace(membership, good_until=grace)
        if membership.presence is Existence.ABSENT
        else membership
    )


def _note_failed_watch(membership: Membership, message: str) -> Membership:
    """Note a failed listing or watch, unless renewals read the object anyway."""
    return (
        replace(membership, trouble=message)
        if membership.presence is Existence.UNKNOWN
        else membership
    )


def _give_up_requests(peering: Peering, now: Now) -> Peering:
    """Give up requests whose answers are late."""
    member = peering.member
    memberships = tuple(
        _schedule_retry(membership, member, Unknown("no answer came"), now)
        if membership.pending is not None
        and late_at(membership.pending, member) <= now.mono
        else membership
        for membership in peering.memberships
    )
    return replace(peering, memberships=memberships)


def _look_at_object(
    membership: Membership, member: Member, body: Body | None, now: Now, says: list[Say]
) -> Membership:
    """Apply a state of the peering object: the peers, and the own record."""
    if body is None:
        return Membership(membership.place, Existence.ABSENT)
    if _is_older(body, membership):
        return membership
    others = dict(body.stanza("status"))
    own = others.pop(member.identity, None)
    peers, malformed = parse_peers(others)
    named = {each.identity for each in membership.malformed}
    for each in malformed:
        if each.identity not in named:
            says.append(_say_malformed(membership, each))
    if membership.presence is not Existence.PRESENT:
        membership = replace(membership, due=now.mono, trouble="")
    membership = replace(
        membership,
        presence=Existence.PRESENT,
        uid=body.uid,
        version=body.version,
        seen=sight(membership.seen, peers, now),
        malformed=malformed,
    )
    return _look_at_own(membership, member, own, now, says)


def _is_older(body: Body, membership: Membership) -> bool:
    """Whether a late watch shows an older version of the object than an earlier one."""
    return body.uid == membership.uid and is_behind(body.version, membership.version)


def _say_malformed(membership: Membership, each: MalformedRecord) -> Say:
    text = f"the record of {each.identity!r} in {membership.place.label} is ignored"
    return Say("warning", f"{text}: {each.problem}")


def _look_at_own(
    membership: Membership, member: Member, own: Any, now: Now, says: list[Say]
) -> Membership:
    if not membership.sent or membership.has_left:
        return membership  # a record, if any, is an earlier process's: to overwrite
    pending = membership.pending
    if own is None:
        if pending is not None and pending.purpose is not PeeringPurpose.CLEAN:
            return membership  # it is being written, or removed
        return _rewrite_record(membership, now, says)
    if isinstance(own, Mapping) and own.get("lastseen") in membership.sent:
        return membership
    peer = parse_peer(member.identity, own)
    lifetime = peer.lifetime if isinstance(peer, Peer) else member.lifetime
    return replace(membership, doubled_until=now.mono + max(lifetime, 0.0))


def _rewrite_record(membership: Membership, now: Now, says: list[Say]) -> Membership:
    """Write the own record again, which another client has removed.

    The first time it does so at once, later with backoff.
    """
    if membership.is_removed:
        return membership
    removals = membership.removals + 1
    if removals == 1:
        place = membership.place.label
        text = f"somebody has taken this operator's record away in {place}"
        says.append(Say("warning", f"{text}; it is written again"))
    wait = backoff_seconds(removals - 1, 0.0) if removals > 1 else 0.0
    good_until = now.mono + GRACE_SECONDS
    if membership.good_until is not None:
        good_until = min(membership.good_until, good_until)
    return replace(
        membership,
        is_removed=True,
        removals=removals,
        due=now.mono + wait,
        good_until=good_until,
    )


# ------------------------------------------------------------------- answers


def _answered(
    membership: Membership,
    member: Member,
    outcome: Outcome,
    now: Now,
    jitter: float,
    says: list[Say],
) -> Membership:
    pending = membership.pending
    assert pending is not None
    if next_after(pending.purpose, outcome) is not Next.TAKE:
        if isinstance(outcome, Refused) and not membership.failures:
            says.append(_say_refusal(membership, outcome))
        return _schedule_retry(membership, member, outcome, now)
    match pending.purpose, outcome:
        case _, Missing():
            return Membership(membership.place, Existence.ABSENT)
        case PeeringPurpose.RENEW, Applied(object):
            says += _say_renewal(membership, member)
            membership = _note_renewal(membership, member, pending, jitter)
            return _look_again(membership, pending.version, member, object, now, says)
        case PeeringPurpose.CLEAN, Applied(object):
            membership = replace(membership, pending=None)
            return _look_again(membership, pending.version, member, object, now, says)
        case PeeringPurpose.LEAVE, Applied():
            return replace(membership, pending=None, has_left=True)
        case PeeringPurpose.CLEAN, Conflict():
            return replace(
                membership, pending=None
            )  # the watch will show what has changed
        case _:
            return _schedule_retry(membership, member, outcome, now)


def _look_again(
    membership: Membership,
    version: str,
    member: Member,
    object: Any,
    now: Now,
    says: list[Say],
) -> Membership:
    """Apply the object in an answer; `version` was known when it was requested."""
    if not isinstance(object, Mapping):
        return membership
    body = Body(dict(object))
    if is_behind(body.version, version):
        membership = replace(
            membership, version=""
        )  # restored from a backup: the newer is gone
    return _look_at_object(membership, member, body, now, says)


def _say_renewal(membership: Membership, member: Member) -> list[Say]:
    where = membership.place.label
    if membership.looked_at == -inf:
        text = f"peering in {where} as {member.identity}, priority {member.priority}"
        return [Say("info", text)]
    return [] if member.stealth else [Say("debug", f"record renewed in {where}")]


def _note_renewal(
    membership: Membership,
    member: Member,
    pending: Pending[PeeringPurpose],
    jitter: float,
) -> Membership:
    """Note a successful renewal; the record's lifetime counts from its sending.

    It counts from the previous renewal, if the end of that is unknown: it may land yet.
    """
    first, last = _RENEW_AFTER
    wait = member.lifetime * (first + (last - first) * jitter)
    sent_at = pending.sent_at
    begun = sent_at if membership.unheard is None else min(sent_at, membership.unheard)
    return replace(
        membership,
        pending=None,
        looked_at=pending.sent_at,
        good_until=begun + member.lifetime * _SERVE_FOR,
        due=sent_at + wait,
        unheard=None,
        failures=0,
        trouble="",
        is_removed=False,
        removals=membership.removals if membership.is_removed else 0,
    )


def _schedule_retry(
    membership: Membership, member: Member, outcome: Outcome, now: Now
) -> Membership:
    """Schedule another try, soon enough for several before the record dies."""
    if (
        membership.pending is not None
        and membership.pending.purpose is PeeringPurpose.CLEAN
    ):
        return replace(membership, pending=None)  # another version may be tidied
    failures = membership.failures + 1
    wait = min(backoff_seconds(failures, 0.0), member.lifetime / 20)
    if isinstance(outcome, Unreachable) and outcome.retry_after_seconds:
        asked = min(outcome.retry_after_seconds, member.lifetime / 2)
        wait = max(wait, asked)
    message = message_of(outcome) or "the answer is none"
    return replace(
        membership,
        pending=None,
        failures=failures,
        trouble=message,
        due=now.mono + wait,
        unheard=_first_unheard(membership, outcome),
    )


def _first_unheard(membership: Membership, outcome: Outcome) -> float | None:
    """The sending time of the first renewal since the last reply that may land yet."""
    pending = membership.pending
    if pending is None or pending.purpose is not PeeringPurpose.RENEW:
        return membership.unheard
    if not isinstance(outcome, Unknown):
        return membership.unheard
    return pending.sent_at if membership.unheard is None else membership.unheard


def _say_refusal(membership: Membership, outcome: Refused) -> Say:
    text = f"the record in {membership.place.label} is refused: {outcome.message}"
    return Say("warning", f"{text}; the operator's role needs the verb patch there")


# ------------------------------------------------------------------- verdict


def _announce_lacking(peering: Peering, says: list[Say]) -> Peering:
    """Log once, in `Mode.AUTO`, the places without a peering object."""
    lacking = lacking_in(peering)
    if peering.is_leaving or lacking == peering.lacking:
        return peering
    if peering.member.mode is Mode.AUTO and set(lacking) - set(peering.lacking):
        places = ", ".join(scope_of(namespace) for namespace in lacking)
        text = f"there is no peering object {peering.member.name!r} {places}"
        says.append(Say("info", f"{text}: other operators are not looked for"))
    return replace(peering, lacking=lacking)


# ---------------------------------------------------------------------- wake


def _wake_time(peering: Peering, now: Now) -> float | None:
    """The next time when a request is due, or the verdict may change by itself."""
    if peering.member.mode is Mode.STANDALONE:
        return None
    moments = [
        moment
        for membership in peering.memberships
        for moment in _moments_of(membership, peering)
    ]
    return min((each for each in moments if each > now.mono), default=None)


def _moments_of(membership: Membership, peering: Peering) -> Iterable[float]:
    member, is_leaving = peering.member, peering.is_leaving
    if membership.pending is not None:
        yield late_at(membership.pending, member)
    elif membership.presence is Existence.PRESENT and not membership.has_left:
        yield removal_at(membership) if is_leaving else renewal_at(membership, member)
    if not is_leaving:
        yield membership.doubled_until
        if membership.good_until is not None:
            yield membership.good_until
