"""One effect in flight, which may need several requests, as a state machine.

An effect is answered once, by an outcome that the handler can act upon. After a request
without a reply, a live read finds out what happened. A request that could not be sent
is sent again. The reaction to each reply is in one table
(`fnop.core.seam.replies.NEXT`). This table is about the live read:

| effect  | the object exists                 | it is missing |
|---------|-----------------------------------|---------------|
| Adopt   | ours: done; another's: a conflict | send again    |
| Create  | ours: done; another's: a conflict | send again    |
| Apply   | send again                        | send again    |
| Patch   | changed: done; else send again    | missing       |

An adopted child is ours by its owner reference. A created object is ours by a token,
which names the handler and the object that it was called for. So a handler may be
repeated. Within one attempt nothing is repeated. If the attempt creates an object from
another manifest under a name that it has already used, that is a conflict.

An apply is forced if it conflicts only with fields that this operator has written in
another way, for example by creating the object. Those fields are its own. If two
requests create one object at the same time, the answer to one is that it exists, and
fnop sends it again.

A JSON patch is *guarded* if its repetition would change something once more, such as
one that adds to a list. fnop first reads the object, and binds the patch to that
version. It does not resend operations that are already done.

A patch whose target has a uid may reach only that object. The API server does not
accept another uid for an object (422; ValidateObjectMetaUpdate). So a merge patch
contains the uid, and a JSON patch tests it. But some subresources, such as the
`/status` of custom resources, ignore the metadata of a merge patch: such a patch is
guarded. When a patch with a uid, or an apply, is answered with 422, a live read finds
the reason. It is a conflict if another object has the name.

The answers of a `Call` are final: only a call may answer *unknown*.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from fnop.core.api.ownership import Claim, claim_of, has_token, with_token
from fnop.core.seam.effect_rules import LiveRead, Requested, rule_of, uid_meant
from fnop.core.seam.replies import EffectPurpose, Next, message_of, next_after
from fnop.core.state.address import Address, Request
from fnop.core.state.preconditions import bound, is_in, needs_guard
from fnop.core.state.splitting import split
from fnop.core.values.backoff import backoff_seconds, heeding
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import (
    Adopt,
    Answer,
    Applied,
    Apply,
    Conflict,
    Create,
    Get,
    Missing,
    Outcome,
    Patch,
    Refused,
    Target,
    Unknown,
    Unreachable,
)
from fnop.effects.structs import replace

__all__ = ["InFlight", "in_flight_for", "proceed"]

_CHILD_ENDING_SECONDS = 1.0


class InFlight(Struct, frozen=True):
    """An effect under way.

    `requests` are sent one after another; `looking` means that the live read about the
    first one is under way. `id` is the awaited command. `due` is the monotonic time of
    the next try if there is no command. `manager` is the operator's name in managed
    fields. `base` is the changed object as it was when the change was first sent, if
    this operator handles it. `token` marks a created object, and `guard` is the version
    that a guarded patch is bound to. `why` is the API server's last message about a
    request that is tried again. With `awaits_mark`, the effect waits until the object
    stores that its handler has begun to act. A creation is `another` if the same
    attempt has created something else with that name. `refusal` is the answer that
    leads to a live read, which shows whether another object has the name.
    """

    effect: Requested
    requests: tuple[Request, ...]
    owner_uid: str = ""
    looking: bool = False
    tries: int = 0
    id: int | None = None
    due: float | None = None
    manager: str = ""
    base: Body | None = None
    token: str = ""
    guard: Body | None = None
    why: str = ""
    awaits_mark: bool = False
    another: bool = False
    refusal: Refused | None = None

    @property
    def request(self) -> Request:
        """The request to send now."""
        present = self.requests[0]
        if self.looking or self.reads_first:
            return _live_read_of(present.address)
        if isinstance(present.effect, Patch):
            return Request(bound(present.effect, self.guard), present.address)
        return present

    @property
    def purpose(self) -> EffectPurpose:
        """The purpose of the request that is due, or under way."""
        if self.looking or self.reads_first:
            return EffectPurpose.READ
        if self.guard is not None:
            return EffectPurpose.GUARDED_PATCH
        purpose = rule_of(self.effect).purpose
        assert purpose is not None
        return purpose

    @property
    def label(self) -> str:
        """The effect and its object, such as "Apply services/a"."""
        address = self.requests[0].address
        if address.resource is None:
            return self.effect.kind
        name = f"/{address.name}" if address.name else ""
        return f"{self.effect.kind} {address.resource.plural}{name}"

    @property
    def reads_first(self) -> bool:
        """Whether fnop has yet to read the version for a guarded patch."""
        return self.guard is None and needs_guard(self.requests[0].effect)

    @property
    def is_unaddressed(self) -> bool:
        """Whether the kind that it is about has not been discovered yet."""
        is_addressed = self.requests[0].address.resource is not None
        return not is_addressed and not rule_of(self.effect).is_outside

    @property
    def lasts(self) -> bool:
        """Whether it has no time limit."""
        return rule_of(self.effect).lasts


def _live_read_of(address: Address) -> Request:
    """The live read of the object that a request is about."""
    assert address.resource is not None
    key, name, namespace = address.resource.key, address.name, address.namespace
    target = Target.existing(key, name or "", namespace)
    return Request(Get(target), address)


def in_flight_for(
    effect: Requested,
    address: Address,
    *,
    manifest: Any = None,
    owner_uid: str = "",
    manager: str = "",
    token: str = "",
) -> InFlight:
    """Return the requests of an effect, not sent yet.

    `manifest` is an adopted child's manifest, with the owner reference.
    """
    if isinstance(effect, Adopt):
        requests: tuple[Request, ...] = (Request(Create(manifest), address),)
    elif isinstance(effect, Create) and token:
        marked = Create(with_token(effect.manifest, token))
        requests = (Request(marked, address),)
    elif isinstance(effect, Patch):
        requests = split(effect, address)
    else:
        requests = (Request(effect, address),)
    return InFlight(effect, requests, owner_uid, manager=manager, token=token)


def proceed(
    in_flight: InFlight, outcome: Outcome, now: Now, jitter: float
) -> InFlight | Outcome:
    """Return the effect in flight after an answer, or its outcome if it is done."""
    after = next_after(in_flight.purpose, outcome, in_flight.tries)
    in_flight = replace(in_flight, id=None)
    match after:
        case Next.TAKE if in_flight.looking:
            return _looked(in_flight, outcome, now, jitter)
        case Next.TAKE:
            return _taken(in_flight, outcome)
        case Next.LOOK:
            return _look_for(in_flight, outcome, now)
        case Next.AGAIN:
            return _retry_after_conflict(in_flight, outcome, now, jitter)
        case Next.LATER:
            return _retry_later(in_flight, outcome, now, jitter)


def _retry_later(
    in_flight: InFlight, outcome: Outcome, now: Now, jitter: float
) -> InFlight:
    """Try again after a backoff, without limit: an absent server fails no handler.

    A handler's timeout, and the operator's end, stop the retries.
    """
    tries = in_flight.tries + 1
    wait = backoff_seconds(tries, jitter)
    if isinstance(outcome, Unreachable):
        wait = heeding(outcome.retry_after_seconds, wait)
    why = message_of(outcome)
    return replace(in_flight, tries=tries, due=now.mono + wait, why=why)


def _look_for(in_flight: InFlight, outcome: Outcome, now: Now) -> InFlight:
    """Read the object live; a request without a reply counts as a try."""
    if not isinstance(outcome, Unknown):
        return replace(in_flight, looking=True, due=0.0)
    tries = in_flight.tries + 1
    return replace(
        in_flight, looking=True, tries=tries, due=now.mono, why=outcome.message
    )


def _retry_after_conflict(
    in_flight: InFlight, outcome: Outcome, now: Now, jitter: float
) -> InFlight:
    """Send it again after a conflict, for the version that is then stored."""
    tries = in_flight.tries
    pause = backoff_seconds(tries, jitter) if tries else 0.0
    return replace(
        in_flight,
        guard=None,
        tries=tries + 1,
        due=now.mono + pause,
        why=message_of(outcome),
    )


def _taken(in_flight: InFlight, outcome: Outcome) -> InFlight | Outcome:
    """The next request after a final reply, or the outcome of the effect."""
    match in_flight.effect, outcome:
        case _, Applied(object=found) if in_flight.reads_first:
            return _conflict_of_uid(in_flight, found) or replace(
                in_flight, guard=Body(found), due=0.0
            )
        case _, Applied() | Answer() if len(in_flight.requests) > 1:
            rest = in_flight.requests[1:]
            return replace(in_flight, requests=rest, guard=None, due=0.0)
        case Apply(), Conflict(managers=managers) if managers == (in_flight.manager,):
            return _force_apply(in_flight)
        case effect, Refused(status=422) if uid_meant(effect) is not None:
            return replace(in_flight, looking=True, refusal=outcome, due=0.0)
        case effect, Missing(message=message) if _claims(effect):
            # The collection exists; the namespace is missing.
            return Refused(404, message, "NotFound")
        case _:
            return outcome


def _claims(effect: Requested) -> bool:
    return rule_of(effect).live_read is LiveRead.CLAIM


def _force_apply(in_flight: InFlight) -> InFlight:
    request = in_flight.requests[0]
    assert isinstance(request.effect, Apply)
    forced = Request(Apply(request.effect.manifest, force=True), request.address)
    return replace(in_flight, requests=(forced,), due=0.0)


def _looked(
    in_flight: InFlight, outcome: Outcome, now: Now, jitter: float
) -> InFlight | Outcome:
    pause = backoff_seconds(in_flight.tries, jitter) if in_flight.tries else 0.0
    again = replace(in_flight, looking=False, due=now.mono + pause)
    request = in_flight.requests[0].effect
    match outcome:
        case Applied(object=dict() as found) if another := _conflict_of_uid(
            in_flight, found
        ):
            return another
        case Applied() | Refused() if in_flight.refusal is not None:
            return in_flight.refusal
        case Applied(object=dict() as found):
            return _found(in_flight, again, found, now)
        case Missing() if (
            isinstance(request, (Create, Apply)) and not in_flight.refusal
        ):
            return again
        case _:
            return outcome


def _found(
    in_flight: InFlight, again: InFlight, found: dict[str, Any], now: Now
) -> InFlight | Outcome:
    """Return a request's outcome, or its repetition, after a live read."""
    match rule_of(in_flight.effect).live_read:
        case LiveRead.CLAIM:
            return _claimed(in_flight, found, now)
        case LiveRead.REPEAT:
            return again
        case LiveRead.COMPARE:
            request = in_flight.requests[0].effect
            assert isinstance(request, Patch)
            if is_in(request, in_flight.guard, found):
                return _taken(replace(in_flight, looking=False), Applied(found))
            return replace(again, guard=in_flight.guard and Body(found))
        case None:  # it is never looked for: `fnop.core.seam.replies.NEXT`
            raise AssertionError(f"a live read is no answer to {in_flight.effect.kind}")


