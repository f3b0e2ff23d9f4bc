"""What is under way: the commands that are still to be answered, and what for.

A ticket is kept for each, by the command's number, and tells whose answer it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from immutables import Map

from fnop.core.values.body import Key
from fnop.core.values.evolve import quick

__all__ = [
    "ForDiscovery",
    "ForEffect",
    "ForEvent",
    "ForExpectation",
    "ForLease",
    "ForPeers",
    "ForWrite",
    "OfObject",
    "Requests",
    "Ticket",
]


class _Ticket:
    """What is the same of most tickets."""

    __slots__ = ()

    # Whether it goes elsewhere than to the API server, and may take long.
    outside: ClassVar[bool] = False
    # Whether it keeps the right to serve: it waits for no others.
    is_urgent: ClassVar[bool] = False
    # Whose it is, for logs and recordings.
    handler: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class ForEffect:
    """An effect of an attempt: of the invocation with this serial."""

    key: Key
    serial: int
    handler: str
    outside: bool = False

    is_urgent: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ForWrite:
    """The object's own write, or the look before it is made anew."""

    key: Key
    handler: str = ""

    outside: ClassVar[bool] = False
    is_urgent: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ForExpectation(_Ticket):
    """A look at the object, whose last own write the watch does not show."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class ForEvent:
    """A Kubernetes Event of this name about the object."""

    key: Key
    handler: str
    name: str

    outside: ClassVar[bool] = False
    is_urgent: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ForDiscovery(_Ticket):
    """A document about the API server's kinds."""


@dataclass(frozen=True, slots=True)
class ForPeers(_Ticket):
    """A question of peering, by its number there."""

    number: int
    is_urgent: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ForLease(_Ticket):
    """A question of the election, by its number there."""

    number: int
    is_urgent: ClassVar[bool] = True


OfObject = ForEffect | ForWrite | ForExpectation | ForEvent
Ticket = OfObject | ForDiscovery | ForPeers | ForLease


@quick
class Requests(NamedTuple):
    """Tickets by the number of the command; `calls` do not go to the API server."""

    pending: Map[int, Ticket] = Map()
    calls: int = 0

    def sent(self, number: int, ticket: Ticket) -> Requests:
        """A command is on its way."""
        return Requests(self.pending.set(number, ticket), self.calls + ticket.outside)

    def answered(self, number: int) -> tuple[Ticket | None, Requests]:
        """Its ticket, where one waits for the answer, and what is left."""
        ticket = self.pending.get(number)
        if ticket is None:
            return None, self
        left = self.pending.delete(number)
        return ticket, Requests(left, self.calls - ticket.outside)

    def has_slot(self, most: int) -> bool:
        """Whether a further request may be under way; calls hold no slot (R13)."""
        return len(self.pending) - self.calls < most
