"""The failures of a plan: each is reported once, however often it repeats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fnop.core.handlers.declare.handler import Handler
from fnop.effects.structs import replace
from fnop.interpreters.plan.facts import Failure, Write, sources_of

__all__ = ["failures_of"]


def failures_of(
    attempts: Sequence[Failure], writes: Iterable[Write], handlers: Sequence[Handler]
) -> tuple[Failure, ...]:
    """The attempts that fail and the writes that are refused, each once.

    A refused write is skipped if an attempt fails because of it. It is also skipped if
    its handler then takes another way: lists are set again, an immutable child is
    replaced. A failure that repeats with the same words is in the round of its first
    time; the later rounds are in `again`.
    """
    sent = [*writes]
    left = [
        _failure_of_refusal(each, handlers)
        for number, each in enumerate(sent)
        if each.is_refused
        and not any(_quotes_refusal(e, each) for e in attempts)
        and not any(_is_reaction_to(e, each) for e in sent[number + 1 :])
    ]
    found: dict[object, Failure] = {}
    for each in (*attempts, *left):
        key = each.sources, each.subject, each.message
        first = found.get(key)
        found[key] = each if first is None else _repeated_failure(first, each)
    return tuple(found.values())


def _failure_of_refusal(write: Write, handlers: Sequence[Handler]) -> Failure:
    message = f"{write.method} of {write.place.label} is refused: {write.message}"
    sources = sources_of(handlers, write.handler)
    return Failure(write.round, message, False, sources, write.subject)


def _quotes_refusal(attempt: Failure, write: Write) -> bool:
    """Whether an attempt's failure quotes a refused write of its own."""
    writers = write.handler.split(", ")
    is_same = (attempt.round, attempt.subject) == (write.round, write.subject)
    is_by_same = any(each.handler in writers for each in attempt.sources)
    return is_same and is_by_same and write.message in attempt.message


def _is_reaction_to(later: Write, refused: Write) -> bool:
    """Whether a later write is the handler's reaction to a refused one."""
    told = refused.round, refused.subject, refused.handler, refused.place
    mine = later.round, later.subject, later.handler, later.place
    return mine == told and later.status < 400


def _repeated_failure(first: Failure, later: Failure) -> Failure:
    """A failure that happens again; `retried` comes from the last one.

    >>> first = Failure(1, "no", True, (), None)
    >>> found = _repeated_failure(first, replace(first, round=3))
    >>> found = _repeated_failure(found, first)
    >>> found.round, found.again
    (1, (3,))
    """
    rounds = {*first.again, later.round} - {first.round}
    return replace(first, again=tuple(sorted(rounds)), retried=later.retried)
