"""What an operator has found out once, and need not find out or say again."""

from __future__ import annotations

from typing import NamedTuple

from fnop.core.values.evolve import quick

__all__ = ["Notes"]


@quick
class Notes(NamedTuple):
    """Warnings that were given, failures, and where kinds have no place for a state."""

    warned: frozenset[str] = frozenset()
    # Handlers that failed for good, and other things that must not happen.
    failures: int = 0
    # Kinds whose schema prunes a state from the status: it goes into an annotation.
    annotated: frozenset[str] = frozenset()
    # Kinds that have no place for a condition.
    unconditioned: frozenset[str] = frozenset()

    def failed(self) -> Notes:
        """One more failure."""
        return self._replace(failures=self.failures + 1)

    def pruning(self, kind: str) -> Notes:
        """A kind keeps no state in its status."""
        return self._replace(annotated=self.annotated | {kind})

    def keeping(self, kind: str) -> Notes:
        """It does, after all."""
        return self._replace(annotated=self.annotated - {kind})

    def conditionless(self, kind: str) -> Notes:
        """A kind has no place for a condition."""
        return self._replace(unconditioned=self.unconditioned | {kind})

    def conditioned(self, kind: str) -> Notes:
        """It has one, after all."""
        return self._replace(unconditioned=self.unconditioned - {kind})

    def warned_of(self, about: str) -> Notes:
        """That has been said."""
        return self._replace(warned=self.warned | {about})
