"""Performing one effect, which may take several requests, as a state machine.

An effect is answered once, by an outcome that can be acted upon: what the
network left open is found out by a live read first, and what could not be sent
is sent again.

| effect   | sent: conflict        | sent: unknown | look: found    | look: missing |
|----------|-----------------------|---------------|----------------|---------------|
| Adopt    | look whose it is      | look          | ours, or not   | send again    |
| Create   | conflict              | look          | done           | send again    |
| Apply    | by force, or conflict | look          | send again     | send again    |
| Patch    | conflict              | look          | done, or again | missing       |
| Delete   | conflict              | send again    |                |               |
| Get/List |                       | send again    |                |               |

An apply is sent by force where it conflicts with nothing but what this operator has
written in another way, as by creating the object: those fields are its own.

The answers of a `Call` are final: only a call may answer *unknown*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from fnop.core.backoff import backoff_seconds
from fnop.core.evolve import quick
from fnop.core.merge import effective
from fnop.core.now import Now
from fnop.core.objects import Body, Key
from fnop.core.ownership import Claim, claim_of
from fnop.core.resources import Resource
from fnop.effects import (
    Adopt,
    Answer,
    Applied,
    Apply,
    Call,
    Conflict,
    Create,
    Delete,
    Effect,
    Get,
    List,
    Missing,
    Outcome,
    Patch,
    Random,
    Refused,
    Target,
    Unknown,
    Unreachable,
)

__all__ = ["Address", "Errand", "Request", "errand_for", "proceed"]

_CHILD_ENDING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes; all None for effects that leave the cluster."""

    resource: Resource | None = None
    namespace: str | None = None
    name: str | None = None

    @property
    def key(self) -> Key:
        """The object that it is about, as the store names it."""
        resource = self.resource.key if self.resource else ""
        return Key(resource, self.namespace or "", self.name or "")


@dataclass(frozen=True, slots=True)
class Request:
    """One primitive effect with its address."""

    effect: Effect
    address: Address


@quick
class Errand(NamedTuple):
    """An effect under way.

    `requests` are to be sent one after the other; `looking` means that the
    live read of the present one is under way.  `id` is the command that is
    awaited, `due` the monotonic time of the next try where none is.  `manager` is the
    operator's name in managed fields.  `base` is the object that is changed, as it was
    when the change was first sent, where it is one that this operator handles.
    """

    effect: Effect
    requests: tuple[Request, ...]
    owner_uid: str = ""
    looking: bool = False
    tries: int = 0
    id: int | None = None
    due: float | None = None
    manager: str = ""
    base: Body | None = None

    @property
    def request(self) -> Request:
        """What is to be sent now."""
        present = self.requests[0]
        if not self.looking:
            return present
        address = present.address
        assert address.resource is not None
        key, name, namespace = address.resource.key, address.name, address.namespace
        return Request(Get(Target.existing(key, name or "", namespace)), address)

    @property
    def is_outside(self) -> bool:
        """Whether it waits for something other than the API server."""
        return isinstance(self.effect, Call)


def errand_for(
    effect: Effect,
    address: Address,
    *,
    manifest: Any = None,
    owner_uid: str = "",
    manager: str = "",
) -> Errand:
    """The errand of an effect; `manifest` is an adopted child's, made ours."""
    if isinstance(effect, Adopt):
        requests: tuple[Request, ...] = (Request(Create(manifest), address),)
    elif isinstance(effect, Patch):
        requests = _split(effect, address)
    else:
        requests = (Request(effect, address),)
    return Errand(effect, requests, owner_uid, manager=manager)


def _split(patch: Patch, address: Address) -> tuple[Request, ...]:
    """Status has an endpoint of its own where the kind has the subresource."""
    merge = patch.merge
    if (
        patch.subresource
        or merge is None
        or "status" not in merge
        or address.resource is None
        or not address.resource.has_status
    ):
        return (Request(patch, address),)
    rest = {key: value for key, value in merge.items() if key != "status"}
    status = Patch(patch.target, {"status": merge["status"]}, (), "status")
    if not rest and not patch.json:
        return (Request(status, address),)
    main = Patch(patch.target, rest or None, patch.json)
    return Request(main, address), Request(status, address)


