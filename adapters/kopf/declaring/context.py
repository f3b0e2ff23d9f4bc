"""The running handler of the current task or thread, for functions without arguments.

`kopf.event`, `kopf.adopt` and `kopf.register` know the handled object and the operator
from here. Threads of handlers get a copy of the context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

__all__ = ["CURRENT", "CurrentCall", "current_call", "current_owner"]

Json = dict[str, Any]


class CurrentCall:
    """One call of a handler: its id, the handled object, and the way out for Events.

    `post` takes the id of the handler and a core/v1 Event; None if the handler is about
    no object.
    """

    def __init__(
        self,
        handler: str,
        owner: Mapping[str, Any] | None,
        post: Callable[[str, Json], None] | None,
        posting: Any = None,
    ) -> None:
        self.handler = handler
        self.owner = owner
        self.post = post
        self.posting = posting
        self.family: Any = None
        # The sub-handlers that it declares, with their options.
        self.children: list[tuple[Callable[..., Any], Mapping[str, Any]]] = []

    def declare(self, fn: Callable[..., Any], options: Mapping[str, Any]) -> None:
        """Note a sub-handler."""
        self.children.append((fn, options))


CURRENT: ContextVar[CurrentCall] = ContextVar("kopf-call")


def current_call() -> CurrentCall:
    """The running handler. Raises `LookupError` outside of handlers."""
    found = CURRENT.get(None)
    if found is None:
        raise LookupError("no handler runs here: this is for handlers of objects")
    return found


def current_owner() -> Mapping[str, Any]:
    """The object of the running handler. Raises `LookupError` without one."""
    owner = current_call().owner
    if owner is None:
        raise LookupError("the running handler is about no object: name the owner")
    return owner
