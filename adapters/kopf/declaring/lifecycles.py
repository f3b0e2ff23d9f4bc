"""Kopf's lifecycles: which of several due handlers are called in one pass."""

from __future__ import annotations

import logging
from typing import Any

from fnop.core.handlers.declare.lifecycles import (
    all_at_once,
    asap,
    one_by_one,
    randomized,
    shuffled,
)

__all__ = [
    "all_at_once",
    "asap",
    "get_default_lifecycle",
    "one_by_one",
    "randomized",
    "set_default_lifecycle",
    "shuffled",
]

_default: list[Any] = [asap]


def get_default_lifecycle() -> Any:
    """The lifecycle of operators without one of their own."""
    return _default[0]


def set_default_lifecycle(lifecycle: Any) -> None:
    """Replace the default lifecycle; None restores `asap`."""
    found = asap if lifecycle is None else lifecycle
    logging.getLogger("kopf").warning(
        f"The default lifecycle is already set to {_default[0]}, "
        f"overriding it to {lifecycle}."
    )
    _default[0] = found
