"""Leader election by a Lease: of several replicas one works, the others stand by.

    advance(election, now, fact, jitter)
        -> Move(election', ask, verdict, wake, says)

A fact is an answer (`Answered`), an alarm that rang, or `Resign`.  An `Ask` is a
request to send; its answer carries its number, and one that does not come in time is
not waited for.  `wake` is when to come again if nothing happens (monotonic seconds).
The verdict is `Leading`, `Standby` or `Resigned`.

The protocol is that of client-go's `tools/leaderelection`, so that kubectl shows what
it shows of any controller, and candidates written in Go may take part:

- A candidate reads the Lease every `retry_seconds`, and a little more by chance.  It
  may take a Lease that has no holder, or whose holder has not renewed it for the
  `leaseDurationSeconds` in it.  Taking it raises `leaseTransitions` by one.
- Times in the Lease are never compared with a clock.  That it was renewed is told by a
  change of it, and the wait for its end is counted on the reader's own monotonic clock
  from the answer that showed the change.
- The leader renews every `retry_seconds`.  Without an answer for
  `renew_deadline_seconds` it stops to lead.
- On exit it gives the Lease away: no holder, a duration of one second.
- Every write is on the condition that the Lease still is of the version that was read.

What differs, and why:

- The leader's deadline counts from the moment at which the renewal was *sent*
  (client-go: from its answer, and the wait before the next try is added).  Others count
  from when they saw the renewal, which is never earlier.  So a leader's last request
  starts before anybody else's first, whatever the clocks show and however long a
  process is paused, as long as no monotonic clock runs `lease_seconds /
  renew_deadline_seconds` times (1.5) as fast as another.
- Whoever stops to lead stands by again, instead of ending; its store stays filled.
- Any write to the Lease counts as a sign of life, not only one of its spec.
- Writes are patches, so that what others keep in a Lease stays there.
- A Lease that is deleted, or emptied, while another holds it is waited for as if it
  were there; one that was never seen is made, or taken, at once.  Who deletes a Lease
  by hand and starts a new replica may so have two leaders, until the first one's next
  renewal.

What no lease can do: a request that was started in time may arrive late, after another
has begun to lead.  A write of the handled object carries the version that it was
decided on, and so either finds that nothing has happened since, or is refused.  Effects
on other objects carry what their author gives them: a target's uid, or its version.

An identity has to be unique to the process, not only to the pod: a Lease that names it
is taken for one's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

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
from fnop.core.values.evolve import replace
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


# Those after which an own deadline begins.
_CLAIMS = (LeasePurpose.CREATE, LeasePurpose.TAKE, LeasePurpose.RENEW)


@dataclass(frozen=True, slots=True)
class Election:
    """All that this process knows of the election; moments are monotonic.

    `lease` is the last that was seen, `seen_at` when it was seen to have changed, and
    `gone_at` when it was found missing after that.  `is_current` says that nothing is
    known to have happened to it since: a write needs its version.  `until` is the own
    deadline, None for who does not lead.  `due` is when to read next, `wrote_at` when
    the last write was sent: there is no more than one in each `retry_seconds`.
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
    verdict: ElectionVerdict = Standby()  # noqa: RUF009 (an immutable value)

    @property
    def is_mine(self) -> bool:
        """Whether the Lease, as it was last seen, names this process."""
        return self.lease is not None and self.lease.holder == self.candidate.identity

    @property
    def free_at(self) -> float:
        """From when on the Lease may be taken, or made anew, if it does not change."""
        lease = self.lease
        if lease is None or not lease.holder:
            return -inf
        wait = lease.seconds or self.candidate.timing.lease_seconds
        return (self.seen_at if self.gone_at is None else self.gone_at) + wait


def begin(candidate: Candidate) -> Election:
    """A candidate that has not seen the Lease."""
    return Election(candidate)


def may_start(election: Election, now: Now) -> bool:
    """Whether a request of the leader's work may start now.

    To be asked right before each, with the clock as it is then.
    """
    verdict = election.verdict
    return isinstance(verdict, Leading) and now.mono < verdict.until


def has_resigned(election: Election) -> bool:
    """Whether who resigns has nothing more to wait for."""
    return election.is_resigning and election.pending is None and not election.is_mine


# --------------------------------------------------------------------- facts


@dataclass(frozen=True, slots=True)
class Resign:
    """The process ends: none of its requests is under way any more.

    client-go (`ReleaseOnCancel`): all that the lease guards must have ended before.
    """


ElectionFact = Answered | AlarmRang | Resign


class ElectionDecision(NamedTuple):
    """What follows from a fact; `wake` is monotonic, None for never."""

    election: Election
    ask: Ask | None
    verdict: ElectionVerdict
    wake: float | None
    says: tuple[Say, ...]


