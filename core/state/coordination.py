"""Other operators: the peers and, among replicas, the leader."""

from __future__ import annotations

from msgspec import Struct

from fnop.core.peers.election import Election, has_resigned, may_start
from fnop.core.peers.freezing import Frozen, Serving, Why
from fnop.core.peers.lease import Leading
from fnop.core.peers.memberships import Peering, has_left
from fnop.core.state.lifecycle import Phase
from fnop.core.values.now import Now

__all__ = ["ALONE", "Coordination"]


class Coordination(Struct, frozen=True):
    """Peering and the election, each with the time when it is due (monotonic).

    None if the operator takes no part.
    """

    peering: Peering | None = None
    peering_due: float | None = None
    election: Election | None = None
    election_due: float | None = None

    @property
    def lease_ends(self) -> float | None:
        """The time after which no request may begin: the lease may be lost by then."""
        if self.election is None:
            return None
        verdict = self.election.verdict
        return verdict.until if isinstance(verdict, Leading) else None

    def peering_is_due(self, now: Now) -> bool:
        """Whether peering is due now."""
        return self.peering_due is not None and self.peering_due <= now.mono

    def election_is_due(self, now: Now) -> bool:
        """Whether the election is due now."""
        return self.election_due is not None and self.election_due <= now.mono

    def wants(self, now: Now) -> Phase:
        """The phase that the verdicts require, while the operator is in service."""
        peering, election = self.peering, self.election
        if peering is not None and not isinstance(peering.verdict, Serving):
            return Phase.FROZEN
        if election is not None and not may_start(election, now):
            return Phase.STANDBY
        return Phase.SERVING

    @property
    def is_outranked(self) -> bool:
        """Whether the operator is frozen because a peer has a higher priority."""
        verdict = None if self.peering is None else self.peering.verdict
        return isinstance(verdict, Frozen) and verdict.why is Why.OUTRANKED

    @property
    def has_left(self) -> bool:
        """Whether the operator has left its peers and released the lease."""
        if self.peering is not None and not has_left(self.peering):
            return False
        return self.election is None or has_resigned(self.election)

    @property
    def moments(self) -> tuple[float, ...]:
        """The times when peering and the election are due."""
        each = self.peering_due, self.election_due
        return tuple([moment for moment in each if moment is not None])


# An operator without peers and without an election.
ALONE = Coordination()
