"""Arguments that a handler's annotations ask for as objects of the author's classes.

    def database(spec: DatabaseSpec, obj: Database, **_): ...

The annotation decides: without a class, `spec` is the mapping that it is. Annotations
are looked up at the first call, as a class may stand below the handler in its module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cached_property
from types import NoneType, SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from fnop.core.values.callables import layers, parameters_of
from fnop.core.values.errors import RegistrationError
from fnop.core.values.models import (
    Reader,
    Unfit,
    is_read,
    or_unwritten,
    reader_of,
)
from fnop.effects.hints import UNIONS, admits_none, unwrapped

__all__ = ["READABLE", "Typed", "check_typed", "typed"]

# The arguments that are an object, or a part of one; with `field=` the last two are any
# value.
_OBJECTS = frozenset(("obj", "body", "spec", "status"))
READABLE = _OBJECTS | {"old", "new"}
# The types that no object is.
_NO_OBJECTS = (str, int, float, bytes, list, tuple, set, frozenset, date, timedelta)


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

    @property
    def mistaken(self) -> str:
        """The annotation of an object that is none: `spec: str`; "" without one."""
        for name in sorted(_OBJECTS & self._annotations.keys()):
            try:
                hint = _without_none(self._resolved(self._annotations[name]))
            except (AttributeError, NameError, SyntaxError, TypeError):
                continue
            inner = unwrapped(hint).hint
            origin = get_origin(inner) or inner
            if isinstance(origin, type) and issubclass(origin, _NO_OBJECTS):
                return f"{name}: {getattr(inner, '__name__', inner)}"
        return ""

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


def check_typed(fn: Callable[..., Any], label: str) -> None:
    """Raise `RegistrationError` for an annotation that no object fits.

    >>> def handler(spec: str, **_: Any) -> None: ...
    >>> try: check_typed(handler, "@fnop.on.create handler")
    ... except RegistrationError as problem: print(str(problem).partition(";")[0])
    @fnop.on.create handler has 'spec: str', and it is given an object
    """
    found = typed(fn)
    if found is not None and (mistaken := found.mistaken):
        raise RegistrationError(
            f"{label} has {mistaken!r}, and it is given an object; annotate it with a "
            "class of yours, or as fnop.Spec, fnop.Status or fnop.Body"
        )


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