def _conflict_of_uid(in_flight: InFlight, found: dict[str, Any]) -> Conflict | None:
    """The conflict if another object has the name now, else None."""
    uid, there = uid_meant(in_flight.effect), Body(found).uid
    if uid is None or uid == there:
        return None
    return Conflict(
        f"{in_flight.label} is for the object with the uid {uid}; the one that is "
        f"there now has the uid {there}"
    )


def _claimed(
    in_flight: InFlight, found: dict[str, Any], now: Now
) -> InFlight | Outcome:
    adopts = isinstance(in_flight.effect, Adopt)
    ours = claim_of(found, in_flight.owner_uid)
    match ours if adopts else has_token(found, in_flight.token):
        case Claim.OURS if in_flight.another:
            return Conflict(
                f"{found.get('kind')} {_name_of(found)} has been created before by "
                "this attempt, from another manifest; give each its own name, or "
                "change it by fnop.patch or fnop.apply",
                "AlreadyExists",
            )
        case Claim.OURS:
            return Applied(found)
        case Claim.ENDING:
            return replace(
                in_flight, looking=False, due=now.mono + _CHILD_ENDING_SECONDS
            )
        case Claim.THEIRS:
            whose, what, reason = (
                ("owned by this object", "the child", "NotOurs")
                if adopts
                else ("created by this handler", "the new one", "AlreadyExists")
            )
            return Conflict(
                f"{found.get('kind')} {_name_of(found)} exists and is not {whose}; "
                f"delete it, or give {what} another name",
                reason,
            )


def _name_of(found: dict[str, Any]) -> Any:
    return (found.get("metadata") or {}).get("name")
