"""Arguments that a handler's annotations request as objects of author's classes.

    def database(spec: DatabaseSpec, obj: Database, **_): ...

The annotation decides: without a class, `spec` is the mapping that it is. Annotations
are looked up at the first call, as a class may be defined below the handler in its
module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, timedelta
from functools import cached_property
from types import NoneType, SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from fnop.core.values.callables import layers, parameters_of
from fnop.core.values.errors import RegistrationError
from fnop.core.values.models import (
    Reader,
    Unfit,
    UnfitBefore,
    is_read,
    or_none,
    or_unwritten,
    reader_of,
)
from fnop.effects.hints import UNIONS, admits_none, unwrapped

__all__ = ["READABLE", "Typed", "check_typed", "typed"]

# The arguments that are an object, or a part of one. With `field=` the last two are any
# value.
_OBJECTS = frozenset(("obj", "body", "spec", "status"))
READABLE = _OBJECTS | {"old", "new"}
# The parts of an object that a class may describe.
_PARTS = ("spec", "status")
# Arguments that may be None if they do not fit. A status is written piece by piece, and
# an object's past cannot be changed.
_LENIENT = {"status": or_unwritten, "old": or_none}
# The types that no object has.
_NO_OBJECTS = (str, int, float, bytes, list, tuple, set, frozenset, date, timedelta)


class Typed:
    """The arguments of a function that are converted, and their readers."""

    def __init__(
        self, annotations: Mapping[str, Any], names: Mapping[str, Any]
    ) -> None:
        self._annotations, self._names = annotations, names

    @cached_property
    def readers(self) -> Mapping[str, Reader]:
        """The readers by argument; arguments without a (known) class have no reader."""
        found = {}
        for name, hint in self.hints.items():
            inner = _without_none(hint)
            if is_read(inner):
                read = reader_of(inner)
                if admits_none(hint) and name in _LENIENT:
                    read = _LENIENT[name](read)
                found[name] = read
        return found

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The annotations that are known so far; others are for type checkers alone."""
        found = {}
        for name, annotation in self._annotations.items():
            with suppress(AttributeError, NameError, SyntaxError, TypeError):
                found[name] = self._resolve_annotation(annotation)
        return found

    def _resolve_annotation(self, annotation: Any) -> Any:
        holder = SimpleNamespace(__annotations__={"it": annotation})
        return get_type_hints(holder, {**self._names}, include_extras=True)["it"]

    def misfit(self, name: str, value: Any) -> Unfit | None:
        """The misfit that makes an argument None; None if it fits."""
        if value is None or name not in self.readers:
            return None
        hint = self.hints[name]
        if not admits_none(hint):
            return None
        try:
            reader_of(_without_none(hint))(value)
        except Unfit as problem:
            return problem.under(name)
        return None

    def read(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments with the converted ones; None stays None.

        Raises `Unfit` for an argument that does not fit its class; `UnfitBefore` if
        only `old` does not.
        """
        readers = self.readers
        if not readers:
            return arguments
        found = dict(arguments)
        unfit: list[Unfit] = []
        former: UnfitBefore | None = None
        for name, read in readers.items():
            if found.get(name) is not None:
                try:
                    found[name] = read(found[name])
                except Unfit as problem:
                    if name == "old":
                        former = UnfitBefore.because_of(problem)
                    else:
                        unfit.append(problem.under(*_outside(name)))
        if unfit:
            raise Unfit.joined(unfit)
        if former is not None:
            raise former
        return found


def typed(fn: Callable[..., Any]) -> Typed | None:
    """The arguments of a function that may be converted; None if it annotates none."""
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


def check_typed(
    fn: Callable[..., Any],
    label: str,
    kind: type | None = None,
    *,
    of_value: bool = False,
    may_be_new: bool = False,
) -> None:
    """Raise `RegistrationError` for an annotation that no object fits.

    `kind` is the class of the objects, if it is known. With `of_value`, as with
    `field=`, `old` and `new` are values of a field. With `may_be_new`, `old` may be
    missing.

    >>> def handler(spec: str, **_: Any) -> None: ...
    >>> try: check_typed(handler, "@fnop.on.create handler")
    ... except RegistrationError as problem: print(str(problem).partition(";")[0])
    @fnop.on.create handler has 'spec: str', and it is given an object
    """
    found = typed(fn)
    if found is None:
        return
    objects = _OBJECTS if of_value else READABLE
    for name, hint in found.hints.items():
        inner = unwrapped(_without_none(hint)).hint
        said = f"{label} has '{name}: {getattr(inner, '__name__', inner)}'"
        if name in objects and _is_no_object(inner):
            raise RegistrationError(
                f"{said}, and it is given an object; annotate it with a "
                "class of yours, or as fnop.Spec, fnop.Status or fnop.Body"
            )
        if not is_read(inner):
            continue
        if name in objects and (other := _other_part(name, inner, kind)):
            raise RegistrationError(f"{said}, and that is {other}")
        if name == "old" and may_be_new and not admits_none(hint):
            raise RegistrationError(
                f"{said}, and there is no old object when one is created; annotate it "
                f"as '{getattr(inner, '__name__', inner)} | None'"
            )


def _is_no_object(hint: Any) -> bool:
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, _NO_OBJECTS)


def _other_part(name: str, hint: Any, kind: type | None) -> str:
    """The other part of an object that a class describes; "" if it fits the argument.

    >>> class Claim:
    ...     spec: timedelta
    >>> _other_part("obj", timedelta, Claim), _other_part("spec", Claim, Claim)
    ('the class of Claim.spec', 'the class of the whole object')
    """
    if kind is None:
        return ""
    part = name if name in _PARTS else ""
    if hint is kind:
        return "the class of the whole object" if part else ""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (AttributeError, NameError, TypeError):
        return ""
    known = {
        each: unwrapped(_without_none(hints[each])).hint
        for each in _PARTS
        if each in hints
    }
    own = known.get(part)
    if own is hint or (isinstance(own, type) and issubclass(own, hint)):
        return ""
    others = [f"the class of {kind.__name__}.{e}" for e in known if known[e] is hint]
    return others[0] if others else ""


def _outside(name: str) -> tuple[str, ...]:
    """The place of an argument in its object; the name of `old` states its place."""
    return () if name in ("obj", "body") else (name,)


def _without_none(hint: Any) -> Any:
    """The type of an argument that has a value: the type of `old` may include None."""
    inner = unwrapped(hint).hint
    if get_origin(inner) not in UNIONS:
        return hint
    others = [each for each in get_args(inner) if each not in (None, NoneType)]
    return others[0] if len(others) == 1 else hint
