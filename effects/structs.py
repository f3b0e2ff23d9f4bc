"""Values as Structs of msgspec: changed copies, and fields beside the value."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import field

__all__ = ["as_dataclass", "beside", "compared", "derived", "replace"]

if TYPE_CHECKING:
    # Type checkers check the names and types of the changes.
    from dataclasses import replace
else:
    from msgspec.structs import replace

T = TypeVar("T")


def derived() -> Any:
    """A field that `__post_init__` computes of the others, by `force_setattr`."""
    return field(default=None)


def beside(*names: str, secret: tuple[str, ...] = ()) -> Callable[[type[T]], type[T]]:
    """Leave these fields out of a Struct's comparison, hash and `repr`.

    `secret` fields are part of the value, and its `repr` does not show them.

    >>> from msgspec import Struct
    >>> @beside("found")
    ... class Line(Struct, frozen=True):
    ...     text: str
    ...     found: float = 0.0
    >>> Line("a", 1.0), Line("a", 1.0) == Line("a"), {Line("a", 1.0): 2}[Line("a")]
    (Line(text='a'), True, 2)
    """

    def decorate(cls: type[T]) -> type[T]:
        made: Any = cls
        made.__beside__ = frozenset(names)
        of_value = compared(made)
        told = [name for name in of_value if name not in secret]

        def values(one: Any) -> list[Any]:
            # Lists compare their items by identity first: a copy with NaN is equal.
            return [getattr(one, name) for name in of_value]

        def __eq__(self: Any, other: Any) -> Any:
            if type(other) is not type(self):
                return NotImplemented
            return values(self) == values(other)

        def __hash__(self: Any) -> int:
            return hash((type(self), *values(self)))

        def __repr__(self: Any) -> str:
            shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in told)
            return f"{type(self).__name__}({shown})"

        for method in (__eq__, __hash__, __repr__):
            setattr(made, method.__name__, method)
        return cls

    return decorate


def as_dataclass(cls: type[T]) -> type[T]:
    """Let `dataclasses` take a Struct for one of its classes, as authors may.

    >>> import dataclasses
    >>> from msgspec import Struct
    >>> @as_dataclass
    ... class Point(Struct, frozen=True):
    ...     x: int
    ...     y: int = 0
    >>> dataclasses.replace(Point(1), y=2), dataclasses.asdict(Point(1))
    (Point(x=1, y=2), {'x': 1, 'y': 0})
    """
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        setattr(cls, name, _OfDataclass(name))
    return cls


class _OfDataclass:
    """An attribute of dataclasses. Few programs ask for it, so it is made late."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _: Any, cls: Any) -> Any:
        return getattr(_alike(cls), self._name)


@cache
def _alike(cls: Any) -> type:
    from dataclasses import field, make_dataclass

    fields = [(name, Any, field(default=None)) for name in cls.__struct_fields__]
    return make_dataclass(cls.__name__, fields, repr=False)


@cache
def compared(cls: Any) -> tuple[str, ...]:
    """The names of the fields that are part of a Struct's value, in their order."""
    apart = getattr(cls, "__beside__", ())
    return tuple(name for name in cls.__struct_fields__ if name not in apart)
