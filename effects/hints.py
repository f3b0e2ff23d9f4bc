"""The types that authors write for fields, and their accompanying marks."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
)

__all__ = ["UNIONS", "Unwrapped", "admits_none", "named", "unwrapped"]

UNIONS = (Union, UnionType)
_QUALIFIERS = (Required, NotRequired, Final)


class Unwrapped(NamedTuple):
    """A type without its wrappers, and these: marks, qualifiers, aliases."""

    hint: Any
    marks: tuple[Any, ...]
    qualifiers: frozenset[Any]
    aliases: tuple[Any, ...] = ()


def unwrapped(hint: Any) -> Unwrapped:
    """The type inside of Annotated, Required, aliases and the like.

    >>> unwrapped(Required[Annotated[int, "few"]]).marks
    ('few',)
    """
    marks: tuple[Any, ...] = ()
    qualifiers: set[Any] = set()
    aliases: tuple[Any, ...] = ()
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            marks = (*hint.__metadata__, *marks)
            hint = hint.__origin__
        elif origin in _QUALIFIERS:
            qualifiers.add(origin)
            (hint,) = get_args(hint)
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":  # Python 3.12: type X = ...
            if hint in aliases:
                return Unwrapped(hint, marks, frozenset(qualifiers), aliases)
            aliases = (*aliases, hint)
            # pydantic's type of any JSON contains itself.
            hint = Any if hint.__name__ == "JsonValue" else hint.__value__
        else:
            return Unwrapped(hint, marks, frozenset(qualifiers), aliases)


def admits_none(hint: Any) -> bool:
    """Whether None is a value of a type.

    >>> admits_none(int | None), admits_none(Any)
    (True, False)
    """
    inner = unwrapped(hint).hint
    if get_origin(inner) in UNIONS:
        return any(map(admits_none, get_args(inner)))
    if get_origin(inner) is Literal:
        return None in get_args(inner)
    return inner in (None, NoneType)


def named(attribute: str, hint: Any) -> str:
    """The name of a field in objects: its mark's, such as `fnop.schema(name=)`.

    A mark with a name has it as `renames`.

    >>> named("size", Annotated[int, "few"])
    'size'
    """
    names = (getattr(mark, "renames", None) for mark in unwrapped(hint).marks)
    return next(filter(None, names), attribute)
