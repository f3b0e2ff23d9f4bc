"""Changed copies of the core's values, two to four times as fast as the stdlib's.

A step makes dozens of them. Type checkers see the library's functions, so that the
names and types of the changes are checked.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["quick", "replace"]

Cls = TypeVar("Cls", bound=type[tuple[Any, ...]])


def quick(cls: Cls) -> Cls:
    """Give a named tuple a faster `_replace`; the stdlib's maps over all fields.

    >>> from collections import namedtuple
    >>> Point = quick(namedtuple("Point", "x y"))
    >>> Point(1, 2)._replace(y=3)
    Point(x=1, y=3)
    """
    places = {name: at for at, name in enumerate(cls._fields)}  # type: ignore[attr-defined]
    make = tuple.__new__

    def _replace(self: tuple[Any, ...], /, **changes: Any) -> Any:
        """The value with some fields changed; `KeyError` for an unknown one."""
        fields = [*self]
        for name, change in changes.items():
            fields[places[name]] = change
        return make(cls, fields)

    cls._replace = _replace  # type: ignore[attr-defined]
    return cls


if TYPE_CHECKING:
    from dataclasses import replace
else:
    _PLANS: dict[type, tuple[Any, dict[str, int]]] = {}

    def _field_getter(names: tuple[str, ...]) -> Any:
        """A function from a value to its fields, as a tuple even for one field."""
        get = attrgetter(*names)
        return (lambda value: (get(value),)) if len(names) == 1 else get

    def _plan_of_class(cls: type) -> tuple[Any, dict[str, int]]:
        fields = cls.__dataclass_fields__.values()
        names = tuple(each.name for each in fields if each.init)
        plan = _field_getter(names), {name: at for at, name in enumerate(names)}
        _PLANS[cls] = plan
        return plan

    def replace(value, /, **changes):
        """The value with some fields changed; `KeyError` for an unknown one."""
        cls = type(value)
        getter, places = _PLANS.get(cls) or _plan_of_class(cls)
        fields = list(getter(value))
        for name, change in changes.items():
            fields[places[name]] = change
        return cls(*fields)
