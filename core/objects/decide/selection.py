"""Whether the filters of a handler select an object, at one moment.

Filters are the author's code. If a filter raises, its handler is skipped, except for
deletion handlers: fnop must not release the object that they hold by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.api.ownership import owner_of
from fnop.core.handlers.declare.filters import UNKNOWN, Sight
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import BACKGROUND, CHANGES
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Kind
from fnop.core.handlers.run.arguments import Situation, filter_arguments
from fnop.core.memory.observation import (
    ABSENT,
    Seen,
    digest_at,
    had_value,
    observed_at,
    value_at,
)
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body, Key
from fnop.core.values.diff import Path
from fnop.core.values.now import Now
from fnop.core.values.table import NOTHING

__all__ = [
    "Circumstances",
    "FilterFailure",
    "Undecided",
    "is_child",
    "passes",
    "prematches",
    "reads_log_of",
    "sees",
    "wants_line",
]


class Undecided(Exception):
    """A filter of a deletion handler raised: fnop must not release the object.

    With a storage of Kopf's form, a filter of any handler of changes has raised: the
    change stays unhandled, as with Kopf.

    Its cause is the error of the filter.
    """

    def __init__(self, handler: Handler, error: BaseException) -> None:
        super().__init__(f"a filter of {handler.id} failed")
        self.handler = handler
        self.error = error


class FilterFailure(NamedTuple):
    """A handler whose filters raised: it is not called for this state."""

    handler: Handler
    error: BaseException


class Circumstances(Struct, frozen=True):
    """All facts that a decision depends on, in addition to the object itself.

    `indices` are the present ones. Filters are evaluated when an object is reconciled,
    and not again when an index has changed.
    """

    kind: Kind
    settings: Settings
    now: Now
    seed: str
    # The time when a stop cancels handlers that run (monotonic); None while it serves.
    cancels_at: float | None = None
    indices: Mapping[str, Any] = NOTHING
    # The filters that raise, as `next_action` collects them; None: the error is raised.
    failures: list[FilterFailure] | None = None
    # The versions of the objects that this one owns, of the kinds in `owns=`. Any known
    # object. And whether the API server refuses to show some of a kind.
    children: Mapping[Key, str] = NOTHING
    body_of: Callable[[Key], Body | None] = lambda _: None
    is_blind: Callable[[str], bool] = lambda _: False
    # The end of the wait for logs of an object that is gone (monotonic).
    log_until: float | None = None
    # Whether a pause of peering lets the handlers that run end.
    pausing: bool = False

    @property
    def stopping(self) -> bool:
        """Whether the operator does not serve: no handler begins."""
        return self.pausing or self.cancels_at is not None


def is_child(handler: Handler, body: Body) -> bool:
    """Whether the object has an owner of the kind that the handler selects."""
    if handler.owner is None:
        return True
    return owner_of(body, handler.owners or frozenset()) is not None


def sees(handler: Handler, situation: Situation) -> bool:
    """Whether a handler that stores nothing selects an object as it is now."""
    if handler.takes_all:
        return True
    body = situation.body
    assert body is not None
    if not is_child(handler, body):
        return False
    return handler.filters.prematch(_current_sight(situation))


def reads_log_of(handler: Handler, situation: Situation) -> bool:
    """Whether a log handler selects a pod; its `when=` is evaluated for each line."""
    body = situation.body
    assert body is not None
    if not is_child(handler, body):
        return False
    return handler.filters.selects(_current_sight(situation))


def wants_line(handler: Handler, situation: Situation) -> bool:
    """Whether the `when=` of a log handler selects a line of a pod that it reads."""
    when = handler.filters.when
    return when is None or _current_sight(situation).call(when)


def _current_sight(situation: Situation) -> Sight:
    """The facts about an object as it is now, without a past."""
    body, field = situation.body, situation.handler.field
    assert body is not None
    return Sight(
        body.mapping("labels"),
        body.mapping("annotations"),
        _now(body, field, situation.settings) if field else None,
        None,
        False,
        lambda wants, rest: filter_arguments(situation, wants, rest),
        lambda path: _stored_value(body, path),
    )


def prematches(at: Circumstances, record: ObjectRecord, handler: Handler) -> bool:
    """Whether a handler selects an object for any reason."""
    if handler.takes_all:
        return True
    if not handler.filters.asks_reason:
        return passes(at, record, handler, changed=False)
    return any(
        passes(at, record, handler, changed=False, reason=reason)
        for reason in [each.value for each in handler.rule.reasons] or (None,)
    )


def passes(
    at: Circumstances,
    record: ObjectRecord,
    handler: Handler,
    *,
    changed: bool,
    reason: str | None = None,
) -> bool:
    """Whether a handler's filters pass; a handler whose filters raise is skipped.

    `reason` is the reason of the call, for filters that depend on it. A deletion
    handler must not be skipped: if its filters raise, fnop decides nothing at all.
    By Kopf's rules, no handler of changes is skipped.
    """
    if not is_child(handler, record.body):
        return False
    sight = _sight_of(at, record, handler, reason)
    try:
        return handler.filters.prematch(sight) and (
            not changed or handler.filters.change_fits(sight)
        )
    except BaseException as problem:
        if at.failures is None:
            raise
        if handler in at.kind.deleters or (
            handler.role in CHANGES and at.settings.places.format is not None
        ):
            raise Undecided(handler, problem) from problem
        at.failures.append(FilterFailure(handler, problem))
        return False


def _stored_value(body: Body, path: Path) -> Any:
    """The stored value of a field; None without one."""
    found: Any = body.data
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _now(body: Body, field: Path, settings: Settings) -> Any:
    return observed_at(body, field, settings.places.paths, settings.hidden)


def _previous_value(seen: Seen | None, field: Path) -> Any:
    """The previous value of a field; UNKNOWN if that value is not stored."""
    found = value_at(seen, field)
    return UNKNOWN if found is None and had_value(seen, field) else found


def _is_ahead(at: Circumstances, record: ObjectRecord, handler: Handler) -> bool:
    """Whether it has acted upon a value of its field that the object no longer has.

    Only the process that has acted knows the value. Other processes have its digest.
    """
    progress = record.progress_of(handler.id)
    if progress is None or progress.seen is not None or not progress.acted:
        return False
    return progress.acted != digest_at(record.body, handler.scope, at.kind.observation)


def _value_before(
    at: Circumstances, record: ObjectRecord, handler: Handler, before: Seen | None
) -> Any:
    """The previous value of a field for a handler, by the state `before`.

    It is the value that the handler has acted upon, if the object no longer has that
    value. A handler that is called for entries of an index is not called for a change
    of the field.
    """
    if handler.entries:
        return _now(record.body, handler.field, at.settings)
    if not _is_ahead(at, record, handler):
        return _previous_value(before, handler.field)
    progress = record.progress_of(handler.id)
    return None if progress is not None and progress.acted == ABSENT else UNKNOWN


def _sight_of(
    at: Circumstances, record: ObjectRecord, handler: Handler, reason: str | None
) -> Sight:
    body, field = record.body, handler.field
    # For Kopf each value was absent before the creation.
    is_new = at.settings.as_kopf and record.stored.creating
    # Daemons and timers run for the object as it is now, whatever it was before.
    is_about_now = handler.role in BACKGROUND or is_new
    before = None if is_about_now else record.before(handler, at.kind.observation)
    situation = Situation(
        handler,
        at.settings,
        at.now,
        at.kind.resource,
        body,
        reason,
        before,
        memo=record.memo,
        indices=at.indices,
    )
    return Sight(
        body.mapping("labels"),
        body.mapping("annotations"),
        _now(body, field, at.settings) if field else None,
        _value_before(at, record, handler, before) if field else None,
        # An object that was not seen before had no previous value, not even None.
        before is not None
        or (bool(field) and _is_ahead(at, record, handler))
        or (at.settings.as_kopf and bool(handler.rule.reasons)),
        lambda wants, rest: filter_arguments(situation, wants, rest),
        lambda path: _stored_value(body, path),
    )
