"""A run as it is wanted."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """A run: `seconds` of faults, and at most `bound` more until all is well.

    Of several `replicas` one serves: who holds the lease.  Each process is `recorded`
    if wanted.
    """

    seconds: float
    seed: int
    objects: int
    bound: float = 60.0
    outages: bool = True
    replicas: int = 1
    recorded: bool = False

    @property
    def per_second(self) -> float:
        """The number of changes that the user makes per second."""
        return min(10.0, max(2.0, self.objects / 50))
