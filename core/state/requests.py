"""The unanswered commands, each with its ticket.

A ticket is stored under the command's number, and names the recipient of the answer.
"""

from __future__ import annotations

from immutables import Map
from msgspec import Struct

from fnop.core.values.backoff import Allowance, drawn
from fnop.core.values.body import Key
from fnop.core.values.errors import number_of
from fnop.effects import Call
from fnop.effects.structs import replace

__all__ = [
    "ForDiscovery",
    "ForEffect",
    "ForEvent",
    "ForExpectation",
    "ForLease",
    "ForNamespace",
    "ForPeers",
    "ForWrite",
    "OfObject",
    "Requests",
    "Ticket",
    "handler_of",
    "is_outside",
    "is_urgent",
    "under_way",
]

# For more requests under way, the log line gives only their number.
_TOLD_MAX = 3


class ForEffect(Struct, frozen=True):
    """An effect of an attempt: of the invocation with this serial."""

    key: Key
    serial: int
    handler: str
    # It goes elsewhere than the API server, and may take long.
    outside: bool = False


class ForWrite(Struct, frozen=True):
    """The object's own write, or the live read before it is computed again."""

    key: Key
    handler: str = ""


class ForExpectation(Struct, frozen=True):
    """A live read of the object: the watch has not shown its last own write."""

    key: Key
    uid: str


class ForEvent(Struct, frozen=True):
    """A Kubernetes Event of this name about the object."""

    key: Key
    handler: str
    name: str


class ForDiscovery(Struct, frozen=True):
    """A document about the API server's kinds."""


class ForNamespace(Struct, frozen=True):
    """The question whether the namespace of this name exists."""

    name: str


class ForPeers(Struct, frozen=True):
    """A request of peering, by its number there."""

    number: int


class ForLease(Struct, frozen=True):
    """A request of the election, by its number there."""

    number: int


OfObject = ForEffect | ForWrite | ForExpectation | ForEvent
Ticket = OfObject | ForDiscovery | ForNamespace | ForPeers | ForLease


def is_outside(ticket: Ticket) -> bool:
    """Whether its request goes elsewhere than the API server, and may take long."""
    return isinstance(ticket, ForEffect) and ticket.outside


def is_urgent(ticket: Ticket) -> bool:
    """Whether the right to serve depends on it: then it does not wait for a slot."""
    return isinstance(ticket, (ForPeers, ForLease))


def handler_of(ticket: Ticket) -> str:
    """The ids of the handlers that it serves, for logs and recordings."""
    match ticket:
        case ForEffect(handler=name) | ForWrite(handler=name) | ForEvent(handler=name):
            return name
        case _:
            return ""


class Requests(Struct, frozen=True):
    """The tickets by number; `calls` counts those not for the API server.

    `allowances` are the token buckets of called functions, by name.
    """

    pending: Map[int, Ticket] = Map()
    calls: int = 0
    allowances: Map[str, Allowance] = Map()

    def sent(self, number: int, ticket: Ticket) -> Requests:
        """Return the requests with one more command, which is sent."""
        pending, calls = self.pending.set(number, ticket), self.calls
        return Requests(pending, calls + is_outside(ticket), self.allowances)

    def drawn(self, call: Call, now: float) -> tuple[Requests, float]:
        """Return the requests after a call is admitted, and the seconds it must wait.

        `now` is monotonic.
        """
        per_second, burst = call.per_second, call.burst
        if per_second is None:
            return self, 0.0
        known = self.allowances.get(call.function)
        if known is None or (known.per_second, known.burst) != (per_second, burst):
            known = Allowance(per_second, burst, left=burst, at=now)
        after, wait = drawn(known, now)
        allowances = self.allowances.set(call.function, after)
        return replace(self, allowances=allowances), wait

    def answered(self, number: int) -> tuple[Ticket | None, Requests]:
        """The ticket of an answered command, None if it is unknown, and the rest."""
        ticket = self.pending.get(number)
        if ticket is None:
            return None, self
        left = self.pending.delete(number)
        return ticket, Requests(left, self.calls - is_outside(ticket), self.allowances)


def under_way(requests: Requests) -> str:
    """The unanswered requests, for a log line; "" without any.

    >>> ticket = ForEffect(Key("pods.v1", "default", "a"), 1, "create")
    >>> under_way(Requests().sent(1, ticket))
    '1 request: of create for pods/a'
    """
    found = dict.fromkeys(
        _describe_ticket(requests.pending[number])
        for number in sorted(requests.pending)
    )
    if not found:
        return ""
    more = len(found) - _TOLD_MAX
    names = [*found][:_TOLD_MAX] + ([f"and {more} more"] if more > 0 else [])
    count = number_of(len(requests.pending), "request")
    return f"{count}: of {', '.join(names)}"


def _describe_ticket(ticket: Ticket) -> str:
    author = handler_of(ticket) or "fnop"
    if not isinstance(ticket, OfObject) or not ticket.key.name:
        return author
    plural = ticket.key.resource.partition(".")[0]
    return f"{author} for {plural}/{ticket.key.name}"
