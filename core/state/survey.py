"""What the API server serves, as far as it is known, and when to look again."""

from __future__ import annotations

from typing import NamedTuple

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.discovery import Discovery
from fnop.core.handlers.program import Kind
from fnop.core.values.backoff import growing_seconds
from fnop.core.values.evolve import quick
from fnop.core.values.now import Now
from fnop.core.values.table import Table

__all__ = ["Survey", "looking_by", "missing"]


@quick
class Survey(NamedTuple):
    """The kinds and namespaces of the API server, and the search for them."""

    catalogue: Catalogue = Catalogue()
    # Those that handlers are for, by resource key.
    kinds: Table[str, Kind] = Table()
    # The search that is under way, and when the next one is due (monotonic).
    discovery: Discovery | None = None
    due: float | None = None
    # Searches in vain, since the last one that found something.
    tries: int = 0
    # An effect has named a kind that is not there, since the last search.
    wanted: bool = False
    # Those of the cluster; None where that is not known, or not needed.
    namespaces: frozenset[str] | None = None
    # Until then (monotonic) a definition has just come or gone, and what the API server
    # says of its kinds may still be what it said before.
    restless_until: float = 0.0

    def with_kind(self, kind: Kind) -> Survey:
        """Handlers are for this kind."""
        return self._replace(kinds=self.kinds.set(kind.resource.key, kind))


def looking_by(survey: Survey, moment: float) -> Survey:
    """Search at this time (monotonic), or before, if that is due already.

    >>> looking_by(looking_by(Survey(), 5.0), 7.0).due
    5.0
    """
    due = survey.due
    return survey._replace(due=moment if due is None else min(due, moment))


def missing(survey: Survey, now: Now, most: float) -> Survey:
    """An effect names a kind that is not there: search again within `most` seconds."""
    wait = growing_seconds(survey.tries, 0.0, most=most)
    return looking_by(survey._replace(wanted=True), now.mono + wait)
