"""Requests of peering and of leader election: asked by a number, and still pending."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from fnop.core.seam.replies import LeasePurpose, PeeringPurpose
from fnop.effects import Effect

__all__ = ["Ask", "PeeringAsk", "PeeringPlace", "Pending"]

P = TypeVar("P", PeeringPurpose, LeasePurpose)


class PeeringPlace(NamedTuple):
    """The address of a peering object; its name is the member's."""

    kind: str  # plural.version.group
    namespace: str | None

    @property
    def label(self) -> str:
        """`plural.group`, and where, as people call it."""
        plural, _, rest = self.kind.partition(".")
        inside = f" in {self.namespace}" if self.namespace else ""
        return f"{plural}.{rest.partition('.')[2]}{inside}"


class Ask(NamedTuple):
    """A request to send; its answer is an `Answered` of this number, if one comes.

    From `before` on (monotonic) the answer is not waited for: what has not been sent by
    then need not be.
    """

    number: int
    effect: Effect
    before: float


class PeeringAsk(NamedTuple):
    """The same about the peering object of a place."""

    number: int
    place: PeeringPlace
    effect: Effect
    before: float


class Pending(NamedTuple, Generic[P]):
    """A request that was sent at this monotonic moment and is not answered yet.

    `version` is that of the object as it was known then: the answer is not older,
    unless the API server was restored from a backup meanwhile.
    """

    number: int
    purpose: P
    sent_at: float
    version: str = ""
