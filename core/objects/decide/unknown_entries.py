"""Entries of indices that a handler observes while the index cannot be listed."""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.handlers.declare.handler import Handler
from fnop.core.memory.observation import Seen, digest_of, scope_name, see
from fnop.core.objects.decide.selection import Circumstances
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body
from fnop.core.values.cause import Reason
from fnop.core.values.diff import path_at
from fnop.core.values.entries import entries_at, is_known, is_of_entries

__all__ = ["seen_now", "with_unknown_entries"]


def seen_now(at: Circumstances, record: ObjectRecord) -> Seen:
    """The object as its handlers observe it; unknown parts as they were before.

    If a kind cannot be listed, its index is incomplete and shows no change. It shows
    none against the stored state, and none against the change that is under way.
    """
    seen, was = see(record.body, at.kind.observation), record.stored.seen
    if was is None or not at.kind.observation.has_entries:
        return seen
    change = record.work.change if record.work else None
    before = was.digests if change is None else {**was.digests, **change.seen.digests}
    unknown = {
        scope: each
        for scope, each in before.items()
        if scope not in seen.digests and is_of_entries(path_at(scope))
    }
    return Seen({**seen.digests, **unknown}, seen.values) if unknown else seen


def with_unknown_entries(
    at: Circumstances,
    body: Body,
    reason: Reason,
    selected: Iterable[Handler],
    seen: Seen,
) -> Seen:
    """The observed state, with the entries that handlers receive of unknown indices.

    A handler that is called while an index's kind cannot be listed decides by the known
    entries, usually an empty set. Once the entries are known, and differ, fnop calls it
    again.
    """
    if not at.kind.observation.has_entries:
        return seen
    called, whole = {each.id for each in selected}, at.kind.observation.indices
    shown = {
        scope_name(each.entries): digest_of(
            entries_at(each.entries, body, at.indices, at.kind.resource.key)
        )
        for each in at.kind.changes
        if each.entries
        and not is_known(each.entries, whole)
        and (reason is Reason.CREATE or not called.isdisjoint((each.id, each.repeats)))
    }
    return Seen({**seen.digests, **shown}, seen.values) if shown else seen
