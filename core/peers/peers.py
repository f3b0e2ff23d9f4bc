"""The records of operators in a peering object, and the rule for living ones.

In a peering object, `status.<identity>` is one operator's record

    {"priority": 0, "lifetime": 60, "lastseen": "2026-01-01T00:00:00.000000+00:00"}

The operator renews it while it runs, and removes it (a null in a merge patch) when it
ends. Kopf reads and writes the same shape (its `ClusterKopfPeering` and `KopfPeering`),
with the defaults of priority 0, lifetime 60 and now. Further fields are ignored.

**Clocks.** `lastseen` is a time on the writer's clock, and Kopf compares it with the
reader's clock. A peer whose clock is behind looks dead while it runs. A peer whose
clock is ahead outlives its end. Here the reader counts a lifetime on its own monotonic
clock, from the time when it saw the record change (as client-go's leader election
does). Clocks may then differ by any offset; a peer is dead after one lifetime without a
change, no sooner and no later. Of the records in the very first read, the time of the
last change is unknown. Their `lastseen` is believed, as in Kopf, but for no longer than
a lifetime. So the record of an operator that crashed yesterday does not hold up its
successor. A freeze for an hour ends in time also for operators that start in the middle
of it. A peer that looks dead by its clock alone counts again as soon as it renews its
record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from fnop.core.values.now import Now, parse_time, wall_time
from fnop.effects.names import check_name

__all__ = [
    "DEV_PRIORITY",
    "FREEZE_PRIORITY",
    "LIFETIME_SECONDS",
    "MalformedRecord",
    "Member",
    "Mode",
    "Peer",
    "SeenPeer",
    "manual_identity",
    "own_identity",
    "parse_peer",
    "parse_peers",
    "record_of",
    "removal_patch",
    "renewal_patch",
    "sight",
]

# The priority of `--dev`, and the default of `fnop freeze`: both are Kopf's.
DEV_PRIORITY = 666
FREEZE_PRIORITY = 100
LIFETIME_SECONDS = 60


# -------------------------------------------------------------- this operator


class Mode(Enum):
    """The modes of peering: none, if peering objects exist, or mandatory."""

    STANDALONE = "standalone"
    AUTO = "auto"
    MANDATORY = "mandatory"


class Member(Struct, frozen=True):
    """This operator among its peers.

    `name` is the name of the peering objects, `lifetime` is in whole seconds. With
    `stealth`, renewals are not logged.
    """

    identity: str
    priority: int = 0
    lifetime: int = LIFETIME_SECONDS
    name: str = "default"
    mode: Mode = Mode.AUTO
    stealth: bool = False

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("peering: an operator needs an identity")
        check_name(self.name, "peering:")
        if self.lifetime < 1:
            raise ValueError(
                "peering: a record lives for a whole number of seconds, from 1, "
                f"not for {self.lifetime!r}"
            )


def own_identity(
    *, user: str, host: str, wall: float, token: str, pod_id: str | None = None
) -> str:
    """The identity of an operator among its peers, unique to a process.

    `pod_id` is the variable POD_ID, which a Deployment sets to its pod's name; `token`
    a few random characters; `wall` the start of the process (Unix seconds).

    >>> own_identity(user="ann", host="desk.local", wall=0, token="x7k")
    'ann@desk/19700101000000/x7k'
    >>> own_identity(user="root", host="node", wall=0, token="x7k", pod_id="op-5d9f-x")
    'op-5d9f-x'
    """
    if pod_id:
        return pod_id
    started = wall_time(wall).strftime("%Y%m%d%H%M%S")
    return f"{manual_identity(user=user, host=host)}/{started}/{token}"


def manual_identity(*, user: str, host: str, pod_id: str | None = None) -> str:
    """The identity of a person who freezes and resumes operators: the same for both.

    >>> manual_identity(user="ann", host="desk.localdomain")
    'ann@desk'
    """
    if pod_id:
        return pod_id
    for suffix in (".local", ".localdomain"):
        host = host.removesuffix(suffix)
    return f"{user}@{host}"


# ------------------------------------------------------------------- records


class Peer(Struct, frozen=True):
    """One record; `lifetime` is in seconds, `lastseen` in its writer's Unix time.

    `message` is the text of a freeze; Kopf ignores it.
    """

    identity: str
    priority: int = 0
    lifetime: float = LIFETIME_SECONDS
    lastseen: float | None = None
    message: str = ""

    def __str__(self) -> str:
        said = f": {self.message}" if self.message else ""
        return f"{self.identity} (priority {self.priority}{said})"


class MalformedRecord(Struct, frozen=True):
    """A record that cannot be read, and the problem; it freezes no operator."""

    identity: str
    problem: str


def parse_peers(status: Any) -> tuple[tuple[Peer, ...], tuple[MalformedRecord, ...]]:
    """The records of a peering object's status, and the malformed ones.

    Both are ordered by identity.

    >>> parse_peers({"b": {"priority": 5}, "a": {"lastseen": "soon"}})[1]
    (MalformedRecord(identity='a', problem="its lastseen 'soon' is not a time"),)
    """
    if status is None:
        return (), ()
    if not isinstance(status, Mapping):
        return (), (MalformedRecord("status", "it is not a mapping"),)
    found = [
        parse_peer(identity, record)
        for identity, record in sorted(status.items())
        if record is not None
    ]
    return (
        tuple(each for each in found if isinstance(each, Peer)),
        tuple(each for each in found if isinstance(each, MalformedRecord)),
    )


def parse_peer(identity: str, record: Any) -> Peer | MalformedRecord:
    """Parse one record; fields that are missing or null have Kopf's defaults.

    Numbers may be texts, and times may have no offset (then they are UTC): some
    releases of Kopf write them like this.

    >>> parse_peer("x", {"lifetime": "10", "lastseen": "1970-01-01T00:00:01"})
    Peer(identity='x', priority=0, lifetime=10.0, lastseen=1.0, message='')
    """
    if not isinstance(record, Mapping):
        return MalformedRecord(identity, "it is not a mapping")
    try:
        return Peer(
            identity,
            _parse_priority(record.get("priority")),
            _parse_lifetime(record.get("lifetime")),
            _parse_lastseen(record.get("lastseen")),
            str(record.get("message") or ""),
        )
    except ValueError as problem:
        return MalformedRecord(identity, f"its {problem}")


def _parse_priority(value: Any) -> int:
    number = 0.0 if value is None else _parse_number(value)
    if number is None or not number.is_integer():
        raise ValueError(f"priority {value!r} is not a whole number")
    return int(number)


def _parse_lifetime(value: Any) -> float:
    number = LIFETIME_SECONDS if value is None else _parse_number(value)
    if number is None:
        raise ValueError(f"lifetime {value!r} is not a number of seconds")
    return float(number)


def _parse_number(value: Any) -> float | None:
    """The value of a finite number, or of its text; None for others, and booleans."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _parse_lastseen(value: Any) -> float | None:
    if value is None:
        return None
    try:
        return parse_time(value)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"lastseen {value!r} is not a time") from None


