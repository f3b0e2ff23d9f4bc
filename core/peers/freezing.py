"""Verdicts of peering: whether this operator serves, or is frozen, and why.

`fnop.core.peers.verdict` finds them. This module defines them, combines several, and
returns the effect and the log line of a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from msgspec import Struct

from fnop.core.peers.peers import Member, Peer
from fnop.core.seam.commands import Say
from fnop.effects import Freeze, Resume

__all__ = [
    "Frozen",
    "PeeringVerdict",
    "Serving",
    "Why",
    "precedence",
    "together",
    "transition",
]


class Why(Enum):
    """The reasons why an operator is frozen, the most important first."""

    LEFT = "it has left"
    OUTRANKED = "a peer has a higher priority"
    TIED = "a peer has the same priority"
    DOUBLED = "another process has the same identity"
    REMOVED = "its record is removed again and again"
    MISSING = "the mandatory peering object is missing"
    UNRENEWED = "its record was not renewed in time"
    UNSEEN = "a peering object cannot be read"
    JOINING = "not all peers are known yet"


_WEIGHT = {why: weight for weight, why in enumerate(Why)}


class Serving(Struct, frozen=True):
    """This operator serves."""


class Frozen(Struct, frozen=True):
    """This operator is frozen: the reason, the peers, and their places."""

    why: Why
    by: tuple[Peer, ...] = ()
    where: tuple[str, ...] = ()
    detail: str = ""


PeeringVerdict = Serving | Frozen


def precedence(alive: Iterable[Peer], priority: int, where: str) -> PeeringVerdict:
    """The verdict for an operator with a priority among its living peers.

    | peers | verdict |
    |---|---|
    | one of a higher priority | frozen in favour of it |
    | none higher, one of the same | frozen, as all of these |
    | only lower ones, or none | serving |

    >>> precedence([Peer("x", 5), Peer("y", 1)], 1, "").why
    <Why.OUTRANKED: 'a peer has a higher priority'>
    >>> precedence([Peer("x", 5)], 6, "")
    Serving()
    """
    alive = tuple(alive)
    higher = tuple(each for each in alive if each.priority > priority)
    same = tuple(each for each in alive if each.priority == priority)
    if higher:
        return Frozen(Why.OUTRANKED, higher, (where,))
    return Frozen(Why.TIED, same, (where,)) if same else Serving()


def together(verdicts: Iterable[PeeringVerdict]) -> PeeringVerdict:
    """Combine the verdicts of several places: frozen in one is frozen everywhere.

    The most important reason counts, with all of its peers and places.

    >>> together([Serving(), Frozen(Why.JOINING), Frozen(Why.UNSEEN)]).why.name
    'UNSEEN'
    """
    found = [each for each in verdicts if isinstance(each, Frozen)]
    if not found:
        return Serving()
    why = min((each.why for each in found), key=_WEIGHT.__getitem__)
    same = [each for each in found if each.why is why]
    by = {peer.identity: peer for each in same for peer in each.by}
    where = dict.fromkeys(name for each in same for name in each.where)
    details = dict.fromkeys(each.detail for each in same if each.detail)
    peers = tuple(by[identity] for identity in sorted(by))
    return Frozen(why, peers, tuple(where), ", ".join(details))


def transition(
    before: PeeringVerdict, after: PeeringVerdict, member: Member
) -> tuple[Freeze | Resume | None, Say | None]:
    """The effect and the log line for a change of the verdict.

    | before | after | effect | line |
    |---|---|---|---|
    | any | frozen, as it ends | | |
    | serving | frozen | `Freeze` | the reason |
    | frozen | frozen for another reason, or for others | | the new reason |
    | frozen | serving | `Resume` | it serves again; none if it has just begun |
    | any | the same | | |
    """
    match before, after:
        case _, Frozen(Why.LEFT):
            return None, None
        case Serving(), Frozen():
            line = _freeze_line(after, member)
            return Freeze(line.message), line
        case Frozen(why), Serving():
            begins = why is Why.JOINING
            return Resume(), None if begins else Say("info", "serving again")
        case Frozen(), Frozen() if _logged_parts(before) != _logged_parts(after):
            quiet = after.why is Why.JOINING
            return None, None if quiet else _freeze_line(after, member)
        case _:
            return None, None


def _logged_parts(frozen: Frozen) -> tuple[Any, ...]:
    """The parts of a verdict whose changes are logged."""
    peers = tuple((each.identity, each.priority, each.message) for each in frozen.by)
    return frozen.why, peers, frozen.where if frozen.why is Why.MISSING else ()


def _freeze_line(frozen: Frozen, member: Member) -> Say:
    """The log line of a freeze: a warning, unless the freeze is an ordinary one."""
    calm = frozen.why in (Why.OUTRANKED, Why.JOINING)
    return Say(
        "info" if calm else "warning", f"frozen: {_reason_of_freeze(frozen, member)}"
    )


def _reason_of_freeze(frozen: Frozen, member: Member) -> str:
    peers = ", ".join(str(each) for each in frozen.by)
    where = ", ".join(frozen.where)
    detail = f": {frozen.detail}" if frozen.detail else ""
    match frozen.why:
        case Why.OUTRANKED:
            return f"outranked by {peers}; this operator has priority {member.priority}"
        case Why.TIED:
            return (
                f"it has the same priority as {peers}; "
                "all of them are frozen: give each another --priority, or run replicas "
                "with --leader-elect, which --kopf lacks"
            )
        case Why.DOUBLED:
            return (
                f"another process is called {member.identity}, too, in {where}; each "
                "pod needs a POD_ID of its own"
            )
        case Why.REMOVED:
            return (
                f"this operator's record is removed again and again in {where}; "
                "synchronize the clocks of the operators' machines"
            )
        case Why.MISSING:
            return (
                f"there is no peering object {member.name!r} {where}; create it, or "
                "run without --peering"
            )
        case Why.UNRENEWED:
            return (
                f"this operator's record was not renewed in time in {where}{detail}; "
                "others may take it for dead"
            )
        case Why.UNSEEN:
            return (
                f"peers cannot be read in {where}{detail}; grant list, watch and "
                "patch there, or run with --standalone"
            )
        case Why.JOINING | Why.LEFT:
            return f"{frozen.why.value} ({where})" if where else frozen.why.value
