"""The form of a handler's function, and the arguments in its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from enum import Enum
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.signatures import INDEX
from fnop.core.values.callables import layers, parameters_of
from fnop.core.values.errors import RegistrationError, hint_of, listed, nearest

__all__ = ["Form", "Signature", "form_of"]


class Form(Enum):
    """The forms of handlers; all three are the same conversation."""

    PLAN = "plan"
    AWAITED = "awaited"
    GENERATOR = "generator"


class Signature(Struct, frozen=True):
    """The arguments that a handler names.

    With `rest` it also takes `**kwargs`. A name that begins with an underscore, as in
    `**_`, means that the handler does not use them.
    """

    form: Form
    wants: tuple[str, ...]
    rest: bool

    def takes(self, name: str) -> bool:
        """Whether it gets this argument, if its role has it."""
        return self.rest or name in self.wants

    @classmethod
    def of(
        cls,
        fn: Callable[..., Any],
        own: frozenset[str],
        label: str,
        indices: Collection[str] = (),
    ) -> Signature:
        """The signature of a function; `own` are the arguments that its role has.

        Raises `RegistrationError` for an unknown argument.
        """
        known = own | frozenset(indices)
        wants: list[str] = []
        rest = False
        for each in parameters_of(fn):
            if each.kind is each.VAR_KEYWORD:
                rest = not each.name.startswith("_")
            elif each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL):
                raise RegistrationError(
                    f"{label}: {each.name!r} is positional, but handlers are called "
                    "with keyword arguments; remove it or the / after it"
                )
            elif each.default is INDEX and (each.name in own or each.name not in known):
                raise RegistrationError(_missing_index(label, each.name, own, indices))
            elif each.name in known:
                wants.append(each.name)
            elif each.default is each.empty:
                raise RegistrationError(_unknown_kwarg(label, each.name, known))
        return cls(form_of(fn, label), tuple(wants), rest)


def _unknown_kwarg(label: str, name: str, known: Collection[str]) -> str:
    hint = hint_of(name, known) + ", or for an index that is declared above it"
    return f"{label} asks for an unknown argument {name!r}; {hint}"


def _missing_index(
    label: str, name: str, own: Collection[str], indices: Collection[str]
) -> str:
    """The error message for a default of `fnop.INDEX` without such an index."""
    if name in own:
        return (
            f"{label}: {name!r} is not an index but an argument of its own; leave the "
            "default fnop.INDEX out"
        )
    near = nearest(name, indices)
    hint = f"there are {listed(indices)}" if indices else "there is none"
    hint = f"did you mean {near!r}?" if near else hint
    return f"{label} asks for an index {name!r} that is not declared above it; {hint}"


def form_of(fn: Callable[..., Any], label: str) -> Form:
    """The form of a function, by its outermost layer that is not a plain function."""
    for layer in layers(fn):
        if inspect.isasyncgenfunction(layer):
            raise RegistrationError(
                f"{label} both awaits and yields; write `async def` with awaits, or a "
                "plain generator with yields"
            )
        if inspect.iscoroutinefunction(layer):
            return Form.AWAITED
        if inspect.isgeneratorfunction(layer):
            return Form.GENERATOR
    return Form.PLAN