def record_of(
    priority: int, lifetime: int, wall: float, message: str = ""
) -> dict[str, Any]:
    """A record that all releases of Kopf can read: seconds are a whole number.

    `fnop freeze` writes one, with a message, under `manual_identity`.

    >>> record_of(100, 60, 1.5)["lastseen"]
    '1970-01-01T00:00:01.500000+00:00'
    """
    lastseen = wall_time(wall).isoformat(timespec="microseconds")
    record = {"priority": priority, "lifetime": lifetime, "lastseen": lastseen}
    return {**record, "message": message} if message else record


def renewal_patch(identity: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that writes one record, and does not touch other operators'.

    >>> renewal_patch("ann@desk", {"priority": 100})
    {'status': {'ann@desk': {'priority': 100}}}
    """
    return {"status": {identity: dict(record)}}


def removal_patch(
    identities: Iterable[str], version: str | None = None
) -> dict[str, Any]:
    """The merge patch that removes records, with a version as its precondition.

    `fnop resume` sends one without a version, for `manual_identity`.

    >>> removal_patch(["ann@desk"])
    {'status': {'ann@desk': None}}
    """
    patch: dict[str, Any] = {"status": dict.fromkeys(identities)}
    return {"metadata": {"resourceVersion": version}, **patch} if version else patch


# ---------------------------------------------------------------- seen peers


class SeenPeer(Struct, frozen=True):
    """A peer at the last change that this operator has seen; monotonic seconds.

    If a read at `dies`, or later, shows no change, the peer is dead. If a read at
    `forgotten`, or later, shows no change, its record may be removed. This operator
    itself has seen no change for a lifetime, so no living peer is removed for its wrong
    clock.
    """

    peer: Peer
    dies: float
    forgotten: float


def sight(
    before: tuple[SeenPeer, ...] | None, peers: Iterable[Peer], now: Now
) -> tuple[SeenPeer, ...]:
    """The seen peers after a read, from those `before`; None at the first read.

    Unchanged records keep their times; new and changed ones count as written just now.
    The rule is in the module's docstring.

    >>> late = Peer("x", lastseen=1000.0)
    >>> [each.dies for each in sight(None, [late], Now(1050.0, 7.0))]
    [17.0]
    >>> [each.dies for each in sight((), [late], Now(1050.0, 7.0))]
    [67.0]
    """
    known = {each.peer.identity: each for each in before or ()}
    return tuple(
        old
        if (old := known.get(peer.identity)) is not None and old.peer == peer
        else _fresh(peer, before is None, now)
        for peer in peers
    )


def _fresh(peer: Peer, first: bool, now: Now) -> SeenPeer:
    lifetime = max(peer.lifetime, 0.0)
    left = lifetime
    if first and peer.lastseen is not None:
        left = min(max(peer.lastseen + lifetime - now.wall, 0.0), lifetime)
    return SeenPeer(peer, now.mono + left, now.mono + lifetime)
