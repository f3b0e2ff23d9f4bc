"""Requests in flight: the next action after each reply, for each purpose of a request.

One table holds for all requests of an operator: requests of effects, of the object's
own write, of peering, and of leader election. Each of these machines calls
`next_after(purpose, outcome, tries)` and does what it returns:

- `TAKE`: the reply settles the request. It is done, absent, or permanently refused.
- `LOOK`: the result is unknown, or another writer was faster. Read the object live, and
  decide by its state. A write is never repeated blindly.
- `AGAIN`: send it again, the first time at once, then with backoff.
- `LATER`: send it again with backoff, as long as it is needed.

The rules behind the table:

- *Unknown* means that the request was sent and no reply came. A write may have been
  applied, so the object is read. A read, and a deletion, are repeated. A call outside
  of the API server can be neither checked nor repeated: its handler gets the outcome.
- *Unreachable* means that it was certainly not applied, so it is sent again.
- *Unserved* is a 404 for the kind, not for the object. An API server that has just
  started answers like this for a moment. After `UNSERVED_TRIES` tries, half a minute,
  the kind counts as missing.
- *Rejected* (400, 405, 413, 415, 422) is about the content of the request: sending it
  again cannot help. Any other refusal may be lifted, for example by a role that is
  granted. So the operator's own requests are sent again. An author's effect fails its
  attempt, which is retried by the handler's own options.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, assert_never

from fnop.effects.outcomes import (
    Answer,
    Applied,
    Conflict,
    Missing,
    Outcome,
    Raised,
    Refused,
    Unknown,
    Unreachable,
)

__all__ = [
    "NEXT",
    "UNSERVED_TRIES",
    "EffectPurpose",
    "LeasePurpose",
    "Next",
    "PeeringPurpose",
    "Purpose",
    "Replies",
    "Reply",
    "WritePurpose",
    "message_of",
    "next_after",
    "reply_of",
]

# The number of tries of a request to an unserved kind: half a minute.
UNSERVED_TRIES = 8
# The HTTP statuses that reject the content of a request.
_REJECTIONS = frozenset((400, 405, 413, 415, 422))


class EffectPurpose(Enum):
    """Purposes of the requests of effects; `READ` is the live read of the target."""

    APPLY = "apply"
    PATCH = "patch"
    GUARDED_PATCH = "guarded patch"
    CREATE = "create"
    ADOPT = "adopt"
    DELETE = "delete"
    GET = "get"
    LIST = "list"
    READ = "read"
    CALL = "call"
    RANDOM = "random"


class WritePurpose(Enum):
    """Purposes in the handled object's own write; `READ` precedes a repetition."""

    WRITE = "write"
    READ = "read"


class PeeringPurpose(Enum):
    """Purposes in peering: for the own record, and (`CLEAN`) for dead peers'."""

    RENEW = "renew"
    LEAVE = "leave"
    CLEAN = "clean"


class LeasePurpose(Enum):
    """Purposes of the requests of leader election."""

    READ = "read"
    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    RELEASE = "release"


# The purpose of any request.
Purpose = EffectPurpose | WritePurpose | PeeringPurpose | LeasePurpose


class Reply(Enum):
    """The classes of outcomes; the values are their columns in the table."""

    DONE = 0
    MISSING = 1
    UNSERVED = 2
    EXISTS = 3
    CONFLICT = 4
    REJECTED = 5
    REFUSED = 6
    RAISED = 7
    UNREACHABLE = 8
    UNKNOWN = 9


class Next(Enum):
    """The next action after a reply; the module's docstring explains each."""

    TAKE = "take"
    LOOK = "look"
    AGAIN = "again"
    LATER = "later"


class Replies(NamedTuple):
    """A row of the table: the next action after each reply, in the order of `Reply`."""

    done: Next
    missing: Next
    unserved: Next
    exists: Next
    conflict: Next
    rejected: Next
    refused: Next
    raised: Next
    unreachable: Next
    unknown: Next


_T, _L, _A, _W = Next.TAKE, Next.LOOK, Next.AGAIN, Next.LATER

