"""Requests of peering and of leader election: to send, and pending."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from fnop.core.seam.replies import LeasePurpose, PeeringPurpose
from fnop.effects import Effect

__all__ = ["Ask", "PeeringAsk", "PeeringPlace", "Pending"]

P = TypeVar("P", PeeringPurpose, LeasePurpose)


class PeeringPlace(Struct, frozen=True):
    """The kind and the namespace of a peering object; its name is the member's."""

    kind: str  # plural.version.group
    namespace: str | None

    @property
    def label(self) -> str:
        """`plural.group` and the namespace, as in log lines."""
        plural, _, rest = self.kind.partition(".")
        inside = f" in {self.namespace}" if self.namespace else ""
        return f"{plural}.{rest.partition('.')[2]}{inside}"


class Ask(Struct, frozen=True):
    """A request to send; its answer is an `Answered` of this number, if one comes.

    fnop ignores an answer after `before` (monotonic). So a request that has not been
    sent by then need not be sent.
    """

    number: int
    effect: Effect
    before: float


class PeeringAsk(Struct, frozen=True):
    """A request to send about the peering object of a place, as `Ask`."""

    number: int
    place: PeeringPlace
    effect: Effect
    before: float


class Pending(Struct, Generic[P], frozen=True):
    """A request that was sent at this monotonic time and has no answer yet.

    `version` is the resourceVersion that was known then. The answer is not older,
    unless the API server was restored from a backup meanwhile.
    """

    number: int
    purpose: P
    sent_at: float
    version: str = ""
