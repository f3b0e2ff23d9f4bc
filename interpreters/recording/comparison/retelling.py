"""Replace the texts in everything that an attempt was shown, answered, and decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fnop.core.objects.store.indexing import Index
from fnop.core.values.body import Body
from fnop.effects.structs import replace
from fnop.effects.values import read_only
from fnop.effects.wire import from_wire, to_wire
from fnop.interpreters.recording.model.attempts import Attempt, Exchange

__all__ = ["Tell", "as_recorded", "retold"]

Tell = Callable[[Any], Any]
"""A JSON value with other texts."""


def as_recorded(value: Any) -> Any:
    """Return the value unchanged."""
    return value


def retold(attempt: Attempt, tell: Tell) -> Attempt:
    """The attempt with every value replaced; names and keys stay."""
    if tell is as_recorded:
        return attempt
    body = attempt.body
    return replace(
        attempt,
        body=None if body is None else Body(tell(body.data)),
        memo=read_only(tell(attempt.memo)),
        children={k: Body(tell(each.data)) for k, each in attempt.children.items()},
        indices={name: _index(each, tell) for name, each in attempt.indices.items()},
        exchanges=[_retold_exchange(each, tell) for each in attempt.exchanges],
        desires=None if attempt.desires is None else tell(attempt.desires),
        end=None if attempt.end is None else tell(attempt.end),
    )


def _retold_exchange(exchange: Exchange, tell: Tell) -> Exchange:
    outcome = exchange.outcome
    told = None if outcome is None else from_wire(tell(to_wire(outcome)))
    return replace(exchange, asked=tell(exchange.asked), outcome=told)


def _index(index: Index, tell: Tell) -> Index:
    found: dict[Any, Mapping[Any, Any]] = {}
    for key, of, value in index.entries():
        found[of] = {**found.get(of, {}), key: read_only(tell(value))}
    told = Index()
    for of, values in found.items():
        told = told.with_object(of, values)
    return told
