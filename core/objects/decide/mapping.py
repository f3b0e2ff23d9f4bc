"""Mappings that have failed: for which states of an object they are called again.

What a mapping names is looked at again; so it must not be lost when the mapping fails.
It is called again for the same state of the object until it succeeds, after a backoff.
A newer state does not wait for that: the mapping is called for it, and for the state
before it, at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.state.record import PendingEvent

__all__ = ["STATES_MAX", "TRIES_MAX", "bounded", "first_event_due", "with_events"]

# The states of one object for which one mapping that has failed is called again.
STATES_MAX = 10
# An arbitrary error is tried again so often for a state that the object has no more, as
# one that is deleted: whoever mends the object cannot mend that one.
TRIES_MAX = 10


def with_events(
    pending: Iterable[PendingEvent], fresh: Iterable[PendingEvent]
) -> tuple[PendingEvent, ...]:
    """The pending events with fresh ones, each mapping once for a state.

    Of the states for which a mapping has failed, the oldest stays: whom it names may
    be named by none of the others.
    """
    fresh = tuple(fresh)
    again = {_state(each) for each in fresh if _is_mapping(each)}
    kept = [e for e in pending if not (_is_mapping(e) and _state(e) in again)]
    for handler in {each.handler.id for each in fresh if _is_mapping(each)}:
        failed = [e for e in kept if e.handler.id == handler and e.progress.retries]
        for each in failed[1 : 1 + max(0, len(failed) - STATES_MAX)]:
            kept.remove(each)
    return *kept, *fresh


def bounded(pending: tuple[PendingEvent, ...], most: int) -> tuple[PendingEvent, ...]:
    """At most so many pending events; the oldest that name nobody are left out.

    Lines of logs do not count: no more are asked for while so many wait.
    """
    events = [each for each in pending if each.line is None]
    extra = len(events) - most
    if extra <= 0:
        return pending
    oldest = [each for each in events if not _is_mapping(each)][:extra]
    left_out = {id(each) for each in oldest}
    if len(oldest) < extra:  # of mappings, the first one stays
        left_out |= {id(each) for each in events[1 : 1 + extra - len(oldest)]}
    return tuple(each for each in pending if id(each) not in left_out)


def first_event_due(pending: Iterable[PendingEvent], now: float) -> float | None:
    """The monotonic time when the next event that waits is due; None if none waits."""
    moments = (e.progress.due for e in pending if not e.is_due(now))
    return min((each for each in moments if each is not None), default=None)


def _is_mapping(event: PendingEvent) -> bool:
    return not event.handler.rule.ignores_failures


def _state(event: PendingEvent) -> tuple[str, str | None, str | None]:
    return event.handler.id, event.body.uid, event.body.version
