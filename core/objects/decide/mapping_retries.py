"""Retries of failed mappings, each for some states of an object.

The objects that a mapping names are reconciled again. So they must not be lost when the
mapping fails. fnop calls it again for the same state of the object until it succeeds,
after a backoff. A newer state does not wait for that: fnop calls the mapping at once
for it, and for the state before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.state.record import PendingEvent

__all__ = ["STATES_MAX", "TRIES_MAX", "bounded", "first_event_due", "with_events"]

# The maximum number of states of one object with retries of one failed mapping.
STATES_MAX = 10
# The number of retries after an arbitrary error, for a state that the object no longer
# has, such as a deleted one. A user who repairs the object cannot repair that state.
TRIES_MAX = 10


def with_events(
    pending: Iterable[PendingEvent], fresh: Iterable[PendingEvent]
) -> tuple[PendingEvent, ...]:
    """Return the pending events with fresh ones, each mapping once for a state.

    Of the states with a failed mapping, the oldest stays: the objects that it names may
    not be named by any other state.
    """
    fresh = tuple(fresh)
    again = {_state_of_event(each) for each in fresh if _is_mapping(each)}
    kept = [e for e in pending if not (_is_mapping(e) and _state_of_event(e) in again)]
    for handler in {each.handler.id for each in fresh if _is_mapping(each)}:
        failed = [e for e in kept if e.handler.id == handler and e.progress.retries]
        for each in failed[1 : 1 + max(0, len(failed) - STATES_MAX)]:
            kept.remove(each)
    return *kept, *fresh


def bounded(pending: tuple[PendingEvent, ...], most: int) -> tuple[PendingEvent, ...]:
    """Limit the pending events; drop the oldest that name no objects.

    Lines of logs do not count: fnop asks for no more lines while this many wait.
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
    """The monotonic time when the next waiting event is due; None if none waits."""
    moments = (e.progress.due for e in pending if not e.is_due(now))
    return min((each for each in moments if each is not None), default=None)


def _is_mapping(event: PendingEvent) -> bool:
    return not event.handler.rule.ignores_failures


def _state_of_event(event: PendingEvent) -> tuple[str, str | None, str | None]:
    return event.handler.id, event.body.uid, event.body.version
