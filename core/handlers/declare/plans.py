"""The plan of a handler, from its result (R2), and the check for lost effects (R3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, get_args

from fnop.core.values.errors import PermanentError
from fnop.effects import Effect, Requeue, Return, Target, Witness
from fnop.effects.desired import Child, Desired
from fnop.effects.effects import unanswered
from fnop.effects.values import freeze_json, shown, type_name

__all__ = [
    "EFFECTS",
    "bare_children",
    "desired_in",
    "identity",
    "is_manifest",
    "mapped",
    "plan_of",
    "refuse_lost",
]

EFFECTS = get_args(Effect)
# The maximum number of names that a mapping returns at once.
MAPPED_MAX = 1_000_000
# The identity of an object. Not `id`: Python calls the audit hooks for that.
identity = object.__hash__


def is_manifest(value: Any) -> bool:
    """Whether a handler's result is an object, and not values for the status."""
    return isinstance(value, Mapping) and {"apiVersion", "kind"} <= value.keys()


def bare_children(value: Any) -> str | None:
    """The `return` wrapper that a reconciler forgot around its children, if any.

    >>> bare_children([{"apiVersion": "v1", "kind": "Secret"}])
    'return fnop.desired([...])'
    """
    if is_manifest(value) or isinstance(value, Child):
        return "return fnop.desired(manifest)"
    if not isinstance(value, (list, tuple)):
        return None
    others = [item for item in value if not isinstance(item, EFFECTS)]
    if not others or any(hasattr(type(item), "__await__") for item in others):
        return None
    is_mixed = len(others) < len(value)
    return (
        f"return {'[fnop.desired([...]), ...]' if is_mixed else 'fnop.desired([...])'}"
    )


def mapped(fn: Callable[..., Any], kind: str, **arguments: Any) -> list[Effect]:
    """The effects of a mapping: the objects that it names are reconciled again.

    Raises `TypeError` for a result that names nothing, and `PermanentError` for too
    many names.

    >>> mapped(lambda name: (name, "prod/web"), "databases", name="x")[1].target
    Target(resource='databases', name='web', namespace='prod', uid=None)
    """
    found = fn(**arguments)
    if found is None:
        return []
    is_one = isinstance(found, (str, Target, Mapping))
    # It may be a generator, which is the author's code, too.
    names = [found] if is_one else [*islice(found, MAPPED_MAX + 1)]
    if len(names) > MAPPED_MAX:
        raise PermanentError(
            f"a mapping has answered more than {MAPPED_MAX:,} names, the last of them "
            f"{shown(names[-1])}; let it answer the objects of one kind, each once"
        )
    # Names are not effects of the author: an effect here may be a forgotten await.
    with Witness.looking_away():
        return [_requeue_for(kind, each) for each in names]


def _requeue_for(kind: str, named: Any) -> Requeue:
    match named:
        case Target():
            return Requeue(named)
        case str():
            namespace, _, name = named.rpartition("/")
            return Requeue(Target(kind, name, namespace or None))
        case _:
            raise TypeError(
                "a mapping answers names, such as 'web' or 'prod/web', not "
                f"{type_name(named)}"
            )


def desired_in(value: Any) -> tuple[Desired | None, Any]:
    """The desired part of a reconciler's result, and the rest of it.

    >>> found, rest = desired_in([Desired(again=1.0), None])
    >>> found.again, rest
    (1.0, [None])
    """
    if isinstance(value, Desired):
        return value, None
    if not isinstance(value, (list, tuple)):
        return None, value
    found = [each for each in value if isinstance(each, Desired)]
    if len(found) > 1:
        raise TypeError(
            "a handler desires one set of children: return one fnop.desired"
        )
    rest = [each for each in value if not isinstance(each, Desired)]
    return (found[0], rest) if found else (None, value)


def plan_of(value: Any) -> tuple[Effect, ...]:
    """Return a handler's plan from its result (R2); raise `TypeError` for others.

    >>> plan_of({"size": 1})
    (Return(value={'size': 1}),)
    >>> plan_of([1])
    Traceback (most recent call last):
        ...
    TypeError: a list as a result needs fnop.result([...]), to tell it from a plan
    """
    if value is None:
        return ()
    if isinstance(value, Desired):
        raise TypeError("fnop.desired is the answer of a @fnop.reconcile handler alone")
    if isinstance(value, EFFECTS):
        return _checked((value,))
    if isinstance(value, (list, tuple)):
        effects = [isinstance(item, EFFECTS) for item in value]
        if all(effects):
            return _checked(tuple(value))
        others = [item for item in value if not isinstance(item, EFFECTS)]
        if any(hasattr(type(item), "__await__") for item in others):
            freeze_json(others, "the plan")  # its error names the missing await
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
    """Return the plan; a read in it is a forgotten await: a plan gets no answers."""
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
    """Raise `TypeError` for an effect that was built and then lost (R3).

    Effects of the plan are not lost. Neither are effects that the conversation yielded:
    these are `taken`, by their identity.
    """
    kept = taken.union(map(identity, plan))
    for effect, where in witness.built:
        if identity(effect) not in kept:
            raise TypeError(
                f"the {effect.kind} built at {where} has no effect: {remedy}"
            )