def proceed(
    errand: Errand, outcome: Outcome, now: Now, jitter: float
) -> Errand | Outcome:
    """Take an answer in: the errand to go on with, or the effect's outcome."""
    errand = errand._replace(id=None)
    match outcome:
        case Unreachable() if isinstance(errand.effect, (Call, Random)):
            return outcome
        case Unreachable():
            return _later(errand, outcome, now, jitter)
        case Unknown() if isinstance(errand.effect, Call):
            return outcome
        case Unknown():
            return _unknown(errand, outcome, now, jitter)
        case _ if errand.looking:
            return _looked(errand, outcome, now, jitter)
        case _:
            return _sent(errand, outcome)


def _later(
    errand: Errand, outcome: Unreachable | Unknown, now: Now, jitter: float
) -> Errand:
    """Try again in a while, as often as it takes: a server that is away fails nobody.

    A handler's timeout, and the operator's end, end it.
    """
    tries = errand.tries + 1
    wait = backoff_seconds(tries, jitter)
    if isinstance(outcome, Unreachable) and outcome.retry_after_seconds:
        wait = max(wait, outcome.retry_after_seconds)
    return errand._replace(tries=tries, due=now.mono + wait)


def _unknown(
    errand: Errand, outcome: Unknown, now: Now, jitter: float
) -> Errand | Outcome:
    request = errand.requests[0]
    if request.address.name is None and isinstance(request.effect, Create):
        return outcome  # what the server names cannot be looked up
    if not errand.looking and isinstance(request.effect, (Create, Patch, Apply)):
        return errand._replace(looking=True, tries=errand.tries + 1, due=now.mono)
    return _later(errand, outcome, now, jitter)


def _sent(errand: Errand, outcome: Outcome) -> Errand | Outcome:
    match errand.effect, outcome:
        case _, Applied() | Answer() if len(errand.requests) > 1:
            return errand._replace(requests=errand.requests[1:], due=0.0)
        case Adopt(), Conflict(reason="AlreadyExists"):
            return errand._replace(looking=True, due=0.0)
        case Apply(), Conflict(managers=managers) if managers == (errand.manager,):
            return _by_force(errand)
        case Create() | Adopt(), Missing(message=message):
            # The collection exists; what is missing is the namespace.
            return Refused(404, message, "NotFound")
        case _:
            return outcome


def _by_force(errand: Errand) -> Errand:
    request = errand.requests[0]
    assert isinstance(request.effect, Apply)
    forced = Request(Apply(request.effect.manifest, force=True), request.address)
    return errand._replace(requests=(forced,), due=0.0)


def _looked(
    errand: Errand, outcome: Outcome, now: Now, jitter: float
) -> Errand | Outcome:
    pause = backoff_seconds(errand.tries, jitter) if errand.tries else 0.0
    again = errand._replace(looking=False, due=now.mono + pause)
    request = errand.requests[0].effect
    match outcome:
        case Applied(object=dict() as found):
            if isinstance(errand.effect, Adopt):
                return _claimed(errand, found, now)
            if isinstance(request, Patch) and not _is_in(request, found):
                return again
            if isinstance(request, Apply):
                return again
            if isinstance(request, Create) and effective(request.manifest, found):
                name = (found.get("metadata") or {}).get("name")
                text = f"{found.get('kind')} {name} exists, and is not as it was sent"
                return Conflict(text, "AlreadyExists")
            return _sent(errand._replace(looking=False), Applied(found))
        case Missing() if isinstance(request, (Create, Apply)):
            return again
        case _:
            return outcome


def _claimed(errand: Errand, found: dict[str, Any], now: Now) -> Errand | Outcome:
    match claim_of(found, errand.owner_uid):
        case Claim.OURS:
            return Applied(found)
        case Claim.ENDING:
            return errand._replace(looking=False, due=now.mono + _CHILD_ENDING_SECONDS)
        case Claim.THEIRS:
            name = (found.get("metadata") or {}).get("name")
            return Conflict(
                f"{found.get('kind')} {name} exists and is not owned by this object; "
                "delete it, or give the child another name",
                "NotOurs",
            )


def _is_in(patch: Patch, found: dict[str, Any]) -> bool:
    """Whether the object already shows what a merge patch asks for."""
    return not patch.json and not effective(patch.merge or {}, found)


def is_request(effect: Effect) -> bool:
    """Whether performing the effect means to ask or tell the world something."""
    return isinstance(
        effect, (Patch, Apply, Create, Delete, Get, List, Adopt, Call, Random)
    )
