"""The garbage collector in the processes that are fnop's own."""

from __future__ import annotations

import gc

__all__ = ["calm_collector"]


def calm_collector() -> None:
    """Let the garbage collector look less often.

    States of operators and clusters are values that share values, and hardly any
    cycles: at Python's own thresholds a sixth of the time goes into looking for them.
    """
    gc.set_threshold(20_000, 20, 50)
