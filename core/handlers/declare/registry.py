"""The registry of an operator's handlers.

It collects them while the operator's modules are imported. A program is made from
`Registry.handlers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import INDICES
from fnop.core.values.errors import RegistrationError

__all__ = ["Registry", "default_registry"]


class Registry:
    """The handlers of one operator, collected while its modules are imported.

    Handlers without a `registry` of their own go to the global one. A separate registry
    keeps several operators in one process apart:

        registry = fnop.Registry()

        @fnop.on.create("databases", registry=registry)
        def created(name, **_): ...

        fnop.run(registry=registry)
    """

    def __init__(self) -> None:
        self._handlers: list[Handler] = []

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """All handlers, in the order of their declaration."""
        return tuple(self._handlers)

    @property
    def indices(self) -> tuple[str, ...]:
        """The names of the indices declared so far: handlers may ask for them."""
        return tuple(each.id for each in self._handlers if each.role in INDICES)

    def add(self, handler: Handler) -> None:
        """Register a `handler`.

        Raises `RegistrationError` for an id that another function has.
        """
        for each in self._handlers:
            if each.id == handler.id and each.fn is not handler.fn:
                differ = each.selector != handler.selector
                if differ and each.rule.is_about_objects:
                    continue
                raise RegistrationError(
                    f"two handlers have the id {handler.id!r}, under which their "
                    "progress and results would be mixed up; give one of them id=..."
                )
        self._handlers.append(handler)

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Start without handlers for a while; then restore the previous ones."""
        kept, self._handlers = self._handlers, []
        try:
            yield
        finally:
            self._handlers = kept

    def forget(self, module: str) -> None:
        """Remove the handlers that a module has declared, before it is loaded again."""
        self._handlers = [e for e in self._handlers if e.declared.__module__ != module]

    def clear(self) -> None:
        """Remove all handlers, for example before the same files are loaded again."""
        self._handlers.clear()


default_registry = Registry()
