"""The plan of a handler, from its result (R2), and the check for lost effects (R3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from fnop.effects import Effect, Return, Witness
from fnop.effects.effects import unanswered
from fnop.effects.values import freeze_json

__all__ = ["EFFECTS", "identity", "plan_of", "refuse_lost"]

EFFECTS = get_args(Effect)
# The identity of an object. Not `id`: Python calls the audit hooks for that.
identity = object.__hash__


def plan_of(value: Any) -> tuple[Effect, ...]:
    """The plan of a handler from its result (R2); raises `TypeError` for others.

    >>> plan_of({"size": 1})
    (Return(value={'size': 1}),)
    >>> plan_of([1])
    Traceback (most recent call last):
        ...
    TypeError: a list as a result needs fnop.result([...]), to tell it from a plan
    """
    if value is None:
        return ()
    if isinstance(value, EFFECTS):
        return _checked((value,))
    if isinstance(value, (list, tuple)):
        effects = [isinstance(item, EFFECTS) for item in value]
        if all(effects):
            return _checked(tuple(value))
        others = [item for item in value if not isinstance(item, EFFECTS)]
        if any(hasattr(type(item), "__await__") for item in others):
            freeze_json(others, "the plan")  # its error names what was not awaited
        if any(effects):
            raise TypeError(
                "a plan mixes effects with other values; return either a list of "
                "effects, or a result"
            )
        raise TypeError(
            "a list as a result needs fnop.result([...]), to tell it from a plan"
        )
    return (Return(value),)


def _checked(plan: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """The plan; a read in it is a forgotten await, since a plan gets no answers."""
    for effect in plan:
        if why := unanswered(effect):
            raise TypeError(why)
    return plan


def refuse_lost(
    witness: Witness,
    plan: Iterable[Effect],
    remedy: str,
    taken: frozenset[int] | set[int] = frozenset(),
) -> None:
    """Raise `TypeError` for an effect that was built and is lost (R3).

    Effects of the plan are not lost, nor those that were `taken`, by their identity,
    from the conversation.
    """
    kept = taken.union(map(identity, plan))
    for effect, where in witness.built:
        if identity(effect) not in kept:
            raise TypeError(
                f"the {effect.kind} built at {where} has no effect: {remedy}"
            )
