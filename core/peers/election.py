"""Leader election by a Lease: of several replicas one works, the others stand by.

    advance(election, now, fact, jitter)
        -> ElectionDecision(election', ask, verdict, wake, says)

A fact is an answer (`Answered`), an alarm, or `Resign`. An `Ask` is a request to send;
its answer has the same number, and a late one is ignored. `wake` is the time of the
next call if nothing happens before (monotonic seconds). The verdict is `Leading`,
`Standby` or `Resigned`.

The protocol follows client-go's `tools/leaderelection`. So kubectl shows the Lease like
any controller's, and candidates written in Go may take part:

- A candidate reads the Lease every `retry_seconds`, with jitter. It may take a Lease
  that has no holder. It may also take one whose holder has not renewed it for the
  Lease's `leaseDurationSeconds`. Taking it raises `leaseTransitions` by one.
- Times in the Lease are never compared with a clock. Any change of the Lease is a
  renewal. The reader counts its duration on its own monotonic clock, from the answer
  that showed the change.
- The leader renews every `retry_seconds`. Without an answer for
  `renew_deadline_seconds` it stops leading.
- On exit it releases the Lease: no holder, and a duration of one second.
- Every write has the resourceVersion that was read as its precondition.

Differences from client-go, with the reasons:

- The leader's deadline counts from the time when the renewal was *sent* (client-go:
  from its answer, and the wait before the next try is added). Others count from the
  time when they saw the renewal, which is never earlier. So a leader's last request
  starts before any other's first, whatever the clocks show and however long a process
  is paused. This holds as long as no monotonic clock runs `lease_seconds /
  renew_deadline_seconds` times (1.5) as fast as another.
- A process that stops leading stands by again, instead of ending. Its store stays
  filled.
- Any write to the Lease counts as a renewal, not only a write of its spec.
- Writes are patches, so that other writers' fields in the Lease stay.
- A Lease that is deleted, or emptied, while another process holds it counts as held
  until its duration is over. A Lease that was never seen is created, or taken, at once.
  If a user deletes a Lease and starts a new replica, there may be two leaders, until
  the first one's next renewal.

The limit of any lease: a request that started in time may arrive late, after another
replica has begun to lead. A write of the handled object carries the resourceVersion
that it was decided on. So the API server refuses it if the object has changed since.
Effects on other objects have the preconditions that their author sets: a target's uid,
or its version.

An identity must be unique to the process, not only to the pod. A candidate takes a
Lease that names it for its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.peers.asking import Ask, Pending
from fnop.core.peers.lease import (
    JITTER_FACTOR,
    RELEASED_SECONDS,
    Candidate,
    ElectionVerdict,
    Leading,
    Lease,
    Resigned,
    Standby,
    parse_lease,
)
from fnop.core.seam.commands import Say
from fnop.core.seam.inputs import AlarmRang, Answered
from fnop.core.seam.replies import LeasePurpose, Next, message_of, next_after
from fnop.core.values.body import Body
from fnop.core.values.now import Now, wall_text
from fnop.effects import (
    Applied,
    Create,
    Effect,
    Get,
    Missing,
    Outcome,
    Patch,
    Refused,
)
from fnop.effects.structs import replace

__all__ = [
    "Election",
    "ElectionDecision",
    "ElectionFact",
    "Resign",
    "advance",
    "begin",
    "has_resigned",
    "may_start",
]


# ------------------------------------------------------------------ verdicts


# The purposes of the requests whose success begins a new deadline of the leader.
_CLAIMS = (LeasePurpose.CREATE, LeasePurpose.TAKE, LeasePurpose.RENEW)


class Election(Struct, frozen=True):
    """The state of the election in this process; times are monotonic.

    `lease` is the last one that was read. `seen_at` is the time of the answer that
    showed its last change. `gone_at` is the time of the first answer after it without a
    Lease. With `is_current`, the Lease is not known to have changed since: a write
    needs its version. `until` is the process's own deadline, None if it does not lead.
    `due` is the time of the next read. `wrote_at` is the time of the last write: at
    most one comes in each `retry_seconds`.
    """

    candidate: Candidate
    lease: Lease | None = None
    seen_at: float = 0.0
    gone_at: float | None = None
    is_current: bool = False
    until: float | None = None
    due: float = -inf
    wrote_at: float = -inf
    pending: Pending[LeasePurpose] | None = None
    serial: int = 0
    trouble: str = ""
    is_resigning: bool = False
    verdict: ElectionVerdict = Standby()

    @property
    def is_mine(self) -> bool:
        """Whether this process is the holder of the last Lease that was read."""
        return self.lease is not None and self.lease.holder == self.candidate.identity

    @property
    def free_at(self) -> float:
        """The earliest time to take an unchanged Lease, or to create it again."""
        lease = self.lease
        if lease is None or not lease.holder:
            return -inf
        wait = lease.seconds or self.candidate.timing.lease_seconds
        return (self.seen_at if self.gone_at is None else self.gone_at) + wait


def begin(candidate: Candidate) -> Election:
    """The state of a candidate that has not read the Lease yet."""
    return Election(candidate)


def may_start(election: Election, now: Now) -> bool:
    """Whether a request of the leader's work may start now.

    The caller must call it right before each request, with the clock of that moment.
    """
    verdict = election.verdict
    return isinstance(verdict, Leading) and now.mono < verdict.until


def has_resigned(election: Election) -> bool:
    """Whether a resigning candidate holds no Lease and waits for no answer."""
    return election.is_resigning and election.pending is None and not election.is_mine


# --------------------------------------------------------------------- facts


class Resign(Struct, frozen=True):
    """The process ends, and has no request in flight.

    client-go (`ReleaseOnCancel`): work that the lease guards must have ended before.
    """


ElectionFact = Answered | AlarmRang | Resign


class ElectionDecision(NamedTuple):
    """The result of `advance`; `wake` is monotonic, None means never."""

    election: Election
    ask: Ask | None
    verdict: ElectionVerdict
    wake: float | None
    says: tuple[Say, ...]


def advance(
    election: Election, now: Now, fact: ElectionFact, jitter: float = 0.5
) -> ElectionDecision:
    """Apply a fact to the state, and decide; any fact is valid in any state.

    `jitter`, from 0 to 1, spreads the reads of several candidates.
    """
    says: list[Say] = []
    pending = election.pending
    match fact:
        case Answered(number, outcome) if pending and pending.number == number:
            election = replace(election, pending=None)
            election = _answered(election, pending, outcome, now, jitter, says)
        case Resign():
            election = replace(election, is_resigning=True, due=now.mono)
        case _:
            pass
    election = _give_up_request(election, now)
    election, ask = _next_ask(election, now)
    before, verdict = election.verdict, _verdict_of(election, now)
    says += _say_verdict(election, before, verdict)
    until = verdict.until if isinstance(verdict, Leading) else None
    election = replace(election, verdict=verdict, until=until)
    return ElectionDecision(election, ask, verdict, _wake_time(election), tuple(says))


# ------------------------------------------------------------------- answers


def _answered(
    election: Election,
    pending: Pending[LeasePurpose],
    outcome: Outcome,
    now: Now,
    jitter: float,
    says: list[Say],
) -> Election:
    timing = election.candidate.timing
    # A jitter does not delay the leader, nor a candidate that resigns.
    hurries = election.until is not None or election.is_resigning
    spread = 0.0 if hurries else JITTER_FACTOR * jitter
    later = now.mono + timing.retry_seconds * (1 + spread)
    match next_after(pending.purpose, outcome):
        case Next.TAKE:
            return _taken(election, pending, outcome, now, later, says)
        case Next.LOOK | Next.AGAIN:
            return replace(election, is_current=False, due=now.mono)
        case Next.LATER:
            says += _say_trouble(election, outcome)
            return replace(election, trouble=_trouble_of(outcome), due=later)


def _taken(
    election: Election,
    pending: Pending[LeasePurpose],
    outcome: Outcome,
    now: Now,
    later: float,
    says: list[Say],
) -> Election:
    """Apply an answer that settles its request: a Lease, none, or a refusal."""
    match outcome:
        case Applied(object) if isinstance(object, Mapping):
            lease = parse_lease(Body(dict(object)))
            election = _observe_lease(election, lease, now, later)
            if pending.purpose in _CLAIMS and election.is_mine:
                seconds = election.candidate.timing.renew_deadline_seconds
                return replace(election, until=pending.sent_at + seconds)
            if pending.purpose is LeasePurpose.RELEASE:
                label = election.candidate.label
                says.append(Say("info", f"{label} is released"))
            return election
        case Missing():
            return _note_no_lease(election, now, later)
        case _ if pending.purpose is LeasePurpose.READ:
            says += _say_trouble(election, outcome)
            return replace(election, trouble=_trouble_of(outcome), due=later)
        case _:
            return replace(election, is_current=False, due=now.mono)


def _observe_lease(
    election: Election, lease: Lease, now: Now, later: float
) -> Election:
    """Apply a Lease that was read; if it differs from the last one, it changed now."""
    lease = _with_former_holder(election, lease)
    is_same = lease == election.lease and election.gone_at is None
    election = replace(
        election,
        lease=lease,
        seen_at=election.seen_at if is_same else now.mono,
        gone_at=None,
        is_current=True,
        due=now.mono if election.is_resigning else later,
        trouble="",
    )
    return election if election.is_mine else replace(election, until=None)


def _with_former_holder(election: Election, lease: Lease) -> Lease:
    """Return a Lease with its former holder, if that was removed without a release.

    The holder does not know it yet, so others wait, as after a deletion. A released
    Lease has a duration of one second (client-go's `release`).
    """
    before = election.lease
    if before is None or lease.holder or lease.seconds == RELEASED_SECONDS:
        return lease
    kept = replace(lease, transitions=max(lease.transitions, before.transitions))
    if election.is_mine:
        return kept
    return replace(kept, holder=before.holder, seconds=before.seconds)


def _note_no_lease(election: Election, now: Now, later: float) -> Election:
    """Apply an answer without a Lease: it never existed, or was deleted.

    This process then loses the lead, if it had it: any candidate may create another
    Lease. If another process was the holder, this one waits, because that one may not
    know it yet.
    """
    lease = election.lease
    if lease is not None and election.is_mine:
        lease = replace(lease, holder="")
    return replace(
        election,
        lease=lease,
        gone_at=now.mono if election.gone_at is None else election.gone_at,
        is_current=True,
        until=None,
        due=later,
        trouble="",
    )


def _give_up_request(election: Election, now: Now) -> Election:
    """Give up a request with a late answer; its result counts as unknown."""
    pending = election.pending
    if pending is None or now.mono < _late_time(election, pending):
        return election
    return replace(election, pending=None, is_current=False, due=now.mono)


def _late_time(election: Election, pending: Pending[LeasePurpose]) -> float:
    return pending.sent_at + election.candidate.timing.answer_seconds


# ------------------------------------------------------------------ requests


def _next_ask(election: Election, now: Now) -> tuple[Election, Ask | None]:
    planned = _planned_request(election)
    if election.pending is not None or planned is None or planned[1] > now.mono:
        return election, None
    purpose = planned[0]
    number = election.serial + 1
    reads = purpose is LeasePurpose.READ
    election = replace(
        election,
        serial=number,
        pending=Pending(number, purpose, now.mono),
        wrote_at=election.wrote_at if reads else now.mono,
        # After a read without an answer the next one waits for a retry period.
        due=now.mono + election.candidate.timing.retry_seconds,
    )
    assert election.pending is not None
    before = _late_time(election, election.pending)
    return election, Ask(number, _effect_of(election, purpose, now), before)


def _planned_request(election: Election) -> tuple[LeasePurpose, float] | None:
    """The next request and its time; None without one.

    | candidate, and state of the Lease | request | when |
    |---|---|---|
    | resigns, and holds it | release | now |
    | resigns, and does not | nothing | |
    | any; it may have changed | read | now, or after a failed try |
    | holds it | renew | a retry period after the last write |
    | it does not exist | create | now; if another held it, after its duration |
    | it is free, or its holder silent | take | now |
    | it is held by another | read | after a retry period, randomly longer |
    """
    if election.is_resigning:
        if not election.is_mine:
            return None
        return (
            LeasePurpose.RELEASE if election.is_current else LeasePurpose.READ,
            election.due,
        )
    if not election.is_current:
        return LeasePurpose.READ, election.due
    may_write = election.wrote_at + election.candidate.timing.retry_seconds
    if election.is_mine:
        return LeasePurpose.RENEW, may_write
    claim = LeasePurpose.TAKE if election.gone_at is None else LeasePurpose.CREATE
    claims_at = max(election.free_at, may_write)
    if claims_at <= election.due:
        return claim, claims_at
    return LeasePurpose.READ, election.due


def _effect_of(election: Election, purpose: LeasePurpose, now: Now) -> Effect:
    """The request as an effect; all writes except a creation carry the version."""
    candidate, lease = election.candidate, election.lease or Lease()
    time = wall_text(now.wall)  # a metav1.MicroTime
    mine: dict[str, Any] = {
        "holderIdentity": candidate.identity,
        "leaseDurationSeconds": candidate.timing.lease_seconds,
        "renewTime": time,
    }
    match purpose:
        case LeasePurpose.READ:
            return Get(candidate.target)
        case LeasePurpose.CREATE:
            transitions = lease.transitions + 1 if election.lease else 0
            mine |= {"acquireTime": time, "leaseTransitions": transitions}
            metadata = {"name": candidate.name, "namespace": candidate.namespace}
            return Create(
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": metadata,
                    "spec": mine,
                }
            )
        case LeasePurpose.TAKE:
            mine |= {"acquireTime": time, "leaseTransitions": lease.transitions + 1}
        case LeasePurpose.RELEASE:
            mine |= {"holderIdentity": "", "leaseDurationSeconds": RELEASED_SECONDS}
            mine |= {"acquireTime": time}
        case LeasePurpose.RENEW:
            pass
    version = {"resourceVersion": lease.version}
    return Patch(candidate.target, {"metadata": version, "spec": mine})


def _wake_time(election: Election) -> float | None:
    moments = [] if election.until is None else [election.until]
    if election.pending is not None:
        moments.append(_late_time(election, election.pending))
    elif (planned := _planned_request(election)) is not None:
        moments.append(planned[1])
    return min(moments, default=None)


# ------------------------------------------------------------------- verdict


def _verdict_of(election: Election, now: Now) -> ElectionVerdict:
    if election.is_resigning:
        return Resigned()
    until, lease = election.until, election.lease
    if until is not None and lease is not None and now.mono < until:
        return Leading(lease.transitions, until)
    return Standby(lease.holder if lease else "")


def _say_verdict(
    election: Election, before: ElectionVerdict, after: ElectionVerdict
) -> list[Say]:
    label, identity = election.candidate.label, election.candidate.identity
    match before, after:
        case Standby(), Leading(epoch):
            return [Say("info", f"leading: {label} is held, by transition {epoch}")]
        case Leading(), Standby(holder):
            return [
                Say(
                    "warning",
                    f"not leading any more: {_reason_of_loss(election, holder)}",
                )
            ]
        case Standby(old), Standby(holder) if holder not in ("", old, identity):
            return [Say("info", f"standing by: {label} is held by {holder}")]
        case _:
            return []


def _reason_of_loss(election: Election, holder: str) -> str:
    label = election.candidate.label
    if election.gone_at is not None:
        return f"{label} was deleted"
    if not election.is_mine:
        return f"{label} is held by {holder or 'nobody'}"
    seconds = election.candidate.timing.renew_deadline_seconds
    why = f": {election.trouble}" if election.trouble else ""
    return f"{label} could not be renewed for {seconds:g} s{why}"


def _trouble_of(outcome: Outcome) -> str:
    return message_of(outcome) or "the answer holds no Lease"


def _say_trouble(election: Election, outcome: Outcome) -> list[Say]:
    message = _trouble_of(outcome)
    if message == election.trouble:
        return []
    text = f"{election.candidate.label}: {message}"
    if not isinstance(outcome, Refused):
        return [Say("debug", text)]
    needs = "the operator's role needs get, create and patch on leases"
    return [Say("warning", f"{text}; {needs}")]