def advance(
    election: Election, now: Now, fact: ElectionFact, jitter: float = 0.5
) -> ElectionDecision:
    """Take a fact in, and decide.  Total: no fact is out of place.

    `jitter`, from 0 to 1, spreads the looks of several candidates.
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
    election = _given_up(election, now)
    election, ask = _asking(election, now)
    before, verdict = election.verdict, _verdict(election, now)
    says += _about_verdict(election, before, verdict)
    until = verdict.until if isinstance(verdict, Leading) else None
    election = replace(election, verdict=verdict, until=until)
    return ElectionDecision(election, ask, verdict, _wake(election), tuple(says))


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
    # Who leads, or ends, has no time to lose by chance.
    hurries = election.until is not None or election.is_resigning
    spread = 0.0 if hurries else JITTER_FACTOR * jitter
    later = now.mono + timing.retry_seconds * (1 + spread)
    match next_after(pending.purpose, outcome):
        case Next.TAKE:
            return _taken(election, pending, outcome, now, later, says)
        case Next.LOOK | Next.AGAIN:
            return replace(election, is_current=False, due=now.mono)
        case Next.LATER:
            says += _about_trouble(election, outcome)
            return replace(election, trouble=_trouble_of(outcome), due=later)


def _taken(
    election: Election,
    pending: Pending[LeasePurpose],
    outcome: Outcome,
    now: Now,
    later: float,
    says: list[Say],
) -> Election:
    """The answer shows the Lease, or that there is none."""
    match outcome:
        case Applied(object) if isinstance(object, Mapping):
            lease = parse_lease(Body(dict(object)))
            election = _observed(election, lease, now, later)
            if pending.purpose in _CLAIMS and election.is_mine:
                seconds = election.candidate.timing.renew_deadline_seconds
                return replace(election, until=pending.sent_at + seconds)
            if pending.purpose is LeasePurpose.RELEASE:
                label = election.candidate.label
                says.append(Say("info", f"{label} is released"))
            return election
        case Missing():
            return _missing(election, now, later)
        case _ if pending.purpose is LeasePurpose.READ:
            says += _about_trouble(election, outcome)
            return replace(election, trouble=_trouble_of(outcome), due=later)
        case _:
            return replace(election, is_current=False, due=now.mono)


def _observed(election: Election, lease: Lease, now: Now, later: float) -> Election:
    """The Lease is there, and so.  What has changed has done so just now."""
    lease = _unemptied(election, lease)
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


def _unemptied(election: Election, lease: Lease) -> Lease:
    """A Lease without a holder, which was not given away, is as one that is deleted.

    Its holder does not know it yet, so others wait.  Who gives a Lease away says a
    duration of one second (client-go's `release`).
    """
    before = election.lease
    if before is None or lease.holder or lease.seconds == RELEASED_SECONDS:
        return lease
    kept = replace(lease, transitions=max(lease.transitions, before.transitions))
    if election.is_mine:
        return kept
    return replace(kept, holder=before.holder, seconds=before.seconds)


def _missing(election: Election, now: Now, later: float) -> Election:
    """There is no Lease: never was, or somebody has deleted it.

    Its holder has lost it at that moment: anybody may make another.  Who knows of
    another holder waits, for that one may not know it yet.
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


def _given_up(election: Election, now: Now) -> Election:
    """Do not wait for a late answer: whether the request was executed is not known."""
    pending = election.pending
    if pending is None or now.mono < _late_at(election, pending):
        return election
    return replace(election, pending=None, is_current=False, due=now.mono)


def _late_at(election: Election, pending: Pending[LeasePurpose]) -> float:
    return pending.sent_at + election.candidate.timing.answer_seconds


# ------------------------------------------------------------------ requests


def _asking(election: Election, now: Now) -> tuple[Election, Ask | None]:
    planned = _planned(election)
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
        # A read that is not answered is not followed by another at once.
        due=now.mono + election.candidate.timing.retry_seconds,
    )
    assert election.pending is not None
    before = _late_at(election, election.pending)
    return election, Ask(number, _effect(election, purpose, now), before)


def _planned(election: Election) -> tuple[LeasePurpose, float] | None:
    """What to send next, and when; None for nothing at all.

    | who, and what is known of the Lease | then | when |
    |---|---|---|
    | resigns, and holds it | release | now |
    | resigns, and does not | nothing | |
    | anybody; something happened to it | read | now, or after a failed try |
    | holds it | renew | a retry period after the last write |
    | it is not there | create | now; if another held it, after its duration |
    | it is free, or its holder silent | take | now |
    | it is held by another | read | after a retry period, and by chance more |
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


def _effect(election: Election, purpose: LeasePurpose, now: Now) -> Effect:
    """The request, as an effect; every write but a creation names the version."""
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


def _wake(election: Election) -> float | None:
    moments = [] if election.until is None else [election.until]
    if election.pending is not None:
        moments.append(_late_at(election, election.pending))
    elif (planned := _planned(election)) is not None:
        moments.append(planned[1])
    return min(moments, default=None)


# ------------------------------------------------------------------- verdict


def _verdict(election: Election, now: Now) -> ElectionVerdict:
    if election.is_resigning:
        return Resigned()
    until, lease = election.until, election.lease
    if until is not None and lease is not None and now.mono < until:
        return Leading(lease.transitions, until)
    return Standby(lease.holder if lease else "")


def _about_verdict(
    election: Election, before: ElectionVerdict, after: ElectionVerdict
) -> list[Say]:
    label, identity = election.candidate.label, election.candidate.identity
    match before, after:
        case Standby(), Leading(epoch):
            return [Say("info", f"leading: {label} is held, by transition {epoch}")]
        case Leading(), Standby(holder):
            return [Say("warning", f"not leading any more: {_loss(election, holder)}")]
        case Standby(old), Standby(holder) if holder not in ("", old, identity):
            return [Say("info", f"standing by: {label} is held by {holder}")]
        case _:
            return []


def _loss(election: Election, holder: str) -> str:
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


def _about_trouble(election: Election, outcome: Outcome) -> list[Say]:
    message = _trouble_of(outcome)
    if message == election.trouble:
        return []
    text = f"{election.candidate.label}: {message}"
    if not isinstance(outcome, Refused):
        return [Say("debug", text)]
    needs = "the operator's role needs get, create and patch on leases"
    return [Say("warning", f"{text}; {needs}")]
