"""Arguments that a handler's annotations ask for as objects of the author's classes.

    def database(spec: DatabaseSpec, obj: Database, **_): ...

The annotation decides: without a class, `spec` is the mapping that it is. Annotations
are looked up at the first call, as a class may stand below the handler in its module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import NoneType, SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from fnop.core.values.callables import layers, parameters_of
from fnop.core.values.models import (
    Reader,
    Unfit,
    is_read,
    or_unwritten,
    reader_of,
)
from fnop.effects.hints import UNIONS, admits_none, unwrapped

__all__ = ["READABLE", "Typed", "typed"]

# The arguments that are an object, or a part of one.
READABLE = frozenset(("obj", "body", "spec", "status", "old", "new"))


class Typed:
    """The arguments of a function that are read, and their readers."""

    def __init__(
        self, annotations: Mapping[str, Any], names: Mapping[str, Any]
    ) -> None:
        self._annotations, self._names = annotations, names

    @cached_property
    def readers(self) -> Mapping[str, Reader]:
        """The readers by argument; one that has no class, or no known one, has none."""
        found = {}
        for name, annotation in self._annotations.items():
            try:
                hint = self._resolved(annotation)
            except (AttributeError, NameError, SyntaxError, TypeError):
                continue  # it is for type checkers alone
            inner = _without_none(hint)
            if is_read(inner):
                read = reader_of(inner)
                may_lack = name == "status" and admits_none(hint)
                found[name] = or_unwritten(read) if may_lack else read
        return found

    def _resolved(self, annotation: Any) -> Any:
        holder = SimpleNamespace(__annotations__={"it": annotation})
        return get_type_hints(holder, {**self._names}, include_extras=True)["it"]

    def read(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments with those that are read; None stays None.

        Raises `Unfit` for one that does not fit its class.
        """
        readers = self.readers
        if not readers:
            return arguments
        found = dict(arguments)
        for name, read in readers.items():
            if found.get(name) is not None:
                try:
                    found[name] = read(found[name])
                except Unfit as problem:
                    raise problem.under(*_outside(name)) from problem.__cause__
        return found


def typed(fn: Callable[..., Any]) -> Typed | None:
    """The arguments of a function that may be read; None if nothing is annotated so."""
    try:
        annotations = {
            each.name: each.annotation
            for each in parameters_of(fn)
            if each.name in READABLE and each.annotation is not each.empty
        }
    except ValueError:  # a built-in function without a signature
        return None
    if not annotations:
        return None
    *_, inner = layers(fn)
    return Typed(annotations, getattr(inner, "__globals__", {}))


def _outside(name: str) -> tuple[str, ...]:
    """The place of an argument in its object; that of `old` is told by its name."""
    return () if name in ("obj", "body") else (name,)


def _without_none(hint: Any) -> Any:
    """The type of an argument if there is a value: that of `old` may be None."""
    inner = unwrapped(hint).hint
    if get_origin(inner) not in UNIONS:
        return hint
    others = [each for each in get_args(inner) if each not in (None, NoneType)]
    return others[0] if len(others) == 1 else hint
