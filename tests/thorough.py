"""The number of examples of a property: few, and many by `make thorough`."""

from __future__ import annotations

import os

__all__ = ["IS_THOROUGH", "examples"]

_FACTOR = float(os.environ.get("FNOP_THOROUGH") or 1)
IS_THOROUGH = _FACTOR != 1


def examples(count: int) -> int:
    """That many, times the environment's FNOP_THOROUGH."""
    return max(1, round(count * _FACTOR))