# T take, L look, A again, W later (wait).
# fmt: off
NEXT: dict[Purpose, Replies] = {
    #                                    missing exists   rejected raised   unknown
    #                                done    unserved conflict refused unreachable
    EffectPurpose.APPLY:         Replies(_T, _T, _W, _A, _T, _T, _T, _T, _W, _L),
    EffectPurpose.PATCH:         Replies(_T, _T, _W, _T, _T, _T, _T, _T, _W, _L),
    EffectPurpose.GUARDED_PATCH: Replies(_T, _T, _W, _A, _A, _T, _T, _T, _W, _L),
    EffectPurpose.CREATE:        Replies(_T, _T, _W, _L, _T, _T, _T, _T, _W, _L),
    EffectPurpose.ADOPT:         Replies(_T, _T, _W, _L, _T, _T, _T, _T, _W, _L),
    EffectPurpose.DELETE:        Replies(_T, _T, _W, _T, _T, _T, _T, _T, _W, _W),
    EffectPurpose.GET:           Replies(_T, _T, _W, _T, _T, _T, _T, _T, _W, _W),
    EffectPurpose.LIST:          Replies(_T, _T, _W, _T, _T, _T, _T, _T, _W, _W),
    EffectPurpose.READ:          Replies(_T, _T, _W, _T, _T, _T, _T, _T, _W, _W),
    EffectPurpose.CALL:          Replies(_T, _T, _T, _T, _T, _T, _T, _T, _T, _T),
    EffectPurpose.RANDOM:        Replies(_T, _T, _T, _T, _T, _T, _T, _T, _T, _W),
    WritePurpose.WRITE:          Replies(_T, _T, _W, _L, _L, _T, _W, _W, _W, _L),
    WritePurpose.READ:           Replies(_T, _T, _W, _L, _L, _T, _W, _W, _W, _L),
    PeeringPurpose.RENEW:        Replies(_T, _T, _T, _W, _W, _W, _W, _W, _W, _W),
    PeeringPurpose.LEAVE:        Replies(_T, _T, _T, _W, _W, _W, _W, _W, _W, _W),
    PeeringPurpose.CLEAN:        Replies(_T, _T, _T, _T, _T, _W, _W, _W, _W, _W),
    LeasePurpose.READ:           Replies(_T, _T, _T, _W, _W, _W, _W, _W, _W, _W),
    LeasePurpose.CREATE:         Replies(_T, _W, _W, _L, _L, _W, _W, _W, _W, _L),
    LeasePurpose.TAKE:           Replies(_T, _T, _T, _L, _L, _W, _W, _W, _W, _L),
    LeasePurpose.RENEW:          Replies(_T, _T, _T, _L, _L, _W, _W, _W, _W, _L),
    LeasePurpose.RELEASE:        Replies(_T, _T, _T, _L, _L, _W, _W, _W, _W, _L),
}
# fmt: on


def next_after(purpose: Purpose, outcome: Outcome, tries: int = 0) -> Next:
    """The next action after an outcome; `tries` is the number of repetitions so far.

    >>> next_after(EffectPurpose.CREATE, Unknown("the connection was closed"))
    <Next.LOOK: 'look'>
    >>> next_after(EffectPurpose.DELETE, Missing("no such kind", unserved=True))
    <Next.LATER: 'later'>
    >>> next_after(EffectPurpose.DELETE, Missing('no kind', unserved=True), tries=8)
    <Next.TAKE: 'take'>
    """
    reply = reply_of(outcome)
    if reply is Reply.UNSERVED and tries >= UNSERVED_TRIES:
        reply = Reply.MISSING
    return NEXT[purpose][reply.value]


def reply_of(outcome: Outcome) -> Reply:
    """The class of an outcome.

    >>> reply_of(Refused(403, "forbidden")), reply_of(Refused(422, "invalid"))
    (<Reply.REFUSED: 6>, <Reply.REJECTED: 5>)
    """
    match outcome:
        case Applied() | Answer():
            return Reply.DONE
        case Missing(unserved=unserved):
            return Reply.UNSERVED if unserved else Reply.MISSING
        case Conflict(reason="AlreadyExists"):
            return Reply.EXISTS
        case Conflict():
            return Reply.CONFLICT
        case Refused(status=status):
            return Reply.REJECTED if status in _REJECTIONS else Reply.REFUSED
        case Raised():
            return Reply.RAISED
        case Unreachable():
            return Reply.UNREACHABLE
        case Unknown():
            return Reply.UNKNOWN
        case _:
            assert_never(outcome)


def message_of(outcome: Outcome) -> str:
    """The message of an outcome; "" for a success.

    >>> message_of(Refused(403, "forbidden")), message_of(Applied())
    ('forbidden', '')
    """
    return "" if isinstance(outcome, (Applied, Answer)) else outcome.message
