"""The values of leader election: leases, candidates, timing, verdicts."""

from __future__ import annotations

from msgspec import Struct

from fnop.core.values.body import Body
from fnop.effects import (
    Target,
)
from fnop.effects.names import check_name, check_namespace
from fnop.effects.values import check_seconds

__all__ = [
    "JITTER_FACTOR",
    "LEASES",
    "RELEASED_SECONDS",
    "Candidate",
    "ElectionVerdict",
    "Leading",
    "Lease",
    "Resigned",
    "Standby",
    "Timing",
    "candidate_identity",
    "parse_lease",
]

# The kind, as a key of `Resource`.
LEASES = "leases.v1.coordination.k8s.io"


# Reads of the Lease randomly wait up to this many times longer (client-go's
# JitterFactor).
JITTER_FACTOR = 1.2
# The duration in a Lease that its holder has released (client-go's `release`).
RELEASED_SECONDS = 1


class Timing(Struct, frozen=True):
    """Durations in seconds; the defaults follow Kubernetes' own controllers.

    Raises `ValueError` for durations that cannot work (client-go's `NewLeaderElector`).
    """

    lease_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_seconds(getattr(self, name), f"election: {name}")
        if self.retry_seconds <= 0:
            raise ValueError("election: retry_seconds must be more than zero")
        if self.renew_deadline_seconds <= self.retry_seconds * JITTER_FACTOR:
            raise ValueError(
                "election: renew_deadline_seconds must be more than "
                f"{JITTER_FACTOR} times retry_seconds"
            )
        if self.lease_seconds <= self.renew_deadline_seconds:
            raise ValueError(
                "election: lease_seconds must be more than renew_deadline_seconds"
            )

    @property
    def answer_seconds(self) -> float:
        """The timeout of a request, which leaves time for another try."""
        return self.renew_deadline_seconds / 2


class Candidate(Struct, frozen=True):
    """This process, and the Lease that it wants to hold."""

    identity: str
    namespace: str
    name: str
    timing: Timing = Timing()

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("election: a candidate needs an identity")
        check_namespace(self.namespace, "election:")
        check_name(self.name, "election:")

    @property
    def target(self) -> Target:
        return Target(LEASES, self.name, self.namespace)

    @property
    def label(self) -> str:
        return f"lease {self.namespace}/{self.name}"


def candidate_identity(host: str, token: str) -> str:
    """The identity of a candidate: its host and random characters, as in client-go.

    >>> candidate_identity("operator-5d9f-x", "0b6e3c52")
    'operator-5d9f-x_0b6e3c52'
    """
    return f"{host}_{token}"


class Lease(Struct, frozen=True):
    """The fields of a Lease that the election needs; a holder of "" means no holder."""

    holder: str = ""
    seconds: float | None = None
    transitions: int = 0
    uid: str = ""
    version: str = ""


def parse_lease(body: Body) -> Lease:
    """Parse a Lease from the API server; malformed fields read as absent.

    >>> parse_lease(Body({"spec": {"holderIdentity": "a", "leaseTransitions": 3}}))
    Lease(holder='a', seconds=None, transitions=3, uid='', version='')
    """
    spec = body.stanza("spec")
    seconds, transitions = (
        spec.get("leaseDurationSeconds"),
        spec.get("leaseTransitions"),
    )
    return Lease(
        str(spec.get("holderIdentity") or ""),
        float(seconds) if isinstance(seconds, int) and seconds > 0 else None,
        transitions if isinstance(transitions, int) else 0,
        body.uid,
        body.version,
    )


class Leading(Struct, frozen=True):
    """This process leads; it may start requests before `until` (monotonic).

    `epoch` is the Lease's count of transitions. It is greater than any former leader's.
    """

    epoch: int
    until: float


class Standby(Struct, frozen=True):
    """Another process leads, the `holder`, or none does yet ("")."""

    holder: str = ""


class Resigned(Struct, frozen=True):
    """This process has ended its candidacy."""


ElectionVerdict = Leading | Standby | Resigned
