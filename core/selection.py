"""Whether a handler is for an object: its filters, looked at from one moment.

Filters are the author's code.  One that raises leaves its handler out, except for
deletion handlers: what they hold must not be let go by mistake.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fnop.core.arguments import Situation, filter_arguments
from fnop.core.diff import Path
from fnop.core.filters import UNKNOWN, Sight
from fnop.core.known import Known
from fnop.core.last_seen import Seen, had_value, value_at
from fnop.core.now import Now
from fnop.core.objects import Body
from fnop.core.ownership import owner_of
from fnop.core.program import Kind
from fnop.core.registry import Handler
from fnop.core.settings import Settings

__all__ = ["Moment", "is_child", "passes", "prematches", "sees"]


class Moment(NamedTuple):
    """What a decision depends on beside the object itself.

    `failed` collects the handlers whose filters raise: they are left out.
    """

    kind: Kind
    settings: Settings
    now: Now
    seed: str
    stopping: bool
    failed: list[tuple[Handler, Exception]]


def is_child(handler: Handler, body: Body) -> bool:
    """Whether the object has an owner of the kind that the handler asks for."""
    if handler.owner is None:
        return True
    return owner_of(body, handler.owners or frozenset()) is not None


def sees(handler: Handler, situation: Situation) -> bool:
    """Whether a handler that stores nothing is for an object as it is now."""
    if handler.takes_all:
        return True
    body = situation.body
    assert body is not None
    if not is_child(handler, body):
        return False
    return handler.filters.prematch(
        Sight(
            body.mapping("labels"),
            body.mapping("annotations"),
            body.at(handler.field) if handler.field else None,
            None,
            False,
            lambda wants, rest: filter_arguments(situation, wants, rest),
        )
    )


def prematches(at: Moment, known: Known, handler: Handler) -> bool:
    return handler.takes_all or passes(at, known, handler, changed=False)


def passes(at: Moment, known: Known, handler: Handler, *, changed: bool) -> bool:
    """Whether a handler's filters pass; one whose filters raise is left out.

    But a deletion handler must not be skipped: then nothing is decided at all.
    """
    if not is_child(handler, known.body):
        return False
    sight = _sight(at, known, handler)
    try:
        return handler.filters.prematch(sight) and (
            not changed or handler.filters.change_fits(sight)
        )
    except Exception as problem:
        if handler in at.kind.deleters:
            raise
        if all(each is not handler for each, _ in at.failed):
            at.failed.append((handler, problem))
        return False


def _before(seen: Seen | None, field: Path) -> Any:
    """What a field was; where its value is not kept, whether it was there at all."""
    found = value_at(seen, field)
    return UNKNOWN if found is None and had_value(seen, field) else found


def _sight(at: Moment, known: Known, handler: Handler) -> Sight:
    body, field = known.body, handler.field
    before = known.before(handler, at.kind.observation)
    situation = Situation(
        handler, at.settings, at.now, at.kind.resource, body, None, before
    )
    return Sight(
        body.mapping("labels"),
        body.mapping("annotations"),
        body.at(field) if field else None,
        _before(before, field) if field else None,
        # What has not been seen yet had no value before, not even none.
        before is not None,
        lambda wants, rest: filter_arguments(situation, wants, rest),
    )
