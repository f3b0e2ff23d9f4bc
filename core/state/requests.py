"""What is under way: the commands that are still to be answered, and what for."""

from __future__ import annotations

from typing import NamedTuple

from immutables import Map

from fnop.core.values.body import Key
from fnop.core.values.evolve import quick

__all__ = ["URGENT", "Requests", "Ticket"]

# Kinds of tickets whose requests keep the right to serve: they wait for no others.
URGENT = ("peer", "lease")


class Ticket(NamedTuple):
    """What a command was for, until it is answered.

    `kind` is errand, write, echo, event or fetch; `serial` the invocation's.
    `outside` ones do not go to the API server, and may take long.  `uid` is the
    object's, where the answer is for no namesake, `name` a Kubernetes Event's.
    """

    kind: str
    key: Key | None = None
    serial: int = 0
    handler: str = ""
    outside: bool = False
    uid: str = ""
    name: str = ""


@quick
class Requests(NamedTuple):
    """Tickets by the number of the command; `calls` do not go to the API server."""

    pending: Map[int, Ticket] = Map()
    calls: int = 0

    def sent(self, number: int, ticket: Ticket) -> Requests:
        """A command is on its way."""
        return Requests(self.pending.set(number, ticket), self.calls + ticket.outside)

    def answered(self, number: int) -> tuple[Ticket | None, Requests]:
        """Its ticket, where one is waiting for the answer, and what is left."""
        ticket = self.pending.get(number)
        if ticket is None:
            return None, self
        left = self.pending.delete(number)
        return ticket, Requests(left, self.calls - ticket.outside)

    def has_slot(self, most: int) -> bool:
        """Whether a further request may be under way; calls hold no slot (R13)."""
        return len(self.pending) - self.calls < most
