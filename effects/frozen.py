"""`@frozen`: a frozen dataclass with slots, made in a quarter of the time.

The standard library writes and compiles six functions for each frozen dataclass. fnop
has more than two hundred: a quarter of the CPU time that `fnop run --simulate` needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


class _NoValue:
    """The default of a parameter whose field has a `default_factory`."""

    def __repr__(self) -> str:
        return "<factory>"


_NO_VALUE: Any = _NoValue()


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(
    *, kw_only: bool = False, eq: bool = True, repr: bool = True
) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    cls: type[T] | None = None,
    /,
    *,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Any:
    """Make a class a frozen dataclass with slots.

    `dataclasses.fields`, `replace`, `asdict` and pattern matching work as with
    `@dataclass(frozen=True, slots=True)`; a base class has to be `@frozen`, too.

    Args:
        cls: a class whose annotations are its fields.
        kw_only: take all fields by name.
        eq: compare and hash by the fields' values, instead of by identity.
        repr: show the fields.

    >>> @frozen
    ... class Port:
    ...     number: int
    ...     name: str = "http"
    >>> Port(80), Port(80) == Port(80, name="http"), {Port(80): "open"}[Port(80)]
    (Port(number=80, name='http'), True, 'open')
    >>> Port(80).number = 81
    Traceback (most recent call last):
        ...
    dataclasses.FrozenInstanceError: cannot assign to field 'number'
    """

    def decorate(cls: type[T]) -> type[T]:
        own = frozenset(vars(cls))
        cls.__doc__ = cls.__doc__ or cls.__name__  # or dataclass inspects the signature
        made: Any = dataclass(
            init=False, repr=False, eq=False, kw_only=kw_only, slots=True
        )(cls)
        for name, method in _methods(made, eq=eq, repr=repr).items():
            if name not in own:
                setattr(made, name, method)
        return made  # type: ignore[no-any-return]

    return decorate if cls is None else decorate(cls)


def _methods(cls: Any, *, eq: bool, repr: bool) -> dict[str, Any]:
    """Give the methods of a frozen class: all but `__init__` need no compilation."""
    of_class = fields(cls)
    methods = {
        "__init__": _init(cls, of_class),
        "__setattr__": _setattr,
        "__delattr__": _delattr,
        "__getstate__": _getstate,
        "__setstate__": _setstate,
    }
    if repr:
        methods["__repr__"] = _repr([one.name for one in of_class if one.repr])
    if eq:
        methods |= _comparison([one.name for one in of_class if one.compare])
    return methods


def _init(cls: Any, of_class: tuple[Field[Any], ...]) -> Callable[..., None]:
    """Compile `__init__`, which sets each slot by its descriptor."""
    # The module's name: a search for an author's line skips fnop's frames by it.
    names: dict[str, Any] = {"_NO_VALUE": _NO_VALUE, "__name__": cls.__module__}
    parameters: list[list[str]] = [["self"], []]  # by position, by name
    body: list[str] = []
    for one in of_class:
        name = one.name
        value, default = _value_of(one, names)
        if one.init:
            taken = f"{name}={default}" if default else name
            parameters[bool(one.kw_only)].append(taken)
        if value:
            names[f"_set_{name}"] = getattr(cls, name).__set__
            body.append(f"    _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    by_position, by_name = parameters
    signature = ", ".join(by_position + (["*", *by_name] if by_name else []))
    # Names of fields are identifiers: no other text gets into the function.
    exec(f"def __init__({signature}):\n" + ("\n".join(body) or "    pass"), names)
    init: Any = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {one.name: one.type for one in of_class if one.init}
    init.__annotations__["return"] = None
    return init  # type: ignore[no-any-return]


def _value_of(one: Field[Any], names: dict[str, Any]) -> tuple[str, str]:
    """Give the expressions of a field's value, and of its parameter's default.

    A field without a value is left to `__post_init__`.
    """
    if one.default is not MISSING:
        default = f"_default_{one.name}"
        names[default] = one.default
        return (one.name if one.init else default), default
    if one.default_factory is not MISSING:
        make = f"_make_{one.name}"
        names[make] = one.default_factory
        given = f"{make}() if {one.name} is _NO_VALUE else {one.name}"
        return (given if one.init else f"{make}()"), "_NO_VALUE"
    return (one.name if one.init else ""), ""


def _repr(names: list[str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _comparison(names: list[str]) -> dict[str, Callable[..., Any]]:
    values = _values_of(names)

    def __eq__(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Give a function from an object to the tuple of these fields' values.

    Tuples compare their items by identity first, so an object equals its copy with NaN.
    """
    match names:
        case []:
            return lambda _: ()
        case [name]:
            only = attrgetter(name)
            return lambda found: (only(found),)
        case _:
            return attrgetter(*names)


def _setattr(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
