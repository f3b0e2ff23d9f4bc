"""Kopf's registry: the handlers that the decorators of `kopf.on` have declared.

An entry is what its author has written. Each operator makes its own handlers of the
entries (`fnop.adapters.kopf.running.handlers`). So several operators can share a
registry.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from fnop.core.handlers.declare.roles import ADMISSION, INDICES, OUTSIDE, Role

__all__ = [
    "Entry",
    "OperatorRegistry",
    "get_default_registry",
    "id_of",
    "set_default_registry",
]


class Entry(Struct, frozen=True):
    """One declaration: the role, the words for its kinds, its options, its function."""

    role: Role
    words: tuple[Any, ...]
    options: Mapping[str, Any]
    fn: Callable[..., Any]

    @property
    def id(self) -> str:
        """The id of its handler, without a field."""
        return id_of(self.fn, self.options.get("id"))


class OperatorRegistry:
    """The handlers of one operator.

    >>> registry = OperatorRegistry()
    >>> registry.add(Entry(Role.CREATE, ("pods",), {}, print))
    >>> [entry.id for entry in registry.entries]
    ['print']
    """

    default: ClassVar[OperatorRegistry | None] = None

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Declare one more handler."""
        self.entries.append(entry)

    @property
    def indices(self) -> tuple[str, ...]:
        """The names of all indices: their values are arguments of handlers."""
        found = (each.id for each in self.entries if each.role in INDICES)
        return tuple(dict.fromkeys(found))

    @property
    def has_webhooks(self) -> bool:
        """Whether it has admission handlers, which need a server."""
        return any(each.role in ADMISSION for each in self.entries)

    @property
    def is_empty(self) -> bool:
        """Whether no handler is about objects or the operator's life."""
        return all(each.role in OUTSIDE for each in self.entries)


def get_default_registry() -> OperatorRegistry:
    """The registry of decorators without `registry=`."""
    if OperatorRegistry.default is None:
        OperatorRegistry.default = OperatorRegistry()
    return OperatorRegistry.default


def set_default_registry(registry: OperatorRegistry | None) -> None:
    """Replace the registry of decorators without `registry=`; None: by an empty one."""
    OperatorRegistry.default = registry


def id_of(fn: Callable[..., Any], given: str | None = None) -> str:
    """The id of a function's handler, as Kopf makes it.

    It is the function's qualified name, or the place of a lambda. Raises `ValueError`
    for a callable object without a name.

    >>> id_of(functools.partial(print, end=""))
    'print'
    """
    if given:
        return given
    inner: Any = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    if isinstance(inner, functools.partial):
        return id_of(inner)
    name: str | None = getattr(inner, "__qualname__", None)
    if name is None or (not hasattr(inner, "__code__") and not callable(inner)):
        raise ValueError(f"{fn!r} has no name to serve as its id; give id=...")
    if getattr(inner, "__name__", "") == "<lambda>":
        code = inner.__code__
        return f"lambda:{Path(code.co_filename).name}:{code.co_firstlineno}"
    return name
