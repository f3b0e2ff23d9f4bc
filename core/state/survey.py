"""The kinds that the API server serves, and when to repeat discovery."""

from __future__ import annotations

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.cluster_changes import ServerVersion
from fnop.core.api.discovery import Discovery
from fnop.core.api.statuses import StatusSchema
from fnop.core.handlers.program.program import Kind
from fnop.core.values.backoff import growing_seconds
from fnop.core.values.now import Now
from fnop.core.values.table import Table
from fnop.effects.structs import replace

__all__ = ["Survey", "looking_by", "missing"]


class Survey(Struct, frozen=True):
    """The API server's kinds and namespaces, and the discovery of them."""

    catalogue: Catalogue = Catalogue()
    # The kinds that have handlers, by resource key.
    kinds: Table[str, Kind] = Table()
    # The status schemas that documents describe, by resource key.
    statuses: Table[str, StatusSchema] = Table()
    # The discovery under way, and when the next one is due (monotonic).
    discovery: Discovery | None = None
    due: float | None = None
    # The number of failed discoveries in a row.
    tries: int = 0
    # Since the last discovery, an effect has named a missing kind.
    wanted: bool = False
    # The namespaces of the cluster; None if they are unknown, or not needed.
    namespaces: frozenset[str] | None = None
    # Until this monotonic time the API server's documents about its kinds may be
    # outdated, since a definition was just added or removed.
    restless_until: float = 0.0
    # The server's version, the digests of schemas by resource key, and the hashes of
    # their documents. Kept only as far as handlers of the cluster need them.
    version: ServerVersion | None = None
    schemas: Table[str, str] = Table()
    hashes: Table[tuple[str, str], str] = Table()
    # The fields that the API server refuses as selectors, by resource key.
    unselectable: Table[str, frozenset[str]] = Table()
    # Since when the API server has not answered (monotonic). And for how long it had
    # not when handlers were last called about it.
    silent_since: float | None = None
    told_silence: float = -1.0

    def with_kind(self, kind: Kind) -> Survey:
        """The survey with a kind that has handlers."""
        return replace(self, kinds=self.kinds.set(kind.resource.key, kind))


def looking_by(survey: Survey, moment: float) -> Survey:
    """Return the survey with discovery due at this time (monotonic), or earlier.

    >>> looking_by(looking_by(Survey(), 5.0), 7.0).due
    5.0
    """
    due = survey.due
    return replace(survey, due=moment if due is None else min(due, moment))


def missing(survey: Survey, now: Now, most: float) -> Survey:
    """Return the survey after an effect names a missing kind: due in `most` seconds."""
    wait = growing_seconds(survey.tries, 0.0, most=most)
    return looking_by(replace(survey, wanted=True), now.mono + wait)
