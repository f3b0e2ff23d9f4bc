"""Facts that an operator has found once, and need not find or log again."""

from __future__ import annotations

from msgspec import Struct

from fnop.core.state.record import NO_REPORTS, Reports
from fnop.effects.structs import replace

__all__ = ["Notes"]


class Notes(Struct, frozen=True):
    """Warnings that were logged, failures, and kinds that cannot store something.

    `denials` are the Kubernetes Events about denied writes of objects without a record.
    """

    warned: frozenset[str] = frozenset()
    # The number of handlers that failed permanently, and of other serious failures.
    failures: int = 0
    # Kinds whose schema prunes the state from the status: an annotation holds it.
    annotated: frozenset[str] = frozenset()
    # Kinds whose status has no place for a condition.
    unconditioned: frozenset[str] = frozenset()
    denials: Reports = NO_REPORTS

    def failed(self) -> Notes:
        """The notes with one more failure."""
        return replace(self, failures=self.failures + 1)

    def pruning(self, kind: str) -> Notes:
        """The notes with a kind whose status does not keep the state."""
        return replace(self, annotated=self.annotated | {kind})

    def keeping(self, kind: str) -> Notes:
        """Return the notes without a kind whose status keeps the state after all."""
        return replace(self, annotated=self.annotated - {kind})

    def conditionless(self, kind: str) -> Notes:
        """The notes with a kind that has no place for a condition."""
        return replace(self, unconditioned=self.unconditioned | {kind})

    def conditioned(self, kind: str) -> Notes:
        """Return the notes without a kind that does have a place for a condition."""
        return replace(self, unconditioned=self.unconditioned - {kind})

    def warned_of(self, about: str) -> Notes:
        """Return the notes with a warning that was logged."""
        return replace(self, warned=self.warned | {about})
