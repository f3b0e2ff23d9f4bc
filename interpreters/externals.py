"""Models of external systems, which answer calls in a simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["forked"]

Model = Callable[..., Any]


def forked(calls: Mapping[str, Model]) -> dict[str, Model]:
    """The same models, with those that are methods of a system on a copy of it."""
    copies: dict[int, Any] = {}
    found: dict[str, Model] = {}
    for name, model in calls.items():
        system: Any = getattr(model, "__self__", None)
        if not hasattr(system, "fork"):
            found[name] = model
            continue
        if id(system) not in copies:
            copies[id(system)] = system.fork()
        found[name] = getattr(copies[id(system)], model.__name__)
    return found
